"""Corrections learnt by regressors of scikit-learn."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from regcal._validation import Array
from regcal.corrections.base import Learner, Regression
from regcal.covariates import Column, Covariates

# Categories beyond so many are taken together with missing ones; scikit-learn's trees take 255.
_MOST_LEVELS = 250

# Small leaves and many trees for the location, few trees for the spread, which is learnt from
# squares that are mostly noise; every split looks at half of the columns. benchmarks/covariates.py,
# "fewer trees", "larger leaves" and "all columns": 0.023, 0.015 and 0.012 nats less. Chosen among
# 15 variants.
_SHARED: dict[str, Any] = {"max_features": 0.5, "early_stopping": False, "random_state": 0}
_SHIFT_TREES: dict[str, Any] = {"max_iter": 300, "min_samples_leaf": 5, **_SHARED}
_SQUARE_TREES: dict[str, Any] = {"loss": "gamma", "max_iter": 50, **_SHARED}


@dataclass(frozen=True)
class Fitted:
    """A fitted regressor of a table of numbers.

    Parameters
    ----------
    regressor : estimator
    log : bool
        Whether half the log of its answer is meant.
    smallest : float
        Lower limit of its answers before the log.
    """

    regressor: Any
    log: bool = False
    smallest: float = 0.0

    def __call__(self, columns: Covariates) -> Array:
        """Return its answer for each row."""
        answer = np.asarray(self.regressor.predict(as_table(columns)), dtype=float)
        return 0.5 * np.log(np.maximum(answer, self.smallest)) if self.log else answer


@dataclass(frozen=True)
class RegressorLearner(Learner):
    """Learns with two regressors: one for the mean of outcomes, one for the mean of squares.

    Parameters
    ----------
    shift, squares : estimator
    few_values : bool
        Whether they are trained on at most 250 values of each number.
    """

    shift: Any
    squares: Any
    few_values: bool = False

    def learn_shift(self, columns: Covariates, outcomes: Array, weights: Array) -> Regression:
        """Return the mean of outcomes as a function of covariates."""
        return Fitted(self._fitted(self.shift, columns, outcomes, weights))

    def learn_log_factor(self, columns: Covariates, squares: Array, weights: Array) -> Regression:
        """Return half the log of the mean of squares as a function of covariates."""
        mean = float(squares @ weights / weights.sum())
        squares = np.maximum(squares, 1e-12 * mean)  # which a gamma distribution asks for
        return Fitted(self._fitted(self.squares, columns, squares, weights), True, 1e-3 * mean)

    def _fitted(self, regressor: Any, columns: Covariates, y: Array, weights: Array) -> Any:
        table = as_table(columns)
        # scikit-learn's trees do not take a column without a value; they make nothing of a constant
        table = np.where(np.isnan(table).all(axis=0), 0.0, table)
        if self.few_values:
            table = np.column_stack([_snapped(column) for column in table.T])
        return clone(regressor).fit(table, y, sample_weight=weights)


def trees(columns: Covariates) -> RegressorLearner:
    """Return boosted trees that know which of these columns are categories."""
    from sklearn.ensemble import HistGradientBoostingRegressor

    categories = [kind == "category" for kind in columns.kinds]
    known = {"categorical_features": categories if any(categories) else None}
    return RegressorLearner(
        HistGradientBoostingRegressor(**known, **_SHIFT_TREES),
        HistGradientBoostingRegressor(**known, **_SQUARE_TREES),
        few_values=True,
    )


def as_table(columns: Covariates) -> Array:
    """Return the columns as numbers, categories by their place, nan where one is missing."""
    return np.column_stack([_as_numbers(column) for column in columns.columns])


def _snapped(values: Array) -> Array:
    """Return numbers with few distinct values, each the quantile next below it.

    Trees look at no more of them, and scikit-learn's take longer to find them with weights than to
    grow.
    """
    known = np.unique(values[~np.isnan(values)])
    if len(known) <= _MOST_LEVELS:
        return values
    kept = known[np.linspace(0, len(known) - 1, _MOST_LEVELS).astype(int)]
    return np.where(np.isnan(values), np.nan, kept[np.searchsorted(kept, values, "right") - 1])


def _as_numbers(column: Column) -> Array:
    if column.kind == "number":
        return column.values
    unknown = (column.values < 0) | (column.values >= _MOST_LEVELS)
    return np.where(unknown, np.nan, column.values.astype(float))
