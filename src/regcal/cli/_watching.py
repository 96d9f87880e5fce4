"""Watching a table that grows: which rows are new, and what a monitor is shown of them."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

import regcal
from regcal.cli._console import note
from regcal.cli._errors import InputError
from regcal.cli._models import model_for_table
from regcal.cli._outcomes import OutcomeOptions
from regcal.cli._predictions import prediction_columns
from regcal.cli._reading import Table, open_table
from regcal.cli._rows import Columns, RowReader, distributions
from regcal.online import CalibrationMonitor
from regcal.tables import TableCalibrator, outcome_columns


@dataclass
class Checksum:
    """Of what was read of rows, the same in whatever pieces they come."""

    numbers: Any = field(default_factory=sha256)
    texts: Any = field(default_factory=sha256)

    def add(self, columns: Columns) -> None:
        """Take in more rows."""
        read = list(columns.values())
        numbers = np.stack([one for one in read if one.dtype != object], axis=1).astype("<f8")
        numbers[np.isnan(numbers)] = np.nan  # which has several forms
        self.numbers.update(numbers.tobytes())
        for row in zip(*(one for one in read if one.dtype == object), strict=True):
            self.texts.update(repr(row).encode())

    def __str__(self) -> str:
        return self.numbers.hexdigest() + self.texts.hexdigest()


@dataclass
class Watched:
    """Rows of a table with predictions and outcomes.

    Parameters
    ----------
    table : Table
    reader : RowReader
    predict : callable
        Returns the predictions of rows.
    checksum : Checksum
        Of the rows that were used.
    left_out : ndarray of int
        The numbers of the other rows, from 0.
    """

    table: Table
    reader: RowReader
    predict: Callable[[Columns], regcal.Distribution]
    checksum: Checksum = field(default_factory=Checksum)
    left_out: np.ndarray = field(default_factory=lambda: np.empty(0, dtype=np.int64))

    def pit_after(self, own: CalibrationMonitor) -> "list[np.ndarray]":
        """Return PIT values of the rows that are new to a monitor, NaN for those left out."""
        parts, end, n_rows = [], 0, own.n_rows_seen_
        self.left_out = own.log_.get("left_out", self.left_out)
        for batch in self.table.batches():
            first, end = end, end + len(batch)
            arrays = {name: batch.column(name) for name in self.reader.names}
            old = min(max(n_rows - first, 0), len(batch))
            if old:
                self._recognise({name: one[:old] for name, one in arrays.items()}, first)
                if end >= n_rows:
                    self._check_same(own)
            if old == len(batch):
                continue
            new = {name: one[old:] for name, one in arrays.items()}
            pit, waited_for = self._pit(new, first + old)
            parts.append(pit)
            if waited_for:
                label, row = self.table.layout.label, first + old + len(pit) + 1
                note(f"Note: {label}: row {row} has no outcome yet; it is waited for.")
                return parts
        if end < n_rows:
            msg = (
                f"{self.table.layout.label} has {end} rows, and {n_rows} have been looked at. Pass "
                "the table that has grown, or another --state."
            )
            raise InputError(msg)
        self.reader.tell(self.table.layout)
        return parts

    def _pit(self, arrays: dict[str, Any], first: int) -> tuple[np.ndarray, bool]:
        """Return PIT values up to a row that is waited for, and whether there is one."""
        columns, usable = self.reader.checked(arrays, self.table.layout, first + 1)
        waited_for = not (self.reader.skip_missing or usable.all())
        if waited_for:
            usable = usable[: np.argmin(usable)]
            columns = {name: column[: len(usable)] for name, column in columns.items()}
        pit = np.full(len(usable), np.nan)
        if usable.any():
            outcomes = self.reader.outcomes
            assert outcomes is not None
            pit[usable] = regcal.pit(outcomes(columns), self.predict(columns), [0, first])
        self.checksum.add(columns)
        self.left_out = np.concatenate([self.left_out, first + np.flatnonzero(~usable)])
        return pit, waited_for

    def _recognise(self, arrays: dict[str, Any], first: int) -> None:
        """Add rows that were looked at before to the checksum."""
        columns = self.reader.values(arrays, self.table.layout, first + 1)
        rows = first + np.arange(len(next(iter(arrays.values()))))
        used = ~np.isin(rows, self.left_out)
        self.checksum.add({name: column[used] for name, column in columns.items()})

    def _check_same(self, own: CalibrationMonitor) -> None:
        """Refuse a table whose first rows are not those that were looked at."""
        if str(self.checksum) != own.log_["rows"]:
            msg = (
                f"{self.table.layout.label}: the first {own.n_rows_seen_} rows are not those that "
                "were looked at: a row was edited, or the table was replaced. Pass the table as it "
                "was with new rows below, or begin another --state."
            )
            raise InputError(msg)

    def told(self) -> dict[str, Any]:
        """Return what to recognise the rows by."""
        return {
            "columns": self.reader.names,
            "rows": str(self.checksum),
            "left_out": self.left_out,
        }


def watched_rows(
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


def monitor_of(state: str | None, alpha: float | None) -> CalibrationMonitor:
    """Return the monitor of a state file, or a new one."""
    if state is None or not Path(state).exists():
        own = CalibrationMonitor() if alpha is None else CalibrationMonitor(alpha)
        own.log_ = {}
        return own
    own = regcal.load(state)
    if not isinstance(own, CalibrationMonitor) or not hasattr(own, "log_"):
        msg = f"{state} holds a {type(own).__name__}, no state of regcal monitor. Name another."
        raise InputError(msg)
    if alpha is not None and alpha != own.alpha:
        msg = (
            f"{state} watches with alpha {own.alpha:g}, which cannot be changed to {alpha:g} "
            "on the way. Leave out --alpha, or begin another --state."
        )
        raise InputError(msg)
    return own


def check_columns(own: CalibrationMonitor, log: Watched, state: str | None) -> None:
    """Refuse to go on with other columns than those that were looked at."""
    known, named = own.log_.get("columns", log.reader.names), log.reader.names
    if known != named:
        msg = (
            f"{state} watches the columns {', '.join(known)}, which cannot be changed to "
            f"{', '.join(named)} on the way. Name the same columns, or begin another --state."
        )
        raise InputError(msg)


def compare_with(
    own: CalibrationMonitor,
    reference: str | None,
    watched: Callable[[Table], Watched],
    state: str | None,
) -> None:
    """Let a new monitor compare with a reference; an old one has to have begun with the same."""
    if reference is None:
        return
    rows = watched(open_table(reference))
    fresh = CalibrationMonitor()
    fresh.log_ = {}
    pit = np.concatenate([np.empty(0), *rows.pit_after(fresh)])
    if not own.n_rows_seen_:
        known_pit = pit[~np.isnan(pit)]
        if not len(known_pit):
            msg = f"{reference} has no row without missing values. Pass another --reference."
            raise InputError(msg)
        own.set_params(reference=known_pit)
        own.log_["reference"] = str(rows.checksum)
    elif own.log_.get("reference") != str(rows.checksum):
        known = "other rows" if "reference" in own.log_ else "none"
        msg = (
            f"{state} began with {known} as its reference, which cannot be changed to {reference} "
            "on the way. Leave out --reference, or begin another --state."
        )
        raise InputError(msg)
