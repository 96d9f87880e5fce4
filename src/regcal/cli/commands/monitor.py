"""``regcal monitor``: say when predictions in a growing table stop being calibrated."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

import regcal
from regcal.cli import _options as options
from regcal.cli._console import note, show, show_json
from regcal.cli._errors import InputError
from regcal.cli._models import load_model, model_for_table
from regcal.cli._outcomes import OutcomeOptions
from regcal.cli._predictions import prediction_columns
from regcal.cli._reading import Table, open_table
from regcal.cli._rows import Columns, RowReader, distributions
from regcal.cli._writing import check_file_can_be_written, check_nothing_is_overwritten
from regcal.online import CalibrationMonitor
from regcal.tables import TableCalibrator, outcome_columns

# The exit code while there is an alarm.
ALARM = 3


def monitor(
    data: Annotated[str, typer.Argument(help="Table of predictions with outcomes, oldest first.")],
    target: options.TargetOfModel = None,
    model: Annotated[
        str | None, typer.Option(help="Model file: watch its calibrated predictions.")
    ] = None,
    state: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="What is known so far: read if it exists, and written. Only rows that are new in "
            "the table are looked at.",
        ),
    ] = None,
    reference: Annotated[
        str | None,
        typer.Option(
            metavar="TABLE",
            help="Rows with outcomes, of the same columns, that neither model nor calibrator has "
            "seen: later rows are compared with them.",
        ),
    ] = None,
    alpha: Annotated[
        float | None, typer.Option(help="Probability of a false alarm over all time; 0.05.")
    ] = None,
    censored: options.Censored = None,
    lower: options.Lower = None,
    upper: options.Upper = None,
    mean: options.Mean = None,
    std: options.Std = None,
    quantiles: options.InputQuantiles = None,
    samples: options.Samples = None,
    trust: options.Trust = None,
    skip_missing: options.SkipMissing = False,
    json: options.Json = False,
) -> None:
    """Say when and how predictions stop being calibrated, in a table that grows.

    Rows are looked at up to the first whose outcome is missing; the next time, from there on. With
    an alarm, the exit code is 3.

    [bold]Examples[/bold]

    regcal monitor log.csv --target y --mean mu --std sigma --state watch.regcal

    regcal monitor log.csv --target y --model model.regcal --reference held_out.csv --json
    """
    check_nothing_is_overwritten({"--state": state}, {"DATA": data, "--reference": reference})
    if state is not None:
        check_file_can_be_written(state)
    outcomes, named = (
        OutcomeOptions(target, censored, lower, upper),
        (mean, std, quantiles, samples),
    )
    loaded = None if model is None else load_model(model, trust)

    def watched(table: Table) -> Watched:
        return _watched(table, loaded, outcomes, named, skip_missing)

    own = _monitor(state, alpha, reference, watched)
    before = own.n_rows_seen_ if hasattr(own, "bets_") else 0
    for pit in watched(open_table(data)).pit_after(before):
        own.update(pit)
    rows = own.n_rows_seen_ if hasattr(own, "bets_") else 0
    if state is not None and rows:
        regcal.save(own, state)
    _tell(own, rows, rows - before, json)
    if rows and own.alarm_ is not None:
        raise typer.Exit(ALARM)


@dataclass
class Watched:
    """Rows of a table with predictions and outcomes."""

    table: Table
    reader: RowReader
    predict: Callable[[Columns], regcal.Distribution]

    def pit_after(self, n_rows: int) -> "list[np.ndarray]":
        """Return PIT values of the rows after the first so many, NaN for those left out."""
        parts, end = [], 0
        patient = not self.reader.skip_missing
        self.reader.skip_missing = True
        for batch in self.table.batches():
            first, end = end, end + len(batch)
            if end <= n_rows:
                continue
            columns, usable = self.reader.of_batch(batch)
            pit = np.full(len(batch), np.nan)
            if usable.any():
                outcomes = self.reader.outcomes
                assert outcomes is not None
                pit[usable] = regcal.pit(outcomes(columns), self.predict(columns), [0, first])
            new = max(n_rows - first, 0)
            missing = np.flatnonzero(~usable[new:])
            if patient and len(missing):
                parts.append(pit[new : new + missing[0]])
                label, row = self.table.layout.label, first + new + missing[0] + 1
                note(f"Note: {label}: row {row} has missing values; it is waited for.")
                return parts
            parts.append(pit[new:])
        if end < n_rows:
            msg = (
                f"{self.table.layout.label} has {end} rows, and {n_rows} have been looked at. Pass "
                "the table that has grown, or another --state."
            )
            raise InputError(msg)
        self.reader.tell(self.table.layout)
        return parts


def _watched(
    table: Table,
    loaded: object,
    outcomes: OutcomeOptions,
    named: tuple[str | None, str | None, str | None, str | None],
    skip_missing: bool,
) -> Watched:
    """Return the predictions in a table, or those of a model for its rows."""
    if loaded is None:
        if outcomes.columns() is None:
            msg = "Name the column of outcomes: --target y. For intervals: --lower a --upper b."
            raise InputError(msg)
        columns = prediction_columns(table.layout, *named)
        plain = TableCalibrator(
            columns, regcal.IdentityCalibrator(), outcomes.columns_of(table.layout)
        )
        reader = RowReader.of_model(plain, skip_missing, with_outcomes=True)
        return Watched(table, reader, lambda rows: _as_they_are(plain, rows))
    outcomes.check_names(table.layout)
    options_of = dict(zip(("mean", "std", "quantiles", "samples"), named, strict=True))
    ready = model_for_table(loaded, table.layout, **options_of, target=outcomes.columns())
    reader = RowReader.of_model(ready, skip_missing, with_outcomes=True)
    reader.outcomes = outcome_columns(ready.target)
    return Watched(table, reader, lambda rows: distributions(ready, rows))


def _as_they_are(model: TableCalibrator, rows: Columns) -> regcal.Distribution:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", regcal.CrossingQuantilesWarning)  # counted by the reader
        return model.predict_base(rows)


def _monitor(
    state: str | None,
    alpha: float | None,
    reference: str | None,
    watched: Callable[[Table], Watched],
) -> CalibrationMonitor:
    """Return the monitor of a state file, or a new one."""
    if state is not None and Path(state).exists():
        own = regcal.load(state)
        if not isinstance(own, CalibrationMonitor):
            msg = f"{state} holds a {type(own).__name__}, no state of regcal monitor. Name another."
            raise InputError(msg)
        if alpha is not None and alpha != own.alpha:
            msg = (
                f"{state} watches with alpha {own.alpha:g}, which cannot be changed to {alpha:g} "
                "on the way. Leave out --alpha, or begin another --state."
            )
            raise InputError(msg)
        return own
    own = CalibrationMonitor() if alpha is None else CalibrationMonitor(alpha)
    if reference is None:
        return own
    parts = watched(open_table(reference)).pit_after(0)
    return own.set_params(reference=np.concatenate([np.empty(0), *parts]))


def _tell(own: CalibrationMonitor, rows: int, new: int, json: bool) -> None:
    """Show what was found."""
    alarm, money = (own.alarm_, own.money_) if rows else (None, 1.0)
    if json:
        show_json(
            {"rows": rows, "new_rows": new, "alarm": alarm, "money": money, "enough": 1 / own.alpha}
        )
        return
    show(f"{rows} rows, {new} of them new.")
    show(
        f"No alarm: the evidence is {money:.3g}, and {1 / own.alpha:.3g} would be enough."
        if alarm is None
        else str(alarm)
    )
