"""A Gaussian-process map trained on the density itself, without thresholds.

Depends on the distributions, the Gaussian-process engine and `_validation`.

With u = probit of the base at t and eta = u + h(u, t), the calibrated density is
phi(eta) eta'. Its logarithm at the outcomes is concave in h, so the fit is a convex problem.
"""

from dataclasses import dataclass

import numpy as np

from regcal._validation import Array
from regcal.calibrators.gp_map import (
    LARGEST_PROBIT,
    LINEAR_VARIANCES,
    GPMapCalibrator,
    MapAxes,
    fit_map_process,
    limited_weights,
    starting_point,
    target_resolution,
)
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
            spread = np.exp(-logslope) / self.axes_.halfwidth
        beyond = np.abs(u) > LARGEST_PROBIT
        if beyond.any():
            # the process is frozen where the path leaves the box
            edges = dist.from_probit(np.array([[-LARGEST_PROBIT, LARGEST_PROBIT]]))
            exits = np.where(u < 0, edges[:, :1], edges[:, 1:])
            targets, spread = np.where(beyond, exits, targets), np.where(beyond, 0.0, spread)
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
