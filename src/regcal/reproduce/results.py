"""The results of the study as a CSV file that grows row by row."""

import csv
import gzip
import io
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from regcal.reproduce.cells import Cell, Unit
from regcal.reproduce.scores import Row

HEADER = (
    "dataset",
    "base",
    "repetition",
    "fold",
    "method",
    "thresholds",
    "n_test",
    "log_score",
    "n_floored",
    "raw_log_score",
    "raw_n_floored",
    "chosen",
    "seconds",
)
_HEADER_LINE = ",".join(HEADER) + "\n"


def _as_fields(row: Row) -> list[str]:
    unit = row.cell.unit
    raw = ["", ""]
    if row.raw_log_score is not None:
        raw = [f"{row.raw_log_score:.5f}", str(row.raw_n_floored)]
    names = [unit.dataset, unit.base, str(unit.repetition), str(unit.fold)]
    scores = [str(row.n_test), f"{row.log_score:.5f}", str(row.n_floored), *raw]
    seconds = f"{row.seconds:.3f}"
    return [*names, row.cell.method, str(row.cell.thresholds), *scores, row.chosen, seconds]


def _from_fields(fields: list[str]) -> Row:
    dataset, base, repetition, fold, method, thresholds = fields[:6]
    n_test, log_score, n_floored, raw_log_score, raw_n_floored, chosen, seconds = fields[6:]
    unit = Unit(dataset, base, int(repetition), int(fold))
    return Row(
        cell=Cell(unit, method, int(thresholds)),
        n_test=int(n_test),
        log_score=float(log_score),
        n_floored=int(n_floored),
        raw_log_score=float(raw_log_score) if raw_log_score else None,
        raw_n_floored=int(raw_n_floored) if raw_n_floored else None,
        chosen=chosen,
        seconds=float(seconds),
    )


def _as_text(rows: Iterable[Row]) -> str:
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="\n").writerows(_as_fields(row) for row in rows)
    return buffer.getvalue()


def _parse(text: str, path: Path) -> dict[Cell, Row]:
    """Return rows by cell; refuse what this version did not write, and doubles."""
    header, *lines = text.splitlines() or [""]
    if header + "\n" != _HEADER_LINE:
        msg = (
            f"{path} does not begin with the columns of a study: found {header[:60]!r}. "
            "Name another file, or remove this one."
        )
        raise ValueError(msg)
    rows: dict[Cell, Row] = {}
    for number, fields in enumerate(csv.reader(lines), start=2):
        try:
            row = _from_fields(fields)
        except ValueError as error:
            msg = f"Line {number} of {path} cannot be read ({error}). Remove it and run again."
            raise ValueError(msg) from error
        if row.cell in rows:
            msg = f"Line {number} of {path} repeats the cell {row.cell.name}. Remove one of them."
            raise ValueError(msg)
        rows[row.cell] = row
    return rows


def read_results(path: str | Path) -> dict[Cell, Row]:
    """Return the rows of a file, CSV or gzipped CSV, by cell.

    A last line without its end, torn when a run was killed, is left out.

    Parameters
    ----------
    path : str or Path

    Returns
    -------
    dict from Cell to Row
    """
    path = Path(path)
    content = path.read_bytes()
    if path.suffix == ".gz":
        content = gzip.decompress(content)
    return _parse(content[: content.rfind(b"\n") + 1].decode(), path)


def write_results(path: str | Path, rows: Iterable[Row]) -> None:
    """Write rows in the order of their cells as gzipped CSV, the same bytes for the same rows."""
    text = _HEADER_LINE + _as_text(sorted(rows, key=lambda row: row.cell))
    Path(path).write_bytes(gzip.compress(text.encode(), mtime=0))


class ResultsFile:
    """A results file that this process alone appends to.

    Attributes
    ----------
    rows : dict from Cell to Row
        What the file holds.
    """

    def __init__(self, file: BinaryIO, path: Path) -> None:
        self._file = file
        content = file.read()
        whole = content[: content.rfind(b"\n") + 1]
        # the rest of a torn line would spoil the next one
        file.truncate(len(whole))
        file.seek(len(whole))
        if whole:
            self.rows = _parse(whole.decode(), path)
        else:
            self._write(_HEADER_LINE)
            self.rows = {}

    def append(self, rows: Iterable[Row]) -> None:
        """Add rows for good: they are on the disk when this returns."""
        rows = [row for row in rows if row.cell not in self.rows]
        self._write(_as_text(rows))
        self.rows.update({row.cell: row for row in rows})

    def _write(self, text: str) -> None:
        self._file.write(text.encode())
        self._file.flush()
        os.fsync(self._file.fileno())


@contextmanager
def open_results(path: str | Path) -> Iterator[ResultsFile]:
    """Open a results file to go on with it, or make it.

    Parameters
    ----------
    path : str or Path

    Yields
    ------
    ResultsFile

    Raises
    ------
    BlockingIOError
        If another run appends to the file, where the system can tell.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    with path.open("r+b") as file:
        _lock(file, path)
        yield ResultsFile(file, path)


def _lock(file: BinaryIO, path: Path) -> None:
    """Keep other runs out until the file is closed, also when this process is killed."""
    try:
        import fcntl
    except ImportError:  # pragma: no cover - not on Windows
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        msg = f"Another run is writing to {path}. Wait for it, or name another file."
        raise BlockingIOError(msg) from error
