"""Events that are counted: against intervals of the distributions, and draws of PIT values."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import ndtr

from regcal import Clipped, Normal, Outcomes, Rounded
from regcal.audit.statements import checked_coverage, make_labels
from regcal.metrics.calibration import pit_intervals


def labels_of(outcomes, dist, thresholds=(0.0,), coverage=(0.5, 0.9)):
    n = len(dist)
    return make_labels(outcomes, dist, np.array(thresholds), np.array(coverage), np.ones(n))


def test_numbers_are_in_intervals_or_beyond_them(rng):
    """Exactly as `interval` and comparisons say."""
    y, dist = rng.normal(size=200), Normal(rng.normal(size=200), rng.uniform(0.3, 2.0, 200))
    labels = labels_of(Outcomes.exact(y), dist, (-1.0, 0.5))

    assert labels.kinds == ("threshold",) * 2 + ("coverage", "below", "above") * 2
    assert_allclose(labels.places, [-1.0, 0.5, 0.5, 0.25, 0.25, 0.9, 0.05, 0.05])
    assert_array_equal(labels.happened[:, :2], y[:, np.newaxis] <= np.array([-1.0, 0.5]))
    for column, level in ((2, 0.5), (5, 0.9)):
        low, high = dist.interval(level)
        expected = np.column_stack([(low <= y) & (y <= high), y < low, y > high])
        assert_array_equal(labels.happened[:, column : column + 3], expected)
        tails = [0.5 * (1.0 - level)] * 2
        assert_allclose(labels.predicted[0, column : column + 3], [level, *tails])
    assert not labels.unknown().any()


@pytest.mark.parametrize("kind", ["censored", "clipped", "rounded"])
def test_what_is_not_known_is_the_mean_of_draws(kind, rng):
    """Labels of intervals are frequencies of drawn PIT values, and unknown is their variance."""
    loc = rng.normal(size=60)
    y, dist = rng.normal(loc), Normal(loc, 1.0)
    outcomes = {
        "censored": Outcomes.right_censored(y, rng.random(60) < 0.5),
        "clipped": Outcomes.exact(np.maximum(y, 0.0)),
        "rounded": Outcomes.exact(np.round(y)),
    }[kind]
    if kind != "censored":
        dist = Clipped(dist, low=0.0) if kind == "clipped" else Rounded(dist)
    labels, seen = labels_of(outcomes, dist, coverage=(0.9,)), pit_intervals(outcomes, dist)
    drawn = seen.below + rng.random((20_000, 1)) * (seen.upto - seen.below)
    events = [(drawn >= 0.05) & (drawn <= 0.95), drawn < 0.05, drawn > 0.95]

    assert labels.unknown().any()
    for k, event in enumerate(events, start=1):
        assert_allclose(labels.happened[:, k], event.mean(axis=0), atol=0.02)
        assert_allclose(labels.unknown()[:, k], event.var(axis=0), atol=0.02)


def test_censored_thresholds_are_expected():
    """By hand: above c, y <= t has probability (F(t) - F(c)) / (1 - F(c))."""
    seen = Outcomes.right_censored([0.3, 0.3], [True, False])
    labels = labels_of(seen, Normal([0.0, 0.0], 1.0), (1.0,), ())

    assert labels.kinds == ("threshold",)
    assert_allclose(labels.happened[:, 0], [1.0, (ndtr(1.0) - ndtr(0.3)) / (1.0 - ndtr(0.3))])


def test_coverage_is_numbers_in_order():
    """One number, some, or none."""
    assert_array_equal(checked_coverage(0.9), [0.9])
    assert_array_equal(checked_coverage((0.9, 0.5, 0.9)), [0.5, 0.9])
    assert checked_coverage(()).shape == (0,)
