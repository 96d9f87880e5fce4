"""``regcal info``: what a model file holds."""

from collections.abc import Sequence
from textwrap import wrap
from typing import Annotated, Any

import typer

from regcal.cli import _options as options
from regcal.cli._console import show, show_json, show_table

# A terminal has 80 columns and 24 lines.
_WIDTH, _LABEL, _MOST_LINES, _MOST_SCORES = 79, 13, 2, 8


def info(
    model: Annotated[str, typer.Argument(help="Model file.")],
    full: Annotated[
        bool, typer.Option("--full", help="Every parameter, and all that was learnt.")
    ] = False,
    json: options.Json = False,
) -> None:
    """Say what a model file holds, from what it was made, with which versions and scores.

    Nothing in the file is run.

    [bold]Examples[/bold]

    regcal info model.regcal

    regcal info model.regcal --full

    regcal info model.regcal --json
    """
    import regcal
    from regcal.cli._models import check_model_file

    check_model_file(model)
    known = regcal.file_info(model)
    if json:
        show_json(known)
        return
    show(known["summary"] if full else known["class"].rpartition(".")[2])
    for line in _overview(known):
        show(line)
    scores = known["scores"] if full else known["scores"][:_MOST_SCORES]
    if scores:
        show("")
        show_table(list(scores[0]), [_cells(score) for score in scores])
    if not full:
        left = len(known["scores"]) - len(scores)
        more = f"{left} more scores and every" if left else "Every"
        show(f"\n{more} parameter: regcal info {model} --full")


def _overview(known: dict[str, Any]) -> list[str]:
    """Return what is known as lines of a label and a value."""
    told = {name.replace("_", " "): value for name, value in known["training"].items()}
    told["fingerprint"] = known["fingerprint"]
    told["written by"] = [f"{name} {number}" for name, number in known["versions"].items()]
    told["file"] = f"format {known['format']}, {known['size']:,} bytes"
    if known["trusted"]:
        told["needs --trust"] = known["trusted"]
    return [line for name, value in told.items() for line in _labelled(name, value)]


def _labelled(name: str, value: Any) -> list[str]:
    """Return a value beside its name; of a long list as much as two lines hold."""
    parts = [str(part) for part in value] if isinstance(value, list) else [str(value)]
    lines = _wrapped(parts)
    shown = len(parts)
    while len(lines) > _MOST_LINES and shown > 1:
        shown -= 1
        lines = _wrapped([*parts[:shown], f"and {len(parts) - shown} more"])
    label = f"  {name:<{_LABEL}} "
    return [(label if k == 0 else " " * len(label)) + line for k, line in enumerate(lines or [""])]


def _wrapped(parts: Sequence[str]) -> list[str]:
    room = _WIDTH - _LABEL - 3
    return wrap(", ".join(parts), room, break_long_words=False, break_on_hyphens=False)


def _cells(score: dict[str, Any]) -> list[str]:
    return [f"{part:.4g}" if isinstance(part, float) else str(part) for part in score.values()]
