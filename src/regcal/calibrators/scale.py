"""One factor on the spread."""

import math
from dataclasses import replace
from typing import Any

import numpy as np

from regcal._validation import Array
from regcal._weighted import MEDIAN_SIZE, weighted_median
from regcal.calibrators.cells import Points
from regcal.calibrators.observed import Observed
from regcal.calibrators.probit import ProbitCalibrator
from regcal.gp import interval_derivatives
from regcal.maps import ScaleMap

_MAX_STEPS = 50
_TOLERANCE = 1e-10

# Outcomes further out count as if they were so many standard deviations out: one in 25 may be a
# gross error.
FARTHEST = 5.0

# Of few rows they count for less, so that one gross error at most doubles the factor. In 2 000
# samples of 6, 12, 24 and 48 normal and Student outcomes this costs at most 0.001 nats a new row
# with four degrees of freedom or more, and gains 0.005 with 12 (two thirds of this share lose 0.03
# with 6).
_LARGEST_SHARE = 0.75


class ScaleCalibrator(ProbitCalibrator):
    """Multiply the spread of all rows by one factor, chosen by maximum likelihood.

    The factor acts on the probit scale, ``Phi(probit / factor)``, so that it is a factor on the
    standard deviation of normal distributions and works for any other as well. It cannot repair
    a bias or a wrong shape.

    Parameters
    ----------
    prior_rows : float, default=1.0
        How many calibrated rows the data are joined by; they pull the factor towards 1 when
        there is little data.
    support, step : as in every calibrator

    Attributes
    ----------
    factor_ : float
    map_ : ScaleMap
        From the probit of q to that of the calibrated probability.

    Examples
    --------
    >>> import numpy as np
    >>> from regcal import Normal, ScaleCalibrator
    >>> rng = np.random.default_rng(0)
    >>> dist = Normal(np.zeros(1000), np.ones(1000))
    >>> cal = ScaleCalibrator().fit(dist, rng.normal(scale=3.0, size=1000))
    >>> round(cal.factor_, 1)
    2.9
    """

    map_: ScaleMap

    def __init__(self, *, prior_rows: float = 1.0, support: Any = "auto", step: Any = None) -> None:
        self.prior_rows = prior_rows
        self.support = support
        self.step = step

    def _solve(self, observed: Observed) -> None:
        outcomes, intervals = observed.points
        self.map_ = solve_scale(outcomes, intervals, self.prior_rows)

    @property
    def factor_(self) -> float:
        """The factor on the spread."""
        return self.map_.factor


def solve_scale(outcomes: Points, intervals: Points, prior_rows: float = 1.0) -> ScaleMap:
    """Return the most likely scale of points in `OutcomeCoordinates` and `IntervalCoordinates`.

    Outcomes further out than five of its standard deviations count as if they were there, so that
    one gross error does not spoil all predictions. So do prior rows, so that they do not outweigh
    many rows of a base that is many times too wide.
    """
    weight = prior_rows + outcomes.weights.sum()
    furthest = min(FARTHEST**2, _LARGEST_SHARE * (weight + intervals.weights.sum()))
    squares, prior_squares = outcomes.values[1], prior_rows
    largest = squares.max(initial=0.0)
    # the mean of limited squares is concave in the limit: it meets it once, whatever the start
    slope = float(np.sqrt(weight / (prior_rows + outcomes.weights @ squares)))
    if len(intervals) or max(largest, 1.0) * slope**2 > furthest:
        # from the middle outwards, so that few far outcomes never get a hold on it
        spread = _central_spread(outcomes, intervals)
        slope = 1.0 / max(spread, 1.0 / FARTHEST)
        prior_squares *= prior_square(spread)
    for _ in range(_MAX_STEPS):
        limit = furthest / slope**2
        limited = np.minimum(squares, limit) if largest > limit else squares
        # the zero of d/ds of sum w (-log s - z^2 / (2 s^2)), with prior rows that have z^2 = 1
        total = prior_squares + outcomes.weights @ limited
        before, slope = slope, float(np.sqrt(weight / total))
        held = intervals
        if len(intervals):
            held = _held_within(intervals, math.sqrt(limit))
            slope = _slope_with_intervals(weight, total, held, slope)
        if (limited is squares and held is intervals) or np.isclose(before, slope):
            break
    return ScaleMap(1.0 / slope)


def _held_within(intervals: Points, end: float) -> Points:
    """Return intervals of which none is further out, as wide as they are."""
    low, high = intervals.values[0], intervals.values[2]
    moved = np.maximum(-end - high, 0.0) - np.maximum(low - end, 0.0)
    if not moved.any():
        return intervals
    values = intervals.values.copy()
    values[0], values[2] = low + moved, high + moved
    return replace(intervals, values=values)


def _central_spread(outcomes: Points, intervals: Points) -> float:
    """Return the root of the median square over that of a standard normal variable."""
    middles, middle_weights = bounded_middles(
        intervals.values[0], intervals.values[2], intervals.weights
    )
    squares = np.concatenate([outcomes.values[1], middles**2])
    if len(squares) == 0:
        return 1.0
    weights = np.concatenate([outcomes.weights, middle_weights])
    return math.sqrt(weighted_median(squares, weights)) / MEDIAN_SIZE


def bounded_middles(low: Array, high: Array, weights: Array) -> tuple[Array, Array]:
    """Return the middles of those intervals that have two ends, and their weights."""
    bounded = np.isfinite(low) & np.isfinite(high)
    return 0.5 * (low[bounded] + high[bounded]), weights[bounded]


def prior_square(spread: float) -> float:
    """Return the square that a prior row counts with, which is 1 unless all others are much less.

    All outcomes at the middle say that the scale is small, not that it is 0.
    """
    return min(1.0, (FARTHEST * spread) ** 2) if spread > 0.0 else 1.0


def _slope_with_intervals(weight: float, squares: float, intervals: Points, slope: float) -> float:
    """Return the slope k of z -> k z that is most likely given intervals as well.

    Newton's method: w log k - k^2 z^2 / 2 + log P is concave in k.
    """
    low, high, w = intervals.values[0], intervals.values[2], intervals.weights
    a, b = (np.where(np.isfinite(end), end, 0.0) for end in (low, high))
    for _ in range(_MAX_STEPS):
        at = interval_derivatives(slope * low, slope * high)
        aa, ab, bb = at.second
        gradient = weight / slope - slope * squares + w @ (at.first[0] * a + at.first[1] * b)
        curvature = weight / slope**2 + squares - w @ (aa * a * a + 2.0 * ab * a * b + bb * b * b)
        step = gradient / curvature
        slope = max(slope + step, 0.5 * slope)
        if abs(step) < _TOLERANCE * slope:
            break
    return slope
