"""What is said about training rows by models that have not seen them."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.model_selection import GroupKFold
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import check_consistent_length, has_fit_parameter

from regcal.adapters import predict_dist
from regcal.distributions import Distribution, concatenate
from regcal.outcomes import Outcomes, has_fields, is_interval_data
from regcal.regressor._folds import fit_folds, make_folds, takes_outcomes


def cross_val_predict_dist(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    groups: Any = None,
    cv: Any = 5,
    n_jobs: int | None = None,
    params: Mapping[str, Any] | None = None,
    random_state: int = 0,
) -> Distribution:
    """Return the distribution of every row as predicted by a copy that has not seen the row.

    The copy is of the whole estimator. Of a `CalibratedRegressorCV`, neither the model nor the
    calibrator nor the choice of the method has seen the row, so that scores, audits and reports
    of the result are honest. They are those of copies that were fitted on fewer rows. Only a model
    in a `sklearn.frozen.FrozenEstimator` is not fitted again: what it has seen, it has seen.

    Parameters
    ----------
    estimator : estimator
        Anything whose fitted form `predict_dist` understands. It is not changed.
    X : array-like or frame of shape (n_rows, n_features)
    y : array-like of shape (n_rows,), Outcomes, or a structured array of (event, time)
        An estimator that does not take `Outcomes` is fitted to numbers: of an interval, to the end
        that is known or to the middle. Structured arrays are passed on as they are.
    groups : array-like of shape (n_rows,), optional
        Rows of a group are held out together; also for `fit`, if it takes groups.
    cv : int or splitter, default=5
        Number of folds, dealt at random as `random_state` says, or a splitter of scikit-learn that
        holds out every row once.
    n_jobs : int, optional
        Number of copies fitted at once, through joblib.
    params : mapping, optional
        More for `fit`, such as ``{"sample_weight": weights}``.
    random_state : int, default=0
        Decides how a number of folds deals the rows.

    Returns
    -------
    Distribution
        In the order of the rows of `X`.

    Examples
    --------
    >>> from sklearn.linear_model import BayesianRidge
    >>> import regcal
    >>> from regcal.datasets import load_diabetes
    >>> data = load_diabetes()
    >>> model = regcal.CalibratedRegressorCV(BayesianRidge(), "scale")
    >>> dist = regcal.cross_val_predict_dist(model, data.X, data.y)
    >>> regcal.crps(data.y, dist).mean().round()
    np.float64(31.0)
    """
    seen = Outcomes.of(y)
    if not has_fields(y):
        y = seen if is_interval_data(y) and takes_outcomes(estimator) else seen.values
    check_consistent_length(X, seen.lower, groups)
    own = dict(params or {})
    if groups is not None:
        cv = GroupKFold(cv) if isinstance(cv, int | np.integer) else cv
        if has_fit_parameter(estimator, "groups"):
            own["groups"] = groups
    folds = make_folds(cv, X, seen.values, {"groups": groups}, random_state)
    held_out = np.concatenate([test for _, test in folds])
    if not np.array_equal(np.sort(held_out), np.arange(len(seen))):
        msg = (
            f"The splitter {cv!r} holds out {len(np.unique(held_out))} of {len(seen)} rows, some "
            "of them more than once or none. Pass one that holds out every row once, such as KFold."
        )
        raise ValueError(msg)
    models = fit_folds(estimator, X, y, folds, own, n_jobs)
    parts = [
        predict_dist(model, _safe_indexing(X, test))
        for model, (_, test) in zip(models, folds, strict=True)
    ]
    return concatenate(parts)[np.argsort(held_out)]
