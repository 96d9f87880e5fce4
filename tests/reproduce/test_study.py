"""Runs that stop and go on, without some data sets, and the stored numbers."""

import subprocess
import sys
from dataclasses import replace

import pytest
from joblib import parallel_config
from studies import TINY

from regcal.datasets import Dataset
from regcal.reproduce import (
    QUICK,
    Cell,
    Row,
    load_datasets,
    read_results,
    run_cell,
    run_study,
    study,
)
from regcal.reproduce.cells import BASES, DATASETS, OUR_METHODS, PAPER_METHODS


@pytest.fixture(scope="module")
def whole(data, tmp_path_factory) -> dict[Cell, Row]:
    """Return the rows of the tiny study, run at once."""
    path = tmp_path_factory.mktemp("whole") / "rows.csv"
    run_study(path, TINY, data=data, n_jobs=1)
    return untimed(read_results(path))


def untimed(rows: dict[Cell, Row]) -> dict[Cell, Row]:
    return {cell: replace(row, seconds=0.0) for cell, row in rows.items()}


# Rows that survive


def test_a_cell_alone_is_the_cell_of_the_study(whole):
    """The result does not depend on what else is computed."""
    name = "diabetes/OLS/0/3/e-beta/8"
    row = run_cell(name)
    stored = whole[Cell.from_name(name)]

    assert row.log_score == pytest.approx(stored.log_score, abs=1e-5)
    assert (row.n_test, row.n_floored) == (stored.n_test, stored.n_floored)


def test_two_processes_give_the_same_rows(data, whole, tmp_path):
    """Neither the number of jobs nor the order in which they finish matters."""
    rows = run_study(tmp_path / "rows.csv", TINY, data=data, n_jobs=2)

    assert list(rows) == list(whole)
    assert untimed(read_results(tmp_path / "rows.csv")) == whole


@pytest.mark.parametrize("backend", ["threading", "multiprocessing"])
def test_joblibs_backends_are_respected(data, whole, tmp_path, backend, monkeypatch):
    """Also one that returns results only when all are done, in batches."""
    monkeypatch.setattr(study, "_BATCH", 1)
    with parallel_config(backend=backend, n_jobs=2):
        run_study(tmp_path / "rows.csv", TINY, data=data)

    assert untimed(read_results(tmp_path / "rows.csv")) == whole


def test_an_interrupted_run_goes_on(data, whole, tmp_path, monkeypatch):
    """What is on the disk is not computed again."""
    path, units = tmp_path / "rows.csv", []

    def interrupt(done: int, total: int) -> None:
        if done == 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_study(path, TINY, data=data, n_jobs=1, progress=interrupt)
    score_unit = study.score_unit
    monkeypatch.setattr(
        study, "score_unit", lambda data, cells: units.append(cells) or score_unit(data, cells)
    )
    run_study(path, TINY, data=data, n_jobs=1)

    assert len(units) == 3
    assert untimed(read_results(path)) == whole


KILLED = """
import sys
from regcal.reproduce import Study, load_datasets, run_study

def progress(done, total):
    print(done, flush=True)
    if done == 4:
        sys.stdin.read()

tiny = Study(1, ("OLS",), (8,), ("uncalibrated", "e-beta"), check=False)
run_study(sys.argv[1], tiny, data=load_datasets(("diabetes",)), n_jobs=1, progress=progress)
"""


def test_a_killed_run_goes_on(data, whole, tmp_path):
    """A process that had no time to tidy up loses nothing that it had finished."""
    path = tmp_path / "rows.csv"
    command = [sys.executable, "-c", KILLED, str(path)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        while process.stdout.readline().strip() not in ("4", ""):
            pass
        process.kill()
    before = read_results(path)
    run_study(path, TINY, data=data, n_jobs=1)

    assert len(before) == 4
    assert untimed(read_results(path)) == whole


@pytest.mark.parametrize("cut", [1, 9, 40])
def test_a_torn_last_line_is_computed_again(data, whole, tmp_path, cut):
    """Half a row is neither a result nor in the way."""
    path = tmp_path / "rows.csv"
    run_study(path, TINY, data=data, n_jobs=1)
    path.write_bytes(path.read_bytes()[:-cut])

    assert len(read_results(path)) == len(whole) - 1
    run_study(path, TINY, data=data, n_jobs=1)
    assert untimed(read_results(path)) == whole


def test_a_finished_study_is_left_alone(data, tmp_path):
    """Running it again changes no byte and tells that all is done."""
    path, told = tmp_path / "rows.csv", []
    run_study(path, TINY, data=data, n_jobs=1)
    before = path.read_bytes()
    run_study(path, TINY, data=data, n_jobs=1, progress=lambda *numbers: told.append(numbers))

    assert path.read_bytes() == before
    assert told == [(10, 10)]


# Data sets


def test_without_boston_the_other_four_go_on(monkeypatch):
    """The message says how to get it."""
    told = []

    def missing() -> Dataset:
        raise OSError("pip install mlxtend")

    monkeypatch.setitem(study._LOADERS, "boston", missing)
    found = load_datasets(tell=told.append)

    assert list(found) == [name for name in DATASETS if name != "boston"]
    assert told == ["boston is left out. pip install mlxtend"]
    assert {cell.unit.dataset for cell in QUICK.cells(found)} == set(found)
    with pytest.raises(OSError, match="pip install mlxtend"):
        run_cell("boston/OLS/0/0/uncalibrated/0")


def test_boston_comes_with_its_warning():
    """Who runs the study is told of the ethical problem."""
    pytest.importorskip("mlxtend")
    with pytest.warns(UserWarning, match="ethical problem"):
        load_datasets(("boston",))


@pytest.mark.parametrize(
    "name", ["iris/OLS/0/0/gpc/8", "diabetes/OLS/0/0/magic/8", "diabetes/SVM/0/0/gpc/8"]
)
def test_unknown_parts_of_a_name_are_refused(name):
    """The message lists what there is."""
    with pytest.raises(ValueError, match=r"There is no .* in the study\. Known: "):
        run_cell(name)


def test_folds_that_there_are_not_are_refused():
    """They are counted from 0."""
    with pytest.raises(ValueError, match=r"fold 5\. They are numbered from 0 to 4"):
        run_cell("diabetes/OLS/0/5/uncalibrated/0")


# What is stored in the repository


@pytest.mark.parametrize(
    "name",
    [
        "diabetes/OLS/0/0/uncalibrated/0",
        "concrete/BRR/0/1/averaged/0",
        "airfoil/OLS/0/2/e-logistic-uniform/32",
        "forest_fires/BRR/0/3/e-beta-uniform/8",
        "diabetes/GPR/0/4/e-beta/64",
        "concrete/OLS/0/0/gpc-zero/8",
        "diabetes/BRR/0/0/gpc/32",
    ],
)
def test_cells_give_the_stored_numbers(stored, name):
    """The pipeline reproduces what the repository holds."""
    row, expected = run_cell(name), stored[Cell.from_name(name)]

    assert row.n_test == expected.n_test
    assert row.log_score == pytest.approx(expected.log_score, abs=2e-3)
    assert row.raw_n_floored == expected.raw_n_floored


def test_every_method_is_in_the_stored_study(stored):
    """Nothing was forgotten: all methods with thresholds, on all data sets and base models."""
    found = {(cell.unit.dataset, cell.unit.base, cell.method) for cell in stored}

    assert found >= {
        (dataset, base, method)
        for dataset in DATASETS
        for base in BASES
        for method in (*PAPER_METHODS, *OUR_METHODS, "uncalibrated", "gp-density")
    }
