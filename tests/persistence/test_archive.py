"""Files are written whole, as ordinary files."""

import os
from pathlib import Path

import pytest
from cases import STANDARD, fitted_calibrator

import regcal


class Interrupted(BaseException):
    pass


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_interrupts_leave_the_old_file(step, tmp_path, monkeypatch):
    """Whenever writing stops, the old file is whole and nothing lies beside it."""
    path = tmp_path / "model.regcal"
    regcal.save(fitted_calibrator("scale", "normal", 0, STANDARD), path)
    old = path.read_bytes()

    def stop(*_):
        raise Interrupted

    if step == "fsync":
        monkeypatch.setattr(os, "fsync", stop)
    else:
        monkeypatch.setattr(Path, "replace", stop)
    with pytest.raises(Interrupted):
        regcal.save(fitted_calibrator("pit", "normal", 0, STANDARD), path)

    assert path.read_bytes() == old
    assert list(tmp_path.iterdir()) == [path]


def test_folders_in_the_way_and_missing_ones_are_told(tmp_path):
    """What the system refuses is told, and nothing is left behind."""
    model = fitted_calibrator("scale", "normal", 0, STANDARD)
    (tmp_path / "folder").mkdir()

    with pytest.raises(OSError, match="folder"):
        regcal.save(model, tmp_path / "folder")
    with pytest.raises(FileNotFoundError):
        regcal.save(model, tmp_path / "nowhere" / "model")
    with pytest.raises(FileNotFoundError, match=r"There is no file .* regcal.save wrote"):
        regcal.load(tmp_path / "nothing")
    assert list(tmp_path.iterdir()) == [tmp_path / "folder"]


@pytest.mark.skipif(os.name != "posix", reason="modes and links of POSIX")
def test_modes_and_links_are_those_of_ordinary_files(tmp_path):
    """A file can be read by whom a plain one could, and a link stays a link."""
    model = fitted_calibrator("scale", "normal", 0, STANDARD)
    plain, link, target = (tmp_path / name for name in ("plain", "link", "target"))
    plain.write_bytes(b"")
    target.write_bytes(b"")
    target.chmod(0o640)
    link.symlink_to(target)

    regcal.save(model, link)
    regcal.save(model, tmp_path / "new")

    assert link.is_symlink()
    assert target.stat().st_mode & 0o777 == 0o640
    assert (tmp_path / "new").stat().st_mode == plain.stat().st_mode
