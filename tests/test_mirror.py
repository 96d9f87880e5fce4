"""Tests stand where one looks: folders of tests mirror those of regcal."""

from pathlib import Path

import pytest

import regcal

TESTS = Path(__file__).parent
PACKAGE = Path(regcal.__file__).parent
FILES = sorted(path.relative_to(TESTS) for path in TESTS.glob("*/**/test_*.py"))


def modules_of(file: Path, package: Path = PACKAGE) -> list[Path]:
    """Return the modules and packages that a file of tests may be about."""
    name = file.stem.removeprefix("test_")
    parts = (package / file.parent / found for found in (name, f"_{name}"))
    places = (place for part in parts for place in (part.with_suffix(".py"), part / "__init__.py"))
    return [place for place in places if place.is_file()]


@pytest.mark.parametrize("file", FILES, ids=Path.as_posix)
def test_every_file_in_a_folder_names_its_module(file):
    """`maps/test_spline.py` is about `maps/spline.py`, or about `maps/_spline.py`."""
    assert modules_of(file)


@pytest.mark.parametrize(
    ("file", "module"),
    [
        ("maps/test_spline.py", "maps/spline.py"),
        ("cli/test_reading.py", "cli/_reading.py"),
        ("cli/commands/test_fit.py", "cli/commands/fit.py"),
        ("cli/test_commands.py", "cli/commands/__init__.py"),
        ("gp/test_spline.py", None),
        ("spline/test_maps.py", None),
    ],
)
def test_rule_finds_what_it_should(file, module):
    """The rule itself tells files with a module from files without one."""
    assert modules_of(Path(file)) == ([PACKAGE / module] if module else [])
