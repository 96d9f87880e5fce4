"""Points that merge: what calibrators learn from, for a thousand rows and for a billion.

A calibrator names coordinates: what is looked at of a row, such as the probit of its outcome. Rows
become weighted points in them. Up to a number they stay as they are; beyond it, points that share
a cell are summed. Points of disjoint sets of rows add up.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol, Self

import numpy as np

from regcal._validation import Array
from regcal.calibrators.held_out import HeldOut

# So many points are kept as they are. They take 8 MB.
_MAX_POINTS = 2**18

# Numbers are told apart between these sizes; smaller ones count as 0, larger ones as the largest.
SMALLEST, LARGEST = 2.0**-30, 2.0**20

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

    def merged(self, cells: np.ndarray) -> "Points":
        """Return one point per level and cell, in order."""
        if len(self) == 0:
            return self
        first = int(cells.min())
        width = int(cells.max()) - first + 1
        keys = self.levels * width + (cells - first)
        lowest = int(keys.min())
        keys -= lowest
        n_keys = int(keys.max()) + 1
        if n_keys <= 4 * len(keys):
            weights = np.bincount(keys, self.weights, n_keys).astype(float)
            found = np.flatnonzero(weights)
            weights = weights[found]
        else:
            found, keys = np.unique(keys, return_inverse=True)
            n_keys, weights = len(found), np.bincount(keys, self.weights).astype(float)
        sums = [np.bincount(keys, self.weights * row, n_keys) for row in self.values]
        kept = found if len(sums[0]) > len(found) else slice(None)
        values = np.stack([row[kept] for row in sums]) / weights
        return Points((found + lowest) // width, weights, values)


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
        A part is less than half as large as the one before it, so that a small batch costs little.
    merging : bool
        Whether there were so many points that they are merged.
    """

    coordinates: Coordinates
    parts: tuple[Points, ...] = ()
    merging: bool = False

    def counted(self, rows: HeldOut) -> "Cells":
        """Return these points and those of more rows."""
        per_row = self.coordinates.points_per_row
        block = max(1, _MAX_POINTS // (per_row * max(1, rows.dist._work_per_point)))
        total = self
        for start in range(0, len(rows), block):
            some = rows if block >= len(rows) else rows.take(slice(start, start + block))
            points = self.coordinates.observe(some)
            total = total._with([points])
        return total

    def __add__(self, other: "Cells") -> "Cells":
        return self._with(other.parts)

    def _with(self, more: Sequence[Points]) -> "Cells":
        n_points = sum(map(len, (*self.parts, *more)))
        if not self.merging and n_points > _MAX_POINTS:
            return replace(self, parts=(), merging=True)._with((*self.parts, *more))
        parts = list(self.parts)
        for part in more:
            parts.append(self._merged(part))
            while len(parts) > 1 and 2 * len(parts[-1]) >= len(parts[-2]):
                parts[-2:] = [self._merged(Points.joined(parts[-2:]))]
        return replace(self, parts=tuple(parts))

    def _merged(self, points: Points) -> Points:
        return points.merged(self.coordinates.cells(points)) if self.merging else points

    def scaled(self, factor: float) -> "Cells":
        """Return the points with their weights multiplied."""
        return replace(self, parts=tuple(part.scaled(factor) for part in self.parts))

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
    size = np.clip(np.abs(x) * _OFF_ROUND, SMALLEST, LARGEST).view(np.int64) >> (52 - bits)
    size -= np.float64(SMALLEST).view(np.int64) >> (52 - bits)
    return np.where(x < 0, -1 - size, size)


@dataclass(frozen=True)
class OutcomeCoordinates:
    """The probit z of the outcome, and its square. Impossible outcomes are left out."""

    thresholds = np.empty(0)
    points_per_row = 1

    def observe(self, rows: HeldOut) -> Points:
        """Return a point per possible outcome."""
        possible = np.isfinite(rows.z)
        z, weights = rows.z[possible], rows.weights[possible]
        return Points.without_levels(weights, z, z * z)

    def cells(self, points: Points) -> np.ndarray:
        """Return cells as wide as 1 / 4096 of the probit."""
        return number_cells(points.values[0], 12)

    def follows(self, other: "OutcomeCoordinates") -> bool:
        """Return True: the probit does not depend on other rows."""
        return True
