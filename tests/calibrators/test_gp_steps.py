"""Steps that both maps share: bounded tails and the choice of a prior."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose
from rows import flat_map, normal_rows
from scipy.special import ndtri

from regcal import GPCalibrator, Normal, get_calibrator
from regcal.calibrators.cells import NO_INTERVALS, OutcomeCoordinates
from regcal.calibrators.gp_steps import with_bounded_tails
from regcal.calibrators.held_out import HeldOut
from regcal.distributions import Transformed

FLAT = flat_map(lambda u: -0.99 * u, slope=0.02)


def bounded(surface, y, spread=1.0):
    """Return the map with bounded tails, given exact outcomes of rows around 0."""
    rows = HeldOut.checked(Normal(np.zeros(len(y)), np.zeros(len(y)) + spread), y)
    return with_bounded_tails(surface, OutcomeCoordinates().observe(rows), NO_INTERVALS, rows)


@pytest.mark.parametrize("last", [3.0, 15.0])
def test_tails_beyond_all_outcomes_are_bounded(rng, last):
    """Beyond the probit of the last outcome they fall as a Pareto tail of index 4 or faster."""
    outcomes = np.append(rng.uniform(-last, last, 500), [-last, last])
    row = Transformed(Normal([0.0], [1.0]), bounded(FLAT, outcomes))
    eta = row.probit([[-3 * last, -last, last, 3 * last]])[0]
    rise = np.diff(eta)[[0, 2]]

    expected = 4.0 * np.log(3.0) / -ndtri(0.5 / 503)
    assert (rise > 0.9 * expected).all()
    assert (rise < 2.0 * expected).all()


def test_tails_begin_where_outcomes_as_far_out_end():
    """Outcomes that are nearer, at a thousand probits of narrow rows, do not put them off."""
    y, spread = np.repeat([-1.0, 1.0, -2.0, 2.0], 250), np.repeat([0.001, 1.0], 500)
    wide = Normal([0.0], [1.0])
    row, flat = Transformed(wide, bounded(FLAT, y, spread)), Transformed(wide, FLAT)

    assert_allclose(row.sf([[1.0]]), flat.sf([[1.0]]), atol=0.01)
    assert flat.sf([[6.0]])[0, 0] > 0.4
    assert row.sf([[6.0]])[0, 0] < 0.2
    assert_allclose(row.cdf([[-6.0]]), row.sf([[6.0]]))


@pytest.mark.parametrize("method", ["gpc", "gp-density"])
@pytest.mark.parametrize("seed", range(3))
def test_sure_rows_that_are_wrong_do_not_spoil_the_tails_of_wide_ones(method, seed):
    """Outcomes a hundred spreads out, of rows with next to none, tell nothing of other tails."""
    rng = np.random.default_rng(seed)
    wide, wrong = rng.random(1500) < 0.2, rng.random(1500) < 0.02
    sure = np.where(wrong, 1.0, 0.01 * rng.normal(size=1500))
    y = np.where(wide, rng.exponential(size=1500), sure)
    dist = Normal(np.where(wide, 1.0, 0.0), np.where(wide, 1.0, 0.01))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # told: the model is sure of what is not so
        calibrated = get_calibrator(method).fit(dist, y).transform(dist[wide])
    assert y.max() < 8.0
    assert calibrated.sf(30.0).mean() < 3e-4


def test_light_tails_and_what_is_between_outcomes_stay_as_they_are():
    """Tails are made lighter, never heavier, and only where there is nothing to learn from."""
    wavy = flat_map(lambda u: 0.2 * np.sin(u))
    ends = np.repeat([-4.0, 4.0], 50)
    assert_allclose(bounded(wavy, ends).h, wavy.h)
    middle = np.abs(FLAT.u) <= 3.0
    assert_allclose(bounded(FLAT, 0.75 * ends).h[middle], FLAT.h[middle])


def test_tails_of_few_rows_are_not_made_lighter_than_those_of_the_base():
    """Of five rows, none is in a tail."""
    same = flat_map(np.zeros_like)
    assert_allclose(bounded(same, np.linspace(-0.5, 0.5, 5)).h, same.h)


def test_unknown_prior_is_refused(rng):
    """The message names the value and the two choices."""
    with pytest.raises(ValueError, match=r'"identity" or "zero", got \'nonsense\''):
        GPCalibrator(prior="nonsense").fit(*normal_rows(rng, 20))
