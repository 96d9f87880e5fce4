"""Maps whose slope runs linearly between knots."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from regcal._caching import WithoutCaches
from regcal._validation import Array
from regcal.maps.base import ProbitMap


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

    def image_and_slope(self, z: Array) -> tuple[Array, Array]:
        """Return the image of each value, and the slope there."""
        interval = self.edges[1:-1].searchsorted(z, side="right")
        held = np.minimum(np.maximum(z, self.edges[0]), self.edges[-1])
        inside = held - self.edges.take(interval)
        rise = self._bends.take(interval)
        rise *= inside
        slope = self.left.take(interval)
        rise += slope
        slope += 2.0 * (rise - slope)
        rise *= inside
        rise += self.heights.take(interval)
        outside = z - held
        if outside.any():
            rise += slope * outside
        return rise, slope

    @property
    def smallest_slope(self) -> float:
        """The smallest slope, which is at a knot."""
        return float(min(self.left.min(), self.right.min()))

    def inverse(self, image: Array) -> Array:
        """Return the values that are mapped to `image`."""
        interval = self.heights[1:-1].searchsorted(image, side="right")
        held = np.minimum(np.maximum(image, self.heights[0]), self.heights[-1])
        rise, slope = held - self.heights.take(interval), self.left.take(interval)
        # the stable form of the root of bend * s**2 + slope * s = rise
        root = np.sqrt(np.maximum(slope * slope + 4 * self._bends.take(interval) * rise, 0.0))
        inside = self.edges.take(interval) + 2 * rise / (slope + root)
        outside = image - held
        if outside.any():
            inside += outside / np.where(outside < 0, self.left[0], self.right[-1])
        return inside
