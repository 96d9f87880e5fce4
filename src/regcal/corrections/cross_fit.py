"""Corrections of location and spread, and what they say of rows they have not learnt from."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize_scalar

from regcal._validation import Array
from regcal.corrections.base import Learner, Regression
from regcal.corrections.seen import FARTHEST, Seen
from regcal.covariates import Covariates

# Outcomes that are intervals are replaced by what is expected within them, so many times.
_ROUNDS = 2

Learn = Callable[[Covariates, Array, Array], Regression]


@dataclass(frozen=True)
class Correction:
    """Location and spread on the probit scale as functions of covariates.

    Parameters
    ----------
    shift, log_factor : Regression
        Of covariates, about an origin and in a unit.
    shares : tuple of two floats
        How much of either is taken: 0 is nothing.
    constant : float
        Log of the spread where `log_factor` says 0.
    origin, unit : float
    """

    shift: Regression
    log_factor: Regression
    shares: tuple[float, float]
    constant: float
    origin: float
    unit: float

    def __call__(self, columns: Covariates) -> tuple[Array, Array]:
        """Return where outcomes lie, and how far they spread, per row."""
        a, b = self.shares
        shift = a * self.shift(columns)
        factor = np.exp(self.constant + b * self.log_factor(columns))
        return self.origin + self.unit * shift, self.unit * factor


@dataclass(frozen=True)
class CrossFitted:
    """A correction, and what it says of each row if learnt without it."""

    correction: Correction
    shift: Array
    factor: Array


def cross_fitted(
    learner: Learner, columns: Covariates, seen: Seen, folds: np.ndarray
) -> CrossFitted:
    """Learn from all rows, and from all but each of the folds.

    Parameters
    ----------
    learner : Learner
    columns : Covariates
    seen : Seen
    folds : ndarray of shape (n_rows,)
        Number of each row's fold.

    Returns
    -------
    CrossFitted
    """
    origin, unit = seen.typical()
    near = seen.in_units_of(origin, unit)
    shift, factor = np.zeros(len(near)), np.ones(len(near))
    for _ in range(1 if near.known else _ROUNDS):
        moments = near.moments(shift, factor)
        learnt = _learnt(learner, columns, moments, near.weights, folds)
        regressions, shares, constant, shift, factor = learnt
    correction = Correction(*regressions, shares, constant, origin, unit)
    return CrossFitted(correction, origin + unit * shift, unit * factor)


def _learnt(
    learner: Learner,
    columns: Covariates,
    moments: tuple[Array, Array],
    weights: Array,
    folds: np.ndarray,
) -> tuple[tuple[Regression, Regression], tuple[float, float], float, Array, Array]:
    """Return both regressions, their shares, the constant, and location and spread out of fold."""
    mean, square = moments
    parts = [
        (np.flatnonzero(folds != k), np.flatnonzero(folds == k)) for k in range(folds.max() + 1)
    ]

    def regress(learn: Learn, response: Array) -> tuple[Regression, Array]:
        """Return a regression, and what it says of each row if learnt without it."""
        values = np.empty(len(columns))
        for train, test in parts:
            values[test] = learn(columns[train], response[train], weights[train])(columns[test])
        return learn(columns, response, weights), values

    whole_shift, shift = regress(learner.learn_shift, mean)
    share = _share_of_shift(shift, mean, weights)
    shift = share * shift
    squares = np.maximum(square - 2.0 * shift * mean + shift**2, 0.0)
    squares = np.minimum(squares, FARTHEST**2 * (weights @ squares) / weights.sum())
    whole_log, log_factor = regress(learner.learn_log_factor, squares)
    share_of_log, constant = _share_of_spread(log_factor, squares, weights)
    factor = np.exp(constant + share_of_log * log_factor)
    return (whole_shift, whole_log), (share, share_of_log), constant, shift, factor


def _share_of_shift(shift: Array, mean: Array, weights: Array) -> float:
    """Return the share of a shift that leaves the smallest squares."""
    square = float(weights @ shift**2)
    return float(np.clip(weights @ (shift * mean) / square, 0.0, 1.0)) if square else 0.0


def _share_of_spread(log_factor: Array, squares: Array, weights: Array) -> tuple[float, float]:
    """Return the share of a log factor that is most likely, and the constant that goes with it."""
    total = weights.sum()

    def constant(share: float) -> float:
        return 0.5 * float(np.log(weights @ (squares * np.exp(-2.0 * share * log_factor)) / total))

    def loss(share: float) -> float:
        return share * float(weights @ log_factor) / total + constant(share)

    found = minimize_scalar(loss, bounds=(0.0, 1.0), method="bounded")
    share = float(found.x) if found.fun < loss(0.0) else 0.0
    return share, constant(share)
