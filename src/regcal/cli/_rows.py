"""Rows that a model is given: read, checked, and counted where something was done about them."""

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from regcal import CrossingQuantilesWarning, Distribution, FewRowsWarning
from regcal.calibrators import Support
from regcal.cli._console import note
from regcal.cli._errors import InputError
from regcal.cli._outcomes import refused_by
from regcal.cli._reading import Batch, Layout, Table, as_censored, as_numbers, read_columns
from regcal.tables import (
    CensoredColumns,
    ExactColumn,
    OutcomeColumns,
    PredictionColumns,
    RefusedRows,
    TableCalibrator,
    TableModel,
    outcome_columns,
)

Columns = dict[str, np.ndarray]


@dataclass
class RowReader:
    """Takes columns from a table and refuses, or leaves out, rows that cannot be used.

    Parameters
    ----------
    numbers, texts : sequence of str
        Columns that are read as numbers and as texts.
    predictions : PredictionColumns, optional
        Those among them that hold predictions.
    outcomes : OutcomeColumns, optional
        Further columns, which tell what was seen of outcomes.
    support : Support
        What outcomes have to be, as far as that is given.
    may_be_missing : sequence of str
        Columns of numbers that may be empty.
    skip_missing : bool
        Leave out rows with missing values instead of refusing them.
    outcomes_may_come : bool
        Leave out rows without an outcome in any case.
    """

    numbers: Sequence[str]
    texts: Sequence[str] = ()
    predictions: PredictionColumns | None = None
    outcomes: OutcomeColumns | None = None
    support: Support = field(default_factory=Support)
    may_be_missing: Sequence[str] = ()
    skip_missing: bool = False
    outcomes_may_come: bool = False
    learning: bool = True
    rows_skipped: int = 0
    rows_crossing: int = 0
    first_crossing: int = 0

    @classmethod
    def of_model(
        cls, model: TableModel, skip_missing: bool, *, with_outcomes: bool = False
    ) -> "RowReader":
        """Return a reader of what a model needs."""
        outcomes = outcome_columns(model.target) if with_outcomes else None
        predictions = model.columns if isinstance(model, TableCalibrator) else None
        if predictions is not None and outcomes is not None:
            _check_apart(predictions, outcomes)
        return cls(
            tuple(model.numbers),
            tuple(model.texts),
            predictions=predictions,
            outcomes=outcomes,
            may_be_missing=model.may_be_missing,
            skip_missing=skip_missing,
        )

    @property
    def names(self) -> list[str]:
        """All columns, each once."""
        outcomes = () if self.outcomes is None else self.outcomes.names
        return list(dict.fromkeys((*self.numbers, *outcomes, *self.texts)))

    def check_names(self, layout: Layout) -> None:
        """Refuse a table that lacks a column."""
        for name in self.names:
            layout.position(name)

    def of_batch(self, batch: Batch) -> tuple[Columns, np.ndarray]:
        """Return the usable rows of a batch, and which they are."""
        arrays = {name: batch.column(name) for name in self.names}
        return self.checked(arrays, batch.layout, batch.first_row)

    def of_table(self, table: Table) -> Columns:
        """Return the usable rows of a whole table, of which there must be some."""
        return self.of_columns(read_columns(table, self.names), table.layout)

    def of_columns(self, arrays: dict[str, pa.Array], layout: Layout) -> Columns:
        """Return the usable rows of columns that hold all rows, of which there must be some."""
        columns, usable = self.checked(arrays, layout)
        if not usable.any():
            msg = f"{layout.label} has no row without missing values."
            raise InputError(msg)
        return columns

    def checked(
        self, arrays: dict[str, pa.Array], layout: Layout, first_row: int = 1
    ) -> tuple[Columns, np.ndarray]:
        """Return the usable rows of columns as numbers and texts, and which rows they are."""
        columns = self.values(arrays, layout, first_row)
        usable = np.ones(len(next(iter(arrays.values()))), dtype=bool)
        for lacking, names, left_out in self._missing(columns):
            usable &= ~lacking
            if lacking.any() and not left_out:
                part = {name: columns[name] for name in names}
                raise InputError(_missing_in_words(part, lacking, layout, first_row))
        self.rows_skipped += int((~usable).sum())
        if not usable.all():
            columns = {name: column[usable] for name, column in columns.items()}
        rows = first_row + np.flatnonzero(usable)
        if self.predictions is not None:
            _check(self.predictions.refused(columns), layout, rows)
            self._count_crossing(self.predictions, columns, rows)
        if self.outcomes is not None and len(rows):
            self._check_outcomes(self.outcomes, columns, layout, rows)
        return columns, usable

    def values(self, arrays: dict[str, pa.Array], layout: Layout, first_row: int = 1) -> Columns:
        """Return columns as numbers and texts, whatever is in them."""
        numbers = {n: as_numbers(arrays[n], layout, n, first_row) for n in self.numbers}
        texts = {name: _texts(arrays[name]) for name in self.texts}
        return numbers | self._read_outcomes(arrays, layout, first_row) | texts

    def _read_outcomes(
        self, arrays: dict[str, pa.Array], layout: Layout, first_row: int
    ) -> Columns:
        if self.outcomes is None:
            return {}
        columns = {}
        for name in self.outcomes.names:
            flags = isinstance(self.outcomes, CensoredColumns) and name == self.outcomes.censored
            read = as_censored if flags else as_numbers
            columns[name] = read(arrays[name], layout, name, first_row)
        return columns

    def _missing(self, columns: Columns) -> Iterator[tuple[np.ndarray, Sequence[str], bool]]:
        """Yield which rows lack something, the columns it may be in, and if they are left out."""
        for name in self.numbers:
            if name not in self.may_be_missing:
                yield ~np.isfinite(columns[name]), (name,), self.skip_missing
        if self.outcomes is not None:
            left_out = self.skip_missing or self.outcomes_may_come
            yield self.outcomes.unknown(columns), self.outcomes.names, left_out

    def _check_outcomes(
        self, outcomes: OutcomeColumns, columns: Columns, layout: Layout, rows: np.ndarray
    ) -> None:
        """Refuse outcomes that contradict themselves or the options."""
        if isinstance(outcomes, CensoredColumns):
            values = columns[outcomes.value]
            rule = "with --censored outcomes are times, which begin at 0"
            times = RefusedRows(values < 0, f"column {outcomes.value!r} is", values, rule)
            _check(times, layout, rows, "; if they are no times, name --lower and --upper")
        _check(outcomes.refused(columns), layout, rows, ", or swap --lower and --upper")
        beyond = refused_by(self.support, outcomes, outcomes(columns))
        _check(beyond, layout, rows, ", or change or leave out that option")

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


def _check_apart(predictions: PredictionColumns, outcomes: OutcomeColumns) -> None:
    """Refuse outcomes as predictions of themselves, which would look perfect."""
    if isinstance(outcomes, ExactColumn | CensoredColumns) and outcomes.value in predictions.names:
        msg = (
            f"Column {outcomes.value!r} is named both as outcome and as prediction, which would be "
            "perfect. Predictions are what the model said before outcomes were known: name the "
            "columns of these."
        )
        raise InputError(msg)


def _check(refused: RefusedRows, layout: Layout, rows: np.ndarray, way_out: str = "") -> None:
    """Refuse rows that are not what they should be, and say where the first of them is."""
    if refused.rows.any():
        at = int(np.flatnonzero(refused.rows)[0])
        msg = (
            f"{layout.label}: {refused.found} {refused.values[at]:g} in row {rows[at]}, but "
            f"{refused.rule} ({int(refused.rows.sum())} such row(s) here). Correct or remove such "
            f"rows{way_out}."
        )
        raise InputError(msg)


def _missing_in_words(columns: Columns, bad: np.ndarray, layout: Layout, first_row: int) -> str:
    at = int(np.flatnonzero(bad)[0])
    values = {name: column[at] for name, column in columns.items() if not np.isfinite(column[at])}
    name, value = next(iter(values.items()))
    what = "is missing" if np.isnan(value) else f"is {value:g}, which is not finite,"
    if len(values) > 1:
        what += f", and so is column {list(values)[1]!r},"
    return (
        f"{layout.label}: column {name!r} {what} in row {first_row + at} ({int(bad.sum())} such "
        "row(s) here). Fill in or remove such rows, or pass --skip-missing."
    )


def _texts(column: pa.Array) -> np.ndarray:
    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        column = column.cast(pa.string())
    return column.fill_null("").to_numpy(zero_copy_only=False).astype(object)


def distributions(model: TableModel, columns: Columns, *, calibrated: bool = True) -> Distribution:
    """Return a model's distributions for checked rows, before calibration as seen after it.

    Through the same ends and steps, so that scores of both are of one kind.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CrossingQuantilesWarning)  # counted by the reader
        if calibrated:
            return model.predict_dist(columns)
        return model.support.through(model.predict_base(columns))


def fitted(model: Any, columns: Columns, **options: Any) -> Any:
    """Return the model, fitted on checked rows."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CrossingQuantilesWarning)
        warnings.simplefilter("ignore", FewRowsWarning)  # said with the scores
        return model.fit(columns, **options)
