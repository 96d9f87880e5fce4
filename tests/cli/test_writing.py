"""Output is written whole or not at all."""

import subprocess
import sys

import pytest
from shell import CALIBRATE


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


@pytest.mark.parametrize("rows", ["", "1,-2\n"], ids=["none", "bad"])
def test_failure_writes_nothing_to_standard_output(run, rows):
    """A header without rows looks like a table to what reads it."""
    run.write("t.csv", f"mean,std\n{rows}")

    answer = run("predict scale.regcal t.csv")

    assert (answer.code, answer.out) == (2, "")


def test_output_does_not_replace_its_input(run):
    """A table that was read is still there."""
    run.write("t.csv", "mean,std\n1,2\n")

    run.refused("predict scale.regcal t.csv --output ./t.csv", "--output and the table", "t.csv")


def test_models_do_not_go_to_standard_output(run):
    """The sign for it is refused where no table is written, and so are its names."""
    for line in (
        f"{CALIBRATE} --save",
        "fit concrete.csv --target age --output",
        "report held_out.csv --target strength --mean mean --std std --output",
    ):
        run.refused(f"{line} -", "standard output", "./-")
    for name in ("/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"):
        run.refused(f"{CALIBRATE} --save {name}", f"{name!r} is a device or a pipe")


def test_tables_go_to_standard_output_by_any_name(run):
    """A file behind it is written to, and not replaced."""
    behind = run.folder / "behind.csv"
    command = "predict scale.regcal new.csv --levels 0.5 --keep mean --output /dev/stdout"
    with behind.open("wb") as out:
        before = behind.stat().st_ino
        line = [sys.executable, "-m", "regcal", *command.split()]
        subprocess.run(line, cwd=run.folder, stdout=out, check=True)

    assert behind.read_text(encoding="utf-8").startswith("mean,q50\n")
    assert behind.stat().st_ino == before
