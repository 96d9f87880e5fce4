"""A digest of an object and all it holds, the same in every process."""

import hashlib
import struct
import types
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial, singledispatch
from typing import Any

import numpy as np

from regcal.persistence import other_libraries


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
    if other_libraries.is_known(value):
        stored = other_libraries.as_stored(value)
        return _name(type(value)), [stored.written, stored.attributes]
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


@_described.register
def _of_partial(value: partial) -> tuple[bytes, Sequence[Any]]:
    # its own attributes are made by looking at them
    return b"partial:", [value.func, value.args, value.keywords]


@_described.register(type)
@_described.register(types.FunctionType)
@_described.register(types.BuiltinFunctionType)
@_described.register(np.ufunc)
def _of_named(value: Any) -> tuple[bytes, Sequence[Any]]:
    return _name(value) + value.__name__.encode(), ()
