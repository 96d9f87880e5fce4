"""What every metric takes and refuses: weights, targets, predictions."""

import inspect
from functools import partial

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

from regcal import Clipped, Normal, Outcomes, Rounded, Samples, metrics


def repeated(y, dist, counts):
    """Return the rows as often as their whole-number weights say."""
    rows = np.repeat(np.arange(len(y)), counts.astype(int))
    return y[rows], dist[rows]


COUNTED = [
    lambda y, d, w: metrics.reliability_curve(y, d, [0.0, 1.0], sample_weight=w).observed,
    lambda y, d, w: metrics.pit_histogram(y, d, sample_weight=w).density,
    lambda y, d, w: metrics.coverage_curve(y, d, sample_weight=w).observed,
    lambda y, d, w: metrics.interval_coverage(y, d, sample_weight=w),
    lambda y, d, w: metrics.compare(y, {"a": d}, w)["CRPS"].values,
    lambda y, d, w: metrics.compare(y, {"a": d}, w)["log score"].values,
]


@pytest.mark.parametrize(
    "result",
    [*COUNTED, lambda y, d, w: metrics.brier_decomposition(y, d, [0.0, 1.0], w).miscalibration],
)
def test_whole_number_weights_are_repetitions(result, normals, weights):
    """A weight of 2 counts as two rows, and one of 0 as none."""
    y, dist = normals

    assert_allclose(result(y, dist, weights), result(*repeated(y, dist, weights), None))


@pytest.mark.parametrize("result", COUNTED)
def test_whole_number_weights_are_repetitions_of_censored_rows(result, censored, weights):
    """Kaplan-Meier, Turnbull and what is spread over intervals count a weight of 2 as two rows."""
    outcomes, dist, weights = censored[0][:150], censored[1][:150], weights[:150]
    twice = result(*repeated(outcomes, dist, weights), None)

    assert_allclose(result(outcomes, dist, weights), twice, atol=1e-5)


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
    lambda y, dist: [
        one.p_value for one in metrics.joint_calibration_test(y, dist, n_simulations=9).statements
    ],
]


# Scores that need to know of all rows what happened; their errors name the way out.
OF_NUMBERS = [
    metrics.interval_score,
    metrics.isotonic_reliability_curve,
    metrics.brier_decomposition,
    lambda y, dist: metrics.brier_score(y, dist, [0.0]),
    lambda y, dist: metrics.pinball_loss(y, dist, [0.1, 0.5]),
]
OF_INTERVALS = [metric for metric in FROM_PREDICTIONS if metric not in OF_NUMBERS]


def numbers_in(result):
    """Return all numbers of a result, one after the other."""
    if isinstance(result, metrics.Comparison):
        return np.concatenate([metric.values for metric in result.metrics])
    if hasattr(result, "__dataclass_fields__"):
        parts = [part for part in vars(result).values() if not isinstance(part, str)]
        return np.concatenate([np.ravel(part) for part in parts])
    return np.ravel(result)


def seeded(metric):
    """Return a metric with the same few draws in every call."""
    known = inspect.signature(metric).parameters
    options = {"random_state": 0, "n_simulations": 9}
    return partial(metric, **{name: options[name] for name in options if name in known})


@pytest.mark.parametrize("metric", [*FROM_PREDICTIONS, *OF_NUMBERS[3:]])
def test_exact_outcomes_are_numbers(metric, normals):
    """Outcomes seen exactly, scikit-survival's events and two equal ends score as numbers do."""
    y, dist = normals
    y, dist = y - y.min(), Normal(dist.loc - y.min(), dist.scale)  # times begin at 0
    events = np.array([(True, value) for value in y], dtype=[("event", bool), ("time", float)])
    wanted = numbers_in(seeded(metric)(y, dist))

    for outcomes in (Outcomes.exact(y), events, np.column_stack([y, y]), pd.DataFrame([y, y]).T):
        assert_allclose(numbers_in(seeded(metric)(outcomes, dist)), wanted)


@pytest.mark.parametrize("metric", OF_INTERVALS)
def test_row_order_does_not_matter_to_censored_rows(metric, censored, rng):
    """What is averaged stays, and what is per row moves with the rows."""
    outcomes, dist = censored[0][:150], censored[1][:150]
    order = rng.permutation(len(outcomes))
    first, second = (
        numbers_in(seeded(metric)(y, d))
        for y, d in ((outcomes, dist), (outcomes[order], dist[order]))
    )
    if len(first) == len(outcomes):
        first = first[order]
    if "calibration_test" in getattr(metric, "__name__", ""):
        first, second = first[:2], second[:2]  # the rest is simulated, row by row

    assert_allclose(second, first, atol=1e-5)


@pytest.mark.parametrize("make", [lambda d: Clipped(d, -0.5, 1.5), lambda d: Rounded(d, 0.5)])
@pytest.mark.parametrize("metric", [*FROM_PREDICTIONS, *OF_NUMBERS[3:]])
def test_point_masses_are_taken(metric, make, normals):
    """Clipped and rounded predictions of clipped and rounded outcomes get finite answers."""
    y, base = normals
    dist = make(base)
    seen = np.clip(y, -0.5, 1.5) if isinstance(dist, Clipped) else 0.5 * np.round(2 * y)
    numbers = numbers_in(seeded(metric)(seen, dist))

    assert np.isfinite(numbers[~np.isnan(numbers)]).all()


@pytest.mark.parametrize("metric", OF_NUMBERS)
def test_scores_of_numbers_refuse_intervals(metric, censored):
    """The error counts the rows and names what to use."""
    with pytest.raises(ValueError, match=r"of 400 outcomes are .*-censored.*log_score"):
        metric(*censored)


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
