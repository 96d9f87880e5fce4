"""Coverage of a calibrated regressor in finite samples: which rows tell, and what they tell."""

import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from sklearn import get_config
from sklearn.base import BaseEstimator, clone
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import GroupKFold
from sklearn.utils import _safe_indexing
from sklearn.utils.parallel import Parallel, delayed

from regcal._random import as_generator
from regcal._validation import Array
from regcal.calibrators.conformal import ConformalLevels, TooFewRowsError, counts_of
from regcal.calibrators.few_rows import FewRowsWarning
from regcal.calibrators.held_out import HeldOut
from regcal.covariates import Covariates
from regcal.distributions import Distribution
from regcal.outcomes import Outcomes, has_fields
from regcal.regressor._folds import (
    Fold,
    as_weights,
    check_outcome_data,
    check_support,
    make_folds,
    route_metadata,
    rows_of_params,
    rows_together,
)

# Held-out rows without another wish: a quarter of all, but 100 if half of all are as many; with
# 1 000, coverage at 0.9 given these rows has a spread of 0.01, and more are better used for the
# model. benchmarks/guarantee.py, "share": with 100, 300, 1 000 and 4 000 rows the interval score is
# 1.9, 1.0, 0.8 and 0.0 % above that of all rows without a promise; a plain quarter 5.3 and 2.0 %
# with 100 and 300, a tenth 14 and 5 %.
_SHARE, _WANTED, _ENOUGH = 0.25, 100, 1000

# How to have more rows that tell.
_MORE_ROWS = {
    "split": "Hold out more rows by SplitGuarantee(rows=...)",
    "cross": "Fit it on more rows (cross holds out all of them in turn)",
}

# Two models are compared at these quantiles: the median, and one standard deviation to each side.
_COMPARED = np.array([[-1.0, 0.0, 1.0]])

# Outcomes farther out than this on the probit line say no more about how a model follows its rows.
_FARTHEST = 6.0


@dataclass(frozen=True)
class Difference:
    """How the fitted model differs from the models of the folds, on the rows these held out.

    In terms of what a fold's model says of a row, on the probit line: the fitted model's median is
    at `shifts`, and one of its standard deviations has the length `ratios`. It is about calibrated
    predictions and what a difference does to coverage; `Change` is about the models before that.

    Parameters
    ----------
    shifts, ratios : ndarray of shape (n_rows,)
    """

    shifts: Array
    ratios: Array

    @classmethod
    def between(
        cls, folds: Distribution, fitted: Distribution, levels: ConformalLevels
    ) -> "Difference":
        """Compare what models of folds and the fitted model say of the same rows.

        The fitted model has seen these rows, and its medians follow their outcomes: by a share of
        the distance that is the same for all rows, as leverage is. New rows do not have
        that, so it is taken out.
        """
        points = fitted.from_probit(_COMPARED)
        places = np.clip(
            _COMPARED,
            folds._evaluate("_probit_below", points, False),
            folds.probit(points),
        )
        below, shifts, above = np.clip(places, -_FARTHEST, _FARTHEST).T
        known = levels.low_ == levels.high_  # of a censored outcome there is nothing to follow
        outcomes = np.where(known, np.clip(levels.low_, -_FARTHEST, _FARTHEST), 0.0)
        weighted, tiny = levels.weights_ * outcomes, np.finfo(float).tiny
        followed = (weighted @ shifts) / max(weighted @ outcomes, tiny)
        return cls(shifts - followed * outcomes, np.maximum(0.5 * (above - below), tiny))

    def lost(self, levels: ConformalLevels, low: float, high: float) -> float:
        """Return by how much less an interval between two probits holds than those of folds.

        As it would be if the models of the folds were right about where outcomes lie.
        """
        upto, below = Shares(levels.high_, levels.weights_), Shares(levels.low_, levels.weights_)
        theirs = upto(np.array(high)) - below(np.array(low), "left")
        own = upto(self.shifts + self.ratios * high)
        own -= below(self.shifts + self.ratios * low, "left")
        return float(theirs - np.average(own, weights=levels.weights_))


class Shares:
    """The weighted empirical CDF of probits."""

    def __init__(self, values: Array, weights: Array) -> None:
        order = np.argsort(values)
        self.values = values[order]
        self.upto = np.append(0.0, np.cumsum(weights[order]) / weights.sum())

    def __call__(self, points: Array, side: Any = "right") -> Array:
        return self.upto[np.searchsorted(self.values, points, side=side)]


@dataclass(frozen=True)
class Guarantee:
    """What a fitted model can promise of its intervals and bounds.

    Attributes
    ----------
    kind : "split" or "cross"
    levels : ConformalLevels
        Learnt from rows that model, calibrator and selection have not seen.
    by : name, number or list of columns, optional
        Columns of X whose values make groups within which coverage holds.
    difference : Difference, optional
        How the fitted model differs from those that held the rows out; None if it is the same.

    Examples
    --------
    >>> from sklearn.linear_model import BayesianRidge
    >>> from regcal import CalibratedRegressorCV
    >>> from regcal.datasets import load_diabetes
    >>> data = load_diabetes()
    >>> model = CalibratedRegressorCV(BayesianRidge(), "scale", guarantee="split")
    >>> print(model.fit(data.X, data.y).guarantee_)
    guarantee from 110 rows that were held out of everything (split)
    """

    kind: str
    levels: ConformalLevels
    by: Any
    difference: Difference | None = field(default=None, repr=False)

    @property
    def exact(self) -> bool:
        """Whether coverage is proven for exchangeable rows, and not only close to it."""
        return self.difference is None

    def __str__(self) -> str:
        n_rows = f"{self.levels.n_rows_} rows"
        if self.exact:
            return f"guarantee from {n_rows} that were held out of everything ({self.kind})"
        return f"approximate coverage from {n_rows} that were held out in turn ({self.kind})"

    def interval(
        self, dist: Distribution, coverage: float, sample_weight: Any, groups: Covariates | None
    ) -> tuple[Array, Array]:
        """Return the ends of intervals; see `ConformalLevels.interval`."""
        with self._told_how():
            if self.difference is not None:
                widths = self.levels.half_widths(len(dist), coverage, sample_weight, groups)
                for width in np.unique(widths):
                    self._check_difference(coverage, -width, width)
            return self.levels.interval(dist, coverage, sample_weight, groups)

    def bounds(
        self, dist: Distribution, levels: Array, sample_weight: Any, groups: Covariates | None
    ) -> Array:
        """Return one-sided bounds; see `ConformalLevels.bounds`."""
        with self._told_how():
            for level in levels if self.difference is not None else []:
                probits = self.levels.probits(len(dist), level, sample_weight, groups)
                for probit in np.unique(probits):
                    low, high = (-np.inf, probit) if level >= 0.5 else (probit, np.inf)
                    self._check_difference(max(level, 1.0 - level), low, high)
            return self.levels.bounds(dist, levels, sample_weight, groups)

    @contextmanager
    def _told_how(self) -> Iterator[None]:
        """Say of too few rows how this kind of guarantee gets more."""
        try:
            yield
        except TooFewRowsError as error:
            raise error.with_way(_MORE_ROWS[self.kind]) from None

    def _check_difference(self, share: float, low: float, high: float) -> None:
        """Refuse levels of folds' models for a model that says something else.

        That is if its interval holds less of what the folds' models say by more than two standard
        errors of a coverage that is seen on so many rows. A difference within them is no larger
        than what anybody could see on these rows.
        """
        assert self.difference is not None
        weights = self.levels.weights_
        n_rows = weights.sum() ** 2 / (weights**2).sum()
        lost = self.difference.lost(self.levels, low, high)
        if lost > 2.0 * np.sqrt(share * (1.0 - share) / n_rows):
            msg = (
                f"cross cannot tell how to reach {share:g}: by what the models of the folds say, "
                f"the model that was fitted on all rows would hold {lost:.2f} less (its spread is "
                f"{np.median(self.difference.ratios):.2f} times theirs in the median). Pass "
                'guarantee="split", or a model that changes less with the number of rows.'
            )
            raise ValueError(msg)


class GuaranteeMaker(BaseEstimator, ABC):
    """A way to hold rows out, from which a guarantee follows; within groups `by` columns."""

    by: Any

    @abstractmethod
    def prepare(self, model: Any, rows: "GivenRows", folds: list[Fold] | None) -> Guarantee:
        """Fit the model, and look at rows that it has not seen.

        Parameters
        ----------
        model : CalibratedRegressorCV
            Gets what was learnt.
        rows : GivenRows
        folds : list of pairs of ndarray, optional
            Folds of the model's splitter, if it has one.

        Returns
        -------
        Guarantee
        """


class SplitGuarantee(GuaranteeMaker):
    """A part of the rows is held out of model, calibrator and selection: coverage is proven.

    To be passed to `CalibratedRegressorCV` as ``guarantee=``; "split" stands for one without
    parameters.

    Parameters
    ----------
    rows : float or int, optional
        Share (a float below 1) or number (an int) of rows to hold out. Without, a quarter of them,
        but 100 if half of them are as many, and at most 1 000. Where `cv` of the regressor is a
        splitter, the last of its folds is held out instead, so that groups stay together and later
        rows are the later ones.
    by : name, number or list of columns, optional
        Names or numbers of columns of X: coverage then holds within each group of rows with
        equal values (Mondrian).

    Examples
    --------
    >>> from sklearn.linear_model import BayesianRidge
    >>> from regcal import CalibratedRegressorCV, SplitGuarantee
    >>> from regcal.datasets import load_concrete
    >>> data = load_concrete()
    >>> model = CalibratedRegressorCV(BayesianRidge(), "pit", guarantee=SplitGuarantee(rows=200))
    >>> ends = model.fit(data.X, data.y).predict_interval(data.X[:2], 0.9, guarantee=True)
    >>> ends.shape
    (2, 2)
    """

    def __init__(self, rows: float | None = None, by: Any = None) -> None:
        self.rows = rows
        self.by = by

    def prepare(self, model: Any, rows: "GivenRows", folds: list[Fold] | None) -> Guarantee:
        """Fit the model on some rows and look at the others."""
        if folds is None:
            least = 1 if isinstance(model.estimator, FrozenEstimator) else 2 * int(model.cv)
            train, test = self.parts(len(rows), rows.groups, model.random_state, least)
        else:
            train, test = folds[-1]
        part = _fitted_part(model, rows, train)
        adopt(model, part)
        held_out = rows.held_out_of(part, test, self.by)
        return Guarantee("split", rows.levels_of(held_out, test, model.random_state), self.by)

    def parts(self, n_rows: int, groups: Any = None, random_state: Any = 0, least: int = 1) -> Fold:
        """Return which rows are kept and which are held out, at random.

        Parameters
        ----------
        n_rows : int
        groups : array-like of shape (n_rows,), optional
            Rows of a group stay together.
        random_state : int, default=0
        least : int, default=1
            Rows that have to be kept.

        Returns
        -------
        kept, held_out : ndarray
        """
        count = self._count(n_rows)
        together = rows_together([], groups)
        units = np.arange(n_rows) if together is None else together
        place = as_generator(random_state).permutation(units.max() + 1)[units]
        held = place <= np.sort(place)[np.clip(count, 1, n_rows) - 1]
        n_held = int(held.sum()) if count > 0 else 0
        if n_held < 1 or n_rows - n_held < least:
            msg = (
                f"guarantee: rows={self.rows} holds out {n_held} of n_samples={n_rows} rows, "
                f"groups as a whole, and leaves {n_rows - n_held}. Hold out at least 1, and leave "
                f"at least {least} to fit the model and its calibrator: change rows=."
            )
            raise ValueError(msg)
        return np.flatnonzero(~held), np.flatnonzero(held)

    def _count(self, n_rows: int) -> int:
        if self.rows is None:
            return min(_ENOUGH, n_rows // 2, max(int(_SHARE * n_rows), _WANTED))
        whole = isinstance(self.rows, int | np.integer) and not isinstance(self.rows, bool)
        if whole and self.rows >= 1:
            return int(self.rows)
        if isinstance(self.rows, float | np.floating) and 0 < self.rows < 1:
            return int(self.rows * n_rows)
        msg = (
            f"SplitGuarantee: rows={self.rows!r} is neither a share of rows, a float between 0 and "
            "1, nor a number of rows, an int of at least 1. Pass rows=0.25, rows=200 or rows=None."
        )
        raise ValueError(msg)


class CrossGuarantee(GuaranteeMaker):
    """Every row is held out once, from a copy of model, calibrator and selection: approximate.

    All rows serve both the model and its levels. The levels are those of the copies,
    each of which was fitted on fewer rows than the model itself, so that nothing is proven; where
    the model says something else than they do, intervals are refused. To be passed to
    `CalibratedRegressorCV` as ``guarantee=``; "cross" stands for one without parameters.

    Parameters
    ----------
    cv : int, default=5
        Number of copies. Where `cv` of the regressor is a splitter, it makes the folds.
    by : name, number or list of columns, optional
        Names or numbers of columns of X: coverage then holds within each group of rows with
        equal values (Mondrian).

    Examples
    --------
    >>> from sklearn.linear_model import BayesianRidge
    >>> from regcal import CalibratedRegressorCV, CrossGuarantee
    >>> from regcal.datasets import load_diabetes
    >>> data = load_diabetes()
    >>> model = CalibratedRegressorCV(BayesianRidge(), "scale", guarantee=CrossGuarantee(cv=4))
    >>> print(model.fit(data.X, data.y).guarantee_)
    approximate coverage from 442 rows that were held out in turn (cross)
    """

    def __init__(self, cv: int = 5, by: Any = None) -> None:
        self.cv = cv
        self.by = by

    def prepare(self, model: Any, rows: "GivenRows", folds: list[Fold] | None) -> Guarantee:
        """Fit the model on all rows, and copies of it on folds."""
        if folds is None:
            cv = self.cv if rows.groups is None else GroupKFold(self.cv)
            split = {"groups": rows.groups}
            folds = make_folds(cv, rows.X, rows.y, split, model.random_state)
        everything = np.arange(len(rows))
        parts = Parallel(n_jobs=model.n_jobs)(
            delayed(_fitted_part)(model, rows, train)
            for train in [everything, *(train for train, _ in folds)]
        )
        adopt(model, parts[0])
        tests, rows = [test for _, test in folds], rows.once_in([test for _, test in folds])
        held_out = [
            rows.held_out_of(part, test, self.by)
            for part, test in zip(parts[1:], tests, strict=True)
        ]
        again = [rows.held_out_of(parts[0], test, self.by) for test in tests]
        said, fitted = HeldOut.joined(held_out), HeldOut.joined(again)
        levels = rows.levels_of(said, np.concatenate(tests), model.random_state)
        return Guarantee(
            "cross", levels, self.by, Difference.between(said.dist, fitted.dist, levels)
        )


_BY_NAME: dict[str, type[GuaranteeMaker]] = {
    "split": SplitGuarantee,
    "cross": CrossGuarantee,
}


def given_guarantee(guarantee: Any) -> GuaranteeMaker | None:
    """Return what a user passed as ``guarantee=`` as an object."""
    if guarantee is None or isinstance(guarantee, GuaranteeMaker):
        return guarantee
    if not isinstance(guarantee, str) or guarantee not in _BY_NAME:
        msg = (
            f'guarantee must be None, "split", "cross", a SplitGuarantee or a CrossGuarantee, got '
            f"{guarantee!r}."
        )
        raise ValueError(msg)
    return _BY_NAME[guarantee]()


@dataclass(frozen=True)
class GivenRows:
    """What `fit` was given, row by row.

    What rows count where they judge is apart from `sample_weight`, by which they teach: equal
    weights count as none there, whatever their `unit`, which is None if they differ.
    """

    X: Any
    y: Any
    seen: Outcomes
    sample_weight: Array | None
    groups: Any
    fit_params: Mapping[str, Any]
    counts: Array
    unit: float | None

    def __len__(self) -> int:
        return len(self.seen)

    @property
    def given(self) -> Any:
        """The outcomes in a form that `fit` takes."""
        return self.y if has_fields(self.y) or self.seen.exact_rows.all() else self.seen

    def take(self, rows: np.ndarray) -> "GivenRows":
        """Return some of the rows."""
        weights, groups = (
            None if values is None else _safe_indexing(values, rows)
            for values in (self.sample_weight, self.groups)
        )
        params = rows_of_params(self.fit_params, len(self), rows)
        X = _safe_indexing(self.X, rows)
        y, seen, counts = self.y[rows], self.seen[rows], self.counts[rows]
        return GivenRows(X, y, seen, weights, groups, params, counts, self.unit)

    def held_out_of(self, model: Any, rows: np.ndarray, by: Any) -> HeldOut:
        """Return what a model says of some of the rows, those of weight 0 left out."""
        counted = rows[self.counts[rows] > 0]
        if not len(counted):
            msg = (
                f"All {len(rows)} rows that are held out have weight 0, so that none tells how "
                "often intervals hold. Hold out rows with positive weights."
            )
            raise ValueError(msg)
        own = self.take(counted)
        groups = groups_of(model, own.X, by)
        return HeldOut(model.predict_dist(own.X), own.seen, own.counts, groups)

    def levels_of(self, held_out: HeldOut, rows: np.ndarray, random_state: Any) -> ConformalLevels:
        """Return what some of the rows say about the levels of models that have not seen them."""
        n_rows = len(np.unique(rows[self.counts[rows] > 0]))
        return ConformalLevels(random_state=random_state).keep(held_out, n_rows, self.unit)

    def once_in(self, parts: list[np.ndarray]) -> "GivenRows":
        """Return the rows with counts that a row has in all parts together."""
        times = np.bincount(np.concatenate(parts), minlength=len(self))
        if times.max() < 2:
            return self
        return replace(self, counts=self.counts / np.maximum(times, 1))


def fit_with_guarantee(
    model: Any, X: Any, y: Any, sample_weight: Any, groups: Any, fit_params: Mapping[str, Any]
) -> None:
    """Fit a calibrated regressor, and prepare what its ``guarantee`` asks for.

    Parameters
    ----------
    model : CalibratedRegressorCV
    X, y, sample_weight, groups, fit_params
        As for its `fit`.
    """
    guarantee = given_guarantee(model.guarantee)
    assert guarantee is not None
    X, y, seen = check_outcome_data(model, X, y)
    weights = as_weights(sample_weight, len(seen))
    counted = np.ones(len(seen)) if weights is None else weights
    check_support(model, seen, counted)
    rows = GivenRows(X, y, seen, weights, groups, fit_params, *counts_of(counted))
    _check_by(guarantee.by)
    groups_of(model, X, guarantee.by)  # to be told of wrong columns before anything is fitted
    model.guarantee_ = guarantee.prepare(model, rows, _folds_of_splitter(model, rows))


def adopt(model: Any, fitted: Any) -> None:
    """Give a model all that another one has learnt, and nothing else of what it had learnt."""
    for name in [name for name in vars(model) if name.endswith("_")]:
        delattr(model, name)
    vars(model).update({name: vars(fitted)[name] for name in vars(fitted) if name.endswith("_")})


def _folds_of_splitter(model: Any, rows: GivenRows) -> list[Fold] | None:
    """Return the folds of the model's own splitter; None if it has a number of folds."""
    if isinstance(model.cv, int | np.integer):
        return None
    if not hasattr(model.cv, "split"):
        msg = (
            "A guarantee makes folds within folds, which a list of row numbers cannot tell. Pass a "
            "splitter such as GroupKFold or TimeSeriesSplit as cv, or a number of folds."
        )
        raise ValueError(msg)
    routing = get_config()["enable_metadata_routing"]
    routed = route_metadata(model, routing, rows.sample_weight, rows.groups, rows.fit_params)
    return make_folds(model.cv, rows.X, rows.y, routed.splitter.split, model.random_state)


def _fitted_part(model: Any, rows: GivenRows, part: np.ndarray) -> Any:
    """Return a copy of the model without a guarantee, fitted on a part of the rows."""
    own = rows.take(part)
    copy = clone(model).set_params(guarantee=None)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FewRowsWarning)  # the model says it, once
        return copy.fit(own.X, own.given, own.sample_weight, own.groups, **own.fit_params)


def _check_by(by: Any) -> None:
    """Refuse what names no columns."""
    if by is None or isinstance(by, str | int | np.integer):
        return
    if not isinstance(by, Iterable) or not len(list(by)):
        msg = (
            f"guarantee: by={by!r} names no columns. Pass a name, a number or a list of columns of "
            "X, or None for no groups; groups that a function tells go into a column of X."
        )
        raise ValueError(msg)


def groups_of(model: Any, X: Any, by: Any) -> Covariates | None:
    """Return the columns of X that make groups, if any do."""
    if by is None:
        return None
    return Covariates.chosen(X, by, getattr(model, "feature_names_in_", None))
