"""Shift, factor, skewness and weight of the tails: four numbers that bend the probit."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from regcal._validation import Array
from regcal.maps.base import ProbitMap

# Straight beyond so many factors from the shift: few rows tell nothing of what is further out, and
# the slope stays above 0. A standard normal variable is further out once in 10^9 draws.
OUTER = 6.0


@dataclass(frozen=True)
class SinhArcsinhMap(ProbitMap):
    """The map ``sinh(tail * asinh(x) - skew)`` with ``x = (z - shift) / factor``.

    Of Jones and Pewsey (2009). Outcomes lean to the right if `skew` is positive, and their tails
    are heavier than the base's if `tail` is below 1. With a skew of 0 and a tail of 1 it is the
    line x. Beyond 6 factors from the shift it is straight.

    Examples
    --------
    >>> import numpy as np
    >>> from regcal.maps import SinhArcsinhMap
    >>> SinhArcsinhMap(shift=1.0, factor=2.0, skew=0.0, tail=1.0)(np.array([1.0, 5.0])).round(9)
    array([0., 2.])
    """

    shift: float
    factor: float
    skew: float
    tail: float

    @property
    def knots(self) -> Array:
        """Return where it becomes straight."""
        return self.shift + self.factor * np.array([-OUTER, OUTER])

    @property
    def smallest_slope(self) -> float:
        """The smallest slope, which is at an end, in the middle, or where it stops to fall."""
        return float(self.image_and_slope(np.append(self.knots, self._turn()))[1].min())

    def _turn(self) -> float:
        """Return where the slope is smallest inside of the knots, by bisection.

        The log slope log cosh(tail * a - skew) - log cosh(a), of a = asinh(x), turns from falling
        to rising once if tail > 1, and has no smallest value inside if not.
        """
        low, high = -np.arcsinh(OUTER), np.arcsinh(OUTER)
        for _ in range(60):
            middle = 0.5 * (low + high)
            rising = self.tail * np.tanh(self.tail * middle - self.skew) > np.tanh(middle)
            low, high = (low, middle) if rising else (middle, high)
        return float(self.shift + self.factor * np.sinh(low))

    def image_and_slope(self, z: Array) -> tuple[Array, Array]:
        """Return the image of each value, and the slope there."""
        x = (z - self.shift) / self.factor
        held = np.clip(x, -OUTER, OUTER)
        bent = self.tail * np.arcsinh(held) - self.skew
        slope = self.tail * np.cosh(bent) / np.sqrt(1.0 + held * held)
        image = np.sinh(bent)
        outside = x - held
        if outside.any():
            image += slope * outside
        return image, slope / self.factor

    def inverse(self, image: Array) -> Array:
        """Return the values that are mapped to `image`."""
        ends, slopes = self.image_and_slope(self.knots)
        held = np.clip(image, ends[0], ends[1])
        inside = np.sinh((np.arcsinh(held) + self.skew) / self.tail)
        outside = image - held
        return self.shift + self.factor * inside + outside / np.where(outside < 0, *slopes)
