"""Commands, run as a shell runs them.

Most commands are forked from a process that has imported everything already, because importing
takes longer than the work. They have their own process, streams and exit code all the same.
"""

import json
import os
import shlex
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1", "COLUMNS": "200", "NO_COLOR": "1"}


SERVER = """
import json, os, sys, traceback
import regcal.cli.app
from regcal.cli import main

def work(job):
    os.chdir(job["folder"])
    for number, (name, flags) in enumerate(job["streams"]):
        os.dup2(os.open(name, flags, 0o600), number)
    sys.stdin, sys.stdout, sys.stderr = open(0), open(1, "w"), open(2, "w", buffering=1)
    sys.argv = ["regcal", *job["arguments"]]
    try:
        main()
    except SystemExit as end:
        return int(end.code or 0)
    except BaseException:
        traceback.print_exc()
        return 1

for line in sys.stdin:
    child = os.fork()
    if child == 0:
        code = work(json.loads(line))
        sys.stdout.flush()
        os._exit(code)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


@dataclass
class Answer:
    code: int
    out: str
    err: str


@dataclass
class Commands:
    """Run commands in a folder."""

    server: subprocess.Popen
    streams: Path
    folder: Path

    def __call__(self, line: str, *, given: bytes | None = None) -> Answer:
        if given is not None:
            (self.streams / "in").write_bytes(given)
        write = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
        streams = [(os.devnull if given is None else str(self.streams / "in"), os.O_RDONLY)]
        streams += [(str(self.streams / name), write) for name in ("out", "err")]
        job = {
            "folder": str(self.folder),
            "streams": streams,
            "arguments": shlex.split(line, comments=True),
        }
        self.server.stdin.write(json.dumps(job) + "\n")
        self.server.stdin.flush()
        code = int(self.server.stdout.readline())
        out, err = ((self.streams / name).read_text("utf-8") for name in ("out", "err"))
        return Answer(code, out, err)

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
