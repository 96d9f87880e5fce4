"""Answers look like the question: frames for frames, with the labels of their rows."""

from collections.abc import Callable, Sequence
from typing import Any

from numpy.typing import ArrayLike

from regcal._validation import Array, as_float_array


def library_of(X: Any) -> str | None:
    """Return which library the frames of answers to `X` are of; None if they are arrays."""
    if hasattr(X, "iloc") and hasattr(X, "index"):
        return "pandas"
    return "polars" if type(X).__module__.partition(".")[0] == "polars" else None


def like_rows(X: Any, values: Array, columns: Sequence[Any] | str) -> Any:
    """Return values in the form of the table that was asked about.

    Parameters
    ----------
    X : array-like or frame of shape (n_rows, n_features)
    values : ndarray of shape (n_rows,) or (n_rows, n_columns)
    columns : sequence, or str if `values` is one column
        Names; those of polars are the texts of them, parts of a pair joined by "_".

    Returns
    -------
    ndarray, or a Series or DataFrame of pandas (with the index of `X`) or of polars
    """
    one = isinstance(columns, str)
    library = library_of(X)
    if library == "pandas":
        import pandas as pd

        if one:
            return pd.Series(values, index=X.index, name=columns)
        paired = isinstance(columns[0], tuple)
        names = pd.MultiIndex.from_tuples(columns) if paired else list(columns)
        return pd.DataFrame(values, index=X.index, columns=names)
    if library == "polars":
        import polars as pl

        if one:
            return pl.Series(columns, values)
        return pl.DataFrame(values, schema=[_text(name) for name in columns])
    return values


def at_thresholds(
    X: Any, probability: Callable[[ArrayLike], Array], threshold: ArrayLike, name: str
) -> Any:
    """Return probabilities at thresholds in the form of X."""
    values = probability(threshold)
    if values.ndim == 1:
        return like_rows(X, values, name)
    shared = as_float_array(threshold, "threshold")
    columns = shared[0].tolist() if len(shared) == 1 else list(range(values.shape[1]))
    return like_rows(X, values, columns)


def _text(name: Any) -> str:
    return "_".join(map(str, name)) if isinstance(name, tuple) else str(name)
