"""What estimators that train on folds share: checks, routing, splitting and fitting."""

import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import KFold, check_cv
from sklearn.model_selection._search import BaseSearchCV
from sklearn.pipeline import Pipeline
from sklearn.utils import (
    Bunch,
    InputTags,
    _safe_indexing,
    check_array,
    column_or_1d,
    get_tags,
)
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import (
    check_consistent_length,
    has_fit_parameter,
    validate_data,
)

from regcal._validation import (
    Array,
    as_float_array,
    check_finite,
    check_weights,
    refuse_masked,
)
from regcal.calibrators.support import Support
from regcal.outcomes import Outcomes, has_fields, is_interval_data

Fold = tuple[np.ndarray, np.ndarray]

# Rows in time order are dealt in so many runs.
_N_RUNS = 30


def input_tags(estimator: Any) -> InputTags:
    """Return what an estimator takes; those of other packages, such as skpro's, have no tags."""
    if isinstance(estimator, FrozenEstimator):
        return input_tags(estimator.estimator)  # which may be a dict of models
    if hasattr(estimator, "__sklearn_tags__"):
        return get_tags(estimator).input_tags
    return InputTags()


def check_table(owner: Any, X: Any, *, reset: bool = False) -> Any:
    """Compare the columns of `X` with those seen in `fit`, or record them; arrays become numeric.

    Frames are passed on as they are, so that the estimator can select columns by name. Missing
    values are left to the estimator.
    """
    if not reset and _is_plain(owner, X):
        return X
    refuse_masked(X, "X")
    if hasattr(X, "columns"):
        return validate_data(owner, X, reset=reset, skip_check_array=True)
    sparse = "csr" if input_tags(owner.estimator).sparse else False
    return validate_data(owner, X, reset=reset, accept_sparse=sparse, ensure_all_finite=False)


def _is_plain(owner: Any, X: Any) -> bool:
    """Return whether `X` is a table of numbers about which `validate_data` has nothing to say.

    For a single row, its checks take as long as a linear model's own prediction.
    """
    return (
        type(X) is np.ndarray
        and X.dtype.kind in "fiu"
        and X.ndim == 2
        and len(X) > 0
        and X.shape[1] == owner.n_features_in_
        and not hasattr(owner, "feature_names_in_")
    )


@contextmanager
def warned_once(owner: Any, X: Any) -> Iterator[None]:
    """Silence models inside `owner`, which has said already that `X` lacks the names of columns."""
    if not hasattr(owner, "feature_names_in_") or hasattr(X, "columns"):
        yield
        return
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "X does not have valid feature names", UserWarning)
        yield


def check_training_data(owner: Any, X: Any, y: Any) -> tuple[Any, Array]:
    """Record the columns of `X` on `owner`; return `X` and `y`, a finite column of floats."""
    if y is None:
        msg = f"{type(owner).__name__} requires y to be passed, but the target y is None."
        raise ValueError(msg)
    X = check_table(owner, X, reset=True)
    y = as_float_array(y, "y")
    y = check_array(
        y,
        ensure_2d=False,
        dtype=np.float64,
        ensure_all_finite=False,
        input_name="y",
        estimator=owner,
    )
    y = column_or_1d(y, warn=True)
    check_consistent_length(X, y)
    return X, check_finite(y, "y")


def check_outcome_data(owner: Any, X: Any, y: Any) -> tuple[Any, Any, Outcomes]:
    """Record the columns of `X` on `owner`; return `X`, what a model is fitted to, and outcomes.

    A model is fitted to numbers: of an interval, to the end that is known or to the middle. Arrays
    of (event, time) are passed on as they are, since models of survival times take them.
    """
    if not is_interval_data(y):
        X, y = check_training_data(owner, X, y)
        return X, y, Outcomes.exact(y)
    seen = Outcomes.of(y)
    X = check_table(owner, X, reset=True)
    check_consistent_length(X, seen.lower)
    return X, y if has_fields(y) else seen.values, seen


def asked_support(model: Any) -> tuple[Any, Any]:
    """Return the support and the step that a model asks for or, where not, its calibrator."""
    wanted = [model.support, model.step]
    if not isinstance(model.calibrator, str):
        own = model.calibrator.get_params(deep=False)
        for k, (name, default) in enumerate((("support", "auto"), ("step", None))):
            if isinstance(wanted[k], type(default)) and wanted[k] == default:
                wanted[k] = own.get(name)
    return wanted[0], wanted[1]


def check_support(model: Any, seen: Outcomes, weights: Array) -> None:
    """Refuse outcomes that count and lie outside the support that was given."""
    counted = np.flatnonzero(weights)
    Support.given(*asked_support(model)).check(seen[counted], counted)


def takes_outcomes(estimator: Any) -> bool:
    """Return whether an estimator, at the end of a pipeline or of a search, takes `Outcomes`."""
    if isinstance(estimator, Pipeline):
        return takes_outcomes(estimator.steps[-1][1])
    if isinstance(estimator, BaseSearchCV):
        return takes_outcomes(estimator.estimator)
    return getattr(estimator, "takes_outcomes", False)


def numbers_of(y: Any) -> Any:
    """Return outcomes that are known as numbers; refuse others, which no point can be held to."""
    if not is_interval_data(y):
        return y
    seen = Outcomes.of(y)
    if not seen.exact_rows.all():
        msg = (
            f"{int((~seen.exact_rows).sum())} of {len(seen)} outcomes are censored or intervals, "
            "and R² compares predictions with numbers. Judge distributions instead: "
            "regcal.log_score(y, model.predict_dist(X)), or in scikit-learn "
            "scoring=regcal.metrics.log_score_scorer."
        )
        raise ValueError(msg)
    return seen.values


def router_for(owner: Any) -> MetadataRouter:
    """Return the routes of metadata from `owner.fit` to its estimator and its splitter."""
    to_fit = MethodMapping().add(caller="fit", callee="fit")
    router = MetadataRouter(owner=owner).add_self_request(owner)
    router.add(estimator=owner.estimator, method_mapping=to_fit)
    if hasattr(owner, "cv"):
        to_split = MethodMapping().add(caller="fit", callee="split")
        router.add(splitter=owner.cv, method_mapping=to_split)
    return router


def route_metadata(
    owner: Any, routing: bool, sample_weight: Any, groups: Any, fit_params: Mapping[str, Any]
) -> Bunch:
    """Return what the estimator's `fit` and the splitter's `split` are to be given.

    With scikit-learn's metadata routing the user's requests decide. Without it, `groups` go to
    the splitter and everything else to the estimator, weights only if it takes them.
    """
    for name, value in {"groups": groups, **fit_params}.items():
        refuse_masked(value, name)
    if routing:
        given = {"sample_weight": sample_weight, "groups": groups}
        given = {name: value for name, value in given.items() if value is not None}
        return process_routing(owner, "fit", **given, **fit_params)
    to_fit = dict(fit_params)
    estimator = owner.estimator
    models = estimator.values() if isinstance(estimator, Mapping) else [estimator]
    if sample_weight is not None and all(has_fit_parameter(m, "sample_weight") for m in models):
        to_fit["sample_weight"] = sample_weight
    elif sample_weight is not None:
        msg = (
            f"{type(owner.estimator).__name__}.fit takes no sample_weight, so the weights count "
            f"for what {type(owner).__name__} learns from its predictions only. A Pipeline takes "
            "them through scikit-learn's metadata routing."
        )
        warnings.warn(msg, UserWarning, stacklevel=3)
    return Bunch(estimator=Bunch(fit=to_fit), splitter=Bunch(split={"groups": groups}))


def make_folds(
    cv: Any, X: Any, y: Array, split_params: Mapping[str, Any], random_state: int = 0
) -> list[Fold]:
    """Return pairs of training and held-out row numbers.

    A number of folds deals the rows at random, so that data in a meaningful order do not leave one
    fold outside of what the others have seen; in the same way for the same random state.
    """
    if isinstance(cv, str):
        msg = (
            f"cv must be a number of folds or a splitter, got {cv!r}. To calibrate a model that is "
            "fitted already, pass sklearn.frozen.FrozenEstimator(model) as the estimator."
        )
        raise ValueError(msg)
    if isinstance(cv, int | np.integer) and not isinstance(cv, bool):
        if cv < 2:
            msg = f"cv={cv} leaves no rows to hold out: cv must be at least 2 folds."
            raise ValueError(msg)
        if len(y) < 2 * cv:
            msg = (
                f"Cannot make {cv} folds of n_samples={len(y)} rows: at least 2 folds with 2 rows "
                "each are needed. Lower cv, or pass more rows."
            )
            raise ValueError(msg)
        cv = KFold(int(cv), shuffle=True, random_state=random_state)
    return list(check_cv(cv).split(X, y, **split_params))


def rows_together(folds: list[Fold], groups: Any) -> np.ndarray | None:
    """Return numbers of groups whose rows belong together in all folds inside, or None.

    Those are the groups given. Folds that are runs of rows say that neighbours belong together, as
    in time order: then runs of rows do.
    """
    if groups is not None:
        return np.unique(np.asarray(groups), return_inverse=True)[1].ravel()
    if folds and all((np.diff(test) == 1).all() for _, test in folds):
        n_rows = 1 + max(int(rows.max()) for fold in folds for rows in fold)
        return np.arange(n_rows) * _N_RUNS // n_rows
    return None


def fit_folds(
    estimator: Any,
    X: Any,
    y: Array,
    folds: list[Fold],
    fit_params: Mapping[str, Any],
    n_jobs: int | None,
) -> list[Any]:
    """Return a copy of the estimator for each fold, fitted on its training rows."""
    return Parallel(n_jobs=n_jobs)(
        delayed(fit_copy)(estimator, X, y, fit_params, train) for train, _ in folds
    )


def fit_copy(
    estimator: Any, X: Any, y: Array, fit_params: Mapping[str, Any], rows: np.ndarray | None = None
) -> Any:
    """Return a copy of the estimator, fitted on some rows or on all."""
    if rows is not None:
        fit_params = rows_of_params(fit_params, len(y), rows)
        X, y = _safe_indexing(X, rows), y[rows]
    try:
        return clone(estimator).fit(X, y, **fit_params)
    except (TypeError, ValueError) as error:
        if not has_fields(y) or takes_outcomes(estimator):
            raise
        msg = (
            f"{type(estimator).__name__}.fit failed on a structured array of (event, time), which "
            "is passed on as it is for models of survival times "
            f"({type(error).__name__}: {str(error).rstrip('.')}). Pass Outcomes.of(y) instead: a "
            "model of numbers is fitted to the times, and calibrated by what was seen."
        )
        raise TypeError(msg) from error


def rows_of_params(fit_params: Mapping[str, Any], n_rows: int, rows: np.ndarray) -> dict[str, Any]:
    """Return parameters of a fit, of those that have a value per row the values of some rows."""
    return {
        name: _safe_indexing(value, rows) if np.shape(value)[:1] == (n_rows,) else value
        for name, value in fit_params.items()
    }


def as_weights(sample_weight: Any, n_rows: int) -> Array | None:
    """Return one checked weight per row, or None; a single number stands for equal weights."""
    if sample_weight is None:
        return None
    weights = as_float_array(sample_weight, "sample_weight")
    return check_weights(np.full(n_rows, weights) if weights.ndim == 0 else weights, n_rows)
