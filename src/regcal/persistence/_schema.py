"""The tree that skops writes: made tidy before it is stored, audited before anything is built.

skops checks the names of types; the audit also checks that a node is of a kind we know, that it is
complete, and that arrays are what their headers say.
"""

import io
import itertools
import json
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

import numpy as np

from regcal.persistence import _types, other_libraries
from regcal.persistence._archive import FileError

Node = dict[str, Any]

# What the state of a tree consists of.
_TREE_STATE = {"max_depth", "node_count", "nodes", "values"}
_NO_TREE = "it holds a tree whose parts do not fit together"

# Nodes within nodes; fitted models have about 30 levels.
_DEEPEST = 100


@dataclass(frozen=True)
class Header:
    """What is known of a stored array before it is read."""

    shape: tuple[int, ...]
    dtype: np.dtype
    first: int | None  # the first entry of an array of whole numbers


@dataclass(frozen=True)
class TreeFiles:
    """The arrays of a tree, by the names of their files, and how many nodes it says to have."""

    n_classes: str
    nodes: str
    values: str
    n_nodes: int


def tidy(schema: Node, arrays: dict[str, bytes]) -> tuple[Node, dict[str, bytes]]:
    """Return a tree and arrays that are numbered in order of appearance.

    Equal models then give equal files, and a part that occurs twice is the same both times. Plain
    values are parts of their own: whether two equal ones are one object differs from run to run.
    """
    first: dict[int, Node] = {}
    numbers = itertools.count(1)
    files: dict[str, str] = {}

    def visited(part: Any) -> Any:
        if isinstance(part, list):
            return [visited(child) for child in part]
        if not isinstance(part, dict):
            return part
        if "__loader__" in part:
            if part["__loader__"] != "JsonNode" and part["__id__"] in first:
                return first[part["__id__"]]
            first[part["__id__"]] = part
            part["__id__"] = next(numbers)
        if "file" in part:
            part["file"] = files.setdefault(part["file"], f"arrays/{len(files)}.npy")
        part.update({key: visited(child) for key, child in part.items()})
        return part

    visited(schema).pop("_skops_version", None)
    return schema, {new: _without_padding(arrays[old]) for old, new in files.items()}


def _without_padding(content: bytes) -> bytes:
    """Return a stored array of records with zeros between the fields, where anything may be."""
    array = np.load(io.BytesIO(content), allow_pickle=False)
    if not array.dtype.names:
        return content
    clean = np.zeros(array.shape, array.dtype)
    for name in array.dtype.names:
        clean[name] = array[name]
    buffer = io.BytesIO()
    np.save(buffer, clean, allow_pickle=False)
    return buffer.getvalue()


def audit(schema: Any, arrays: dict[str, bytes], trusted: Collection[str]) -> tuple[set, set]:
    """Check the whole tree without building anything.

    Returns
    -------
    allowed, missing : set of str
        Names of types that are regcal's, known to be data, or trusted; and all others.
    """
    auditor = _Auditor(arrays, trusted)
    auditor.node(schema, 0)
    for name, content in arrays.items():
        if name not in auditor.files:
            msg = f"{name} belongs to nothing"
            raise FileError(msg)
        auditor.headers[name] = _checked_header(name, content)
    auditor.check_trees()
    return auditor.allowed, auditor.missing


class _Auditor:
    """Walks over nodes; every kind of node that may occur has a method, others are refused."""

    def __init__(self, arrays: dict[str, bytes], trusted: Collection[str]) -> None:
        self.arrays, self.trusted = arrays, trusted
        self.allowed: set[str] = set()
        self.missing: set[str] = set()
        self.files: dict[str, Any] = {}
        self.headers: dict[str, Header] = {}
        self.trees: list[TreeFiles] = []
        self._first: dict[Any, Node] = {}
        self._kinds: dict[str, Callable[[Node, str, int], None]] = {
            "JsonNode": self._json,
            "DictNode": self._dict,
            "ListNode": self._collection("builtins.list"),
            "TupleNode": self._collection("builtins.tuple"),
            "SetNode": self._collection("builtins.set"),
            "SliceNode": self._slice,
            "NdArrayNode": self._array,
            "DTypeNode": self._wrapper("numpy.dtype"),
            "RandomStateNode": self._wrapper("numpy.random.mtrand.RandomState"),
            "RandomGeneratorNode": self._generator,
            "MaskedArrayNode": self._masked,
            "FunctionNode": self._function,
            "TypeNode": self._type,
            "PartialNode": self._partial,
            "ObjectNode": self._object,
            "TreeNode": self._tree,
            "LossNode": self._loss,
        }

    def node(self, node: Any, depth: int) -> None:
        if depth > _DEEPEST:
            msg = f"its parts are nested in more than {_DEEPEST} levels"
            raise FileError(msg)
        loader = _text(node, "__loader__")
        if loader not in self._kinds:
            msg = f"it holds a {loader}, a kind of part that regcal does not store"
            raise FileError(msg)
        self._check_identity(node)
        name = f"{_text(node, '__module__')}.{_text(node, '__class__')}"
        self._kinds[loader](node, name, depth)

    def _check_identity(self, node: Node) -> None:
        # skops builds the first node of an identity only, so the others must be the same
        identity = node.get("__id__")
        if type(identity) is not int or self._first.setdefault(identity, node) != node:
            msg = f"two different parts share the identity {identity!r}"
            raise FileError(msg)

    def _require(self, name: str, known: bool) -> None:
        (self.allowed if known or name in self.trusted else self.missing).add(name)

    def _children(self, nodes: Any, depth: int) -> None:
        if not isinstance(nodes, list):
            msg = "a list is missing in its tree"
            raise FileError(msg)
        for child in nodes:
            self.node(child, depth + 1)

    def _json(self, node: Node, name: str, depth: int) -> None:
        _text(node, "content")

    def _dict(self, node: Node, name: str, depth: int) -> None:
        self._require(name, name in _types.MAPPINGS)
        keys, content = _part(node, "key_types"), _part(node, "content")
        kinds = keys.get("content") or []
        if keys.get("__loader__") != "ListNode" or len(kinds) != len(content):
            msg = "the keys of a mapping do not match its values"
            raise FileError(msg)
        if any(_text(kind, "__loader__") != "TypeNode" for kind in kinds):
            msg = "the keys of a mapping have no types"
            raise FileError(msg)
        self.node(keys, depth + 1)
        self._children(list(content.values()), depth)

    def _collection(self, kind: str) -> Callable[[Node, str, int], None]:
        def check(node: Node, name: str, depth: int) -> None:
            self._require(name, name == kind)
            self._children(node.get("content"), depth)

        return check

    def _slice(self, node: Node, name: str, depth: int) -> None:
        ends = _part(node, "content")
        if name != "builtins.slice" or {type(end) for end in ends.values()} - {int, type(None)}:
            msg = "a slice has ends that are no numbers"
            raise FileError(msg)

    def _array(self, node: Node, name: str, depth: int) -> None:
        self._require(name, name == "numpy.ndarray" or name in _types.SCALARS)
        if node.get("type") == "json":
            self._children(node.get("content"), depth)
            self.node(node.get("shape"), depth + 1)
            return
        file = _text(node, "file")
        # each array is read once, so that a small file cannot fill the memory
        if file not in self.arrays or self.files.setdefault(file, node["__id__"]) != node["__id__"]:
            msg = f"the array {file!r} is missing, or two parts share it"
            raise FileError(msg)

    def _wrapper(self, kind: str) -> Callable[[Node, str, int], None]:
        def check(node: Node, name: str, depth: int) -> None:
            self._require(name, name == kind)
            self.node(node.get("content"), depth + 1)

        return check

    def _generator(self, node: Node, name: str, depth: int) -> None:
        self._require(name, name == "numpy.random._generator.Generator")
        parts = _part(node, "content")
        state, seed = _part(parts, "bit_generator"), _part(parts, "seed_seq")
        kind = _value(_part(_part(state, "content"), "bit_generator"))
        if kind != '"PCG64"' or _value(_part(_part(seed, "content"), "pool_size")) != "4":
            msg = "it holds a random generator that is not numpy's default"
            raise FileError(msg)
        self._children([state, seed], depth)

    def _masked(self, node: Node, name: str, depth: int) -> None:
        self._require(name, name in ("numpy.ma.MaskedArray", "numpy.ma.core.MaskedArray"))
        parts = _part(node, "content")
        self._children([parts.get("data"), parts.get("mask")], depth)

    def _function(self, node: Node, name: str, depth: int) -> None:
        self._require(name, _types.is_function(name))

    def _type(self, node: Node, name: str, depth: int) -> None:
        self._require(name, name in _types.PLAIN_TYPES)

    def _partial(self, node: Node, name: str, depth: int) -> None:
        function = _part(_part(node, "content"), "func")
        known = f"{_text(function, '__module__')}.{_text(function, '__class__')}"
        self._require(name, name == "functools.partial" and known in _types.CHECKING_FUNCTIONS)
        for part in ("func", "args", "kwds", "namespace"):
            self.node(_part(node, "content").get(part), depth + 1)

    def _object(self, node: Node, name: str, depth: int) -> None:
        stored = name == other_libraries.STORED
        self._require(name, stored or name in _types.object_types())
        if stored:
            kind = _part(_part(_part(node, "content"), "content"), "kind")
            self._require(str(parse("a name", _value(kind).encode())), False)
        if node.get("content") is not None:
            self.node(node["content"], depth + 1)

    def _tree(self, node: Node, name: str, depth: int) -> None:
        self._require(name, name == _types.TREE)
        arguments = self._reduced(node, depth)
        if len(arguments) != 3 or _value(arguments[2]) != "1":
            msg = "it holds a tree with several outputs, which regcal does not store"
            raise FileError(msg)
        state = _part(node, "content")
        if _text(state, "__loader__") != "DictNode" or set(_part(state, "content")) != _TREE_STATE:
            raise FileError(_NO_TREE)
        parts = _part(state, "content")
        for number in (arguments[0], parts["max_depth"], parts["node_count"]):
            if not _value(number).isdecimal():
                raise FileError(_NO_TREE)
        self.trees.append(
            TreeFiles(
                n_classes=_array_file(arguments[1]),
                nodes=_array_file(parts["nodes"]),
                values=_array_file(parts["values"]),
                n_nodes=int(_value(parts["node_count"])),
            )
        )

    def check_trees(self) -> None:
        """Check the arrays that a tree reads unchecked when it is built."""
        for tree in self.trees:
            classes, nodes, values = (
                self.headers[file] for file in (tree.n_classes, tree.nodes, tree.values)
            )
            good = classes.shape == (1,) and nodes.shape == (tree.n_nodes,) and tree.n_nodes > 0
            good &= values.shape == (tree.n_nodes, 1, *values.shape[2:3])
            good &= (classes.dtype, values.dtype) == (np.dtype(np.intp), np.dtype(np.float64))
            if not good or nodes.dtype.names is None or classes.first != values.shape[2]:
                raise FileError(_NO_TREE)

    def _loss(self, node: Node, name: str, depth: int) -> None:
        if name not in _types.LOSSES:
            msg = f"{name} is not a loss that regcal stores"
            raise FileError(msg)
        self._require(name, True)
        for argument in self._reduced(node, depth):
            _value(argument)

    def _reduced(self, node: Node, depth: int) -> list[Node]:
        """Check the parts of a compiled object and return its constructor's arguments."""
        arguments = _part(_part(node, "__reduce__"), "args")
        self.node(arguments, depth + 1)
        self.node(node.get("content"), depth + 1)
        return list(arguments.get("content") or ())


def _part(node: Any, key: str) -> Node:
    part = node.get(key) if isinstance(node, dict) else None
    if not isinstance(part, dict):
        msg = f"{key!r} is missing in its tree"
        raise FileError(msg)
    return part


def _value(node: Node) -> str:
    """Return the JSON text of a number or a text; other kinds of parts may carry one unused."""
    if _text(node, "__loader__") != "JsonNode":
        msg = "it has a number that is none"
        raise FileError(msg)
    return _text(node, "content")


def _text(node: Any, key: str) -> str:
    text = node.get(key) if isinstance(node, dict) else None
    if not isinstance(text, str):
        msg = f"{key!r} is missing in its tree"
        raise FileError(msg)
    return text


def _array_file(node: Node) -> str:
    """Return the file of a part that is an array and no scalar."""
    name = f"{_text(node, '__module__')}.{_text(node, '__class__')}"
    if _text(node, "__loader__") != "NdArrayNode" or name != "numpy.ndarray":
        raise FileError(_NO_TREE)
    if node.get("type") != "numpy":
        raise FileError(_NO_TREE)
    return _text(node, "file")


def _checked_header(name: str, content: bytes) -> Header:
    """Return what an array's header tells, if it is plain data of just that size."""
    buffer = io.BytesIO(content)
    try:
        version = np.lib.format.read_magic(buffer)
        read = {
            (1, 0): np.lib.format.read_array_header_1_0,
            (2, 0): np.lib.format.read_array_header_2_0,
        }[version]
        shape, _, dtype = read(buffer)
        size = int(np.prod(shape, dtype=object)) * dtype.itemsize
        good = not dtype.hasobject and dtype.itemsize > 0 and min(shape, default=0) >= 0
    except Exception as error:
        # whatever a crafted header provokes in its parser
        msg = f"{name} is not an array ({error})"
        raise FileError(msg) from error
    if not good or len(content) - buffer.tell() != size:
        msg = f"{name} is not an array of plain numbers of the size it claims"
        raise FileError(msg)
    whole = size and dtype.kind == "i"
    first = np.frombuffer(content, dtype, count=1, offset=buffer.tell()) if whole else None
    return Header(shape, dtype, None if first is None else int(first[0]))


def parse(name: str, content: bytes) -> Any:
    """Return the value of a JSON member."""
    try:
        return json.loads(content)
    except (ValueError, RecursionError) as error:
        msg = f"{name} is not readable ({error})"
        raise FileError(msg) from error
