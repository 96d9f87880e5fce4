"""Division of the probit by a factor."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from regcal._validation import Array
from regcal.maps.base import ProbitMap
from regcal.maps.lines import RowLines
from regcal.maps.members import Members


@dataclass(frozen=True)
class ScaleMap(ProbitMap):
    """The map ``z / factor``; with a factor of 1 it changes nothing.

    Examples
    --------
    >>> import numpy as np
    >>> from regcal.maps import ScaleMap
    >>> ScaleMap(2.0)(np.array([1.0]))
    array([0.5])
    """

    factor: float

    @classmethod
    def joined(cls, maps: Sequence[Any], members: Members) -> RowLines:
        """Return the line of each row."""
        factors = members.repeated([one.factor for one in maps])
        return RowLines(np.zeros(len(members)), factors)

    @property
    def knots(self) -> Array:
        """Return no points: a line is smooth."""
        return np.empty(0)

    @property
    def smallest_slope(self) -> float:
        """The slope everywhere."""
        return 1.0 / self.factor

    def __call__(self, z: Array) -> Array:
        """Return the image of each value."""
        return z / self.factor

    def image_and_slope(self, z: Array) -> tuple[Array, Array]:
        """Return the image of each value, and the slope there."""
        return z / self.factor, np.full(z.shape, 1.0 / self.factor)

    def inverse(self, image: Array) -> Array:
        """Return the values that are mapped to `image`."""
        return image * self.factor


# The map that changes nothing.
IDENTITY = ScaleMap(1.0)
