"""Points that merge: what calibrators learn from, for a thousand rows and for a billion.

A calibrator names coordinates: what is looked at of a row, such as the probit of its outcome. Rows
become weighted points in them. Up to a number they stay as they are; beyond it, points that share
a cell are summed. Points of disjoint sets of rows add up.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Protocol, Self

import numpy as np

from regcal._validation import Array
from regcal._weighted import all_equal
from regcal.calibrators.held_out import HeldOut, that_count
from regcal.calibrators.targets import Targets, power_of_two

# So many points are kept as they are. They take 8 MB.
_MAX_POINTS = 2**18

# Parts are joined when there are so many of them.
_MAX_PARTS = 256

# So many times more cells than points are counted; beyond, points are sorted.
_SPARSE = 16

# Numbers are told apart between these sizes; smaller ones count as 0, larger ones as the largest.
SMALLEST, LARGEST = 2.0**-30, 2.0**20

# Cells per range of the targets, or up to twice as many, in which outcomes are observed. Far
# outcomes make the range wide: of 400 000 with the tails of Student's t of 3 degrees, 256 cells
# changed probabilities of gp-density by 0.06, 1024 by 0.007, these by 0.002.
OBSERVED_CELLS = 4096

# Probits are cut here, where their squares can still be summed.
_FARTHEST = 1e140

# Edges of cells are off the round numbers, at which many rows may lie.
_OFF_ROUND = 1.0123


@dataclass(frozen=True)
class Points:
    """Weighted points.

    Parameters
    ----------
    levels : ndarray of int, of shape (n_points,)
        The number of a point's threshold or segment; 0 where there are none.
    weights : ndarray of shape (n_points,)
    values : ndarray of shape (n_values, n_points)
        What is known of a point: the weighted means over its rows.
    """

    levels: np.ndarray
    weights: Array
    values: Array

    @classmethod
    def without_levels(cls, weights: Array, *values: Array) -> "Points":
        """Return points that belong to no threshold or segment."""
        return cls(np.zeros(len(weights), dtype=np.intp), weights, np.stack(values))

    @classmethod
    def of_pairs(cls, weights: Array, values: Array) -> "Points":
        """Return points of all pairs of a row and a level, values of (n_values, rows, levels)."""
        n_values, n_rows, n_levels = values.shape
        if all_equal(weights):
            of_pairs = np.broadcast_to(weights[0], n_rows * n_levels)  # takes no memory
        else:
            of_pairs = np.repeat(weights, n_levels)
        return cls(_levels_of_pairs(n_rows, n_levels), of_pairs, values.reshape(n_values, -1))

    @classmethod
    def joined(cls, parts: Sequence["Points"]) -> "Points":
        """Return the points of all parts."""
        if len(parts) == 1:
            return parts[0]
        return cls(
            np.concatenate([part.levels for part in parts]),
            np.concatenate([part.weights for part in parts]),
            np.concatenate([part.values for part in parts], axis=1),
        )

    def __len__(self) -> int:
        return len(self.weights)

    def scaled(self, factor: float) -> "Points":
        """Return the points with their weights multiplied."""
        return replace(self, weights=factor * self.weights)

    def where(self, wanted: np.ndarray) -> "Points":
        """Return some of the points."""
        return Points(self.levels[wanted], self.weights[wanted], self.values[:, wanted])

    def merged(self, cells: np.ndarray) -> "Points":
        """Return one point per level and cell, in order."""
        if len(self) == 0:
            return self
        first = int(cells.min())
        width = int(cells.max()) - first + 1
        keys = self.levels * width
        keys += cells
        keys -= first
        numbers = None
        # counting is faster than sorting unless nearly all counts are 0
        if keys.max() >= _SPARSE * len(keys):
            numbers, keys = np.unique(keys, return_inverse=True)
        counts = np.bincount(keys)
        kept = np.flatnonzero(counts > 0)
        found = kept if numbers is None else numbers
        if all_equal(self.weights):
            sums = [np.bincount(keys, row)[kept] for row in self.values]
            weights, means = self.weights[0] * counts[kept], np.stack(sums) / counts[kept]
        else:
            weights = np.bincount(keys, self.weights)[kept]
            sums = [np.bincount(keys, self.weights * row)[kept] for row in self.values]
            means = np.stack(sums) / weights
        return Points(found // width, weights, means)


@lru_cache(maxsize=1)
def _levels_of_pairs(n_rows: int, n_levels: int) -> np.ndarray:
    """Return the levels of all pairs; blocks of rows are of one size, and share them."""
    levels = np.broadcast_to(np.arange(n_levels), (n_rows, n_levels)).ravel()
    levels.flags.writeable = False
    return levels


class Coordinates(Protocol):
    """What is looked at of rows."""

    @property
    def thresholds(self) -> Array:
        """The targets at which rows are looked at; none where the outcome decides."""
        ...

    @property
    def points_per_row(self) -> int:
        """How many points a row becomes."""
        ...

    def observe(self, rows: HeldOut) -> Points:
        """Return the points of some rows."""
        ...

    def cells(self, points: Points) -> np.ndarray:
        """Return the number of each point's cell: points that share it may be merged."""
        ...

    def follows(self, other: Self) -> bool:
        """Return whether points that were observed in other coordinates are good in these."""
        ...


@dataclass(frozen=True)
class Cells:
    """Points of any number of rows, in bounded memory.

    Parameters
    ----------
    coordinates : Coordinates
    parts : tuple of Points
        They are merged into the first when there are twice as many as after the last time.
    merging : bool
        Whether there were so many points that they are merged.
    """

    coordinates: Coordinates
    parts: tuple[Points, ...] = ()
    merging: bool = False

    @classmethod
    def of(cls, coordinates: Coordinates, rows: HeldOut) -> "Cells":
        """Return the points of some rows."""
        return cls(coordinates).counted(rows)

    def counted(self, rows: HeldOut) -> "Cells":
        """Return these points and those of more rows."""
        per_row = self.coordinates.points_per_row
        block = max(1, _MAX_POINTS // (per_row * max(1, rows.dist._work_per_point)))
        total, n_rows = self, len(rows)
        for start in range(0, n_rows, block):
            some = rows if block >= n_rows else rows.take(slice(start, start + block))
            total = total._with([self.coordinates.observe(some)])
        return total

    def __add__(self, other: "Cells") -> "Cells":
        return self._with(other.parts)

    def _with(self, more: Sequence[Points]) -> "Cells":
        grown = replace(self, parts=(*self.parts, *map(self._merged, more)))
        most = max(_MAX_POINTS, 2 * len(self.parts[0]) if self.merging and self.parts else 0)
        if sum(map(len, grown.parts)) > most:
            grown = replace(grown, merging=True)
        elif len(grown.parts) <= _MAX_PARTS:
            return grown
        return replace(grown, parts=(grown.points(),))

    def _merged(self, points: Points) -> Points:
        return points.merged(self.coordinates.cells(points)) if self.merging else points

    def faded(self, factor: float) -> "Cells":
        """Return the points with their weights multiplied, without those that hardly count."""
        points = self.points().scaled(factor)
        return replace(self, parts=(points.where(that_count(points.weights)),))

    def moved(self, coordinates: Coordinates, rows: HeldOut) -> "Cells":
        """Return the points in other coordinates; where these ask for more, rows stand for all."""
        if coordinates.follows(self.coordinates):
            return replace(self, coordinates=coordinates)
        return Cells(coordinates, merging=self.merging).counted(rows)

    def points(self) -> Points:
        """Return the points in one."""
        return self._merged(Points.joined(self.parts))


def number_cells(x: Array, bits: int) -> np.ndarray:
    """Return numbers of cells that are as narrow as 2**-bits of their distance from 0.

    A cell holds the numbers that share their sign, exponent and leading bits, so that results are
    equally good whether a base is a thousand times too narrow or too wide.
    """
    size = np.abs(x)
    size *= _OFF_ROUND
    cells = np.clip(size, SMALLEST, LARGEST, out=size).view(np.int64)
    cells >>= 52 - bits
    cells -= np.float64(SMALLEST).view(np.int64) >> (52 - bits)
    cells ^= x.view(np.int64) >> 63  # -1 - cells where the sign bit is set
    return cells


@dataclass(frozen=True)
class OutcomeCoordinates:
    """The probit z of an exact outcome, and its square. Impossible ones are left out."""

    thresholds = np.empty(0)
    points_per_row = 1

    def observe(self, rows: HeldOut) -> Points:
        """Return a point per possible outcome."""
        z, weights = rows.z, rows.weights
        possible = np.isfinite(z) & rows.exact
        if not possible.all():
            z, weights = z[possible], weights[possible]
        values = np.empty((2, len(z)))
        np.clip(z, -_FARTHEST, _FARTHEST, out=values[0])
        np.square(values[0], out=values[1])
        return Points(np.zeros(len(z), dtype=np.intp), weights, values)

    def cells(self, points: Points) -> np.ndarray:
        """Return cells as wide as 1 / 4096 of the probit."""
        return number_cells(points.values[0], 12)

    def follows(self, other: "OutcomeCoordinates") -> bool:
        """Return True: the probit does not depend on other rows."""
        return True


@dataclass(frozen=True)
class TargetCoordinates:
    """Coordinates one of which is the target.

    Parameters
    ----------
    width : float
        Of the cells along the targets, a power of two, so that they are joined two by two as the
        range grows, and the order of rows does not matter; 0 if all targets are equal.
    """

    width: float

    thresholds = np.empty(0)
    points_per_row = 1

    @classmethod
    def over(cls, targets: Targets) -> Self:
        """Return coordinates whose cells suit the range of targets."""
        return cls(power_of_two((targets.high - targets.low) / OBSERVED_CELLS))

    def follows(self, other: Self) -> bool:
        """Return True: wider cells are unions of narrower ones."""
        return True


@dataclass(frozen=True)
class IntervalCoordinates(TargetCoordinates):
    """Probit and target at both ends of what was seen of an outcome that is not exact.

    Impossible outcomes are left out.
    """

    def observe(self, rows: HeldOut) -> Points:
        """Return a point per outcome: z and t at the lower, then at the upper end."""
        if rows.exact.all():
            return NO_INTERVALS
        some, low, high = rows.intervals
        used = low < high
        values = (low, some.seen.lower, high, some.seen.upper)
        return Points.without_levels(some.weights[used], *(value[used] for value in values))

    def cells(self, points: Points) -> np.ndarray:
        """Return cells of all four; ends at infinity have cells of their own."""
        low, t_low, high, t_high = points.values
        places = (
            number_cells(low, 5),
            number_cells(high, 5),
            target_cells(t_low, self.width),
            target_cells(t_high, self.width),
        )
        return joint_cells(places)


# What there is where all outcomes are exact.
NO_INTERVALS = Points.without_levels(np.empty(0), *np.empty((4, 0)))


def target_cells(t: Array, width: float) -> Array:
    """Return numbers of cells of a width that is a power of two, or 0; infinite t are in any."""
    finite = np.isfinite(t)
    if width == 0 or not finite.any():
        return np.zeros(len(t))
    return np.floor(np.where(finite, t, t[finite].min()) / width)


def joint_cells(places: Sequence[np.ndarray]) -> np.ndarray:
    """Return one number for the numbers of cells in several directions."""
    key = np.zeros(len(places[0]), dtype=np.int64)
    if len(key):
        for place in places:
            number = (place - place.min()).astype(np.int64)
            key = key * (number.max() + 1) + number
    return key
