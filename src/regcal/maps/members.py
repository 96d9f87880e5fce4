"""Which rows of a batch belong to which of the parts that it was joined from."""

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from operator import is_
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import ArrayLike

from regcal._validation import Array

Part = TypeVar("Part")
Whole = TypeVar("Whole")


class Joints:
    """What parts were joined to last, for whoever joins the same ones again and again.

    benchmarks/latency.py, one row: without them, quantiles of averaged gpc take 11.3 instead of
    10.3 times the base model's prediction, those of an averaged stack 18.5 instead of 16.8.
    """

    def __init__(self) -> None:
        self._known: dict[Hashable, tuple[Sequence[Any], Any]] = {}

    @staticmethod
    def of(owner: Any) -> "Joints":
        """Return those of whoever has the parts, for as long as it lives."""
        return _OF_OWNERS.setdefault(owner, Joints())

    def once(self, kind: Hashable, parts: Sequence[Any], join: Callable[[], Whole]) -> Whole:
        """Return what `join` makes of parts, or made of the very same before."""
        known = self._known.get(kind)
        if known is None or len(known[0]) != len(parts) or not all(map(is_, known[0], parts)):
            known = self._known[kind] = parts, join()
        whole: Whole = known[1]
        return whole


_OF_OWNERS: WeakKeyDictionary[Any, Joints] = WeakKeyDictionary()


@dataclass(frozen=True)
class Members:
    """Parts of equal length in one batch, below each other, or some of their rows.

    Parameters
    ----------
    count : int
        The number of parts.
    n_each : int
        The number of rows of each.
    rows : ndarray of int, optional
        Which of all rows are in the batch; all by default.
    joints : Joints
        What such parts were joined to before.

    Examples
    --------
    >>> from regcal.maps.members import Members
    >>> members = Members(2, n_each=3)
    >>> members.repeated([5.0, 7.0])
    array([5., 5., 5., 7., 7., 7.])
    """

    count: int
    n_each: int
    rows: np.ndarray | None = None
    joints: Joints = field(default_factory=Joints, repr=False, compare=False)

    def __len__(self) -> int:
        return self.count * self.n_each if self.rows is None else len(self.rows)

    def take(self, rows: np.ndarray) -> "Members":
        """Return the members of some rows."""
        own = rows if self.rows is None else self.rows[rows]
        return Members(self.count, self.n_each, own, self.joints)

    @cached_property
    def _part(self) -> np.ndarray:
        """The number of the part that each row belongs to."""
        rows = np.arange(len(self)) if self.rows is None else self.rows
        return rows // self.n_each

    def each(self, parts: Sequence[Part]) -> Iterator[tuple[Part, slice | np.ndarray]]:
        """Yield the parts with their rows."""
        for k, part in enumerate(parts):
            if self.rows is None:
                yield part, slice(k * self.n_each, (k + 1) * self.n_each)
            else:
                yield part, np.flatnonzero(self._part == k)

    def stacked(self, arrays: Sequence[Array]) -> Array:
        """Return an array for each row, from one of the same shape for each part."""
        return self.repeated(np.concatenate(arrays).reshape(self.count, *arrays[0].shape))

    def repeated(self, values: ArrayLike) -> Array:
        """Return a row for each row, from one for each part."""
        array = np.asarray(values, dtype=float)
        return array if self.rows is None and self.n_each == 1 else array[self._part]
