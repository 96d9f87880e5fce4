"""What commands read and write: odd headers, code of users, files that must not be replaced."""

import os
import shlex
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

pytest.importorskip("typer")

from regcal.cli._errors import InputError
from regcal.cli._reading import open_table
from regcal.cli.app import run

PAST = "mean,std,y\n" + "".join(f"{k},1,{k + (-1) ** k * 0.7}\n" for k in range(24))


@pytest.fixture
def command(tmp_path, monkeypatch, capfd):
    """Return a function that runs a command in a folder with a table of predictions."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    monkeypatch.setattr(sys, "path", list(sys.path))
    Path("past.csv").write_text(PAST)
    Path("new.csv").write_text("mean,std\n1,2\n")

    def answer(line: str) -> tuple[int, str]:
        monkeypatch.setattr(sys, "argv", ["regcal", *shlex.split(line)])
        try:
            code = run()
        except SystemExit as end:
            code = int(end.code or 0)
        return code, capfd.readouterr().err

    return answer


FIT = "fit past.csv --target y --calibrator scale --output m.regcal"
CALIBRATE = "calibrate past.csv --target y --mean mean --std std --calibrator scale"


# ----------------------------------------------------------------------------------------- headers


def columns(text: str, path: Path) -> tuple[tuple[str, ...], list]:
    path.write_text(text, newline="", encoding="utf-8")
    table = open_table(str(path))
    return table.layout.names, [[c.to_pylist() for c in b.columns] for b in table.batches()]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("a\u2028b,c\n1,2\n", ("a\u2028b", "c")),
        ("a\x0bb,c\n1,2\n", ("a\x0bb", "c")),
        ("a\x85b,c\r\n1,2\r\n", ("a\x85b", "c")),
        ('"a\nb",c\n1,2\n', ("a\nb", "c")),
        ('"a\r\nb";c\r\n1;2\r\n', ("a\r\nb", "c")),
        ('"a ""b"", c",c\n1,2\n', ('a "b", c', "c")),
        ('5" pipe,c\n1,2\n', ('5" pipe', "c")),
        ("a,c\r1,2\r", ("a", "c")),
    ],
    ids=["U+2028", "VT", "NEL", "newline", "CRLF", "quotes", "inch", "CR"],
)
def test_headers_end_where_csv_lines_end(text, names, tmp_path):
    """Other signs that Python calls ends of lines, and quoted ones, belong to a name."""
    assert columns(text, tmp_path / "t.csv") == (names, [[["1"], ["2"]]])


@pytest.mark.parametrize("size", [200_000, 2_000_000])
def test_long_names_are_told(size, tmp_path):
    """A name that is longer than the reader takes is no traceback."""
    with pytest.raises(InputError, match="column names"):
        columns("a" * size + ",b\n1,2\n", tmp_path / "t.csv")


# ---------------------------------------------------------------------------------- code of users


@pytest.mark.parametrize(
    "code",
    [
        "raise RuntimeError('broken module')",
        "class Own:\n    def __init__(self):\n        1 / 0",
        "from sklearn.linear_model import Ridge\n"
        "class Own(Ridge):\n    def fit(self, X, y): raise KeyError('broken fit')",
        "raise RuntimeError('broken\\nmodule')",
        "from sklearn.linear_model import Ridge\n"
        "class Own(Ridge):\n    def fit(self, X, y): raise ValueError('no\\r\\nfit')",
    ],
    ids=["import", "constructor", "fit", "lines of an import", "lines of a fit"],
)
def test_own_models_that_raise_are_told(code, command):
    """The message names the model and what it raised."""
    name = f"own_model_{len(code)}"
    Path(f"{name}.py").write_text(code)

    status, said = command(f"{FIT} --model {name}:Own")

    assert (status, "Traceback" in said) == (2, False)
    assert f"{name}:Own" in said or "past.csv cannot be fitted: no fit" in said
    assert "Error: " in said
    assert said.count("\n") == 1


EXITS = {
    "import": "import sys\nsys.exit(0)",
    "constructor": "class Own:\n    def __init__(self): raise SystemExit",
    "fit": "from sklearn.linear_model import Ridge\n"
    "class Own(Ridge):\n    def fit(self, X, y): raise SystemExit(0)",
    "storing": "from sklearn.linear_model import Ridge\n"
    "class Own(Ridge):\n    def __getstate__(self): raise SystemExit(0)",
}


@pytest.mark.parametrize("where", EXITS)
def test_own_models_do_not_end_commands(where, command):
    """A command without a result says so, by its exit code too."""
    name = f"own_model_that_ends_{where}"
    Path(f"{name}.py").write_text(EXITS[where])

    status, said = command(f"{FIT} --model {name}:Own")

    assert (status, said.count("\n")) == (2, 1), said
    assert "has called sys.exit(" in said
    assert not Path("m.regcal").exists()


@pytest.mark.parametrize("raised", ["SystemExit(0)", "ZeroDivisionError('by\\nnothing')"])
def test_trusted_models_do_not_end_commands(raised, command):
    """Nor do they when they predict."""
    name = f"trusted_model_{len(raised)}"
    Path(f"{name}.py").write_text(
        "from pathlib import Path\nfrom sklearn.linear_model import BayesianRidge\n"
        "class Own(BayesianRidge):\n    def predict(self, X, return_std=False):\n"
        f"        if Path('broken').exists(): raise {raised}\n"
        "        return super().predict(X, return_std)\n"
    )
    made = command(f"{FIT} --model {name}:Own")
    Path("broken").touch()

    status, said = command(f"predict m.regcal past.csv --output out.csv --trust {name}.Own")

    assert made[0] == 0, made[1]
    assert (status, said.count("\n")) == (2, 1), said
    assert "The code of the model has" in said


def test_warnings_are_notes(command):
    """What libraries warn of is told, in a line each, also when all goes well."""
    Path("warning_model.py").write_text(
        "import warnings\nfrom sklearn.linear_model import BayesianRidge\n"
        "class Own(BayesianRidge):\n    def fit(self, X, y):\n"
        "        warnings.warn('mind\\nthe gap')\n        return super().fit(X, y)\n"
    )

    status, said = command(f"{FIT} --model warning_model:Own")

    assert status == 0, said
    assert said.count("Note: mind the gap\n") == 1


def test_help_says_that_own_models_are_run(command, capfd):
    """Whoever passes a module learns that its code is run."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["regcal", "fit", "--help"])
        with pytest.raises(SystemExit):
            run()

    assert "imported" in capfd.readouterr().out


# ------------------------------------------------------------------------------- files to be spared


@pytest.mark.parametrize(
    ("line", "what"),
    [
        (f"{CALIBRATE} --save past.csv", "CAL"),
        (f"{CALIBRATE} --apply new.csv --output out.csv --save ./new.csv", "--apply"),
        (f"{CALIBRATE} --apply new.csv --output out.csv --save out.csv", "--output"),
        (f"{CALIBRATE} --save link.csv", "CAL"),
        (f"{CALIBRATE} --apply new.csv --output new.csv", "--apply"),
        (f"{CALIBRATE} --apply new.csv --output link.csv", "CAL"),
        ("fit past.csv --target y --output past.csv", "the table"),
        ("report past.csv --target y --mean mean --std std --output past.csv", "the table"),
    ],
)
def test_inputs_are_not_overwritten(line, what, command):
    """A file that is read, or written already, is not written to."""
    Path("link.csv").symlink_to("past.csv")

    status, said = command(line)

    assert status == 2
    assert f"{what} are the same file" in said
    assert Path("past.csv").read_text() == PAST


@pytest.mark.skipif(os.name != "posix", reason="pipes of POSIX")
@pytest.mark.parametrize(
    "line", [f"{CALIBRATE} --save pipe", "fit past.csv --target y --output pipe"]
)
def test_models_are_not_saved_onto_pipes(line, command):
    """A pipe or a device would be replaced by a file."""
    os.mkfifo("pipe")

    status, said = command(line)

    assert status == 2
    assert "a device or a pipe" in said
    assert Path("pipe").is_fifo()


@pytest.mark.skipif(os.name != "posix", reason="pipes of POSIX")
def test_tables_may_go_to_pipes(command):
    """There is a reader at the other end."""
    os.mkfifo("pipe")
    read: list[str] = []
    reader = threading.Thread(target=lambda: read.append(Path("pipe").read_text()))
    reader.start()

    status, said = command(f"{CALIBRATE} --apply new.csv --output pipe")
    reader.join(30)

    assert (status, Path("pipe").is_fifo()) == (0, True), said
    assert read[0].startswith("mean,std,q05")


KILLED = """
import os, signal
from regcal.cli._writing import complete_file
with complete_file("out.csv") as part:
    part.write_text("half")
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
def test_what_a_killed_command_left_is_removed(command):
    """The next run of the same command tidies up, and leaves parts of running ones alone."""
    subprocess.run([sys.executable, "-c", KILLED], check=False)
    (left,) = Path().glob(".out.csv.*.part")
    alive = Path(left.name.replace(left.name.split("-")[1], str(os.getppid())))
    alive.write_text("of a command that runs")

    status, said = command(f"{CALIBRATE} --apply new.csv --output out.csv")

    assert status == 0, said
    assert list(Path().glob(".*")) == [alive]
