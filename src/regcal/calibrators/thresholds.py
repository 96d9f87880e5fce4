"""Thresholds that are placed where outcomes are, and beyond."""

import numpy as np

from regcal._validation import Array
from regcal.calibrators.support import Support
from regcal.calibrators.targets import Targets

# Dense thresholds between outcomes reach beyond them by this share of their range.
_MARGIN = 0.05

# Those at quantiles keep this share of an equal step as their distance from the one before.
_CLOSEST = 1e-3

# Points at which CDFs are compared with outcomes, and how far beyond the outcomes others lie, in
# ranges of the outcomes.
_N_POINTS, _BEYOND = 64, 0.25 * 2.0 ** np.arange(9)


def dense_thresholds(targets: Targets, count: int) -> Array:
    """Return thresholds of which half are equally spaced on the axis, and half between outcomes.

    The others are where the outcomes are: halfway from a quantile to the next distinct value.
    """
    if count < 4:
        msg = f"Need at least 4 thresholds, got {count}."
        raise ValueError(msg)
    if targets.low == targets.high:
        targets.thresholds(2)  # refuses them
    low, high = targets.axis(np.array(targets.near))
    extra = _MARGIN * (high - low)
    places, step = np.linspace(low - extra, high + extra, count // 2, retstep=True)
    levels = (np.arange(count // 2) + 0.5) / (count // 2)
    shares = np.cumsum(targets.weights)
    gaps = targets.before_gaps()
    at = np.searchsorted(gaps, np.searchsorted(shares, levels * shares[-1]))
    at = gaps[np.unique(np.minimum(at, len(gaps) - 1))]
    between = targets.axis(0.5 * (targets.values[at] + targets.values[at + 1]))
    inside = (between >= places[0]) & (between <= places[-1])  # not on the way to a far end
    places = np.sort(np.concatenate([places, between[inside]]))
    places = places[np.diff(places, prepend=-np.inf) > _CLOSEST * step]
    ends = targets.support.ends
    thresholds = np.clip(targets.axis.inverse(places), *ends)
    return targets.support.within(targets.past_outcomes(thresholds))


def points_over(targets: Targets, support: Support) -> Array:
    """Return points over the range of outcomes and, ever fewer, beyond it, within a support.

    Those of rounded outcomes lie between two values, where it is known of all on which side they
    are: elsewhere, probability just between two values would be on the right side of both.
    """
    width = targets.high - targets.low or 1.0
    inside = np.array([targets.low])
    if targets.low < targets.high:
        inside = dense_thresholds(targets, _N_POINTS)
    beyond = width * _BEYOND
    points = np.concatenate([inside[0] - beyond[::-1], inside, inside[-1] + beyond])
    return np.unique(support.within(points))


def lengths_around(points: Array) -> Array:
    """Return the lengths that points stand for; 1 for a single one."""
    return np.gradient(points) if len(points) > 1 else np.ones(len(points))
