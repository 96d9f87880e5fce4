"""`save` replaces regular files only, and leaves nothing beside them."""

import os
from functools import partial
from pathlib import Path

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


def test_streams_are_not_replaced(model, tmp_path):
    """Whatever is behind them, a file or a pipe, and by whatever name."""
    read, write = os.pipe()
    with (tmp_path / "file").open("w") as file:
        (tmp_path / "link").symlink_to(f"/dev/fd/{file.fileno()}")
        behind = [write, file.fileno()]
        names = [f"{folder}/{n}" for folder in ("/dev/fd", "/proc/self/fd") for n in behind]
        for path in [tmp_path / "link", "/dev/stdout", "/dev/stdin", *names]:
            with pytest.raises(OSError, match="a device or a pipe"):
                regcal.save(model, path)
    os.close(read), os.close(write)
    assert (tmp_path / "file").read_bytes() == b""


def test_links_in_a_circle_are_kept(model, tmp_path):
    """They lead to no file that could be replaced."""
    one, other = tmp_path / "one", tmp_path / "other"
    one.symlink_to(other)
    other.symlink_to(one)

    with pytest.raises(OSError, match="leads back to itself"):
        regcal.save(model, one)
    assert one.is_symlink()


def test_links_to_files_stay_links(model, tmp_path):
    """The file behind a link is replaced, also behind several, and one that is not there yet."""
    (tmp_path / "one").symlink_to("other")
    (tmp_path / "other").symlink_to(tmp_path / "file")

    for _ in range(2):
        regcal.save(model, tmp_path / "one")
    assert (tmp_path / "one").is_symlink()
    assert regcal.load(tmp_path / "file").factor_ == model.factor_


@pytest.mark.parametrize(
    ("path", "error", "match"),
    [
        (b"model.regcal", TypeError, r"os\.fsdecode"),
        (None, TypeError, "must be a text or a pathlib.Path"),
        (1, TypeError, "must be a text or a pathlib.Path"),
        ("model\0.regcal", ValueError, "holds a NUL"),
    ],
    ids=["bytes", "nothing", "a number", "NUL"],
)
def test_odd_paths_are_told(path, error, match, model):
    """The same for everything that takes a path."""
    for use in (partial(regcal.save, model), regcal.load, regcal.file_info):
        with pytest.raises(error, match=match):
            use(path)


@pytest.mark.parametrize("name", ["/dev/zero", "/dev/random", "pipe", "link", "."])
@pytest.mark.parametrize("read", [regcal.load, regcal.file_info])
def test_only_regular_files_are_read(name, read, tmp_path, monkeypatch):
    """Others have no end, or are folders."""
    monkeypatch.chdir(tmp_path)
    os.mkfifo("pipe")
    Path("link").symlink_to("pipe")
    what = "a folder" if name == "." else "a device or a pipe"

    with pytest.raises(regcal.FileError, match=f"{name} is refused: it is {what}"):
        read(name)


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="files of Linux")
def test_files_of_the_system_are_read_up_to_their_size():
    """They claim to be empty, and some never end."""
    with pytest.raises(regcal.FileError, match="not a regcal file but empty"):
        regcal.load("/proc/self/status")


def test_folders_are_told(model, tmp_path):
    """The way out is a name in the folder."""
    with pytest.raises(IsADirectoryError, match="name a file in it"):
        regcal.save(model, tmp_path)
