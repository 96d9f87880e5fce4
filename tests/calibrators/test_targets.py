"""Range and distribution of outcomes."""

from functools import reduce

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import regcal
from regcal import Outcomes
from regcal.calibrators import Support, Targets
from regcal.grids import make_thresholds


def test_targets_do_not_depend_on_order(rng):
    """Any order and grouping of 30 000 outcomes gives the same cells and ends."""
    y = rng.standard_t(3, size=30_000) + 1000.0
    whole = Targets.of(y)
    parts = [Targets.of(part) for part in np.array_split(np.sort(y), 7)]
    merged = parts[3]
    for k in (6, 0, 1, 5, 2, 4):
        merged = merged.merge(parts[k])

    assert (merged.low, merged.high, merged.step) == (y.min(), y.max(), whole.step)
    assert len(merged.values) <= 2**14
    assert_allclose(merged.values, whole.values, rtol=1e-12)
    assert_allclose(merged.weights, whole.weights)
    assert_allclose(merged.thresholds(16), whole.thresholds(16))
    assert_allclose(merged.thresholds(16)[[0, -1]], make_thresholds(16, y)[[0, -1]])
    near = np.abs(merged.thresholds(regcal.QuantileGrid(9)) - np.quantile(y, np.arange(1, 10) / 10))
    assert near.max() < 2 * merged.step
    assert_allclose(merged.share_below(np.median(y)), 0.5, atol=0.01)


@pytest.mark.parametrize("n_rows", [100, 40_000])
def test_ends_are_none_where_intervals_lie_beyond(n_rows, rng):
    """However many values there are, and in which order they come."""
    y = np.clip(rng.normal(size=n_rows), -1.0, 1.0)
    piled = Targets.of(y)
    below, across = (Targets.of(Outcomes([-9.0], [end])) for end in (-2.0, 3.0))
    above = Targets.of(Outcomes([2.0], [np.inf]))

    def found(*parts):
        support = reduce(Targets.merge, parts).seen_through("auto", None).support
        return support.low, support.high

    assert found(piled) == found(piled, across) == found(across, piled) == (-1.0, 1.0)
    assert found(piled, below) == found(below, piled, across) == (-np.inf, 1.0)
    assert found(above, piled) == (-1.0, np.inf)


def test_rows_of_weight_0_are_no_targets():
    """Only outcomes that count are kept."""
    assert Targets.of([1.5, 0.5], [1.0, 0.0]).values.tolist() == [1.5]


def test_last_digits_are_no_gaps(rng):
    """Values that differ in the last digit only do not hide the rounding step."""
    y = np.round(rng.normal(size=500), 1)
    noisy = y * (1 + rng.integers(-1, 2, 500) * 2.0**-52)

    for values in (y, noisy):
        assert_allclose(Targets.of(values).seen_through(None, "auto").support.step, 0.1)


@pytest.mark.parametrize("offset", [0.0, -3.0, 1e7])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("censored", [False, True])
def test_many_outcomes_are_counted_as_if_they_were_sorted(censored, weighted, offset, rng):
    """Cells, and the outermost values with their ties, are those of sorted distinct outcomes."""
    y = offset + np.concatenate([rng.normal(size=30_000), [-9.0] * 40, [-8.5] * 3, [9.5] * 70])
    rng.shuffle(y)
    weights = rng.integers(1, 4, len(y)).astype(float) if weighted else np.ones(len(y))
    exact = rng.random(len(y)) < 0.7 if censored else np.ones(len(y), dtype=bool)
    targets = Targets.of(Outcomes.right_censored(y, exact), weights)

    distinct, place = np.unique(y[exact], return_inverse=True)
    totals = np.bincount(place, weights[exact])
    assert_array_equal(targets.lowest, [distinct[:4], totals[:4]])
    assert_array_equal(targets.highest, [distinct[:-5:-1], totals[:-5:-1]])
    edges = np.arange(np.floor(y.min() / targets.step), np.ceil(y.max() / targets.step) + 1)
    edges *= targets.step
    cells = np.searchsorted(edges, y, side="right")
    counts, sums = np.bincount(cells, weights), np.bincount(cells, weights * y)
    assert 0 < targets.step <= 2 * np.ptp(y) / 2**14
    assert_array_equal(targets.weights, counts[counts > 0])
    assert_allclose(targets.values, sums[counts > 0] / counts[counts > 0], rtol=1e-12)
    assert_array_equal(targets.exact.sum(), weights[exact].sum())


@pytest.mark.parametrize("digits", [-4, 0, 4])
def test_outcomes_on_a_threshold_are_at_most_it(digits):
    """Whatever the last digits of both."""
    y = np.arange(9.0)
    thresholds = Targets.of(y).thresholds(17)
    below = y * (1.0 + digits * 2.0**-52) <= thresholds[:, np.newaxis]

    assert_allclose(thresholds, np.arange(-4.0, 13.0), atol=1e-7)
    assert_array_equal(below.sum(axis=1), [0] * 4 + [1, 2, 3, 4, 5, 6, 7, 8, 9] + [9] * 4)


def test_thresholds_between_rounded_values_do_not_follow_last_digits():
    """A threshold on a value is between it and the next, from either side."""
    support = Support(step=0.1, smooth=True)
    places = 0.1 * np.arange(-9.0, 10.0)
    found = [support.within(places * (1.0 + digits * 2.0**-52)) for digits in (-2, 0, 2)]

    for one in found:
        assert_allclose(one, places + 0.05)
