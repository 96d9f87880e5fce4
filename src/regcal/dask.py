"""The same fit and transform on Dask collections.

Partitions are summarised where they are, the summaries are merged in a tree, and the small problem
that is left is solved in the calling process. What is predicted stays lazy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial, reduce
from typing import Any

import numpy as np
from sklearn.base import clone

from regcal import metrics
from regcal._validation import Array, as_float_array, check_same_index
from regcal.calibrators import Calibrator, Observed, Targets
from regcal.covariates import Covariates
from regcal.distributions import Distribution, as_distribution
from regcal.tables import (
    CensoredColumns,
    IntervalColumns,
    ModelPredictions,
    NormalColumns,
    OutcomeColumns,
    QuantileColumns,
    SampleColumns,
    check_has_column,
)

__all__ = [
    "CensoredColumns",
    "IntervalColumns",
    "ModelPredictions",
    "NormalColumns",
    "QuantileColumns",
    "SampleColumns",
    "fit",
    "log_score",
    "map_dist",
    "predict_cdf",
    "predict_quantiles",
]

# So many summaries are merged in one task.
_FAN_IN = 8

ToDist = Callable[[Any], Any]
ReadOutcomes = Callable[[Sequence[Any]], Any]


# ---------------------------------------------------------------------------------------------- fit


def fit(
    calibrator: Calibrator,
    data: Any,
    to_dist: ToDist,
    y: Any,
    sample_weight: Any = None,
    covariates: Any = None,
) -> Calibrator:
    """Fit a calibrator on the rows of a Dask collection.

    The outcomes are read first, for the range that thresholds cover and for ends at which they
    pile up. Then every partition is summarised where it is. The result is that of
    `regcal.Calibrator.fit` on all rows, up to the width of fine cells if there are more than
    16 384, and does not depend on the partitions beyond that.

    Parameters
    ----------
    calibrator : Calibrator
        Is fitted, and returned.
    data : dask.dataframe.DataFrame or dask.array.Array of shape (n_rows, n_columns)
        Anything the predictions can be made of.
    to_dist : callable
        Makes predictions of a partition, a pandas frame or NumPy array: `NormalColumns`,
        `QuantileColumns`, `SampleColumns`, `ModelPredictions`, or a function of your own that
        returns anything `regcal.as_distribution` takes.
    y : column of `data`, `CensoredColumns` or `IntervalColumns` of it, or Dask series or array
        Outcomes, or what was seen of them. A collection has the partitions of the data, and two
        columns of it are lower and upper ends.
    sample_weight : column of `data`, or Dask series or array with the same partitions, optional
    covariates : column or sequence of columns of `data`, optional
        What else is known of the rows, for calibrators that look at it. They are found by the same
        names when the calibrator is applied; columns of an array are called ``x0``, ``x1`` and so
        on.

    Returns
    -------
    Calibrator

    Examples
    --------
    >>> import numpy as np
    >>> import dask.array as da
    >>> import regcal
    >>> from regcal.dask import NormalColumns, fit
    >>> rng = np.random.default_rng(0)
    >>> table = np.column_stack([np.zeros(500), np.ones(500), 2 * rng.normal(size=500)])
    >>> data = da.from_array(table, chunks=(100, 3))
    >>> fitted = fit(regcal.get_calibrator("scale"), data, NormalColumns(mean=0, std=1), y=2)
    >>> round(fitted.factor_, 1)
    2.0
    """
    dask = _import_dask()
    if not isinstance(calibrator, Calibrator):
        msg = f"Got {calibrator!r}. Pass a calibrator, such as regcal.get_calibrator('gpc')."
        raise TypeError(msg)
    parts = _partitions(data)
    read, collections = _outcomes(data, y)
    columns = [_partitions(one) for one in collections]
    weights = [None] * len(parts)
    if sample_weight is not None:
        weights = _partitions(_column(data, sample_weight))
    _check_numbers(parts, columns[0], weights)
    known = _covariate_names(data, covariates)
    outcomes = [list(one) for one in zip(*columns, strict=True)]
    rows = list(zip(outcomes, weights, strict=True))
    of_targets = dask.delayed(partial(_targets_of, read))
    targets = _computed([of_targets(number, *one) for number, one in enumerate(rows)])
    observe = dask.delayed(partial(_observed_of, clone(calibrator), to_dist, targets, read, known))
    pairs = zip(parts, rows, strict=True)
    observed = [observe(number, part, *one) for number, (part, one) in enumerate(pairs)]
    return calibrator.solve(_computed(observed))


def _targets_of(read: ReadOutcomes, number: int, columns: list[Any], weights: Any) -> Targets:
    if len(columns[0]) == 0:
        return Targets()
    with _placed(number, columns[0]):
        return Targets.of(read(columns), weights)


def _observed_of(
    calibrator: Calibrator,
    to_dist: ToDist,
    targets: Targets,
    read: ReadOutcomes,
    known: Sequence[Any] | None,
    number: int,
    part: Any,
    columns: list[Any],
    weights: Any,
) -> Observed:
    observed = calibrator.new_observed(targets)
    if len(columns[0]) == 0:
        return observed
    with _placed(number, part):
        _check_same_rows(part, *columns, weights)
        covariates = None if known is None else _covariates_of(part, known)
        return observed.add(to_dist(part), read(columns), weights, covariates)


@contextmanager
def _placed(number: int, part: Any) -> Iterator[None]:
    """Say in which partition something was wrong."""
    try:
        yield
    except ValueError as error:
        place = f"Partition {number}"
        if hasattr(part, "index"):
            place += f", whose index goes from {part.index[0]!r} to {part.index[-1]!r}"
        msg = f"{place}: {error}"
        raise ValueError(msg) from error


def _check_same_rows(part: Any, *others: Any) -> None:
    """Refuse series whose rows are not those of the frame."""
    if hasattr(part, "columns"):
        check_same_index({"the data": part, "y or sample_weight": dict(enumerate(others))})


def _computed(parts: list[Any]) -> Any:
    """Merge in a tree on the workers, and fetch the result."""
    dask = _import_dask()
    merge = dask.delayed(_merged)
    while len(parts) > 1:
        parts = [merge(parts[k : k + _FAN_IN]) for k in range(0, len(parts), _FAN_IN)]
    return dask.compute(parts[0])[0]


def _merged(parts: list[Any]) -> Any:
    return reduce(lambda one, other: one.merge(other), parts)


# --------------------------------------------------------------------------------- lazy predictions


def predict_quantiles(
    calibrator: Calibrator, data: Any, to_dist: ToDist, levels: Sequence[float]
) -> Any:
    """Return calibrated quantiles, lazily.

    Parameters
    ----------
    calibrator : Calibrator
        Fitted.
    data, to_dist
        As for `fit`.
    levels : sequence of float

    Returns
    -------
    Dask frame or array of shape (n_rows, n_levels)
        As `data`; a frame keeps the index, and its columns are the levels.

    Examples
    --------
    >>> import numpy as np
    >>> import dask.array as da
    >>> import regcal
    >>> from regcal.dask import NormalColumns, predict_quantiles
    >>> rows = np.array([[0.0, 1.0, 0.3], [5.0, 2.0, 1.0]])  # mean, std, outcome
    >>> identity = regcal.get_calibrator("identity").fit(regcal.Normal(*rows[:, :2].T), rows[:, 2])
    >>> data = da.from_array(rows, chunks=(1, 3))
    >>> predict_quantiles(identity, data, NormalColumns(0, 1), [0.1, 0.5]).compute().round(2)
    array([[-1.28,  0.  ],
           [ 2.44,  5.  ]])
    """
    points = np.atleast_1d(as_float_array(levels, "levels")).tolist()
    return map_dist(calibrator, data, to_dist, partial(_evaluated, "ppf", points), points)


def predict_cdf(
    calibrator: Calibrator, data: Any, to_dist: ToDist, thresholds: Sequence[float]
) -> Any:
    """Return the calibrated P(Y <= t) at thresholds, lazily.

    Parameters
    ----------
    calibrator : Calibrator
        Fitted.
    data, to_dist
        As for `fit`.
    thresholds : float or sequence of float

    Returns
    -------
    Dask frame or array of shape (n_rows, n_thresholds)
        As `data`; a frame keeps the index, and its columns are the thresholds.

    Examples
    --------
    >>> import numpy as np
    >>> import dask.array as da
    >>> import regcal
    >>> from regcal.dask import NormalColumns, predict_cdf
    >>> rows = np.array([[0.0, 1.0, 0.3], [5.0, 2.0, 1.0]])  # mean, std, outcome
    >>> identity = regcal.get_calibrator("identity").fit(regcal.Normal(*rows[:, :2].T), rows[:, 2])
    >>> data = da.from_array(rows, chunks=(1, 3))
    >>> predict_cdf(identity, data, NormalColumns(0, 1), 1.0).compute().round(3)
    array([[0.841],
           [0.023]])
    """
    points = np.atleast_1d(as_float_array(thresholds, "thresholds")).tolist()
    return map_dist(calibrator, data, to_dist, partial(_evaluated, "cdf", points), points)


def log_score(calibrator: Calibrator, data: Any, to_dist: ToDist, y: Any) -> Any:
    """Return the log density of each outcome under the calibrated prediction, lazily.

    As `regcal.log_score`: of a point mass its log, of an interval the log of its probability.

    Parameters
    ----------
    calibrator : Calibrator
        Fitted.
    data, to_dist, y
        As for `fit`.

    Returns
    -------
    Dask series or array of shape (n_rows,)

    Examples
    --------
    >>> import numpy as np
    >>> import dask.array as da
    >>> import regcal
    >>> from regcal.dask import NormalColumns, log_score
    >>> rows = np.array([[0.0, 1.0, 0.3], [5.0, 2.0, 1.0]])  # mean, std, outcome
    >>> identity = regcal.get_calibrator("identity").fit(regcal.Normal(*rows[:, :2].T), rows[:, 2])
    >>> data = da.from_array(rows, chunks=(1, 3))
    >>> log_score(identity, data, NormalColumns(0, 1), y=2).compute().round(3)
    array([-0.964, -3.612])
    """
    read, columns = _outcomes(data, y)
    score = partial(_log_scores, read)
    scores = map_dist(calibrator, data, to_dist, score, ["log_score"], *columns)
    return scores["log_score"] if _is_frame(data) else scores[:, 0]


def map_dist(
    calibrator: Calibrator,
    data: Any,
    to_dist: ToDist,
    function: Callable[..., Array],
    columns: Sequence[Any],
    *others: Any,
) -> Any:
    """Return anything that can be computed of calibrated distributions, lazily.

    Parameters
    ----------
    calibrator : Calibrator
        Fitted.
    data, to_dist
        As for `fit`.
    function : callable
        ``function(dist, *others)`` returns an array of shape (n_rows, n_columns).
    columns : sequence
        Names of the columns of the result.
    *others : Dask series or arrays with the same partitions
        Further arguments.

    Returns
    -------
    Dask frame or array of shape (n_rows, n_columns)

    Examples
    --------
    >>> import numpy as np
    >>> import dask.array as da
    >>> import regcal
    >>> from regcal.dask import NormalColumns, map_dist
    >>> rows = np.array([[0.0, 1.0], [5.0, 2.0]])
    >>> identity = regcal.get_calibrator("identity").fit(regcal.Normal(*rows.T), [0.1, 5.2])
    >>> spread = lambda dist: dist.std()[:, np.newaxis]
    >>> data = da.from_array(rows, chunks=(1, 2))
    >>> map_dist(identity, data, NormalColumns(0, 1), spread, ["std"]).compute()
    array([[1.],
           [2.]])
    """
    _import_dask()
    columns = list(columns)
    block = partial(_block, calibrator, to_dist, function, columns)
    if _is_frame(data):
        import pandas as pd

        meta = pd.DataFrame(columns=columns, dtype=float)
        return data.map_partitions(block, *others, meta=meta)
    import dask.array as da

    data = data.rechunk({1: -1})
    others = tuple(other.rechunk(data.chunks[:1])[:, np.newaxis] for other in others)
    chunks = (data.chunks[0], (len(columns),))
    return da.map_blocks(block, data, *others, dtype=float, chunks=chunks, meta=np.empty((0, 0)))


def _block(
    calibrator: Calibrator,
    to_dist: ToDist,
    function: Callable[..., Array],
    columns: list[Any],
    part: Any,
    *others: Any,
) -> Any:
    """Return what the function says of one partition, as a frame if it is one."""
    values = np.empty((0, len(columns)))
    if len(part):
        _check_same_rows(part, *others)
        learnt = calibrator.columns_
        known = None if learnt is None else Covariates.chosen(part, learnt.names)
        dist = calibrator.transform(as_distribution(to_dist(part)), known)
        values = function(dist, *map(np.ravel, others))
    if not hasattr(part, "columns"):
        return values
    import pandas as pd

    return pd.DataFrame(values, index=part.index, columns=columns)


def _evaluated(method: str, points: list[float], dist: Distribution) -> Array:
    return getattr(dist, method)(np.array([points]))


def _log_scores(read: ReadOutcomes, dist: Distribution, *columns: Array) -> Array:
    return metrics.log_score(read(columns), dist)[:, np.newaxis]


# ------------------------------------------------------------------------------------- collections


def _import_dask() -> Any:
    try:
        import dask
    except ImportError as error:
        msg = "regcal.dask needs Dask. Install it with: pip install 'regcal[dask]'"
        raise ImportError(msg) from error
    return dask


def _is_frame(data: Any) -> bool:
    if hasattr(data, "map_partitions") and hasattr(data, "npartitions"):
        return not hasattr(data, "chunks")
    return False


def _column(data: Any, column: Any) -> Any:
    """Return a column of the data by its name or number; collections are returned as they are."""
    if hasattr(column, "to_delayed"):
        return column
    check_has_column(data, column)
    return data[column] if _is_frame(data) else data[:, column]


def _covariate_names(data: Any, covariates: Any) -> list[Any] | None:
    """Return names or numbers of columns, after checking that the data have them."""
    if covariates is None:
        return None
    single = isinstance(covariates, str | int | np.integer)
    names = [covariates] if single else list(covariates)
    for name in names:
        check_has_column(data, name)
    return names


def _covariates_of(part: Any, names: Sequence[Any]) -> Covariates:
    if hasattr(part, "columns"):
        return Covariates.of(part[list(names)])
    return Covariates.chosen(part, names)


def _outcomes(data: Any, y: Any) -> tuple[ReadOutcomes, list[Any]]:
    """Return columns that tell outcomes, and what makes outcomes of a partition of them."""
    if isinstance(y, OutcomeColumns):
        return y.of_columns, [_column(data, name) for name in y.names]
    if hasattr(y, "to_delayed") and getattr(y, "ndim", 1) == 2 and y.shape[1] == 2:
        return _outcomes(y, IntervalColumns(*(y.columns if _is_frame(y) else (0, 1))))
    return _the_only, [_column(data, y)]


def _the_only(columns: Sequence[Any]) -> Any:
    return columns[0]


def _partitions(data: Any) -> list[Any]:
    if _is_frame(data):
        return list(data.to_delayed())
    if not hasattr(data, "to_delayed"):
        msg = (
            f"Got {type(data).__name__}. Pass a dask.dataframe.DataFrame or a dask.array.Array, "
            "or use Calibrator.fit for data in memory."
        )
        raise TypeError(msg)
    if data.ndim == 2:
        data = data.rechunk({1: -1})
    return list(data.to_delayed().ravel())


def _check_numbers(parts: list[Any], outcomes: list[Any], weights: list[Any]) -> None:
    if not len(parts) == len(outcomes) == len(weights):
        msg = (
            f"Data, y and sample_weight have {len(parts)}, {len(outcomes)} and {len(weights)} "
            "partitions. Repartition them alike, or pass y as a column of the data."
        )
        raise ValueError(msg)
