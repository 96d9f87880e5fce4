"""`regcal reproduce` runs a study and sums it up."""

import warnings

import pytest
from studies import TINY
from typer.testing import CliRunner

from regcal import reproduce
from regcal.cli.app import app
from regcal.datasets import Dataset


@pytest.fixture(scope="module")
def data() -> dict[str, Dataset]:
    return reproduce.load_datasets(("diabetes",))


def test_the_command_runs_a_study_and_sums_it_up(data, tmp_path, monkeypatch):
    """Rows first, figure and tables from them second."""
    monkeypatch.setattr(reproduce, "QUICK", TINY)
    monkeypatch.setattr(reproduce, "load_datasets", lambda tell: data)
    run = CliRunner().invoke
    rows, folder = tmp_path / "rows.csv", tmp_path / "study"
    first = run(app, ["reproduce", "uci", str(rows), "--quick", "--jobs", "1"])
    second = run(app, ["reproduce", "tables", str(rows), "-o", str(folder)])

    assert (first.exit_code, second.exit_code) == (0, 0)
    assert f"{rows} holds all 10 cells." in first.stderr
    assert sorted(path.name for path in folder.iterdir()) == ["README.md", "uci.csv.gz", "uci.png"]


def test_the_command_tells_of_bostons_problem_before_it_starts(data, tmp_path, monkeypatch):
    """Not after an hour."""

    def warn(tell):
        warnings.warn("an ethical problem", UserWarning, stacklevel=2)
        tell("boston is left out. Get mlxtend.")
        return data

    monkeypatch.setattr(reproduce, "QUICK", TINY)
    monkeypatch.setattr(reproduce, "load_datasets", warn)
    command = ["reproduce", "uci", str(tmp_path / "rows.csv"), "--quick", "-j", "1"]
    lines = CliRunner().invoke(app, command).stderr.splitlines()

    assert lines[:2] == ["boston is left out. Get mlxtend.", "Note: an ethical problem"]


def test_a_study_that_is_interrupted_says_how_to_go_on(data, tmp_path, monkeypatch):
    """Its rows are kept, and the same command goes on with them."""

    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(reproduce, "load_datasets", lambda tell: data)
    monkeypatch.setattr(reproduce, "run_study", interrupted)
    found = CliRunner().invoke(app, ["reproduce", "uci", str(tmp_path / "rows.csv"), "--quick"])

    assert found.exit_code != 0
    assert found.stderr.startswith("Stopped.")
    assert "the same command goes on" in found.stderr
