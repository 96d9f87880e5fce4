"""Train a model on a table."""

from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from sklearn.model_selection import GroupKFold, GroupShuffleSplit, TimeSeriesSplit

import regcal
from regcal.cli._covariates import covariate_names
from regcal.cli._errors import InputError, code_of_users
from regcal.cli._estimators import (
    MODEL_NAMES,
    MOST_ROWS_OF_GPR,
    is_text,
    make_estimator,
    takes_missing,
)
from regcal.cli._held_out import hold_out, scores_on_held_out_rows
from regcal.cli._outcomes import OutcomeOptions, SupportOptions
from regcal.cli._predictions import split_names
from regcal.cli._reading import Layout, Table, read_columns
from regcal.cli._rows import Columns, RowReader, fitted
from regcal.tables import OutcomeColumns, TableRegressor


@dataclass(frozen=True)
class Training:
    """What to learn from which columns: the options of ``regcal fit``."""

    outcomes: OutcomeOptions
    support: SupportOptions
    model: str
    calibrator: str
    covariates: str | None
    features: str | None
    drop: str | None
    cv: int
    ensemble: bool | None
    groups: str | None
    time: str | None
    skip_missing: bool

    @property
    def order(self) -> str | None:
        """Column that decides which rows are held out."""
        return self.groups or self.time

    def feature_names(self, layout: Layout, outcomes: OutcomeColumns) -> list[str]:
        """Return the columns to predict from."""
        typed = {
            "--features": split_names(self.features or ""),
            "--drop": split_names(self.drop or ""),
            "--groups": [self.groups] if self.groups else [],
            "--time": [self.time] if self.time else [],
        }
        for option, named in typed.items():
            for name in named:
                layout.position(name, option)
        left_out = [*outcomes.names, *typed["--drop"], *typed["--groups"], *typed["--time"]]
        chosen = layout.names if self.features is None else typed["--features"]
        names = [name for name in chosen if name not in left_out]
        for name in names:
            layout.position(name)
        if not names:
            msg = f"{layout.label} leaves no column to predict {outcomes.label!r} from."
            raise InputError(msg)
        return names

    def splitter(self) -> Any:
        """Return how rows are held out in turn."""
        if self.time is not None:
            return TimeSeriesSplit(self.cv)
        return self.cv if self.groups is None else GroupKFold(self.cv)


def train(wanted: Training, table: Table) -> TableRegressor:
    """Return a model fitted on a table, with its scores on rows held out."""
    if wanted.groups is not None and wanted.time is not None:
        msg = "--groups and --time exclude each other. Choose how rows are held out."
        raise InputError(msg)
    layout = table.layout
    outcomes = wanted.outcomes.columns_of(layout)
    names = wanted.feature_names(layout, outcomes)
    known = covariate_names(wanted.covariates, names, "the columns to predict from")
    free = takes_missing(wanted.model)
    order = [wanted.order] if wanted.order else []
    arrays = read_columns(table, [*names, *outcomes.names, *order])
    texts = tuple(name for name in names if is_text(arrays[name], layout, name))
    numbers = tuple(name for name in names if name not in texts)
    reader = RowReader(
        numbers,
        texts,
        outcomes=outcomes,
        support=wanted.support.given,
        may_be_missing=numbers if free else (),
        skip_missing=wanted.skip_missing,
    )
    rows, usable = reader.checked(arrays, layout)
    reader.tell(layout)
    _check_size(wanted, layout, int(usable.sum()))
    inner = regcal.CalibratedRegressorCV(
        make_estimator(wanted.model, texts),
        wanted.calibrator,
        wanted.splitter(),
        "auto" if wanted.ensemble is None else wanted.ensemble,
        covariates=known or None,
        **wanted.support.parameters,
    )
    model = TableRegressor(inner, numbers, texts, outcomes, takes_missing=free)
    groups = None
    if wanted.groups is not None:
        groups = _labels(arrays[wanted.groups])[usable]
        _check_groups(wanted, len(set(groups)))
    if wanted.time is not None:
        places = _order(_labels(arrays[wanted.time])[usable], layout, wanted.time)
        rows = {name: column[places] for name, column in rows.items()}
    own = wanted.model not in MODEL_NAMES
    with code_of_users(f"The model {wanted.model} failed") if own else nullcontext():
        _fit_and_judge(model, rows, groups, layout, in_time=wanted.time is not None)
    return model


def _check_size(wanted: Training, layout: Layout, n_rows: int) -> None:
    if wanted.model == "gpr" and n_rows > MOST_ROWS_OF_GPR:
        msg = (
            f"gpr takes at most {MOST_ROWS_OF_GPR} rows, and {layout.label} has {n_rows}. "
            "Take fewer rows, or --model boosting."
        )
        raise InputError(msg)
    if n_rows == 0:
        msg = f"{layout.label} has no row without missing values."
        raise InputError(msg)
    if wanted.cv < 2 or 4 <= n_rows < 2 * wanted.cv:
        msg = (
            f"--cv {wanted.cv} does not suit {n_rows} rows: at least 2 folds with 2 rows each are "
            f"needed. Pass --cv 2 to --cv {max(2, n_rows // 2)}."
        )
        raise InputError(msg)


def _check_groups(wanted: Training, n_groups: int) -> None:
    if n_groups < wanted.cv:
        msg = (
            f"--cv {wanted.cv} needs as many groups, and --groups {wanted.groups} has {n_groups}. "
            f"Pass --cv {n_groups} or fewer."
        )
        raise InputError(msg)


def _labels(column: pa.Array) -> np.ndarray:
    labels = np.empty(len(column), dtype=object)
    labels[:] = column.to_pylist()
    return labels


def _order(times: np.ndarray, layout: Layout, name: str) -> np.ndarray:
    """Return row numbers in the order of time: numbers as numbers, all else as it compares."""
    if any(time is None or time == "" for time in times):
        first = next(k for k, time in enumerate(times, start=1) if time is None or time == "")
        msg = f"{layout.label}: column {name!r} is missing in row {first}. Fill it in."
        raise InputError(msg)
    try:
        return np.argsort(times.astype(float), kind="stable")
    except (TypeError, ValueError):
        return np.argsort(times, kind="stable")


def _fit_and_judge(
    model: TableRegressor, rows: Columns, groups: Any, layout: Layout, *, in_time: bool
) -> None:
    """Fit the model on all rows, and judge its method on rows held out."""
    held_out = hold_out(len(rows[model.inputs[0]]))
    if in_time:
        held_out = np.sort(held_out)  # the last fifth
    elif groups is not None:
        splitter = GroupShuffleSplit(1, test_size=0.2, random_state=0)
        judged = next(splitter.split(held_out, groups=groups))[1]
        held_out = np.isin(np.arange(len(held_out)), judged)
    try:
        fitted(model, rows, groups=groups)
        scores = scores_on_held_out_rows(model, rows, held_out, groups=groups)
    except (TypeError, ValueError) as error:
        msg = f"{layout.label} cannot be fitted: {error}"
        raise InputError(msg) from error
    model.source_, model.scores_ = layout.label, scores
