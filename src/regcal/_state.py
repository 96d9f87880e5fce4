"""What an object has learnt: its state without caches, a digest of it, and a readable summary.

Depends on NumPy and scikit-learn's base class only.
"""

import hashlib
import struct
import types
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import singledispatch
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

# Longer arrays and lists are described by their size and range.
_MANY = 8

# Summaries of parts of parts stop here.
_DEEPEST = 5


class Auditable:
    """Fitted objects that can be identified and described."""

    def fingerprint(self) -> str:
        """Return a digest of the class, the parameters and all that was learnt.

        Equal objects have equal fingerprints in every process, before and after
        `regcal.save` and `regcal.load`. Any difference in a parameter or a learnt number
        changes it.

        Returns
        -------
        str
            64 hexadecimal digits.

        Examples
        --------
        >>> from regcal import Normal, ScaleCalibrator
        >>> dist = Normal([0.0, 0.0], [1.0, 1.0])
        >>> one, same = ScaleCalibrator().fit(dist, [1, 2]), ScaleCalibrator().fit(dist, [2, 1])
        >>> one.fingerprint() == same.fingerprint()
        True
        >>> one.fingerprint() == ScaleCalibrator().fit(dist, [1, 3]).fingerprint()
        False
        """
        check_is_fitted(self)
        return fingerprint(self)

    def summary(self) -> str:
        """Return a text for people: method, parameters and what was learnt.

        Returns
        -------
        str
            Several lines.

        Examples
        --------
        >>> from regcal import Normal, ScaleCalibrator
        >>> print(ScaleCalibrator().fit(Normal([0.0, 0.0], [1.0, 1.0]), [1, 2]).summary())
        ScaleCalibrator
          prior_rows: 1
          n_rows_seen_: 2
          factor_: 1.41421
          map_: ScaleMap
            factor: 1.41421
          fingerprint: ...
        """
        check_is_fitted(self)
        return summary(self)


# ------------------------------------------------------------------------------------- fingerprint


def fingerprint(value: Any) -> str:
    """Return the digest of a value and all it holds, in hexadecimal digits."""
    return _Digests().of(value).hex()


def walk(value: Any) -> Iterator[Any]:
    """Yield a value and all it holds; each object once, and before its parts are read."""
    waiting, seen = [value], {}
    while waiting:
        current = waiting.pop()
        if id(current) in seen:
            continue
        seen[id(current)] = current
        yield current
        waiting.extend(_described(current)[1])


class _Digests:
    """SHA-256 of values from their own bytes and the digests of their parts."""

    def __init__(self) -> None:
        self._known: dict[int, bytes] = {}
        self._alive: list[Any] = []  # so that no identity is used twice
        self._open: set[int] = set()

    def of(self, value: Any) -> bytes:
        key = id(value)
        if key in self._known:
            return self._known[key]
        if key in self._open:
            return b"the object itself"
        self._alive.append(value)
        self._open.add(key)
        own, parts = _described(value)
        digests = [self.of(part) for part in parts]
        if isinstance(value, set | frozenset):
            digests.sort()
        self._open.discard(key)
        self._known[key] = hashlib.sha256(
            struct.pack("<q", len(own)) + own + b"".join(digests)
        ).digest()
        return self._known[key]


@singledispatch
def _described(value: Any) -> tuple[bytes, Sequence[Any]]:
    """Return bytes that tell values of a kind apart, and the parts."""
    reduced = value.__reduce_ex__(2)
    if isinstance(reduced, str):
        return _name(type(value)) + reduced.encode(), ()
    _, arguments, state, items, pairs = (*reduced, None, None, None)[:5]
    if isinstance(state, Mapping):
        # scikit-learn adds its version, which is not learnt
        state = {name: part for name, part in state.items() if name != "_sklearn_version"}
    return _name(type(value)), [arguments, state, list(items or ()), list(pairs or ())]


def _name(kind: type | types.FunctionType) -> bytes:
    """Return package and class, without the module, which may move."""
    package = (getattr(kind, "__module__", None) or "").split(".")[0]
    return f"{package}.{getattr(kind, '__qualname__', kind)}:".encode()


@_described.register(type(None))
@_described.register(bool)
@_described.register(int)
@_described.register(str)
@_described.register(bytes)
@_described.register(slice)
def _of_plain(value: Any) -> tuple[bytes, Sequence[Any]]:
    return _name(type(value)) + repr(value).encode("utf-8", "backslashreplace"), ()


@_described.register
def _of_float(value: float) -> tuple[bytes, Sequence[Any]]:
    return b"float:" + (b"nan" if value != value else struct.pack("<d", value)), ()


@_described.register(list)
@_described.register(tuple)
@_described.register(set)
@_described.register(frozenset)
def _of_collection(value: Iterable[Any]) -> tuple[bytes, Sequence[Any]]:
    return _name(type(value)), list(value)


@_described.register
def _of_dict(value: dict) -> tuple[bytes, Sequence[Any]]:
    ordered = sorted(value.items(), key=lambda item: (type(item[0]).__name__, str(item[0])))
    return _name(type(value)), [part for item in ordered for part in item]


@_described.register(np.ndarray)
@_described.register(np.generic)
def _of_array(value: Any) -> tuple[bytes, Sequence[Any]]:
    kind = f"{type(value).__name__}:{value.dtype.str}:{value.dtype.descr}:{np.shape(value)}:"
    if value.dtype.hasobject:
        return kind.encode(), np.ravel(value).tolist()
    if value.dtype.names:
        # one by one: between the fields of a record are bytes that mean nothing
        return str(np.shape(value)).encode(), [value[name] for name in value.dtype.names]
    little = value.astype(value.dtype.newbyteorder("<"))
    return kind.replace(">", "<").encode() + little.tobytes(), ()


@_described.register(np.dtype)
def _of_dtype(value: np.dtype) -> tuple[bytes, Sequence[Any]]:
    return f"dtype:{value.str}:{value.descr}".encode(), ()


@_described.register
def _of_random_state(value: np.random.RandomState) -> tuple[bytes, Sequence[Any]]:
    return b"RandomState:", [value.get_state(legacy=False)]


@_described.register
def _of_generator(value: np.random.Generator) -> tuple[bytes, Sequence[Any]]:
    return b"Generator:", [value.bit_generator.state]


@_described.register(type)
@_described.register(types.FunctionType)
@_described.register(types.BuiltinFunctionType)
@_described.register(np.ufunc)
def _of_named(value: Any) -> tuple[bytes, Sequence[Any]]:
    return _name(value) + value.__name__.encode(), ()


# ----------------------------------------------------------------------------------------- summary


def summary(value: Any) -> str:
    """Return a readable description of a fitted object, which ends with its fingerprint."""
    lines = [type(value).__name__, *_block(value, 1), f"  fingerprint: {fingerprint(value)}"]
    return "\n".join(lines)


def _block(value: Any, depth: int) -> list[str]:
    """Return indented lines, one or more for each parameter and learnt attribute."""
    lines: list[str] = []
    for name, part in _attributes(value):
        inline = _inline(part)
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
