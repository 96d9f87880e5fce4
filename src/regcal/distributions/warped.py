"""Distributions warped on the probit scale by a smooth two-dimensional map.

Depends on NumPy, SciPy and `_validation` only.

With u = probit(t) of the base, the warped distribution is ``cdf(t) = Phi(eta)`` where
``eta = u + h(u, t)``. It is valid exactly when eta increases along each row's own path
t -> (u(t), t), which is made sure of row by row.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
from scipy.interpolate import RectBivariateSpline

from regcal._validation import Array
from regcal.distributions.base import Distribution, ProbitDistribution, log_normal_density

# Knots per row at which eta is made increasing, and their smallest distance in u.
_N_KNOTS = 96
_SMALLEST_STEP = 1e-9

# With fewer points per row than this, knots are computed only where points are.
_FEW_POINTS = 16

# Share of the base's own slope that is kept at least.
SMALLEST_SLOPE = 0.02


@dataclass(frozen=True)
class WarpMap:
    """A smooth map h(u, t) on a box, continued linearly in u beyond it.

    Along a row's path the map is followed while the path is inside the box; where the path
    leaves it, eta goes on as a straight line in u with the slope of that side.

    Parameters
    ----------
    u : ndarray of shape (n_u,)
        Equally spaced probits.
    t : ndarray of shape (n_t,)
        Equally spaced targets.
    h : ndarray of shape (n_u, n_t)
        The map at the nodes.
    slopes : tuple of float
        d eta / d u below and above the box.
    """

    u: Array
    t: Array
    h: Array
    slopes: tuple[float, float]

    @cached_property
    def _cells(self) -> Array:
        """Coefficients of the bicubic in each cell, (n_u - 1) * (n_t - 1) rows of 4 × 4."""
        unit_u, unit_t = np.arange(len(self.u)), np.arange(len(self.t))
        spline = RectBivariateSpline(unit_u, unit_t, self.h, kx=3, ky=3, s=0)
        corners = np.empty((len(unit_u) - 1, len(unit_t) - 1, 4, 4))
        for du in (0, 1):
            for dt in (0, 1):
                nodes = spline(unit_u, unit_t, dx=du, dy=dt)
                corners[:, :, 2 * du, 2 * dt] = nodes[:-1, :-1]
                corners[:, :, 2 * du + 1, 2 * dt] = nodes[1:, :-1]
                corners[:, :, 2 * du, 2 * dt + 1] = nodes[:-1, 1:]
                corners[:, :, 2 * du + 1, 2 * dt + 1] = nodes[1:, 1:]
        # rows: value at 0, value at 1, slope at 0, slope at 1 -> powers of the cell coordinate
        hermite = np.array([[1, 0, 0, 0], [0, 0, 1, 0], [-3, 3, -2, -1], [2, -2, 1, 1]], float)
        powers = np.einsum("ik,abkl,jl->abij", hermite, corners, hermite)
        return np.ascontiguousarray(powers.reshape(-1, 16))

    @property
    def _steps(self) -> tuple[float, float]:
        return float(self.u[1] - self.u[0]), float(self.t[1] - self.t[0])

    def evaluate(self, u: Array, t: Array) -> tuple[Array, Array, Array]:
        """Return h, dh/du and dh/dt at points inside the box; others are moved onto its edge."""
        step_u, step_t = self._steps
        a = np.clip((u - self.u[0]) / step_u, 0.0, len(self.u) - 1.0).ravel()
        b = np.clip((t - self.t[0]) / step_t, 0.0, len(self.t) - 1.0).ravel()
        i = np.minimum(a.astype(np.intp), len(self.u) - 2)
        j = np.minimum(b.astype(np.intp), len(self.t) - 2)
        a -= i
        b -= j
        c = self._cells[i * (len(self.t) - 1) + j].T.reshape(4, 4, -1)
        in_t = ((c[:, 3] * b + c[:, 2]) * b + c[:, 1]) * b + c[:, 0]
        slope_t = (3 * c[:, 3] * b + 2 * c[:, 2]) * b + c[:, 1]
        h = ((in_t[3] * a + in_t[2]) * a + in_t[1]) * a + in_t[0]
        h_u = ((3 * in_t[3] * a + 2 * in_t[2]) * a + in_t[1]) / step_u
        h_t = (((slope_t[3] * a + slope_t[2]) * a + slope_t[1]) * a + slope_t[0]) / step_t
        shape = np.broadcast(u, t).shape
        return h.reshape(shape), h_u.reshape(shape), h_t.reshape(shape)

    @cached_property
    def widest_safe_spread(self) -> float:
        """The largest dt/du for which eta increases along every straight path in the box."""
        uu, tt = np.meshgrid(
            np.linspace(self.u[0], self.u[-1], 4 * len(self.u)),
            np.linspace(self.t[0], self.t[-1], 4 * len(self.t)),
            indexing="ij",
        )
        _, h_u, h_t = self.evaluate(uu, tt)
        room = 1.0 + h_u - 2 * SMALLEST_SLOPE
        if (room <= 0).any():
            return 0.0
        falling = h_t < 0
        return float(np.min(room[falling] / -h_t[falling])) if falling.any() else np.inf


@dataclass(frozen=True)
class _Pieces:
    """Ends of the rational-quadratic pieces in which points lie; u in units of the knot step."""

    place: Array  # position within the piece: 0 to 1, or beyond it at the two ends
    eta: tuple[Array, Array]
    slope: tuple[Array, Array]

    def __call__(self) -> tuple[Array, Array]:
        """Return eta and its slope (Gregory and Delbourgo, 1982), straight lines beyond."""
        (e0, e1), (d0, d1) = self.eta, self.slope
        rise, s = e1 - e0, np.clip(self.place, 0.0, 1.0)
        bend = s * (1 - s)
        denominator = rise + (d0 + d1 - 2 * rise) * bend
        eta = e0 + rise * (rise * s * s + d0 * bend) / denominator
        eta += d0 * np.minimum(self.place, 0.0) + d1 * np.maximum(self.place - 1.0, 0.0)
        slope = d1 * s * s + 2 * rise * bend + d0 * (1 - s) ** 2
        return eta, slope * (rise / denominator) ** 2

    def inverse(self, eta: Array) -> Array:
        """Return the places at which eta is reached; `place` is not used."""
        (e0, e1), (d0, d1) = self.eta, self.slope
        rise, gap = e1 - e0, np.clip(eta, e0, e1) - e0
        bend = d0 + d1 - 2 * rise
        a = rise * (rise - d0) + gap * bend
        b = rise * d0 - gap * bend
        c = -rise * gap
        s = 2 * c / (-b - np.sqrt(np.maximum(b * b - 4 * a * c, 0.0)))
        return s + np.minimum(eta - e0, 0.0) / d0 + np.maximum(eta - e1, 0.0) / d1


@dataclass(frozen=True)
class _Knots:
    """Increasing curves eta(u), one per row, through equally spaced knots."""

    eta: Array
    slope: Array  # per knot step

    def pieces(self, k: np.ndarray, place: Array) -> _Pieces:
        """Return the pieces between knots k and k + 1."""

        def take(table: Array, index: np.ndarray) -> Array:
            return np.take_along_axis(table, index, axis=1)

        return _Pieces(
            place,
            (take(self.eta, k), take(self.eta, k + 1)),
            (take(self.slope, k), take(self.slope, k + 1)),
        )

    def inverse(self, eta: Array) -> Array:
        """Return the positions, in knot steps, at which the curves reach `eta`."""
        k = np.zeros(eta.shape, dtype=np.intp)
        for knot in range(1, self.eta.shape[1] - 1):
            k += eta >= self.eta[:, knot : knot + 1]
        return k + self.pieces(k, np.zeros_like(eta)).inverse(eta)


class Warped(ProbitDistribution):
    """A base distribution warped by a map on the probit scale, increasing by construction.

    Along its path, each row follows the map through equally spaced knots, joined by increasing
    curves with a continuous slope.

    Parameters
    ----------
    base : Distribution
        The distributions to change.
    warp : WarpMap
        The map.
    """

    def __init__(self, base: Distribution, warp: WarpMap) -> None:
        self.base = base
        self.warp = warp
        self._work_per_point = base._work_per_point

    def __len__(self) -> int:
        return len(self.base)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.base!r}, rows={len(self)})"

    def _take(self, rows: np.ndarray) -> Self:
        return type(self)(self.base._take(rows), self.warp)

    @cached_property
    def _range(self) -> tuple[Array, Array]:
        """Where each row's path enters the box, and the distance of its knots, in u."""
        warp = self.warp
        ends = self.base._probit(np.array([[warp.t[0], warp.t[-1]]]))
        ends = np.clip(ends, warp.u[0], warp.u[-1])
        step = (ends[:, 1:] - ends[:, :1]) / (_N_KNOTS - 1)
        return ends[:, :1], np.maximum(step, _SMALLEST_STEP)

    @cached_property
    def _safe(self) -> np.ndarray:
        """Rows on whose paths the map increases for sure, so that knots need no repair."""
        spread = self.base._constant_spread()
        if spread is None:
            return np.zeros(len(self), dtype=bool)
        return spread <= self.warp.widest_safe_spread

    def _follow(self, k: Array) -> tuple[Array, Array]:
        """Return eta and its slope per knot step at knots number `k` of the rows' paths."""
        start, step = self._range
        u = start + step * k
        t = self.base._from_probit(u)
        h, h_u, h_t = self.warp.evaluate(u, t)
        slope = 1.0 + h_u + h_t * np.exp(-self.base._logslope(t))
        slope = np.where(k == 0, self.warp.slopes[0], slope)
        slope = np.where(k == _N_KNOTS - 1, self.warp.slopes[1], slope)
        return u + h, step * slope

    @cached_property
    def _knots(self) -> _Knots:
        k = np.broadcast_to(np.arange(float(_N_KNOTS)), (len(self), _N_KNOTS))
        return _increasing(*self._follow(k), self._range[1])

    def _curve(self, u: Array) -> tuple[Array, Array]:
        """Return eta and d eta / d u."""
        start, step = self._range
        position = (u - start) / step
        k = np.clip(position, 0, _N_KNOTS - 2).astype(np.intp)
        if u.shape[1] < _FEW_POINTS and self._safe.any():
            eta, slope = self._curve_by_rows(u, k, position - k)
        else:
            eta, slope = self._knots.pieces(k, position - k)()
        return eta, slope / step

    def _curve_by_rows(self, u: Array, k: np.ndarray, place: Array) -> tuple[Array, Array]:
        """Evaluate safe rows between two knots only, the others through all of them."""
        if self._safe.all():
            (e0, d0), (e1, d1) = self._follow(k), self._follow(k + 1)
            return _Pieces(place, (e0, e1), (d0, d1))()
        eta, slope = np.empty(u.shape), np.empty(u.shape)
        for rows in (np.flatnonzero(self._safe), np.flatnonzero(~self._safe)):
            part = self._take(rows)
            eta[rows], part_slope = part._curve(u[rows])
            slope[rows] = part_slope * part._range[1]
        return eta, slope

    def _probit(self, points: Array) -> Array:
        return self._curve(self.base._probit(points))[0]

    def _logslope(self, points: Array) -> Array:
        _, slope = self._curve(self.base._probit(points))
        return np.log(slope) + self.base._logslope(points)

    def _logpdf(self, points: Array) -> Array:
        eta, slope = self._curve(self.base._probit(points))
        return log_normal_density(eta) + np.log(slope) + self.base._logslope(points)

    def _from_probit(self, probits: Array) -> Array:
        probits = np.broadcast_to(probits, (len(self), probits.shape[1]))
        start, step = self._range
        return self.base._from_probit(start + step * self._knots.inverse(probits))

    def _kinks(self) -> Array:
        start, step = self._range
        own = self.base._from_probit(start + step * np.arange(0, _N_KNOTS, 2))
        base = self.base._kinks()
        if base is None:
            return own
        return np.concatenate([own, np.broadcast_to(base, (len(self), base.shape[1]))], axis=1)


def _increasing(eta: Array, slope: Array, step: Array) -> _Knots:
    """Return curves that keep at least a share of the base's slope.

    ``eta - share * u`` is put halfway between its running maximum from the left and its running
    minimum from the right; knots that were increasing already keep their place and slope.
    """
    ramp = SMALLEST_SLOPE * step * np.arange(eta.shape[1])
    excess = eta - ramp
    rising = np.maximum.accumulate(excess, axis=1)
    falling = np.minimum.accumulate(excess[:, ::-1], axis=1)[:, ::-1]
    repaired = 0.5 * (rising + falling) + ramp
    rise = np.diff(repaired, axis=1)
    left = np.concatenate([rise[:, :1], rise], axis=1)
    right = np.concatenate([rise, rise[:, -1:]], axis=1)
    harmonic = 2 * left * right / (left + right)
    floor = SMALLEST_SLOPE * step
    slope = np.where((rising == falling) & (slope > floor), slope, harmonic)
    return _Knots(repaired, np.maximum(slope, floor))
