"""Models of one quantile become probabilistic."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
from sklearn import get_config
from sklearn.base import BaseEstimator, MetaEstimatorMixin, RegressorMixin, clone
from sklearn.pipeline import Pipeline
from sklearn.utils.metadata_routing import MetadataRouter
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import check_is_fitted

from regcal._validation import Array, as_float_array
from regcal.adapters import check_levels
from regcal.distributions import Quantiles
from regcal.regressor._folds import (
    as_weights,
    check_table,
    check_training_data,
    fit_copy,
    input_tags,
    route_metadata,
    router_for,
)

# What the parameters are called by which models are told their loss, and their level.
_LOSSES = ("loss", "objective", "loss_function")
_LEVELS = ("quantile", "quantile_alpha", "alpha")


class MultiQuantileRegressor(RegressorMixin, MetaEstimatorMixin, BaseEstimator):
    """Fit a quantile regressor once per level, and join the quantiles to a distribution.

    Quantiles that were fitted one by one may cross; those of a row are sorted.

    Parameters
    ----------
    estimator : estimator, or dict from levels to estimators
        A regressor of one quantile: `sklearn.linear_model.QuantileRegressor`, gradient boosting
        with ``loss="quantile"``, LightGBM with ``objective="quantile"``, XGBoost with
        ``"reg:quantileerror"``, CatBoost with ``loss_function="Quantile"``, or any other with a
        parameter ``quantile``; also in a pipeline. Or one for each level, as they are:
        ``{0.1: low, 0.5: middle, 0.9: high}``; one that is told another level is refused.
    levels : sequence of float, default=(0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95)
        Increasing probabilities between 0 and 1. Those of a dict are its own.
    n_jobs : int, optional
        Number of levels fitted at once, through joblib.

    Attributes
    ----------
    estimators_ : list of estimators
        One per level.
    n_features_in_, feature_names_in_
        Number of columns of X, and their names if X was a frame.

    Examples
    --------
    >>> from sklearn.ensemble import HistGradientBoostingRegressor
    >>> from regcal import CalibratedRegressorCV, MultiQuantileRegressor
    >>> from regcal.datasets import load_diabetes
    >>> data = load_diabetes()
    >>> trees = HistGradientBoostingRegressor(loss="quantile", max_iter=20)
    >>> quantiles = MultiQuantileRegressor(trees, (0.1, 0.5, 0.9))
    >>> model = CalibratedRegressorCV(quantiles, "scale", ensemble=False).fit(data.X, data.y)
    >>> model.predict_dist(data.X[:2])
    Transformed(Quantiles, ScaleMap, rows=2)
    """

    def __init__(
        self,
        estimator: Any,
        levels: Sequence[float] = (0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95),
        *,
        n_jobs: int | None = None,
    ) -> None:
        self.estimator = estimator
        self.levels = levels
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any, sample_weight: Any = None, **fit_params: Any) -> Self:
        """Fit one model per level.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_features)
        y : array-like of shape (n_rows,)
        sample_weight : array-like of shape (n_rows,), optional
        **fit_params
            Passed on to the estimator.

        Returns
        -------
        self
        """
        models = self._models()
        X, y = check_training_data(self, X, y)
        sample_weight = as_weights(sample_weight, len(y))
        routing = get_config()["enable_metadata_routing"]
        to_fit = route_metadata(self, routing, sample_weight, None, fit_params).estimator.fit
        self.estimators_ = Parallel(n_jobs=self.n_jobs)(
            delayed(fit_copy)(model, X, y, to_fit) for model in models
        )
        return self

    def _models(self) -> list[Any]:
        """Return the model of each level, not fitted."""
        levels = self._checked_levels()
        if isinstance(self.estimator, Mapping):
            check_levels(self.estimator)
            return [self.estimator[level] for level in sorted(self.estimator, key=float)]
        return [
            clone(self.estimator).set_params(**_at_level(self.estimator, level)) for level in levels
        ]

    def _checked_levels(self) -> list[float]:
        given = self.levels
        if isinstance(self.estimator, Mapping):
            given = sorted(float(level) for level in self.estimator)
        levels = as_float_array(given, "levels")
        inside = levels.ndim == 1 and ((levels > 0) & (levels < 1)).all()
        if not inside or len(levels) < 2 or (np.diff(levels) <= 0).any():
            msg = (
                f"levels must be at least two increasing probabilities between 0 and 1, got "
                f"{given!r}. Write 90 % as 0.9."
            )
            raise ValueError(msg)
        return levels.tolist()

    def _predicted(self, X: Any) -> Array:
        """Return the quantiles at the levels, sorted within each row."""
        check_is_fitted(self, "estimators_")
        X = check_table(self, X)
        columns = [as_float_array(m.predict(X), "predictions").ravel() for m in self.estimators_]
        return np.sort(np.column_stack(columns), axis=1)

    def predict_dist(self, X: Any) -> Quantiles:
        """Return one distribution per row, through the predicted quantiles."""
        return Quantiles(self._checked_levels(), self._predicted(X))

    def predict(self, X: Any) -> Array:
        """Return the median of each row's distribution."""
        levels = self._checked_levels()
        if 0.5 in levels:
            return self._predicted(X)[:, levels.index(0.5)]
        return self.predict_dist(X).median()

    def get_metadata_routing(self) -> MetadataRouter:
        """Return where metadata given to `fit` go."""
        return router_for(self)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = input_tags(self.estimator)
        tags.input_tags.sparse, tags.input_tags.allow_nan = inner.sparse, inner.allow_nan
        return tags


def _at_level(estimator: Any, level: float) -> dict[str, Any]:
    """Return the parameters by which an estimator, maybe in a pipeline, predicts a quantile."""
    parameters = estimator.get_params()
    for name, value in parameters.items():
        owner, _, own_name = name.rpartition("__")
        prefix = f"{owner}__" if owner else ""
        if own_name in _LOSSES and str(value).startswith("Quantile"):  # CatBoost
            return {name: f"Quantile:alpha={level}"}
        if own_name in _LOSSES and "quantile" in str(value):
            listed = (one for one in _LEVELS if prefix + one in parameters)
            # LightGBM and XGBoost list theirs only when it was set
            default = "quantile_alpha" if str(value).startswith("reg:") else "alpha"
            return {prefix + next(listed, default): level}
        if own_name == "quantile" and not any(prefix + loss in parameters for loss in _LOSSES):
            return {name: level}
    last = estimator[-1] if isinstance(estimator, Pipeline) else estimator
    msg = (
        f"{type(last).__name__} does not predict a quantile. Pass a model that does, such as "
        'HistGradientBoostingRegressor(loss="quantile").'
    )
    raise ValueError(msg)
