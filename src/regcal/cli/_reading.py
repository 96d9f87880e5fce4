"""Tables in: CSV and Parquet files, or standard input, in batches of bounded size.

Cells of a CSV file stay the texts they are until a column is asked for as numbers, so that columns
that are only passed on are written as they were read.
"""

import csv
import io
import re
import reprlib
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet

from regcal.cli._errors import InputError, in_words, likeliest, unknown_name

# Bytes of a CSV file, and rows of a Parquet file, that are held at a time.
_BLOCK_BYTES = 2**22
_BLOCK_ROWS = 2**16
_HEAD_BYTES = 2**20

_DELIMITERS = ",;\t|"

# Lines end as CSV readers see it; other signs that Python calls ends of lines belong to the text.
_END_OF_LINE = re.compile(r"\r\n|\r|\n")

# The first line, which goes on within double quotes; nothing is tried twice.
_HEADER = re.compile(r'(?>(?:^|(?<=[,;\t|]))"(?:[^"]|"")*+"|[^\r\n])*+')
_MISSING = pa.array(["", "NA", "N/A", "n/a", "#N/A", "NaN", "nan", "null", "NULL", "None"])

# Truth values in small letters.
_TRUE, _FALSE = pa.array(["true", "1", "1.0"]), pa.array(["false", "0", "0.0"])


@dataclass(frozen=True)
class Layout:
    """How a table is written down: where it comes from, its columns and its separators.

    A delimiter of None is a file without any, such as Parquet.
    """

    label: str
    names: tuple[str, ...]
    delimiter: str | None = None
    decimal: str = "."

    def position(self, name: str, option: str = "") -> int:
        """Return the number of a column, or say what is wrong with its name, typed as an option."""
        count = self.names.count(name)
        if count == 1:
            return self.names.index(name)
        where = f"{option}: {self.label}" if option else self.label
        if count == 0:
            raise InputError(unknown_name(name, self.names, f"{where} has no column"))
        msg = f"{where} has {count} columns named {name!r}. Rename all but one."
        raise InputError(msg)

    def repeated_names(self) -> list[str]:
        """Return the names that more than one column has."""
        return [name for name, count in Counter(self.names).items() if count > 1]


@dataclass(frozen=True)
class Batch:
    """Neighbouring rows of a table; `first_row` counts from 1, the row after the header."""

    layout: Layout
    columns: list[pa.Array]
    first_row: int

    def __len__(self) -> int:
        return len(self.columns[0])

    def column(self, name: str) -> pa.Array:
        """Return a column as it was read."""
        return self.columns[self.layout.position(name)]


def as_numbers(column: pa.Array, layout: Layout, name: str, first_row: int = 1) -> np.ndarray:
    """Return an array of Arrow as floats, NaN where it is missing."""
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        column = _parsed(column, layout, name, first_row)
    try:
        numbers = column.cast(pa.float64(), safe=False)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        msg = f"{layout.label}: column {name!r} must hold numbers, but is of type {column.type}."
        raise InputError(msg) from error
    return numbers.to_numpy(zero_copy_only=False)


def as_censored(column: pa.Array, layout: Layout, name: str, first_row: int = 1) -> np.ndarray:
    """Return truth values as 1 and 0, NaN where they are missing."""
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        texts = pc.utf8_trim_whitespace(column.fill_null(""))
        missing = pc.is_in(texts, value_set=_MISSING.cast(texts.type))
        small = pc.utf8_lower(texts)
        true, false = (pc.is_in(small, value_set=one.cast(texts.type)) for one in (_TRUE, _FALSE))
        odd = pc.invert(pc.or_(missing, pc.or_(true, false)))
        flags = pc.if_else(missing, pa.scalar(None, pa.bool_()), true)
        numbers = as_numbers(flags, layout, name, first_row)
    else:
        numbers = as_numbers(column, layout, name, first_row)
        odd = pa.array(~(np.isin(numbers, (0.0, 1.0)) | np.isnan(numbers)))
    if pc.any(odd).as_py():
        row = pc.index(odd, True).as_py()
        msg = (
            f"{layout.label}: column {name!r} (--censored) must hold True or 1 where an outcome is "
            "only known to be at least its value, and False or 0 where it is known, but row "
            f"{first_row + row} holds {column[row].as_py()!r}."
        )
        raise InputError(msg)
    return numbers


def _parsed(texts: pa.Array, layout: Layout, name: str, first_row: int) -> pa.Array:
    """Return texts as numbers: first as they are, then without spaces and missing values."""
    try:
        return texts.cast(pa.float64())
    except pa.ArrowInvalid:
        pass
    texts = pc.utf8_trim_whitespace(texts)
    missing = pc.is_in(texts, value_set=_MISSING.cast(texts.type))
    plain = pc.if_else(missing, pa.scalar(None, texts.type), texts)
    if layout.decimal == ",":
        plain = pc.replace_substring(plain, ",", ".")
    try:
        return plain.cast(pa.float64())
    except pa.ArrowInvalid:
        row, text = _first_that_is_no_number(plain)
        msg = (
            f"{layout.label}: column {name!r} must hold numbers, but row {first_row + row} holds "
            f"{reprlib.repr(text)}. Correct that value, leave it empty if it is unknown, or choose "
            "another column."
        )
        raise InputError(msg) from None


def _first_that_is_no_number(texts: pa.Array) -> tuple[int, str]:
    for row, text in enumerate(texts.to_pylist()):
        try:
            pa.scalar(text).cast(pa.float64())
        except pa.ArrowInvalid:
            return row, text
    msg = "All texts are numbers."
    raise AssertionError(msg)


class Table(Protocol):
    """A table that is read once, from its start to its end."""

    layout: Layout

    def batches(self) -> Iterator[Batch]:
        """Yield the rows, a bounded number at a time."""
        ...

    def share_read(self) -> float | None:
        """Return how much has been read, between 0 and 1, if that is known."""
        ...


def open_table(path: str) -> Table:
    """Open a CSV or Parquet file, told apart by their content; ``-`` is standard input."""
    label = "standard input" if path == "-" else path
    raw = _standard_input() if path == "-" else _opened(path)
    head = raw.read(_HEAD_BYTES)
    if not head:
        msg = f"{label} is empty. A table needs a line with column names, and rows below it."
        raise InputError(msg)
    if head[:4] == b"PAR1":
        if path == "-":
            msg = "Parquet cannot be read from standard input. Name the file."
            raise InputError(msg)
        return _ParquetTable(path)
    if head[:4] == b"PK\x03\x04" or b"\0" in head:
        msg = f"{label} is neither CSV text nor Parquet. Save the table as CSV in UTF-8."
        raise InputError(msg)
    if path == "-":
        return _CsvTable(_layout_of(label, head), pa.PythonFile(_Rejoined(head, raw), mode="r"))
    # read without Python: a thread that waits for it when the process ends would never return
    raw.close()
    return _CsvTable(_layout_of(label, head), _opened(path), Path(path).stat().st_size)


def _standard_input() -> Any:
    if sys.stdin.isatty():
        msg = "Standard input is a terminal. Pipe a table into regcal, or name a file."
        raise InputError(msg)
    return pa.PythonFile(sys.stdin.buffer, mode="r")


def _opened(path: str) -> Any:
    file = Path(path)
    if file.is_dir():
        msg = f"{path} is a folder. Name a CSV or Parquet file."
        raise InputError(msg)
    if not file.exists():
        raise InputError(_no_file(file))
    if not file.is_file():
        msg = (
            f"{path} is a pipe or a device. Name a file, or pass - and pipe the table into regcal."
        )
        raise InputError(msg)
    return pa.input_stream(path, compression="detect")


def _no_file(file: Path) -> str:
    """Return what is there instead of a file that is not."""
    if not file.parent.is_dir():
        return (
            f"There is no folder {str(file.parent)!r} for {str(file)!r}. Name a file that exists."
        )
    beside = sorted(one.name for one in file.parent.iterdir())
    where = "this folder" if file.parent == Path() else str(file.parent)
    close = likeliest(file.name, beside)
    hint = f"Did you mean {close!r}?" if close else f"There are: {in_words(beside) or 'none'}."
    return f"There is no file {file.name!r} in {where}. {hint}"


class _Rejoined:
    """A stream of which the start has been read already."""

    def __init__(self, head: bytes, rest: Any) -> None:
        self._head = head
        self._rest = rest
        self.closed = False

    def read(self, size: int = -1) -> bytes:
        if not self._head:
            return self._rest.read() if size < 0 else self._rest.read(size)
        if size < 0:
            size = len(self._head)
        part, self._head = self._head[:size], self._head[size:]
        return part

    def close(self) -> None:
        self._rest.close()
        self.closed = True


class _CsvTable:
    def __init__(self, layout: Layout, stream: Any, size: int | None = None) -> None:
        self.layout = layout
        self._stream = stream
        self._size = size

    def share_read(self) -> float | None:
        """Return how much has been read; unknown for compressed files and pipes."""
        try:
            return self._stream.tell() / self._size if self._size else None
        except (OSError, pa.ArrowException):
            return None

    def batches(self) -> Iterator[Batch]:
        """Yield the rows as texts."""
        first_row = 1
        try:
            for batch in self._open():
                if len(batch):
                    yield Batch(self.layout, batch.columns, first_row)
                first_row += len(batch)
        except pa.ArrowInvalid as error:
            raise InputError(self._refusal(error, first_row)) from error

    def _open(self) -> Any:
        keys = [str(k) for k in range(len(self.layout.names))]
        return pyarrow.csv.open_csv(
            self._stream,
            read_options=pyarrow.csv.ReadOptions(
                column_names=keys, skip_rows_after_names=1, block_size=_BLOCK_BYTES
            ),
            parse_options=pyarrow.csv.ParseOptions(
                delimiter=self.layout.delimiter, newlines_in_values=True
            ),
            convert_options=pyarrow.csv.ConvertOptions(
                column_types=dict.fromkeys(keys, pa.string()), strings_can_be_null=False
            ),
        )

    def _refusal(self, error: Exception, first_row: int) -> str:
        text = str(error)
        found = re.search(r"Row #(\d+): Expected (\d+) columns, got (\d+)", text)
        if found:
            row, expected, got = map(int, found.groups())
            return (
                f"{self.layout.label}: row {row - 1} has {got} values, but there are {expected} "
                "columns. Correct that row; a text that holds the separator "
                f"{self.layout.delimiter!r} has to be in double quotes."
            )
        if "UTF8" in text:
            return (
                f"{self.layout.label}: after row {first_row - 1} there is a character that is not "
                "UTF-8. Save the file as CSV in UTF-8."
            )
        if "straddling" in text:
            return (
                f"{self.layout.label}: row {first_row} does not end within {_BLOCK_BYTES} bytes. "
                "A double quote there is never closed; close it, or take it away."
            )
        return f"{self.layout.label} cannot be read as CSV: {text}."


def _layout_of(label: str, head: bytes) -> Layout:
    """Return the columns and separators, from the first lines."""
    try:
        text = head.decode("utf-8-sig", errors="strict" if len(head) < _HEAD_BYTES else "ignore")
    except UnicodeDecodeError as error:
        msg = f"{label} is not UTF-8 (byte {error.start}). Save the file as CSV in UTF-8."
        raise InputError(msg) from error
    header = _HEADER.match(text).group()  # type: ignore[union-attr]
    if len(header) == len(text):
        what = "but no rows" if len(head) < _HEAD_BYTES else f"of more than {_HEAD_BYTES} bytes"
        msg = f"{label} has column names {what}. A table needs a line of names, and rows below it."
        raise InputError(msg)
    unquoted = re.sub(r'"[^"]*"', "", header)
    delimiter = max(_DELIMITERS, key=unquoted.count)
    names = _names_in(header, delimiter, label)
    lines = _END_OF_LINE.split(text[len(header) :])
    comma = re.compile(rf"(^|{re.escape(delimiter)})\s*-?\d+,\d+\s*($|{re.escape(delimiter)})")
    decimal = "," if delimiter != "," and any(map(comma.search, lines)) else "."
    return Layout(label, tuple(name.strip() for name in names), delimiter, decimal)


def _names_in(header: str, delimiter: str, label: str) -> list[str]:
    lines = io.StringIO(f"{header}\nnext line", newline="")
    try:
        names, *following = csv.reader(lines, delimiter=delimiter)
    except csv.Error as error:
        msg = f"{label}: its column names cannot be read ({error}). Is it a table?"
        raise InputError(msg) from error
    if not following:
        msg = (
            f"{label}: a double quote among the column names is never closed. The first line is "
            f"{reprlib.repr(header)}. Close it, or take it away."
        )
        raise InputError(msg)
    if not any(name.strip() for name in names):
        msg = f"{label} has no column names: its first line is blank."
        raise InputError(msg)
    return names


class _ParquetTable:
    def __init__(self, path: str) -> None:
        try:
            self._file = pyarrow.parquet.ParquetFile(path)
        except (pa.ArrowException, OSError) as error:
            msg = f"{path} is a damaged Parquet file: {error}."
            raise InputError(msg) from error
        self.layout = Layout(path, tuple(self._file.schema_arrow.names))
        self._rows_read = 0

    def share_read(self) -> float | None:
        """Return how many of the rows have been read."""
        return self._rows_read / max(1, self._file.metadata.num_rows)

    def batches(self) -> Iterator[Batch]:
        """Yield the rows with their types."""
        try:
            for batch in self._file.iter_batches(batch_size=_BLOCK_ROWS):
                if len(batch):
                    yield Batch(self.layout, batch.columns, self._rows_read + 1)
                self._rows_read += len(batch)
        except (pa.ArrowException, OSError) as error:
            msg = f"{self.layout.label} is a damaged Parquet file: {error}."
            raise InputError(msg) from error


def read_columns(table: Table, names: list[str]) -> dict[str, pa.Array]:
    """Return some columns of all rows; a table without rows is refused."""
    for name in names:
        table.layout.position(name)
    parts: dict[str, list[pa.Array]] = {name: [] for name in names}
    for batch in table.batches():
        for name in names:
            parts[name].append(batch.column(name))
    if not next(iter(parts.values())):
        msg = f"{table.layout.label} has column names but no rows."
        raise InputError(msg)
    return {name: _joined(columns) for name, columns in parts.items()}


def _joined(columns: list[pa.Array]) -> pa.Array:
    joined = pa.chunked_array(columns)
    if pa.types.is_dictionary(joined.type):
        joined = joined.cast(joined.type.value_type)
    if pa.types.is_string(joined.type):
        joined = joined.cast(pa.large_string())
    return joined.combine_chunks()
