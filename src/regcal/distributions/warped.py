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
from regcal.distributions.base import ProbitDistribution

# Knots per row at which eta is made increasing.
_N_KNOTS = 64

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
class _Knots:
    """Increasing curves eta(u) per row: equally spaced knots, straight lines beyond them."""

    start: Array
    step: Array
    eta: Array
    slope: Array

    def _locate(self, place: Array) -> tuple[np.ndarray, Array]:
        k = np.clip(place, 0, self.eta.shape[1] - 2).astype(np.intp)
        return k, place - k

    def _ends(self, k: np.ndarray) -> tuple[Array, ...]:
        def take(table: Array, index: np.ndarray) -> Array:
            return np.take_along_axis(table, index, axis=1)

        return take(self.eta, k), take(self.eta, k + 1), take(self.slope, k), take(self.slope, k + 1)

    def __call__(self, u: Array) -> tuple[Array, Array]:
        """Return eta and d eta / du, by rational-quadratic pieces (Gregory, Delbourgo 1982)."""
        k, s = self._locate((u - self.start) / self.step)
        e0, e1, d0, d1 = self._ends(k)
        d0, d1 = d0 * self.step, d1 * self.step
        rise, inside = e1 - e0, np.clip(s, 0.0, 1.0)
        bend = inside * (1 - inside)
        denominator = rise + (d0 + d1 - 2 * rise) * bend
        eta = e0 + rise * (rise * inside**2 + d0 * bend) / denominator
        slope = (d1 * inside**2 + 2 * rise * bend + d0 * (1 - inside) ** 2) * (rise / denominator) ** 2
        eta = eta + d0 * np.minimum(s, 0.0) + d1 * np.maximum(s - 1.0, 0.0)
        return eta, slope / self.step

    def inverse(self, eta: Array) -> Array:
        """Return u at which the curves reach `eta`."""
        k = np.zeros(eta.shape, dtype=np.intp)
        for knot in range(1, self.eta.shape[1] - 1):
            k += eta >= self.eta[:, knot : knot + 1]
        e0, e1, d0, d1 = self._ends(k)
        d0, d1 = d0 * self.step, d1 * self.step
        rise, gap = e1 - e0, np.clip(eta, e0, e1) - e0
        bend = d0 + d1 - 2 * rise
        a = rise * (rise - d0) + gap * bend
        b = rise * d0 - gap * bend
        c = -rise * gap
        s = 2 * c / (-b - np.sqrt(np.maximum(b * b - 4 * a * c, 0.0)))
        s = s + np.minimum(eta - e0, 0.0) / d0 + np.maximum(eta - e1, 0.0) / d1
        return self.start + (k + s) * self.step


class Warped(ProbitDistribution):
    """A base distribution warped by a map on the probit scale, increasing by construction.

    Parameters
    ----------
    base : Distribution
    warp : WarpMap
    """

    def __init__(self, base, warp: WarpMap) -> None:
        self.base = base
        self.warp = warp
        self._work_per_point = base._work_per_point + _N_KNOTS

    def __len__(self) -> int:
        return len(self.base)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.base!r}, rows={len(self)})"

    def _take(self, rows: np.ndarray) -> Self:
        return type(self)(self.base._take(rows), self.warp)

    @cached_property
    def _knots(self) -> _Knots:
        """Follow the map along each row's path, then make it increasing (see `_increasing`)."""
        warp = self.warp
        ends = self.base._probit(np.array([[warp.t[0], warp.t[-1]]]))
        low, high = np.clip(ends, warp.u[0], warp.u[-1]).T[:, :, np.newaxis]
        step = np.maximum((high - low) / (_N_KNOTS - 1), 1e-9)
        u = low + step * np.arange(_N_KNOTS)
        t = self.base._from_probit(u)
        h, h_u, h_t = warp.evaluate(u, t)
        slope = 1.0 + h_u + h_t * np.exp(-self.base._logslope(t))
        slope[:, 0], slope[:, -1] = warp.slopes
        return _increasing(low, step, u, u + h, slope)

    def _eta(self, points: Array) -> tuple[Array, Array, Array]:
        u = self.base._probit(points)
        return u, *self._knots(u)

    def _probit(self, points: Array) -> Array:
        return self._eta(points)[1]

    def _logslope(self, points: Array) -> Array:
        return np.log(self._eta(points)[2]) + self.base._logslope(points)

    def _from_probit(self, probits: Array) -> Array:
        probits = np.broadcast_to(probits, (len(self), probits.shape[1]))
        return self.base._from_probit(self._knots.inverse(probits))

    def _kinks(self) -> Array | None:
        knots = self._knots
        u = knots.start + knots.step * np.arange(0, _N_KNOTS, 3)
        own = self.base._from_probit(u)
        base = self.base._kinks()
        if base is None:
            return own
        return np.concatenate([own, np.broadcast_to(base, (len(self), base.shape[1]))], axis=1)


def _increasing(low: Array, step: Array, u: Array, eta: Array, slope: Array) -> _Knots:
    """Return curves that keep at least a share of the base's slope.

    ``eta - share * u`` is put halfway between its running maximum from the left and its running
    minimum from the right; knots that were increasing already keep their place and slope.
    """
    excess = eta - SMALLEST_SLOPE * u
    rising = np.maximum.accumulate(excess, axis=1)
    falling = np.minimum.accumulate(excess[:, ::-1], axis=1)[:, ::-1]
    middle = 0.5 * (rising + falling)
    kept = rising == falling
    repaired = middle + SMALLEST_SLOPE * u
    secant = np.diff(repaired, axis=1) / step
    left = np.concatenate([secant[:, :1], secant], axis=1)
    right = np.concatenate([secant, secant[:, -1:]], axis=1)
    harmonic = 2 * left * right / (left + right)
    slope = np.where(kept & (slope > SMALLEST_SLOPE), slope, harmonic)
    return _Knots(low, step, repaired, np.maximum(slope, SMALLEST_SLOPE))
