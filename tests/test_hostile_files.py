"""Whatever a file holds: a clean refusal or a model, never code that runs, never another error."""

import hashlib
import io
import json
import pickle
import re
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
from cases import STANDARD, fitted_calibrator
from hostile import change_tree, members_of, npy, run, sealed, storable, write_originals
from sklearn.ensemble import (
    GradientBoostingRegressor,
    HistGradientBoostingRegressor,
    RandomForestRegressor,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import regcal
from regcal.persistence._archive import pack

TRAP = """
raise SystemExit("a file has imported this")
"""


@pytest.fixture(autouse=True)
def _trap(tmp_path, monkeypatch):
    """Put a module in reach that ends the tests when it is imported."""
    (tmp_path / "trap_module.py").write_text(TRAP)
    monkeypatch.syspath_prepend(tmp_path)
    yield
    assert "trap_module" not in sys.modules


@pytest.fixture
def path(tmp_path) -> Path:
    return tmp_path / "model.regcal"


@pytest.fixture
def small(path) -> bytes:
    """Return the file of a small calibrator with arrays."""
    regcal.save(fitted_calibrator("pit", "normal", 0, STANDARD), path)
    return path.read_bytes()


def resealed(data: bytes) -> bytes:
    """Return changed bytes with the right digest at their end."""
    return data[:-64] + hashlib.sha256(data[:-64]).hexdigest().encode()


def with_schema(data: bytes, change) -> bytes:
    """Return a well-sealed file whose tree was changed."""
    members = members_of(data)
    schema = json.loads(members["schema.json"])
    changed = change(schema)
    members["schema.json"] = json.dumps(schema if changed is None else changed).encode()
    return sealed(members)


def write_anew(data: bytes, path: Path) -> None:
    """Write a file in place of another; to write over it would wait for the disk."""
    path.unlink(missing_ok=True)
    path.write_bytes(data)


def assert_refused(data: bytes, path: Path, match: str = "refused"):
    write_anew(data, path)
    with pytest.raises(regcal.FileError, match=match) as refusal:
        regcal.load(path)
    assert str(refusal.value).startswith(f"{path} is refused: ")


def loads_or_refuses(data: bytes, path: Path) -> bool:
    """Return whether a file was refused; anything but a refusal or a model is an error."""
    write_anew(data, path)
    try:
        model = regcal.load(path)
    except regcal.FileError as error:
        assert len(str(error)) > len(str(path)) + 20
        return True
    assert isinstance(model, regcal.Calibrator)
    return False


# ------------------------------------------------------------------------------ damage by accident


def test_every_flipped_byte_is_a_refusal(small, path):
    """No damaged file loads, wherever the damage is."""
    rng = np.random.default_rng(0)

    for place in range(len(small)):
        damaged = bytearray(small)
        damaged[place] ^= 1 << int(rng.integers(8))
        assert_refused(bytes(damaged), path)


def test_every_truncation_is_a_refusal(small, path):
    """No part of a file loads."""
    for length in range(0, len(small), 3):
        assert_refused(small[:length], path, "empty|cut off|something else")
    assert_refused(small + b"x", path, "cut off")


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "empty"),
        (b"mu,sigma\n1,2\n", "not a regcal file"),
        (pickle.dumps({"a": 1}), "pickle"),
        (b"PK\x03\x04", "cut off"),
        (b"PK\x05\x06" + bytes(18), "not a regcal file"),
    ],
    ids=["empty", "table", "pickle", "start of a zip", "empty zip"],
)
def test_other_files_are_told(data, reason, path):
    """A file of another kind is called so."""
    assert_refused(data, path, reason)
    with pytest.raises(regcal.FileError, match=reason):
        regcal.file_info(path)


# ------------------------------------------------------------------------------ damage by intention


def test_flipped_bytes_with_right_digests_do_no_harm(small, path):
    """The archive's own structures may be crafted, too."""
    rng = np.random.default_rng(1)
    refused = []

    # every third byte: all members, heads and numbers of the archive are met
    for place in range(0, len(small) - 64, 3):
        damaged = bytearray(small)
        damaged[place] = int(rng.integers(256))
        refused.append(loads_or_refuses(resealed(bytes(damaged)), path))

    assert np.mean(refused) > 0.8


def test_mutated_trees_do_no_harm(small, path):
    """Values of the tree are replaced, removed and moved, with all digests right."""
    rng = np.random.default_rng(2)
    refused = 0

    def mutate(schema):
        for _ in range(rng.integers(1, 3)):
            change_tree(schema, rng)

    for _ in range(400):
        refused += loads_or_refuses(with_schema(small, mutate), path)

    assert refused > 200


def nodes_of(part):
    if isinstance(part, dict):
        if "__loader__" in part:
            yield part
        for child in part.values():
            yield from nodes_of(child)
    elif isinstance(part, list):
        for child in part:
            yield from nodes_of(child)


def planted(node: dict):
    """Return a change that puts a node in place of the first attribute of a model."""

    def change(schema):
        attributes = schema["content"]["content"]
        first = next(iter(attributes))
        attributes[first] = {"__id__": 10**6, **node}

    return change


def json_node(value, number=10**7):
    text = json.dumps(value)
    names = {"__class__": "str", "__module__": "builtins", "__loader__": "JsonNode"}
    return {**names, "content": text, "__id__": number}


def tuple_node(*parts):
    names = {"__class__": "tuple", "__module__": "builtins", "__loader__": "TupleNode"}
    return {**names, "content": list(parts), "__id__": 10**8}


def named(module, name, loader, **parts):
    return {"__module__": module, "__class__": name, "__loader__": loader, **parts}


CODE = json_node("import trap_module")
OWNER = {"__id__": 10**9, **named("regcal.gp.links", "Probit", "ObjectNode")}

PLANTED = {
    "a foreign class": (named("trap_module", "Trap", "ObjectNode"), r"uses trap_module\.Trap"),
    "a function": (named("posix", "system", "FunctionNode"), r"uses posix\.system"),
    "a builtin": (named("builtins", "eval", "TypeNode"), r"uses builtins\.eval"),
    "a function of ours": (
        named("regcal.report.build", "report", "FunctionNode"),
        r"uses regcal\.report\.build\.report",
    ),
    "a class of ours that is no data": (
        named("regcal.plots.row", "RowDisplay", "ObjectNode"),
        r"uses regcal\.plots\.row\.RowDisplay",
    ),
    "a function of numpy": (named("numpy", "load", "FunctionNode"), r"uses numpy\.load"),
    "a constructor": (
        named("subprocess", "Popen", "ConstructorFromReduceNode", content=tuple_node(CODE)),
        "ConstructorFromReduceNode",
    ),
    "a known class with arguments": (
        named(
            "regcal.distributions.normal",
            "Normal",
            "ConstructorFromReduceNode",
            content=tuple_node(CODE),
        ),
        "ConstructorFromReduceNode",
    ),
    "a method": (
        named(
            "regcal.gp.links",
            "Probit",
            "MethodNode",
            content={"func": "__reduce_ex__", "obj": OWNER},
        ),
        "MethodNode",
    ),
    "an operator": (
        named("operator", "methodcaller", "OperatorFuncNode", attrs=tuple_node(CODE)),
        "OperatorFuncNode",
    ),
    "a partial": (
        named(
            "functools",
            "partial",
            "PartialNode",
            content={
                "func": {"__id__": 11, **named("posix", "system", "FunctionNode")},
                "args": tuple_node(CODE),
                "kwds": json_node(None),
                "namespace": json_node(None, 10**7 + 1),
            },
        ),
        "identity|functools",
    ),
    "a list that is a function": (
        named("builtins", "exec", "ListNode", content=[CODE]),
        r"uses builtins\.exec",
    ),
    "a mapping that is a function": (
        named(
            "trap_module",
            "Trap",
            "DictNode",
            content={},
            key_types={"__id__": 12, **named("builtins", "list", "ListNode", content=[])},
        ),
        "identity|uses trap_module",
    ),
    "an array that is a function": (
        named("trap_module", "Trap", "NdArrayNode", type="numpy", file="arrays/0.npy"),
        "share",
    ),
    "a cached part": (named("a", "b", "CachedNode"), "CachedNode"),
    "an incomplete part": ({"__loader__": "ListNode"}, "missing"),
    "a sparse matrix": (
        named("scipy.sparse", "csr_matrix", "SparseMatrixNode", type="scipy", file="arrays/0.npy"),
        "SparseMatrixNode",
    ),
}


@pytest.mark.parametrize("name", PLANTED)
def test_planted_parts_are_refused(name, small, path):
    """A part that could act is refused before anything is imported or built, and is named."""
    node, reason = PLANTED[name]

    assert_refused(with_schema(small, planted(node)), path, reason)


def test_refusal_says_how_to_trust(small, path):
    """The names are ready to be passed on, and trusted modules are imported only then."""
    node, _ = PLANTED["a foreign class"]
    data = with_schema(small, planted(node))

    assert_refused(data, path, re.escape("pass trusted=['trap_module.Trap'] to regcal.load"))
    with pytest.raises(SystemExit, match="imported"):
        regcal.load(path, trusted=["trap_module.Trap"])


def test_root_must_be_a_model(small, path):
    """A file of ours that holds something else is refused."""
    other = json.dumps({**json_node([1]), "protocol": 2}).encode()
    manifest = members_of(small)["manifest.json"]

    assert_refused(sealed({"manifest.json": manifest, "schema.json": other}), path, "holds a list")
    assert_refused(with_schema(small, lambda schema: []), path, "missing")


@pytest.mark.parametrize("protocol", [0, 1, None, True, 99])
def test_old_protocols_of_the_tree_are_refused(protocol, small, path):
    """Nodes of older protocols check less."""

    def change(schema):
        schema["protocol"] = protocol

    assert_refused(with_schema(small, change), path, "protocol")


def test_newer_formats_are_told(small, path):
    """The refusal names both versions."""
    members = members_of(small)
    manifest = json.loads(members["manifest.json"])
    manifest["format"], manifest["versions"]["regcal"] = 2, "9.1"
    members["manifest.json"] = json.dumps(manifest).encode()

    assert_refused(sealed(members), path, r"format 2, written by regcal 9\.1.*Upgrade")


@pytest.mark.parametrize("value", [0, "1", None, True, 1.0, [1]])
def test_formats_that_are_none_are_refused(value, small, path):
    """A format is a positive whole number."""
    members = members_of(small)
    manifest = json.loads(members["manifest.json"])
    manifest["format"] = value
    members["manifest.json"] = json.dumps(manifest).encode()

    assert_refused(sealed(members), path, "does not tell the format")


# Of every kind that has numbers or trees of its own; all kinds and many more files are the business
# of benchmarks/hostile_files.py.
KINDS = (
    "scale",
    "pit",
    "e-beta, result",
    "gpc",
    "covariates",
    "covariates, trees",
    "distribution, quantiles",
    "distribution, mixture",
    "forest",
    "gradient boosting",
    "histogram boosting, categories",
    "pipeline",
    "bins",
    "process",
    "network",
    "calibrated forest",
    "lightgbm",
)


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="limits of Linux")
def test_mutated_files_of_every_kind_do_no_harm(tmp_path):
    """Arrays, numbers and classes are changed: what is not refused works, with right digests."""
    makers = {name: make for name, make in storable().items() if name in KINDS}
    names = write_originals(tmp_path, makers)

    found = run(tmp_path, 0, 120)

    answers = [verdict for verdict, _ in found.values()]
    wrong = {k: why for k, (why, _) in found.items() if why not in ("refused", "works")}
    assert not wrong, {k: (names[k % len(names)], why) for k, why in wrong.items()}
    assert answers.count("refused") > 60
    assert answers.count("works") > 10


# ------------------------------------------------------------------------------------------ archive


def zipped(entries, method=zipfile.ZIP_DEFLATED) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as archive:
        for name, content in entries:
            archive.writestr(name, content)
        archive.comment = b"regcal sha256 " + bytes(64)
    return resealed(buffer.getvalue())


@pytest.mark.parametrize(
    "name",
    [
        "../evil.npy",
        "/etc/passwd",
        "arrays/../x.npy",
        "payload.pkl",
        "a" * 999,
    ],
)
def test_strange_names_are_refused(name, small, path):
    """Members have the names that `save` gives them."""
    assert_refused(zipped([*members_of(small).items(), (name, b"x")]), path, "no regcal file does")


def test_names_that_end_early_are_refused(small, path):
    """A zero byte hides the rest of a name from some programs."""
    data = zipped([*members_of(small).items(), ("arrays/9.npyX.exe", b"x")])

    assert_refused(
        resealed(data.replace(b".npyX.exe", b".npy\0.exe")), path, "no regcal file does|readable"
    )


@pytest.mark.filterwarnings("ignore:Duplicate name:UserWarning")
def test_doubled_members_are_refused(small, path):
    """What is checked is what is read."""
    members = list(members_of(small).items())

    assert_refused(zipped([*members, members[1]]), path, "twice")


def test_swapped_renamed_missing_and_added_members_are_refused(small, path):
    """The manifest knows every member by its content."""
    members = members_of(small)
    swapped = members | {
        "arrays/0.npy": members["arrays/1.npy"],
        "arrays/1.npy": members["arrays/0.npy"],
    }
    renamed = {name.replace("0.npy", "9.npy"): content for name, content in members.items()}
    missing = {name: content for name, content in members.items() if name != "arrays/0.npy"}
    added = members | {"arrays/9.npy": members["arrays/0.npy"]}

    for changed in (swapped, renamed, missing, added):
        assert_refused(pack(changed), path, "members are not those")
    assert_refused(sealed(renamed), path, "missing, or two")
    assert_refused(sealed(missing), path, "missing, or two")
    assert_refused(sealed(added), path, "belongs to nothing")
    for name in ("manifest.json", "schema.json"):
        rest = {key: content for key, content in members.items() if key != name}
        assert_refused(pack(rest), path, "missing")


def test_bombs_are_refused_before_they_unpack(small, path, monkeypatch):
    """The sizes are compared before anything is unpacked."""
    bomb = zipped([*members_of(small).items(), ("arrays/99.npy", bytes(60_000_000))])
    monkeypatch.setattr(zipfile.ZipFile, "read", lambda *_: pytest.fail("unpacked"))

    assert_refused(bomb, path, "more than a model would")


def test_bombs_that_lie_about_their_size_are_refused(small, path):
    """Not more than the stated size is unpacked."""
    bomb = bytearray(zipped([("manifest.json", bytes(60_000_000))]))
    size = (60_000_000).to_bytes(4, "little")
    for place in [m.start() for m in re.finditer(re.escape(size), bytes(bomb))]:
        bomb[place : place + 4] = (1000).to_bytes(4, "little")

    assert_refused(resealed(bytes(bomb)), path, "not a readable archive")


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_other_compressions_are_refused(method, small, path):
    """Their memory is harder to bound."""
    assert_refused(zipped(members_of(small).items(), method=method), path, "does not use")


def test_locked_members_are_refused(small, path):
    """A member that asks for a password is none of ours."""
    data = bytearray(small)
    for mark, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        place = data.find(mark)
        data[place + offset] |= 1

    assert_refused(resealed(bytes(data)), path, "not one that regcal writes|readable")


def test_deep_trees_are_refused(small, path):
    """Neither the parser nor the builder runs out of stack."""

    def nest(levels):
        node = json_node(1)
        for number in range(levels):
            node = {**tuple_node(node), "__id__": 10**6 + number}
        return planted(node)

    assert_refused(with_schema(small, nest(120)), path, "levels")
    members = members_of(small)
    for name in ("schema.json", "manifest.json"):
        deep = members | {name: b"[" * 200_000}
        data = pack(deep) if name == "manifest.json" else sealed(deep)
        assert_refused(data, path, "not readable")


def test_parts_that_share_an_identity_must_be_equal(small, path):
    """Otherwise a small tree could stand for an endless one."""
    node = {**tuple_node(json_node(1)), "__id__": 1}

    assert_refused(with_schema(small, planted(node)), path, "share the identity")


# ------------------------------------------------------------------------------------------- arrays


class Bait:
    def __reduce__(self):
        return exec, ("import trap_module",)


ARRAYS = {
    "pickle": pickle.dumps(Bait()),
    "array of pickles": npy(np.array([Bait()], dtype=object), allow_pickle=True),
    "archive of arrays": zipped([("a.npy", b"")]),
    "nothing": b"",
    "too short": npy(np.zeros(3))[:-1],
    "too long": npy(np.zeros(3)) + b"x",
    "larger than the memory": npy(np.zeros(3)).replace(b"(3,), }          ", b"(3000000000,), } "),
    "negative size": npy(np.zeros(3)).replace(b"(3,)", b"(-3,)").replace(b" \n", b"\n", 1),
    "header with code": npy(np.zeros(3)).replace(b"'<f8'", b"exit("),
    "unknown version": b"\x93NUMPY\x09" + npy(np.zeros(3))[7:],
}


@pytest.mark.parametrize("name", ARRAYS)
def test_arrays_that_are_none_are_refused(name, small, path):
    """Arrays are plain numbers of the size in their header; pickles are never read."""
    members = members_of(small) | {"arrays/0.npy": ARRAYS[name]}

    assert_refused(sealed(members), path, "arrays/0.npy is not an array")


def test_arrays_of_other_shapes_do_no_harm(small, path):
    """A model of strange numbers may load; it is only wrong."""
    for array in (
        np.zeros(0),
        np.zeros((2, 2)),
        np.array("text"),
        np.array(1j),
        np.array([np.nan]),
    ):
        loads_or_refuses(sealed(members_of(small) | {"arrays/0.npy": npy(array)}), path)


# -------------------------------------------------------------------------------------------- trees


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3))
    return X, X[:, 0] + rng.normal(size=40)


def nodes_change(members, name, field, value):
    """Return members in which one field of a tree's nodes was changed."""
    for key, content in members.items():
        if not key.endswith(".npy"):
            continue
        array = np.load(io.BytesIO(content))
        if array.dtype.names and name in array.dtype.names:
            array[field][0] = value
            return members | {key: npy(array)}
    raise AssertionError("no tree was found")


FORESTS = {
    "forest": RandomForestRegressor(2, max_depth=3, random_state=0),
    "boosting": GradientBoostingRegressor(n_estimators=2),
}


@pytest.mark.parametrize("name", FORESTS)
@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("left_child", 10**9),
        ("right_child", 10**9),
        ("left_child", 0),
        ("right_child", -7),
        ("feature", 3),
        ("feature", -2),
        ("feature", 10**12),
    ],
)
def test_trees_that_lead_out_of_memory_are_refused(name, field, value, table, path):
    """Prediction follows nodes and columns without looking, so that they are checked here."""
    regcal.save(FORESTS[name].fit(*table), path)

    changed = nodes_change(members_of(path.read_bytes()), "left_child", field, value)

    assert_refused(sealed(changed), path, "a tree (has a node|asks for a column)")


@pytest.mark.parametrize(
    ("field", "value"),
    [("left", 10**9), ("right", 0), ("feature_idx", 3), ("feature_idx", -1), ("is_categorical", 1)],
)
def test_histogram_trees_that_lead_out_of_memory_are_refused(field, value, table, path):
    """The same for histogram boosting."""
    regcal.save(HistGradientBoostingRegressor(max_iter=2, min_samples_leaf=3).fit(*table), path)

    changed = nodes_change(members_of(path.read_bytes()), "bin_threshold", field, value)

    assert_refused(sealed(changed), path, "a tree (has|asks)")


def test_leaves_without_numbers_are_refused(table, path):
    """Only some rows would come to such a leaf."""
    regcal.save(HistGradientBoostingRegressor(max_iter=2, min_samples_leaf=3).fit(*table), path)
    changed = nodes_change(members_of(path.read_bytes()), "bin_threshold", "value", np.nan)
    assert_refused(sealed(changed), path, "a leaf without a number")

    model = FORESTS["forest"].fit(*table)
    model.estimators_[-1].tree_.value[-1] = np.inf
    with pytest.raises(regcal.FileError, match="a leaf without a number"):
        regcal.save(model, path)


def test_models_that_cannot_tell_what_they_are_are_refused(table, path):
    """A forest makes an instance of the class of its trees when it is asked for its tags."""
    regcal.save(FORESTS["forest"].fit(*table), path)
    kind = {"__id__": 10**6, **named("numpy", "float64", "TypeNode")}

    def change(schema):
        schema["content"]["content"]["estimator"] = kind

    assert_refused(with_schema(path.read_bytes(), change), path, "does not fit together")


@pytest.mark.parametrize(
    ("loader", "attribute", "value"),
    [
        ("TreeNode", "node_count", 2),
        ("TreeNode", "node_count", -1),
        ("TreeNode", "max_depth", 0),
        ("ObjectNode", "n_features_in_", 2),
        ("ObjectNode", "n_features_in_", "many"),
        ("ObjectNode", "estimators_", None),
    ],
)
def test_trees_whose_numbers_lie_are_refused(loader, attribute, value, table, path):
    """What a tree says about itself is compared with what it is."""
    regcal.save(FORESTS["forest"].fit(*table), path)

    def change(schema):
        for number, node in enumerate(nodes_of(schema)):
            content = node.get("content") if node["__loader__"] == loader else None
            if isinstance(content, dict) and attribute in content.get("content", {}):
                content["content"][attribute] = json_node(value, 10**7 + number)

    assert_refused(with_schema(path.read_bytes(), change), path)


def test_trees_of_several_outputs_are_refused(table, path):
    """Their constructor reads as many numbers as the file says there are."""
    regcal.save(FORESTS["forest"].fit(*table), path)

    def change(schema):
        for number, node in enumerate(nodes_of(schema)):
            if node["__loader__"] == "TreeNode":
                node["__reduce__"]["args"]["content"][2] = json_node(1000000, 10**7 + number)

    assert_refused(with_schema(path.read_bytes(), change), path, "several outputs")


def test_numbers_in_disguise_are_refused(table, path):
    """A part of another kind may carry the expected text and build something else."""
    regcal.save(FORESTS["forest"].fit(*table), path)

    def change(schema):
        for number, node in enumerate(nodes_of(schema)):
            if node["__loader__"] == "TreeNode":
                arguments = node["__reduce__"]["args"]["content"]
                arguments[2] = {**arguments[1], "content": "1", "__id__": arguments[1]["__id__"]}
                arguments[1] = json_node(number, 10**7 + number)

    assert_refused(with_schema(path.read_bytes(), change), path, "a number that is none")


@pytest.mark.parametrize("disguised", [False, True])
def test_cache_folders_in_files_are_refused(disguised, path):
    """Fitting such a pipeline again would read pickles from a folder of the file's choice."""
    regcal.save(make_pipeline(StandardScaler()).fit([[1.0], [2.0]]), path)

    def change(schema):
        attributes = schema["content"]
        if disguised:
            schema["content"] = json_node({"memory": "folder", "steps": []}, 10**7)
        else:
            attributes["content"]["memory"] = json_node("folder", 10**7)

    assert_refused(with_schema(path.read_bytes(), change), path, "cache folder|belongs to nothing")
    members = members_of(path.read_bytes())
    if disguised:
        rest = {name: members[name] for name in ("manifest.json", "schema.json")}
        assert_refused(sealed(rest), path, "cache folder")


def test_random_states_beyond_their_words_are_refused(table, path):
    """The generator would read the memory behind its state."""
    model = RandomForestRegressor(2, random_state=np.random.RandomState(0)).fit(*table)
    regcal.save(model, path)

    def change(schema):
        for number, node in enumerate(nodes_of(schema)):
            content = node.get("content")
            if node["__loader__"] == "DictNode" and "pos" in content:
                content["pos"] = json_node(10**8, 10**7 + number)

    assert_refused(with_schema(path.read_bytes(), change), path, "random state")


@pytest.mark.parametrize(("attribute", "value"), [("bit_generator", "seed"), ("pool_size", 10**9)])
def test_random_generators_are_numpys_default(attribute, value, table, path):
    """Others are made by calling what the file names, with sizes of its choice."""
    regcal.save(HistGradientBoostingRegressor(max_iter=2, min_samples_leaf=3).fit(*table), path)

    def change(schema):
        for number, node in enumerate(nodes_of(schema)):
            content = node.get("content")
            if node["__loader__"] == "DictNode" and attribute in content:
                content[attribute] = json_node(value, 10**7 + number)

    assert_refused(with_schema(path.read_bytes(), change), path, "random generator")


def test_trees_without_a_model_are_refused(table, path):
    """Nobody knows how many columns they may ask for."""
    regcal.save(FORESTS["forest"].fit(*table), path)

    def change(schema):
        for node in nodes_of(schema):
            if node["__class__"] == "DecisionTreeRegressor" and "content" in node:
                node["__module__"], node["__class__"] = "regcal.gp.links", "Probit"
            if node["__class__"] == "RandomForestRegressor":
                node["__module__"], node["__class__"] = "sklearn.linear_model._ridge", "Ridge"

    assert_refused(with_schema(path.read_bytes(), change), path, "belongs to no model")


@pytest.mark.parametrize("name", FORESTS)
@pytest.mark.parametrize(
    "change",
    [
        lambda array: array[:1].reshape(()),
        lambda array: array[:0],
        lambda array: array[:-1],
        lambda array: array[np.newaxis],
        lambda array: np.zeros(array.shape, dtype=np.float32),
    ],
    ids=["no dimension", "empty", "short", "two dimensions", "other type"],
)
@pytest.mark.parametrize("part", ["nodes", "values"])
def test_trees_of_other_arrays_are_refused(name, change, part, table, path):
    """A tree reads the size of its arrays from memory, so that it must not be built of these."""
    regcal.save(FORESTS[name].fit(*table), path)
    members = members_of(path.read_bytes())
    schema = json.loads(members["schema.json"])
    tree = next(node for node in nodes_of(schema) if node["__loader__"] == "TreeNode")
    file = tree["content"]["content"][part]["file"]

    changed = members | {file: npy(change(np.load(io.BytesIO(members[file]))))}

    assert_refused(sealed(changed), path, "parts do not fit together|size it claims")


def test_boosting_that_starts_from_less_is_refused(table, path):
    """Compiled code adds to the rows of its first model without counting them."""
    regcal.save(FORESTS["boosting"].fit(*table), path)

    def change(schema):
        for number, node in enumerate(nodes_of(schema)):
            if node["__class__"] == "DummyRegressor" and "content" in node:
                node["content"]["content"]["n_outputs_"] = json_node(0, 10**7 + number)

    assert_refused(with_schema(path.read_bytes(), change), path, "starts from another model")


@pytest.mark.parametrize(
    ("attribute", "value"),
    [
        ("_n_features_outs", [99]),
        ("_n_features_outs", [0]),
        ("_n_features_outs", []),
        ("_drop_idx_after_grouping", np.array([7], dtype=object)),
    ],
)
def test_encoders_that_count_wrongly_are_refused(attribute, value, path):
    """A category beyond the counted columns would be written behind the end of an array."""
    model = make_pipeline(OneHotEncoder(drop="first")).fit([["a"], ["b"]])
    setattr(model[0], attribute, value)

    with pytest.raises(regcal.FileError, match="an encoder"):
        regcal.save(model, path)


def test_trees_grown_on_other_classes_are_refused(table, path):
    """The constructor of a tree reads one number of classes."""
    regcal.save(FORESTS["forest"].fit(*table), path)
    members = members_of(path.read_bytes())
    schema = json.loads(members["schema.json"])
    tree = next(node for node in nodes_of(schema) if node["__loader__"] == "TreeNode")
    file = tree["__reduce__"]["args"]["content"][1]["file"]

    changed = members | {file: npy(np.zeros(0, dtype=np.int64))}

    assert_refused(sealed(changed), path, "parts do not fit together")
