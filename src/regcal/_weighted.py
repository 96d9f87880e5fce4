"""Medians and quantiles of weighted numbers: a weight is that many repetitions of a number."""

import numpy as np

from regcal._validation import Array

# The median of |Z| for a standard normal Z: a median absolute deviation over it is a spread.
MEDIAN_SIZE = 0.6744897501960817


def all_equal(weights: Array) -> bool:
    """Return whether all weights are the same number."""
    return len(weights) > 0 and bool((weights == weights[0]).all())


def weighted_median(values: Array, weights: Array) -> float:
    """Return the middle of the values, which may be in any order."""
    half = 0.5 - 1e-12  # a share of one half is one, whatever its last digit
    if all_equal(weights):
        middle = int(np.ceil(half * len(values))) - 1
        return float(np.partition(values, middle)[middle])
    return float(weighted_quantiles(values, weights, np.array([half]))[0])


def weighted_quantiles(values: Array, weights: Array, levels: Array) -> Array:
    """Return the smallest values whose share of weight, up to them, reaches each level."""
    if all_equal(weights):  # a sort is several times faster than one that tells the order
        ordered, cumulative = np.sort(values), np.cumsum(weights)
    else:
        order = np.argsort(values, kind="stable")
        ordered, cumulative = values[order], np.cumsum(weights[order])
    places = np.searchsorted(cumulative, levels * cumulative[-1], side="left")
    return ordered[np.minimum(places, len(values) - 1)]
