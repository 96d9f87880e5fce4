"""Distributions warped on the probit scale by a smooth two-dimensional map.

Depends on NumPy, SciPy and `_validation` only.

With u = probit(t) of the base, the warped distribution is ``cdf(t) = Phi(eta)`` where
``eta = u + h(u, t)``. It is valid exactly when eta increases along each row's own path
t -> (u(t), t), which is made sure of row by row.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np

from regcal._validation import Array
from regcal.distributions._warp_map import (
    LARGEST_BEND,
    N_KNOTS,
    SMALLEST_SLOPE,
    WarpMap,
    WarpTable,
    is_gentle,
)
from regcal.distributions.base import Distribution, ProbitDistribution
from regcal.distributions.probit_mapped import densities_and_probits

# With fewer points per row than this, knots are computed only where points are.
_FEW_POINTS = 16

# Up to so many values are compared with all knots at once, which spares a loop over the knots.
_FEW_ETAS = 1024

# Points that are looked up at a time: few enough for the processor's cache.
_BLOCK = 2**14

Pair = tuple[Array, Array]

__all__ = ["SMALLEST_SLOPE", "WarpMap", "Warped", "is_gentle"]


@dataclass(frozen=True)
class _Pieces:
    """Rational-quadratic pieces between two knots each (Gregory and Delbourgo, 1982).

    Where a share s of a piece's width is behind, eta is
    ``first + s * (lead + more * s) / (1 + bend * s * (1 - s))``.
    """

    start: Array
    per_width: Array
    first: Array
    lead: Array  # the slope at the start, per width
    more: Array
    bend: Array

    @classmethod
    def between(cls, z: Pair, eta: Pair, slope: Pair) -> "_Pieces":
        """Return the pieces between pairs of knots."""
        width = z[1] - z[0]
        rise = eta[1] - eta[0]
        lead = slope[0] * width
        bend = slope[1] * width
        bend += lead
        bend /= rise
        bend -= 2.0
        return cls(z[0], 1.0 / width, eta[0], lead, rise - lead, bend)

    def take(self, number: np.ndarray) -> "_Pieces":
        """Return a piece for each number; pieces are counted row by row of the arrays."""
        parts = (self.start, self.per_width, self.first, self.lead, self.more, self.bend)
        return _Pieces(*(part.ravel().take(number) for part in parts))

    def _share(self, z: Array) -> tuple[Array, Array, Array]:
        """Return the share of the piece behind each z, what is beyond it, and the denominator."""
        place = z - self.start
        place *= self.per_width
        s = np.clip(place, 0.0, 1.0)
        place -= s
        denominator = 1.0 - s
        denominator *= s
        denominator *= self.bend
        denominator += 1.0
        return s, place, denominator

    def value(self, z: Array) -> Array:
        """Return eta; on straight lines beyond the ends."""
        s, beyond, denominator = self._share(z)
        eta = self.more * s
        eta += self.lead
        eta *= s
        eta /= denominator
        eta += self.first
        if beyond.any():
            eta += np.where(beyond < 0, self.lead, self._trail) * beyond
        return eta

    def slope(self, z: Array) -> Array:
        """Return d eta / d z."""
        s, _, denominator = self._share(z)
        slope = self._trail * s
        slope += (2.0 * self._rise) * (1.0 - s)
        slope *= s
        slope += self.lead * (1.0 - s) ** 2
        slope /= denominator * denominator
        slope *= self.per_width
        return slope

    @property
    def _rise(self) -> Array:
        return self.lead + self.more

    @property
    def _trail(self) -> Array:
        """The slope at the end, per width."""
        return (self.bend + 2.0) * self._rise - self.lead

    def inverse(self, eta: Array) -> Array:
        """Return the z at which eta is reached."""
        gap = eta - self.first
        inside = np.clip(gap, 0.0, self._rise)
        a = self.more + inside * self.bend
        b = self.lead - inside * self.bend
        s = 2.0 * inside / (b + np.sqrt(np.maximum(b * b + 4.0 * a * inside, 0.0)))
        beyond = gap - inside
        s += beyond / np.where(beyond < 0, self.lead, self._trail)
        return self.start + s / self.per_width


@dataclass(frozen=True)
class Knots:
    """Values of increasing curves at knots, knots × rows, and which of them were increasing."""

    table: WarpTable
    eta: Array
    kept: np.ndarray

    @classmethod
    def increasing(cls, table: WarpTable, h: Array) -> "Knots":
        """Return curves through u + h that keep at least a share of the slope of u.

        ``eta - share * u`` is put halfway between its running maximum from the left and its
        running minimum from the right; knots that were increasing already stay where they are.
        """
        excess = h + ((1.0 - SMALLEST_SLOPE) * table.u)[:, np.newaxis]
        rising = np.maximum.accumulate(excess, axis=0)
        falling = np.minimum.accumulate(excess[::-1], axis=0)[::-1]
        kept = rising == falling
        rising += falling
        rising *= 0.5
        rising += (SMALLEST_SLOPE * table.u)[:, np.newaxis]
        return cls(table, rising, kept)

    def slope(self, k: np.ndarray, own: Array) -> Array:
        """Return the slopes at knots `k`: their own where they were kept, else of neighbours.

        A slope far above those beside it belongs to a hole of the base, which a path crosses
        between two probits that are next to each other.
        """
        # at the ends the own slope is used: that of the straight line beyond
        middle = np.clip(k, 1, N_KNOTS - 2)
        e0, e1, e2 = (at_knots(self.eta, middle + i) for i in (-1, 0, 1))
        width = np.diff(self.table.z)
        left, right = (e1 - e0) / width.take(middle - 1), (e2 - e1) / width.take(middle)
        harmonic = 2 * left * right / (left + right)
        smallest = SMALLEST_SLOPE * self.table.start_slope.take(k)
        usual = (own > smallest) & (own < LARGEST_BEND * np.maximum(left, right))
        kept = (at_knots(self.kept, k) & usual) | (k != middle)
        return np.maximum(np.where(kept, own, harmonic), smallest)


def at_knots(table: np.ndarray, k: np.ndarray) -> np.ndarray:
    """Return the values of a table, knots × rows, at knots number `k` of each row."""
    return table.ravel().take(_numbers(k))


def _numbers(k: np.ndarray) -> np.ndarray:
    """Return places in a table of knots × rows."""
    numbers = k * len(k)
    numbers += np.arange(len(k))[:, np.newaxis]
    return numbers


class Warped(ProbitDistribution):
    """A base distribution warped by a map on the probit scale, increasing by construction.

    Along its path, each row follows the map through a number of knots, joined by increasing
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

    def _details(self) -> list[str]:
        return [self.base._kind()]

    def _take(self, rows: np.ndarray) -> Self:
        return type(self)(self.base._take(rows), self.warp)

    @cached_property
    def _safe(self) -> np.ndarray:
        """Rows on whose paths the map increases for sure, so that knots need no repair."""
        spread = self.base._largest_spread()
        if spread is None:
            return np.zeros(len(self), dtype=bool)
        return spread <= self.warp.table.widest_safe_spread

    def _follow(self, k: np.ndarray) -> tuple[Array, Array]:
        """Return eta and its slope at knots number `k`, as the map has them."""
        table = self.warp.table
        t, spread = self.base._trace(table.z.take(k))
        h, slope, h_t = table.gradient(k, t)
        start_slope = table.start_slope.take(k)
        slope += 1.0
        slope *= start_slope
        with np.errstate(over="ignore", invalid="ignore"):
            # not a number in a hole of the base, where neighbouring knots decide
            slope += h_t * spread
        for end, tail in ((0, self.warp.slopes[0]), (N_KNOTS - 1, self.warp.slopes[1])):
            slope = np.where(k == end, tail * start_slope, slope)
        h += table.u.take(k)
        return h, slope

    @cached_property
    def _knots(self) -> Knots:
        table = self.warp.table
        z = np.broadcast_to(table.z[:, np.newaxis], (N_KNOTS, len(self)))
        h = table.value(np.arange(N_KNOTS)[:, np.newaxis], self.base._from_probit(z.T).T)
        return Knots.increasing(table, h)

    @cached_property
    def _all_pieces(self) -> _Pieces:
        """The pieces between all knots, pieces × rows."""
        k = np.broadcast_to(np.arange(N_KNOTS), (len(self), N_KNOTS))
        _, own = self._follow(k)
        slope = np.ascontiguousarray(self._knots.slope(k, own).T)
        z, eta = np.broadcast_to(self.warp.table.z[:, np.newaxis], slope.shape), self._knots.eta
        return _Pieces.between((z[:-1], z[1:]), (eta[:-1], eta[1:]), (slope[:-1], slope[1:]))

    def _few_pieces(self, k: np.ndarray) -> _Pieces:
        """Return the pieces after knots `k`, without all other knots if no row is folded."""
        (e0, d0), (e1, d1) = self._follow(k), self._follow(k + 1)
        if not self._safe.all():
            knots = self._knots
            e0, e1 = at_knots(knots.eta, k), at_knots(knots.eta, k + 1)
            d0, d1 = knots.slope(k, d0), knots.slope(k + 1, d1)
        ends = self.warp.table.z.take(k), self.warp.table.z.take(k + 1)
        return _Pieces.between(ends, (e0, e1), (d0, d1))

    def _located(self, z: Array) -> Iterator[tuple[slice, _Pieces]]:
        """Yield the pieces in which probits of the base lie, for some rows at a time."""
        if z.shape[1] < _FEW_POINTS:
            yield slice(None), self._few_pieces(self.warp.table.piece(z))
            return
        n_rows = max(1, _BLOCK // z.shape[1])
        for start in range(0, len(z), n_rows):
            rows = slice(start, start + n_rows)
            numbers = self.warp.table.piece(z[rows])
            numbers *= len(self)
            numbers += np.arange(len(self))[rows, np.newaxis]
            yield rows, self._all_pieces.take(numbers)

    def _row_work(self, n_points: int) -> int:
        if n_points < _FEW_POINTS and self._safe.all():
            return 2 * n_points
        return self.base._work_per_point * (n_points + N_KNOTS)

    def _probit(self, points: Array) -> Array:
        eta = np.array(self.base._probit(points))
        for rows, pieces in self._located(eta):
            eta[rows] = pieces.value(eta[rows])
        return eta

    def _logslope(self, points: Array) -> Array:
        slope = np.array(self.base._probit(points))
        for rows, pieces in self._located(slope):
            slope[rows] = np.log(pieces.slope(slope[rows]))
        return slope + self.base._logslope(points)

    def _logpdf(self, points: Array) -> Array:
        # as a change of the base's density, so that its support is kept
        logpdf, z = densities_and_probits(self.base, points)
        change = np.empty(z.shape)
        for rows, pieces in self._located(z):
            eta, slope = pieces.value(z[rows]), pieces.slope(z[rows])
            with np.errstate(invalid="ignore"):
                change[rows] = 0.5 * (z[rows] - eta) * (z[rows] + eta) + np.log(slope)
        return np.where(np.isneginf(logpdf), -np.inf, logpdf + change)

    def _from_probit(self, probits: Array) -> Array:
        probits = np.broadcast_to(probits, (len(self), probits.shape[1]))
        k = self._pieces_reached(probits)
        few = probits.shape[1] < _FEW_POINTS
        pieces = self._few_pieces(k) if few else self._all_pieces.take(_numbers(k))
        return self.base._from_probit(pieces.inverse(probits))

    def _landmarks(self) -> Array | None:
        return self.base._landmarks()

    def _pieces_reached(self, eta: Array) -> np.ndarray:
        """Return the numbers of the pieces in which eta is reached."""
        inner = self._knots.eta[1:-1, :, np.newaxis]
        if eta.size <= _FEW_ETAS:
            return np.count_nonzero(eta >= inner, axis=0)
        k = np.zeros(eta.shape, dtype=np.intp)
        for knot in inner:
            k += eta >= knot
        return k

    def _kinks(self) -> Array:
        knots = np.broadcast_to(self.warp.table.z, (len(self), N_KNOTS))
        own, base = self.base._from_probit(knots), self.base._kinks()
        if base is None:
            return own
        return np.concatenate([own, np.broadcast_to(base, (len(self), base.shape[1]))], axis=1)
