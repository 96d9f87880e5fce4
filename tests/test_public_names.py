"""The public names are imported when they are asked for, and are what type checkers are told."""

import ast
import inspect
import pickle
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import cloudpickle
import pytest

import regcal


def named_for_type_checkers() -> dict[str, str]:
    """Return the part of each name that is imported for type checkers alone."""
    tree = ast.parse(Path(regcal.__file__).read_text(encoding="utf-8"))
    block = next(node for node in tree.body if isinstance(node, ast.If))
    return {alias.name: node.module for node in block.body for alias in node.names}


def test_type_checkers_know_all_names():
    """Three lists of the same names: what is public, what is imported, what is told."""
    assert {*named_for_type_checkers(), "__version__"} == set(regcal.__all__)
    assert set(regcal.__all__) <= set(dir(regcal))


@pytest.mark.parametrize(("name", "module"), named_for_type_checkers().items())
def test_names_are_what_type_checkers_are_told(name, module):
    """A name is the same object wherever it is found."""
    named = regcal.online if name == "online" else getattr(import_module(module), name)

    assert getattr(regcal, name) is named


PARTS = """
import regcal.audit.build, regcal.report.build
import regcal
assert regcal.audit.__name__ == "audit"
assert regcal.report.__name__ == "report"
assert regcal.metrics.__name__ == "regcal.metrics"
assert regcal.maps.__name__ == "regcal.maps"
"""


def test_parts_are_attributes_but_where_a_function_has_the_name():
    """Whatever is imported first."""
    subprocess.run([sys.executable, "-W", "error", "-c", PARTS], check=True)


def test_functions_that_name_the_package_travel():
    """joblib, Dask and Spark send functions of a script or a notebook by what they name."""
    names = {"regcal": regcal, "__name__": "__main__"}
    exec("def spread():\n    return regcal.Normal([0.0], [2.0]).std()[0]", names)

    sent = cloudpickle.loads(cloudpickle.dumps(names["spread"]))

    assert sent() == 2.0
    assert pickle.loads(pickle.dumps(regcal)) is regcal


def test_unknown_names_are_refused():
    """In the words of Python."""
    with pytest.raises(AttributeError, match="module 'regcal' has no attribute 'normal'"):
        _ = regcal.normal


PACKAGES = ("calibrators", "distributions", "maps", "metrics", "online", "plots", "tables")


def public_functions():
    """Yield the functions, classes and methods of all public names."""
    for module in (regcal, *(import_module(f"regcal.{name}") for name in PACKAGES)):
        for name in module.__all__:
            named = getattr(module, name)
            yield name, named
            for own in vars(named) if inspect.isclass(named) else ():
                if not own.startswith("_"):
                    yield f"{name}.{own}", getattr(named, own)


def test_signatures_can_be_read():
    """What `help` shows first names types by a word, and does not spell out what arrays are."""
    shown = {name: signature_of(part) for name, part in public_functions() if callable(part)}

    assert [name for name, text in shown.items() if "_typing" in text] == []
    assert [name for name, text in shown.items() if "numpy.ndarray[" in text] == []
    assert shown["Normal"].startswith("(loc: 'ArrayLike', scale: 'ArrayLike')")


def signature_of(function):
    try:
        return str(inspect.signature(function))
    except ValueError:  # of compiled code
        return ""
