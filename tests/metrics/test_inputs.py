"""What every metric takes and refuses: weights, targets, predictions."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from regcal import Normal, Samples, metrics


def repeated(y, dist, counts):
    """Return the rows as often as their whole-number weights say."""
    rows = np.repeat(np.arange(len(y)), counts.astype(int))
    return y[rows], dist[rows]


@pytest.mark.parametrize(
    "result",
    [
        lambda y, d, w: metrics.reliability_curve(y, d, [0.0, 1.0], sample_weight=w).observed,
        lambda y, d, w: metrics.brier_decomposition(y, d, [0.0, 1.0], w).miscalibration,
        lambda y, d, w: metrics.pit_histogram(y, d, sample_weight=w).density,
        lambda y, d, w: metrics.coverage_curve(y, d, sample_weight=w).observed,
        lambda y, d, w: metrics.interval_coverage(y, d, sample_weight=w),
        lambda y, d, w: metrics.compare(y, {"a": d}, w)["CRPS"].values,
    ],
)
def test_whole_number_weights_are_repetitions(result, normals, weights):
    """A weight of 2 counts as two rows, and one of 0 as none."""
    y, dist = normals

    assert_allclose(result(y, dist, weights), result(*repeated(y, dist, weights), None))


FROM_PREDICTIONS = [
    metrics.log_score,
    metrics.crps,
    metrics.threshold_weighted_crps,
    metrics.interval_score,
    metrics.pit,
    metrics.pit_histogram,
    metrics.pit_test,
    metrics.quantile_calibration_error,
    metrics.quantile_calibration_test,
    metrics.threshold_calibration_error,
    metrics.threshold_calibration_test,
    metrics.reliability_curve,
    metrics.isotonic_reliability_curve,
    metrics.brier_decomposition,
    metrics.interval_coverage,
    metrics.coverage_curve,
    lambda y, dist: metrics.compare(y, {"model": dist}),
]


@pytest.mark.parametrize("metric", FROM_PREDICTIONS)
def test_missing_targets_are_an_error(metric):
    """A missing outcome is named, not averaged over."""
    with pytest.raises(ValueError, match="not finite"):
        metric([0.0, np.nan], Normal([0.0, 0.0], [1.0, 1.0]))


@pytest.mark.parametrize("metric", FROM_PREDICTIONS)
def test_unequal_lengths_are_an_error(metric):
    """Targets and distributions have to belong together."""
    with pytest.raises(ValueError, match="3 targets for 2"):
        metric([0.0, 1.0, 2.0], Normal([0.0, 0.0], [1.0, 1.0]))


@pytest.mark.parametrize("metric", FROM_PREDICTIONS)
def test_one_row_is_enough(metric):
    """A single row gives an answer without a warning."""
    metric([0.3], Normal([0.0], [1.0]))


@pytest.mark.parametrize("metric", FROM_PREDICTIONS)
def test_constant_target_is_harmless(metric):
    """A target that never varies gives one threshold and no warning."""
    metric(np.full(30, 2.0), Normal(np.linspace(0, 3, 30), np.ones(30)))


@pytest.mark.parametrize("metric", FROM_PREDICTIONS)
def test_anything_that_is_a_distribution_is_taken(metric, rng):
    """Draws in a plain matrix are understood as predictions."""
    draws = rng.normal(size=(12, 20))
    first, second = metric(draws[:, 0], draws), metric(draws[:, 0], Samples(draws))

    assert type(first) is type(second)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda y, d: metrics.interval_score(y, d, 90), "Write 90 % as 0.9"),
        (lambda y, d: metrics.pinball_loss(y, d, [0.5, 1.0]), "between 0 and 1"),
        (lambda y, d: metrics.pit_histogram(y, d, bins=0), "at least 1"),
        (lambda y, d: metrics.coverage_curve(y, d, [0.9, 0.5]), "increasing"),
        (lambda y, d: metrics.threshold_weighted_crps(y, d, lower=1, upper=1), "Swap"),
        (lambda y, d: metrics.mean_score(metrics.brier_score(y, d, [0.0])), "one column"),
        (lambda y, d: metrics.compare(y, {}), "dists is empty"),
    ],
)
def test_errors_say_the_way_out(call, message):
    """Wrong arguments are named with the rule."""
    with pytest.raises(ValueError, match=message):
        call([0.0, 1.0], Normal([0.0, 0.0], [1.0, 1.0]))
