"""Levels that hold: order statistics of held-out rows move those of intervals and bounds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import ceil
from typing import Any, Self

import numpy as np
from scipy.special import ndtr, ndtri
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from regcal._inspection import Auditable
from regcal._random import uniforms_by_order
from regcal._validation import Array, as_float_array, check_weights
from regcal.calibrators.held_out import HeldOut
from regcal.calibrators.order_statistics import ROUNDING, Scores, Side, fairly_missed
from regcal.covariates import Covariates
from regcal.distributions import Distribution, as_distribution
from regcal.outcomes import Outcomes

# Ends move outwards by this much on the probit line, so that what lies in a hole of a predictive
# distribution, where the CDF is flat, is held by the interval that reaches its probability. It
# changes coverage by less than 1e-9.
_OUTWARDS = 1e-9


class ConformalLevels(Auditable, BaseEstimator):
    """Intervals and one-sided bounds with finite-sample coverage, from held-out rows.

    Whatever the distributions are, an interval holds the outcome of a new row with at least the
    probability asked for, if the new row and the rows given to `fit` are exchangeable, and if
    neither the model nor its calibrator nor the choice of either has seen those rows. Only levels
    move: an interval is a central one of the row's own distribution, of another nominal coverage,
    and a bound is a quantile at another level. Densities and probabilities stay as they are.

    Point masses are held or not as a whole, so that coverage may be larger than asked for: levels
    are not moved inwards to use that up, since rows without masses would pay for it. Of a
    censored outcome the end counts that is worse, so that coverage holds whatever is behind it.

    Parameters
    ----------
    random_state : int, RandomState, Generator or None, default=0
        Draws where outcomes lie on point masses.

    Attributes
    ----------
    low_, high_ : ndarray of shape (n_rows,)
        Probits of the outcomes under their distributions; they differ where one is censored.
    lower_, upper_ : Side
        What they say about lower and about upper ends.
    weights_ : ndarray of shape (n_rows,)
        As given if they differ; 1 for each row if they are all equal.
    weighted_ : bool
        Whether weights differ, so that new rows need weights too.
    unit_ : float
        What each row given to `fit` weighs if weights are equal; 1 without weights, or if they
        differ.
    n_rows_ : int
        Number of rows that tell, whatever they weigh.
    groups_ : ndarray of shape (n_rows, n_columns), or None
        Numbers that tell the groups of rows apart, if there are groups.
    names_ : tuple of str
        Names of these columns.

    Examples
    --------
    >>> import numpy as np
    >>> from regcal import ConformalLevels, Normal
    >>> rng = np.random.default_rng(0)
    >>> said = Normal(np.zeros(199), 1.0)  # the spread is 2 in truth
    >>> levels = ConformalLevels().fit(said, 2.0 * rng.normal(size=199))
    >>> low, high = levels.interval(Normal([5.0], 1.0), coverage=0.9)
    >>> low.round(1), high.round(1)
    (array([2.]), array([8.]))
    >>> levels.bounds(Normal([5.0], 1.0), [0.05, 0.95]).round(1)
    array([[2. , 8.2]])
    """

    unit_ = 1.0  # in files from before it was kept

    def __init__(self, *, random_state: Any = 0) -> None:
        self.random_state = random_state

    def fit(self, dist: Any, y: Any, sample_weight: Any = None, by: Any = None) -> Self:
        """Keep how far out the outcomes of held-out rows lie.

        Parameters
        ----------
        dist : Distribution or anything `as_distribution` takes
            Predictions as they are used later: calibrated, if they are calibrated then.
        y : array-like of shape (n_rows,), Outcomes, or a structured array of (event, time)
        sample_weight : array-like of shape (n_rows,), optional
            How much more often such rows come where new rows come from: the ratio of the two
            densities, in any unit. If they differ, pass the weights of new rows as well: 1 if
            weights are numbers of rows. Equal weights count as none, and new rows need none then.
        by : frame, mapping or array-like of shape (n_rows,) or (n_rows, n_columns), optional
            Groups within each of which coverage is to hold (Mondrian): rows with equal values.

        Returns
        -------
        self
        """
        rows = HeldOut.checked(dist, y, sample_weight, by)
        counts, unit = counts_of(rows.weights)
        return self.keep(replace(rows, weights=counts), len(rows), unit)

    def keep(self, rows: HeldOut, n_rows: int, unit: float | None) -> Self:
        """Keep how far out the outcomes of rows lie whose weights are in the unit of new rows.

        Parameters
        ----------
        rows : HeldOut
        n_rows : int
            How many they are; fewer than in `rows` where some are there several times.
        unit : float or None
            The weight of a new row that counts 1; None if new rows have weights as `rows` have.

        Returns
        -------
        self
        """
        self.lower_, self.upper_ = _sides(rows.dist, rows.seen, self.random_state)
        self.weights_, self.n_rows_ = rows.weights, n_rows
        self.weighted_, self.unit_ = unit is None, 1.0 if unit is None else unit
        self.names_ = () if rows.covariates is None else rows.covariates.names
        self.groups_ = None if rows.covariates is None else _keys_of(rows.covariates)
        return self

    @property
    def low_(self) -> Array:
        """Probits of the lower ends of the outcomes."""
        return -self.lower_.drawn

    @property
    def high_(self) -> Array:
        """Probits of the upper ends of the outcomes."""
        return self.upper_.drawn

    def interval(
        self, dist: Any, coverage: float = 0.9, sample_weight: Any = None, by: Any = None
    ) -> tuple[Array, Array]:
        """Return the ends of central intervals that hold the outcome.

        Parameters
        ----------
        dist : Distribution or anything `as_distribution` takes
            Predictions for new rows.
        coverage : float, default=0.9
            Probability with which an interval holds its outcome, at least.
        sample_weight : array-like of shape (n_rows,), optional
            Weights of the new rows, in the unit of those given to `fit`; needed if those differ,
            and the same as those if they are equal.
        by : as in `fit`, optional
            The groups of the new rows, if `fit` was given groups.

        Returns
        -------
        low, high : ndarray of shape (n_rows,)
        """
        dist = as_distribution(dist)
        probits = self.half_widths(len(dist), coverage, sample_weight, by)
        ends = dist.from_probit(np.column_stack([-probits, probits]))
        return ends[:, 0], ends[:, 1]

    def bounds(self, dist: Any, levels: Any, sample_weight: Any = None, by: Any = None) -> Array:
        """Return one-sided bounds.

        At a level of 1/2 or more it is an upper bound: the outcome is at most this value with at
        least that probability. Below 1/2 it is a lower bound: the outcome is at least this value
        with at least the probability 1 - level.

        Parameters
        ----------
        dist : Distribution or anything `as_distribution` takes
            Predictions for new rows.
        levels : array-like of shape (n_levels,)
        sample_weight, by
            As in `interval`.

        Returns
        -------
        ndarray of shape (n_rows, n_levels)
        """
        dist = as_distribution(dist)
        columns = np.atleast_1d(as_float_array(levels, "levels"))
        probits = [self.probits(len(dist), level, sample_weight, by) for level in columns]
        return dist.from_probit(np.column_stack(probits)) if probits else np.empty((len(dist), 0))

    def half_widths(
        self, n_rows: int, coverage: float, sample_weight: Any = None, by: Any = None
    ) -> Array:
        """Return, on the probit line, how far the ends of intervals are from the medians.

        Parameters
        ----------
        n_rows : int
            Number of new rows.
        coverage, sample_weight, by
            As in `interval`.

        Returns
        -------
        ndarray of shape (n_rows,)
        """
        check_is_fitted(self, "weights_")
        name = f"A coverage of {_level(coverage, 'coverage'):g}"
        # an interval of no width is the median
        asked = Asked(coverage, (self.lower_, self.upper_), ndtri(0.5 + 0.5 * coverage), 0.0, name)
        return self._moved(asked, n_rows, sample_weight, by)

    def probits(
        self, n_rows: int, level: float, sample_weight: Any = None, by: Any = None
    ) -> Array:
        """Return where one-sided bounds are on the probit line.

        Parameters
        ----------
        n_rows : int
            Number of new rows.
        level : float
        sample_weight, by
            As in `interval`.

        Returns
        -------
        ndarray of shape (n_rows,)
        """
        check_is_fitted(self, "weights_")
        upper, z = _level(level, "levels") >= 0.5, ndtri(level)
        if upper:
            asked = Asked(
                level, (self.upper_,), z, -np.inf, f"An upper bound at the level {level:g}"
            )
            return self._moved(asked, n_rows, sample_weight, by)
        name = f"A lower bound at the level {level:g}"
        asked = Asked(1.0 - level, (self.lower_,), -z, -np.inf, name)
        return -self._moved(asked, n_rows, sample_weight, by)

    def _moved(self, asked: Asked, n_rows: int, sample_weight: Any, by: Any) -> Array:
        """Return how far out the ends of each new row have to be."""
        new_weights = self._new_weights(sample_weight, n_rows)
        reached = np.empty(n_rows)
        for known, new, group in self._cells(n_rows, by):
            sides = [side.take(known, asked.least) for side in asked.sides]
            outer = np.maximum.reduce([side.held for side in sides])
            scores = Scores(outer, self.weights_[known])
            promised = scores.reached(asked.share, new_weights[new])
            if np.isnan(promised).any():
                heaviest = int(new[np.argmax(new_weights[new])])
                row = (heaviest, float(new_weights[heaviest])) if self.weighted_ else None
                total = float(scores.weights.sum())
                raise _too_few(total, asked.share, row, asked.name + group)
            told = Scores(outer, np.ones(len(known))) if self.weighted_ else scores
            _check_finite_ends(promised, told, asked.name + group)
            reached[new] = _fair_place(asked, sides, scores.weights, new_weights[new], promised)
        return reached + _OUTWARDS

    def _new_weights(self, sample_weight: Any, n_rows: int) -> Array:
        """Return weights of new rows in the unit of those of the held-out rows."""
        if sample_weight is None:
            if self.weighted_:
                low, high = self.weights_.min(), self.weights_.max()
                msg = (
                    f"fit was given weights (of the held-out rows from {low:g} to {high:g}), and "
                    "the new rows have none: what holds for them depends on their weights. Pass "
                    "sample_weight= of the new rows, ratios of densities in the same unit; 1 for "
                    "each, if the weights of fit are numbers of rows."
                )
                raise ValueError(msg)
            return np.ones(n_rows)
        given = as_float_array(sample_weight, "sample_weight")
        if (given <= 0).any():
            first = int(np.flatnonzero(given <= 0)[0])
            msg = (
                f"sample_weight of the new row {first} is {given.flat[first]:g}; weights of new "
                "rows must be positive: by a weight of 0 no such row ever comes, so that nothing "
                "can be promised of it. Leave such rows out."
            )
            raise ValueError(msg)
        weights = check_weights(given, n_rows)
        if self.weighted_:
            return weights
        other = np.flatnonzero(np.abs(weights - self.unit_) > ROUNDING * self.unit_)
        if len(other):
            msg = (
                f"The new row {other[0]} has weight {weights[other[0]]:g}, and the rows of fit "
                f"{self.unit_:g} each: equal weights count as none, so that the unit of others is "
                "not known. Pass sample_weight= to fit as well, in the same unit and not all "
                "equal, or none here."
            )
            raise ValueError(msg)
        return np.ones(n_rows)

    def _cells(self, n_rows: int, by: Any) -> Iterator[tuple[np.ndarray, np.ndarray, str]]:
        """Yield held-out rows and new rows of the same group, and the group in words."""
        new = self._read(by, n_rows)
        if new is None:
            yield np.arange(len(self.weights_)), np.arange(n_rows), ""
            return
        groups, first, place = np.unique(
            _keys_of(new), axis=0, return_index=True, return_inverse=True
        )
        for number, (group, row) in enumerate(zip(groups, first, strict=True)):
            known = np.flatnonzero((self.groups_ == group).all(axis=1))
            words = f" in the group {_in_words(new, int(row))}"
            if not len(known):
                msg = (
                    f"Nothing is promised{words}: none of the held-out rows is of it. Hold out "
                    "such rows, or make groups that contain them."
                )
                raise ValueError(msg)
            yield known, np.flatnonzero(place.ravel() == number), words

    def _read(self, by: Any, n_rows: int) -> Covariates | None:
        if by is None and not self.names_:
            return None
        if by is None or not self.names_:
            told = f"has groups by {', '.join(self.names_)}" if self.names_ else "has no groups"
            msg = f"This {type(self).__name__} {told}. Pass by= to both, or to none: fit and this."
            raise ValueError(msg)
        new = Covariates.of(by, n_rows)
        missing = [name for name in self.names_ if name not in new.names]
        if missing:
            msg = f"by has no column {missing[0]!r}. Pass the columns {', '.join(self.names_)}."
            raise ValueError(msg)
        return Covariates(tuple(new[name] for name in self.names_))


@dataclass(frozen=True)
class Asked:
    """What is asked for: ends that hold outcomes with probability `share`.

    `place` is where they are if the model is right, and `least` the nearest they may be.
    """

    share: float
    sides: tuple[Side, ...]
    place: float
    least: float
    name: str


def _fair_place(
    asked: Asked, sides: list[Side], weights: Array, new_weights: Array, promised: Array
) -> Array:
    """Return how far out ends are put, which is not nearer than promised.

    Outcomes on point masses leave room: by `held` they are inside as soon as possible, by `drawn`
    as often as if there were no masses. In between, what a right model has is as good as any, and
    so it is where ends miss no more than they may however near they are.
    """
    rests = [side.rests for side in sides]
    nearest, farthest = (
        np.fmax(fairly_missed(scores, rests, weights, asked.share, new_weights), promised)
        for scores in ([side.held for side in sides], [side.likely for side in sides])
    )
    return np.clip(asked.place, nearest, np.where(farthest == -np.inf, asked.place, farthest))


def _sides(dist: Distribution, seen: Outcomes, random_state: Any) -> tuple[Side, Side]:
    """Return what outcomes say about lower and about upper ends.

    The quantile at a level v is at most y where v <= F(y), and at least y where v > F(y-).
    """
    low, high = probits_of(dist, seen, random_state)
    first, last = dist.from_probit(np.array([[-np.inf, np.inf]])).T
    below, last_below = (
        dist._evaluate("_probit_below", points[:, np.newaxis], True)
        for points in (seen.upper, last)
    )
    lower = Side(-dist.probit(seen.lower), -low, -dist.probit(first))
    return lower, Side(below, high, last_below)


def probits_of(dist: Distribution, seen: Outcomes, random_state: Any = 0) -> tuple[Array, Array]:
    """Return the probits between which each outcome lies.

    Without point masses both are the probit of the outcome. At a mass it is that of a draw v
    between F(y-) and F(y), which is uniform if the model is right.

    Of a censored outcome they are those of its ends: the outcome may be anywhere inside.

    Examples
    --------
    >>> from regcal import Clipped, Normal, Outcomes
    >>> from regcal.calibrators.conformal import probits_of
    >>> rain = Clipped(Normal([0.0, 0.0, 0.0], 1.0), low=0.0)
    >>> low, high = probits_of(rain, Outcomes([0.0, 1.0, 1.0], [0.0, 1.0, 3.0]))
    >>> low.round(2), high.round(2)
    (array([-0.07,  1.  ,  1.  ]), array([-0.07,  1.  ,  3.  ]))
    """
    below = dist._evaluate("_probit_below", seen.lower[:, np.newaxis], True)
    upto = dist.probit(seen.upper)
    rows = np.flatnonzero(seen.exact_rows & (below < upto))
    drawn = _drawn_between(below[rows], upto[rows], random_state)
    low, high = below.copy(), upto.copy()
    low[rows], high[rows] = drawn, drawn
    return low, high


def _drawn_between(below: Array, upto: Array, random_state: Any) -> Array:
    """Return probits of levels drawn between those of two probits."""
    shares = uniforms_by_order(below, upto, random_state)
    lower, upper = (
        (1.0 - shares) * ndtr(side * below) + shares * ndtr(side * upto) for side in (1.0, -1.0)
    )
    return np.where(lower < upper, ndtri(lower), -ndtri(upper))


def rows_needed(share: float) -> int:
    """Return how many held-out rows a probability needs at least.

    Examples
    --------
    >>> from regcal.calibrators.conformal import rows_needed
    >>> rows_needed(0.9), rows_needed(0.95), rows_needed(0.99)
    (9, 19, 99)
    """
    return ceil(share / (1.0 - share) * (1.0 - ROUNDING))


def counts_of(weights: Array) -> tuple[Array, float | None]:
    """Return what rows count, and the weight that counts 1 if all are equal, which is as none.

    Examples
    --------
    >>> import numpy as np
    >>> from regcal.calibrators.conformal import counts_of
    >>> counts_of(np.array([1000.0, 0.0, 1000.0]))
    (array([1., 0., 1.]), 1000.0)
    """
    positive, largest = weights > 0, float(weights.max())
    if weights[positive].min() < largest * (1.0 - ROUNDING):
        return weights, None
    return positive.astype(float), largest


def _check_finite_ends(reached: Array, scores: Scores, name: str) -> None:
    """Refuse a level that held-out rows, whose weights are numbers of rows, reach by no end."""
    if np.isposinf(reached).any():
        n_rows = round(scores.weights.sum())
        beyond = round(scores.weights[np.isposinf(scores.values)].sum())
        msg = (
            f"{name} cannot be had: {beyond} of {n_rows} held-out outcomes are censored, or "
            "lie beyond all that is predicted for them, so that no finite end holds as many as "
            "needed. Ask for less, for the other side alone, or widen the predictions; where an "
            "end of the support was found that is none, pass support=None."
        )
        raise ValueError(msg)


class TooFewRowsError(ValueError):
    """Held-out rows do not reach a level: why, what to ask for instead, and how to get more."""

    def __init__(self, reason: str, instead: str, more: str = "Hold out more rows") -> None:
        super().__init__(reason, instead, more)

    def __str__(self) -> str:
        reason, instead, more = self.args
        return f"{reason} {more}{instead}."

    def with_way(self, more: str) -> TooFewRowsError:
        """Return the same with another way to get more rows."""
        reason, instead, _ = self.args
        return TooFewRowsError(reason, instead, more)


def _too_few(
    total: float, share: float, row: tuple[int, float] | None, name: str
) -> TooFewRowsError:
    """Return the error of a level that held-out rows, of this weight in all, do not reach.

    Without `row`, the number and weight of a new row, weights are numbers of rows.
    """
    weight = 1.0 if row is None else row[1]
    most = np.floor(1000 * total / (total + weight)) / 1000
    instead = f", or ask for a probability of at most {most:g}" if most > 0 else ""
    if row is None:
        reason = f"needs {rows_needed(share)} held-out rows, and there are {round(total)}"
        return TooFewRowsError(f"{name} {reason}: no guarantee is possible.", instead)
    reason = (
        f"{name} cannot be promised: row {row[0]} has weight {weight:g}, the held-out rows "
        f"{total:g} in all, and {weight * share / (1.0 - share):g} is needed. Check this weight: a "
        "ratio of densities, in the unit of the weights given to fit."
    )
    return TooFewRowsError(reason, instead)


def _level(level: float, name: str) -> float:
    several = np.ndim(level) != 0
    if several or not 0 < as_float_array(level, name) < 1:
        way = "Ask for several one by one" if several else "Write 90 % as 0.9"
        msg = (
            f"{name} must be one number strictly between 0 and 1 for a guarantee, got {level}. "
            f"{way}."
        )
        raise ValueError(msg)
    return float(level)


def _keys_of(by: Covariates) -> Array:
    """Return numbers that tell the groups of rows apart."""
    missing = -np.finfo(float).max  # of numbers and categories alike
    return np.column_stack([np.where(one.missing, missing, one.keys) for one in by.columns])


def _in_words(by: Covariates, row: int) -> str:
    values = []
    for column in by.columns:
        if column.missing[row]:
            value = "missing"
        elif column.kind == "number":
            value = f"{column.values[row]:g}"
        else:
            value = str(column.levels[column.values[row]])
        values.append(f"{column.name} = {value}")
    return ", ".join(values)
