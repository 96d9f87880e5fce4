"""What a map offers, and what it asks of the rows that it is applied to."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, Self

import numpy as np

from regcal._validation import Array
from regcal.maps.members import Members

# Images between which integrals along a curve have a panel: with three nodes each, moments of
# smooth rows are right to 1e-8. Beyond the outermost there is a probability of 1e-38.
_PANELS = np.array(
    [0.3, 0.6, 0.9, 1.2, 1.5, 1.8, 2.1, 2.5, 2.9, 3.3, 3.75, 4.25, 4.75, 5.5, 6.25, 7, 8, 9, 11, 13]
)
PANELS = np.concatenate([-_PANELS[::-1], [0.0], _PANELS])

# Up to so many rows, a copy takes less time than a view that repeats one: 0.4 instead of 2 us.
_FEW_ROWS = 8


def for_rows(values: np.ndarray, n_rows: int) -> np.ndarray:
    """Return values of one or all rows with a row for each, without a copy of many."""
    if len(values) == n_rows:
        return values
    if n_rows <= _FEW_ROWS:
        return values.repeat(n_rows, axis=0)
    return np.broadcast_to(values, (n_rows, values.shape[1]))


class Path(Protocol):
    """Rows as a map sees them: the target t of each row as a function of its probit z."""

    def __len__(self) -> int:
        """Return the number of rows."""
        ...

    @property
    def work_per_point(self) -> int:
        """How many temporary values one point costs."""
        ...

    def targets(self, z: Array) -> Array:
        """Return t at probits of shape (n_rows, n_points)."""
        ...

    def trace(self, z: Array) -> tuple[Array, Array]:
        """Return t and dt / dz at probits of shape (n_rows, n_points)."""
        ...

    def largest_spread(self) -> Array | None:
        """Return a bound on dt / dz per row, or None where none is known."""
        ...


class Curve(Protocol):
    """Strictly increasing functions of the probit, one per row or one for all rows."""

    @property
    def knots(self) -> Array:
        """Probits at which the curves are not smooth, (n_knots,) or (n_rows, n_knots)."""
        ...

    @property
    def smallest_slope(self) -> float | Array | None:
        """The smallest slope anywhere or of each row, or None if it is not known."""
        ...

    def __call__(self, z: Array) -> Array:
        """Return the image of each value."""
        ...

    def image_and_slope(self, z: Array) -> tuple[Array, Array]:
        """Return the image of each value, and the slope there."""
        ...

    def inverse(self, image: Array) -> Array:
        """Return the values that are mapped to `image`."""
        ...

    def panels(self) -> Array:
        """Return probits, (n_rows or 1, n_edges), that reach images of -13 and 13.

        Between two of them curves are smooth, and their images close.
        """
        ...

    def row_work(self, n_points: int) -> int:
        """Return how many temporary values a row with so many points costs, without the base."""
        ...


def log_change(curve: Curve, z: Array) -> Array:
    """Return the log of what a curve multiplies the density by, where the base has probits z."""
    eta, slope = curve.image_and_slope(z)
    with np.errstate(invalid="ignore", over="ignore"):
        return 0.5 * (z - eta) * (z + eta) + np.log(slope)


class ProbitMap(ABC):
    """A strictly increasing map of the real line onto itself, the same for all rows.

    Examples
    --------
    >>> import numpy as np
    >>> from regcal.maps import ScaleMap
    >>> halved = ScaleMap(2.0)
    >>> halved(np.array([1.0, 3.0])), halved.inverse(np.array([0.5]))
    (array([0.5, 1.5]), array([1.]))
    """

    @property
    @abstractmethod
    def knots(self) -> Array:
        """Points at which the map is not smooth."""

    @property
    @abstractmethod
    def smallest_slope(self) -> float:
        """The smallest slope anywhere."""

    def __call__(self, z: Array) -> Array:
        """Return the image of each value."""
        return self.image_and_slope(z)[0]

    @abstractmethod
    def image_and_slope(self, z: Array) -> tuple[Array, Array]:
        """Return the image of each value, and the slope there."""

    @abstractmethod
    def inverse(self, image: Array) -> Array:
        """Return the values that are mapped to `image`."""

    def panels(self) -> Array:
        """Return probits, (1, n_edges), between which integrals along the map have a panel."""
        return np.sort(np.concatenate([self.inverse(PANELS), self.knots]))[np.newaxis, :]

    def along(self, path: Path) -> Curve:
        """Return itself: every row has the same curve."""
        return self

    def take(self, rows: np.ndarray) -> Self:
        """Return itself: it holds nothing of single rows."""
        return self

    @classmethod
    def joined(cls, maps: Sequence[ProbitMap], members: Members) -> Any:
        """Return one map whose rows have several maps."""
        return JoinedMaps(tuple(maps), members)

    def row_work(self, n_points: int) -> int:
        """Return how many temporary values a row with so many points costs."""
        return 2 * n_points


@dataclass(frozen=True)
class JoinedMaps:
    """Several maps, each for the rows that are its own."""

    maps: tuple[ProbitMap, ...]
    members: Members

    def take(self, rows: np.ndarray) -> Self:
        """Return the maps of some rows."""
        return type(self)(self.maps, self.members.take(rows))

    def along(self, path: Path) -> Self:
        """Return itself: maps do not depend on targets."""
        return self

    @property
    def knots(self) -> Array:
        """Points at which maps are not smooth, (n_rows, n_knots)."""
        return self._of_rows([one.knots for one in self.maps])

    @property
    def smallest_slope(self) -> Array:
        """The smallest slope of each row."""
        return self.members.repeated([one.smallest_slope for one in self.maps])

    def __call__(self, z: Array) -> Array:
        """Return the image of each value, (n_rows, n_points)."""
        return self.image_and_slope(z)[0]

    def image_and_slope(self, z: Array) -> tuple[Array, Array]:
        """Return the image of each value, and the slope there."""
        z = for_rows(z, len(self.members))
        image, slope = np.empty((2, *z.shape))
        for one, rows in self.members.each(self.maps):
            image[rows], slope[rows] = one.image_and_slope(z[rows])
        return image, slope

    def inverse(self, image: Array) -> Array:
        """Return the values that are mapped to `image`."""
        image = for_rows(image, len(self.members))
        z = np.empty(image.shape)
        for one, rows in self.members.each(self.maps):
            z[rows] = one.inverse(image[rows])
        return z

    def panels(self) -> Array:
        """Return probits, (n_rows, n_edges), between which integrals have a panel."""
        return self._of_rows([one.panels()[0] for one in self.maps])

    def _of_rows(self, places: list[Array]) -> Array:
        """Return places of each row; those with fewer than others repeat their last."""
        width = max(map(len, places))
        if any(len(one) < width for one in places):
            places = [np.pad(one, (0, width - len(one)), "edge") for one in places]
        return self.members.repeated(places)

    def row_work(self, n_points: int) -> int:
        """Return how many temporary values a row with so many points costs."""
        return 2 * n_points


@dataclass(frozen=True)
class Chain:
    """A map of all rows, and the curves that follow it."""

    first: ProbitMap
    second: Curve

    @property
    def knots(self) -> Array:
        """Probits at which either is not smooth."""
        return np.concatenate([self.first.knots, self.first.inverse(self.second.knots)])

    @property
    def smallest_slope(self) -> float | Array | None:
        """The smallest slope, if it is known."""
        later = self.second.smallest_slope
        return None if later is None else self.first.smallest_slope * later

    def __call__(self, z: Array) -> Array:
        """Return the image of each value."""
        return self.second(self.first(z))

    def image_and_slope(self, z: Array) -> tuple[Array, Array]:
        """Return the image of each value, and the slope there."""
        middle, slope = self.first.image_and_slope(z)
        image, later = self.second.image_and_slope(middle)
        return image, slope * later

    def inverse(self, image: Array) -> Array:
        """Return the values that are mapped to `image`."""
        return self.first.inverse(self.second.inverse(image))

    def panels(self) -> Array:
        """Return probits between which integrals along the curves have a panel."""
        later = self.first.inverse(self.second.panels())
        own = np.clip(self.first.knots, later[:, :1], later[:, -1:])
        return np.sort(np.concatenate([later, own], axis=1), axis=1)

    def row_work(self, n_points: int) -> int:
        """Return how many temporary values a row with so many points costs."""
        return self.first.row_work(n_points) + self.second.row_work(n_points)


@dataclass(frozen=True)
class MappedPath:
    """A path whose probits have been mapped."""

    path: Path
    mapping: ProbitMap

    def __len__(self) -> int:
        return len(self.path)

    @property
    def work_per_point(self) -> int:
        """How many temporary values one point costs."""
        return self.path.work_per_point

    def targets(self, z: Array) -> Array:
        """Return t at mapped probits."""
        return self.path.targets(self.mapping.inverse(z))

    def trace(self, z: Array) -> tuple[Array, Array]:
        """Return t and its slope at mapped probits."""
        own = self.mapping.inverse(z)
        targets, spread = self.path.trace(own)
        with np.errstate(over="ignore"):
            return targets, spread / self.mapping.image_and_slope(own)[1]

    def largest_spread(self) -> Array | None:
        """Return a bound on the slope, or None where none is known."""
        spread = self.path.largest_spread()
        return None if spread is None else spread / self.mapping.smallest_slope
