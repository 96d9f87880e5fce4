"""``regcal demo``: see it work, and get tables to try it on."""

from pathlib import Path
from typing import Annotated

import typer

from regcal.cli import _options as options
from regcal.cli._console import note, show, show_json
from regcal.cli._errors import InputError


def demo(
    report: Annotated[
        str | None, typer.Option(metavar="FOLDER", help="Also write report.html to this folder.")
    ] = None,
    files: Annotated[
        str | None,
        typer.Option(metavar="FOLDER", help="Only write tables to try regcal on to this folder."),
    ] = None,
    json: options.Json = False,
) -> None:
    """Calibrate a model on real data and show what changed, or get the data to do so yourself.

    [bold]Examples[/bold]

    regcal demo

    regcal demo --files regcal-demo
    """
    from regcal.demo import run_demo, write_tables

    for folder in (report, files):
        if folder is not None and Path(folder).exists() and not Path(folder).is_dir():
            msg = f"{folder} is a file. Name a folder."
            raise InputError(msg)
    if files is None:
        text = run_demo(report)
        show_json({"text": text}) if json else show(text)
        return
    written = write_tables(files)
    if json:
        show_json({"files": [str(path) for path in written]})
        return
    for path in written:
        note(f"Wrote {path}.")
