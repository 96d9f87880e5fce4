"""Medians and quantiles of weighted numbers."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from regcal._weighted import (
    all_equal,
    places_of_quantiles,
    weighted_median,
    weighted_quantiles,
)

LEVELS = np.array([0.05, 0.3, 0.5 - 1e-12, 0.81])


@pytest.mark.parametrize("n_values", [1, 2, 7, 20])
def test_weights_are_repetitions(n_values, rng):
    """Weighted numbers have the quantiles that NumPy finds of each number so many times."""
    values, counts = rng.normal(size=n_values), rng.integers(1, 5, size=n_values)
    repeated = np.repeat(values, counts)

    found = weighted_quantiles(values, counts.astype(float), LEVELS)

    assert_array_equal(found, np.quantile(repeated, LEVELS, method="inverted_cdf"))
    assert weighted_median(values, counts.astype(float)) == found[2]
    assert weighted_median(repeated, np.full(len(repeated), 0.1)) == found[2]


def test_weights_of_nothing_are_not_equal():
    """Equal means that there is one number which all of them are."""
    assert all_equal(np.array([0.3, 0.3]))
    assert not all_equal(np.array([0.3, 0.4]))
    assert not all_equal(np.empty(0))


@pytest.mark.parametrize("unit", [1e-300, 1.0, 1e300])
@pytest.mark.parametrize("offset", [0.0, 1e6])
@pytest.mark.parametrize("shape", ["normal", "far out", "ties", "equal"])
def test_places_are_those_of_quantiles(shape, offset, unit, rng):
    """Some numbers are found where a sort of all of them finds the quantiles."""
    values = rng.normal(size=5000)
    values = {
        "normal": values,
        "far out": np.append(values, 1e3),
        "ties": np.round(values),
        "equal": np.zeros(500),
    }[shape]
    values, counts = unit * (values + offset), rng.integers(1, 5, size=len(values)).astype(float)
    levels = (np.arange(100) + 0.5) / 100

    places = places_of_quantiles(values, counts, levels)

    assert_array_equal(values[places], weighted_quantiles(values, counts, levels))
    assert len(np.unique(places)) > 0.6 * 100  # rows that are tied take turns
