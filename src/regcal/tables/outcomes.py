"""Columns that tell what was seen of the outcome."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from regcal._validation import Array, as_float_array
from regcal.outcomes import Outcomes
from regcal.tables.reading import RefusedRows, read_column


class OutcomeColumns(ABC):
    """Columns of a table that tell what was seen of Y: called with a table, it returns that."""

    @property
    @abstractmethod
    def names(self) -> tuple[Any, ...]:
        """Names or numbers of the columns."""

    @property
    @abstractmethod
    def label(self) -> str:
        """What the outcome is called."""

    @abstractmethod
    def _made_of(self, columns: list[Array]) -> Any:
        """Return what the columns tell, as all of regcal takes it for y."""

    @abstractmethod
    def unknown(self, table: Any) -> np.ndarray:
        """Return which rows tell nothing."""

    @abstractmethod
    def refused(self, table: Any) -> RefusedRows:
        """Return the rows that are no outcome."""

    def of_columns(self, columns: Sequence[Any]) -> Any:
        """Return what the columns tell, given in the order of their names."""
        named = zip(columns, self.names, strict=True)
        return self._made_of([as_float_array(one, f"column {name!r}") for one, name in named])

    def __call__(self, table: Any) -> Any:
        """Return what was seen of all rows' outcomes."""
        return self._made_of([read_column(table, name) for name in self.names])


@dataclass(frozen=True)
class ExactColumn(OutcomeColumns):
    """Reads outcomes from a column of numbers.

    Parameters
    ----------
    value : column name of a frame, or column number of an array

    Examples
    --------
    >>> from regcal.tables import ExactColumn
    >>> ExactColumn("y")({"y": [3, 5], "mu": [2, 2]})
    array([3., 5.])
    """

    value: Any

    @property
    def names(self) -> tuple[Any, ...]:
        """The one column."""
        return (self.value,)

    @property
    def label(self) -> str:
        """The name of the column."""
        return str(self.value)

    def _made_of(self, columns: list[Array]) -> Array:
        return columns[0]

    def unknown(self, table: Any) -> np.ndarray:
        """Return the rows without a finite number."""
        return ~np.isfinite(read_column(table, self.value))

    def refused(self, table: Any) -> RefusedRows:
        """Return no rows: any number is an outcome."""
        values = read_column(table, self.value)
        return RefusedRows(np.zeros(len(values), dtype=bool), "", values, "")


@dataclass(frozen=True)
class CensoredColumns(OutcomeColumns):
    """Reads outcomes of which some are only known to be at least a value.

    Parameters
    ----------
    value : column name of a frame, or column number of an array
        The outcome, or the value that it is at least.
    censored : column name or number
        Truth values: True or 1 where only that is known (right-censored), False or 0 where the
        value is the outcome. It is the opposite of survival analysis' event.

    Examples
    --------
    >>> from regcal.tables import CensoredColumns
    >>> table = {"days": [5, 8, 2], "alive": [False, True, False]}
    >>> CensoredColumns("days", "alive")(table).upper
    array([ 5., inf,  2.])
    """

    value: Any
    censored: Any

    @property
    def names(self) -> tuple[Any, ...]:
        """Value and truth value."""
        return self.value, self.censored

    @property
    def label(self) -> str:
        """The name of the column of values."""
        return str(self.value)

    def _made_of(self, columns: list[Array]) -> Outcomes:
        values, flags = columns
        odd = ~np.isin(flags, (0.0, 1.0))
        if odd.any():
            row = int(np.flatnonzero(odd)[0])
            msg = (
                f"Column {self.censored!r} must hold True or 1 where an outcome is censored and "
                f"False or 0 where it is not, but row {row} holds {flags[row]:g}."
            )
            raise ValueError(msg)
        return Outcomes.right_censored(values, observed=flags == 0)

    def unknown(self, table: Any) -> np.ndarray:
        """Return the rows that lack the value or the truth value."""
        values, flags = (read_column(table, name) for name in self.names)
        return ~(np.isfinite(values) & np.isfinite(flags))

    def refused(self, table: Any) -> RefusedRows:
        """Return the rows whose truth value is none."""
        flags = read_column(table, self.censored)
        rule = "it must be True or 1 where the outcome is censored, and False or 0 where it is not"
        return RefusedRows(~np.isin(flags, (0, 1)), f"column {self.censored!r} is", flags, rule)


@dataclass(frozen=True)
class IntervalColumns(OutcomeColumns):
    """Reads intervals that hold the outcome.

    Parameters
    ----------
    lower, upper : column names of a frame, or column numbers of an array
        Ends of the intervals, equal where the outcome is known. An end that is missing or
        infinite is not known.

    Examples
    --------
    >>> import numpy as np
    >>> from regcal.tables import IntervalColumns
    >>> seen = IntervalColumns(lower=0, upper=1)(np.array([[2.0, 2.0], [3.0, np.nan]]))
    >>> seen.lower, seen.upper
    (array([2., 3.]), array([ 2., inf]))
    """

    lower: Any
    upper: Any

    @property
    def names(self) -> tuple[Any, ...]:
        """Lower and upper ends."""
        return self.lower, self.upper

    @property
    def label(self) -> str:
        """The names of both columns."""
        return f"{self.lower} to {self.upper}"

    def _made_of(self, columns: list[Array]) -> Outcomes:
        lower, upper = columns
        return Outcomes(
            np.where(np.isnan(lower), -np.inf, lower), np.where(np.isnan(upper), np.inf, upper)
        )

    def unknown(self, table: Any) -> np.ndarray:
        """Return the rows that lack both ends."""
        lower, upper = (read_column(table, name) for name in self.names)
        return ~(np.isfinite(lower) | np.isfinite(upper))

    def refused(self, table: Any) -> RefusedRows:
        """Return the rows whose lower end exceeds the upper one."""
        lower, upper = (read_column(table, name) for name in self.names)
        rule = f"a lower end must not exceed the upper one, in column {self.upper!r}"
        return RefusedRows(lower > upper, f"column {self.lower!r} is", lower, rule)


def outcome_columns(target: Any) -> OutcomeColumns:
    """Return where outcomes stand: a name or a number is a column of numbers.

    Examples
    --------
    >>> from regcal.tables import outcome_columns
    >>> outcome_columns("y")
    ExactColumn(value='y')
    """
    return target if isinstance(target, OutcomeColumns) else ExactColumn(target)
