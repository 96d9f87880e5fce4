"""Distributions whose probit has been mapped: the result of scaling and of PIT recalibration.

Depends on NumPy, SciPy, `_state` and `_validation` only.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol, Self

import numpy as np

from regcal._caching import WithoutCaches
from regcal._validation import Array
from regcal.distributions.base import Distribution, ProbitDistribution


class ProbitMap(Protocol):
    """A strictly increasing map of the real line onto itself, shared by all rows."""

    @property
    def knots(self) -> Array:
        """Points at which the map is not smooth."""
        ...

    def __call__(self, z: Array) -> Array:
        """Return the image of each value."""
        ...

    def image_and_slope(self, z: Array) -> tuple[Array, Array]:
        """Return the image of each value, and the slope there."""
        ...

    @property
    def smallest_slope(self) -> float:
        """The smallest slope anywhere."""
        ...

    def inverse(self, image: Array) -> Array:
        """Return the values that are mapped to `image`."""
        ...


@dataclass(frozen=True)
class ScaleMap:
    """The map ``z / factor``."""

    factor: float

    @property
    def knots(self) -> Array:
        """Return no points: a line is smooth."""
        return np.empty(0)

    def __call__(self, z: Array) -> Array:
        """Return the image of each value."""
        return z / self.factor

    def image_and_slope(self, z: Array) -> tuple[Array, Array]:
        """Return the image of each value, and the slope there."""
        return z / self.factor, np.full(z.shape, 1.0 / self.factor)

    @property
    def smallest_slope(self) -> float:
        """The slope everywhere."""
        return 1.0 / self.factor

    def inverse(self, image: Array) -> Array:
        """Return the values that are mapped to `image`."""
        return image * self.factor


@dataclass(frozen=True)
class PiecewiseMap(WithoutCaches):
    """A map whose slope runs linearly between the values given at both ends of an interval.

    Interval k reaches from ``knots[k]`` to ``knots[k + 1]``, with slope ``left[k]`` at its start
    and ``right[k]`` at its end; ``heights`` are the images of the knots. Beyond the outer knots
    the map is a line with slope ``left[0]`` or ``right[-1]``.
    """

    knots: Array
    heights: Array
    left: Array
    right: Array

    @classmethod
    def with_slopes(cls, knots: Array, slopes: Array, start: float) -> "PiecewiseMap":
        """Return the map with continuous slope through ``(knots[0], start)``."""
        steps = 0.5 * (slopes[1:] + slopes[:-1]) * np.diff(knots)
        heights = start + np.concatenate([[0.0], np.cumsum(steps)])
        return cls(knots, heights, slopes[:-1], slopes[1:])

    @classmethod
    def through(cls, knots: Array, heights: Array) -> "PiecewiseMap":
        """Return the straight pieces through ``(knots, heights)``, with slope 1 outside."""
        knots = np.concatenate([[knots[0] - 1.0], knots, [knots[-1] + 1.0]])
        heights = np.concatenate([[heights[0] - 1.0], heights, [heights[-1] + 1.0]])
        slopes = np.diff(heights) / np.diff(knots)
        slopes[[0, -1]] = 1.0
        return cls(knots, heights, slopes, slopes)

    @cached_property
    def _bends(self) -> Array:
        """Half the rate at which the slope changes in each interval."""
        return 0.5 * (self.right - self.left) / np.diff(self.knots)

    def __call__(self, z: Array) -> Array:
        """Return the image of each value."""
        return self.image_and_slope(z)[0]

    def image_and_slope(self, z: Array) -> tuple[Array, Array]:
        """Return the image of each value, and the slope there."""
        interval = np.searchsorted(self.knots[1:-1], z, side="right")
        held = np.clip(z, self.knots[0], self.knots[-1])
        inside = held - self.knots.take(interval)
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
        interval = np.searchsorted(self.heights[1:-1], image, side="right")
        bend = self._bends[interval]
        rise = np.clip(image, self.heights[0], self.heights[-1]) - self.heights[interval]
        slope = self.left[interval]
        # the stable form of the root of bend * s**2 + slope * s = rise
        root = np.sqrt(np.maximum(slope * slope + 4 * bend * rise, 0.0))
        inside = self.knots[interval] + 2 * rise / (slope + root)
        below = np.minimum(image - self.heights[0], 0.0)
        above = np.maximum(image - self.heights[-1], 0.0)
        return inside + below / self.left[0] + above / self.right[-1]


# Beyond these, probits cannot be told from probabilities that are 0 or 1 as floats.
_LAST_PROBITS = (-38.0, 8.2)


def densities_and_probits(base: Distribution, points: Array) -> tuple[Array, Array]:
    """Return log densities, and probits that are finite wherever there is density.

    Some bases lose a tail to rounding long before its density vanishes.
    """
    logpdf, z = base._logpdf(points), base._probit(points)
    lost = np.isinf(z) & np.isfinite(logpdf)
    if lost.any():
        z = np.where(lost, np.clip(z, *_LAST_PROBITS), z)
    return logpdf, z


class ProbitMapped(ProbitDistribution):
    """A base distribution whose probit ``z(t)`` is replaced by an increasing map of it.

    The CDF is ``Phi(map(z(t)))``. The limits are exact, and the density is positive wherever the
    base's is.

    Parameters
    ----------
    base : Distribution
        The distributions to change.
    mapping : ProbitMap
        A strictly increasing map of the real line onto itself.

    Examples
    --------
    >>> from regcal import Normal
    >>> from regcal.distributions import ProbitMapped, ScaleMap
    >>> ProbitMapped(Normal([5.0], [1.0]), ScaleMap(2.0)).std().round(6)
    array([2.])
    """

    def __init__(self, base: Distribution, mapping: ProbitMap) -> None:
        self.base = base
        self.mapping = mapping
        self._work_per_point = base._work_per_point + 2

    def __len__(self) -> int:
        return len(self.base)

    def _details(self) -> list[str]:
        return [self.base._kind(), type(self.mapping).__name__]

    def _take(self, rows: np.ndarray) -> Self:
        return type(self)(self.base._take(rows), self.mapping)

    def _probit(self, points: Array) -> Array:
        return self.mapping(self.base._probit(points))

    def _logslope(self, points: Array) -> Array:
        _, slope = self.mapping.image_and_slope(self.base._probit(points))
        return self.base._logslope(points) + np.log(slope)

    def _logpdf(self, points: Array) -> Array:
        # as a change of the base's density, so that its support is kept
        logpdf, z = densities_and_probits(self.base, points)
        image, slope = self.mapping.image_and_slope(z)
        with np.errstate(invalid="ignore"):
            change = 0.5 * (z - image) * (z + image) + np.log(slope)
        return np.where(np.isneginf(logpdf), -np.inf, logpdf + change)

    def _from_probit(self, probits: Array) -> Array:
        return self.base._from_probit(self.mapping.inverse(probits))

    def _largest_spread(self) -> Array | None:
        spread = self.base._largest_spread()
        return None if spread is None else spread / self.mapping.smallest_slope

    def _landmarks(self) -> Array | None:
        return self.base._landmarks()

    def _kinks(self) -> Array | None:
        base = self.base._kinks()
        if len(self.mapping.knots) == 0:
            return base
        own = self.base._from_probit(
            np.broadcast_to(self.mapping.knots, (len(self), len(self.mapping.knots)))
        )
        if base is None:
            return own
        return np.concatenate([own, np.broadcast_to(base, (len(self), base.shape[1]))], axis=1)
