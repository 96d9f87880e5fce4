"""What people and programs are shown: notes, tables, progress and JSON.

Notes and progress go to standard error, results to standard output.
"""

import json
import math
import sys
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, is_dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from regcal.cli._reading import Batch, Table

_WIDTH_OF_FILES = 120


def note(text: str) -> None:
    """Tell people something that is not a result."""
    sys.stderr.write(text + "\n")


def show(text: str) -> None:
    """Write a result for people."""
    sys.stdout.write(text + "\n")


def show_json(value: Any) -> None:
    """Write a result for programs; what is not finite becomes null."""
    sys.stdout.write(json.dumps(_plain(value), indent=2, ensure_ascii=False) + "\n")


def _plain(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        value = asdict(value)
    if isinstance(value, dict):
        return {str(key): _plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    if hasattr(value, "item"):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value


def show_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Write a table as a result."""
    _print_table(header, rows, stderr=False)


def note_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Tell people a table that is not a result."""
    _print_table(header, rows, stderr=True)


def _print_table(header: Sequence[str], rows: Iterable[Sequence[str]], *, stderr: bool) -> None:
    """Print the first column to the left and the others to the right."""
    from rich.console import Console
    from rich.table import Table

    table = Table(*header, box=None, pad_edge=False, header_style="bold")
    for column in table.columns[1:]:
        column.justify = "right"
    for row in rows:
        table.add_row(*row)
    stream = sys.stderr if stderr else sys.stdout
    Console(file=stream, width=None if stream.isatty() else _WIDTH_OF_FILES).print(table)


def with_progress(table: "Table", task: str) -> Iterator["Batch"]:
    """Yield the batches of a table, with a bar if a person is looking."""
    if not sys.stderr.isatty():
        yield from table.batches()
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    rows = 0
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[rows]:,} rows"),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    )
    with bar:
        key = bar.add_task(task, total=None, rows=0)
        for batch in table.batches():
            yield batch
            rows += len(batch)
            share = table.share_read()
            bar.update(key, rows=rows, completed=share or 0, total=None if share is None else 1)


@contextmanager
def warnings_as_notes() -> Iterator[None]:
    """Show each different warning of libraries as one line."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        for addressed_to_developers in (DeprecationWarning, FutureWarning):
            warnings.simplefilter("ignore", addressed_to_developers)
        try:
            yield
        finally:
            # commands end by an exception also when all went well
            for text in dict.fromkeys(_texts(caught)):
                note(f"Note: {text}")


def _texts(caught: list[warnings.WarningMessage]) -> Iterator[str]:
    """Yield warnings in one line each, but for what `note_support` says with its own way out."""
    if caught:
        from regcal.calibrators import RoundedOutcomesWarning  # not before there is one

        for one in caught:
            if not issubclass(one.category, RoundedOutcomesWarning):
                yield " ".join(str(one.message).split())
