"""Input checks that more than one module needs."""

from collections.abc import Iterator, Mapping
from itertools import takewhile
from operator import eq
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]


# Kinds of arrays that NumPy turns into numbers without a word.
_ODD_KINDS = {
    "U": "text",
    "S": "text",
    "c": "complex ones",
    "M": "dates",
    "m": "durations",
    "V": "records",
}

# The largest total weight: with more, a row of weight 1 would be lost to rounding.
_LARGEST_WEIGHT = 1e15

# The smallest: less teaches the same, which is nothing beside any prior, but has no square.
_SMALLEST_WEIGHT = 1e-50


def as_float_array(values: ArrayLike, name: str) -> Array:
    """Return `values` as a float array, or say which argument is not numeric."""
    if type(values) is np.ndarray and values.dtype == np.float64:
        return values
    refuse_masked(values, name)
    try:
        array = np.asarray(values)
        odd = _first_odd(array)
        if odd is None:
            return np.asarray(array, dtype=np.float64)
    except OverflowError as error:
        msg = f"{name} holds a number beyond 1.8e308, the largest float. Choose a larger unit."
        raise ValueError(msg) from error
    except (TypeError, ValueError) as error:
        msg = f"{name} must hold numbers, got {type(values).__name__}: {error}."
        raise ValueError(msg) from error
    if odd.dtype.kind == "V":
        msg = (
            f"{name} must hold numbers, got records such as {odd.flat[0]}. Pass one of the fields, "
            f'such as {name}["{(odd.dtype.names or ["value"])[-1]}"].'
        )
        raise ValueError(msg)
    msg = (
        f"{name} must hold numbers, got {_ODD_KINDS[odd.dtype.kind]} such as "
        f"{str(odd.flat[0])!r}. Convert it first; numbers written as text by {name}.astype(float)."
    )
    raise ValueError(msg)


def refuse_masked(values: Any, name: str) -> None:
    """Refuse a masked array, or a list that holds one: the values behind a mask mean nothing."""
    if type(values) is np.ndarray:
        return
    parts = values if isinstance(values, list | tuple) else [values]
    n_masked = sum(int(np.ma.count_masked(part)) for part in parts if np.ma.isMA(part))
    if n_masked:
        msg = (
            f"{name} has {n_masked} masked value(s), which stand for nothing. Remove those rows "
            f"from all arguments, for example by ~np.ma.getmaskarray({name}), or fill them in."
        )
        raise ValueError(msg)


def _first_odd(array: np.ndarray) -> np.ndarray | None:
    """Return text, complex numbers or dates if there are any, else None."""
    if array.dtype.kind == "O":
        array = np.asarray([v for v in array.flat if isinstance(v, str | bytes | complex)][:1])
    return array if array.size and array.dtype.kind in _ODD_KINDS else None


def check_finite(array: Array, name: str) -> Array:
    """Return `array` if all its values are finite, otherwise name the first that is not."""
    finite = np.isfinite(array)
    if np.count_nonzero(finite) < finite.size:
        bad = ~finite
        first = tuple(int(i) for i in np.argwhere(bad)[0])
        place = first[0] if len(first) == 1 else first
        msg = (
            f"{name} holds {int(bad.sum())} value(s) that are not finite, the first is "
            f"{array[first]} at index {place}. Remove or impute those rows first."
        )
        raise ValueError(msg)
    return array


def check_column(values: ArrayLike, name: str) -> Array:
    """Return `values` as a finite 1-D float array with at least one entry."""
    array = as_float_array(values, name)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        msg = f"{name} must be one-dimensional, got shape {array.shape}. Pass one value per row."
        raise ValueError(msg)
    if array.size == 0:
        msg = f"{name} is empty. Pass at least one row."
        raise ValueError(msg)
    return check_finite(array, name)


def check_targets(y: ArrayLike, n_rows: int) -> Array:
    """Return targets as a finite 1-D array with one entry per distribution."""
    if y is None:
        msg = "y is None. Pass the observed outcomes, one per distribution."
        raise ValueError(msg)
    array = check_column(y, "y")
    if len(array) != n_rows:
        msg = (
            f"Got {len(array)} targets for {n_rows} distributions. "
            "Pass one target per distribution, in the same order."
        )
        raise ValueError(msg)
    return array


def check_coverage(coverage: Any) -> float:
    """Return the share of outcomes that an interval is to hold."""
    truth = isinstance(coverage, bool | np.bool_)
    if truth or np.ndim(coverage) != 0 or not 0 <= as_float_array(coverage, "coverage") <= 1:
        msg = f"coverage must be one number between 0 and 1, got {coverage}. Write 90 % as 0.9."
        raise ValueError(msg)
    return float(coverage)


def check_same_index(tables: Mapping[str, Any]) -> None:
    """Refuse tables of pandas that have different indexes: rows go together by their places.

    Parameters
    ----------
    tables : mapping from names to anything
        Of a mapping, all values are looked at. What has no index has nothing to compare.
    """
    indexed = [(name, index) for name, table in tables.items() for index in _indexes(table)]
    for name, index in indexed[1:]:
        first, expected = indexed[0]
        if not expected.equals(index):
            row = sum(1 for _ in takewhile(bool, map(eq, expected, index)))
            msg = (
                f"{name} has another index than {first}, from row {row} on. Align them first, with "
                "table.loc[y.index], or pass table.to_numpy() if rows are in the same order."
            )
            raise ValueError(msg)


def _indexes(table: Any) -> Iterator[Any]:
    """Yield the index of a frame or series, or those of the columns of a mapping."""
    for one in table.values() if isinstance(table, Mapping) else (table,):
        index = getattr(one, "index", None)
        if hasattr(index, "equals"):  # lists have an `index` too, which is a method
            yield index


def check_weights(sample_weight: ArrayLike | None, n_rows: int) -> Array:
    """Return non-negative weights, one per row and not all 0; `None` means one each."""
    weights = weights_of_rows(sample_weight, n_rows)
    if len(weights) and not weights.any():
        msg = "All sample weights are zero: there is nothing to learn from. Pass a positive weight."
        raise ValueError(msg)
    total = weights.sum()
    return weights * (_SMALLEST_WEIGHT / total) if 0 < total < _SMALLEST_WEIGHT else weights


def weights_of_rows(sample_weight: ArrayLike | None, n_rows: int) -> Array:
    """Return non-negative weights, one per row; `None` means a weight of one each."""
    if sample_weight is None:
        return np.ones(n_rows)
    weights = check_column(sample_weight, "sample_weight")
    if len(weights) != n_rows:
        msg = f"Got {len(weights)} sample weights for {n_rows} rows. Pass one weight per row."
        raise ValueError(msg)
    if (weights < 0).any():
        first = int(np.flatnonzero(weights < 0)[0])
        msg = (
            f"sample_weight is {weights[first]} at index {first}; weights must not be negative. "
            "Use 0 to leave a row out."
        )
        raise ValueError(msg)
    if weights.sum() > _LARGEST_WEIGHT:
        msg = (
            f"The sample weights sum to {weights.sum():.6g}; a weight is a number of rows, and "
            f"{_LARGEST_WEIGHT:.0e} is the most. Divide them by their mean."
        )
        raise ValueError(msg)
    return weights


def check_positive(array: Array, name: str) -> Array:
    """Return `array` if it is positive everywhere, otherwise name the first value that is not."""
    if np.count_nonzero(array <= 0):
        first = tuple(int(i) for i in np.argwhere(array <= 0)[0])
        place = first[0] if len(first) == 1 else first
        msg = (
            f"{name} must be positive, got {array[first]} at index {place}. "
            "A spread of zero claims certainty: give such rows a small positive spread."
        )
        raise ValueError(msg)
    return array


def check_increasing(values: ArrayLike, name: str) -> Array:
    """Return `values` as a finite, strictly increasing 1-D array."""
    array = check_column(values, name)
    steps = np.diff(array)
    if (steps <= 0).any():
        first = int(np.flatnonzero(steps <= 0)[0])
        msg = (
            f"{name} must be strictly increasing, got {array[first]} before {array[first + 1]} "
            f"at index {first}. Pass np.unique({name})."
        )
        raise ValueError(msg)
    return array
