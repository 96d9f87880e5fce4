"""Imports point down, optional packages stay optional, and no file names a machine.

A new module of regcal must be given its place in `LAYERS`.
"""

import ast
import functools
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import regcal

ROOT = Path(__file__).parents[1]
PACKAGE = Path(regcal.__file__).parent
SOURCES = sorted(PACKAGE.rglob("*.py"))

# From the bottom up. A part may import from lower layers, and within itself.
LAYERS = (
    {"_caching", "_inspection", "_progress", "_random", "_validation", "_version"},
    {"_weighted"},
    {"covariates", "datasets", "ends", "grids", "maps", "outcomes"},
    {"binary", "codes", "distributions", "gp"},
    {"adapters", "corrections", "metrics"},
    {"calibrators"},
    {"audit", "online", "regressor"},
    {"explanation"},
    {"plots"},
    {"notebook", "tables"},
    {"dask", "persistence", "report", "skpro"},
    {"__init__"},  # the public API
    {"demo", "reproduce"},
    {"__main__", "cli"},
)
LAYER_OF = {part: layer for layer, parts in enumerate(LAYERS) for part in parts}

# Pairs (importer, imported) of one layer that are allowed. Keep this short.
ALLOWED = {("__main__", "cli")}

# Pairs (importer, imported) that point up, inside functions only: objects are asked what they are,
# and the answers are made by parts that know all classes.
ASKED_LATE = {("_inspection", "notebook"), ("_inspection", "persistence")}

# What a module may import when it is imported itself; all else goes inside a function.
CORE_PACKAGES = {"numpy", "scipy", "sklearn", "joblib", "threadpoolctl"}
CORE = CORE_PACKAGES | {"regcal"} | sys.stdlib_module_names

# A bridge inherits from another package's base classes, so that it cannot wait with importing
# them. It may import those packages, says what to install without them, and nobody imports it.
BRIDGES = {"skpro": {"pandas", "skpro"}}

OPTIONAL = {
    "dask",
    "distributed",
    "jax",
    "jinja2",
    "matplotlib",
    "mlxtend",
    "pandas",
    "polars",
    "pyarrow",
    "rich",
    "skops",
    "skpro",
    "torch",
    "typer",
}


# The command line's own modules are imported by `regcal.cli.main` only, which says what to install.
# They may import their extra when they are imported.
CLI_EXTRA = {"pandas", "pyarrow", "rich", "typer"}
CLI_MODULES = {path for path in SOURCES if path.is_relative_to(PACKAGE / "cli")}
CLI_MODULES -= {PACKAGE / "cli" / "__init__.py", PACKAGE / "cli" / "_errors.py"}


def part_of(path: Path) -> str:
    """Return the module or folder of regcal that a file belongs to."""
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imported_modules(node: ast.AST) -> Iterator[str]:
    """Yield the dotted names that an import statement may refer to."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom) and node.module == "regcal":
        # `from regcal import x`: x is a part, or a name of the public API.
        yield from (
            f"regcal.{alias.name}" if alias.name in LAYER_OF else "regcal" for alias in node.names
        )
    elif isinstance(node, ast.ImportFrom) and node.module:
        yield node.module


def imported_parts(tree: ast.AST) -> set[str]:
    """Return the parts of regcal that a module imports anywhere, functions included."""
    modules = {name for node in ast.walk(tree) for name in imported_modules(node)}
    return {
        "__init__" if module == "regcal" else module.split(".")[1]
        for module in modules
        if module.split(".")[0] == "regcal"
    }


def import_time_nodes(node: ast.AST) -> Iterator[ast.AST]:
    """Walk the tree, leaving out functions and what only type checkers see."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            continue
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
            yield from (inner for part in child.orelse for inner in ast.walk(part))
            continue
        yield child
        yield from import_time_nodes(child)


def import_time_packages(tree: ast.AST) -> set[str]:
    """Return the top-level packages that importing a module imports."""
    modules = (name for node in import_time_nodes(tree) for name in imported_modules(node))
    return {name.split(".")[0] for name in modules}


def forbidden_parts(part: str, tree: ast.AST) -> set[str]:
    """Return the parts that `part` imports and may not."""
    return {
        other
        for other in imported_parts(tree) - {part}
        if (part, other) not in ALLOWED | ASKED_LATE and LAYER_OF[other] >= LAYER_OF[part]
    }


@pytest.fixture(params=SOURCES, ids=lambda path: path.relative_to(PACKAGE).as_posix())
def source(request) -> Path:
    return request.param


@functools.cache
def parsed(path: Path) -> ast.AST:
    return ast.parse(path.read_text(encoding="utf-8"))


@pytest.fixture
def tree(source) -> ast.AST:
    return parsed(source)


def test_every_part_has_its_layer(source):
    """A new module is placed in `LAYERS` before it is merged."""
    assert part_of(source) in LAYER_OF


def test_imports_point_down(source, tree):
    """No module imports from its own layer or a higher one."""
    assert not forbidden_parts(part_of(source), tree)


def test_imports_are_absolute(tree):
    """Every import names its module in full."""
    levels = [node.level for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]

    assert not any(levels)


def test_importing_a_module_needs_core_packages_only(source, tree):
    """Optional packages are imported inside the function that needs them, but for bridges."""
    allowed = CORE | CLI_EXTRA if source in CLI_MODULES else CORE

    assert import_time_packages(tree) <= allowed | BRIDGES.get(part_of(source), set())


def test_nothing_imports_a_bridge(source, tree):
    """A bridge is imported by the users who want it and by nobody else."""
    assert not (imported_parts(tree) - {part_of(source)}) & set(BRIDGES)


@pytest.mark.parametrize(
    ("part", "code", "expected"),
    [
        ("gp", "from regcal.calibrators import GPCalibrator", {"calibrators"}),
        ("gp", "def f():\n    import regcal.metrics as m", {"metrics"}),
        ("gp", "from regcal.distributions import Normal", {"distributions"}),
        ("gp", "from regcal.gp._basis import Basis\nfrom regcal.grids import grid", set()),
        ("gp", "from regcal import plots", {"plots"}),
        ("metrics", "from regcal import Normal", {"__init__"}),
        ("cli", "import regcal", set()),
        ("__main__", "from regcal.cli import app", set()),
        ("_inspection", "def f():\n    from regcal.notebook import html_of", set()),
        ("_caching", "def f():\n    from regcal.notebook import html_of", {"notebook"}),
    ],
)
def test_rule_on_layers_finds_what_it_should(part, code, expected):
    """The rule itself tells upward and sideways imports from downward ones."""
    assert forbidden_parts(part, ast.parse(code)) == expected


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("import pandas as pd", {"pandas"}),
        ("try:\n    from torch import nn\nexcept ImportError:\n    nn = None", {"torch"}),
        ("class A:\n    import rich", {"rich"}),
        ("def f():\n    import pandas", set()),
        ("class A:\n    def f(self):\n        import pandas", set()),
        ("if TYPE_CHECKING:\n    import pandas\nelse:\n    import torch", {"torch"}),
    ],
)
def test_rule_on_optional_packages_finds_what_it_should(code, expected):
    """The rule itself tells import time from call time."""
    assert import_time_packages(ast.parse(code)) == expected


WITHOUT_EXTRAS = """
import importlib, json, sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {optional}:
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Missing())
import regcal
at_first = list(sys.modules)
for name in {names}:
    getattr(regcal, name)
loaded, refused = list(sys.modules), dict()
for name in {modules}:
    try:
        importlib.import_module(name)
    except ImportError as error:
        refused[name] = str(error)
print(json.dumps(dict(at_first=at_first, loaded=loaded, refused=refused)))
"""


@pytest.fixture(scope="module")
def without_extras():
    """Import regcal, then all of it, where the optional packages cannot be found.

    Looking into `sys.modules` would not do: scikit-learn imports pandas when it is installed.
    """
    paths = [path for path in SOURCES if path not in CLI_MODULES]
    names = [".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts) for path in paths]
    modules = [name.removesuffix(".__init__") for name in names if "__main__" not in name]
    used = set(regcal.__all__) - {"FileError", "file_info", "load", "save"}
    code = WITHOUT_EXTRAS.format(optional=OPTIONAL, modules=modules, names=used)
    command = [sys.executable, "-c", code]
    answer = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
    return json.loads(answer.stdout)


def test_importing_regcal_imports_no_other_package(without_extras):
    """Whoever uses a name waits for its part, and nobody for all of them."""
    assert not {name.split(".")[0] for name in without_extras["at_first"]} & CORE_PACKAGES


def test_no_name_imports_a_part_that_is_asked_late(without_extras):
    """Programs that look at no object wait for neither notebooks nor files."""
    assert not {f"regcal.{part}" for _, part in ASKED_LATE} & set(without_extras["loaded"])


def test_every_module_can_be_imported_without_the_extras(without_extras):
    """With the optional packages made unfindable, all of regcal but bridges still imports."""
    assert set(without_extras["refused"]) == {f"regcal.{bridge}" for bridge in BRIDGES}


@pytest.mark.parametrize("bridge", BRIDGES)
def test_a_bridge_without_its_package_says_what_to_install(bridge, without_extras):
    """The message names the extra."""
    assert f"pip install 'regcal[{bridge}]'" in without_extras["refused"][f"regcal.{bridge}"]


def tracked_files() -> list[Path]:
    if not (ROOT / ".git").exists() or shutil.which("git") is None:
        pytest.skip("not a git checkout")
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    answer = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
    return [ROOT / name for name in answer.stdout.split("\0") if name]


def test_no_file_mentions_a_path_of_a_machine():
    """Text in the repository holds on every computer."""
    machine_path = re.compile(rb"(?<![\w.~<>/-])/(?:work|root|tmp|home|Users)/\w")
    files = [path for path in tracked_files() if path.is_file()]

    assert files
    assert [str(path) for path in files if machine_path.search(path.read_bytes())] == []


def test_citation_names_the_current_version():
    """The version is cited as it is published."""
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")

    assert f"\nversion: {regcal.__version__}\n" in citation
