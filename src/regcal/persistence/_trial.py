"""Models of scikit-learn are asked about a few rows when they are saved, and again when loaded.

regcal's own classes have rules for every number (`regcal.persistence._numbers`). scikit-learn has
two hundred classes whose arrays have to fit together in as many ways, and each of them knows its
own: what was answered before a model was stored has to be answered after it. Rows that an honest
model does not take, such as zeros before a logarithm, are not asked again.
"""

import contextlib
import io
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from joblib import parallel_config
from sklearn import config_context
from sklearn.base import BaseEstimator
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import Pipeline

from regcal.adapters import accepts
from regcal.persistence._archive import FileError
from regcal.persistence.fingerprint import walk

# What numbers of a row are. In the same order, columns of categories have their first categories.
_ROWS = {"zeros": 0.0, "ones": 1.0, "minus ones": -1.0, "missing": np.nan}

# So many rows are made of them: with a prime number, no array fits in by chance.
_LENGTH = 7

# Wider tables are not asked about: their number of columns may be all that a file says about them.
_WIDEST = 10**5


def answered_rows(model: Any) -> list[list[str]]:
    """Return the rows that each of scikit-learn's models in an object has an answer to."""
    return [_answered_by(part) for part in _models_in(model)]


def check_answers(model: Any, answered: Any) -> None:
    """Refuse an object whose models do not answer what they answered when it was saved."""
    parts = list(_models_in(model))
    if not isinstance(answered, list) or len(answered) != len(parts):
        msg = "its manifest does not tell what its models answered when it was saved"
        raise FileError(msg)
    for part, known in zip(parts, answered, strict=True):
        rows = [name for name in _ROWS if isinstance(known, list) and name in known]
        try:
            _ask(part, rows)
        except ImportError:
            # without pandas nobody asks it by the names of columns
            continue
        except Exception as error:
            # whatever unfitting parts provoke in the code of scikit-learn
            msg = (
                f"its {type(part).__name__} does not answer rows that it answered when it was "
                f"saved ({type(error).__name__}: {error})"
            )
            raise FileError(msg) from error


def _models_in(value: Any, seen: set[int] | None = None) -> Iterator[BaseEstimator]:
    """Yield fitted models of scikit-learn that no other one holds."""
    seen = set() if seen is None else seen
    if id(value) in seen:
        return
    seen.add(id(value))
    kind = type(value).__module__
    if isinstance(value, BaseEstimator) and kind.startswith("sklearn."):
        if hasattr(value, "n_features_in_"):
            yield value
    elif isinstance(value, list | tuple | dict) or kind.startswith("regcal."):
        held = value if isinstance(value, list | tuple | dict) else getattr(value, "__dict__", {})
        for part in held.values() if isinstance(held, dict) else held:
            yield from _models_in(part, seen)


def _answered_by(part: BaseEstimator) -> list[str]:
    rows: list[str] = []
    for name in _ROWS:
        with contextlib.suppress(Exception):
            _ask(part, [*rows, name])
            rows.append(name)
    return rows


def _ask(part: BaseEstimator, rows: Sequence[str]) -> None:
    """Let a model predict these rows, without a word and in this process."""
    if not rows or part.n_features_in_ > _WIDEST:
        return
    with (
        warnings.catch_warnings(),
        np.errstate(all="ignore"),
        parallel_config(backend="sequential"),
        config_context(assume_finite=False, transform_output="default"),
        contextlib.redirect_stdout(io.StringIO()),
        contextlib.redirect_stderr(io.StringIO()),
    ):
        warnings.simplefilter("ignore")
        _check_finite(_answer(part, _table(part, rows)))


def _answer(part: Any, table: Any) -> Any:
    if isinstance(part, Pipeline) and len(part) > 1:
        return _answer(part[-1], part[:-1].transform(table))
    if not hasattr(part, "predict"):
        return part.transform(table)
    if accepts(part.predict, "return_std"):
        return part.predict(table, return_std=True)
    return part.predict(table)


def _check_finite(answer: Any) -> None:
    for part in answer if isinstance(answer, tuple) else (answer,):
        plain = isinstance(part, np.ndarray) and part.dtype.kind == "f"
        if plain and not np.isfinite(part).all():
            msg = "the answers are not finite"
            raise ValueError(msg)


def _table(part: Any, rows: Sequence[str]) -> Any:
    """Return the rows as a model takes them: a frame if it chooses columns by their names."""
    numbers = np.resize([_ROWS[name] for name in rows], _LENGTH)
    held = list(walk(part))
    names = getattr(part, "feature_names_in_", None)
    if names is None or not any(isinstance(value, ColumnTransformer) for value in held):
        return np.repeat(numbers[:, np.newaxis], part.n_features_in_, axis=1)
    import pandas as pd

    return pd.DataFrame(dict.fromkeys(names, numbers) | _categories_in(held, rows))[names]


def _categories_in(held: Sequence[Any], rows: Sequence[str]) -> dict[str, np.ndarray]:
    """Return a column of known categories for each that an encoder knows by its name."""
    places = np.resize([list(_ROWS).index(name) for name in rows], _LENGTH)
    return {
        name: np.array([known[place % len(known)] for place in places], dtype=object)
        for encoder in held
        if hasattr(encoder, "categories_") and hasattr(encoder, "feature_names_in_")
        for name, known in zip(encoder.feature_names_in_, encoder.categories_, strict=True)
    }
