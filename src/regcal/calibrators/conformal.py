"""Levels that hold: order statistics of held-out rows move those of intervals and bounds."""

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil
from typing import Any, NoReturn, Self

import numpy as np
from scipy.special import ndtr, ndtri
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from regcal._inspection import Auditable
from regcal._random import uniforms_by_order
from regcal._validation import Array, as_float_array, check_weights
from regcal.calibrators.held_out import HeldOut
from regcal.covariates import Covariates
from regcal.distributions import Distribution, as_distribution
from regcal.outcomes import Outcomes

# Ends move outwards by this much on the probit line, so that what lies in a hole of a predictive
# distribution, where the CDF is flat, is held by the interval that reaches its probability. It
# changes coverage by less than 1e-9.
_OUTWARDS = 1e-9

# Sums of weights that differ by less are equal: 0.9 of 10 rows are 9 rows.
_ROUNDING = 1e-12


@dataclass(frozen=True)
class Scores:
    """How far out held-out rows lie, and what each weighs; the larger, the farther.

    Parameters
    ----------
    values : ndarray of shape (n_rows,)
        Infinite where no end of an interval is far enough out.
    weights : ndarray of shape (n_rows,)

    Examples
    --------
    >>> import numpy as np
    >>> from regcal.calibrators.conformal import Scores
    >>> scores = Scores(np.arange(1.0, 10.0), np.ones(9))
    >>> scores.reached(0.9), scores.reached(0.5)  # the 9th and the 5th of 9 rows, 10 with the new
    (array([9.]), array([5.]))
    """

    values: Array
    weights: Array

    def reached(self, share: float, new_weights: Any = 1.0) -> Array:
        """Return the score that new rows do not exceed with at least this probability.

        Exchangeable rows take each place in the order of all n + 1 with the same probability, so
        that ceil((n + 1) share) of the n known scores are enough. With weights, rows take a place
        with probability w_i / (sum_j w_j + w_new) (Tibshirani, Foygel Barber, Candes and Ramdas,
        2019, Lemma 3), which for w_new = 1 makes a weight of 2 two rows. It is nan where
        all known rows are too few.

        Parameters
        ----------
        share : float
        new_weights : float or ndarray of shape (n_new,), default=1.0

        Returns
        -------
        ndarray of shape (n_new,)
        """
        order = np.argsort(self.values, kind="stable")
        upto = np.cumsum(self.weights[order])
        needed = share * (upto[-1] + np.atleast_1d(new_weights)) * (1.0 - _ROUNDING)
        return np.append(self.values[order], np.nan)[np.searchsorted(upto, needed)]


class ConformalLevels(Auditable, BaseEstimator):
    """Intervals and one-sided bounds with finite-sample coverage, from held-out rows.

    Whatever the distributions are, an interval holds the outcome of a new row with at least the
    probability asked for, if the new row and the rows given to `fit` are exchangeable, and if
    neither the model nor its calibrator nor the choice of either has seen those rows. Only levels
    move: an interval is a central one of the row's own distribution, of another nominal coverage,
    and a bound is a quantile at another level. Densities and probabilities stay as they are.

    Point masses are held or not as a whole, so that coverage may be larger than asked for. Of a
    censored outcome the end counts that is worse, so that coverage holds whatever is behind it.

    Parameters
    ----------
    random_state : int, RandomState, Generator or None, default=0
        Draws where outcomes lie on point masses.

    Attributes
    ----------
    low_, high_ : ndarray of shape (n_rows,)
        Probits of the outcomes under their distributions; they differ where one is censored.
    weights_ : ndarray of shape (n_rows,)
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
            A weight of 2 counts as two rows. Where new rows come from elsewhere, how much more
            often such rows come there than here; then pass the weights of new rows as well.
        by : frame, mapping or array-like of shape (n_rows,) or (n_rows, n_columns), optional
            Groups within each of which coverage is to hold (Mondrian): rows with equal values.

        Returns
        -------
        self
        """
        rows = HeldOut.checked(dist, y, sample_weight, by)
        self.low_, self.high_ = probits_of(rows.dist, rows.seen, self.random_state)
        self.weights_ = rows.weights
        self.names_ = () if rows.covariates is None else rows.covariates.names
        self.groups_ = None if rows.covariates is None else _keys_of(rows.covariates)
        return self

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
            Weights of the new rows, on the scale of those given to `fit`; 1 without.
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
        # an interval of no width is the median
        outer = np.maximum(np.maximum(-self.low_, self.high_), 0.0)
        name = f"A coverage of {_level(coverage, 'coverage'):g}"
        return self._moved(outer, coverage, name, n_rows, sample_weight, by)

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
        upper = _level(level, "levels") >= 0.5
        name = f"An upper bound at the level {level:g}"
        if upper:
            return self._moved(self.high_, level, name, n_rows, sample_weight, by)
        name = f"A lower bound at the level {level:g}"
        return -self._moved(-self.low_, 1.0 - level, name, n_rows, sample_weight, by)

    def _moved(
        self, values: Array, share: float, name: str, n_rows: int, sample_weight: Any, by: Any
    ) -> Array:
        """Return the score that each new row does not exceed with probability `share`."""
        new_weights = check_weights(sample_weight, n_rows)
        reached = np.empty(n_rows)
        for known, new, group in self._cells(n_rows, by):
            scores = Scores(values[known], self.weights_[known])
            reached[new] = scores.reached(share, new_weights[new])
            heaviest = float(new_weights[new].max(initial=0.0))
            _check_reached(reached[new], scores, share, heaviest, name + group)
        return reached + _OUTWARDS

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


def probits_of(dist: Distribution, seen: Outcomes, random_state: Any = 0) -> tuple[Array, Array]:
    """Return the probits between which each outcome lies.

    Without point masses both are the probit of the outcome. At a mass it is that of a draw v
    between F(y-) and F(y), where v <= level means that y is at most the quantile at this level,
    and v >= level that it is at least that: coverage holds, and is larger where ends of
    intervals are masses. Any rule in place of the draw would be as valid; but only draws are
    uniform if the model is right, so that they do not move the levels of such a model.

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


def rows_needed(share: float, weight: float = 1.0) -> int:
    """Return how many held-out rows a probability needs at least.

    Examples
    --------
    >>> from regcal.calibrators.conformal import rows_needed
    >>> rows_needed(0.9), rows_needed(0.95), rows_needed(0.99)
    (9, 19, 99)
    """
    return ceil(weight * share / (1.0 - share) * (1.0 - _ROUNDING))


def _check_reached(reached: Array, scores: Scores, share: float, weight: float, name: str) -> None:
    """Refuse a level that the held-out rows do not reach, or reach by no finite end only."""
    n_rows = float(scores.weights.sum())
    if np.isnan(reached).any():
        _refuse_few(n_rows, share, weight, name)
    if np.isinf(reached).any():
        beyond = float(scores.weights[np.isinf(scores.values)].sum())
        msg = (
            f"{name} cannot be had: {beyond:g} of {n_rows:g} held-out outcomes are censored, or "
            "lie beyond all that is predicted for them, so that no finite end holds as many as "
            "needed. Ask for less, for the other side alone, or widen the predictions; where an "
            "end of the support was found that is none, pass support=None."
        )
        raise ValueError(msg)


def _refuse_few(n_rows: float, share: float, weight: float, name: str) -> NoReturn:
    most = n_rows / (n_rows + weight)
    msg = (
        f"{name} needs {rows_needed(share, weight)} held-out rows, and there are {n_rows:g}: no "
        f"guarantee is possible. Hold out more rows, or ask for a probability of at most "
        f"{np.floor(1000 * most) / 1000:g}."
    )
    raise ValueError(msg)


def _level(level: float, name: str) -> float:
    if np.ndim(level) != 0 or not 0 < as_float_array(level, name) < 1:
        msg = f"{name} must be between 0 and 1 for a guarantee, got {level}. Write 90 % as 0.9."
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
