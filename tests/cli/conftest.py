"""What runs commands, and files that they only read."""

import subprocess
import sys

import pytest
from shell import ENVIRONMENT, PREDICTIONS, SERVER, Commands


@pytest.fixture(scope="session")
def server(tmp_path_factory):
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen([sys.executable, "-c", SERVER], env=ENVIRONMENT, **pipes) as process:
        yield process
        process.stdin.close()


@pytest.fixture(scope="session")
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
