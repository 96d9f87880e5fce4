"""The curves that rows follow on a surface h(u, t): increasing by construction.

Along its path, each row follows the map through a number of knots, joined by increasing curves with
a continuous slope.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from regcal._validation import Array
from regcal.maps.base import PANELS, Path, for_rows
from regcal.maps.spline import Pieces

if TYPE_CHECKING:
    from regcal.maps.surface import SurfaceTable

# Share of the base's own slope that a curve keeps at least.
# benchmarks/PARTS.md, "slope": 1e-4 costs 0.008 nats (gpc) and 0.005 (gp-density); no set gains.
SMALLEST_SLOPE = 0.02

# Knots on a row's path.
N_KNOTS = 49

# A curve is well described by its knots if its slope is nowhere so many times the mean slope
# between two of them.
LARGEST_BEND = 5.0

# With fewer points per row than this, and many rows, knots are computed only where points are.
_FEW_POINTS = 16

# Width of the image of a panel on the straight lines beyond the box, for integrals.
_TAIL_PANEL = 1.0

# Up to so many values are compared with all knots at once, which spares a loop over the knots.
_FEW_ETAS = 1024

# Points that are looked up at a time: few enough for the processor's cache.
_BLOCK = 2**14


@dataclass(frozen=True)
class Knots:
    """Values of increasing curves at knots, knots × rows, and which of them were increasing."""

    table: "SurfaceTable"
    eta: Array
    kept: np.ndarray

    @classmethod
    def increasing(cls, table: "SurfaceTable", h: Array, t: Array) -> "Knots":
        """Return curves through u + h that keep at least a share of the slope of u.

        ``eta - share * u`` is put halfway between its running maximum from the left and its
        running minimum from the right; knots that were increasing already stay where they are.
        Knots whose targets t lie beyond an end yield to those that are seen: what the map says
        there, where it has learnt nothing, must not change the probability of the end.
        """
        excess = h + ((1.0 - SMALLEST_SLOPE) * table.u)[:, np.newaxis]
        rising, falling = _running_extremes(excess, t, table.ends)
        kept = (rising == falling) & (rising == excess)
        rising += falling
        rising *= 0.5
        rising += (SMALLEST_SLOPE * table.u)[:, np.newaxis]
        return cls(table, rising, kept)

    def slope(self, k: np.ndarray, own: Array) -> Array:
        """Return the slopes at knots `k`: their own where they were kept, else of neighbours.

        A slope far above those beside it belongs to a hole of the base, which a path crosses
        between two probits that are next to each other.
        """
        numbers = _numbers(k)
        left, right = self._secants.take(numbers), self._secants.take(numbers + len(k))
        smallest = SMALLEST_SLOPE * self.table.start_slope.take(k)
        usual = (own > smallest) & (own < LARGEST_BEND * np.maximum(left, right))
        # at the ends the own slope is used: that of the straight line beyond
        kept = (self.kept.ravel().take(numbers) & usual) | (k == 0) | (k == N_KNOTS - 1)
        return np.maximum(np.where(kept, own, 2 * left * right / (left + right)), smallest)

    @cached_property
    def _secants(self) -> Array:
        """The mean slopes before all knots and after the last; the end ones have no other."""
        secants = np.diff(self.eta, axis=0) / np.diff(self.table.z)[:, np.newaxis]
        return np.concatenate([secants[:1], secants, secants[-1:]])


def _running_extremes(excess: Array, t: Array, ends: tuple[float, float]) -> tuple[Array, Array]:
    """Return the maximum from the left and the minimum from the right, down the columns.

    Below the lower end both are the minimum from the right, above the upper one both are the
    maximum from the left, and what is between the ends takes no notice of either.
    """
    below, above = t < ends[0], t > ends[1]
    beyond = below | above
    beyond &= ~beyond.all(axis=0)  # a row that is never seen has to increase nevertheless
    if not beyond.any():
        rising = np.maximum.accumulate(excess, axis=0)
        return rising, np.minimum.accumulate(excess[::-1], axis=0)[::-1]
    below, above = below & beyond, above & beyond
    rising = np.maximum.accumulate(np.where(below, -np.inf, excess), axis=0)
    falling = np.minimum.accumulate(np.where(above, np.inf, excess)[::-1], axis=0)[::-1]
    return np.where(below, falling, rising), np.where(above, rising, falling)


def at_knots(table: np.ndarray, k: np.ndarray) -> np.ndarray:
    """Return the values of a table, knots × rows, at knots number `k` of each row."""
    return table.ravel().take(_numbers(k))


def _numbers(k: np.ndarray) -> np.ndarray:
    """Return places in a table of knots × rows."""
    numbers = k * len(k)
    numbers += np.arange(len(k))[:, np.newaxis]
    return numbers


@dataclass(frozen=True)
class SurfaceCurves:
    """One increasing curve per row: what a surface does along the row's path.

    Parameters
    ----------
    table : SurfaceTable
        The surface at its knots.
    slopes : tuple of float
        d eta / d u below and above the box.
    path : Path
        The rows.
    """

    table: "SurfaceTable"
    slopes: tuple[float, float]
    path: Path

    smallest_slope = None

    @property
    def knots(self) -> Array:
        """Probits of the base at the knots."""
        return self.table.z

    def panels(self) -> Array:
        """Return the knots, and as many probits on either side as it takes: (1, n_edges)."""
        z, eta = self.table.z, self._knots.eta
        slopes = np.array(self.slopes) * self.table.start_slope[[0, -1]]
        missing = max(0.0, PANELS[-1] + eta[0].max(), PANELS[-1] - eta[-1].min())
        images = _TAIL_PANEL * np.arange(1, 2 + int(missing / _TAIL_PANEL))
        steps = images / slopes[:, np.newaxis]
        return np.concatenate([z[0] - steps[0, ::-1], z, z[-1] + steps[1]])[np.newaxis, :]

    def row_work(self, n_points: int) -> int:
        """Return how many temporary values a row with so many points costs."""
        if n_points < _FEW_POINTS and self._safe.all():
            return 2 * n_points
        return self.path.work_per_point * (n_points + N_KNOTS)

    def __call__(self, z: Array) -> Array:
        """Return eta at probits of the base, of shape (n_rows, n_points)."""
        z = for_rows(z, len(self.path))
        eta = np.empty(z.shape)
        for rows, pieces in self._located(z):
            eta[rows] = pieces.value(z[rows])
        return eta

    def image_and_slope(self, z: Array) -> tuple[Array, Array]:
        """Return eta and d eta / dz at probits of the base, of shape (n_rows, n_points)."""
        z = for_rows(z, len(self.path))
        eta, slope = np.empty((2, *z.shape))
        for rows, pieces in self._located(z):
            eta[rows], slope[rows] = pieces.value_and_slope(z[rows])
        return eta, slope

    def inverse(self, image: Array) -> Array:
        """Return the probits of the base at which eta is reached, (n_rows, n_points)."""
        eta = for_rows(image, len(self.path))
        k = self._pieces_reached(eta)
        pieces = self._few_pieces(k) if self._few(eta) else self._all_pieces.take(_numbers(k))
        return pieces.inverse(eta)

    @cached_property
    def _safe(self) -> np.ndarray:
        """Rows on whose paths the map increases for sure, so that knots need no repair."""
        spread = self.path.largest_spread()
        if spread is None:
            return np.zeros(len(self.path), dtype=bool)
        return spread <= self.table.widest_safe_spread

    def _follow(self, k: np.ndarray) -> tuple[Array, Array]:
        """Return eta and its slope at knots number `k`, as the map has them."""
        table = self.table
        t, spread = self.path.trace(table.z.take(k))
        h, slope, h_t = table.gradient(k, t)
        start_slope = table.start_slope.take(k)
        slope += 1.0
        slope *= start_slope
        with np.errstate(over="ignore", invalid="ignore"):
            # not a number in a hole of the base, where neighbouring knots decide
            slope += h_t * spread
        for end, tail in ((0, self.slopes[0]), (N_KNOTS - 1, self.slopes[1])):
            slope = np.where(k == end, tail * start_slope, slope)
        h += table.u.take(k)
        return h, slope

    @cached_property
    def _knots(self) -> Knots:
        table = self.table
        t = self.path.targets(for_rows(table.z[np.newaxis, :], len(self.path))).T
        return Knots.increasing(table, table.value(np.arange(N_KNOTS)[:, np.newaxis], t), t)

    @cached_property
    def _all_pieces(self) -> Pieces:
        """The pieces between all knots, pieces × rows."""
        k = for_rows(np.arange(N_KNOTS)[np.newaxis, :], len(self.path))
        _, own = self._follow(k)
        slope = np.ascontiguousarray(self._knots.slope(k, own).T)
        z = for_rows(self.table.z[np.newaxis, :], len(self.path)).T
        eta = self._knots.eta
        return Pieces.between((z[:-1], z[1:]), (eta[:-1], eta[1:]), (slope[:-1], slope[1:]))

    def _few(self, points: Array) -> bool:
        """Tell whether there are few points, of many rows: one row's knots are had at once."""
        return points.shape[1] < _FEW_POINTS and len(points) * N_KNOTS > _FEW_ETAS

    def _few_pieces(self, k: np.ndarray) -> Pieces:
        """Return the pieces after knots `k`, without all other knots if no row is folded."""
        (e0, d0), (e1, d1) = self._follow(k), self._follow(k + 1)
        if not self._safe.all():
            knots = self._knots
            e0, e1 = at_knots(knots.eta, k), at_knots(knots.eta, k + 1)
            d0, d1 = knots.slope(k, d0), knots.slope(k + 1, d1)
        ends = self.table.z.take(k), self.table.z.take(k + 1)
        return Pieces.between(ends, (e0, e1), (d0, d1))

    def _located(self, z: Array) -> Iterator[tuple[slice, Pieces]]:
        """Yield the pieces in which probits of the base lie, for some rows at a time."""
        if self._few(z):
            yield slice(None), self._few_pieces(self.table.piece(z))
            return
        n_rows = max(1, _BLOCK // max(1, z.shape[1]))
        for start in range(0, len(z), n_rows):
            rows = slice(start, start + n_rows)
            numbers = self.table.piece(z[rows])
            numbers *= len(self.path)
            numbers += np.arange(len(self.path))[rows, np.newaxis]
            yield rows, self._all_pieces.take(numbers)

    def _pieces_reached(self, eta: Array) -> np.ndarray:
        """Return the numbers of the pieces in which eta is reached."""
        inner = self._knots.eta[1:-1, :, np.newaxis]
        if eta.size <= _FEW_ETAS:
            return np.count_nonzero(eta >= inner, axis=0)
        k = np.zeros(eta.shape, dtype=np.intp)
        for knot in inner:
            k += eta >= knot
        return k
