"""``regcal info``: what a model file holds."""

from typing import Annotated, Any

import typer

import regcal
from regcal.cli import _options as options
from regcal.cli._console import show, show_json, show_table
from regcal.cli._models import check_model_file


def info(
    model: Annotated[str, typer.Argument(help="Model file.")],
    json: options.Json = False,
) -> None:
    """Say what a model file holds, from what it was made, with which versions and scores.

    Nothing in the file is run.

    [bold]Examples[/bold]

    regcal info model.regcal

    regcal info model.regcal --json
    """
    check_model_file(model)
    known = regcal.file_info(model)
    if json:
        show_json(known)
        return
    show(known["summary"])
    versions = ", ".join(f"{name} {number}" for name, number in known["versions"].items())
    show(f"\nformat {known['format']}, {known['size']:,} bytes, written by {versions}")
    if known["trusted"]:
        show(f"needs --trust: {', '.join(known['trusted'])}")
    if known["scores"]:
        show("")
        show_table(list(known["scores"][0]), [_cells(score) for score in known["scores"]])


def _cells(score: dict[str, Any]) -> list[str]:
    return [f"{part:.4g}" if isinstance(part, float) else str(part) for part in score.values()]
