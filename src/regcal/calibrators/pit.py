"""Recalibration of the probability integral transform (Kuleshov, Fenner and Ermon, 2018)."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import log_ndtr, ndtri, ndtri_exp

from regcal._validation import Array
from regcal._weighted import all_equal
from regcal.calibrators.cells import (
    NO_INTERVALS,
    Points,
)
from regcal.calibrators.held_out import without_last_digits
from regcal.calibrators.observed import Observed
from regcal.calibrators.probit import ProbitCalibrator
from regcal.calibrators.scale import solve_scale
from regcal.gp import DenseDesign, IntervalTerm
from regcal.maps import PiecewiseMap

# Knots of the smooth map: their number grows with the cube root of the rows, within limits.
_MIN_KNOTS, _MAX_KNOTS = 4, 16
_OUTER_LEVEL = 0.02
_SMALLEST_GAP = 0.05

# Outcomes further out, in units of their central spread, count as if they were there: a gross error
# says no more than that something may be far out.
_FARTHEST = 20.0

# More outcomes than this are merged: their neighbours are next to equal.
_MAX_POINTS = 10_000

_MAX_STEPS = 100
_TOLERANCE = 1e-16


@dataclass(frozen=True)
class _Standard:
    """Sorted outcomes in probit units, shifted and scaled to be about standard normal."""

    values: Array
    weights: Array
    intervals: tuple[Array, Array]
    interval_weights: Array
    shift: float
    factor: float
    # quantiles of all, exact or not, at probits of their ranks
    quantiles: Array
    probits: Array


class PITCalibrator(ProbitCalibrator):
    """Replace the CDF q by an increasing function of q, the same for all rows and thresholds.

    The smooth map is a curve on the probit scale whose slope is linear between a few knots. It
    maximises the likelihood of the outcomes together with that of pseudo-rows which pull it
    towards a straight line, and the line towards the identity. Beyond the outer knots it is
    straight.

    Parameters
    ----------
    smooth : bool, default=True
        Whether to fit the smooth map, or to interpolate the empirical distribution of the
        outcomes' q as in the original proposal. The latter has a rough density.
    prior_rows : float, default=2.0
        Pseudo-rows that pull each knot's slope towards that of the straight line.
    support, step : as in every calibrator

    Attributes
    ----------
    map_ : PiecewiseMap
        From the probit of q to that of the calibrated probability.

    Examples
    --------
    >>> import numpy as np
    >>> from regcal import Normal, PITCalibrator
    >>> rng = np.random.default_rng(0)
    >>> dist = Normal(np.zeros(1000), np.ones(1000))
    >>> cal = PITCalibrator().fit(dist, rng.exponential(size=1000))
    >>> cal.transform(dist[:1]).cdf([[0.0, 0.7]]).round(1)
    array([[0. , 0.5]])
    """

    map_: PiecewiseMap

    def __init__(
        self,
        *,
        smooth: bool = True,
        prior_rows: float = 2.0,
        support: Any = "auto",
        step: Any = None,
    ) -> None:
        self.smooth = smooth
        self.prior_rows = prior_rows
        self.support = support
        self.step = step

    def _solve(self, observed: Observed) -> None:
        outcomes, intervals = observed.points
        if self.smooth:
            self.map_ = solve_pit(outcomes, intervals, self.prior_rows)
        else:
            self.map_ = solve_empirical_pit(outcomes, intervals)


def solve_pit(outcomes: Points, intervals: Points, prior_rows: float = 2.0) -> PiecewiseMap:
    """Return the smooth map of points in `OutcomeCoordinates` and `IntervalCoordinates`."""
    data = _standardise(outcomes, intervals, prior_rows)
    knots = _place_knots(data)
    start, slopes = _fit_slopes(data, knots, prior_rows)
    return PiecewiseMap.with_slopes(data.shift + data.factor * knots, slopes / data.factor, start)


def solve_empirical_pit(outcomes: Points, intervals: Points) -> PiecewiseMap:
    """Return the map to the outcomes' own mid-ranks, linear between distinct outcomes."""
    z, weights = _merge_ties(*_with_middles(outcomes, intervals))
    return PiecewiseMap.through(z, ndtri(_mid_ranks(weights)))


def _with_middles(outcomes: Points, intervals: Points) -> tuple[Array, Array]:
    """Return outcomes, and for intervals their medians after the scale that suits all best."""
    if len(intervals) == 0:
        return outcomes.values[0], outcomes.weights
    factor = solve_scale(outcomes, intervals).factor
    low, high = intervals.values[0] / factor, intervals.values[2] / factor
    # the median in the lower tail, where probabilities have all their digits
    mirrored = low > -high
    ends = np.where(mirrored, -high, low), np.where(mirrored, -low, high)
    middle = ndtri_exp(np.logaddexp(*map(log_ndtr, ends)) - np.log(2.0))
    middles = factor * np.where(mirrored, -middle, middle)
    return (
        np.concatenate([outcomes.values[0], middles]),
        np.concatenate([outcomes.weights, intervals.weights]),
    )


def _merge_ties(z: Array, weights: Array) -> tuple[Array, Array]:
    """Return distinct outcomes in increasing order with their total weights."""
    if all_equal(weights):
        z = np.sort(z)
    else:
        order = np.argsort(z)
        z, weights = z[order], weights[order]
    first = np.flatnonzero(np.diff(without_last_digits(z), prepend=np.nan) != 0)
    return z[first], np.add.reduceat(weights, first)


def _in_cells(z: Array, weights: Array) -> tuple[Array, Array]:
    """Merge many sorted outcomes into cells of equal weight, at their means."""
    if len(z) <= _MAX_POINTS:
        return z, weights
    cells = np.floor(_mid_ranks(weights) * _MAX_POINTS).astype(np.intp)
    total = np.bincount(cells, weights).astype(float)
    used = total > 0
    return (np.bincount(cells, weights * z)[used] / total[used]), total[used]


def _mid_ranks(weights: Array) -> Array:
    """Return the share of weight below each of several sorted outcomes, and half of its own."""
    return (np.cumsum(weights) - 0.5 * weights) / weights.sum()


def without_gross_errors(
    outcomes: Points, prior_rows: float = 2.0, farthest: float = _FARTHEST
) -> Points:
    """Return outcomes of which none is further out than so many central spreads."""
    if len(outcomes) == 0:
        return outcomes
    data = _standardise(outcomes, NO_INTERVALS, prior_rows)
    room = farthest * data.factor
    z, squares = outcomes.values
    inside = np.clip(z, data.shift - room, data.shift + room)
    return replace(outcomes, values=np.stack([inside, np.where(inside == z, squares, inside**2)]))


def _standardise(outcomes: Points, intervals: Points, prior_rows: float) -> _Standard:
    """Shift and scale by the middle and the central spread, pulled towards 0 and 1.

    Quantiles are used because a few outcomes may be many standard deviations out.
    """
    z, weights = _in_cells(*_merge_ties(*_with_middles(outcomes, intervals)))
    probits = ndtri(_mid_ranks(weights))
    low, middle, high = np.interp([-1.0, 0.0, 1.0], probits, z)
    share = weights.sum() / (weights.sum() + prior_rows)
    factor = np.sqrt(share * (0.5 * (high - low)) ** 2 + 1 - share)
    shift = share * middle
    quantiles = np.clip((z - shift) / factor, -_FARTHEST, _FARTHEST)
    values = quantiles
    if len(intervals):
        z, weights = _in_cells(*_merge_ties(outcomes.values[0], outcomes.weights))
        values = np.clip((z - shift) / factor, -_FARTHEST, _FARTHEST)
    ends = tuple((intervals.values[row] - shift) / factor for row in (0, 2))
    return _Standard(
        values, weights, (ends[0], ends[1]), intervals.weights, shift, factor, quantiles, probits
    )


def _place_knots(data: _Standard) -> Array:
    """Return knots at quantiles that are equally spaced in probit units, moved apart if tied."""
    total = data.weights.sum() + data.interval_weights.sum()
    count = int(np.clip(np.cbrt(total) + 2, _MIN_KNOTS, _MAX_KNOTS))
    outer = ndtri(_OUTER_LEVEL)
    knots = np.interp(np.linspace(outer, -outer, count), data.probits, data.quantiles)
    ramp = _SMALLEST_GAP * np.arange(count)
    apart = np.maximum.accumulate(knots - ramp) + ramp
    return apart - (apart - knots).mean()


def _hat_functions(knots: Array, values: Array) -> tuple[Array, Array]:
    """Return the hat functions of the knots at `values`, and their integrals from the first knot.

    The outer hats are constant beyond their knots.
    """
    widths = np.diff(knots)
    interval = np.searchsorted(knots[1:-1], values, side="right")
    held = np.clip(values, knots[0], knots[-1])
    inside, rows = held - knots[interval], np.arange(len(values))
    share = inside / widths[interval]
    hats = np.zeros((len(values), len(knots)))
    hats[rows, interval], hats[rows, interval + 1] = 1.0 - share, share
    # the hats of intervals that lie behind, whole; then those of the own one
    halves = np.zeros((len(knots), len(knots)))
    for k, width in enumerate(widths):
        halves[k + 1 :, k : k + 2] += 0.5 * width
    integrals = halves[interval]
    integrals[rows, interval] += inside * (1.0 - 0.5 * share)
    integrals[rows, interval + 1] += 0.5 * inside * share
    return hats, integrals + hats * (values - held)[:, np.newaxis]


def _fit_slopes(data: _Standard, knots: Array, prior_rows: float) -> tuple[float, Array]:
    """Return the height at the first knot and the slopes at all, by Newton's method.

    Minimises the convex sum of w (m(z)^2 / 2 - log m'(z)) over outcomes,
    -w log(Phi(m(b)) - Phi(m(a))) over intervals, and prior_rows * (c - log c) for each slope c,
    which is smallest at the straight line.
    """
    hats, integrals = _hat_functions(knots, data.values)
    heights = np.column_stack([np.ones(len(data.values)), integrals])
    slopes = np.column_stack([np.zeros(len(data.values)), hats])
    w = data.weights
    squares = (heights.T * w) @ heights
    between = _interval_term(data, knots)

    def loss(c: Array) -> float:
        if c[1:].min() <= 0:
            return np.inf
        data_loss = 0.5 * c @ squares @ c - w @ np.log(slopes @ c)
        prior = (c[1:] - np.log(c[1:])).sum() + 0.5 * (c[0] - knots[0]) ** 2
        return data_loss + prior_rows * prior - between.value(c)

    c = np.concatenate([[knots[0]], np.ones(len(knots))])
    for _ in range(_MAX_STEPS):
        inverse = 1.0 / (slopes @ c)
        gradient = squares @ c - slopes.T @ (w * inverse)
        gradient += prior_rows * np.concatenate([[c[0] - knots[0]], 1 - 1 / c[1:]])
        curvature = squares + (slopes.T * (w * inverse**2)) @ slopes
        curvature += prior_rows * np.diag(np.concatenate([[1.0], c[1:] ** -2.0]))
        if len(data.interval_weights):
            at = between.evaluate(c)
            gradient, curvature = gradient - at.gradient, curvature + at.neg_hessian
        step = np.linalg.solve(curvature, gradient)
        if gradient @ step < _TOLERANCE * (w.sum() + data.interval_weights.sum()):
            break
        c = _backtrack(loss, c, step, gradient @ step)
    return float(c[0]), c[1:]


def _interval_term(data: _Standard, knots: Array) -> IntervalTerm:
    """Return the log-likelihood of intervals as a function of the height and the slopes."""
    designs, offsets = [], []
    for end in data.intervals:
        finite = np.isfinite(end)
        _, integrals = _hat_functions(knots, np.where(finite, end, 0.0))
        heights = np.column_stack([np.ones(len(end)), integrals])
        designs.append(DenseDesign(np.where(finite[:, np.newaxis], heights, 0.0)))
        offsets.append(np.where(finite, 0.0, end))
    return IntervalTerm(designs[0], designs[1], (offsets[0], offsets[1]), data.interval_weights)


def _backtrack(loss: Callable[[Array], float], c: Array, step: Array, decrease: float) -> Array:
    """Return the first of c - step, c - step / 2, ... that lowers the loss enough."""
    current, share = loss(c), 1.0
    while loss(c - share * step) > current - 0.1 * share * decrease and share > 1e-12:
        share *= 0.5
    return c - share * step
