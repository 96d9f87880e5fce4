"""What runs commands, and files that they only read."""

import pytest
from shell import PREDICTIONS, Commands


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """Return a folder with tables and models that tests only read."""
    run = Commands(tmp_path_factory.mktemp("shared"))
    run.good("demo --files .")
    run.good(f"calibrate held_out.csv {PREDICTIONS} --calibrator scale --save scale.regcal")
    run.good(
        "fit concrete.csv --target compressive_strength --calibrator scale --output fit.regcal"
    )
    return run.folder


@pytest.fixture
def run(folder, tmp_path):
    """Return what runs commands in a folder of its own, with links to the shared files."""
    for file in folder.iterdir():
        (tmp_path / file.name).symlink_to(file)
    return Commands(tmp_path)
