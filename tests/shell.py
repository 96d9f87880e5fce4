"""Commands, run as a shell runs them, but in this process: importing takes longer than the work.

Signals, pipes and the start are tested on processes of their own, in ``cli/test_app.py``.
"""

import contextlib
import io
import os
import shlex
import signal
import sys
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import pytest

from regcal.cli import main

SETTINGS = {"OMP_NUM_THREADS": "1", "COLUMNS": "200", "NO_COLOR": "1"}
ENVIRONMENT = {**os.environ, **SETTINGS}


@dataclass
class Answer:
    code: int
    out: str
    err: str


def run_regcal(arguments: list[str], folder: Path, given: bytes = b"") -> Answer:
    """Run our own command in a folder, and leave this process as it was."""
    streams = [io.TextIOWrapper(io.BytesIO(data), encoding="utf-8") for data in (given, b"", b"")]
    with contextlib.ExitStack() as after, pytest.MonkeyPatch.context() as patch:
        after.callback(signal.signal, signal.SIGTERM, signal.getsignal(signal.SIGTERM))
        after.callback(_forget, set(sys.modules), folder)
        patch.chdir(folder)
        patch.setattr(sys, "path", [*sys.path])
        patch.setattr(sys, "argv", ["regcal", *arguments])
        for name, stream in zip(("stdin", "stdout", "stderr"), streams, strict=True):
            patch.setattr(sys, name, stream)
        for name, value in SETTINGS.items():
            patch.setenv(name, value)
        with pytest.raises(SystemExit) as end:
            main()
    for stream in streams[1:]:
        stream.flush()
    out, err = (stream.buffer.getvalue().decode("utf-8") for stream in streams[1:])
    return Answer(int(end.value.code or 0), out, err)


def _forget(known: set[str], folder: Path) -> None:
    """Forget modules of the folder: another test may have others of the same name in its own."""
    for name in set(sys.modules) - known:
        file = getattr(sys.modules[name], "__file__", None)
        if file is not None and Path(file).is_relative_to(folder):
            del sys.modules[name]


@dataclass
class Commands:
    """Run commands in a folder."""

    folder: Path

    def __call__(self, line: str, *, given: bytes = b"") -> Answer:
        return run_regcal(shlex.split(line, comments=True), self.folder, given)

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


PREDICTIONS = "--target strength --mean mean --std std"
CALIBRATE = f"calibrate held_out.csv {PREDICTIONS} --calibrator scale"
SMALL = "id,mu,sigma,y\na,1.0,0.5,1.2\nb,2.0,0.5,2.9\nc,3.0,1.0,2.1\nd,4.0,1.0,6.0\n"
