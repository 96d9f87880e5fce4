"""Frequencies of censored events against textbooks, isotonic regression and brute force."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import LinearConstraint, minimize
from sklearn.isotonic import IsotonicRegression

from regcal import Clipped, Normal, Outcomes, Rounded, metrics
from regcal.metrics.censoring import Ends

# Remission in weeks under 6-MP (Freireich et al., 1963), the example of most textbooks.
EVENTS = [6, 6, 6, 7, 10, 13, 16, 22, 23]
CENSORED = [6, 9, 10, 11, 17, 19, 20, 25, 32, 32, 34, 35]
SURVIVAL = {
    5: 1.0,
    6: 18 / 21,
    7: 18 / 21 * 16 / 17,
    10: 18 / 21 * 16 / 17 * 14 / 15,
    13: 18 / 21 * 16 / 17 * 14 / 15 * 11 / 12,
    16: 18 / 21 * 16 / 17 * 14 / 15 * 11 / 12 * 10 / 11,
    22: 18 / 21 * 16 / 17 * 14 / 15 * 11 / 12 * 10 / 11 * 6 / 7,
    24: 18 / 21 * 16 / 17 * 14 / 15 * 11 / 12 * 10 / 11 * 6 / 7 * 5 / 6,
}


def remissions():
    times = np.array(EVENTS + CENSORED, dtype=float)
    return times, np.arange(21) < len(EVENTS)


def half(*_):
    """Split what rows cannot tell in halves."""
    return 0.5


def frequency(outcomes, t, weights=None, dist=None):
    """Return the estimated frequency of y <= t of all rows."""
    n = len(outcomes)
    weights = np.ones(n) if weights is None else weights
    ends = Ends(outcomes, Normal(np.zeros(n), 1.0) if dist is None else dist)
    return np.average(ends.influences(t, np.arange(n), weights, half), weights=weights)


def test_right_censoring_is_kaplan_and_meier():
    """The textbook's survival curve, in one bin of the reliability curve."""
    outcomes = Outcomes.right_censored(*remissions())
    t = np.array(list(SURVIVAL), dtype=float)
    curve = metrics.reliability_curve(outcomes, Normal(np.full(21, 20.0), 30.0), t, bins=1)

    assert_allclose(curve.observed[:, 0], [1 - s for s in SURVIVAL.values()], atol=1e-12)
    assert "12 of 21 outcomes are right-censored: frequencies by Kaplan-Meier" in curve.note


def test_left_censoring_is_its_mirror_image():
    """Outcomes turned around give the textbook's curve from the other side."""
    times, observed = remissions()
    outcomes = Outcomes.left_censored(-times, observed)

    for t, survival in SURVIVAL.items():
        below = frequency(outcomes, -t - 1e-9)
        assert_allclose(below, survival, atol=1e-12)


def test_influences_have_the_variance_of_greenwood():
    """Kaplan and Meier's estimate varies as Greenwood's formula says."""
    outcomes = Outcomes.right_censored(*remissions())
    ends = Ends(outcomes, Normal(np.zeros(21), 1.0))
    at_risk, events = np.array([21, 17, 15, 12, 11]), np.array([3, 1, 1, 1, 1])
    greenwood = SURVIVAL[16] ** 2 * (events / (at_risk * (at_risk - events))).sum()

    values = ends.influences(16.0, np.arange(21), np.ones(21), half)

    assert_allclose(((values - values.mean()) ** 2).sum() / 21**2, greenwood, rtol=1e-5)


def test_current_status_is_isotonic_regression(rng):
    """One inspection a row: the estimate is the isotonic regression on the time of inspection."""
    y, inspected = rng.normal(size=200), rng.normal(size=200)
    below = y <= inspected
    lower, upper = np.where(below, -np.inf, inspected), np.where(below, inspected, np.inf)
    weights = rng.integers(1, 4, 200).astype(float)
    isotonic = IsotonicRegression().fit(inspected, below, weights)

    for t in np.sort(inspected)[20:-20:16]:
        # at an inspection the estimate has just jumped, or is about to
        found = [frequency(Outcomes(lower, upper), t + gap, weights) for gap in (-1e-9, 1e-9)]
        wanted = isotonic.predict([t])[0]
        assert min(found) - 2e-5 <= wanted <= max(found) + 2e-5


def mixed_rows(rng, n):
    """Return outcomes of all four kinds, on whole numbers."""
    y, gap = rng.integers(0, 12, n), rng.integers(1, 4, n)
    kind = rng.integers(0, 4, n)
    lower = np.select([kind == 0, kind == 1, kind == 2], [y, y, -np.inf], y - gap)
    upper = np.select([kind == 0, kind == 1, kind == 2], [y, np.inf, y], y + gap)
    return Outcomes(lower, upper)


def test_turnbull_maximises_the_likelihood(rng):
    """Masses of whole numbers and gaps that a general optimiser finds, for rows of all kinds."""
    outcomes = mixed_rows(rng, 30)
    # places: values at even and gaps above them at odd numbers, from below all to above all
    low, high, exact = outcomes.lower, outcomes.upper, outcomes.exact_rows
    start = np.where(np.isinf(low), 0, np.where(exact, 2 * low + 10, 2 * low + 11))
    stop = np.where(np.isinf(high), 40, np.where(exact, 2 * high + 10, 2 * high + 9))
    covers = (np.arange(41) >= start[:, np.newaxis]) & (np.arange(41) <= stop[:, np.newaxis])

    best = minimize(
        lambda p: -np.log(np.maximum(covers @ p, 1e-300)).sum(),
        np.full(41, 1 / 41),
        jac=lambda p: -(covers / np.maximum(covers @ p, 1e-300)[:, np.newaxis]).sum(axis=0),
        bounds=[(1e-12, 1)] * 41,
        constraints=LinearConstraint(np.ones(41), 1, 1),
        method="SLSQP",
        options={"maxiter": 2000, "ftol": 1e-13},
    ).x

    # at values that were seen the likelihood decides; elsewhere it leaves some masses open
    for t in np.unique(low[exact]):
        assert_allclose(frequency(outcomes, t), best[: int(2 * t + 11)].sum(), atol=1e-4)


@pytest.mark.parametrize("t", [2.0, 5.0, 7.5])
def test_influences_are_derivatives(t, rng):
    """A row's influence is how the estimate moves with its weight."""
    outcomes, weights = mixed_rows(rng, 60), rng.uniform(0.5, 2.0, 60)
    ends = Ends(outcomes, Normal(np.zeros(60), 1.0))
    values = ends.influences(t, np.arange(60), weights, half)
    step = 1e-2

    for row in range(0, 60, 7):
        moved = [weights + side * step * (np.arange(60) == row) for side in (1, -1)]
        slope = np.subtract(*(frequency(outcomes, t, w) for w in moved)) / (2 * step)
        influence = (values[row] - np.average(values, weights=weights)) / weights.sum()
        assert_allclose(slope, influence, atol=2e-4)


def test_events_come_before_censoring_but_at_point_masses():
    """At a tie the censored row outlived the event; on a mass it may be that very event."""
    outcomes = Outcomes([1.0, 1.0, 2.0], [1.0, np.inf, 2.0])
    base = Normal(np.ones(3), 1.0)

    assert_allclose(frequency(outcomes, 1.0), 1 / 3)
    # the censored row's weight goes to 1 and 2 in proportion: p = 1/3 + p/3
    assert_allclose(frequency(outcomes, 1.0, dist=Rounded(base)), 1 / 2)


def test_beyond_the_last_censoring_nothing_is_told():
    """All rows outlive 1: nothing but the predictions could tell what is below 2."""
    outcomes = Outcomes(np.ones(50), np.full(50, np.inf))
    dist = Normal(np.zeros(50), 1.0)
    curve = metrics.reliability_curve(outcomes, dist, [1.0, 2.0], bins=1)

    assert_allclose(curve.observed[:, 0], [0.0, np.nan])
    assert curve.note.endswith("; nothing is known at 2, beyond what was seen")


PLACES = [-1.0, 0.0, 1.0, 2.5, 3.0, 5.0, 9.0]


@pytest.mark.parametrize(
    ("lower", "upper", "told"),
    [
        ([1, 2, 3], [1, 2, np.inf], PLACES[:5]),  # the last was not seen to end
        ([1, 2, 3], [1, np.inf, 3], PLACES),  # it was: all have happened by then
        ([-np.inf, 2, 3], [1, 2, 3], PLACES[2:]),
        ([1, 2, 3], [np.inf] * 3, PLACES[:3]),  # before all of them; no event was seen
        ([0, 2, 4], [2, 4, 6], PLACES),  # between visits
        ([-np.inf, 2], [3, np.inf], PLACES),
    ],
)
def test_rows_tell_between_what_was_seen(lower, upper, told):
    """Kaplan and Meier's curve ends with the last row, unless that row did."""
    ends = Ends(Outcomes(lower, upper), Normal(np.zeros(len(lower)), 1.0))

    assert [t for t in PLACES if ends.tell(t)] == told


def test_an_end_with_a_mass_belongs_to_the_interval():
    """What is capped at 5 is not above 5, where the predictions say so."""
    latent = Normal(np.linspace(3.0, 6.0, 200), 1.0)
    dist = Clipped(latent, high=5.0)
    y = latent.sample(1, random_state=0)[:, 0]
    outcomes = Outcomes.right_censored(np.minimum(y, 5.0), y < 5.0)

    assert metrics.threshold_calibration_error(outcomes, dist, [4.0, 5.0, 6.0]) < 0.05
    assert metrics.threshold_calibration_error(outcomes, latent, [4.0, 5.0, 6.0]) < 0.05
