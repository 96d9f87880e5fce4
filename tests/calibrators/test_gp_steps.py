"""Steps that both maps share: bounded tails and the choice of a prior."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from rows import flat_map, normal_rows
from scipy.special import ndtri

from regcal import GPCalibrator, Normal
from regcal.calibrators.cells import NO_INTERVALS, Points
from regcal.calibrators.gp_steps import with_bounded_tails
from regcal.distributions import Transformed


def points(z):
    """Exact outcomes, and no intervals."""
    return Points.without_levels(np.ones(len(z)), z, z * z), NO_INTERVALS


@pytest.mark.parametrize("last", [3.0, 15.0])
def test_tails_beyond_all_outcomes_are_bounded(rng, last):
    """There, the mean excess is at most a third of the probit, as for a Pareto tail of index 4."""
    outcomes = np.append(rng.uniform(-last, last, 500), [-last, last])
    warp = with_bounded_tails(flat_map(lambda u: -0.99 * u, slope=0.02), *points(outcomes))
    eta = Transformed(Normal([0.0], [1.0]), warp).probit([[-3 * last, -last, last, 3 * last]])[0]
    slope = np.diff(eta)[[0, 2]] / (2 * last)

    assert_allclose(1.0 / (-ndtri(0.5 / 503) * slope), last / 3, rtol=0.2)


def test_light_tails_and_what_is_between_outcomes_stay_as_they_are():
    """Tails are made lighter, never heavier, and only where there is nothing to learn from."""
    wavy = flat_map(lambda u: 0.5 * np.sin(u))
    flat = flat_map(lambda u: -0.99 * u, slope=0.02)

    ends = np.repeat([-4.0, 4.0], 50)
    assert_allclose(with_bounded_tails(wavy, *points(ends)).h, wavy.h)
    middle = np.abs(flat.u) <= 3.0
    bounded = with_bounded_tails(flat, *points(0.75 * ends))
    assert_allclose(bounded.h[middle], flat.h[middle])


def test_unknown_prior_is_refused(rng):
    """The message names the value and the two choices."""
    with pytest.raises(ValueError, match=r'"identity" or "zero", got \'nonsense\''):
        GPCalibrator(prior="nonsense").fit(*normal_rows(rng, 20))
