"""Regression models by name, and features as they need them."""

import importlib
import shlex
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.linear_model import BayesianRidge, LinearRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.utils import get_tags

from regcal import NormalResidualRegressor
from regcal.adapters import is_probabilistic
from regcal.cli._errors import InputError, code_of_users, unknown_name
from regcal.cli._reading import Layout, as_numbers

# A column of more different texts than this is a name or a number of rows, not a category.
_MOST_CATEGORIES = 100

# Exact Gaussian processes take time with the cube of the rows.
MOST_ROWS_OF_GPR = 5000


def _gpr() -> GaussianProcessRegressor:
    kernel = ConstantKernel(1.0) * RBF(1.0) + WhiteKernel(1.0)
    return GaussianProcessRegressor(kernel, normalize_y=True, random_state=0)


_BY_NAME: dict[str, Callable[[], Any]] = {
    "bayesian-ridge": lambda: make_pipeline(StandardScaler(), BayesianRidge()),
    "ols": LinearRegression,
    "gpr": lambda: make_pipeline(StandardScaler(), _gpr()),
    "forest": lambda: RandomForestRegressor(random_state=0),
    "boosting": lambda: HistGradientBoostingRegressor(random_state=0),
}

MODEL_NAMES = tuple(_BY_NAME)


def make_estimator(name: str, texts: Sequence[str]) -> Any:
    """Return a model that predicts distributions from a frame; texts become indicator columns."""
    estimator = _BY_NAME[name]() if name in _BY_NAME else _imported(name)
    last = estimator[-1] if isinstance(estimator, Pipeline) else estimator
    probabilistic = is_probabilistic(last)
    if texts:
        indicators = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
        columns = ColumnTransformer([("texts", indicators, list(texts))], remainder="passthrough")
        steps = estimator.steps if isinstance(estimator, Pipeline) else [("model", estimator)]
        estimator = Pipeline([("columns", columns), *steps])
    return estimator if probabilistic else NormalResidualRegressor(estimator)


def takes_missing(name: str) -> bool:
    """Return whether a model takes features that are missing."""
    estimator = _BY_NAME[name]() if name in _BY_NAME else _imported(name)
    return hasattr(estimator, "__sklearn_tags__") and get_tags(estimator).input_tags.allow_nan


def find_modules_here() -> None:
    """Let modules of the current folder be imported, as ``python`` does and a script does not."""
    if str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))


def _imported(name: str) -> Any:
    """Return an instance of the class that ``module:Class`` names; its module's code is run."""
    module_name, _, class_name = name.partition(":")
    if not class_name:
        what = "--model: there is no model"
        msg = unknown_name(name, MODEL_NAMES, what).replace("It has:", "Known:")
        msg = f"{msg} Your own class is written module:Class."
        raise InputError(msg)
    find_modules_here()
    way_out = " It has to be a class that can be imported from here and made without arguments."
    with code_of_users(f"Cannot use the model {name}", way_out):
        kind = getattr(importlib.import_module(module_name), class_name)
        estimator = kind()
    if not (hasattr(estimator, "fit") and hasattr(estimator, "get_params")):
        msg = f"{name} is not a regressor of scikit-learn's kind: it lacks fit or get_params."
        raise InputError(msg)
    return estimator


@dataclass(frozen=True)
class Role:
    """What a column is for, and what to do about one that is not fit for it."""

    name: str
    way_out: str
    way_out_of_times: str


def _feature(name: str) -> Role:
    own = shlex.quote(name)
    times = f"Leave it out by --drop, or order the rows by it: --time {own}."
    return Role("feature", f"Leave it out: --drop {own}.", times)


def is_text(column: pa.Array, layout: Layout, name: str, role: Role | None = None) -> bool:
    """Return whether a column is a category, or say why it cannot be a feature or covariate."""
    kind, role = column.type, role or _feature(name)
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
        if pa.types.is_temporal(kind):
            msg = (
                f"{layout.label}: column {name!r} holds times ({kind}), which cannot be a "
                f"{role.name}. {role.way_out_of_times}"
            )
            raise InputError(msg)
        return False
    try:
        as_numbers(column, layout, name)
    except InputError:
        if _mostly_numbers(column):
            raise
    else:
        return False
    distinct = len(column.unique())
    if distinct > _MOST_CATEGORIES:
        msg = (
            f"{layout.label}: column {name!r} holds {distinct} different texts, too many for a "
            f"{role.name} (at most {_MOST_CATEGORIES}). {role.way_out}"
        )
        raise InputError(msg)
    return True


def _mostly_numbers(column: pa.Array) -> bool:
    numbers = 0
    for text in column.to_pylist():
        try:
            float(text or "nan")
        except ValueError:
            continue
        numbers += 1
    return 2 * numbers > len(column)
