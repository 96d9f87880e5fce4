"""Lines of the probit, one per row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from regcal._validation import Array
from regcal.maps.base import PANELS, Path
from regcal.maps.members import Members


@dataclass(frozen=True)
class RowLines:
    """The maps ``(z - shift) / factor``, with numbers of their own for each row.

    Parameters
    ----------
    shift, factor : ndarray of shape (n_rows,)
        The factors are positive.

    Examples
    --------
    >>> import numpy as np
    >>> from regcal import Normal
    >>> from regcal.distributions import Transformed
    >>> from regcal.maps import RowLines
    >>> lines = RowLines(shift=np.array([1.0, 0.0]), factor=np.array([1.0, 3.0]))
    >>> moved = Transformed(Normal([5.0, 5.0], [2.0, 2.0]), lines)
    >>> moved.mean().round(6), moved.std().round(6)
    (array([7., 5.]), array([2., 6.]))
    """

    shift: Array
    factor: Array

    @property
    def knots(self) -> Array:
        """Return no points: lines are smooth."""
        return np.empty(0)

    @property
    def smallest_slope(self) -> Array:
        """The slope of each line."""
        return 1.0 / self.factor

    def take(self, rows: np.ndarray) -> RowLines:
        """Return the lines of some rows."""
        return RowLines(self.shift[rows], self.factor[rows])

    @classmethod
    def joined(cls, maps: Sequence[RowLines], members: Members) -> RowLines:
        """Return the lines of several batches below each other."""
        shift, factor = ([getattr(one, name) for one in maps] for name in ("shift", "factor"))
        return cls(np.concatenate(shift), np.concatenate(factor))

    def along(self, path: Path) -> RowLines:
        """Return itself: lines do not depend on targets."""
        return self

    def __call__(self, z: Array) -> Array:
        """Return the image of each value, (n_rows, n_points)."""
        return (z - self.shift[:, np.newaxis]) / self.factor[:, np.newaxis]

    def image_and_slope(self, z: Array) -> tuple[Array, Array]:
        """Return the image of each value, and the slope there."""
        image = self(z)
        return image, np.broadcast_to(self.smallest_slope[:, np.newaxis], image.shape)

    def inverse(self, image: Array) -> Array:
        """Return the values that are mapped to `image`."""
        return self.shift[:, np.newaxis] + self.factor[:, np.newaxis] * image

    def panels(self) -> Array:
        """Return probits, (n_rows, n_edges), between which integrals have a panel."""
        return self.inverse(PANELS)

    def row_work(self, n_points: int) -> int:
        """Return how many temporary values a row with so many points costs."""
        return 2 * n_points
