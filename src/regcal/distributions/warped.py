"""Distributions warped on the probit scale by a smooth two-dimensional map.

Depends on NumPy, SciPy, `_state` and `_validation` only.

With u = probit(t) of the base, the warped distribution is ``cdf(t) = Phi(eta)`` where
``eta = u + h(u, t)``. It is valid exactly when eta increases along each row's own path
t -> (u(t), t), which is made sure of row by row.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
from scipy.interpolate import RectBivariateSpline

from regcal._state import WithoutCaches
from regcal._validation import Array
from regcal.distributions.base import Distribution, ProbitDistribution

# Knots per row at which eta is made increasing, and their smallest distance in u.
_N_KNOTS = 64
_SMALLEST_STEP = 1e-9

# With fewer points per row than this, knots are computed only where points are.
_FEW_POINTS = 16

# Points that the map evaluates at a time: few enough for the processor's cache.
_BLOCK = 2**13

# Share of the base's own slope that is kept at least.
SMALLEST_SLOPE = 0.02


@dataclass(frozen=True)
class WarpMap(WithoutCaches):
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
        """Coefficients of the bicubic in each cell: 4 × 4 powers by (n_u - 1) * (n_t - 1) cells."""
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
        # value at 0, value at 1, slope at 0, slope at 1 -> powers of the cell coordinate
        hermite = np.array([[1, 0, 0, 0], [0, 0, 1, 0], [-3, 3, -2, -1], [2, -2, 1, 1]], float)
        powers = np.einsum("ik,abkl,jl->ijab", hermite, corners, hermite)
        return np.ascontiguousarray(powers.reshape(16, -1))

    @property
    def _steps(self) -> tuple[float, float]:
        return float(self.u[1] - self.u[0]), float(self.t[1] - self.t[0])

    def value(self, u: Array, t: Array) -> Array:
        """Return h at points inside the box; others are moved onto its edge."""
        return self._evaluate(u, t, 1)[0]

    def gradient(self, u: Array, t: Array) -> tuple[Array, Array, Array]:
        """Return h, dh/du and dh/dt."""
        h, h_u, h_t = self._evaluate(u, t, 3)
        step_u, step_t = self._steps
        return h, h_u / step_u, h_t / step_t

    def _evaluate(self, u: Array, t: Array, n_parts: int) -> Array:
        u, t = np.broadcast_arrays(u, t)
        flat_u, flat_t = u.ravel(), t.ravel()
        parts = np.empty((n_parts, u.size))
        for start in range(0, u.size, _BLOCK):
            block = slice(start, start + _BLOCK)
            self._evaluate_block(flat_u[block], flat_t[block], parts[:, block])
        return parts.reshape(n_parts, *u.shape)

    def _evaluate_block(self, u: Array, t: Array, parts: Array) -> None:
        """Write h, and its slopes in units of cells if `parts` has room for them."""
        step_u, step_t = self._steps
        a = np.clip((u - self.u[0]) / step_u, 0.0, len(self.u) - 1.0)
        b = np.clip((t - self.t[0]) / step_t, 0.0, len(self.t) - 1.0)
        i = np.minimum(a.astype(np.intp), len(self.u) - 2)
        j = np.minimum(b.astype(np.intp), len(self.t) - 2)
        a -= i
        b -= j
        c = self._cells.take(i * (len(self.t) - 1) + j, axis=1).reshape(4, 4, -1)
        in_t = ((c[:, 3] * b + c[:, 2]) * b + c[:, 1]) * b + c[:, 0]
        parts[0] = ((in_t[3] * a + in_t[2]) * a + in_t[1]) * a + in_t[0]
        if len(parts) > 1:
            slope_t = (3 * c[:, 3] * b + 2 * c[:, 2]) * b + c[:, 1]
            parts[1] = (3 * in_t[3] * a + 2 * in_t[2]) * a + in_t[1]
            parts[2] = ((slope_t[3] * a + slope_t[2]) * a + slope_t[1]) * a + slope_t[0]

    @cached_property
    def widest_safe_spread(self) -> float:
        """The largest dt/du for which eta increases along every straight path in the box."""
        uu, tt = np.meshgrid(
            np.linspace(self.u[0], self.u[-1], 4 * len(self.u)),
            np.linspace(self.t[0], self.t[-1], 4 * len(self.t)),
            indexing="ij",
        )
        _, h_u, h_t = self.gradient(uu, tt)
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

    def value(self) -> Array:
        """Return eta (Gregory and Delbourgo, 1982), on straight lines beyond the ends."""
        (e0, e1), (d0, d1) = self.eta, self.slope
        s = np.clip(self.place, 0.0, 1.0)
        bend = s * (1.0 - s)
        rise = e1 - e0
        top = rise * s
        top *= s
        top += d0 * bend
        top *= rise
        top /= self._denominator(rise, bend)
        top += e0
        outside = self.place - s
        if outside.any():
            top += np.where(outside < 0, d0, d1) * outside
        return top

    def derivative(self) -> Array:
        """Return the slope of eta per knot step."""
        (e0, e1), (d0, d1) = self.eta, self.slope
        s = np.clip(self.place, 0.0, 1.0)
        bend, rise = s * (1.0 - s), e1 - e0
        slope = d1 * s * s + 2 * rise * bend + d0 * (1 - s) ** 2
        return slope * (rise / self._denominator(rise, bend)) ** 2

    def _denominator(self, rise: Array, bend: Array) -> Array:
        d0, d1 = self.slope
        return rise + (d0 + d1 - 2 * rise) * bend

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
    """Values of increasing curves at equally spaced knots, and which of them were increasing."""

    eta: Array
    kept: np.ndarray

    def slopes(self, k: np.ndarray, own: Array, floor: Array) -> Array:
        """Return slopes at knots `k`: their own where they were kept, else from neighbours."""
        last = self.eta.shape[1] - 1
        here = _take(self.eta, k)
        left, right = (
            _take(self.eta, np.maximum(k - 1, 0)),
            _take(self.eta, np.minimum(k + 1, last)),
        )
        rise, fall = np.where(k < last, right - here, here - left), here - left
        fall = np.where(k > 0, fall, rise)
        harmonic = 2 * fall * rise / (fall + rise)
        # the slopes of the end knots are those of the straight lines beyond them
        kept = (_take(self.kept, k) & (own > floor)) | (k == 0) | (k == last)
        return np.maximum(np.where(kept, own, harmonic), floor)


def _take(table: np.ndarray, index: np.ndarray) -> np.ndarray:
    """Return table[row, index[row, :]]; much faster than `np.take_along_axis`."""
    return table.ravel().take(index + table.shape[1] * np.arange(len(table))[:, np.newaxis])


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
        spread = self.base._largest_spread()
        if spread is None:
            return np.zeros(len(self), dtype=bool)
        return spread <= self.warp.widest_safe_spread

    def _place(self, k: Array) -> tuple[Array, Array]:
        """Return probit and target of knots number `k` of the rows' paths."""
        start, step = self._range
        u = start + step * k
        return u, self.base._from_probit(u)

    def _follow(self, k: np.ndarray) -> tuple[Array, Array]:
        """Return eta, as the map has it, and its slope per knot step at knots number `k`."""
        u, t = self._place(k)
        h, h_u, h_t = self.warp.gradient(u, t)
        with np.errstate(over="ignore", invalid="ignore"):
            # not a number in a hole of the base, where neighbouring knots decide
            slope = 1.0 + h_u + h_t * np.exp(-self.base._logslope(t))
        slope = np.where(k == 0, self.warp.slopes[0], slope)
        slope = np.where(k == _N_KNOTS - 1, self.warp.slopes[1], slope)
        return u + h, self._range[1] * slope

    @property
    def _all_knots(self) -> np.ndarray:
        return np.broadcast_to(np.arange(_N_KNOTS), (len(self), _N_KNOTS))

    @cached_property
    def _knots(self) -> _Knots:
        u, t = self._place(self._all_knots)
        return _increasing(u + self.warp.value(u, t), self._range[1])

    @cached_property
    def _slopes(self) -> Array:
        """Slopes at all knots, per knot step."""
        _, own = self._follow(self._all_knots)
        return self._knots.slopes(self._all_knots, own, SMALLEST_SLOPE * self._range[1])

    def _pieces(self, k: np.ndarray, place: Array) -> _Pieces:
        """Return the pieces of the curves between knots k and k + 1."""
        if k.shape[1] >= _FEW_POINTS:
            eta, slopes = self._knots.eta, self._slopes
            ends = (_take(eta, k), _take(eta, k + 1)), (_take(slopes, k), _take(slopes, k + 1))
            return _Pieces(place, *ends)
        (e0, d0), (e1, d1) = self._follow(k), self._follow(k + 1)
        if not self._safe.all():
            knots, floor = self._knots, SMALLEST_SLOPE * self._range[1]
            e0, e1 = _take(knots.eta, k), _take(knots.eta, k + 1)
            d0, d1 = knots.slopes(k, d0, floor), knots.slopes(k + 1, d1, floor)
        return _Pieces(place, (e0, e1), (d0, d1))

    def _curve(self, u: Array) -> _Pieces:
        """Return the pieces of the curves in which the probits `u` lie."""
        start, step = self._range
        position = (u - start) / step
        k = np.clip(position, 0, _N_KNOTS - 2).astype(np.intp)
        return self._pieces(k, position - k)

    def _row_work(self, n_points: int) -> int:
        if n_points < _FEW_POINTS and self._safe.all():
            return 2 * n_points
        return self.base._work_per_point * (n_points + _N_KNOTS)

    def _probit(self, points: Array) -> Array:
        return self._curve(self.base._probit(points)).value()

    def _logslope(self, points: Array) -> Array:
        slope = self._curve(self.base._probit(points)).derivative() / self._range[1]
        return np.log(slope) + self.base._logslope(points)

    def _logpdf(self, points: Array) -> Array:
        # as a change of the base's density, so that its support is kept
        logpdf, u = self.base._logpdf(points), self.base._probit(points)
        pieces = self._curve(u)
        eta = pieces.value()
        with np.errstate(invalid="ignore"):
            change = 0.5 * (u - eta) * (u + eta) + np.log(pieces.derivative() / self._range[1])
        outside = np.isneginf(logpdf) | np.isinf(u)
        return np.where(outside, -np.inf, logpdf + change)

    def _from_probit(self, probits: Array) -> Array:
        probits = np.broadcast_to(probits, (len(self), probits.shape[1]))
        start, step = self._range
        eta, slopes = self._knots.eta, self._slopes
        k = np.zeros(probits.shape, dtype=np.intp)
        for knot in range(1, _N_KNOTS - 1):
            k += probits >= eta[:, knot : knot + 1]
        ends = (_take(eta, k), _take(eta, k + 1)), (_take(slopes, k), _take(slopes, k + 1))
        place = _Pieces(np.zeros(probits.shape), *ends).inverse(probits)
        return self.base._from_probit(start + step * (k + place))

    def _kinks(self) -> Array:
        start, step = self._range
        own = self.base._from_probit(start + step * np.arange(_N_KNOTS))
        base = self.base._kinks()
        if base is None:
            return own
        return np.concatenate([own, np.broadcast_to(base, (len(self), base.shape[1]))], axis=1)


def _increasing(eta: Array, step: Array) -> _Knots:
    """Return curves that keep at least a share of the base's slope.

    ``eta - share * u`` is put halfway between its running maximum from the left and its running
    minimum from the right; knots that were increasing already stay where they are.
    """
    ramp = SMALLEST_SLOPE * step * np.arange(eta.shape[1])
    excess = np.ascontiguousarray((eta - ramp).T)  # accumulating over the first axis is faster
    rising = np.maximum.accumulate(excess, axis=0)
    falling = np.minimum.accumulate(excess[::-1], axis=0)[::-1]
    return _Knots(0.5 * (rising + falling).T + ramp, np.ascontiguousarray((rising == falling).T))
