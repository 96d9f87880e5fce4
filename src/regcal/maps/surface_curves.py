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
from regcal.maps.spline import Pair, Pieces

if TYPE_CHECKING:
    from regcal.maps.surface import JoinedTables, SurfaceTable

# Targets beyond which nothing is seen: of all rows, or one for each, (n_rows,).
Ends = tuple[float | Array, float | Array]

# Share of the base's own slope that a curve keeps at least.
# benchmarks/PARTS.md, "slope": 1e-4 costs 0.008 nats (gpc) and 0.001 (gp-density); no set gains.
SMALLEST_SLOPE = 0.02

# Knots on a row's path.
N_KNOTS = 49

_OUTERMOST = np.isin(np.arange(N_KNOTS), [0, N_KNOTS - 1])[:, np.newaxis]
ALL_KNOTS = np.arange(N_KNOTS)[np.newaxis, :]

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

    table: "SurfaceTable | JoinedTables"
    eta: Array
    kept: np.ndarray

    @classmethod
    def increasing(cls, table: "SurfaceTable | JoinedTables", h: Array, t: Array) -> "Knots":
        """Return curves through u + h that keep at least a share of the slope of u.

        ``eta - share * u`` is put halfway between its running maximum from the left and its
        running minimum from the right; knots that were increasing already stay where they are.
        Knots whose targets t lie beyond an end yield to those that are seen: what the map says
        there, where it has learnt nothing, must not change the probability of the end.
        """
        excess = h + (1.0 - SMALLEST_SLOPE) * table.u.T
        rises = excess[1:] >= excess[:-1]
        if np.count_nonzero(rises) == rises.size:
            excess += SMALLEST_SLOPE * table.u.T
            return cls(table, excess, np.ones(excess.shape, dtype=bool))
        rising, falling = _running_extremes(excess, t, table.ends)
        kept = (rising == falling) & (rising == excess)
        rising += falling
        rising *= 0.5
        rising += SMALLEST_SLOPE * table.u.T
        return cls(table, rising, kept)

    def slope(self, k: np.ndarray, own: Array) -> Array:
        """Return the slopes at knots `k`: their own where they were kept, else of neighbours.

        A slope far above those beside it belongs to a hole of the base, which a path crosses
        between two probits that are next to each other.
        """
        numbers = _numbers(k)
        secants = self._secants.take(numbers), self._secants.take(numbers + len(k))
        smallest = SMALLEST_SLOPE * of_rows(self.table.start_slope, k)
        # at the ends the own slope is used: that of the straight line beyond
        ends = (k == 0) | (k == N_KNOTS - 1)
        return _usual(own, secants, self.kept.ravel().take(numbers), ends, smallest)

    def slopes(self, own: Array) -> Array:
        """Return the slopes at all knots, knots × rows, as `slope` does."""
        secants, smallest = self._secants, SMALLEST_SLOPE * self.table.start_slope.T
        return _usual(own, (secants[:-1], secants[1:]), self.kept, _OUTERMOST, smallest)

    @cached_property
    def _secants(self) -> Array:
        """The mean slopes before all knots and after the last; the end ones have no other."""
        z, secants = self.table.z.T, np.empty((N_KNOTS + 1, self.eta.shape[1]))
        np.divide(self.eta[1:] - self.eta[:-1], z[1:] - z[:-1], out=secants[1:-1])
        secants[0], secants[-1] = secants[1], secants[-2]
        return secants


def _usual(own: Array, secants: Pair, kept: np.ndarray, ends: np.ndarray, smallest: Array) -> Array:
    """Return own slopes of knots that were kept and are usual, or are ends; else of neighbours."""
    left, right = secants
    used = (own > smallest) & (own < LARGEST_BEND * np.maximum(left, right))
    used &= kept
    used |= ends
    if np.count_nonzero(used) < used.size:
        own = np.where(used, own, 2 * left * right / (left + right))
    return np.maximum(own, smallest)


def _running_extremes(excess: Array, t: Array, ends: Ends) -> tuple[Array, Array]:
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


def of_rows(values: Array, k: np.ndarray) -> Array:
    """Return values at knots `k` of each row, from those of each row or of all: (n or 1, knots)."""
    if k is ALL_KNOTS:
        return values
    if len(values) == 1:
        return values[0].take(k)
    return values.ravel().take(k + np.arange(0, values.size, N_KNOTS)[:, np.newaxis])


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
    table : SurfaceTable or JoinedTables
        The surface at its knots; of several surfaces, each row has the knots of its own.
    path : Path
        The rows.
    """

    table: "SurfaceTable | JoinedTables"
    path: Path

    smallest_slope = None

    @cached_property
    def n_rows(self) -> int:
        """The number of rows."""
        return len(self.path)

    @property
    def knots(self) -> Array:
        """Probits of the base at the knots."""
        z = self.table.z
        return z[0] if len(z) == 1 else z

    def panels(self) -> Array:
        """Return the knots, and as many probits on either side as it takes."""
        z, (first, last) = self.table.z, self.table.outermost
        # of all targets, not of these rows: some of them have the panels of all
        missing = max(0.0, PANELS[-1] + first, PANELS[-1] - last)
        images = _TAIL_PANEL * np.arange(1, 2 + int(missing / _TAIL_PANEL))
        below, above = (images / self.table.end_slopes[:, end, np.newaxis] for end in (0, 1))
        return np.concatenate([z[:, :1] - below[:, ::-1], z, z[:, -1:] + above], axis=1)

    def row_work(self, n_points: int) -> int:
        """Return how many temporary values a row with so many points costs."""
        if n_points < _FEW_POINTS and self._safe.all():
            return 2 * n_points
        return self.path.work_per_point * (n_points + N_KNOTS)

    def __call__(self, z: Array) -> Array:
        """Return eta at probits of the base, of shape (n_rows, n_points)."""
        z = for_rows(z, self.n_rows)
        if self._few_rows:
            return self._pieces_of(z, slice(None)).value(z)
        eta = np.empty(z.shape)
        for rows, pieces in self._located(z):
            eta[rows] = pieces.value(z[rows])
        return eta

    def image_and_slope(self, z: Array) -> tuple[Array, Array]:
        """Return eta and d eta / dz at probits of the base, of shape (n_rows, n_points)."""
        z = for_rows(z, self.n_rows)
        if self._few_rows:
            return self._pieces_of(z, slice(None)).value_and_slope(z)
        eta, slope = np.empty((2, *z.shape))
        for rows, pieces in self._located(z):
            eta[rows], slope[rows] = pieces.value_and_slope(z[rows])
        return eta, slope

    def inverse(self, image: Array) -> Array:
        """Return the probits of the base at which eta is reached, (n_rows, n_points)."""
        eta = for_rows(image, self.n_rows)
        k = self._pieces_reached(eta)
        pieces = self._few_pieces(k) if self._few(eta) else self._all_pieces.take(_numbers(k))
        return pieces.inverse(eta)

    @cached_property
    def _safe(self) -> np.ndarray:
        """Rows on whose paths the map increases for sure, so that knots need no repair."""
        spread = self.path.largest_spread()
        if spread is None:
            return np.zeros(self.n_rows, dtype=bool)
        return spread <= self.table.widest_safe_spread

    def _follow(self, k: np.ndarray) -> tuple[Array, Array, Array]:
        """Return h, the slope of eta and the target at knots number `k`, as the map has them."""
        table = self.table
        t, spread = self.path.trace(for_rows(of_rows(table.z, k), self.n_rows))
        h, slope, h_t = table.gradient(k, t)
        slope += 1.0
        slope *= of_rows(table.start_slope, k)
        with np.errstate(over="ignore", invalid="ignore"):
            # not a number in a hole of the base, where neighbouring knots decide
            slope += h_t * spread
        if k is ALL_KNOTS:
            slope[:, :: N_KNOTS - 1] = table.end_slopes
        else:
            below, above = table.end_slopes[:, :1], table.end_slopes[:, 1:]
            slope = np.where(k == 0, below, np.where(k == N_KNOTS - 1, above, slope))
        return h, slope, t

    @cached_property
    def _followed(self) -> tuple[Knots, Array]:
        """All knots, and the slopes that the map has there, rows × knots."""
        h, slope, t = self._follow(ALL_KNOTS)
        return Knots.increasing(self.table, h.T, t.T), slope

    @cached_property
    def _knots(self) -> Knots:
        if self._few_rows:
            return self._followed[0]
        table = self.table
        t = self.path.targets(for_rows(table.z, self.n_rows)).T
        return Knots.increasing(table, table.value(ALL_KNOTS.T, t), t)

    @cached_property
    def _all_pieces(self) -> Pieces:
        """The pieces between all knots, pieces × rows."""
        own = self._followed[1] if self._few_rows else self._follow(ALL_KNOTS)[1]
        slope = self._knots.slopes(np.ascontiguousarray(own.T))
        z = for_rows(self.table.z, self.n_rows).T
        eta = self._knots.eta
        return Pieces.between((z[:-1], z[1:]), (eta[:-1], eta[1:]), (slope[:-1], slope[1:]))

    @property
    def _few_rows(self) -> bool:
        """Whether all knots of all rows are had at once."""
        return self.n_rows * N_KNOTS <= _FEW_ETAS

    def _few(self, points: Array) -> bool:
        """Tell whether there are few points, of many rows."""
        return points.shape[1] < _FEW_POINTS and not self._few_rows

    def _few_pieces(self, k: np.ndarray) -> Pieces:
        """Return the pieces after knots `k`, without all other knots if no row is folded."""
        (h0, d0, _), (h1, d1, _) = self._follow(k), self._follow(k + 1)
        if self._safe.all():
            e0, e1 = h0 + of_rows(self.table.u, k), h1 + of_rows(self.table.u, k + 1)
        else:
            knots = self._knots
            e0, e1 = at_knots(knots.eta, k), at_knots(knots.eta, k + 1)
            d0, d1 = knots.slope(k, d0), knots.slope(k + 1, d1)
        ends = of_rows(self.table.z, k), of_rows(self.table.z, k + 1)
        return Pieces.between(ends, (e0, e1), (d0, d1))

    def _located(self, z: Array) -> Iterator[tuple[slice, Pieces]]:
        """Yield the pieces in which probits of the base lie, for some rows at a time."""
        if self._few(z):
            yield slice(None), self._few_pieces(self.table.piece(z, slice(None)))
            return
        n_rows = max(1, _BLOCK // max(1, z.shape[1]))
        for start in range(0, len(z), n_rows):
            rows = slice(start, start + n_rows)
            yield rows, self._pieces_of(z[rows], rows)

    def _pieces_of(self, z: Array, rows: slice) -> Pieces:
        """Return the pieces in which probits of some rows lie, from those of all knots."""
        numbers = self.table.piece(z, rows)
        numbers *= self.n_rows
        numbers += np.arange(self.n_rows)[rows, np.newaxis]
        return self._all_pieces.take(numbers)

    def _pieces_reached(self, eta: Array) -> np.ndarray:
        """Return the numbers of the pieces in which eta is reached."""
        inner = self._knots.eta[1:-1, :, np.newaxis]
        if eta.size <= _FEW_ETAS:
            return (eta >= inner).sum(axis=0, dtype=np.intp)
        k = np.zeros(eta.shape, dtype=np.intp)
        for knot in inner:
            k += eta >= knot
        return k
