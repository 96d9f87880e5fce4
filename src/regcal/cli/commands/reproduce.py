"""``regcal reproduce``: the experiments of the paper behind regcal."""

import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from regcal.cli._console import note, show

app = typer.Typer(no_args_is_help=True, help="Repeat the experiments of the paper behind regcal.")

_Folder = Annotated[Path, typer.Option("--output", "-o", metavar="FOLDER", help="Where to write.")]


@app.command()
def toy(output: _Folder = Path("regcal-toy")) -> None:
    """Draw the paper's figures on the toy mixture, with the numbers beside them.

    [bold]Example[/bold]

    regcal reproduce toy -o toy
    """
    from regcal.reproduce import reproduce_toy

    for path in reproduce_toy(output):
        note(f"Wrote {path}.")


@app.command()
def uci(
    results: Annotated[
        Path, typer.Argument(metavar="RESULTS.csv", help="File to write rows to, or go on with.")
    ] = Path("regcal-uci.csv"),
    quick: Annotated[
        bool, typer.Option("--quick", help="One repetition with fewer target values, no auto.")
    ] = False,
    jobs: Annotated[
        int, typer.Option("--jobs", "-j", help="Processes; -1 is one for each core.")
    ] = -1,
) -> None:
    """Run the paper's study on five data sets, or go on with a run that was stopped.

    It takes about an hour on two cores, and with --quick a few minutes.

    Rows are on the disk as soon as their fold is finished. Afterwards: regcal reproduce tables.

    [bold]Examples[/bold]

    regcal reproduce uci results.csv

    regcal reproduce uci results.csv --quick --jobs 2
    """
    from regcal import reproduce

    data = _noted(lambda: reproduce.load_datasets(tell=note))
    study = reproduce.QUICK if quick else reproduce.FULL
    try:
        with _bar() as progress:
            rows = reproduce.run_study(results, study, data=data, n_jobs=jobs, progress=progress)
    except KeyboardInterrupt:
        note(f"Stopped. {results} keeps the folds that were finished: the same command goes on.")
        raise
    note(f"{results} holds all {len(rows)} cells. Next: regcal reproduce tables {results}")


@app.command()
def tables(
    results: Annotated[Path, typer.Argument(metavar="RESULTS.csv", help="Rows of a study.")],
    output: _Folder = Path("regcal-study"),
) -> None:
    """Write the study's figure, its tables and what became of the paper's claims.

    [bold]Example[/bold]

    regcal reproduce tables results.csv -o study
    """
    from regcal.reproduce import read_results, write_study

    for path in write_study(read_results(results), output):
        show(str(path))


def _noted(work: Callable[[], Any]) -> Any:
    """Do something that may warn, and tell people at once."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        answer = work()
    for warning in caught:
        note(f"Note: {warning.message}")
    return answer


@contextmanager
def _bar() -> Iterator[Callable[[int, int], None] | None]:
    """Yield what shows progress and the time left, if a person is looking."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("cells"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(elapsed_when_finished=True),
    )
    # minutes pass between updates, so that a short window would know no speed
    with Progress(*columns, console=Console(stderr=True), speed_estimate_period=3600) as bar:
        key = bar.add_task("cells", total=None)
        yield lambda done, total: bar.update(key, completed=done, total=total)
