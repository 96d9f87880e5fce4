"""Checks of single values from a file: numbers, arrays, classes."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

# Tables of maps end long before.
FARTHEST_PROBIT = 100.0

# Probits that are shifted so far still have ten digits.
LARGEST_SHIFT = 1e6

# What learners find is taken as it is, or a little more or less of it.
LARGEST_SHARE = 1e3

# Factors of probits have logs that are smaller.
LARGEST_LOG = 100.0

# Squares of what maps are made of are numbers still.
FARTHEST = 1e100

# No axis of a basis, no grid and no ensemble has more parts.
MANY = 10**6

_LARGEST_INTEGER = 2**63 - 1

Sizes = dict[str, int]
Check = Callable[[Any, Sizes], bool]


def no_nan(value: Any, sizes: Sizes) -> bool:
    if isinstance(value, np.ndarray) and value.dtype.kind == "f":
        return not np.isnan(value).any()
    return True


def is_number(value: Any) -> bool:
    """Return whether NumPy takes a value for one number; longer whole numbers are objects to it."""
    if isinstance(value, int) and not isinstance(value, bool):
        return bool(abs(value) <= _LARGEST_INTEGER)
    return isinstance(value, float | np.integer | np.floating)


@dataclass(frozen=True)
class Number:
    """A finite number within bounds."""

    above: float = -np.inf
    least: float = -np.inf
    most: float = np.inf

    def __call__(self, value: Any, sizes: Sizes) -> bool:
        good = is_number(value) and np.isfinite(value)
        return bool(good and self.above < value and self.least <= value <= self.most)


def number_or_infinite(value: Any, sizes: Sizes) -> bool:
    """Return whether a value is an end of a support."""
    return bool(is_number(value) and not np.isnan(value))


def above_zero(value: Any, sizes: Sizes) -> bool:
    """Return whether a value is a width or a time, which may have no end."""
    return bool(is_number(value) and value > 0)


@dataclass(frozen=True)
class Count:
    """A whole number within bounds."""

    least: int = 0
    most: int = 2**62

    def __call__(self, value: Any, sizes: Sizes) -> bool:
        whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
        return bool(whole and self.least <= value <= self.most)


class Numbers:
    """An array of numbers, finite unless told otherwise.

    Equal names of sizes are equal sizes, and ``"n-1"`` is one less than ``"n"``. With `missing`
    the values are not looked at.
    """

    def __init__(
        self,
        *shape: str | int,
        above: float = -np.inf,
        least: float = -np.inf,
        most: float = np.inf,
        kind: str = "f",
        rising: bool = False,
        infinite: bool = False,
        missing: bool = False,
    ) -> None:
        self.shape, self.above, self.least, self.most = shape, above, least, most
        self.kind, self.rising = kind, rising
        self.infinite, self.missing = infinite, missing

    def __call__(self, value: Any, sizes: Sizes) -> bool:
        if not isinstance(value, np.ndarray) or value.dtype.kind != self.kind:
            return False
        if value.ndim != len(self.shape) or not self._fits(value.shape, sizes):
            return False
        if self.missing:
            return True
        if not (np.isfinite(value) | (self.infinite & ~np.isnan(value))).all():
            return False
        bounded = ((value > self.above) | np.isinf(self.above)).all() and (
            (value >= self.least) & (value <= self.most)
        ).all()
        return bool(bounded and (not self.rising or (value[..., 1:] > value[..., :-1]).all()))

    def _fits(self, shape: tuple[int, ...], sizes: Sizes) -> bool:
        for size, wanted in zip(shape, self.shape, strict=True):
            if isinstance(wanted, int):
                good = size == wanted
            else:
                name, minus, _ = wanted.partition("-1")
                good = size > 0 and sizes.setdefault(name, size + bool(minus)) == size + bool(minus)
            if not good:
                return False
        return True


class Size:
    """A whole number that is a size of other parts."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, value: Any, sizes: Sizes) -> bool:
        return Count()(value, sizes) and sizes.setdefault(self.name, int(value)) == value


class Names:
    """An array of texts."""

    def __init__(self, size: str) -> None:
        self.size = size

    def __call__(self, value: Any, sizes: Sizes) -> bool:
        if not isinstance(value, np.ndarray) or value.ndim != 1:
            return False
        texts = all(isinstance(name, str) for name in value)
        return texts and sizes.setdefault(self.size, len(value)) == len(value)


class Instance:
    """An instance of one of these classes."""

    def __init__(self, *kinds: type) -> None:
        self.kinds = kinds

    def __call__(self, value: Any, sizes: Sizes) -> bool:
        return isinstance(value, self.kinds)


class Several:
    """A list or a tuple of parts that all obey a check; equal names are equal lengths."""

    def __init__(self, check: Check, length: str | int | None = None, least: int = 1) -> None:
        self.check, self.length, self.least = check, length, least

    def __call__(self, value: Any, sizes: Sizes) -> bool:
        if not isinstance(value, list | tuple) or not self.least <= len(value) <= MANY:
            return False
        if isinstance(self.length, int) and len(value) != self.length:
            return False
        if isinstance(self.length, str) and sizes.setdefault(self.length, len(value)) != len(value):
            return False
        return all(self.check(part, sizes) for part in value)


class Either:
    """Whatever one of several checks lets through."""

    def __init__(self, *checks: Check) -> None:
        self.checks = checks

    def __call__(self, value: Any, sizes: Sizes) -> bool:
        return any(check(value, sizes) for check in self.checks)


def nothing(value: Any, sizes: Sizes) -> bool:
    """Return whether there is no value."""
    return value is None
