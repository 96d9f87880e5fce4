"""Steps that both maps share: bounded tails and the choice of a prior."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose
from rows import flat_map, normal_rows
from scipy.special import ndtri

from regcal import GPCalibrator, Normal, get_calibrator
from regcal.calibrators import Targets
from regcal.calibrators.cells import NO_INTERVALS, Points
from regcal.calibrators.gp_steps import with_bounded_tails
from regcal.distributions import Transformed


def points(z):
    """Exact outcomes, and no intervals."""
    return Points.without_levels(np.ones(len(z)), z, z * z), NO_INTERVALS


EVERYWHERE = Targets.of([-1e9, 1e9])  # no target is beyond all outcomes
FLAT = flat_map(lambda u: -0.99 * u, slope=0.02)


@pytest.mark.parametrize("last", [3.0, 15.0])
def test_tails_beyond_all_outcomes_are_bounded(rng, last):
    """Beyond the probit of the last outcome they fall as a Pareto tail of index 4 or faster."""
    outcomes = np.append(rng.uniform(-last, last, 500), [-last, last])
    bounded = with_bounded_tails(FLAT, *points(outcomes), EVERYWHERE)
    row = Transformed(Normal([0.0], [1.0]), bounded)
    eta = row.probit([[-3 * last, -last, last, 3 * last]])[0]
    rise = np.diff(eta)[[0, 2]]

    expected = 4.0 * np.log(3.0) / -ndtri(0.5 / 503)
    assert (rise > 0.9 * expected).all()
    assert (rise < 2.0 * expected).all()


def test_tails_of_rows_that_reach_beyond_all_targets_are_bounded():
    """Where a row sees only targets beyond all outcomes, its own probit says where its tail is."""
    far = np.repeat([-1000.0, 1000.0], 250)
    bounded = with_bounded_tails(FLAT, *points(far), Targets.of([-2.0, 2.0]))
    wide = Normal([0.0], [1.5])
    row, flat = Transformed(wide, bounded), Transformed(wide, FLAT)

    assert_allclose(row.sf([[1.0]]), flat.sf([[1.0]]), atol=0.01)
    assert flat.sf([[9.0]])[0, 0] > 0.4
    assert row.sf([[9.0]])[0, 0] < 0.1
    assert_allclose(row.cdf([[-9.0]]), row.sf([[9.0]]))


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
    assert calibrated.sf(10.0).mean() < 0.001


def test_light_tails_and_what_is_between_outcomes_stay_as_they_are():
    """Tails are made lighter, never heavier, and only where there is nothing to learn from."""
    wavy = flat_map(lambda u: 0.2 * np.sin(u))
    ends = np.repeat([-4.0, 4.0], 50)
    for targets in (EVERYWHERE, Targets.of([-1.0, 1.0])):
        assert_allclose(with_bounded_tails(wavy, *points(ends), targets).h, wavy.h)
    middle = np.abs(FLAT.u) <= 3.0
    bounded = with_bounded_tails(FLAT, *points(0.75 * ends), EVERYWHERE)
    assert_allclose(bounded.h[middle], FLAT.h[middle])


def test_tails_of_few_rows_are_not_made_lighter_than_those_of_the_base():
    """Of five rows, none is in a tail."""
    same = flat_map(np.zeros_like)
    few = np.linspace(-0.5, 0.5, 5)
    assert_allclose(with_bounded_tails(same, *points(few), Targets.of(few)).h, same.h)


def test_unknown_prior_is_refused(rng):
    """The message names the value and the two choices."""
    with pytest.raises(ValueError, match=r'"identity" or "zero", got \'nonsense\''):
        GPCalibrator(prior="nonsense").fit(*normal_rows(rng, 20))
