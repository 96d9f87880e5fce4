"""Recalibration of the probability integral transform (Kuleshov, Fenner and Ermon, 2018)."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import combinations_with_replacement
from typing import Any

import numpy as np
from scipy.special import log_ndtr, ndtr, ndtri, ndtri_exp

from regcal._validation import Array
from regcal._weighted import all_equal
from regcal.calibrators.cells import NO_INTERVALS, Points
from regcal.calibrators.held_out import without_last_digits
from regcal.calibrators.observed import Observed
from regcal.calibrators.probit import ProbitCalibrator
from regcal.calibrators.scale import FARTHEST, bounded_middles, prior_square, solve_scale
from regcal.ends import WHOLE_LINE, Ends, least_mass
from regcal.gp import DenseDesign, IntervalTerm
from regcal.maps import PiecewiseMap

# Knots of the smooth map: their number grows with the cube root of the rows, within limits.
_MIN_KNOTS, _MAX_KNOTS = 4, 16
_OUTER_LEVEL = 0.02
_SMALLEST_GAP = 0.05

# Outcomes further out, in units of their central spread and beyond all but as few rows as make no
# mass, count as if they were there: a gross error says no more than that something may be far out.
# What more rows agree on, as a cluster of its own, is no error.
_FARTHEST = 20.0

# And beyond the place where the map that is fitted to them has at most one outcome in so many
# samples they count as if they were there, and say only how the map goes on from there. One 50
# among 600 standard normal outcomes makes the 99 % quantile 2.5 instead of 4.4 (2.33 without it).
# 78 cells of benchmarks/quality.py: level on average, from -0.015 nats (doctor visits) to +0.009
# (loans).
_SAMPLES = 50.0
_ENOUGH = 1e-4  # of a place

# Beyond the place that fewer rows are known to pass than make a mass, a map is no steeper than the
# base if these are less than this share of those that it expects there: the others were censored
# before, often where outcomes are spread more. Weibull outcomes, 79 % of 800 censored, ten samples:
# log score -2.73 without it, below the base's in eight, -2.34 with it; if all were censored at one
# time -7.7 and -2.33. A base that is three times too wide loses 0.20 nats.
_FOLLOWED = 0.2

# Means of equal targets differ by as much.
_SAME_END = 1e-9

# Outcomes are far from all others if nothing lies between them for so many ranges of the others: no
# slope between knots falls to next to nothing, and rises again. A mass of 3 % that is 1000 spreads
# away: it got 0.000, and others were up to 0.05 off.
_LEAST_GAP = 0.5

# Images of the others' map between which its mixture with such a mass is nearly straight.
_IMAGES = np.linspace(-6.0, 6.0, 61)

# No map is flatter by more than this.
_FLATTEST = 1e-12

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

    @property
    def total(self) -> float:
        """How many rows there are."""
        return float(self.weights.sum() + self.interval_weights.sum())

    @property
    def of_most(self) -> Array:
        """Between which places all are but so few on either side that they make no mass."""
        outer = ndtri(min(least_mass(self.total) / self.total, 0.5))
        low, high = np.interp([outer, -outer], self.probits, self.quantiles)
        return np.array([min(low, 0.0), max(high, 0.0)])

    def credible(self, farthest: float = _FARTHEST) -> Array:
        """Return between which places outcomes are no gross errors, whatever map is fitted."""
        return self.of_most + np.array([-farthest, farthest])

    def within(self, ends: Array) -> "_Standard":
        """Return outcomes of which none is further out."""
        low, high = ends
        values, quantiles = (np.clip(v, low, high) for v in (self.values, self.quantiles))
        # an interval moves as a whole
        lower, upper = self.intervals
        moved = np.maximum(low - upper, 0.0) - np.maximum(lower - high, 0.0)
        intervals = lower + moved, upper + moved
        return replace(self, values=values, quantiles=quantiles, intervals=intervals)

    @property
    def places(self) -> tuple[Array, Array]:
        """Outcomes and the middles of bounded intervals, and the weights of both."""
        middles, weights = bounded_middles(*self.intervals, self.interval_weights)
        return np.concatenate([self.values, middles]), np.concatenate([self.weights, weights])


class PITCalibrator(ProbitCalibrator):
    """Replace the CDF q by an increasing function of q, the same for all rows and thresholds.

    The smooth map is a curve on the probit scale whose slope is linear between a few knots. It
    maximises the likelihood of the outcomes together with that of pseudo-rows which pull it
    towards a straight line, and the line towards the identity. Beyond the outer knots it is
    straight. Where nearly all outcomes were censored before, it is no steeper than the base.

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
            self.map_ = solve_pit(
                outcomes, intervals, self.prior_rows, observed.targets.support.ends
            )
        else:
            self.map_ = solve_empirical_pit(outcomes, intervals)


def solve_pit(
    outcomes: Points,
    intervals: Points,
    prior_rows: float = 2.0,
    ends_of_support: Ends = WHOLE_LINE,
) -> PiecewiseMap:
    """Return the smooth map of points in `OutcomeCoordinates` and `IntervalCoordinates`.

    What lies far beyond all others, as a mass at an end of the support, is no part of their shape.
    """
    below, above = (_far_intervals(side, outcomes, intervals) for side in (1.0, -1.0))
    near = intervals.where(~below & ~above)
    learnt = _solve_without_gaps(outcomes, near, prior_rows, ends_of_support)
    (low, _, high, _), weights = intervals.values, intervals.weights
    total = outcomes.weights.sum() + near.weights.sum()
    if below.any():
        learnt = _with_mass_below(learnt, high[below], total, weights[below].sum())
        total += weights[below].sum()
    if above.any():
        mirrored = _mirrored(learnt), -low[above], total, weights[above].sum()
        learnt = _mirrored(_with_mass_below(*mirrored))
    return learnt


def _far_intervals(side: float, outcomes: Points, intervals: Points) -> np.ndarray:
    """Return which intervals reach to -inf (or inf) from far below (above) what has two ends."""
    low, high = intervals.values[[0, 2]] if side > 0 else -intervals.values[[2, 0]]
    reach, bounded = np.isneginf(low), np.isfinite(low) & np.isfinite(high)
    others = np.concatenate([side * outcomes.values[0], low[bounded], high[bounded]])
    if not reach.any() or len(others) == 0 or others.min() == others.max():
        return np.zeros(len(intervals), dtype=bool)
    gap = others.min() - high[reach].max()
    return reach & (gap > _LEAST_GAP * (others.max() - others.min()))


def _with_mass_below(
    learnt: PiecewiseMap, ends: Array, of_others: float, of_mass: float
) -> PiecewiseMap:
    """Return the map by which a mass lies below the ends, and all others as was learnt."""
    # Phi(m(z)) = share + (1 - share) Phi(n(z)), from the tail where probabilities have all digits
    share, others = (np.log(w / (of_mass + of_others)) for w in (of_mass, of_others))
    for place in learnt.inverse(_IMAGES):
        learnt = _with_edge(learnt, place)
    edges, images = learnt.edges, learnt.heights
    lower, upper = np.logaddexp(share, others + log_ndtr(images)), others + log_ndtr(-images)
    mixed = np.where(lower < upper, ndtri_exp(lower), -ndtri_exp(upper))
    flatter = np.clip(np.exp(others + 0.5 * (mixed**2 - images**2)), _FLATTEST, 1.0)
    left, right = learnt.left * flatter[:-1], learnt.right * flatter[1:]
    # next to flat down to the mass, and farther out it falls as before
    last = min(edges[0], ends[np.isfinite(ends)].min(initial=edges[0])) - 1.0
    edges = np.append([last - 1.0, last], edges)
    left, right = (np.append([learnt.left[0], left[0]], slopes) for slopes in (left, right))
    rises = 0.5 * (left + right) * np.diff(edges)
    return PiecewiseMap(
        edges, mixed[0] + np.cumsum(np.append(-rises[:2].sum(), rises)), left, right
    )


def _solve_without_gaps(
    outcomes: Points,
    intervals: Points,
    prior_rows: float,
    ends_of_support: Ends,
) -> PiecewiseMap:
    """Return the smooth map of outcomes and of intervals that are not far from all others."""
    data = _standardise(outcomes, intervals, prior_rows)
    last = ndtri(1.0 / (_SAMPLES * max(data.total, 1.0))) * np.array([1.0, -1.0])
    places = data.places[0]
    outermost = np.array([places.min(initial=0.0), places.max(initial=0.0)])
    # from the middle outwards, so that few far outcomes never get a hold on it
    ends = _hull(data.of_most, last)
    for _ in range(_MAX_STEPS):
        seen = data.within(ends)
        knots = _place_knots(seen)
        start, slopes = _fit_slopes(seen, knots, prior_rows)
        smooth = PiecewiseMap.with_slopes(knots, slopes, start)
        before, ends = ends, _hull(ends, smooth.inverse(last))
        if np.allclose(np.clip(outermost, *ends), np.clip(outermost, *before), rtol=_ENOUGH):
            break
    whole = _with_outer_lines(smooth, data, ends, prior_rows)
    left, right = whole.left / data.factor, whole.right / data.factor
    edges = data.shift + data.factor * whole.edges
    learnt = PiecewiseMap(edges, whole.heights, left, right)
    return _as_wide_as_base(learnt, outcomes, intervals, ends_of_support)


def _as_wide_as_base(
    learnt: PiecewiseMap, outcomes: Points, intervals: Points, ends: Ends
) -> PiecewiseMap:
    """Return the map that is no steeper than the base where next to no outcome was followed.

    Beyond the ends of the support nothing is followed, nor asked.
    """
    z, (low, t_low, high, t_high) = outcomes.values[0], intervals.values
    weights = np.concatenate([outcomes.weights, intervals.weights])
    if (np.isinf(high) & ~np.isclose(t_low, ends[1], rtol=_SAME_END, atol=0.0)).any():
        learnt = _no_steeper_tail(learnt, np.concatenate([z, low]), weights)
    if (np.isinf(low) & ~np.isclose(t_high, ends[0], rtol=_SAME_END, atol=0.0)).any():
        mirrored = _no_steeper_tail(_mirrored(learnt), -np.concatenate([z, high]), weights)
        learnt = _mirrored(mirrored)
    return learnt


def _no_steeper_tail(learnt: PiecewiseMap, reached: Array, weights: Array) -> PiecewiseMap:
    """Return the map with slopes of at most 1 beyond the place that few rows are known to pass.

    Parameters
    ----------
    reached, weights : ndarray of shape (n_rows,)
        The places that outcomes are known to reach.
    """
    order = np.argsort(-reached)
    passed = np.cumsum(weights[order])
    few = min(int(np.searchsorted(passed, least_mass(passed[-1]))), len(passed) - 1)
    last = reached[order[few]]
    followed = weights[reached >= last].sum()
    expected = passed[-1] * ndtr(-learnt(np.array([last])))[0]
    if not np.isfinite(last) or followed >= _FOLLOWED * expected:
        return learnt
    for place in (last - 1.0, last, last + 1.0):
        learnt = _with_edge(learnt, place)
    beyond = learnt.edges[:-1] >= last
    left, right = (np.where(beyond, np.minimum(s, 1.0), s) for s in (learnt.left, learnt.right))
    rises = 0.5 * (left + right) * np.diff(learnt.edges)
    heights = learnt.heights[0] + np.append(0.0, np.cumsum(rises))
    return PiecewiseMap(learnt.edges, heights, left, right)


def _with_edge(learnt: PiecewiseMap, place: float) -> PiecewiseMap:
    """Return the same map with an edge at a place."""
    edges, left, right = learnt.edges, learnt.left, learnt.right
    if place in edges:
        return learnt
    (height,), (slope,) = learnt.image_and_slope(np.array([place]))
    before = int(np.searchsorted(edges, place))
    return PiecewiseMap(
        np.insert(edges, before, place),
        np.insert(learnt.heights, before, height),
        np.insert(left, min(before, len(left)), slope),
        np.insert(right, max(before - 1, 0), slope),
    )


def _mirrored(learnt: PiecewiseMap) -> PiecewiseMap:
    """Return the map z -> -m(-z)."""
    edges, heights = -learnt.edges[::-1], -learnt.heights[::-1]
    return PiecewiseMap(edges, heights, learnt.right[::-1], learnt.left[::-1])


def _with_outer_lines(
    smooth: PiecewiseMap, data: _Standard, ends: Array, prior_rows: float
) -> PiecewiseMap:
    """Return the map that goes on beyond its ends as outcomes there say, if there are any.

    Its slope there maximises their likelihood, with prior rows that pull it to the slope before.
    """
    edges, heights, left, right = smooth.edges, smooth.heights, smooth.left, smooth.right
    places, weights = data.places
    for side in (-1.0, 1.0):
        edge, height, slope = (
            (edges[-1], heights[-1], right[-1]) if side > 0 else (edges[0], heights[0], left[0])
        )
        end = side * max(side * ends[int(side > 0)], side * edge + _SMALLEST_GAP)
        distance = side * (places - end)
        beyond = distance > 0.0
        if not beyond.any():
            continue
        at_end = height + slope * (end - edge)
        w, d = weights[beyond], distance[beyond]
        # the zero of d/dc of sum w ((m + c d)^2 / 2 - log c) + prior_rows (c / slope - log c)
        squared, linear = w @ d**2, side * at_end * (w @ d) + prior_rows / slope
        total = w.sum() + prior_rows
        flatter = 2.0 * total / (linear + np.sqrt(linear**2 + 4.0 * squared * total))
        flatter = min(flatter, slope)
        outer = np.array([end, end + side])
        images, lines = np.array([at_end, at_end + side * flatter]), np.array([slope, flatter])
        if side > 0:
            edges, heights = np.append(edges, outer), np.append(heights, images)
            left, right = np.append(left, lines), np.append(right, lines)
        else:
            edges, heights = np.append(outer[::-1], edges), np.append(images[::-1], heights)
            left, right = np.append(lines[::-1], left), np.append(lines[::-1], right)
    return PiecewiseMap(edges, heights, left, right)


def _hull(ends: Array, others: Array) -> Array:
    """Return the ends of both together."""
    return np.array([min(ends[0], others[0]), max(ends[1], others[1])])


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
    low, high = (data.shift + data.factor * end for end in data.credible(farthest))
    z, squares = outcomes.values
    inside = np.clip(z, low, high)
    return replace(outcomes, values=np.stack([inside, np.where(inside == z, squares, inside**2)]))


def _standardise(outcomes: Points, intervals: Points, prior_rows: float) -> _Standard:
    """Shift and scale by the middle and the central spread, pulled towards 0 and 1.

    Quantiles are used because a few outcomes may be many standard deviations out.
    """
    z, weights = _in_cells(*_merge_ties(*_with_middles(outcomes, intervals)))
    probits = ndtri(_mid_ranks(weights))
    low, middle, high = np.interp([-1.0, 0.0, 1.0], probits, z)
    share, spread = weights.sum() / (weights.sum() + prior_rows), 0.5 * (high - low)
    # prior rows, at 0, count as if they were no further out than gross errors
    factor = np.sqrt(share * spread**2 + (1.0 - share) * prior_square(spread))
    shift = middle - (1.0 - share) * np.clip(middle, -FARTHEST * spread, FARTHEST * spread)
    values = quantiles = (z - shift) / factor
    if len(intervals):
        z, weights = _in_cells(*_merge_ties(outcomes.values[0], outcomes.weights))
        values = (z - shift) / factor
    ends = tuple((intervals.values[row] - shift) / factor for row in (0, 2))
    told = (ends[0], ends[1]), intervals.weights, shift, factor, quantiles, probits
    standard = _Standard(values, weights, *told)
    return standard.within(standard.credible())


def _place_knots(data: _Standard) -> Array:
    """Return knots at quantiles that are equally spaced in probit units, moved apart if tied."""
    total = data.weights.sum() + data.interval_weights.sum()
    count = int(np.clip(np.cbrt(total) + 2, _MIN_KNOTS, _MAX_KNOTS))
    outer = ndtri(_OUTER_LEVEL)
    knots = np.interp(np.linspace(outer, -outer, count), data.probits, data.quantiles)
    ramp = _SMALLEST_GAP * np.arange(count)
    apart = np.maximum.accumulate(knots - ramp) + ramp
    return apart - (apart - knots).mean()


@dataclass(frozen=True)
class _Curve:
    """A curve whose slope is linear between knots and constant beyond, at some values.

    Its coefficients are the height at the first knot and the slopes at all. A slope depends on two
    of them and a height is a polynomial in each interval, so that sums over an interval do.

    Parameters
    ----------
    knots : ndarray of shape (n_knots,)
        At least three.
    interval : ndarray of int, of shape (n_values,)
        The number of the knot before each value, or of the nearest interval.
    share, beyond : ndarray of shape (n_values,)
        The place in the interval, from 0 to 1, and the distance from it.
    """

    knots: Array
    interval: np.ndarray
    share: Array
    beyond: Array

    @classmethod
    def at(cls, knots: Array, values: Array) -> "_Curve":
        """Return the curve with these knots at values."""
        interval = np.searchsorted(knots[1:-1], values, side="right")
        held = np.clip(values, knots[0], knots[-1])
        share = (held - knots[interval]) / np.diff(knots)[interval]
        return cls(knots, interval, share, values - held)

    def slopes(self, c: Array) -> Array:
        """Return the slopes at the values, given those at the knots."""
        return c[self.interval] + self.share * np.diff(c)[self.interval]

    def heights(self) -> Array:
        """Return the derivatives of the heights at the values by the coefficients."""
        pieces, s = self._pieces()[self.interval], self.share[:, np.newaxis]
        inside = pieces[:, 0] + s * (pieces[:, 1] + s * pieces[:, 2])
        return inside + self.beyond[:, np.newaxis] * pieces[:, 3]

    def squares(self, weights: Array) -> Array:
        """Return the matrix of the weighted sum of squared heights."""
        s, pieces = self.share, self._pieces()
        terms = (np.ones(len(s)), s, s * s, self.beyond)
        moments = np.empty((len(pieces), 4, 4))
        for i, j in combinations_with_replacement(range(4), 2):
            moments[:, i, j] = moments[:, j, i] = self._sums(weights * terms[i] * terms[j])
        return np.einsum("kia,kij,kjb->ab", pieces, moments, pieces, optimize=True)

    def slope_sums(self, weights: Array) -> Array:
        """Return the weighted sum of the slopes' derivatives by the slopes at the knots."""
        both, after = self._sums(weights), self._sums(weights * self.share)
        return np.append(both - after, 0.0) + np.append(0.0, after)

    def slope_squares(self, weights: Array) -> Array:
        """Return the matrix of the weighted sum of squared slopes."""
        both, after = self._sums(weights), self._sums(weights * self.share)
        squared = self._sums(weights * self.share**2)
        across = after - squared
        diagonal = np.append(both - after - across, 0.0) + np.append(0.0, squared)
        return np.diag(diagonal) + np.diag(across, 1) + np.diag(across, -1)

    def _sums(self, weights: Array) -> Array:
        """Return the total weight in each interval."""
        return np.bincount(self.interval, weights, len(self.knots) - 1).astype(float)

    def _pieces(self) -> Array:
        """Return heights in each interval as polynomials: of 1, share and its square, and beyond.

        Their shape is (n_intervals, 4, n_coefficients).
        """
        widths = np.diff(self.knots)
        pieces = np.zeros((len(widths), 4, len(self.knots) + 1))
        pieces[:, 0, 0] = 1.0
        for k, width in enumerate(widths):
            pieces[k + 1 :, 0, k + 1 : k + 3] += 0.5 * width  # intervals that lie behind, whole
            pieces[k, 1, k + 1] = width
            pieces[k, 2, k + 1 : k + 3] = -0.5 * width, 0.5 * width
        pieces[0, 3, 1] = pieces[-1, 3, -1] = 1.0
        return pieces


def _fit_slopes(data: _Standard, knots: Array, prior_rows: float) -> tuple[float, Array]:
    """Return the height at the first knot and the slopes at all, by Newton's method.

    Minimises the convex sum of w (m(z)^2 / 2 - log m'(z)) over outcomes,
    -w log(Phi(m(b)) - Phi(m(a))) over intervals, and prior_rows * (c - log c) for each slope c,
    which is smallest at the straight line.
    """
    curve, w = _Curve.at(knots, data.values), data.weights
    squares = curve.squares(w)
    between = _interval_term(data, knots)

    def loss(c: Array) -> float:
        if c[1:].min() <= 0:
            return np.inf
        data_loss = 0.5 * c @ squares @ c - w @ np.log(curve.slopes(c[1:]))
        prior = (c[1:] - np.log(c[1:])).sum() + 0.5 * (c[0] - knots[0]) ** 2
        return data_loss + prior_rows * prior - between.value(c)

    c = np.concatenate([[knots[0]], np.ones(len(knots))])
    for _ in range(_MAX_STEPS):
        inverse = 1.0 / curve.slopes(c[1:])
        gradient = squares @ c + prior_rows * np.append(c[0] - knots[0], 1 - 1 / c[1:])
        gradient[1:] -= curve.slope_sums(w * inverse)
        curvature = squares + prior_rows * np.diag(np.append(1.0, c[1:] ** -2.0))
        curvature[1:, 1:] += curve.slope_squares(w * inverse**2)
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
        heights = _Curve.at(knots, np.where(finite, end, 0.0)).heights()
        designs.append(DenseDesign(np.where(finite[:, np.newaxis], heights, 0.0)))
        offsets.append(np.where(finite, 0.0, end))
    return IntervalTerm(designs[0], designs[1], (offsets[0], offsets[1]), data.interval_weights)


def _backtrack(loss: Callable[[Array], float], c: Array, step: Array, decrease: float) -> Array:
    """Return the first of c - step, c - step / 2, ... that lowers the loss enough."""
    current, share = loss(c), 1.0
    while loss(c - share * step) > current - 0.1 * share * decrease and share > 1e-12:
        share *= 0.5
    return c - share * step
