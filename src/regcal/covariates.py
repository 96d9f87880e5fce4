"""Tables of covariates: named columns of numbers or categories, with missing values."""

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Self
from zlib import crc32

import numpy as np

from regcal._validation import Array, refuse_masked

Kind = Literal["number", "category"]

# Kinds of arrays that are neither numbers nor labels, and what to pass instead.
_REFUSED = {
    "c": ("complex numbers", "its real and imaginary part as two columns"),
    "M": ("dates", "a number such as the year, or days since a date"),
    "m": ("durations", "a number such as days or seconds"),
    "V": ("records", "its fields as columns"),
}

# Types whose values are missing ones, besides nan: None, and those of pandas.
_STAND_FOR_NOTHING = ("NoneType", "NAType", "NaTType")


@dataclass(frozen=True)
class Column:
    """One covariate: numbers, or categories by the number of their level.

    Attributes
    ----------
    name : str
    kind : "number" or "category"
    values : ndarray of shape (n_rows,)
        Numbers, nan where one is missing; or places in `levels`, -1 where one is missing.
    levels : tuple
        The categories, in order; empty for numbers.

    Examples
    --------
    >>> from regcal.covariates import Covariates
    >>> column = Covariates.of({"region": ["south", None, "north"]})["region"]
    >>> column.kind, column.levels, column.values
    ('category', ('north', 'south'), array([ 1, -1,  0]))
    """

    name: str
    kind: Kind
    values: np.ndarray
    levels: tuple[Any, ...] = ()

    def __len__(self) -> int:
        return len(self.values)

    @property
    def missing(self) -> np.ndarray:
        """Whether each row's value is missing."""
        return np.isnan(self.values) if self.kind == "number" else self.values < 0

    @property
    def keys(self) -> Array:
        """Numbers that tell values apart, whatever other levels there are."""
        if self.kind == "number":
            return np.where(self.missing, -np.finfo(float).max, self.values)
        known = [float(crc32(repr(level).encode())) for level in self.levels]
        return np.array([*known, -1.0])[self.values]


@dataclass(frozen=True)
class Covariates:
    """Named columns of the same rows.

    `Covariates.of` makes them of a table; ``covariates[rows]`` are those of some rows, and
    ``covariates["name"]`` is one column.

    Attributes
    ----------
    columns : tuple of Column

    Examples
    --------
    >>> from regcal.covariates import Covariates
    >>> known = Covariates.of({"age": [3, 28, None], "kind": ["a", "b", "a"]})
    >>> known.names, known.kinds
    (('age', 'kind'), ('number', 'category'))
    >>> known[:2]["age"].values
    array([ 3., 28.])

    Later rows are read as the first were: by name, with the same levels.

    >>> known.read({"kind": ["b", "c"], "age": [5, 6]})["kind"].values
    array([ 1, -1])
    """

    columns: tuple[Column, ...]

    @classmethod
    def of(cls, table: Any, n_rows: int | None = None) -> Self:
        """Return the columns of a table.

        Parameters
        ----------
        table : Covariates, frame, mapping, or array-like of shape (n_rows,) or (n_rows, n_columns)
            Frames of pandas and polars, and mappings from names to columns, have names; columns of
            arrays are called ``x0``, ``x1`` and so on. Numbers are numbers, nan where they are
            missing; text, truth values and pandas' categories are categories, None where they are
            missing.
        n_rows : int, optional
            How many rows there have to be.

        Returns
        -------
        Covariates
        """
        if isinstance(table, cls):
            covariates = table
        else:
            covariates = cls(tuple(_column(name, values) for name, values in _named(table)))
            _check_names(covariates.names)
        _check_rows(covariates.columns, n_rows)
        return covariates

    @classmethod
    def chosen(cls, table: Any, which: Any, names: Sequence[str] | None = None) -> "Covariates":
        """Return some columns of a table.

        Parameters
        ----------
        table : as in `of`
        which : "all", a name, a number, or a sequence of names or numbers
            A number is the place of a column, from 0.
        names : sequence of str, optional
            What columns of a table without names are called.

        Returns
        -------
        Covariates

        Examples
        --------
        >>> from regcal.covariates import Covariates
        >>> Covariates.chosen([[1.0, 2.0], [3.0, 4.0]], [1]).names
        ('x1',)
        """
        if not _has_names(table):
            columns = dict(_named(table))
            table = (
                dict(zip(names, columns.values(), strict=True)) if names is not None else columns
            )
        own = [str(name) for name in (table if isinstance(table, Mapping) else table.columns)]
        wanted = own if isinstance(which, str) and which == "all" else _places(which, own)
        picked = ((name, values) for name, values in _named(table) if name in wanted)
        return cls.of(dict(picked))

    @classmethod
    def joined(cls, parts: Sequence["Covariates"]) -> "Covariates":
        """Return the rows of several tables with the same columns, and all of their levels.

        Parameters
        ----------
        parts : sequence of Covariates

        Returns
        -------
        Covariates
        """
        first = parts[0]
        for part in parts[1:]:
            _check_same_columns(first.names, part.names)
        return cls(tuple(_joined([part[name] for part in parts]) for name in first.names))

    def read(self, table: Any, n_rows: int | None = None) -> Self:
        """Return the same columns of another table, by name.

        A table without names has as many columns as this one. Categories get the places of the
        levels known here, and those that are not known here are missing; a column with no other
        ones is warned of.

        Parameters
        ----------
        table : as in `of`
        n_rows : int, optional

        Returns
        -------
        Covariates
        """
        other = Covariates.of(table, n_rows)
        named = [name for name in other.names if name in self.names]
        _check_same_columns(self.names, tuple(named) if _has_names(table) else other.names)
        columns = tuple(_like(one, other[one.name]) for one in self.columns)
        for column in columns:
            _warn_of_unknown(column, other[column.name])
        return replace(self, columns=columns)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns."""
        return tuple(column.name for column in self.columns)

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """What is in the columns."""
        return tuple(column.kind for column in self.columns)

    def described(self) -> str:
        """Return the columns in words: their names, and how many levels categories have."""
        return ", ".join(
            column.name
            if column.kind == "number"
            else f"{column.name} ({len(column.levels)} levels)"
            for column in self.columns
        )

    def __len__(self) -> int:
        return len(self.columns[0])

    def __getitem__(self, key: Any) -> Any:
        if not isinstance(key, str):
            return self.take(key)
        for column in self.columns:
            if column.name == key:
                return column
        msg = f"There is no column {key!r}. The columns are {_listed(self.names)}."
        raise KeyError(msg)

    def take(self, rows: Any) -> Self:
        """Return the columns of some rows: a slice, numbers of rows, or truth values."""
        refuse_masked(rows, "rows")
        columns = (replace(one, values=np.atleast_1d(one.values[rows])) for one in self.columns)
        return replace(self, columns=tuple(columns))


def _places(which: Any, names: list[str]) -> list[str]:
    """Return the names of columns that are given by name or by place."""
    single = isinstance(which, str | int | np.integer)
    if not single and not isinstance(which, Iterable):
        msg = f'covariates are "all", or names or numbers of columns, got {which!r}.'
        raise TypeError(msg)
    found = []
    for one in [which] if single else which:
        if isinstance(one, int | np.integer) and not isinstance(one, bool):
            known = -len(names) <= one < len(names)
            found += [names[one]] if known else []
        else:
            known = one in names
            found += [one]
        if not known:
            msg = f"There is no column {one!r}. The columns are {_listed(names)}."
            raise ValueError(msg)
    if not found:
        msg = 'No covariates are chosen. Pass "all", names or numbers of columns, or None.'
        raise ValueError(msg)
    return found


# ---------------------------------------------------------------------------- tables become columns


def _has_names(table: Any) -> bool:
    """Whether a table says what its columns are called."""
    return isinstance(table, Covariates | Mapping) or hasattr(table, "columns")


def _named(table: Any) -> Iterator[tuple[str, Any]]:
    """Yield the columns of a table with their names."""
    if table is None:
        msg = "The covariates are None. Pass a frame, a mapping from names to columns, or an array."
        raise ValueError(msg)
    if hasattr(table, "collect"):
        msg = f"The covariates are a {type(table).__name__}. Pass table.collect()."
        raise TypeError(msg)
    if isinstance(table, Mapping):
        yield from ((str(name), values) for name, values in table.items())
    elif hasattr(table, "columns") and hasattr(table, "__getitem__"):
        # by place where that is possible: pandas returns two columns for a name that occurs twice
        for place, name in enumerate(table.columns):
            yield str(name), table.iloc[:, place] if hasattr(table, "iloc") else table[name]
    elif getattr(table, "name", None) is not None and hasattr(table, "to_numpy"):
        yield str(table.name), table
    else:
        refuse_masked(table, "covariates")
        _refuse_names(table)
        array = _as_array(table)
        yield from ((f"x{k}", column) for k, column in enumerate(array.T))


def _refuse_names(table: Any) -> None:
    """Refuse names of columns in place of the columns."""
    if isinstance(table, str):
        msg = (
            f"The covariates are the text {table!r}. Pass the columns themselves, for example "
            "frame[[...]]; names of columns of X are for CalibratedRegressorCV."
        )
        raise TypeError(msg)


def _as_array(table: Any) -> np.ndarray:
    if hasattr(table, "toarray"):
        msg = (
            "The covariates are a sparse matrix. Pass table.toarray(), or the columns that matter."
        )
        raise TypeError(msg)
    array = np.asarray(table)
    if array.dtype.kind in "US" and not isinstance(table, np.ndarray):
        # lists of numbers and text: each value stays what it is
        array = np.array(table, dtype=object)
    if array.ndim == 1 and array.dtype.kind != "V":
        array = array[:, np.newaxis]
    if array.ndim != 2 or array.shape[1] == 0:
        msg = (
            f"The covariates have shape {array.shape}. Pass rows × columns, a frame, or a mapping "
            "from names to columns."
        )
        raise ValueError(msg)
    return array


def _column(name: str, values: Any) -> Column:
    """Return numbers or categories of one column."""
    refuse_masked(values, f"column {name!r}")
    if hasattr(getattr(values, "cat", None), "codes"):  # pandas
        levels = tuple(values.cat.categories.tolist())
        return Column(name, "category", np.asarray(values.cat.codes, dtype=np.intp), levels)
    array = _plain_array(name, values)
    if array.dtype.kind in "iuf":
        return _numbers(name, array.astype(np.float64))
    if array.dtype.kind == "O":
        return _of_objects(name, array)
    return _categories(name, array, np.zeros(len(array), dtype=bool))


def _plain_array(name: str, values: Any) -> np.ndarray:
    listed = isinstance(values, list | tuple)
    # numbers and text in one list would all become text
    array = np.array(values, dtype=object) if listed else np.asarray(values)
    if array.ndim != 1:
        msg = f"column {name!r} has shape {array.shape}. Pass one value per row."
        raise ValueError(msg)
    if array.dtype.kind in _REFUSED:
        _refuse(name, array.dtype.kind, array[0] if len(array) else "")
    return array


def _refuse(name: str, kind: str, value: Any) -> None:
    what, instead = _REFUSED[kind]
    msg = f"column {name!r} holds {what} such as {str(value)!r}. Pass {instead}."
    raise ValueError(msg)


def _numbers(name: str, values: Array) -> Column:
    infinite = np.isinf(values)
    if infinite.any():
        row = int(np.flatnonzero(infinite)[0])
        msg = (
            f"column {name!r} is {values[row]} in row {row}; numbers must be finite. Write a "
            "missing value as nan."
        )
        raise ValueError(msg)
    return Column(name, "number", values)


def _of_objects(name: str, array: np.ndarray) -> Column:
    """Return what is in a column of Python objects, of which some may be None, NA or nan."""
    values = array.tolist()
    types = set(map(type, values))
    nothing = {kind for kind in types if kind.__name__ in _STAND_FOR_NOTHING}
    missing = np.fromiter((type(v) in nothing or v != v for v in values), bool, len(values))
    types -= nothing
    for kind in types:
        example = next(value for value in values if type(value) is kind)
        # dates of pandas with a time zone, and its periods, are objects to NumPy
        dated = hasattr(example, "year") and hasattr(example, "month")
        refused = "M" if dated else np.asarray(example).dtype.kind
        if refused in _REFUSED:
            _refuse(name, refused, example)
    if types <= {bool, np.bool_} and not missing.all():
        return _categories(name, array, missing)
    if all(issubclass(kind, int | float | np.number | np.bool_) for kind in types):
        numbers = np.full(len(array), np.nan)
        numbers[~missing] = array[~missing].astype(np.float64)
        return _numbers(name, numbers)
    return _categories(name, array, missing)


def _categories(name: str, array: np.ndarray, missing: np.ndarray) -> Column:
    known = array[~missing].tolist()
    try:
        levels = tuple(sorted(set(known)))
    except TypeError:  # of several types, or without an order
        levels = _ordered_by_text(name, known)
    places = {level: place for place, level in enumerate(levels)}
    codes = np.full(len(array), -1, dtype=np.intp)
    codes[~missing] = [places[value] for value in known]
    return Column(name, "category", codes, levels)


def _ordered_by_text(name: str, known: list[Any]) -> tuple[Any, ...]:
    try:
        return tuple(sorted(set(known), key=lambda level: (str(level), type(level).__name__)))
    except TypeError as error:
        msg = (
            f"column {name!r} holds {type(known[0]).__name__} objects, which cannot be told apart. "
            "Pass numbers or text."
        )
        raise ValueError(msg) from error


# ------------------------------------------------------------------------------------------- checks


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(repr(name) for name in names[:10])
    return f"{shown} and {len(names) - 10} more" if len(names) > 10 else shown or "none"


def _check_names(names: tuple[str, ...]) -> None:
    if not names:
        msg = "The covariates have no columns. Pass at least one."
        raise ValueError(msg)
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        msg = f"Two columns are called {twice[0]!r}. Give each its own name."
        raise ValueError(msg)


def _check_rows(columns: tuple[Column, ...], n_rows: int | None) -> None:
    wanted = len(columns[0]) if n_rows is None else n_rows
    for column in columns:
        if len(column) != wanted:
            other = "rows" if n_rows is not None else f"rows of column {columns[0].name!r}"
            msg = (
                f"column {column.name!r} has {len(column)} values for {wanted} {other}. Pass one "
                "value per row, in the same order."
            )
            raise ValueError(msg)


def _check_same_columns(known: tuple[str, ...], names: tuple[str, ...]) -> None:
    """Refuse columns that are not those of before, in any order."""
    if set(known) != set(names):
        absent = [name for name in known if name not in names]
        msg = (
            f"The columns are {_listed(names)}, but were {_listed(known)} before"
            f"{': ' + _listed(absent) + ' not found' if absent else ''}. Pass the same columns."
        )
        raise ValueError(msg)


def _joined(columns: Sequence[Column]) -> Column:
    """Return the values of several columns below each other."""
    first = next((one for one in columns if not one.missing.all()), columns[0])
    if first.kind == "category":
        levels = {level for one in columns for level in one.levels}
        if levels != set(first.levels):
            known = np.empty(len(levels), dtype=object)
            known[:] = list(levels)
            first = _categories(first.name, known, np.zeros(len(known), dtype=bool))
    parts = [_like(first, one) for one in columns]
    return replace(first, values=np.concatenate([part.values for part in parts]))


def _like(known: Column, column: Column) -> Column:
    """Return a later column with the levels of the first one."""
    other = column.kind != known.kind or not _comparable(column.levels, known.levels)
    if other and not column.missing.all():
        msg = (
            f"column {known.name!r} holds {_in_words(column)}, but {_in_words(known)} before. "
            "Convert it to what it was."
        )
        raise ValueError(msg)
    if known.kind == "number":
        return Column(known.name, "number", np.where(column.missing, np.nan, column.values))
    places = {level: place for place, level in enumerate(known.levels)}
    moved = np.array([places.get(level, -1) for level in column.levels] + [-1], dtype=np.intp)
    values = np.where(column.missing, -1, column.values).astype(np.intp)
    return Column(known.name, "category", moved[values], known.levels)


def _warn_of_unknown(column: Column, given: Column) -> None:
    """Tell of a column none of whose categories was seen before: it may be written otherwise."""
    if column.kind == "category" and column.missing.all() and not given.missing.all():
        msg = (
            f"None of the categories of column {column.name!r}, such as {given.levels[0]!r}, was "
            f"seen before; those were {_listed(column.levels)}. They count as missing. Check how "
            "they are written."
        )
        warnings.warn(msg, UserWarning, stacklevel=4)


def _comparable(levels: tuple[Any, ...], known: tuple[Any, ...]) -> bool:
    """Return whether some levels could be equal: text is never a truth value or a number."""
    if not levels or not known:
        return True
    text = [{isinstance(level, str) for level in own} for own in (levels, known)]
    return bool(text[0] & text[1])


def _in_words(column: Column) -> str:
    if column.kind == "number":
        return "numbers"
    if not column.levels:
        return "categories"
    if all(isinstance(level, bool | np.bool_) for level in column.levels):
        return "truth values"
    return f"categories such as {column.levels[0]!r}"
