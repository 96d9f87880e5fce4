"""Maps whose slope runs linearly between knots."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from regcal._caching import WithoutCaches
from regcal._validation import Array
from regcal.maps.base import JoinedMaps, ProbitMap
from regcal.maps.members import Members
from regcal.maps.spline import count_reached

# An infinite value has this distance, so that what is no bend stays none.
_FARTHEST = 1e300


@dataclass(frozen=True)
class PiecewiseMap(WithoutCaches, ProbitMap):
    """A map whose slope runs linearly between the values given at both ends of an interval.

    Interval k reaches from ``edges[k]`` to ``edges[k + 1]``, with slope ``left[k]`` at its start
    and ``right[k]`` at its end; ``heights`` are the images of the edges. Beyond the outer edges
    the map is a line with slope ``left[0]`` or ``right[-1]``.

    Examples
    --------
    >>> import numpy as np
    >>> from regcal.maps import PiecewiseMap
    >>> bent = PiecewiseMap.with_slopes(np.array([0.0, 1.0]), np.array([1.0, 3.0]), start=0.0)
    >>> bent(np.array([-1.0, 1.0, 2.0]))
    array([-1.,  2.,  5.])
    """

    edges: Array
    heights: Array
    left: Array
    right: Array

    @classmethod
    def with_slopes(cls, knots: Array, slopes: Array, start: float) -> PiecewiseMap:
        """Return the map with continuous slope through ``(knots[0], start)``."""
        steps = 0.5 * (slopes[1:] + slopes[:-1]) * np.diff(knots)
        heights = start + np.concatenate([[0.0], np.cumsum(steps)])
        return cls(knots, heights, slopes[:-1], slopes[1:])

    @classmethod
    def through(cls, knots: Array, heights: Array) -> PiecewiseMap:
        """Return the straight pieces through ``(knots, heights)``, with slope 1 outside."""
        knots = np.concatenate([[knots[0] - 1.0], knots, [knots[-1] + 1.0]])
        heights = np.concatenate([[heights[0] - 1.0], heights, [heights[-1] + 1.0]])
        slopes = np.diff(heights) / np.diff(knots)
        slopes[[0, -1]] = 1.0
        return cls(knots, heights, slopes, slopes)

    @property
    def knots(self) -> Array:
        """The edges of the intervals."""
        return self.edges

    @cached_property
    def _bends(self) -> Array:
        """Half the rate at which the slope changes in each interval."""
        return 0.5 * (self.right - self.left) / np.diff(self.edges)

    @cached_property
    def table(self) -> Array:
        """Starts, heights, slopes and bends of all pieces and of the lines beyond, as columns."""
        table = np.zeros((4, len(self.edges) + 1))
        table[0, 0], table[0, 1:] = self.edges[0], self.edges
        table[1, 0], table[1, 1:] = self.heights[0], self.heights
        table[2, 0], table[2, 1:-1], table[2, -1] = self.left[0], self.left, self.right[-1]
        table[3, 1:-1] = self._bends
        return table

    def image_and_slope(self, z: Array) -> tuple[Array, Array]:
        """Return the image of each value, and the slope there."""
        pieces = self.table.take(self.edges.searchsorted(z, side="right"), axis=1)
        return _image_and_slope(pieces, z)

    @property
    def smallest_slope(self) -> float:
        """The smallest slope, which is at a knot."""
        return float(min(self.left.min(), self.right.min()))

    def inverse(self, image: Array) -> Array:
        """Return the values that are mapped to `image`."""
        pieces = self.table.take(self.heights.searchsorted(image, side="right"), axis=1)
        return _inverse(pieces, image)

    @classmethod
    def joined(cls, maps: Sequence[Any], members: Members) -> Any:
        """Return one map whose rows have several maps; with as many pieces each, it is quick."""
        alike = len({len(one.edges) for one in maps}) == 1
        return (JoinedPieces if alike else JoinedMaps)(tuple(maps), members)


class JoinedPieces(JoinedMaps):
    """Several maps with the same number of pieces, each for the rows that are its own."""

    @cached_property
    def _table(self) -> Array:
        """Numbers of all pieces, (4, n_rows, n_edges + 1)."""
        tables = [one.table for one in self.maps]  # type: ignore[attr-defined]
        return np.ascontiguousarray(self.members.stacked(tables).swapaxes(0, 1))

    def image_and_slope(self, z: Array) -> tuple[Array, Array]:
        """Return the image of each value, and the slope there."""
        return _image_and_slope(self._pieces(0, z), z)

    def inverse(self, image: Array) -> Array:
        """Return the values that are mapped to `image`."""
        return _inverse(self._pieces(1, image), image)

    def _pieces(self, kind: int, values: Array) -> Array:
        """Return the pieces in which starts, or heights, are reached."""
        table = self._table
        _, n_rows, n_columns = table.shape
        numbers = count_reached(table[kind, :, 1:], values)
        numbers += np.arange(0, n_rows * n_columns, n_columns)[:, np.newaxis]
        return table.reshape(4, -1).take(numbers, axis=1)


def _image_and_slope(pieces: Array, z: Array) -> tuple[Array, Array]:
    """Return images and slopes on pieces, of which infinite ones have no bend."""
    start, height, slope, bend = pieces
    inside = z - start
    rise = bend * np.minimum(np.maximum(inside, -_FARTHEST), _FARTHEST)
    image = rise + slope
    image *= inside
    image += height
    rise *= 2.0
    rise += slope
    return image, rise


def _inverse(pieces: Array, image: Array) -> Array:
    """Return where images are reached on pieces, of which infinite ones have no bend."""
    start, height, slope, bend = pieces
    rise = image - height
    # the stable form of the root of bend * s**2 + slope * s = rise
    root = 4.0 * bend * np.minimum(np.maximum(rise, -_FARTHEST), _FARTHEST)
    root += slope * slope
    inside = 2.0 * rise / (slope + np.sqrt(np.maximum(root, 0.0)))
    inside += start
    return inside
