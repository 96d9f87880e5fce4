"""A Gaussian-process map trained on the density itself, without thresholds.

Depends on the distributions, the Gaussian-process engine and `_validation`.

With u = probit of the base at t and eta = u + h(u, t), the calibrated density is
phi(eta) eta'. Its logarithm at the outcomes is concave in h, so the fit is a convex problem.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from regcal._validation import Array
from regcal.calibrators._outcomes import OutcomeCells, probit_cells
from regcal.calibrators._rows import Rows
from regcal.calibrators._targets import TargetSummary
from regcal.calibrators.gp_map import (
    LARGEST_PROBIT,
    LINEAR_VARIANCES,
    GPMapCalibrator,
    MapAxes,
    choose_start,
    fit_map_process,
    limited_weights,
    starting_point,
    target_resolution,
    weight_share,
)
from regcal.calibrators.summary import Summary, Tally, sampled_rows
from regcal.distributions import Distribution
from regcal.gp import (
    Barrier,
    FittedProcess,
    HilbertBasis,
    Kernel,
    SoftSlope,
    TensorDesign,
    TransformationLikelihood,
)

# Rounded targets are spread over their step by this rule (Gauss-Legendre with three nodes).
_NODES, _NODE_WEIGHTS = np.polynomial.legendre.leggauss(3)
_COARSE = 2e-3  # steps below this share of the half-range are as good as none

# Where eta is asked to increase: on the paths of so many rows at so many targets. A small weight
# rules out maps that fold back, without pushing slopes up where the density is truly low.
_BARRIER_ROWS, _BARRIER_LEVELS = 24, 32
_BARRIER_WEIGHT, _BARRIER_WIDTH = 0.03, 0.02

# A base that is flatter than this, in half-ranges of the targets, has no density to speak of.
_LARGEST_SPREAD = 1e4

# Beyond so many points they are merged in cells of (u, t, slope).
_MAX_POINTS = 4000
_CELLS_U, _CELLS_T, _CELLS_PER_LOG = 128, 128, 8.0

# Cells of a summary, per unit interval of the probit axis and at least half as many per range.
_FINE_CELLS_U, _FINE_CELLS_T = 256, 256


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

    def merged(self) -> "PathPoints":
        """Return one point per fine cell, at the mean of its points; targets at cell centres."""
        x = np.tanh(0.5 * self.u)
        cell_u = np.floor((x + 1.0) * (0.5 * _CELLS_U)).astype(np.int64)
        cell_t = np.floor((self.s + 1.0) * (0.5 * _CELLS_T)).astype(np.int64)
        cell_t = np.minimum(cell_t, _CELLS_T - 1)
        cell_d = np.floor(np.log(np.maximum(self.spread, 1e-300)) * _CELLS_PER_LOG)
        key = (cell_d.astype(np.int64) * (_CELLS_T + 1) + cell_t) * (_CELLS_U + 1) + cell_u
        _, index = np.unique(key, return_inverse=True)
        total = np.bincount(index, self.weights).astype(float)
        by_level = np.bincount(cell_t, self.weights, _CELLS_T)
        level_mean = np.bincount(cell_t, self.weights * self.s, _CELLS_T) / np.where(
            by_level > 0, by_level, 1.0
        )
        first = np.zeros(len(total), dtype=np.int64)
        first[index] = cell_t
        return PathPoints(
            np.bincount(index, self.weights * self.u) / total,
            level_mean[first],
            np.bincount(index, self.weights * self.spread) / total,
            total,
        )


@dataclass(frozen=True)
class PathCells:
    """A summary's outcomes on their paths, in fine cells of probit, target and spread.

    Cells are as wide in the target as a power of two, so that they are joined two by two as the
    range grows, and the order of rows does not matter.

    Parameters
    ----------
    low, high : float
        Smallest and largest possible outcome.
    parts : tuple of ndarray of shape (4, n_cells)
        Weighted sums of 1, u, t and log dt/du. A part is at most half as large as the one before
        it, so that a small batch costs little.
    """

    low: float = np.inf
    high: float = -np.inf
    parts: tuple[Array, ...] = ()

    def counted(self, rows: Rows, z: Array) -> "PathCells":
        """Return these sums with more rows added, whose outcomes have the probits z."""
        possible = np.isfinite(z)
        if not possible.any():
            return self
        y = rows.y[possible]
        ends = min(self.low, float(y.min())), max(self.high, float(y.max()))
        log_spread = -rows.dist.logslope(rows.y)
        used = possible & np.isfinite(log_spread)
        points = np.stack([np.ones(len(z)), z, rows.y, log_spread])[:, used] * rows.weights[used]
        return self._with([_in_cells(points, *ends)], *ends)

    def __add__(self, other: "PathCells") -> "PathCells":
        ends = min(self.low, other.low), max(self.high, other.high)
        return self._with(other.parts, *ends)

    def _with(self, more: Iterable[Array], low: float, high: float) -> "PathCells":
        parts = list(self.parts)
        for part in more:
            parts.append(part)
            while len(parts) > 1 and 2 * parts[-1].shape[1] >= parts[-2].shape[1]:
                parts[-2:] = [_in_cells(np.concatenate(parts[-2:], axis=1), low, high)]
        return PathCells(low, high, tuple(parts))

    def moved(self, other: "PathCells", rows: Rows) -> "PathCells":
        """Return itself: these cells grow with the range."""
        return self

    def points(self) -> tuple[Array, Array, Array, Array]:
        """Return probit, target, dt/du and weight of every cell."""
        cells = _in_cells(np.concatenate(self.parts, axis=1), self.low, self.high)
        weights = cells[0]
        u, t, log_spread = cells[1:] / weights
        with np.errstate(over="ignore"):
            return u, t, np.exp(log_spread), weights


def _in_cells(sums: Array, low: float, high: float) -> Array:
    """Return one column per cell."""
    if sums.shape[1] == 0:
        return sums
    u, t, log_spread = sums[1:] / sums[0]
    cells = [
        probit_cells(u, _FINE_CELLS_U),
        np.zeros(len(u)),
        np.floor(log_spread * _CELLS_PER_LOG),
    ]
    if high > low:
        cells[1] = np.floor(t / 2.0 ** np.ceil(np.log2((high - low) / _FINE_CELLS_T)))
    key = np.zeros(len(u), dtype=np.int64)
    for cell in cells:
        number = (cell - cell.min()).astype(np.int64)
        key = key * (number.max() + 1) + number
    _, place = np.unique(key, return_inverse=True)
    return np.stack([np.bincount(place, row) for row in sums])


class DensityCalibrator(GPMapCalibrator):
    """Calibrate the whole density by a Gaussian-process map, trained on the log score.

    The limit of infinitely many thresholds. It contains simpler recalibrations as special cases:
    a shift and a scale of u, a map of u alone, a map of u and t; the evidence decides how much of
    it to use.

    Parameters
    ----------
    kernel : Kernel, default=RBF()
        `regcal.gp.RBF`, `Matern52`, `Matern32` or any object with a spectral density.

    Attributes
    ----------
    lengthscales_, sigma_, log_evidence_ : ndarray, float, float
        Hyper-parameters found, and the log evidence of the data.
    process_ : regcal.gp.FittedProcess
        Basis and posterior.

    Notes
    -----
    Targets that were rounded to a step (ties) count as spread evenly over that step, so that the
    density neither grows without bound at the values nor vanishes between them.

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

    def __init__(self, *, kernel: Kernel | None = None) -> None:
        self.kernel = kernel

    def _fit(self, dist: Distribution, y: Array, weights: Array) -> None:
        possible = np.flatnonzero(np.isfinite(dist.probit(y)))
        dist, y = dist[possible], y[possible]
        weights = limited_weights(dist, y, weights[possible])
        self.start_ = starting_point(dist, y, weights)
        started = self.start_.transform(dist)
        self.axes_ = MapAxes.around(y)
        points = self._points(started, y, weights)
        if len(points.u) > _MAX_POINTS:
            points = points.merged()
        self.process_ = self._fit_process(points, self._barrier_points(started, weights))
        self.map_ = self._checked_map(dist, y, weights)

    def _tallies(self, targets: TargetSummary) -> tuple[Tally, ...]:
        return OutcomeCells(), PathCells()

    def _fit_cells(self, summary: Summary) -> None:
        share = weight_share(summary)
        if share is None:
            self._fit(*sampled_rows(summary))
            return
        outcomes, paths = summary.tallies
        z, weights = outcomes.points()
        self.start_ = choose_start(z, share * weights, share * weights.sum())
        self.start_.n_rows_seen_ = summary.n_rows
        self.axes_ = MapAxes.between(paths.low, paths.high)
        points = self._points_of_cells(paths, share, summary.targets.resolution).merged()
        dist, y, weights = summary.rows
        possible = np.flatnonzero(np.isfinite(dist.probit(y)))
        dist, y, weights = dist[possible], y[possible], weights[possible]
        barrier = self._barrier_points(self.start_.transform(dist), weights)
        self.process_ = self._fit_process(points, barrier)
        self.map_ = self._checked_map(dist, y, weights)

    def _points_of_cells(self, paths: PathCells, share: float, step: float) -> PathPoints:
        """Return what `_points` does, with the paths continued as straight lines in u."""
        u, t, spread, weights = (part[:, np.newaxis] for part in paths.points())
        weights = share * weights
        if step >= _COARSE * self.axes_.halfwidth:
            shifts = 0.5 * step * _NODES
            u, t, weights = u + shifts / spread, t + shifts, weights * (0.5 * _NODE_WEIGHTS)
            spread = np.broadcast_to(spread, u.shape)
        image, slope, edges = u, np.ones(1), np.array([-LARGEST_PROBIT, LARGEST_PROBIT])
        if self._start_map is not None:
            image, slope = self._start_map.image_and_slope(u)
            edges = self._start_map.inverse(edges)
        exits = t + (np.where(u < 0, *edges) - u) * spread
        return self._on_axes(image, t, spread / slope, exits, weights)

    def _points(self, dist: Distribution, y: Array, weights: Array) -> PathPoints:
        """Return the outcomes on their paths, spread over the rounding step if there is one."""
        step = target_resolution(y)
        if step < _COARSE * self.axes_.halfwidth:
            return self._path_points(dist, y[:, np.newaxis], weights[:, np.newaxis])
        targets = y[:, np.newaxis] + 0.5 * step * _NODES
        return self._path_points(dist, targets, weights[:, np.newaxis] * (0.5 * _NODE_WEIGHTS))

    def _path_points(self, dist: Distribution, targets: Array, weights: Array) -> PathPoints:
        u, logslope = dist.probit(targets), dist.logslope(targets)
        with np.errstate(over="ignore"):
            spread = np.exp(-logslope)
        exits = targets
        if (np.abs(u) > LARGEST_PROBIT).any():
            edges = dist.from_probit(np.array([[-LARGEST_PROBIT, LARGEST_PROBIT]]))
            exits = np.where(u < 0, edges[:, :1], edges[:, 1:])
        return self._on_axes(u, targets, spread, exits, weights)

    def _on_axes(
        self, u: Array, targets: Array, spread: Array, exits: Array, weights: Array
    ) -> PathPoints:
        """Return points on the axes, given where their paths leave the box."""
        # the process is frozen from there on
        beyond = np.abs(u) > LARGEST_PROBIT
        targets = np.where(beyond, exits, targets)
        with np.errstate(over="ignore"):
            spread = np.where(beyond, 0.0, spread / self.axes_.halfwidth)
        points = PathPoints(
            u.ravel(),
            self.axes_.target_axis(targets).ravel(),
            spread.ravel(),
            np.broadcast_to(weights, u.shape).ravel(),
        )
        # not where the base has no density: there is no path to follow
        return points.where(np.isfinite(points.u) & (points.spread < _LARGEST_SPREAD))

    def _barrier_points(self, dist: Distribution, weights: Array) -> PathPoints:
        """Return points on the paths of representative rows, at which eta has to increase."""
        medians = dist.from_probit(0.0)
        order = np.argsort(medians, kind="stable")
        share = np.cumsum(weights[order]) / weights.sum()
        levels = (np.arange(_BARRIER_ROWS) + 0.5) / _BARRIER_ROWS
        rows = order[np.unique(np.searchsorted(share, levels))]
        targets = np.linspace(self.axes_.low, self.axes_.high, _BARRIER_LEVELS + 2)[1:-1]
        grid = np.broadcast_to(targets, (len(rows), len(targets)))
        points = self._path_points(dist[rows], grid, np.full((len(rows), 1), _BARRIER_WEIGHT))
        return points.where(np.abs(points.u) < LARGEST_PROBIT)

    def _fit_process(self, points: PathPoints, barrier: PathPoints) -> FittedProcess:
        def slopes(basis: HilbertBasis, at: PathPoints) -> TensorDesign:
            along = (self.axes_.probit_axis_slope(at.u), at.spread)
            extra = np.stack([np.zeros_like(at.u), np.ones_like(at.u)], axis=-1)
            return TensorDesign.slopes(basis, self.axes_.probit_axis(at.u), at.s, along, extra)

        def likelihood(basis: HilbertBasis) -> TransformationLikelihood:
            x = self.axes_.probit_axis(points.u)
            values = TensorDesign.values(basis, x, points.s, self._extra(points.u))
            increasing = None
            if len(barrier.u):
                soft = SoftSlope(barrier.weights, _BARRIER_WIDTH)
                increasing = Barrier(slopes(basis, barrier), soft)
            return TransformationLikelihood(
                values, slopes(basis, points), points.u, points.weights, increasing
            )

        return fit_map_process(
            likelihood,
            points.weights.sum(),
            kernel=self.kernel,
            extra_variances=LINEAR_VARIANCES,
        )
