"""What was seen of Y: a number, or an interval that holds it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np

from regcal._caching import WithoutCaches
from regcal._validation import (
    Array,
    as_float_array,
    check_column,
    check_targets,
    refuse_masked,
)


@dataclass(frozen=True, eq=False)
class Outcomes(WithoutCaches):
    """What was seen of each row's outcome: an interval, closed at both ends.

    A number is the interval of itself; "at least c" is [c, inf], "at most c" is [-inf, c], and
    between two inspections it is [a, b].

    Parameters
    ----------
    lower, upper : array-like of shape (n_rows,)
        Ends of the intervals; equal where the outcome was seen exactly. An end that is not known
        is infinite.

    Examples
    --------
    >>> from regcal import Outcomes
    >>> seen = Outcomes.right_censored([5.0, 8.0, 2.0], observed=[True, False, True])
    >>> seen.upper
    array([ 5., inf,  2.])
    >>> seen.exact_rows
    array([ True, False,  True])
    >>> Outcomes([1.0, 2.0], [3.0, 2.0])[1:].lower
    array([2.])
    """

    lower: Array
    upper: Array

    def __post_init__(self) -> None:
        lower, upper = (_column(getattr(self, name), name) for name in ("lower", "upper"))
        if len(lower) != len(upper):
            msg = f"Got {len(lower)} lower and {len(upper)} upper ends. Pass one of each per row."
            raise ValueError(msg)
        _refuse(lower > upper, lower, upper, f"lower must not exceed upper. {_mended(upper)}")
        unknown = np.isinf(lower) & np.isinf(upper)
        _refuse(unknown, lower, upper, "one of the ends must be finite. Remove such rows")
        object.__setattr__(self, "lower", lower)
        object.__setattr__(self, "upper", upper)

    @classmethod
    def unchecked(cls, lower: Array, upper: Array) -> Self:
        """Return outcomes from ends that are in order, also such that tell nothing."""
        outcomes = object.__new__(cls)
        object.__setattr__(outcomes, "lower", lower)
        object.__setattr__(outcomes, "upper", upper)
        return outcomes

    @classmethod
    def of(cls, y: Any) -> Self:
        """Return outcomes from anything that is taken for y.

        Parameters
        ----------
        y : Outcomes, array-like of shape (n_rows,) or (n_rows, 2), or structured array
            Numbers are exact; two columns are lower and upper ends, and refused if they look like
            events and times: zeros and ones beside finite numbers. Of a structured array with one
            field of truth values and one of numbers, as scikit-survival has it, the first tells
            whether the event was observed.

        Returns
        -------
        Outcomes

        Examples
        --------
        >>> import numpy as np
        >>> from regcal import Outcomes
        >>> y = np.array([(True, 5.0), (False, 8.0)], dtype=[("event", bool), ("time", float)])
        >>> Outcomes.of(y).upper
        array([ 5., inf])
        """
        if isinstance(y, cls):
            return y
        if has_fields(y):
            return cls._of_events(y, y.dtype.names)
        if _is_pair(y):
            _refuse_events(y)
            ends = as_float_array(y, "y")
            _refuse_counted_events(*ends.T)
            return cls(ends[:, 0], ends[:, 1])
        return cls.exact(y)

    @classmethod
    def _of_events(cls, y: Any, fields: tuple[str, ...]) -> Self:
        kinds = [y.dtype[name].kind for name in fields]
        if len(fields) != 2 or sorted(kind == "b" for kind in kinds) != [False, True]:
            msg = (
                f"y is a structured array with the fields {', '.join(fields)}. Pass one field of "
                "truth values (was the event observed?) and one of times, or "
                "Outcomes(lower, upper)."
            )
            raise ValueError(msg)
        event, time = fields if kinds[0] == "b" else fields[::-1]
        if len(y) and y[time].min() < 0:
            msg = f"{time} must not be negative, got {y[time].min()}. Times begin at 0."
            raise ValueError(msg)
        return cls.right_censored(y[time], y[event])

    @classmethod
    def exact(cls, y: Any) -> Self:
        """Return outcomes that were seen as they are.

        Parameters
        ----------
        y : array-like of shape (n_rows,)
        """
        values = check_column(y, "y")
        return cls(values, values)

    @classmethod
    def right_censored(cls, y: Any, observed: Any) -> Self:
        """Return outcomes of which some are only known to be at least y.

        Parameters
        ----------
        y : array-like of shape (n_rows,)
        observed : array-like of bool of shape (n_rows,)
            Whether y is the outcome itself.
        """
        values = check_column(y, "y")
        return cls(values, np.where(_flags(observed, len(values)), values, np.inf))

    @classmethod
    def left_censored(cls, y: Any, observed: Any) -> Self:
        """Return outcomes of which some are only known to be at most y.

        Parameters
        ----------
        y : array-like of shape (n_rows,)
        observed : array-like of bool of shape (n_rows,)
            Whether y is the outcome itself.
        """
        values = check_column(y, "y")
        return cls(np.where(_flags(observed, len(values)), values, -np.inf), values)

    def __len__(self) -> int:
        return len(self.lower)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Outcomes):
            return NotImplemented
        return all(map(np.array_equal, (self.lower, self.upper), (other.lower, other.upper)))

    __hash__ = None  # type: ignore[assignment]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        msg = "Outcomes are intervals, no array. Take .lower and .upper, or a number each: .values."
        raise TypeError(msg)

    @property
    def shape(self) -> tuple[int]:
        """The number of rows, by which scikit-learn splits them."""
        return (len(self),)

    def __getitem__(self, rows: Any) -> Outcomes:
        refuse_masked(rows, "rows")
        ends = (np.atleast_1d(end[rows]) for end in (self.lower, self.upper))
        return Outcomes.unchecked(*ends)

    @cached_property
    def exact_rows(self) -> np.ndarray:
        """Whether each outcome was seen exactly."""
        return self.lower == self.upper

    def within(self, ends: tuple[float, float]) -> Outcomes:
        """Return outcomes of which what lies beyond given ends counts as if it were there."""
        low, high = ends
        below, above = self.upper < low, self.lower > high
        if not (below.any() or above.any()):
            return self
        exact = self.exact_rows
        lower = np.where(above | (below & exact), np.clip(self.lower, low, high), self.lower)
        upper = np.where(below | (above & exact), np.clip(self.upper, low, high), self.upper)
        return Outcomes.unchecked(lower, upper)

    @cached_property
    def values(self) -> Array:
        """A number per row: the outcome, the end that is known, or the middle of two ends.

        It is 0 where nothing is known, as of a time that is at least 0.
        """
        if self.exact_rows.all():
            return self.lower
        end = np.where(np.isfinite(self.upper), self.upper, 0.0)
        lower = np.where(np.isfinite(self.lower), self.lower, end)
        upper = np.where(np.isfinite(self.upper), self.upper, lower)
        return np.where(self.exact_rows, self.lower, lower + 0.5 * (upper - lower))


def _column(values: Any, name: str) -> Array:
    array = as_float_array(values, name)
    if array.ndim != 1 or np.isnan(array).any():
        msg = (
            f"{name} must be one number per row, got shape {array.shape} with "
            f"{int(np.isnan(array).sum())} NaN(s). Write an end that is not known as infinite."
        )
        raise ValueError(msg)
    return array


def _refuse(bad: np.ndarray, lower: Array, upper: Array, rule: str) -> None:
    if bad.any():
        row = int(np.flatnonzero(bad)[0])
        msg = f"Row {row} has lower = {lower[row]} and upper = {upper[row]}; {rule}."
        raise ValueError(msg)


def _refuse_events(y: Any) -> None:
    """Refuse a column of truth values beside one of times, which would pass for a lower end."""
    first = next(iter(y)) if isinstance(y, list | tuple) else ()
    kinds = [str(kind) for kind in getattr(y, "dtypes", ())]
    if any(isinstance(part, bool | np.bool_) for part in first) or any(
        kind.lower().startswith("bool") for kind in kinds
    ):
        msg = (
            "y has a column of truth values beside one of numbers. Tell what it says: "
            "Outcomes.right_censored(times, observed), where observed is True if the time is the "
            "outcome itself. Two columns of numbers are lower and upper ends."
        )
        raise ValueError(msg)


def _refuse_counted_events(lower: Array, upper: Array) -> None:
    """Refuse a column of zeros and ones beside one of times, which would pass for a lower end."""
    if _says_yes_and_no(lower) and np.isfinite(upper).all() and (upper > 1).any():
        msg = (
            "The first column of y has nothing but zeros and ones, the second finite numbers up to "
            f"{upper.max():g}. If it says whether the outcome was observed, pass "
            "Outcomes.right_censored(times, observed); if they are lower and upper ends, "
            "Outcomes(lower, upper)."
        )
        raise ValueError(msg)


def _says_yes_and_no(values: Array) -> bool:
    return np.array_equal(np.unique(values), [0.0, 1.0])


def _mended(upper: Array) -> str:
    """Return the way out for a lower end above the upper one."""
    if _says_yes_and_no(upper):
        return (
            "The upper ends are zeros and ones: if they say whether the outcome was observed, pass "
            "Outcomes.right_censored(times, observed)"
        )
    return "Swap the two"


def _flags(observed: Any, n_rows: int) -> np.ndarray:
    refuse_masked(observed, "observed")
    flags = np.asarray(observed)
    if flags.dtype == object and all(isinstance(flag, bool | np.bool_) for flag in flags.flat):
        flags = flags.astype(bool)
    truth = flags.dtype == bool or (flags.dtype.kind in "iuf" and np.isin(flags, (0, 1)).all())
    if flags.shape != (n_rows,) or not truth:
        got = f"{flags.dtype} of shape {flags.shape}"
        odd = [row for row, flag in enumerate(flags.tolist()) if not _is_truth(flag)]
        if flags.shape == (n_rows,) and odd:
            got = f"{flags.tolist()[odd[0]]!r} in row {odd[0]}"
        msg = (
            f"observed must be {n_rows} truth values, one per row, got {got}. "
            "Pass True where y is the outcome itself."
        )
        raise ValueError(msg)
    return flags.astype(bool)


def _is_truth(flag: Any) -> bool:
    return isinstance(flag, int | float | np.bool_) and flag in (0, 1)


def check_outcomes(y: Any, n_rows: int) -> Outcomes:
    """Return what was seen of as many outcomes as there are distributions."""
    if not is_interval_data(y):
        targets = check_targets(y, n_rows)
        return Outcomes.unchecked(targets, targets)
    outcomes = Outcomes.of(y)
    if len(outcomes) != n_rows:
        msg = (
            f"Got {len(outcomes)} outcomes for {n_rows} distributions. "
            "Pass one per distribution, in the same order."
        )
        raise ValueError(msg)
    return outcomes


def is_interval_data(y: Any) -> bool:
    """Return whether y is more than a number per row."""
    return isinstance(y, Outcomes) or _is_pair(y) or has_fields(y)


def has_fields(y: Any) -> bool:
    """Return whether y is a structured array."""
    return getattr(getattr(y, "dtype", None), "names", None) is not None


def _is_pair(y: Any) -> bool:
    shape = getattr(y, "shape", None)
    if not isinstance(shape, tuple):
        rows = y if isinstance(y, list | tuple) else ()
        shape = (len(rows), len(rows[0])) if rows and isinstance(rows[0], list | tuple) else ()
    return len(shape) == 2 and shape[1] == 2
