"""A Gaussian-process map trained on the density itself, without thresholds.

With u = probit of the base at t and eta = u + h(u, t), the calibrated density is
phi(eta) eta'. Its logarithm at the outcomes is concave in h, so the fit is a convex problem.
"""

import warnings
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from scipy.special import ndtr

from regcal._validation import Array
from regcal.calibrators.axes import LARGEST_PROBIT, MapAxes
from regcal.calibrators.cells import (
    LARGEST,
    Coordinates,
    IntervalCoordinates,
    OutcomeCoordinates,
    Points,
    TargetCoordinates,
    joint_cells,
    number_cells,
    target_cells,
)
from regcal.calibrators.gp_fitted import ProcessCalibrator, earlier_process
from regcal.calibrators.gp_steps import (
    IdentityPrior,
    Prior,
    fit_map_process,
    shortest_lengthscales,
)
from regcal.calibrators.held_out import HeldOut, without_last_digits
from regcal.calibrators.observed import Observed
from regcal.calibrators.targets import Targets
from regcal.distributions import Distribution, Transformed
from regcal.gp import (
    Barrier,
    BasisWarning,
    FittedProcess,
    HilbertBasis,
    IntervalTerm,
    Kernel,
    SoftSlope,
    TensorDesign,
    Term,
    TransformationLikelihood,
)
from regcal.gp.binomial import BinomialObservations
from regcal.gp.likelihood import LikelihoodTerm
from regcal.maps import ProbitMap

# Where eta is asked to increase: on the paths of so many rows at so many targets, with this share
# of the rows' weight in all. Where eta folds back, several targets share their probability, and all
# rows gain by that: a barrier that does not grow with them is overrun. On the toy mixture
# gp-density reaches .988 of the attainable gain with 15 000 rows (benchmarks/protocol.py --tables
# convergence), and about .01 less with a barrier as for 768 rows. A small weight does not push
# slopes up where the density is truly low. Five variants of share and number were tried on 52 cells
# of benchmarks/quality.py ("choose" and "paper"): with all rows within 0.002 nats of each other;
# with 40, this share was best.
# benchmarks/PARTS.md, "barrier": without it -0.021 nats and CRPS +0.5 %,
# -0.042 and +2.3 % with 40 rows, in less than half of the time.
_BARRIER_ROWS, _BARRIER_LEVELS = 24, 64
_BARRIER_SHARE, _BARRIER_WIDTH = 0.03, 0.02

# Where a path between those rows, or beyond them, folds back by more than this probability, eta is
# asked to increase there as well, and fitted again, so many times at most. Up to the outermost rows
# few weigh little, and the others gain by their folds: with three clusters of width 0.001 and
# 25 000 rows, all paths of the outer 2 % at either side lost up to the whole of their probability.
# Acts in 2 of 50 fits to the paper's sets, the toy mixture and "choose" of benchmarks/devsets.py:
# 12 000 rows of the toy mixture with boosting, where paths lost 0.9 (log score -0.009 and +0.002).
_LARGEST_FOLD, _MOST_ROUNDS = 0.1, 8

# Where the base is flatter than this, in half-ranges of the targets, it is followed as if it were
# not: slopes along its path would be so stiff that the last digit of y moves the search
# (`tests/test_laws.py`, units of separated mixtures).
_FLATTEST_BARRIER = 100.0

# Rows are ordered by their quantiles at this probit. It is next to the median, where a mixture of
# two equal parts may have a gap, and so no place that a last digit would not move.
_NEXT_TO_MEDIAN = 0.0123

# A base that is flatter than this, in half-ranges of the targets, has no density to speak of.
_LARGEST_SPREAD = 1e4

# Beyond so many points the process sees them in cells of (u, t, slope); beyond so many pairs of
# ends, in cells of both.
_MAX_POINTS = 4000
_MAX_PAIRS = 1000
_CELLS_U, _CELLS_PER_LOG = 128, 8.0
_PAIR_CELLS = 32

# Levels of t, in which points share their place: few while hyper-parameters are searched for, more
# for the map itself. benchmarks/gaussian_process.py, "cells": with 128 throughout, probabilities
# are up to 0.010 off those of all points, with 512 in the end 0.002, with 1024 0.001; a fit to a
# million rows ("million") takes 1.0 s with 512 in the end, half as much again with 1024, and about
# three times as much with 512 throughout.
_SEARCH_LEVELS, _FINAL_LEVELS = 128, 512


@dataclass(frozen=True)
class PathCoordinates(TargetCoordinates):
    """Where an outcome lies on its row's path: probit u, target t, and log dt / du.

    Outcomes without a density are left out.
    """

    def observe(self, rows: HeldOut) -> Points:
        """Return a point per outcome."""
        u, log_spread = rows.z, rows.log_spread
        used = np.isfinite(u) & np.isfinite(log_spread) & rows.exact
        values = (np.clip(u[used], -LARGEST, LARGEST), rows.y[used], log_spread[used])
        return Points.without_levels(rows.weights[used], *values)

    def cells(self, points: Points) -> np.ndarray:
        """Return cells of all three."""
        u, t, log_spread = points.values
        spreads = np.floor(log_spread * _CELLS_PER_LOG)
        return joint_cells((number_cells(u, 5), target_cells(t, self.width), spreads))


@dataclass(frozen=True)
class PathPoints:
    """Weighted points on rows' paths: probit, target, and dt/du in units of the target axis."""

    u: Array
    s: Array
    spread: Array
    weights: Array

    def where(self, wanted: np.ndarray) -> "PathPoints":
        """Return some of the points."""
        parts = (self.u, self.s, self.spread, self.weights)
        return PathPoints(*(part[wanted] for part in parts))

    def with_others(self, other: "PathPoints") -> "PathPoints":
        """Return these points and others."""
        pairs = zip(
            (self.u, self.s, self.spread, self.weights),
            (other.u, other.s, other.spread, other.weights),
            strict=True,
        )
        return PathPoints(*map(np.concatenate, pairs))

    def merged(self, n_levels: int) -> "PathPoints":
        """Return one point per cell, at the mean of its points, if they are many.

        Those of a level share s.
        """
        if len(self.u) <= _MAX_POINTS:
            return self
        x = np.tanh(0.5 * self.u)
        cell_u = np.floor((x + 1.0) * (0.5 * _CELLS_U)).astype(np.int64)
        level = np.floor((self.s + 1.0) * (0.5 * n_levels)).astype(np.int64)
        level = np.minimum(level, n_levels - 1)
        cell_d = np.floor(np.log(np.maximum(self.spread, 1e-300)) * _CELLS_PER_LOG)
        cells = cell_d.astype(np.int64) * (_CELLS_U + 1) + cell_u
        points = Points(level, self.weights, np.stack([self.u, self.s, self.spread])).merged(cells)
        u, s, spread = points.values
        total = np.bincount(points.levels, points.weights)
        level_mean = np.bincount(points.levels, points.weights * s) / np.where(total > 0, total, 1)
        return PathPoints(u, level_mean[points.levels], spread, points.weights)

    def on_axes(self, axes: MapAxes, prior: Prior) -> "AxisPoints":
        """Return the points on the two axes of the process."""
        along = (axes.probit_axis_slope(self.u), self.spread)
        return AxisPoints(axes.probit_axis(self.u), self.s, along, prior.columns(self.u))


@dataclass(frozen=True)
class AxisPoints:
    """Points on the axes of the process, and the direction of the paths through them.

    Columns are a constant and u.
    """

    x: Array
    s: Array
    along: tuple[Array, Array]
    columns: Array

    def designs(self, basis: HilbertBasis) -> tuple[TensorDesign, TensorDesign]:
        """Return the designs of values and of slopes, which the constant does not change."""
        values = TensorDesign.values(basis, self.x, self.s, self.columns)
        return values, values.slopes(self.along, np.tile([0.0, 1.0], (len(self.x), 1)))


def on_paths(points: Points, start: ProbitMap, axes: MapAxes) -> PathPoints:
    """Return outcomes on the axes, after the start map.

    From its outcome on, a path is continued as a straight line in the base's probit: that of a
    normal distribution.
    """
    u, t, log_spread = points.values
    with np.errstate(over="ignore"):
        spread = np.exp(log_spread)
    image, slope = start.image_and_slope(u)
    low, high = start.inverse(np.array([-LARGEST_PROBIT, LARGEST_PROBIT]))
    exits = t + (np.where(u < 0, low, high) - u) * spread
    with np.errstate(over="ignore"):
        return placed(image, t, spread / slope, exits, points.weights, axes)


def placed(
    u: Array, targets: Array, spread: Array, exits: Array, weights: Array, axes: MapAxes
) -> PathPoints:
    """Return points on the axes, given where their paths leave the box."""
    # the process is frozen from there on
    beyond = np.abs(u) > LARGEST_PROBIT
    targets = np.where(beyond, exits, targets)
    with np.errstate(over="ignore"):
        spread = np.where(beyond, 0.0, spread * axes.target_axis_slope(targets))
    points = PathPoints(
        np.clip(u, -LARGEST_PROBIT, LARGEST_PROBIT).ravel(),
        axes.target_axis(targets).ravel(),
        np.broadcast_to(spread, u.shape).ravel(),
        np.broadcast_to(weights, u.shape).ravel(),
    )
    # not where the base has no density: there is no path to follow
    return points.where(np.isfinite(points.u) & (points.spread < _LARGEST_SPREAD))


def equal_steps() -> Array:
    """Return the shares of weight at which there are representative rows."""
    return (np.arange(_BARRIER_ROWS) + 0.5) / _BARRIER_ROWS


def further_steps(n_rows: int) -> Array:
    """Return shares of weight between those of equal steps, and beyond, up to the outermost rows.

    Beyond, each is half as far from the end as the one before.
    """
    between = np.arange(1, _BARRIER_ROWS) / _BARRIER_ROWS
    n_halves = max(0, int(np.log2(n_rows / _BARRIER_ROWS)))
    outer = 0.5 / _BARRIER_ROWS * 0.5 ** np.arange(1, n_halves + 1)
    return np.concatenate([[0.0], outer[::-1], between, 1.0 - outer, [1.0]])


def barrier_points(rows: HeldOut, shares: Array, start: ProbitMap, axes: MapAxes) -> PathPoints:
    """Return points on the paths of rows at some shares of weight, one path after the other.

    There, eta has to increase.
    """
    middle = start.inverse(np.full((1, 1), _NEXT_TO_MEDIAN))
    middles = rows.dist._evaluate("_from_probit", middle, True)
    # from an end of the range, since digits are those of a number whatever the origin of y
    order = np.lexsort((rows.distinct, without_last_digits(middles - axes.low)))
    cumulated = np.cumsum(rows.weights[order]) / rows.weights.sum()
    chosen = order[np.minimum(np.searchsorted(cumulated, shares), len(order) - 1)]
    # a row that occurs twice is one row
    chosen = chosen[np.sort(np.unique(rows.distinct[chosen], return_index=True)[1])]
    targets = axes.axis.inverse(np.linspace(*axes.places, _BARRIER_LEVELS + 2)[1:-1])
    grid = np.broadcast_to(targets, (len(chosen), len(targets)))
    dist: Distribution = Transformed(rows.dist._take(chosen), start)
    u, logslope = dist._probit_and_logslope(grid)
    with np.errstate(over="ignore"):
        spread = np.exp(-logslope)
    points = placed(u, grid, spread, grid, np.array(1.0 / (_BARRIER_ROWS * _BARRIER_LEVELS)), axes)
    points = points.where(np.abs(points.u) < LARGEST_PROBIT)
    return replace(points, spread=np.minimum(points.spread, _FLATTEST_BARRIER))


@dataclass(frozen=True)
class IntervalPoints:
    """Ends of what was seen of outcomes that are not exact, on the axes.

    Parameters
    ----------
    at_most, at_least : PathPoints
        The one end that is known.
    between : pair of PathPoints
        Both ends.
    """

    at_most: PathPoints
    at_least: PathPoints
    between: tuple[PathPoints, PathPoints]

    @classmethod
    def of(cls, intervals: Points, start: ProbitMap, axes: MapAxes) -> "IntervalPoints":
        """Return points in `IntervalCoordinates` after the start map."""
        ends = _end_points(intervals, start, axes)
        known = [np.isfinite(end.u) for end in ends]
        both = np.flatnonzero(known[0] & known[1])
        pair = _merged_pairs(ends[0].where(both), ends[1].where(both))
        one_sided = (ends[1].where(known[1] & ~known[0]), ends[0].where(known[0] & ~known[1]))
        at_most, at_least = (end.merged(_FINAL_LEVELS) for end in one_sided)
        return cls(at_most, at_least, pair)

    @property
    def weight(self) -> float:
        """The total weight."""
        parts = (self.at_most, self.at_least, self.between[0])
        return float(sum(part.weights.sum() for part in parts))

    def terms(self, basis: HilbertBasis, axes: MapAxes, prior: Prior) -> list[LikelihoodTerm]:
        """Return the log-likelihood of the coefficients of a basis."""

        def values(points: PathPoints) -> TensorDesign:
            x = axes.probit_axis(points.u)
            return TensorDesign.values(basis, x, points.s, prior.columns(points.u))

        terms: list[LikelihoodTerm] = []
        for points, share in ((self.at_most, 1.0), (self.at_least, 0.0)):
            if len(points.u):
                seen = (points.weights, share * points.weights, points.u, prior.link)
                terms.append(Term(values(points), BinomialObservations(*seen)))
        low, high = self.between
        if len(low.u):
            designs = values(low).dense(), values(high).dense()
            terms.append(IntervalTerm(*designs, (low.u, high.u), low.weights))
        return terms


def _end_points(intervals: Points, start: ProbitMap, axes: MapAxes) -> list[PathPoints]:
    """Return the lower and the upper ends on the axes; infinite ones stay so."""
    z, t = intervals.values[::2], intervals.values[1::2]
    finite = np.isfinite(z)
    u = np.where(finite, start(np.where(finite, z, 0.0)), z)
    s = axes.target_axis(np.where(np.isfinite(t), t, axes.low))
    none = np.zeros(len(intervals))
    return [PathPoints(u[end], s[end], none, intervals.weights) for end in (0, 1)]


def _merged_pairs(low: PathPoints, high: PathPoints) -> tuple[PathPoints, PathPoints]:
    """Return pairs of ends, one per fine cell of all four coordinates if they are many."""
    if len(low.u) <= _MAX_PAIRS:
        return low, high
    columns = np.stack([low.u, low.s, high.u, high.s])
    places = [np.floor(np.tanh(0.5 * u) * _PAIR_CELLS) for u in columns[::2]]
    places += [np.floor(s * _PAIR_CELLS) for s in columns[1::2]]
    merged = Points.without_levels(low.weights, *columns).merged(joint_cells(places))
    u_low, s_low, u_high, s_high = merged.values
    none = np.zeros(len(merged))
    return (
        PathPoints(u_low, s_low, none, merged.weights),
        PathPoints(u_high, s_high, none, merged.weights),
    )


def folded(points: PathPoints, process: FittedProcess, axes: MapAxes, prior: Prior) -> np.ndarray:
    """Return at which points, on one path after the other, eta decreases and should not.

    What lies before a fold shares its probability with what lies behind.
    """
    if not len(points.u):
        return np.zeros(0, dtype=bool)
    values, slopes = points.on_axes(axes, prior).designs(process.basis)
    eta = points.u + process.posterior.mean(values)
    falls = 1.0 + process.posterior.mean(slopes) < 0.0
    starts = 1 + np.flatnonzero((np.diff(points.s) <= 0.0) | (np.diff(points.u) < 0.0))
    for path in np.split(np.arange(len(eta)), starts):
        below = ndtr(eta[path])
        shared = np.maximum.accumulate(below) - below
        falls[path] &= shared.max(initial=0.0) > _LARGEST_FOLD
    return falls


def fit_paths(
    points: PathPoints,
    intervals: IntervalPoints,
    barrier: PathPoints,
    further: PathPoints,
    axes: MapAxes,
    prior: Prior,
    kernel: Kernel | None,
    earlier: FittedProcess | None,
    n_distinct: int,
) -> FittedProcess:
    """Fit the process so that eta at the outcomes looks standard normal, and increases.

    Rows that are repeated, or weigh more, ask for no more functions than so many distinct ones. Of
    further points, only those are asked for at which paths fold back.
    """
    n_rows = points.weights.sum() + intervals.weight

    def likelihood(
        basis: HilbertBasis, points: PathPoints, barrier: PathPoints
    ) -> TransformationLikelihood:
        folds = barrier.on_axes(axes, prior)
        soft = SoftSlope(_BARRIER_SHARE * n_rows * barrier.weights, _BARRIER_WIDTH)
        return TransformationLikelihood(
            *points.on_axes(axes, prior).designs(basis),
            points.u,
            points.weights,
            Barrier(folds.designs(basis)[1], soft) if len(barrier.u) else None,
            intervals.terms(basis, axes, prior),
        )

    few = points.merged(_SEARCH_LEVELS)
    # 100 rows whose weights, over twelve orders of magnitude, count as five million: the functions
    # of so many took more than 60 s
    most = min(n_rows, n_distinct)
    searched = partial(likelihood, points=few, barrier=barrier)
    process = fit_map_process(searched, most, prior, kernel, earlier)
    many = points.merged(_FINAL_LEVELS)
    if few is not points:
        process = process.refitted(likelihood(process.basis, many, barrier))
    asked = np.zeros(len(further.u), dtype=bool)
    for _ in range(_MOST_ROUNDS):
        falls = folded(further, process, axes, prior) & ~asked
        if not falls.any():
            break
        asked |= falls
        wider = barrier.with_others(further.where(asked))
        process = process.refitted(likelihood(process.basis, many, wider))
    return process


def warn_of_steep_map(process: FittedProcess, prior: Prior, stacklevel: int) -> None:
    """Tell when corrections are as large and as short as they are let be, with any number of rows.

    Parameters
    ----------
    process : FittedProcess
    prior : Prior
        Bounds both.
    stacklevel : int
        As for `warnings.warn`.
    """
    # in none of 50 fits to the paper's sets, the toy mixture and "choose" of benchmarks/devsets.py
    log_sigma, _, log_lengthscale = process.posterior.theta
    if log_sigma < prior.largest_sigma or log_lengthscale > shortest_lengthscales(prior)[1]:
        return
    msg = (
        "The outcomes ask for a steeper map than gp-density can follow, as clusters do that are "
        "far narrower than the gaps between them: their densities are too wide, and probabilities "
        "may be far off, most of all for the outermost predictions. Compare with isotonic "
        "(regcal.compare), or take that."
    )
    warnings.warn(msg, BasisWarning, stacklevel=stacklevel + 1)


class DensityCalibrator(ProcessCalibrator):
    """Calibrate the whole density by a Gaussian-process map, trained on the log score.

    The limit of infinitely many thresholds. It contains simpler recalibrations as special cases:
    a shift and a scale of u, a map of u alone, a map of u and t; the evidence decides how much of
    it to use.

    Parameters
    ----------
    kernel : Kernel, default=RBF()
        `regcal.gp.RBF`, `Matern52`, `Matern32` or any object with a spectral density.
    support, step : as in every calibrator

    Attributes
    ----------
    lengthscales_, sigma_, log_evidence_ : ndarray, float, float
        Hyper-parameters found, and the log evidence of the data.
    process_ : regcal.gp.FittedProcess
        Basis and posterior.

    Examples
    --------
    >>> import numpy as np
    >>> from regcal import DensityCalibrator, Normal
    >>> rng = np.random.default_rng(0)
    >>> dist = Normal(np.zeros(500), np.full(500, 2.0))
    >>> cal = DensityCalibrator().fit(dist, rng.normal(size=500))
    >>> cal.transform(dist[:1]).std().round(1)
    array([1.])
    """

    def __init__(
        self, *, kernel: Kernel | None = None, support: Any = "auto", step: Any = None
    ) -> None:
        self.kernel = kernel
        self.support = support
        self.step = step

    def _coordinates(self, targets: Targets) -> tuple[Coordinates, ...]:
        return (
            OutcomeCoordinates(),
            IntervalCoordinates.over(targets),
            PathCoordinates.over(targets),
        )

    def _solve(self, observed: Observed) -> None:
        self.prior_ = IdentityPrior()
        self.axes_ = self.prior_.axes(observed.targets)
        outcomes, intervals, paths = observed.points
        self.start_ = self.prior_.start(outcomes, intervals, observed.targets.support.ends)
        points = on_paths(paths, self.start_, self.axes_)
        barrier, further = (
            barrier_points(observed.rows, shares, self.start_, self.axes_)
            for shares in (equal_steps(), further_steps(len(observed.rows)))
        )
        ends = IntervalPoints.of(intervals, self.start_, self.axes_)
        # of rows that are not all kept, there are cells
        n_distinct = len(paths) + len(intervals)
        if observed.all_kept:
            n_distinct = int(observed.rows.distinct.max()) + 1
        how = (self.axes_, self.prior_, self.kernel, earlier_process(observed), n_distinct)
        self.process_ = fit_paths(points, ends, barrier, further, *how)
        surface = self.prior_.surface(self.process_, self.axes_, self.start_)
        self.map_ = self.prior_.checked(surface, outcomes, intervals, observed.rows)

    def warn_of_disagreement(self, rows: HeldOut, targets: Targets, stacklevel: int = 3) -> None:
        """Tell of a map that disagrees with its rows, or is not steep enough for them.

        Parameters
        ----------
        rows : HeldOut
            Those that it was learnt from, as they were given.
        targets : Targets
            All outcomes that it was learnt from.
        stacklevel : int, default=3
            As for ``warnings.warn``.
        """
        super().warn_of_disagreement(rows, targets, stacklevel + 1)
        if self.map_.h.any():  # it was not dropped
            warn_of_steep_map(self.process_, self.prior_, stacklevel)
