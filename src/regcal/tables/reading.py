"""How a column of a table is read, and what is told of rows that cannot be used."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from regcal._validation import Array, as_float_array


def check_has_column(table: Any, name: Any) -> None:
    """Refuse a name that a table does not have, or a number that an array does not have."""
    if isinstance(table, Mapping) or hasattr(table, "columns"):
        known = list(table) if isinstance(table, Mapping) else list(table.columns)
        if name not in known:
            msg = f"There is no column {name!r}. The columns are {known}."
            raise ValueError(msg)
    elif not isinstance(name, int | np.integer) or not 0 <= name < table.shape[1]:
        msg = (
            f"There is no column {name!r} in an array of {table.shape[1]} columns. "
            f"Pass a number from 0 to {table.shape[1] - 1}."
        )
        raise ValueError(msg)


def read_column(table: Any, name: Any) -> Array:
    """Return a column of a table as numbers.

    Examples
    --------
    >>> from regcal.tables import read_column
    >>> read_column({"mu": [1, 2], "id": ["a", "b"]}, "mu")
    array([1., 2.])
    """
    check_has_column(table, name)
    named = isinstance(table, Mapping) or hasattr(table, "columns")
    return as_float_array(table[name] if named else table[:, name], f"column {name!r}")


@dataclass(frozen=True)
class RefusedRows:
    """Rows of a table whose columns are no distribution, or no outcome.

    Attributes
    ----------
    rows : ndarray of bool
        Which they are.
    found, values : str, ndarray
        What such a row has, in words before its value.
    rule : str
        What it should have.
    """

    rows: np.ndarray
    found: str
    values: Array
    rule: str
