"""The figures of the house: how much code there is, and how far a fit has to walk through it.

    python benchmarks/house.py                  # the installed version
    python benchmarks/house.py ../other/src     # another one

Sizes are those of the source files. Functions are all `def`s, methods and inner ones included; a
private one begins with one underscore. The length of a function is that of its code, with its
signature and without its docstring, comments and blank lines.

**Repeated lines.** Pairs of functions that hold the same run of six lines or more. "Equal" are
lines as they stand, docstrings and signatures included; "of one form" are statements without
docstrings and comments, each on a line, where only names and constants differ. Inner functions
belong to the outer one.

**Hops.** One fit to 500 normal rows whose noise is skewed, with `sys.setprofile`. A call counts as
a hop if caller and called function are in two different modules of regcal, neither of which is in
`regcal.gp`. The caller is the frame directly below, so that a call that comes back through another
package (`sklearn.base.clone`, say) is none. Comprehensions and constructors are calls as well.

**Evaluations.** How often, in the same fits, the base model's density and probit are computed at
the outcomes: rows evaluated there, divided by the rows there are. A probit that is computed for the
sake of a density counts with the density only. Both are what a fit could keep after the first time.
"""

import argparse
import ast
import importlib.util
import itertools
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

import numpy as np

METHODS = ("gpc", "gp-density", "e-beta")
N_ROWS = 500
RUN = 6

Function = ast.FunctionDef | ast.AsyncFunctionDef


# ------------------------------------------------------------------------------------------- source


@dataclass(frozen=True)
class Module:
    """A source file: its dotted name, text and syntax tree."""

    name: str
    text: str
    tree: ast.Module

    @property
    def n_lines(self) -> int:
        """Lines of the file."""
        return len(self.text.splitlines())


def read_modules(source: Path) -> list[Module]:
    """Return the modules of regcal below a folder."""
    modules = []
    for path in sorted((source / "regcal").rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        name = ".".join(path.relative_to(source).with_suffix("").parts)
        modules.append(Module(name, text, ast.parse(text)))
    return modules


def functions(tree: ast.AST) -> list[Function]:
    """Return all functions of a tree, methods and inner ones included."""
    return [node for node in ast.walk(tree) if isinstance(node, Function)]


def outer_functions(tree: ast.AST) -> Iterator[Function]:
    """Yield functions and methods that are not inside another function."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, Function):
            yield node
        else:
            yield from outer_functions(node)


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


def code_lines(text: str, function: Function) -> int:
    """Return the lines of a function that hold code."""
    numbers = set(range(function.lineno, function.end_lineno + 1))
    for node in ast.walk(function):
        if isinstance(node, Function | ast.ClassDef) and ast.get_docstring(node) is not None:
            numbers -= set(range(node.body[0].lineno, node.body[0].end_lineno + 1))
    lines = text.splitlines()
    code = (lines[number - 1].strip() for number in numbers)
    return sum(1 for line in code if line and not line.startswith("#"))


# Where syntax trees hold names and constants.
WORDS = ("id", "arg", "attr", "name", "value")


def without_names(tree: ast.AST) -> ast.AST:
    """Put the same name and the same constant everywhere, in place."""
    for node in ast.walk(tree):
        for field, value in ast.iter_fields(node):
            if field in WORDS and not isinstance(value, ast.AST | None):
                setattr(node, field, "_")
    return tree


def text_lines(module: Module, function: Function) -> list[str]:
    """Return a function as it stands, signature and docstring included."""
    lines = module.text.splitlines()[function.lineno - 1 : function.end_lineno]
    return [line.strip() for line in lines if line.strip()]


def form_lines(module: Module, function: Function) -> list[str]:
    """Return a function's statements without docstring, comments and names."""
    body = function.body[ast.get_docstring(function) is not None :]
    tree = ast.parse("\n".join(ast.unparse(statement) for statement in body))
    return ast.unparse(without_names(tree)).splitlines()


def repeated_pairs(modules: list[Module], lines_of: Callable[[Module, Function], list[str]]) -> int:
    """Return how many pairs of functions hold the same run of lines."""
    places = defaultdict(set)
    everything = [(module, one) for module in modules for one in outer_functions(module.tree)]
    for number, (module, function) in enumerate(everything):
        lines = lines_of(module, function)
        for start in range(len(lines) - RUN + 1):
            places[tuple(lines[start : start + RUN])].add(number)
    return len({pair for held in places.values() for pair in itertools.combinations(held, 2)})


def sizes(modules: list[Module]) -> Iterator[tuple[str, str]]:
    """Yield what can be read off the source files."""
    largest = max(modules, key=lambda module: module.n_lines)
    lengths = [
        (code_lines(module.text, function), f"{module.name}.{function.name}")
        for module in modules
        for function in functions(module.tree)
    ]
    names = [function.name for module in modules for function in functions(module.tree)]
    yield "lines of source", str(sum(module.n_lines for module in modules))
    yield "modules", str(len(modules))
    yield "largest module", f"{largest.n_lines} lines, {largest.name}"
    yield "functions", str(len(names))
    yield "private functions", f"{sum(map(is_private, names)) / len(names):.0%}"
    yield "longest function", "{} lines, {}".format(*max(lengths))
    yield "functions above 40 lines", str(sum(length > 40 for length, _ in lengths))
    yield "pairs with six equal lines", str(repeated_pairs(modules, text_lines))
    yield "pairs of one form", str(repeated_pairs(modules, form_lines))


# --------------------------------------------------------------------------------------------- fits


def simulated() -> tuple:
    """Return normal predictions and outcomes with skewed noise."""
    import regcal

    rng = np.random.default_rng(0)
    mean = rng.normal(size=N_ROWS)
    return regcal.Normal(mean, np.ones(N_ROWS)), mean + rng.exponential(size=N_ROWS) - 1.0


def counted_module(frame: FrameType | None) -> str | None:
    """Return the module of a frame if it is one of regcal outside of `regcal.gp`."""
    name = frame.f_globals.get("__name__", "") if frame else ""
    inside = name.split(".")[0] == "regcal" and name.split(".")[1:2] != ["gp"]
    return name if inside else None


def hops(method: str) -> int:
    """Return how often a fit calls from one module into another."""
    import regcal

    calibrator, (dist, y) = regcal.get_calibrator(method), simulated()
    count = 0

    def profile(frame: FrameType, event: str, _: object) -> None:
        nonlocal count
        if event == "call":
            called, caller = counted_module(frame), counted_module(frame.f_back)
            count += called is not None and caller is not None and called != caller

    calibrator.fit(dist, y)  # imports and caches
    sys.setprofile(profile)
    try:
        calibrator.fit(dist, y)
    finally:
        sys.setprofile(None)
    return count


@contextmanager
def observed(owner: type, name: str, watch: "Watch") -> Iterator[None]:
    """Let every call of a method be seen."""
    inherited = name not in vars(owner)
    method = getattr(owner, name)

    def seen(self, points):
        with watch.inside(name, points):
            return method(self, points)

    setattr(owner, name, seen)
    try:
        yield
    finally:
        if inherited:
            delattr(owner, name)
        else:
            setattr(owner, name, method)


class Watch:
    """Counts the outcomes at which a method is called, leaving out calls within others."""

    def __init__(self, y: np.ndarray) -> None:
        self.y = y
        self.rows: dict[str, int] = defaultdict(int)
        self.depth = 0

    @contextmanager
    def inside(self, name: str, points: np.ndarray) -> Iterator[None]:
        """Count a call that is not part of another one."""
        if self.depth == 0 and points.shape[1] == 1:
            self.rows[name] += int(np.isin(points, self.y).sum())
        self.depth += 1
        try:
            yield
        finally:
            self.depth -= 1


def evaluations(method: str) -> dict[str, float]:
    """Return how often a fit computes the base's density and probit at the outcomes."""
    import regcal

    dist, y = simulated()
    watch = Watch(y)
    with (
        observed(regcal.Normal, "_logpdf", watch),
        observed(regcal.Normal, "_probit", watch),
        observed(regcal.Normal, "_logslope", watch),
    ):
        regcal.get_calibrator(method).fit(dist, y)
    return {name: rows / N_ROWS for name, rows in watch.rows.items()}


def walks() -> Iterator[tuple[str, str]]:
    """Yield what can be seen of fits."""
    for method in METHODS:
        yield f"hops in {method}.fit", str(hops(method))
    for method in METHODS:
        found = evaluations(method)
        counts = [f"{found.get(name, 0.0):.2g}" for name in ("_logpdf", "_probit", "_logslope")]
        yield (
            f"evaluations in {method}.fit",
            "logpdf(y) {}, probit(y) {}, logslope(y) {}".format(*counts),
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("source", type=Path, nargs="?", help="folder that holds regcal")
    source = parser.parse_args().source
    if source is None:
        source = Path(importlib.util.find_spec("regcal").origin).parents[1]
    sys.path.insert(0, str(source.resolve()))
    for name, value in itertools.chain(sizes(read_modules(source)), walks()):
        print(f"{name:32}{value}")


if __name__ == "__main__":
    main()
