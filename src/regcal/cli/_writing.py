"""Tables out: CSV and Parquet, complete or not at all.

A file is written beside its place and moved there at the end, so that an error or an interrupt
leaves nothing behind; see `regcal.persistence.placing`.
"""

import csv
import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet

from regcal.cli._errors import InputError
from regcal.cli._reading import Layout
from regcal.persistence.placing import check_place, is_stream, placed

_PARQUET = (".parquet", ".pq")
_TEXT = (".csv", ".tsv", ".txt")
_COMPRESSED = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd"}


@contextmanager
def complete_file(path: str) -> Iterator[Path]:
    """Give a path to write to, which becomes `path` when all went well; a device is written to."""
    _check_is_no_stream(path)
    target = Path(os.path.realpath(path))
    if is_stream(path) or (target.exists() and not target.is_file() and not target.is_dir()):
        yield Path(path)
        return
    check_file_can_be_written(path)
    with placed(path) as part:
        yield part


def check_file_can_be_written(path: str) -> None:
    """Refuse a folder, a device and a folder that does not exist, before work is done for it."""
    _check_is_no_stream(path)
    try:
        check_place(path)
    except (OSError, ValueError) as error:
        msg = f"Cannot write to {path}: {error}"
        raise InputError(msg) from error


def _check_is_no_stream(path: str) -> None:
    if path == "-":
        msg = (
            "- stands for standard output, and only tables are written there. Name a file; one "
            "that is called - is written ./-."
        )
        raise InputError(msg)


def check_nothing_is_overwritten(
    written: dict[str, str | None], read: dict[str, str | None]
) -> None:
    """Refuse to write to a file that the same command reads, or to one file twice.

    Parameters
    ----------
    written, read : dict
        From what a file is to the command to its path; None is no file, and ``-`` that which
        standard input comes from.
    """
    taken: dict[str, str] = {}
    for what, path in (read | written).items():
        file = _regular_file(path, what in read)
        other = what if file is None else taken.setdefault(file, what)
        if other != what and what in written:
            msg = f"{what} and {other} are the same file, {path}. Name another for {what}."
            raise InputError(msg)


def _regular_file(path: str | None, read: bool) -> str | None:
    """Return where a path leads, unless a device or a pipe is there."""
    if path == "-":
        path = "/dev/stdin" if read else None
    if path is None or (Path(path).exists() and not Path(path).is_file()):
        return None
    return os.path.realpath(path)


class CsvWriter:
    """Writes columns as CSV, with the separators of the table they come from."""

    def __init__(self, sink: Any, names: list[str], delimiter: str, decimal: str) -> None:
        self._sink = sink
        self._delimiter = delimiter
        self._decimal = decimal
        line = io.StringIO()
        csv.writer(line, delimiter=delimiter, lineterminator="\n").writerow(names)
        self._header = line.getvalue().encode("utf-8")

    def write(self, columns: list[pa.Array]) -> None:
        """Write rows, below the names of columns; cells are quoted where that is needed."""
        self._sink.write(self._header)
        self._header = b""  # once; before there are rows, nothing is written that would be kept
        if self._decimal != ".":
            columns = [self._with_decimal(column) for column in columns]
        batch = pa.RecordBatch.from_arrays(columns, [str(k) for k in range(len(columns))])
        try:
            self._sink.write(self._unquoted(batch))
        except pa.ArrowInvalid:
            # pyarrow would quote all texts, the empty ones too
            cells = [self._quoted(column) for column in columns]
            lines = pc.binary_join_element_wise(*cells, self._delimiter)
            self._sink.write("".join(f"{line}\n" for line in lines.to_pylist()).encode("utf-8"))

    def _unquoted(self, batch: pa.RecordBatch) -> pa.Buffer:
        buffer = pa.BufferOutputStream()
        options = pyarrow.csv.WriteOptions(
            include_header=False, delimiter=self._delimiter, quoting_style="none"
        )
        pyarrow.csv.write_csv(batch, buffer, options)
        return buffer.getvalue()

    def _quoted(self, column: pa.Array) -> pa.Array:
        """Return cells as texts, in double quotes where a sign in them has a meaning in CSV."""
        texts = column.cast(pa.string()).fill_null("")
        needed = pc.match_substring_regex(texts, f'[{self._delimiter}"\r\n]')
        doubled = pc.replace_substring(texts, '"', '""')
        return pc.if_else(needed, pc.binary_join_element_wise('"', doubled, '"', ""), texts)

    def _with_decimal(self, column: pa.Array) -> pa.Array:
        if not pa.types.is_floating(column.type):
            return column
        return pc.replace_substring(column.cast(pa.string()), ".", self._decimal)

    def close(self) -> None:
        """Write what is left."""
        self._sink.flush()


class ParquetWriter:
    """Writes columns as Parquet; texts of a CSV file become numbers where all of them are."""

    def __init__(self, path: str, names: list[str], from_text: bool) -> None:
        self._path = path
        self._names = names
        self._from_text = from_text
        self._writer: Any = None
        self._rows = 0

    def write(self, columns: list[pa.Array]) -> None:
        """Write rows with the types of the first ones."""
        if self._writer is None:
            columns = [_typed(column) if self._from_text else column for column in columns]
            fields = [
                pa.field(name, column.type)
                for name, column in zip(self._names, columns, strict=True)
            ]
            self._schema = pa.schema(fields)
            self._writer = pyarrow.parquet.ParquetWriter(self._path, self._schema)
        columns = [
            self._cast(column, field) for column, field in zip(columns, self._schema, strict=True)
        ]
        self._writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=self._schema))
        self._rows += len(columns[0])

    def _cast(self, column: pa.Array, field: pa.Field) -> pa.Array:
        if column.type == field.type:
            return column
        try:
            return _without_blanks(column).cast(field.type)
        except pa.ArrowInvalid as error:
            msg = (
                f"Column {field.name!r} began with values of type {field.type}, but after row "
                f"{self._rows} there are others ({error}). Write CSV, or leave the column out by "
                "--keep."
            )
            raise InputError(msg) from error

    def close(self) -> None:
        """Write what is left."""
        if self._writer is not None:
            self._writer.close()


def _without_blanks(texts: pa.Array) -> pa.Array:
    return pc.if_else(pc.equal(texts, ""), pa.scalar(None, texts.type), texts)


def _typed(column: pa.Array) -> pa.Array:
    """Return texts as whole numbers or numbers, if all are; 007 stays a text."""
    if not pa.types.is_string(column.type):
        return column
    if pc.any(pc.match_substring_regex(column, r"^-?0\d")).as_py():
        return column
    for kind in (pa.int64(), pa.float64()):
        try:
            return _without_blanks(column).cast(kind)
        except pa.ArrowInvalid:
            continue
    return column


@contextmanager
def open_output(path: str, names: list[str], layout: Layout) -> Iterator[Any]:
    """Give a writer for CSV or Parquet, by the ending of `path`; ``-`` is standard output.

    Parameters
    ----------
    path : str
    names : list of str
        Column names.
    layout : Layout
        Of the table that the rows come from: CSV is written with the same separators.
    """
    if path == "-":
        writer = CsvWriter(sys.stdout.buffer, names, layout.delimiter or ",", layout.decimal)
        yield writer
        writer.close()
        return
    compression = _COMPRESSED.get(Path(path).suffix.lower())
    ending = Path(path).suffixes[-2:][0].lower() if compression else Path(path).suffix.lower()
    if ending not in (*_PARQUET, *_TEXT, "") or (compression and ending in _PARQUET):
        msg = f"Cannot write {path}: the ending {ending!r} is not known. Use .csv or .parquet."
        raise InputError(msg)
    delimiter = "\t" if ending == ".tsv" else layout.delimiter or ","
    with complete_file(path) as part:
        if ending in _PARQUET:
            columns = ParquetWriter(str(part), names, from_text=layout.delimiter is not None)
            try:
                yield columns
            finally:
                columns.close()
            return
        with pa.output_stream(str(part), compression=compression) as sink:
            yield CsvWriter(sink, names, delimiter, layout.decimal)


def as_column(values: np.ndarray) -> pa.Array:
    """Return numbers as a column; what is not a number becomes an empty cell."""
    return pa.array(values, from_pandas=True)
