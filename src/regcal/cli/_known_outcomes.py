"""Predictions with their outcomes, from a table and maybe a model file."""

from dataclasses import dataclass

import numpy as np

import regcal
from regcal import Distribution
from regcal.cli._errors import InputError
from regcal.cli._models import load_model, model_for_table
from regcal.cli._predictions import prediction_columns
from regcal.cli._reading import open_table
from regcal.cli._rows import RowReader, distributions
from regcal.tables import TableCalibrator


@dataclass(frozen=True)
class KnownOutcomes:
    """Outcomes, and predictions of them by name."""

    y: np.ndarray
    target: str
    dists: dict[str, Distribution]


def read_known_outcomes(
    data: str,
    model: str | None,
    target: str | None,
    named: tuple[str | None, str | None, str | None, str | None],
    trust: list[str] | None,
    skip_missing: bool,
) -> KnownOutcomes:
    """Return the predictions in a table, or those of a model file before and after calibration."""
    if model is None and target is None:
        msg = "Name the column of outcomes: --target y."
        raise InputError(msg)
    loaded = None if model is None else load_model(model, trust)
    table = open_table(data)
    if loaded is None:
        columns = prediction_columns(table.layout, *named)
        ready = TableCalibrator(columns, regcal.IdentityCalibrator(), target or "y")
    else:
        mean, std, quantiles, samples = named
        ready = model_for_table(
            loaded,
            table.layout,
            mean=mean,
            std=std,
            quantiles=quantiles,
            samples=samples,
            target=target,
        )
    reader = RowReader.of_model(ready, skip_missing, with_target=True)
    rows = reader.of_table(table)
    reader.tell(table.layout)
    before = distributions(ready, rows, calibrated=False)
    y = rows[ready.target]
    if loaded is None:
        return KnownOutcomes(y, ready.target, {"predictions": before})
    return KnownOutcomes(y, ready.target, {"before": before, "after": distributions(ready, rows)})
