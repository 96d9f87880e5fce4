"""Predictions with their outcomes, from a table and maybe a model file."""

from dataclasses import dataclass
from typing import Any

import regcal
from regcal import Distribution
from regcal.calibrators import Support
from regcal.cli._errors import InputError
from regcal.cli._models import load_model, model_for_table
from regcal.cli._outcomes import OutcomeOptions, SupportOptions
from regcal.cli._predictions import prediction_columns
from regcal.cli._reading import Table, open_table
from regcal.cli._rows import Columns, RowReader, TableModel, distributions, fitted
from regcal.tables import TableCalibrator, outcome_columns


@dataclass(frozen=True)
class KnownOutcomes:
    """Outcomes, as numbers or what was seen of them, and predictions of them by name."""

    y: Any
    target: str
    dists: dict[str, Distribution]
    support: Support


def read_known_outcomes(
    data: str,
    model: str | None,
    outcomes: OutcomeOptions,
    support: SupportOptions,
    named: tuple[str | None, str | None, str | None, str | None],
    covariates: str | None,
    trust: list[str] | None,
    skip_missing: bool,
) -> KnownOutcomes:
    """Return the predictions in a table, or those of a model file before and after calibration."""
    if model is None and outcomes.columns() is None:
        msg = "Name the column of outcomes: --target y. For intervals: --lower a --upper b."
        raise InputError(msg)
    if model is None and covariates is not None:
        msg = (
            "Covariates are for a model that looks at them: name its file by --model, or leave out "
        )
        msg += "--covariates."
        raise InputError(msg)
    if model is not None and support != SupportOptions(support=None):
        msg = "A model file knows through what outcomes are seen. Leave out --support and --step."
        raise InputError(msg)
    loaded = None if model is None else load_model(model, trust)
    table = open_table(data)
    if loaded is None:
        return _of_predictions(table, outcomes, support, named, skip_missing)
    outcomes.check_names(table.layout)
    mean, std, quantiles, samples = named
    ready = model_for_table(
        loaded,
        table.layout,
        mean=mean,
        std=std,
        quantiles=quantiles,
        samples=samples,
        covariates=covariates,
        target=outcomes.columns(),
    )
    rows = _rows(table, RowReader.of_model(ready, skip_missing, with_outcomes=True))
    before, after = (distributions(ready, rows, calibrated=one) for one in (False, True))
    return _known(ready, rows, {"before": before, "after": after})


def _of_predictions(
    table: Table,
    outcomes: OutcomeOptions,
    support: SupportOptions,
    named: tuple[str | None, str | None, str | None, str | None],
    skip_missing: bool,
) -> KnownOutcomes:
    """Return the predictions in a table, seen through ends and a step if any are asked for."""
    identity = regcal.IdentityCalibrator(**support.parameters)
    columns = prediction_columns(table.layout, *named)
    ready = TableCalibrator(columns, identity, outcomes.columns_of(table.layout))
    reader = RowReader.of_model(ready, skip_missing, with_outcomes=True)
    reader.support = support.given
    rows = _rows(table, reader)
    return _known(ready, rows, {"predictions": distributions(fitted(ready, rows), rows)})


def _rows(table: Table, reader: RowReader) -> Columns:
    rows = reader.of_table(table)
    reader.tell(table.layout)
    return rows


def _known(model: TableModel, rows: Columns, dists: dict[str, Distribution]) -> KnownOutcomes:
    columns = outcome_columns(model.target)
    return KnownOutcomes(columns(rows), columns.label, dists, model.support)
