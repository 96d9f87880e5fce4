"""`save` replaces regular files only, and leaves nothing beside them."""

import os

import pytest
from cases import STANDARD, fitted_calibrator

import regcal

pytestmark = pytest.mark.skipif(os.name != "posix", reason="devices and pipes of POSIX")


@pytest.fixture(scope="module")
def model():
    return fitted_calibrator("scale", "normal", 0, STANDARD)


def test_pipes_are_not_replaced(model, tmp_path):
    """A pipe stays one, also behind a link."""
    pipe, link = tmp_path / "pipe", tmp_path / "link"
    os.mkfifo(pipe)
    link.symlink_to(pipe)

    for path in (pipe, link):
        with pytest.raises(OSError, match="a device or a pipe"):
            regcal.save(model, path)
    assert pipe.is_fifo()
    assert sorted(tmp_path.iterdir()) == [link, pipe]


def test_devices_are_not_replaced(model):
    """Nor is the device that swallows everything."""
    with pytest.raises(OSError, match="a device or a pipe"):
        regcal.save(model, os.devnull)


def test_folders_are_told(model, tmp_path):
    """The way out is a name in the folder."""
    with pytest.raises(IsADirectoryError, match="name a file in it"):
        regcal.save(model, tmp_path)
