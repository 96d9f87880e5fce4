"""Calibration at thresholds against scikit-learn and brute force."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

from regcal import Normal, Outcomes, ScipyDistribution, metrics
from regcal.grids import QuantileGrid

# ------------------------------------------------------------------------- calibration errors


def brute_force_squared_gaps(y, dist, t, bins, weights):
    """Return the debiased mean squared gap at one threshold, bin by bin."""
    q, total = dist.cdf(t), 0.0
    for b in range(bins):
        inside = (q >= b / bins) & ((q < (b + 1) / bins) | (b == bins - 1))
        w = weights[inside]
        if not w.sum():
            continue
        gap = np.average(q[inside] - (y[inside] <= t), weights=w)
        noise = (w**2 * q[inside] * (1 - q[inside])).sum() / w.sum() ** 2
        total += w.sum() / weights.sum() * (gap**2 - noise)
    return total


def test_threshold_calibration_error_matches_brute_force(normals, weights):
    """Vectorised bins give what a loop over bins gives."""
    y, dist = normals
    dist = Normal(dist.loc + 0.7, dist.scale)
    thresholds = [-1.0, 0.2, 1.5]
    squared = [brute_force_squared_gaps(y, dist, t, 8, weights) for t in thresholds]

    error = metrics.threshold_calibration_error(y, dist, thresholds, sample_weight=weights)
    result = metrics.threshold_calibration_test(
        y, dist, thresholds, sample_weight=weights, n_simulations=9, random_state=0
    )

    assert_allclose(error, np.sqrt(np.mean(squared)))
    assert_allclose(result.error, error)
    assert_allclose(result.errors, np.sqrt(squared))


def test_threshold_test_finds_where_calibration_fails(rng):
    """A model that is wrong above 1 only is blamed there and nowhere else."""
    n = 3000
    loc = rng.normal(size=n)
    y = rng.normal(loc, 1.0)
    y = np.where(y > 1.0, 1.0 + 3.0 * (y - 1.0), y)
    result = metrics.threshold_calibration_test(
        y,
        Normal(loc, np.ones(n)),
        [-1.0, 0.0, 0.9, 2.0, 3.0],
        n_simulations=999,
        random_state=0,
    )

    smallest, noise = 1 / 1000, 4 * 0.5 / np.sqrt(n)  # four standard errors of a frequency
    assert (result.p_values[:3] > smallest).all()
    assert_allclose(result.p_values[3:], smallest)
    assert (np.abs(result.biases[:3]) < noise).all()
    assert (result.biases[3:] > noise).all()


def test_adjusted_p_values_keep_their_level(rng):
    """In about 5 % of calibrated data sets any threshold is blamed, not more."""
    blamed = 0
    for seed in range(100):
        loc = rng.normal(size=150)
        result = metrics.threshold_calibration_test(
            rng.normal(loc), Normal(loc, np.ones(150)), n_simulations=99, random_state=seed
        )
        blamed += (result.p_values < 0.05).any()

    assert blamed <= 13


# -------------------------------------------------------------------------- censored outcomes


def test_calibrated_models_are_within_noise_of_censored_outcomes(censoring, rng):
    """Frequencies are where predictions are; those of a shifted model are not."""
    n, thresholds = 3000, np.array([-1.0, 0.0, 1.0])
    loc = rng.normal(size=n)
    outcomes = censoring(rng, rng.normal(loc))
    right, wrong = (
        metrics.threshold_calibration_test(
            outcomes, Normal(loc + shift, np.ones(n)), thresholds, n_simulations=99, random_state=0
        )
        for shift in (0.0, 0.5)
    )

    # rows still at risk on either side bound the variance (Peto et al., 1977); five of its roots
    above = (outcomes.lower[:, np.newaxis] > thresholds).sum(axis=0)
    below = (outcomes.upper[:, np.newaxis] <= thresholds).sum(axis=0)
    noise = 5 * np.sqrt(0.25 / np.minimum(above, below))
    assert (np.abs(right.biases) < noise).all()
    assert right.raw_error < 2 * right.expected
    assert (wrong.biases < -noise / 2).all()
    assert wrong.p_value == 0.01 and wrong.raw_error > 3 * wrong.expected


def test_censored_errors_are_close_to_those_of_all_outcomes(censoring, rng):
    """What censoring hides is made up for: the error is that of outcomes nobody censored."""
    n = 4000
    loc = rng.normal(size=n)
    y, dist = rng.normal(loc), Normal(loc + 0.3, np.full(n, 1.4))
    whole = metrics.threshold_calibration_error(y, dist, [-1.0, 0.0, 1.0])

    error = metrics.threshold_calibration_error(censoring(rng, y), dist, [-1.0, 0.0, 1.0])

    assert_allclose(error, whole, atol=0.03)
    assert whole > 0.08


def test_censored_tests_keep_their_level(censoring, rng):
    """Calibrated models are rejected about as often as the level says."""
    p_values = []
    for seed in range(40):
        loc = rng.normal(size=100)
        outcomes = censoring(rng, rng.normal(loc))
        dist = Normal(loc, np.ones(100))
        test = metrics.threshold_calibration_test(
            outcomes, dist, QuantileGrid(3), n_simulations=49, random_state=seed
        )
        p_values.append(test.p_value)

    assert (np.array(p_values) <= 0.1).sum() <= stats.binom(40, 0.1).isf(1e-3)


# ------------------------------------------------------------------------------- reliability


def test_reliability_curve_matches_a_loop(normals, weights):
    """Means and frequencies per bin, and nan where a bin is empty."""
    y, dist = normals
    curve = metrics.reliability_curve(y, dist, [-6.0, 0.3], bins=4, sample_weight=weights)
    q = dist.cdf(0.3)
    for b in range(4):
        inside = (np.minimum((q * 4).astype(int), 3) == b) & (weights > 0)
        w = weights[inside]
        assert_allclose(curve.predicted[1, b], np.average(q[inside], weights=w))
        assert_allclose(curve.observed[1, b], np.average(y[inside] <= 0.3, weights=w))
        assert_allclose(curve.share[1, b], w.sum() / weights.sum())
    assert np.isnan(curve.observed[0, 3])
    assert np.isnan(curve.lower[0, 3])


def test_outcome_at_the_threshold_counts_as_below():
    """The event is y <= t, as the CDF says."""
    curve = metrics.reliability_curve([0.0, 1.0], Normal([0.0, 0.0], [1.0, 1.0]), [0.0], bins=1)

    assert_allclose(curve.observed, [[0.5]])


def test_random_state_makes_tests_repeatable(normals):
    """The same seed gives the same answer, whatever kind of seed it is."""
    y, dist = normals
    for make in (int, np.random.RandomState, np.random.default_rng):
        first, again = (
            metrics.threshold_calibration_test(
                y, dist, QuantileGrid(4), n_simulations=19, random_state=make(3)
            )
            for _ in range(2)
        )
        assert first.expected == again.expected


def followed(rng, until=3.0):
    """Return exponential times that were followed until some time."""
    time = rng.exponential(4.0, 600)
    return Outcomes.right_censored(np.minimum(time, until), time < until)


def exponential(scale):
    return ScipyDistribution(stats.expon(scale=np.full(600, scale)))


@pytest.mark.parametrize("scale", [2.0, 4.0, 20.0])
def test_nothing_is_judged_after_the_end_of_follow_up(scale, rng):
    """A threshold there changes no error, has none of its own, and is named."""
    seen, dist = followed(rng), exponential(scale)
    inside, both = (
        metrics.threshold_calibration_test(seen, dist, thresholds, random_state=0)
        for thresholds in ([1.0, 3.0], [1.0, 3.0, 5.0])
    )

    assert inside.error == both.error and inside.p_value == both.p_value
    for part in (both.errors, both.biases, both.p_values):
        assert_array_equal(np.isnan(part), [False, False, True])
    assert_allclose(both.p_values[:2], inside.p_values)
    curve = metrics.reliability_curve(seen, dist, [1.0, 5.0])
    assert_array_equal(np.isfinite(curve.observed).any(axis=1), [True, False])
    assert "nothing is known at 5" in curve.note
    with pytest.raises(ValueError, match=r"y <= t at t = 5: .* of 600 outcomes are"):
        metrics.threshold_calibration_error(seen, dist, [5.0])


def test_bins_of_which_nothing_is_known_are_left_out(rng):
    """Half of the rows were followed until 1: they say nothing of 2, whatever was predicted."""
    time, late = rng.exponential(4.0, 600), np.arange(600) < 300
    limit = np.where(late, 1.0, 3.0)
    seen = Outcomes.right_censored(np.minimum(time, limit), (time < limit) & ~late)
    scale = np.where(late, 30.0, 4.0)
    dist = ScipyDistribution(stats.expon(scale=scale))
    judged = Outcomes.unchecked(seen.lower[~late], seen.upper[~late])

    curve = metrics.reliability_curve(seen, dist, [2.0])
    alone = metrics.threshold_calibration_error(judged, dist[~late], [2.0])

    assert np.isfinite(curve.observed).sum() == 1
    assert metrics.threshold_calibration_error(seen, dist, [2.0]) == pytest.approx(alone)


def test_default_thresholds_are_where_something_is_known(rng):
    """The last of them is at the end of follow-up at most."""
    seen = followed(rng)
    errors = metrics.threshold_calibration_test(seen, exponential(20.0), random_state=0).errors

    assert np.isfinite(errors).all()
