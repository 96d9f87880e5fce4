"""The installed command: versions, pipes, interrupts, help."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from shell import CALIBRATE, ENVIRONMENT

import regcal

# To start takes most of the time, and to load a model would double it.
APPLY = (*CALIBRATE.split(), "--apply", "-")


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
    line = [sys.executable, "-m", "regcal", *APPLY, "--below", "40"]
    given = (run.folder / "new.csv").read_bytes()

    out = subprocess.run(
        line, env=ENVIRONMENT, cwd=run.folder, input=given, capture_output=True, check=True
    ).stdout

    assert out.splitlines()[0] == b"id,mean,std,strength,below_40"
    assert out.count(b"\n") == given.count(b"\n")


def test_without_the_extra_one_line_says_what_to_install(run, monkeypatch):
    """People who installed regcal alone are told the way."""
    monkeypatch.delitem(sys.modules, "regcal.cli.app")
    monkeypatch.setitem(sys.modules, "typer", None)

    answer = run("--version")

    assert answer.code == 2
    assert answer.err.count("\n") == 1
    assert "pip install 'regcal[cli]'" in answer.err


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_interrupt_leaves_nothing_behind(run, number, code):
    """A command that is stopped in the middle removes what it had begun to write."""
    rows = (run.folder / "new.csv").read_bytes()
    before = sorted(run.folder.iterdir())
    script = Path(sys.executable).with_name("regcal")
    line = [script, *APPLY, "--output", "out.csv"]
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


@pytest.mark.parametrize(
    "name", ["calibrate", "fit", "predict", "evaluate", "report", "monitor", "info"]
)
def test_help_teaches_by_example(run, name):
    """Every command's help holds commands to copy."""
    assert f"regcal {name} " in run.good(f"{name} --help").out.split("Examples")[1]
