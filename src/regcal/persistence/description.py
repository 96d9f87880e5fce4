"""The text about a fitted object: its class, its parameters and what it has learnt."""

import types
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from regcal.calibrators import Support
from regcal.covariates import Covariates
from regcal.persistence.fingerprint import fingerprint

# Longer arrays and lists are described by their size and range.
_MANY = 8

# Descriptions of parts of parts stop here.
_DEEPEST = 5


def describe(value: Any) -> str:
    """Return the text about a fitted object, which ends with its fingerprint."""
    lines = [type(value).__name__, *_block(value, 1), f"  fingerprint: {fingerprint(value)}"]
    return "\n".join(lines)


def _block(value: Any, depth: int) -> list[str]:
    """Return indented lines, one or more for each parameter and learnt attribute."""
    lines: list[str] = []
    for name, part in _attributes(value):
        worded = isinstance(part, Support | Covariates)
        inline = part.described() if worded else _inline(part)
        if inline == "" or (isinstance(part, tuple) and not part):
            continue  # the whole line, and what nothing was seen of
        if inline is not None:
            lines.append(f"{name}: {inline}")
        elif isinstance(part, list):
            lines.append(f"{name}:")
            for item in part:
                lines.extend(["  " + line for line in _item(item, depth)])
        else:
            lines.append(f"{name}: {type(part).__name__}")
            # parts of parts would be the inner workings
            inner = is_dataclass(value) and is_dataclass(part)
            lines.extend(_block(part, depth + 1) if depth < _DEEPEST and not inner else [])
    return ["  " + line for line in lines]


def _item(item: Any, depth: int) -> list[str]:
    """Return a line for a record of plain values, a block for anything that has parts."""
    parts = [(name, _inline(part)) for name, part in _attributes(item)]
    if all(text is not None for _, text in parts):
        return [", ".join(f"{name}: {text}" for name, text in parts)]
    return [type(item).__name__, *(_block(item, depth + 1) if depth < _DEEPEST else [])]


def _attributes(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield parameters and learnt attributes, computed ones included, with their names."""
    if isinstance(value, BaseEstimator):
        yield from value.get_params(deep=False).items()
        learnt = [name for name in vars(value) if _is_learnt(name)]
        kind = type(value)
        if kind.__module__.startswith("regcal."):
            computed = (name for name in dir(kind) if isinstance(getattr(kind, name), property))
            learnt += [name for name in computed if _is_learnt(name)]
        # an estimator that is only a parameter has not learnt anything
        yield from ((name, getattr(value, name)) for name in learnt if hasattr(value, name))
    elif is_dataclass(value):
        yield from ((field.name, getattr(value, field.name)) for field in fields(value))


def _is_learnt(name: str) -> bool:
    return name.endswith("_") and not name.startswith("_")


def _inline(value: Any) -> str | None:
    """Return a value that fits on a line, None for objects that need several."""
    if isinstance(value, float | np.floating):
        return f"{float(value):.6g}"
    if value is None or isinstance(value, bool | int | str | np.generic):
        return repr(value.item() if isinstance(value, np.generic) else value)
    if isinstance(value, np.ndarray):
        return _inline_array(value)
    if isinstance(value, list | tuple | dict | set):
        return _inline_collection(value)
    if not type(value).__module__.startswith("regcal."):
        return _one_line(value)
    if isinstance(value, BaseEstimator) or is_dataclass(value):
        return None if any(True for _ in _attributes(value)) else f"{type(value).__name__}()"
    return getattr(value, "__qualname__", type(value).__name__)


def _one_line(value: Any) -> str:
    """Return a model of another package, or a function, as code shows it."""
    if isinstance(value, types.FunctionType | types.BuiltinFunctionType | type | np.ufunc):
        return value.__name__
    estimator = isinstance(value, BaseEstimator) or hasattr(value, "get_n_splits")
    return " ".join(repr(value).split()) if estimator else type(value).__name__


def _inline_array(array: np.ndarray) -> str:
    if array.size <= _MANY and array.ndim <= 1:
        return "[" + ", ".join(_inline(item) or "..." for item in array.ravel()) + "]"
    size = " × ".join(map(str, array.shape))
    if np.issubdtype(array.dtype, np.number) and array.size:
        return f"{size} values from {_inline(array.min())} to {_inline(array.max())}"
    return f"{size} values"


def _inline_collection(values: Any) -> str | None:
    own = isinstance(values, list) and all(
        type(item).__module__.startswith("regcal.") for item in values
    )
    if own and values:
        return None
    if isinstance(values, list | tuple) and len(values) <= _MANY:
        texts = [_inline(item) or type(item).__name__ for item in values]
        return "[" + ", ".join(texts) + "]"
    return f"{len(values)} entries"
