"""Rows that a model is given: read, checked, and counted where something was done about them."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from regcal import CrossingQuantilesWarning, Distribution
from regcal.cli._console import note
from regcal.cli._errors import InputError
from regcal.cli._reading import Batch, Layout, Table, as_numbers, read_columns
from regcal.tables import PredictionColumns, TableCalibrator, TableRegressor

Columns = dict[str, np.ndarray]
TableModel = TableCalibrator | TableRegressor


@dataclass
class RowReader:
    """Takes columns from a table and refuses, or leaves out, rows that cannot be used.

    Parameters
    ----------
    numbers, texts : sequence of str
        Columns that are read as numbers and as texts.
    predictions : PredictionColumns, optional
        Those among them that hold predictions.
    may_be_missing : sequence of str
        Columns of numbers that may be empty.
    skip_missing : bool
        Leave out rows with missing values instead of refusing them.
    """

    numbers: Sequence[str]
    texts: Sequence[str] = ()
    predictions: PredictionColumns | None = None
    may_be_missing: Sequence[str] = ()
    skip_missing: bool = False
    learning: bool = True
    rows_skipped: int = 0
    rows_crossing: int = 0
    first_crossing: int = 0

    @classmethod
    def of_model(
        cls, model: TableModel, skip_missing: bool, *, with_target: bool = False
    ) -> "RowReader":
        """Return a reader of what a model needs."""
        target = (model.target,) if with_target else ()
        if isinstance(model, TableCalibrator):
            numbers = (*model.columns.names, *target)
            return cls(numbers, predictions=model.columns, skip_missing=skip_missing)
        free = tuple(model.numbers) if model.takes_missing else ()
        numbers = (*model.numbers, *target)
        return cls(numbers, tuple(model.texts), None, free, skip_missing)

    def check_names(self, layout: Layout) -> None:
        """Refuse a table that lacks a column."""
        for name in (*self.numbers, *self.texts):
            layout.position(name)

    def of_batch(self, batch: Batch) -> tuple[Columns, np.ndarray]:
        """Return the usable rows of a batch, and which they are."""
        arrays = {name: batch.column(name) for name in (*self.numbers, *self.texts)}
        return self.checked(arrays, batch.layout, batch.first_row)

    def of_table(self, table: Table) -> Columns:
        """Return the usable rows of a whole table, of which there must be some."""
        arrays = read_columns(table, [*self.numbers, *self.texts])
        columns, usable = self.checked(arrays, table.layout)
        if not usable.any():
            msg = f"{table.layout.label} has no row without missing values."
            raise InputError(msg)
        return columns

    def checked(
        self, arrays: dict[str, pa.Array], layout: Layout, first_row: int = 1
    ) -> tuple[Columns, np.ndarray]:
        """Return the usable rows of columns as numbers and texts, and which rows they are."""
        numbers = {n: as_numbers(arrays[n], layout, n, first_row) for n in self.numbers}
        usable = np.ones(len(next(iter(arrays.values()))), dtype=bool)
        for name, column in numbers.items():
            if name not in self.may_be_missing:
                usable &= np.isfinite(column)
                if not (self.skip_missing or usable.all()):
                    raise InputError(_missing(column, layout, name, first_row))
        self.rows_skipped += int((~usable).sum())
        columns = {**numbers, **{name: _texts(arrays[name]) for name in self.texts}}
        if not usable.all():
            columns = {name: column[usable] for name, column in columns.items()}
        if self.predictions is not None:
            rows = first_row + np.flatnonzero(usable)
            _check_predictions(self.predictions, columns, layout, rows)
            self._count_crossing(self.predictions, columns, rows)
        return columns, usable

    def _count_crossing(
        self, predictions: PredictionColumns, columns: Columns, rows: np.ndarray
    ) -> None:
        crossing = predictions.crossing(columns)
        if crossing.any() and not self.rows_crossing:
            self.first_crossing = int(rows[np.flatnonzero(crossing)[0]])
        self.rows_crossing += int(crossing.sum())

    def tell(self, layout: Layout) -> None:
        """Tell what was done about rows that were not as they should be."""
        if self.rows_skipped:
            what = "were not used" if self.learning else "got no answer"
            count = f"{self.rows_skipped} row(s) with missing values"
            note(f"Note: {layout.label}: {count} {what}.")
        if self.rows_crossing:
            note(
                f"Note: {layout.label}: {self.rows_crossing} row(s) have crossing quantiles, the "
                f"first is row {self.first_crossing}; they were sorted."
            )


def _check_predictions(
    predictions: PredictionColumns, columns: Columns, layout: Layout, rows: np.ndarray
) -> None:
    """Refuse rows that are no distribution, and say where the first of them is."""
    refused = predictions.refused(columns)
    if refused.rows.any():
        at = int(np.flatnonzero(refused.rows)[0])
        msg = (
            f"{layout.label}: {refused.found} {refused.values[at]:g} in row {rows[at]}, but "
            f"{refused.rule} ({int(refused.rows.sum())} such row(s) here). Correct or remove such "
            "rows."
        )
        raise InputError(msg)


def _missing(column: np.ndarray, layout: Layout, name: str, first_row: int) -> str:
    bad = ~np.isfinite(column)
    at = int(np.flatnonzero(bad)[0])
    what = "is missing" if np.isnan(column[at]) else f"is {column[at]:g}, which is not finite,"
    return (
        f"{layout.label}: column {name!r} {what} in row {first_row + at} ({int(bad.sum())} such "
        "row(s) here). Fill in or remove such rows, or pass --skip-missing."
    )


def _texts(column: pa.Array) -> np.ndarray:
    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        column = column.cast(pa.string())
    return column.fill_null("").to_numpy(zero_copy_only=False).astype(object)


def distributions(model: TableModel, columns: Columns, *, calibrated: bool = True) -> Distribution:
    """Return a model's distributions for checked rows."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CrossingQuantilesWarning)  # counted by the reader
        return model.predict_dist(columns) if calibrated else model.predict_base(columns)


def fitted(model: Any, columns: Columns, **options: Any) -> Any:
    """Return the model, fitted on checked rows."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CrossingQuantilesWarning)
        return model.fit(columns, **options)
