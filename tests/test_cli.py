"""The command line, run as a command: each command, each kind of bad input, pipes and interrupts.

Most commands are forked from a process that has imported everything already, because importing
takes longer than the work. They have their own process, streams and exit code all the same.
"""

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

import regcal

ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1", "COLUMNS": "200", "NO_COLOR": "1"}

SERVER = """
import json, os, sys, traceback
import regcal.cli.app
from regcal.cli import main

def work(job):
    os.chdir(job["folder"])
    for number, (name, flags) in enumerate(job["streams"]):
        os.dup2(os.open(name, flags, 0o600), number)
    sys.stdin, sys.stdout, sys.stderr = open(0), open(1, "w"), open(2, "w", buffering=1)
    sys.argv = ["regcal", *job["arguments"]]
    try:
        main()
    except SystemExit as end:
        return int(end.code or 0)
    except BaseException:
        traceback.print_exc()
        return 1

for line in sys.stdin:
    child = os.fork()
    if child == 0:
        code = work(json.loads(line))
        sys.stdout.flush()
        os._exit(code)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


@dataclass
class Answer:
    code: int
    out: str
    err: str


@dataclass
class Commands:
    """Run commands in a folder."""

    server: subprocess.Popen
    streams: Path
    folder: Path

    def __call__(self, line: str, *, given: bytes | None = None) -> Answer:
        if given is not None:
            (self.streams / "in").write_bytes(given)
        write = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
        streams = [(os.devnull if given is None else str(self.streams / "in"), os.O_RDONLY)]
        streams += [(str(self.streams / name), write) for name in ("out", "err")]
        job = {
            "folder": str(self.folder),
            "streams": streams,
            "arguments": shlex.split(line, comments=True),
        }
        self.server.stdin.write(json.dumps(job) + "\n")
        self.server.stdin.flush()
        code = int(self.server.stdout.readline())
        out, err = ((self.streams / name).read_text("utf-8") for name in ("out", "err"))
        return Answer(code, out, err)

    def good(self, line: str, **options) -> Answer:
        answer = self(line, **options)
        assert answer.code == 0, answer.err
        return answer

    def refused(self, line: str, *parts: str, **options) -> str:
        """Return the message of a command that has to fail with a clear one-line message."""
        before = sorted(self.folder.iterdir())
        answer = self(line, **options)
        assert answer.code == 2, (answer.code, answer.out, answer.err)
        assert "Traceback" not in answer.err
        for part in parts:
            assert part in answer.err, answer.err
        assert sorted(self.folder.iterdir()) == before, "something was left behind"
        return answer.err

    def write(self, name: str, text: str) -> None:
        (self.folder / name).write_text(text, encoding="utf-8")

    def table(self, name: str) -> pd.DataFrame:
        file = self.folder / name
        return pd.read_parquet(file) if file.suffix == ".parquet" else pd.read_csv(file)


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen([sys.executable, "-c", SERVER], env=ENVIRONMENT, **pipes) as process:
        yield process
        process.stdin.close()


@pytest.fixture(scope="module")
def folder(server, tmp_path_factory):
    """Return a folder with tables and models that tests only read."""
    run = Commands(server, tmp_path_factory.mktemp("streams"), tmp_path_factory.mktemp("shared"))
    run.good("demo --files .")
    run.good(f"calibrate held_out.csv {PREDICTIONS} --calibrator scale --save scale.regcal")
    run.good(
        "fit concrete.csv --target compressive_strength --calibrator scale --output fit.regcal"
    )
    return run.folder


@pytest.fixture
def run(server, folder, tmp_path):
    """Return what runs commands in a folder of its own, with links to the shared files."""
    (tmp_path / "streams").mkdir()
    (tmp_path / "work").mkdir()
    for file in folder.iterdir():
        (tmp_path / "work" / file.name).symlink_to(file)
    return Commands(server, tmp_path / "streams", tmp_path / "work")


PREDICTIONS = "--target strength --mean mean --std std"
CALIBRATE = f"calibrate held_out.csv {PREDICTIONS} --calibrator scale"
SMALL = "id,mu,sigma,y\na,1.0,0.5,1.2\nb,2.0,0.5,2.9\nc,3.0,1.0,2.1\nd,4.0,1.0,6.0\n"
ON_SMALL = "--target y --mean mu --std sigma --calibrator scale"


# --------------------------------------------------------------------------------------- the shell


def command(*arguments: str, **options) -> subprocess.CompletedProcess:
    script = Path(sys.executable).with_name("regcal")
    return subprocess.run(
        [script, *arguments], env=ENVIRONMENT, capture_output=True, check=False, **options
    )


def test_console_script_tells_its_version():
    """The installed command runs."""
    assert command("--version").stdout.decode() == f"regcal {regcal.__version__}\n"


def test_module_is_the_same_command(run):
    """``python -m regcal`` works in a pipe, from standard input to standard output."""
    line = [sys.executable, "-m", "regcal", "predict", "scale.regcal", "-", "--below", "40"]
    given = (run.folder / "new.csv").read_bytes()

    out = subprocess.run(
        line, env=ENVIRONMENT, cwd=run.folder, input=given, capture_output=True, check=True
    ).stdout

    assert out.splitlines()[0] == b"id,mean,std,strength,below_40"
    assert out.count(b"\n") == given.count(b"\n")


def test_without_the_extra_one_line_says_what_to_install():
    """People who installed regcal alone are told the way."""
    code = "import sys; sys.modules['typer'] = None; from regcal.cli import main; main()"
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)

    assert answer.returncode == 2
    assert answer.stderr.count(b"\n") == 1
    assert b"pip install 'regcal[cli]'" in answer.stderr


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_interrupt_leaves_nothing_behind(run, number, code):
    """A command that is stopped in the middle removes what it had begun to write."""
    rows = (run.folder / "new.csv").read_bytes()
    before = sorted(run.folder.iterdir())
    script = Path(sys.executable).with_name("regcal")
    line = [script, "predict", "scale.regcal", "-", "--output", "out.csv"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(line, env=ENVIRONMENT, cwd=run.folder, **pipes) as process:
        process.stdin.write(rows + rows.split(b"\n", 1)[1] * 200)
        process.stdin.flush()
        while not list(run.folder.glob(".out.csv.*")) and process.poll() is None:
            time.sleep(0.01)
        process.send_signal(number)
        _, err = process.communicate()

    assert process.returncode == code, err
    assert b"Traceback" not in err
    assert sorted(run.folder.iterdir()) == before


# ------------------------------------------------------------------------------------ each command


def test_calibrate_writes_what_the_library_computes(run):
    """Columns are passed on as they are, and the new ones are those of the Python API."""
    run.good(
        f"{CALIBRATE} --apply new.csv --levels 0.05,0.975 --interval 0.8 --below 40 --above 40,-1.5"
        " --moments --output out.csv"
    )
    past, new, out = (run.table(name) for name in ("held_out.csv", "new.csv", "out.csv"))
    calibrator = regcal.get_calibrator("scale")
    calibrator.fit(regcal.Normal(past["mean"], past["std"]), past["strength"])
    dist = calibrator.transform(regcal.Normal(new["mean"], new["std"]))

    pd.testing.assert_frame_equal(out[list(new)], new)
    expected = {
        "q05": dist.ppf(0.05),
        "q97.5": dist.ppf(0.975),
        "lower_80": dist.interval(0.8)[0],
        "upper_80": dist.interval(0.8)[1],
        "below_40": dist.cdf(40.0),
        "above_40": dist.sf(40.0),
        "above_-1.5": dist.sf(-1.5),
        "calibrated_mean": dist.mean(),
        "calibrated_std": dist.std(),
    }
    assert list(out) == [*new, *expected]
    for name, values in expected.items():
        assert_allclose(out[name], values, rtol=1e-12, err_msg=name)


def test_predict_applies_a_saved_calibrator(run):
    """What is kept in a file gives what was written at once."""
    run.good(f"{CALIBRATE} --apply new.csv --output once.csv")
    answer = run.good("predict scale.regcal new.csv --output later.csv --json")

    assert (run.folder / "once.csv").read_bytes() == (run.folder / "later.csv").read_bytes()
    assert json.loads(answer.out)["rows"] == len(run.table("new.csv"))


def test_predict_applies_a_calibrator_that_python_saved(run):
    """A calibrator without column names takes them from the options."""
    past = run.table("held_out.csv")
    calibrator = regcal.get_calibrator("pit")
    calibrator.fit(regcal.Normal(past["mean"], past["std"]), past["strength"])
    regcal.save(calibrator, run.folder / "python.regcal")

    run.refused("predict python.regcal new.csv", "--mean and --std")
    run.good("predict python.regcal new.csv --mean mean --std std --output out.csv")

    dist = calibrator.transform(regcal.Normal(*run.table("new.csv")[["mean", "std"]].T.to_numpy()))
    assert_allclose(run.table("out.csv")["q50"], dist.median())


@pytest.mark.parametrize("model", ["ols", "gpr", "forest", "boosting", "sklearn.svm:LinearSVR"])
def test_fit_and_predict_every_model(run, model):
    """Each model learns from numbers and texts, and predicts rows it has not seen."""
    rng = np.random.default_rng(0)
    x, kind = rng.uniform(0, 4, 60), rng.choice(["röd", "blå"], 60)
    y = x + 3 * (kind == "röd") + 0.1 * rng.normal(size=60)
    table = pd.DataFrame({"längd": x, "färg": kind, "y": y})
    table.iloc[:50].to_csv(run.folder / "data.csv", index=False)
    table.iloc[50:].drop(columns="y").to_csv(run.folder / "unseen.csv", index=False)

    run.good(f"fit data.csv --target y --model {model} --calibrator scale --cv 2 --output m.regcal")
    run.good("predict m.regcal unseen.csv --output out.csv")

    assert np.abs(run.table("out.csv")["q50"] - y[50:]).mean() < 1.0


def test_fitted_model_is_that_of_the_library(run):
    """The command line adds nothing to the model but the names of its columns."""
    from sklearn.linear_model import BayesianRidge
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    data = run.table("concrete.csv")
    X, y = data.drop(columns="compressive_strength"), data["compressive_strength"]
    base = make_pipeline(StandardScaler(), BayesianRidge())
    model = regcal.CalibratedRegressorCV(base, "scale").fit(X, y)

    run.good("predict fit.regcal concrete.csv --quantiles 0.1,0.9 --keep age --output out.csv")

    out = run.table("out.csv")
    assert list(out) == ["age", "q10", "q90"]
    assert_allclose(out[["q10", "q90"]], model.predict_quantiles(X, [0.1, 0.9]))


@pytest.mark.parametrize("option", ["--time day", "--groups plant"])
def test_fit_holds_out_by_time_or_group(run, option):
    """Columns that order or group the rows are no features."""
    rng = np.random.default_rng(0)
    days = pd.date_range("2024-01-01", periods=120).strftime("%Y-%m-%d")
    x = rng.normal(size=120)
    table = pd.DataFrame({"x": x, "day": days, "plant": np.arange(120) % 6, "y": x})
    table["y"] += rng.normal(size=120)
    table.sample(frac=1, random_state=0).to_parquet(run.folder / "data.parquet", index=False)
    drop = "plant" if "day" in option else "day"

    answer = run.good(
        f"fit data.parquet --target y {option} --drop {drop} --calibrator scale --json -o m.regcal"
    )

    told = json.loads(answer.out)
    assert told["features"] == ["x"]
    assert [score["name"] for score in told["scores"]] == ["log score", "CRPS", "coverage 90 %"]


def test_evaluate_prints_the_table_of_compare(run):
    """Scores are those of the library, for people and as JSON."""
    line = f"evaluate new.csv {PREDICTIONS}"
    new = run.table("new.csv")
    score = regcal.log_score(new["strength"], regcal.Normal(new["mean"], new["std"])).mean()

    told = json.loads(run.good(line + " --json").out)

    assert told["metrics"]["log score"]["values"]["predictions"] == pytest.approx(score)
    assert "threshold calibration error" in run.good(line).out
    assert "after - before" in run.good("evaluate new.csv --model scale.regcal").out


def test_report_writes_a_page(run):
    """The page compares predictions before and after."""
    run.good("report new.csv --model scale.regcal --title Betong --output page.html")

    assert "Betong" in (run.folder / "page.html").read_text(encoding="utf-8")


def test_info_tells_what_is_in_a_file(run):
    """Class, source, scores and versions, without building the model."""
    told = json.loads(run.good("info fit.regcal --json").out)
    text = run.good("info fit.regcal").out

    assert told["class"].endswith("TableRegressor")
    assert {score["name"] for score in told["scores"]} >= {"log score", "CRPS"}
    assert "concrete.csv" in text
    assert f"regcal {regcal.__version__}" in text


def test_demo_shows_what_changed(run):
    """The demonstration runs from the command line, too."""
    assert "90 % interval holds" in run.good("demo").out


@pytest.mark.parametrize("name", ["calibrate", "fit", "predict", "evaluate", "report", "info"])
def test_help_teaches_by_example(run, name):
    """Every command's help holds commands to copy."""
    assert f"regcal {name} " in run.good(f"{name} --help").out.split("Examples")[1]


# ----------------------------------------------------------------------------- kinds of predictions


def test_quantile_columns_tell_their_levels(run):
    """Names, a pattern and explicit levels are the same, and crossing ones are sorted."""
    run.write("q.csv", "y,q05,q50,q95\n1,0,1,3\n2,1,2,4\n5,4,3,9\n0,-1,1,2\n")
    learn = "calibrate q.csv --target y --calibrator identity --levels 0.05,0.5,0.95 --apply q.csv"
    answers = [
        run.good(f"{learn} --quantiles '{option}'")
        for option in ("q05,q50,q95", "q*", "q95=0.95,q05=0.05,q50=0.5", "q")
    ]

    assert len({answer.out for answer in answers}) == 1
    assert "1 row(s) have crossing quantiles, the first is row 3" in answers[0].err
    rows = [line.split(",")[-3:] for line in answers[0].out.splitlines()[1:]]
    expected = [[0, 1, 3], [1, 2, 4], [3, 4, 9], [-1, 1, 2]]
    assert_allclose(np.array(rows, float), expected)
    assert answers[0].out.startswith("y,q05,q50,q95,calibrated_q05,calibrated_q50,calibrated_q95\n")


def test_samples_are_named_by_their_common_start(run):
    """Draws may be in any number of columns."""
    draws = np.random.default_rng(0).normal(5.0, 1.0, (20, 30))
    table = pd.DataFrame(draws, columns=[f"draw_{k}" for k in range(30)]).assign(y=draws[:, 0])
    table.to_csv(run.folder / "s.csv", index=False)
    learn = "calibrate s.csv --target y --calibrator identity --apply s.csv --keep y --moments"

    run.good(f"{learn} --samples draw_ --output a.csv")
    run.good(f"{learn} --samples 'draw*' --output b.csv")

    assert (run.folder / "a.csv").read_bytes() == (run.folder / "b.csv").read_bytes()
    assert_allclose(run.table("a.csv")["mean"], draws.mean(axis=1))


@pytest.mark.parametrize(
    ("options", "parts"),
    [
        ("--mean mu", ("--mean and --std belong together",)),
        ("", ("one of --mean and --std, --quantiles, or --samples",)),
        ("--mean mu --std sigma --samples mu", ("one of --mean and --std",)),
        ("--mean mu --std sigma --quantiles 0.1,0.9", ("use --levels",)),
        ("--quantiles mu,sigma", ("'mu' does not tell a level", "mu=0.05")),
        ("--quantiles mu=0.01,sigma=0.05", ("levels 0.01, 0.05", "one side of the median")),
        ("--samples mu", ("at least two draws",)),
        ("--mean mu --std sigma --calibrator gcp", ("no calibrator 'gcp'", "gpc")),
        ("--mean mu --std sigma --interval 90", ("--interval", "Write 90 % as 0.9")),
        ("--mean mu --std sigma --below many", ("--below takes numbers", "many")),
        ("--mean mu --std sigma --output out.csv", ("--apply",)),
        ("--mean mu --std sigma --apply t.csv --output out.xlsx", (".csv or .parquet",)),
        ("--mean mu --std sigma --apply t.csv --json", ("Pass --output FILE",)),
    ],
)
def test_options_that_do_not_fit_are_refused(run, options, parts):
    """The message names the option and the way out."""
    run.write("t.csv", SMALL)

    run.refused(f"calibrate t.csv --target y {options}", *parts)


# ------------------------------------------------------------------------------------------- tables


@pytest.mark.parametrize("ending", ["csv", "tsv", "csv.gz", "parquet"])
def test_every_format_can_be_read_and_written(run, ending):
    """The same rows come out, whatever they are kept in."""
    run.good(f"predict scale.regcal new.csv --output first.{ending}")
    run.good(f"predict scale.regcal first.{ending} --levels 0.5 --output again.parquet")

    again, new = run.table("again.parquet"), run.table("new.csv")
    assert again["mean"].dtype == float
    assert_allclose(again["calibrated_q50"], again["q50"])
    pd.testing.assert_frame_equal(again[list(new)], new, check_dtype=False)


def test_separators_are_found_and_kept(run):
    """A file as spreadsheets write it in much of Europe comes back in the same way."""
    text = SMALL.replace(",", ";").replace(".", ",")
    run.write("t.csv", "\ufeff" + text)

    out = run.good(f"calibrate t.csv {ON_SMALL} --apply t.csv --levels 0.5").out.splitlines()
    tabs = run.good(
        f"calibrate - {ON_SMALL} --apply t.csv --levels 0.5 --keep id",
        given=SMALL.replace(",", "\t").encode(),
    )

    assert out[0] == "id;mu;sigma;y;q50"
    assert out[2] == "b;2,0;0,5;2,9;2"
    assert tabs.out.splitlines()[:2] == ["id;q50", "a;1"]


def test_cells_that_are_passed_on_stay_as_they_are(run):
    """Leading zeros, quoted separators, line breaks, blanks and repeated names survive."""
    run.write(
        "t.csv",
        'code,note,note,mean,std\n007,"a, b",x,1.50, 2\n008,"say ""hi""\nthere",,2.00,1e0\n',
    )

    out = run.good("predict scale.regcal t.csv --levels 0.5").out

    table = pd.read_csv(pd.io.common.StringIO(out), dtype=str, keep_default_na=False)
    assert list(table) == ["code", "note", "note.1", "mean", "std", "q50"]
    assert table.iloc[0, :5].tolist() == ["007", "a, b", "x", "1.50", " 2"]
    assert table.iloc[1, :5].tolist() == ["008", 'say "hi"\nthere', "", "2.00", "1e0"]
    assert_allclose(table["q50"].astype(float), [1.5, 2.0])


def test_long_tables_are_answered_as_short_ones(run):
    """Rows of later batches get the same answers, and errors name their rows."""
    header, rows = (run.folder / "new.csv").read_bytes().split(b"\n", 1)
    many = header + b"\n" + rows * 500
    assert len(many) > 2**22  # more than one batch
    (run.folder / "many.csv").write_bytes(many)

    run.good("predict scale.regcal new.csv --output one.csv")
    run.good("predict scale.regcal many.csv --output out.parquet")
    (run.folder / "many.csv").write_bytes(many + b"last,1,-1,1\n")
    last = 500 * rows.count(b"\n") + 1
    run.refused("predict scale.regcal many.csv -o bad.csv", f"'std' is -1 in row {last},")

    one, out = run.table("one.csv"), run.table("out.parquet")
    assert_allclose(out["q95"], np.tile(one["q95"], 500))


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("", ("t.csv is empty",)),
        ("id,mu,sigma,y\n", ("column names but no rows",)),
        ("id,mu,sigma,y", ("column names but no rows",)),
        ("\n\n\n", ("first line is blank",)),
        ("id,mu,sigm,y\na,1,1,1\n", ("no column 'sigma'", "Did you mean 'sigm'?")),
        ("id,mu,spread,y\na,1,1,1\n", ("no column 'sigma'", "'spread'")),
        ("id,mu,sigma,y,mu\na,1,1,1,2\n", ("2 columns named 'mu'", "Rename")),
        (SMALL + "e,,1,1\n", ("column 'mu' is missing in row 5", "--skip-missing")),
        (SMALL + "e,NA,1,1\n", ("column 'mu' is missing in row 5",)),
        (SMALL + "e,1,1,inf\n", ("column 'y' is inf", "row 5")),
        (SMALL + "e,one,1,1\n", ("column 'mu' must hold numbers", "row 5 holds 'one'")),
        (SMALL + "e,1,-2,1\n", ("column 'sigma' is -2 in row 5", "must be positive")),
        (SMALL + "e,1,0,1\n", ("column 'sigma' is 0 in row 5", "must be positive")),
        (SMALL + "e,1,1\n", ("row 5 has 3 values", "4 columns")),
        (SMALL + 'e,"1,5",1,1\n', ("row 5 holds '1,5'",)),
    ],
)
def test_tables_that_cannot_be_used_are_refused(run, text, parts):
    """The message names file, column, row and value, and the way out."""
    run.write("t.csv", text)

    run.refused(f"calibrate t.csv {ON_SMALL} --save m.regcal", "t.csv", *parts)


def test_other_files_are_refused(run):
    """What is no table is told apart from a table."""
    (run.folder / "latin.csv").write_bytes("id,mu,sigma,y\nå,1,1,1\n".encode("latin-1"))
    (run.folder / "sheet.xlsx").write_bytes(b"PK\x03\x04 and so on")
    (run.folder / "cut.parquet").write_bytes(b"PAR1 and nothing else")

    run.refused(f"calibrate latin.csv {ON_SMALL}", "latin.csv is not UTF-8")
    run.refused(f"calibrate sheet.xlsx {ON_SMALL}", "Save the table as CSV")
    run.refused(f"calibrate cut.parquet {ON_SMALL}", "damaged Parquet file")
    run.refused(f"calibrate held_uot.csv {ON_SMALL}", "Did you mean 'held_out.csv'?")
    run.refused(f"calibrate . {ON_SMALL}", "is a folder")


def test_rows_with_missing_values_can_be_left_out(run):
    """They are not learnt from, and their answers are empty."""
    run.write("t.csv", SMALL + "e,,1,1\nf,1,1,\n")

    answer = run.good(f"calibrate t.csv {ON_SMALL} --apply t.csv --levels 0.5 --skip-missing")
    whole = run.good(f"calibrate - {ON_SMALL} --apply t.csv --levels 0.5 --skip-missing",
                     given=SMALL.encode())  # fmt: skip

    assert "2 row(s) with missing values were not used" in answer.err
    assert answer.out.splitlines()[5] == "e,,1,1,"
    assert answer.out == whole.out


def test_fit_refuses_features_it_cannot_use(run):
    """Numbers with a stray text, names of rows and missing values are not guessed at."""
    rows = [f"{k},n{k},{k % 7},{2 * k % 11}.5" for k in range(150)]
    run.write("t.csv", "\n".join(["x,name,z,y", *rows]) + "\n")
    fit = "fit t.csv --target y --calibrator scale --output m.regcal"

    run.refused(fit, "'name' holds 150 different texts", "--drop name")
    run.refused(fit + " --drop nam", "Did you mean 'name'?")
    run.refused(fit + " --features x,z --model boostig", "Did you mean 'boosting'?")
    run.refused(fit + " --features x --model nowhere:Model", "nowhere:Model")
    run.write("t.csv", "\n".join(["x,z,y", *(f"{k},{k % 7},{k % 5}" for k in range(40)), "x,1,2"]))
    run.refused(fit, "column 'x' must hold numbers", "row 41 holds 'x'")
    run.write("t.csv", "\n".join(["x,z,y", *(f"{k},{k % 7},{k % 5}" for k in range(40)), ",1,2"]))
    run.refused(fit, "column 'x' is missing in row 41", "--skip-missing")
    run.good(fit + " --model boosting")


@pytest.mark.parametrize(
    ("rows", "part"),
    [
        (["1,2"], "t.csv cannot be fitted"),
        ([f"{k},3" for k in range(30)], "t.csv cannot be fitted"),
    ],
    ids=["one row", "constant target"],
)
def test_fit_refuses_what_cannot_be_learnt(run, rows, part):
    """One row, or a target that never changes, is told."""
    run.write("t.csv", "\n".join(["x,y", *rows]) + "\n")

    run.refused("fit t.csv --target y --model ols --output m.regcal", part)


def test_one_row_can_be_predicted(run):
    """The shortest table works."""
    out = run.good("predict scale.regcal -", given=b"mean,std\n10,2\n").out

    assert out.startswith("mean,std,q05,q50,q95\n10,2,")


# --------------------------------------------------------------------------- model files and output


def test_model_files_that_cannot_be_trusted_are_refused(run):
    """Cut, foreign and missing files end in a message that says what to do."""
    whole = (run.folder / "fit.regcal").read_bytes()
    (run.folder / "cut.regcal").write_bytes(whole[: len(whole) // 2])
    (run.folder / "own_model.py").write_text(
        "from sklearn.linear_model import BayesianRidge\nclass Own(BayesianRidge):\n    pass\n"
    )
    run.good("fit concrete.csv --target compressive_strength --model own_model:Own "
             "--calibrator scale --output own.regcal")  # fmt: skip

    run.refused("predict cut.regcal concrete.csv", "cut.regcal")
    run.refused("info cut.regcal", "cut.regcal")
    run.refused("predict new.csv concrete.csv", "new.csv")
    run.refused("predict absent.regcal new.csv", "no model file absent.regcal")
    run.refused("predict own.regcal concrete.csv", "own_model.Own", "pass --trust NAME")
    assert "needs --trust: own_model.Own" in run.good("info own.regcal").out


def test_trusted_models_are_used(run):
    """A class of one's own is loaded when it is named."""
    (run.folder / "trusted_model.py").write_text(
        "from sklearn.linear_model import BayesianRidge\nclass Own(BayesianRidge):\n    pass\n"
    )
    run.good("fit concrete.csv --target compressive_strength --model trusted_model:Own "
             "--calibrator scale --output own.regcal")  # fmt: skip

    run.good("predict own.regcal concrete.csv --trust trusted_model.Own --output out.csv")


def test_output_that_cannot_be_written_is_refused(run):
    """A folder, or a place that does not exist, is told before anything is computed."""
    (run.folder / "taken.csv").mkdir()

    run.refused("predict scale.regcal new.csv --output taken.csv", "taken.csv", "name a file")
    run.refused("predict scale.regcal new.csv --output no/where.csv", "no/where.csv")
    run.refused("fit concrete.csv --target age --output no/model.regcal", "no/model.regcal")


def test_failure_keeps_the_old_output(run):
    """An existing file is replaced only by a complete one."""
    run.write("out.csv", "precious")
    run.write("t.csv", "mean,std\n1,2\n1,-2\n")

    run.refused("predict scale.regcal t.csv --output out.csv", "must be positive")

    assert (run.folder / "out.csv").read_text() == "precious"


def test_output_may_replace_its_input(run):
    """A table can be extended in place."""
    run.write("t.csv", "mean,std\n1,2\n")

    run.good("predict scale.regcal t.csv --levels 0.5 --output t.csv")

    assert (run.folder / "t.csv").read_text() == "mean,std,q50\n1,2,1\n"
