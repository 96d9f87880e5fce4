"""The installed command: versions, pipes, interrupts, help."""

import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from shell import CALIBRATE, ENVIRONMENT, PREDICTIONS

import regcal
from regcal.cli._estimators import MODEL_NAMES

NAMES = ("calibrate", "fit", "predict", "evaluate", "report", "monitor", "info")

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


HELP = """
import sys
from regcal.cli import main
for command in {commands}:
    sys.argv = ["regcal", *command.split()]
    try:
        main()
    except SystemExit as end:
        assert not end.code
slow = set(sys.modules) & {{"numpy", "pandas", "pyarrow", "scipy", "sklearn"}}
assert not slow, slow
"""


def test_help_waits_for_no_package_that_works_with_numbers():
    """What is printed at once is not computed."""
    commands = ["--help", "--version", *(f"{name} --help" for name in (*NAMES, "reproduce uci"))]
    line = [sys.executable, "-c", HELP.format(commands=commands)]

    ended = subprocess.run(line, env=ENVIRONMENT, capture_output=True, check=False)

    assert ended.returncode == 0, ended.stderr.decode()


def test_help_names_every_method_and_model(run):
    """The help is written by hand, since to ask for the names would import all methods."""
    told = re.sub(r"[\s│]+", " ", run.good("fit --help").out)

    assert f"Method: {', '.join(regcal.calibrator_names())}." in told
    assert f"{', '.join(MODEL_NAMES)}, or your own class" in told


def test_module_is_the_same_command(run):
    """``python -m regcal`` works in a pipe, from standard input to standard output."""
    line = [sys.executable, "-m", "regcal", *APPLY, "--below", "40"]
    given = (run.folder / "new.csv").read_bytes()

    out = subprocess.run(
        line, env=ENVIRONMENT, cwd=run.folder, input=given, capture_output=True, check=True
    ).stdout

    assert out.splitlines()[0] == b"id,mean,std,strength,below_40"
    assert out.count(b"\n") == given.count(b"\n")


@pytest.mark.parametrize(
    ("line", "importers", "package"),
    [
        ("--version", ["app"], "typer"),
        (f"evaluate new.csv {PREDICTIONS}", ["_known_outcomes", "_reading"], "pyarrow"),
    ],
)
def test_without_the_extra_one_line_says_what_to_install(
    run, monkeypatch, line, importers, package
):
    """People who installed regcal alone are told the way, when they start or by a command."""
    run("--version")
    for name in importers:  # also if another test has imported it in this process
        monkeypatch.delitem(sys.modules, f"regcal.cli.{name}", raising=False)
    monkeypatch.setitem(sys.modules, package, None)

    answer = run(line)

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


@pytest.mark.parametrize("name", NAMES)
def test_help_teaches_by_example(run, name):
    """Every command's help holds commands to copy."""
    assert f"regcal {name} " in run.good(f"{name} --help").out.split("Examples")[1]


@pytest.mark.parametrize(
    ("line", "option"),
    [
        ("calibrate held_out.csv --target strength --mean mu --std std", "--mean"),
        ("calibrate held_out.csv --target strength --mean mean --std sd", "--std"),
        ("calibrate held_out.csv --target strength --quantile-columns q", "--quantile-columns"),
        ("calibrate held_out.csv --target strength --quantiles mean,std", "--quantiles"),
        (f"calibrate held_out.csv {PREDICTIONS} --calibrator gcp", "--calibrator"),
        (f"calibrate held_out.csv {PREDICTIONS} --apply new.csv --keep key", "--keep"),
        (f"evaluate new.csv {PREDICTIONS} --coverage 90", "--coverage"),
        ("fit concrete.csv --target age --features cemnet --output m", "--features"),
        ("fit concrete.csv --target age --drop cemnet --output m", "--drop"),
        ("fit concrete.csv --target age --groups cemnet --output m", "--groups"),
        ("fit concrete.csv --target age --groups water --cv 999 --output m", "--cv"),
        ("fit concrete.csv --target age --cv 1 --output m", "--cv"),
        ("fit concrete.csv --target age --model ridge --output m", "--model"),
        ("predict fit.regcal concrete.csv --quantiles 5", "--quantiles"),
        ("predict fit.regcal concrete.csv --levels 5", "--levels"),
        (f"monitor new.csv {PREDICTIONS} --alpha 5", "--alpha"),
    ],
)
def test_messages_name_the_option_that_was_typed(run, line, option):
    """By the name under which it was typed, before anything is learnt."""
    message = run.refused(line, option)

    assert "Learned" not in message
    assert set(re.findall(r"--[a-z-]+", message)) <= set(re.findall(r"--[a-z-]+", line))
