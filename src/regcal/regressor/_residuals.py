"""Point models become probabilistic."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn import get_config
from sklearn.base import BaseEstimator, MetaEstimatorMixin, RegressorMixin
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing
from sklearn.utils.metadata_routing import UNUSED, MetadataRouter
from sklearn.utils.validation import check_is_fitted

from regcal._inspection import FittedCard
from regcal._validation import Array, as_float_array
from regcal.distributions import Normal
from regcal.regressor._folds import (
    as_weights,
    check_table,
    check_training_data,
    fit_copy,
    fit_folds,
    input_tags,
    make_folds,
    route_metadata,
    router_for,
    warned_once,
)

_AUTO_FOLDS = 5


class NormalResidualRegressor(FittedCard, RegressorMixin, MetaEstimatorMixin, BaseEstimator):
    """Put a normal distribution with the residuals' spread around a point model's predictions.

    Parameters
    ----------
    estimator : estimator
        Any regressor.
    cv : "auto", None, int or splitter, default="auto"
        Where the residuals come from. An int or a splitter: from rows that were held out;
        flexible models need this, because they follow the rows they were trained on. None: from
        the training rows, divided by the degrees of freedom that are left if the fitted model
        tells its ``rank_``. "auto": as None for least squares (a model with ``rank_``) that has
        degrees of freedom left, 5 folds for all other models.
    n_jobs : int, optional
        Number of folds fitted at once, through joblib.

    Attributes
    ----------
    estimator_ : estimator
        Fitted on all rows.
    scale_ : float
        The standard deviation of the predictive distributions.
    n_features_in_, feature_names_in_
        Number of columns of X, and their names if X was a frame.

    Examples
    --------
    The paper's OLS:

    >>> import numpy as np
    >>> from sklearn.linear_model import LinearRegression
    >>> from regcal import NormalResidualRegressor
    >>> X, y = np.arange(4.0)[:, np.newaxis], np.array([0.0, 1.0, 0.0, 1.0])
    >>> model = NormalResidualRegressor(LinearRegression()).fit(X, y)
    >>> round(model.scale_ ** 2, 3)  # 0.8 / (4 rows - 2 coefficients)
    0.4
    >>> model.predict_dist(X)
    Normal(rows=4)
    """

    __metadata_request__fit = {"groups": UNUSED}  # noqa: RUF012

    def __init__(self, estimator: Any, cv: Any = "auto", *, n_jobs: int | None = None) -> None:
        self.estimator = estimator
        self.cv = cv
        self.n_jobs = n_jobs

    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None, **fit_params: Any
    ) -> Self:
        """Fit the point model and find the spread of its residuals.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_features)
        y : array-like of shape (n_rows,)
        sample_weight : array-like of shape (n_rows,), optional
        groups : array-like of shape (n_rows,), optional
            For splitters that keep groups together.
        **fit_params
            Passed on to the estimator.

        Returns
        -------
        self
        """
        X, y = check_training_data(self, X, y)
        sample_weight = as_weights(sample_weight, len(y))
        routing = get_config()["enable_metadata_routing"]
        routed = route_metadata(self, routing, sample_weight, groups, fit_params)
        weights = np.ones(len(y)) if sample_weight is None else sample_weight
        to_fit = routed.estimator.fit
        self.estimator_ = fit_copy(self.estimator, X, y, to_fit)
        cv = self._resolved_cv(weights)
        if cv is None:
            self.scale_ = self._training_spread(X, y, weights)
        else:
            folds = make_folds(cv, X, y, routed.splitter.split)
            models = fit_folds(self.estimator, X, y, folds, to_fit, self.n_jobs)
            self.scale_ = _held_out_spread(models, folds, X, y, weights)
        if self.scale_ == 0:
            msg = (
                "All residuals are 0, which leaves no spread: the model reproduces every target "
                "(is the target constant?). Pass targets with noise."
            )
            raise ValueError(msg)
        return self

    def _resolved_cv(self, weights: Array) -> Any:
        if not (isinstance(self.cv, str) and self.cv == "auto"):
            return self.cv
        used = _parameters_used(self.estimator_)
        return None if 0 < used < weights.sum() else _AUTO_FOLDS

    def _training_spread(self, X: Any, y: Array, weights: Array) -> float:
        left = weights.sum() - _parameters_used(self.estimator_)
        if left <= 0:
            msg = (
                f"{weights.sum():g} rows leave no degrees of freedom for the residuals of a model "
                "with as many coefficients. Pass more rows, or cv=5 for held-out residuals."
            )
            raise ValueError(msg)
        residuals = y - _point_predictions(self.estimator_, X)
        return float(np.sqrt((weights * residuals**2).sum() / left))

    def predict(self, X: Any) -> Array:
        """Return the point model's predictions, the means of the distributions."""
        check_is_fitted(self, "scale_")
        X = check_table(self, X)
        with warned_once(self, X):
            return self.estimator_.predict(X)

    def predict_dist(self, X: Any) -> Normal:
        """Return one normal distribution per row."""
        check_is_fitted(self, "scale_")
        X = check_table(self, X)
        with warned_once(self, X):
            return Normal(_point_predictions(self.estimator_, X), self.scale_)

    def get_metadata_routing(self) -> MetadataRouter:
        """Return where metadata given to `fit` go."""
        return router_for(self)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = input_tags(self.estimator)
        tags.input_tags.sparse, tags.input_tags.allow_nan = inner.sparse, inner.allow_nan
        return tags


def _point_predictions(model: Any, X: Any) -> Array:
    return as_float_array(model.predict(X), "predictions").reshape(-1)


def _parameters_used(model: Any) -> int:
    """Return the number of coefficients of a least-squares fit, 0 if it is unknown."""
    last = model[-1] if isinstance(model, Pipeline) else model
    rank = getattr(last, "rank_", 0)
    return int(rank) + bool(getattr(last, "fit_intercept", False)) if np.ndim(rank) == 0 else 0


def _held_out_spread(models: list[Any], folds: Any, X: Any, y: Array, weights: Array) -> float:
    squares = total = 0.0
    for model, (_, test) in zip(models, folds, strict=True):
        residuals = y[test] - _point_predictions(model, _safe_indexing(X, test))
        squares += (weights[test] * residuals**2).sum()
        total += weights[test].sum()
    return float(np.sqrt(squares / total))
