"""From any fitted model to a Distribution.

Models are recognised by what they offer; no model library is imported.
"""

import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import partial, singledispatch
from inspect import Parameter, signature
from typing import Any, TypeVar

import numpy as np
from sklearn.compose import TransformedTargetRegressor
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from regcal._validation import Array, as_float_array, refuse_masked
from regcal.distributions import Distribution, Mixture, Normal, Quantiles, as_distribution
from regcal.distributions.changed_targets import of_changed_targets

Adapter = Callable[[Any, Any], Any]
AdapterT = TypeVar("AdapterT", bound=Adapter)

# Asked of models that predict any quantile.
QUANTILE_LEVELS = np.array([0.025, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.975])

_LOOKED_FOR = (
    "an adapter from regcal.register_adapter; a method predict_dist; predict(X, return_std=True); "
    "pred_dist (NGBoost); predict_proba that returns distributions (skpro); "
    'predict(X, output_type="full") (TabPFN); predict(X, quantiles=[...]); several quantiles or an '
    "uncertainty as the loss (XGBoost, CatBoost); members in estimators_ that have one of these"
)

# What LightGBM predicts unless it is told a level.
_LEVEL_OF_LIGHTGBM = 0.9

# How CatBoost writes the levels of its losses.
_CATBOOST_LEVELS = re.compile(r"(?:Multi)?Quantile:(?:.*;)?alpha=([\d.,eE\s-]+)")


def predict_dist(model: Any, X: Any) -> Distribution:
    """Return the predictive distributions of a fitted model.

    Parameters
    ----------
    model : object
        A fitted model, a dict from levels to quantile regressors, or a list of models. What is
        tried, in this order:

        1. an adapter registered for its class with `register_adapter`;
        2. what a `Pipeline`, a `FrozenEstimator` or a search (``best_estimator_``) wraps, or a
           `TransformedTargetRegressor`, whose distributions are carried back to the target;
        3. a dict ``{0.1: model, 0.9: model}``, or a list of models with a ``quantile`` (or
           ``alpha`` with a quantile loss): one quantile each;
        4. a list of other models: the average of their distributions;
        5. ``predict_dist(X)``;
        6. ``predict(X, return_std=True)``, as in `BayesianRidge`;
        7. ``pred_dist(X)``, as in NGBoost;
        8. ``predict_proba(X)`` that returns distributions, as in skpro;
        9. ``predict(X, output_type="full")``, as in TabPFN;
        10. ``predict(X, quantiles=[...])``, as in quantile-forest;
        11. a loss of several quantiles, or of mean and spread: XGBoost's ``quantile_alpha=[...]``,
            CatBoost's ``MultiQuantile`` and ``RMSEWithUncertainty``;
        12. members in ``estimators_`` that are probabilistic themselves: their average. The
            trees of a random forest are not: each predicts a mean, and how much means differ
            tells nothing about the scatter of y around them. Wrap a forest in
            `NormalResidualRegressor`.
    X : array-like or frame of shape (n_rows, n_features)

    Returns
    -------
    Distribution

    Raises
    ------
    TypeError
        If the model offers none of these.
    ValueError
        If what it returns is no distribution, for example a spread of 0 or NaN.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import BayesianRidge
    >>> import regcal
    >>> X, y = np.arange(5.0)[:, np.newaxis], np.array([0.0, 1.2, 1.9, 3.1, 4.0])
    >>> regcal.predict_dist(BayesianRidge().fit(X, y), X)
    Normal(rows=5)
    """
    refuse_masked(X, "X")
    prediction = _predict(model, X)
    try:
        return as_distribution(prediction)
    except (TypeError, ValueError) as error:
        msg = f"What {_name(model)} predicted is not a distribution. {error}"
        raise type(error)(msg) from error


def register_adapter(model_class: type) -> Callable[[AdapterT], AdapterT]:
    """Teach `predict_dist` a class of models; for use as a decorator.

    The registration holds for the process and for subclasses, and comes before everything else
    that `predict_dist` tries.

    Parameters
    ----------
    model_class : type
        Class of the fitted models.

    Returns
    -------
    callable
        Decorates a function ``adapter(model, X)`` that returns anything `as_distribution` takes.

    Examples
    --------
    >>> import numpy as np
    >>> import regcal
    >>> class Climatology:
    ...     mean, spread = 10.0, 3.0
    >>> @regcal.register_adapter(Climatology)
    ... def adapt(model, X):
    ...     return np.full(len(X), model.mean), np.full(len(X), model.spread)
    >>> regcal.predict_dist(Climatology(), np.zeros((4, 1))).mean()
    array([10., 10., 10., 10.])
    """

    def register(adapter: AdapterT) -> AdapterT:
        _predict.register(model_class)(adapter)
        return adapter

    return register


def _name(model: Any) -> str:
    return type(model).__name__


@singledispatch
def _predict(model: Any, X: Any) -> Any:
    """Return a model's prediction in a form that `as_distribution` takes."""
    for offer in (_from_method, _from_quantiles, _from_loss, _from_members):
        prediction = offer(model, X)
        if prediction is not None:
            return prediction
    if hasattr(model, "best_estimator_"):
        return predict_dist(model.best_estimator_, X)
    raise TypeError(_refusal(model))


def check_can_predict(model: Any) -> None:
    """Refuse a model, fitted or not, of which it is certain that it predicts no distribution.

    Parameters
    ----------
    model : estimator
        What `predict_dist` would be asked for once it is fitted. Nothing is said about wrappers
        whose predictions depend on what they hold.
    """
    if isinstance(model, Pipeline):
        check_can_predict(model[-1])
    elif isinstance(model, FrozenEstimator):
        check_can_predict(model.estimator)
    elif isinstance(model, TransformedTargetRegressor) and model.regressor is not None:
        check_can_predict(model.regressor)
    elif not _may_predict(model):
        raise TypeError(_refusal(model))


def _may_predict(model: Any) -> bool:
    known = _predict.dispatch(type(model)) is not _predict.dispatch(object)
    if known or not hasattr(model, "predict") or is_probabilistic(model):
        return True
    if hasattr(type(model), "__getattr__") or hasattr(model, "estimators"):
        return True
    if hasattr(model, "estimator"):  # an ensemble of it, or a search
        return model.estimator is None or _may_predict(model.estimator)
    return False


def _refusal(model: Any) -> str:
    level = _level(model)
    if level is not None:
        return (
            f"{_name(model)} predicts no distribution, but the quantile of level {level:g}. Pass a "
            "dict of such models, {0.1: low, 0.5: middle, 0.9: high}, or "
            "regcal.MultiQuantileRegressor(model), which fits one per level."
        )
    if hasattr(model, "predict_survival_function"):
        return (
            f"{_name(model)} predicts survival curves, which regcal does not ask for by itself. "
            "Say how they are read: a function that turns predict_survival_function(X) into a "
            "regcal.Histogram, under @regcal.register_adapter. The guide to outputs of models has "
            'it under "a survival curve".'
        )
    way_out = (
        "Wrap it in regcal.NormalResidualRegressor, which adds the spread of its residuals."
        if hasattr(model, "predict")
        else "Pass a fitted model."
    )
    return f"{_name(model)} predicts no distribution. {way_out} Looked for: {_LOOKED_FOR}."


@_predict.register
def _(model: Pipeline, X: Any) -> Any:
    return predict_dist(model[-1], model[:-1].transform(X) if len(model) > 1 else X)


@_predict.register
def _(model: FrozenEstimator, X: Any) -> Any:
    return predict_dist(model.estimator, X)


@_predict.register
def _(model: TransformedTargetRegressor, X: Any) -> Any:
    dist, change = predict_dist(model.regressor_, X), model.transformer_
    if isinstance(change, StandardScaler) and isinstance(dist, Normal):
        ends = [
            _column_by(change.inverse_transform)(one) for one in (dist.loc, dist.loc + dist.scale)
        ]
        return ends[0], ends[1] - ends[0]
    if not isinstance(change, FunctionTransformer):
        forward, inverse = _column_by(change.transform), _column_by(change.inverse_transform)
        return of_changed_targets(dist, forward, inverse)
    if change.func is None:
        return dist
    forward = partial(change.func, **(change.kw_args or {}))
    return of_changed_targets(
        dist, forward, partial(change.inverse_func, **(change.inv_kw_args or {}))
    )


def _column_by(transform: Callable[[Any], Any]) -> Callable[[Array], Array]:
    """Return a function of arrays of any shape, from one of tables with a single column."""
    return lambda values: np.reshape(transform(np.reshape(values, (-1, 1))), np.shape(values))


@_predict.register
def _(model: Mapping, X: Any) -> Any:
    check_levels(model)
    pairs = sorted((float(level), member) for level, member in model.items())
    return _one_quantile_each([level for level, _ in pairs], [member for _, member in pairs], X)


@_predict.register(list)
@_predict.register(tuple)
def _(model: Sequence, X: Any) -> Any:
    levels = [_level(member) for member in model]
    known = [level for level in levels if level is not None]
    if known and len(known) == len(levels):
        order = np.argsort(known)
        return _one_quantile_each([known[k] for k in order], [model[k] for k in order], X)
    said = [predict_dist(member, X) for member in model]
    return said[0] if len(said) == 1 else Mixture(said)


def check_levels(models: Mapping[Any, Any]) -> None:
    """Refuse quantile regressors that stand under another level than they are told to predict.

    Parameters
    ----------
    models : mapping from levels to quantile regressors, fitted or not
        Those that do not tell their level may stand anywhere.
    """
    for level, model in models.items():
        own = _level(model)
        if own is not None and abs(own - float(level)) > 1e-9:
            msg = (
                f"Under the level {float(level):g} stands a {_name(model)} of the quantile "
                f"{own:g}. Set its own level to {float(level):g}, or let it stand under {own:g}; "
                "regcal.MultiQuantileRegressor(model) sets levels by itself."
            )
            raise ValueError(msg)


def _level(model: Any) -> float | None:
    """Return the level that a quantile regressor, maybe in a pipeline, was made for."""
    if isinstance(model, Pipeline):
        return _level(model[-1])
    if getattr(model, "quantile", None) is not None:
        return float(model.quantile)
    if getattr(model, "loss", getattr(model, "objective", None)) == "quantile":
        return float(getattr(model, "alpha", _LEVEL_OF_LIGHTGBM))
    native = getattr(model, "params", None)  # of LightGBM's Booster
    if isinstance(native, Mapping) and native.get("objective") == "quantile":
        return float(native.get("alpha", _LEVEL_OF_LIGHTGBM))
    levels = _levels_of_loss(model)
    return levels[0] if len(levels) == 1 else None


def _loss(model: Any) -> str:
    """Return the loss that a booster is told to use; CatBoost has two names for it."""
    own = model.get_params(deep=False) if hasattr(model, "get_params") else {}
    return str(own.get("objective") or own.get("loss_function"))


def _levels_of_loss(model: Any) -> list[float]:
    """Return the levels that XGBoost or CatBoost was told to predict, if any."""
    loss = _loss(model)
    if loss == "reg:quantileerror":
        told = model.get_params(deep=False).get("quantile_alpha")
        return [] if told is None else np.atleast_1d(told).astype(float).tolist()
    found = _CATBOOST_LEVELS.fullmatch(loss)
    return [] if found is None else [float(level) for level in found[1].split(",")]


def _one_quantile_each(levels: Sequence[float], models: Sequence[Any], X: Any) -> Distribution:
    columns = [as_float_array(model.predict(X), "predictions").ravel() for model in models]
    return Quantiles(levels, np.column_stack(columns))


def accepts(method: Any, name: str) -> bool:
    """Return whether a method has a parameter of this very name."""
    function = getattr(method, "__func__", method)
    code = getattr(function, "__code__", None)
    if code is not None and not hasattr(function, "__wrapped__"):
        # what a signature would say, which takes as long as some models take for a row
        return name in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    try:
        parameter = signature(method).parameters.get(name)
    except (TypeError, ValueError):
        return False
    return parameter is not None and parameter.kind is not Parameter.VAR_KEYWORD


def _from_method(model: Any, X: Any) -> Any:
    if hasattr(model, "predict_dist"):
        return model.predict_dist(X)
    if accepts(getattr(model, "predict", None), "return_std"):
        return _mean_and_std(model, X)
    if hasattr(model, "pred_dist"):
        return model.pred_dist(X)
    if hasattr(model, "predict_proba") and hasattr(model, "predict_quantiles"):
        return model.predict_proba(X)
    return None


def _mean_and_std(model: Any, X: Any) -> Any:
    """Return mean and spread; scikit-learn computes with X, as only arrays and pandas allow."""
    if not hasattr(X, "columns") or hasattr(X, "iloc"):
        return model.predict(X, return_std=True)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "X does not have valid feature names", UserWarning)
        return model.predict(X.to_numpy(), return_std=True)


def _from_quantiles(model: Any, X: Any) -> Any:
    predict = getattr(model, "predict", None)
    if accepts(predict, "output_type"):
        return model.predict(X, output_type="full")
    if not accepts(predict, "quantiles"):
        return None
    return Quantiles(QUANTILE_LEVELS, model.predict(X, quantiles=QUANTILE_LEVELS.tolist()))


def _from_loss(model: Any, X: Any) -> Any:
    levels = _levels_of_loss(model)
    if len(levels) > 1:
        order = np.argsort(levels)
        return Quantiles(np.array(levels)[order], np.asarray(model.predict(X))[:, order])
    if _loss(model) == "RMSEWithUncertainty":
        mean, variance = np.asarray(model.predict(X)).T
        return mean, np.sqrt(variance)
    return None


def _from_members(model: Any, X: Any) -> Any:
    """Average an ensemble's members, if they predict distributions."""
    members = getattr(model, "estimators_", None)
    if members is None or not all(is_probabilistic(member) for member in np.ravel(members)):
        return None
    columns = getattr(model, "estimators_features_", None)
    if columns is None:
        return Mixture([predict_dist(member, X) for member in members])
    X = np.asarray(X)
    return Mixture(
        [predict_dist(member, X[:, own]) for member, own in zip(members, columns, strict=True)]
    )


def is_probabilistic(model: Any) -> bool:
    """Return whether a model has a method that predicts distributions."""
    predict = getattr(model, "predict", None)
    return (
        hasattr(model, "predict_dist")
        or hasattr(model, "pred_dist")
        or (hasattr(model, "predict_proba") and hasattr(model, "predict_quantiles"))
        or accepts(predict, "return_std")
        or accepts(predict, "output_type")
        or accepts(predict, "quantiles")
        or len(_levels_of_loss(model)) > 1
        or _loss(model) == "RMSEWithUncertainty"
    )
