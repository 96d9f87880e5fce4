"""Models in files, and what they need of a table."""

from pathlib import Path
from typing import Any

import regcal
from regcal.cli._covariates import columns_read_before, renamed
from regcal.cli._errors import InputError
from regcal.cli._estimators import find_modules_here
from regcal.cli._predictions import check_columns_of_model, prediction_columns
from regcal.cli._reading import Layout
from regcal.tables import (
    CensoredColumns,
    ExactColumn,
    OutcomeColumns,
    TableCalibrator,
    TableModel,
    TableRegressor,
)


def load_model(path: str, trusted: list[str] | None) -> Any:
    """Return what is in a model file."""
    check_model_file(path)
    if trusted:
        find_modules_here()
    try:
        return regcal.load(path, trusted=tuple(trusted or ()))
    except regcal.FileError as error:
        # what Python users pass as trusted= is an option here
        text = str(error)
        if "trusted=" in text:
            text = text[: text.index(". If you trust")] + (
                ". If you trust where the file comes from and what these do, pass --trust NAME "
                "for each of them."
            )
        raise InputError(text) from error


def check_model_file(path: str) -> None:
    """Refuse a path that is no file."""
    if not Path(path).is_file():
        msg = f"There is no model file {path}. Make one by regcal fit or regcal calibrate --save."
        raise InputError(msg)


def model_for_table(
    model: Any,
    layout: Layout,
    *,
    mean: str | None = None,
    std: str | None = None,
    quantiles: str | None = None,
    samples: str | None = None,
    covariates: str | None = None,
    target: OutcomeColumns | None = None,
) -> TableModel:
    """Return a model that knows its columns, from what a file holds and from the options."""
    options = (mean, std, quantiles, samples)
    named = any(option is not None for option in options)
    if isinstance(model, TableCalibrator | regcal.Calibrator):
        of_table = isinstance(model, TableCalibrator)
        inner = model.calibrator_ if of_table else model
        known = model.columns if of_table else None
        columns = prediction_columns(layout, *options) if named or known is None else known
        check_columns_of_model(columns, layout)
        own_target = outcomes_of(model.target if of_table else "y", target, layout)
        given = model.covariates if of_table else columns_read_before(inner.columns_)
        own = TableCalibrator(columns, inner, own_target, renamed(given, covariates))
        own.calibrator_, own.n_rows_seen_ = inner, inner.n_rows_seen_
        return own
    if named:
        msg = "This model makes its own predictions. Leave out the options that name them."
        raise InputError(msg)
    if covariates is not None:
        msg = "This model finds covariates among its features. Leave out --covariates."
        raise InputError(msg)
    if isinstance(model, TableRegressor):
        return model.set_params(target=outcomes_of(model.target, target, layout))
    if isinstance(model, regcal.CalibratedRegressorCV) and hasattr(model, "feature_names_in_"):
        table_model = TableRegressor(model, tuple(model.feature_names_in_), target=target or "y")
        table_model.model_ = model
        return table_model
    msg = (
        f"The file holds a {type(model).__name__}, which does not know the columns of a table. "
        "Make the model by regcal fit or regcal calibrate --save, or fit it on a data frame."
    )
    raise InputError(msg)


def outcomes_of(learnt: Any, target: OutcomeColumns | None, layout: Layout) -> Any:
    """Return where outcomes stand: as options say, and else as the model has learnt.

    Values that are named alone keep the column that tells which of them are censored.
    """
    if target is None:
        return learnt
    if not (isinstance(target, ExactColumn) and isinstance(learnt, CensoredColumns)):
        return target
    if learnt.censored not in layout.names:
        msg = (
            f"The model has learnt from outcomes of which the column {learnt.censored!r} tells "
            f"whether they are censored, and {layout.label} has no such column. Name the one it "
            "has: --censored. If all outcomes in it are known, "
            f"--lower {target.value} --upper {target.value} says so."
        )
        raise InputError(msg)
    return CensoredColumns(target.value, learnt.censored)
