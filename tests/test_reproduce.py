"""The paper's study: cells by name, rows that survive, claims that follow from rows."""

import gzip
import re
import subprocess
import sys
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from joblib import parallel_config
from numpy.testing import assert_allclose
from typer.testing import CliRunner

import regcal
from regcal.cli.app import app
from regcal.cli.commands import reproduce as commands
from regcal.datasets import Dataset, make_toy_mixture
from regcal.reproduce import (
    FULL,
    QUICK,
    Cell,
    Row,
    Scores,
    Study,
    Unit,
    claims,
    load_datasets,
    read_results,
    run_cell,
    run_study,
    seed_of,
    study,
    write_study,
)
from regcal.reproduce.cells import BASES, DATASETS, OUR_METHODS, PAPER_METHODS, THRESHOLDS
from regcal.reproduce.means import Mean
from regcal.reproduce.paper_claims import Count
from regcal.reproduce.report import filled_in
from regcal.reproduce.results import open_results, write_results
from regcal.reproduce.scores import METHODS, OuterFold, _floored, log_quotients, raw_quotients

EXPERIMENTS = Path(__file__).parents[1] / "experiments"
TINY = Study(1, ("OLS",), (8,), ("uncalibrated", "e-beta"), check=False)


@pytest.fixture(scope="module")
def data() -> dict[str, Dataset]:
    return load_datasets(("diabetes",))


@pytest.fixture(scope="module")
def whole(data, tmp_path_factory) -> dict[Cell, Row]:
    """Return the rows of the tiny study, run at once."""
    path = tmp_path_factory.mktemp("whole") / "rows.csv"
    run_study(path, TINY, data=data, n_jobs=1)
    return untimed(read_results(path))


def untimed(rows: dict[Cell, Row]) -> dict[Cell, Row]:
    return {cell: replace(row, seconds=0.0) for cell, row in rows.items()}


# Names and seeds


def test_a_name_leads_back_to_its_cell():
    """Every cell of the study can be found by its name."""
    for cell in FULL.cells()[::97]:
        assert Cell.from_name(cell.name) == cell


@pytest.mark.parametrize("name", ["", "boston/GPR/3/2/gpc", "boston/GPR/x/2/gpc/8"])
def test_a_wrong_name_is_refused(name):
    """The message shows a right one."""
    with pytest.raises(ValueError, match="boston/GPR/3/2/gpc/32"):
        Cell.from_name(name)


def test_the_full_study_has_the_papers_size():
    """5 data sets, 3 base models, 5 numbers of target values, 10 times 5 folds."""
    cells = FULL.cells()
    gpc = [cell for cell in cells if cell.method == "gpc-zero"]

    assert len(gpc) == 5 * 3 * 5 * 10 * 5
    assert len(set(cells)) == len(cells)
    assert {cell.method for cell in cells} == set(METHODS)
    assert {cell.unit.repetition for cell in QUICK.cells()} == {0}


def test_the_first_cells_are_a_whole_repetition():
    """A study that is stopped early is a smaller study."""
    cells = FULL.cells()
    first = [cell for cell in cells if cell.unit.repetition == 0]

    assert cells[: len(first)] == first


def test_seeds_follow_names():
    """The first four bytes of SHA-256, and folds that all base models share."""
    toy = make_toy_mixture(60, random_state=0)
    folds = [OuterFold(toy, Unit("toy", base, 0, 1)) for base in ("OLS", "BRR")]
    other = OuterFold(toy, Unit("toy", "OLS", 1, 1))

    assert seed_of("") == 0xE3B0C442
    assert_allclose(folds[0].y_test, folds[1].y_test)
    assert set(folds[0].y_test) != set(other.y_test)


def test_folds_are_disjoint_and_hold_all_rows():
    """Every row is judged once per repetition, never by a model that has seen it."""
    toy = make_toy_mixture(53, random_state=0)
    folds = [OuterFold(toy, Unit("toy", "OLS", 0, fold)) for fold in range(5)]

    assert sorted(np.concatenate([fold.y_test for fold in folds])) == sorted(toy.y)
    assert not any(set(fold.y) & set(fold.y_test) for fold in folds)


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


def a_row(name: str, score: float = -1.0) -> Row:
    return Row(Cell.from_name(name), 10, score, 0, None, None, "", 0.5)


def test_a_row_is_not_written_twice(tmp_path):
    """A cell that is there stays as it is."""
    path, name = tmp_path / "rows.csv", "boston/OLS/0/0/gpc/8"
    with open_results(path) as results:
        results.append([a_row(name)])
        results.append([a_row(name, -2.0)])

    assert [row.log_score for row in read_results(path).values()] == [-1.0]


def test_a_second_writer_is_refused(tmp_path):
    """Two runs cannot mix their rows in one file."""
    pytest.importorskip("fcntl")
    with (
        open_results(tmp_path / "rows.csv"),
        pytest.raises(BlockingIOError, match="Another run"),
        open_results(tmp_path / "rows.csv"),
    ):
        pass


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda text: text.replace("dataset", "data", 1), "does not begin with"),
        (lambda text: text + text.splitlines()[1] + "\n", "Line 3 .* repeats the cell"),
        (lambda text: text + "nonsense\n", "Line 3 .* cannot be read"),
    ],
)
def test_a_spoilt_file_is_refused(tmp_path, spoil, message):
    """The message names the line and the way out."""
    path = tmp_path / "rows.csv"
    with open_results(path) as results:
        results.append([a_row("boston/OLS/0/0/gpc/8")])
    path.write_text(spoil(path.read_text()))

    with pytest.raises(ValueError, match=message):
        read_results(path)


def test_stored_rows_are_the_rows(tmp_path):
    """Compressed and sorted, with everything but surplus digits kept."""
    rows = [
        replace(a_row("boston/OLS/0/1/gpc/8", -1.25), chosen="pit"),
        replace(a_row("boston/OLS/0/0/gpc-zero/8"), raw_log_score=-3.0, raw_n_floored=2),
    ]
    write_results(tmp_path / "rows.csv.gz", rows)
    text = gzip.decompress((tmp_path / "rows.csv.gz").read_bytes()).decode()

    assert read_results(tmp_path / "rows.csv.gz") == {row.cell: row for row in rows}
    assert text.index("OLS,0,0") < text.index("OLS,0,1")


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


@pytest.mark.parametrize("name", ["iris/OLS/0/0/gpc/8", "diabetes/OLS/0/0/magic/8"])
def test_unknown_parts_of_a_name_are_refused(name):
    """The message lists what there is."""
    with pytest.raises(ValueError, match=r"There is no .* in the study\. Known: "):
        run_cell(name)


# Densities as the paper has them


@pytest.fixture(scope="module")
def fold(data) -> OuterFold:
    return OuterFold(data["diabetes"], Unit("diabetes", "OLS", 0, 0))


def test_quotients_are_those_of_the_calibrator(fold):
    """Two thresholds per row give what the calibrator gives with all of them."""
    thresholds, grid = fold.thresholds(8), fold.prediction_thresholds
    new, y = fold.new[0], np.append(fold.y_test[:-2], [grid[0] - 1.0, grid[-1] + 1.0])
    smooth, stepped = (
        fold.calibrated(regcal.GPCalibrator(thresholds, prior="zero", prediction_thresholds=steps))
        for steps in (None, grid)
    )
    expected = stepped[0].transform(new).logpdf(y)

    assert_allclose(log_quotients(smooth[0].transform(new), y, grid), expected, atol=1e-6)


def test_raw_quotients_are_differences_of_the_map(fold):
    """Where the map is the identity, they are those of the base model; none off the grid."""

    class Identity:
        def calibration_map(self, t, q):
            return q

    grid, dist = np.linspace(-3, 3, 601), regcal.Normal([0.0, 1.0, 0.0], [1.0, 1.0, 1.0])
    raw = raw_quotients(Identity(), dist, np.array([0.3, 0.3, 5.0]), grid)

    assert_allclose(raw[:2], dist[:2].pdf([0.295, 0.295]), rtol=1e-4)
    assert raw[2] == 0.0


def test_densities_at_the_floor_are_counted():
    """Negative, zero, tiny and missing densities all count, and count as the floor."""
    score, count = _floored(np.array([-1.0, 0.0, 1e-9, np.nan, np.e]), 1e-3)

    assert count == 4
    assert score == pytest.approx((4 * np.log(1e-3) + 1) / 5)


def test_thresholds_follow_the_training_targets(fold):
    """The paper's range rule, on the rows that are not judged."""
    low, high = fold.y.min(), fold.y.max()

    assert_allclose(
        fold.thresholds(3),
        [low - 0.5 * (high - low), 0.5 * (low + high), high + 0.5 * (high - low)],
    )


# What the rows say


def test_standard_errors_allow_for_overlap():
    """Nadeau and Bengio's correction, by hand: variance 1, 4 folds, a quarter added."""
    mean = Mean.of(np.array([1.0, 2.0, 2.0, 3.0]) * np.sqrt(1.5))

    assert mean.value == pytest.approx(2 * np.sqrt(1.5))
    assert mean.error == pytest.approx(np.sqrt(1 / 4 + 1 / 4))


def test_counts_tell_clear_from_unclear():
    """Two standard errors make a difference clear."""
    count = Count.of([Mean(1.0, 0.4), Mean(1.0, 0.6), Mean(-1.0, 0.1), Mean(-1.0, 9.0)])

    assert count == Count(larger=2, clearly_larger=1, clearly_smaller=1, total=4)
    assert not count.most


def as_the_paper_says(method: str, k: int) -> float:
    """Return a score with which all claims hold."""
    if method == "gpc-zero":
        return {8: -0.1, 16: 2.0, 32: 3.0, 48: 4.0, 64: 3.5}[k]
    curve = {8: -2.0, 16: 1.0, 32: 0.8, 48: 0.5, 64: 0.2}
    return {"e-logistic-uniform": curve[k] - 0.1, "e-beta-uniform": curve[k]}[method]


def made_up(score, sign: float = 1.0) -> dict[Cell, Row]:
    rows = {}
    for base, fold in [(base, fold) for base in BASES for fold in range(5)]:
        unit, noise = f"airfoil/{base}/0/{fold}", 1e-3 * np.sin(fold)
        rows[f"{unit}/uncalibrated/0"] = noise
        for method in PAPER_METHODS:
            for k in THRESHOLDS:
                value = sign * score(method, k) + noise * (1 + 0.1 * np.cos(fold * k))
                rows[f"{unit}/{method}/{k}"] = value
    return {Cell.from_name(name): a_row(name, value) for name, value in rows.items()}


def test_claims_hold_where_they_should():
    """On scores made to follow the paper, all claims hold; upside down, none does."""
    right = claims(Scores(made_up(as_the_paper_says)))
    wrong = claims(Scores(made_up(as_the_paper_says, sign=-1.0)))

    assert len(right) == len(wrong) == 9
    assert {claim.verdict for claim in right} == {"held"}
    assert {claim.verdict for claim in wrong} == {"not held"}
    assert right[0].measured.startswith("the best of the three is better in 12 of 12")


def test_a_statement_without_mostly_can_hold_in_part():
    """More than half is not all: e-beta better everywhere, e-logistic at 16 only."""

    def score(method: str, k: int) -> float:
        return -0.5 if (method, k) == ("e-logistic-uniform", 32) else as_the_paper_says(method, k)

    claim = claims(Scores(made_up(score)))[2]

    assert claim.verdict == "partly held"
    assert claim.measured.startswith("e-logistic better in 3 of 6 ")
    assert "; e-beta better in 6 of 6 " in claim.measured


def test_claims_without_their_numbers_are_left_out():
    """A quick study does not judge what it has not measured."""
    rows = {
        cell: row
        for cell, row in made_up(as_the_paper_says).items()
        if cell.thresholds in (0, 8, 32)
    }

    assert len(claims(Scores(rows))) == 3


def test_a_part_of_a_study_can_be_summed_up(tmp_path):
    """A run that was stopped early, or one without some methods, has its tables too."""
    rows = made_up(as_the_paper_says)
    some = {cell: row for cell, row in rows.items() if cell.unit.base != "GPR"}
    some = {cell: row for cell, row in some.items() if cell.method != "gpc-zero"}
    files = write_study(some, tmp_path)

    assert claims(Scores(some)) == []
    assert "| airfoil, BRR |" in files[-1].read_text()


def test_tables_leave_the_prose(tmp_path):
    """Only what stands between markers is written anew."""
    page = tmp_path / "README.md"
    page.write_text("Mine.\n<!-- begin claims -->\nold\n<!-- end claims -->\nAlso mine.\n")
    files = write_study(made_up(as_the_paper_says), tmp_path)
    text = page.read_text()

    assert [path.name for path in files] == ["uci.csv.gz", "uci.png", "README.md"]
    assert text.startswith("Mine.\n<!-- begin claims -->\n|")
    assert text.endswith("\nAlso mine.\n")
    assert "old" not in text


# What is stored in the repository


@pytest.fixture(scope="module")
def stored() -> dict[Cell, Row]:
    path = EXPERIMENTS / "uci.csv.gz"
    if not path.exists():
        pytest.skip("not a checkout of the repository")
    return read_results(path)


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


def test_the_page_follows_from_the_stored_rows(stored):
    """Tables are those that the rows give, and figures stand nowhere else."""
    page = (EXPERIMENTS / "README.md").read_text(encoding="utf-8")
    prose = re.sub(r"<!-- begin (\w+) -->.*?<!-- end \1 -->", "", page, flags=re.DOTALL)

    assert filled_in(page, Scores(stored)) == page
    assert re.findall(r"-?\d+\.\d+", prose) == []


def test_every_method_is_in_the_stored_study(stored):
    """Nothing was forgotten: all methods with thresholds, on all data sets and base models."""
    found = {(cell.unit.dataset, cell.unit.base, cell.method) for cell in stored}

    assert found >= {
        (dataset, base, method)
        for dataset in DATASETS
        for base in BASES
        for method in (*PAPER_METHODS, *OUR_METHODS, "uncalibrated", "gp-density")
    }


# The command


def test_the_command_runs_a_study_and_sums_it_up(data, tmp_path, monkeypatch):
    """Rows first, figure and tables from them second."""
    monkeypatch.setattr(commands, "QUICK", TINY)
    monkeypatch.setattr(commands, "load_datasets", lambda tell: data)
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

    monkeypatch.setattr(commands, "QUICK", TINY)
    monkeypatch.setattr(commands, "load_datasets", warn)
    command = ["reproduce", "uci", str(tmp_path / "rows.csv"), "--quick", "-j", "1"]
    lines = CliRunner().invoke(app, command).stderr.splitlines()

    assert lines[:2] == ["boston is left out. Get mlxtend.", "Note: an ethical problem"]
