"""Probability → probability maps: logistic and beta calibration.

Both maps are logistic regressions on one or two features of log p. `fit_columns` fits one map per
column at once: Newton's method on all the small problems together.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Self

import numpy as np
from scipy.special import expit
from sklearn.base import BaseEstimator

from regcal._inspection import check_has_learnt
from regcal._validation import Array, as_float_array, check_finite, check_weights

_MAX_ITERATIONS = 100
_MAX_HALVINGS = 30

# log p and log(1 - p) are cut here: beyond it a map has long reached its limit.
_SMALLEST_LOG = -700.0


def penalised_logistic(
    features: Array,
    successes: Array,
    trials: Array,
    prior_mean: Array,
    prior_precision: Array,
    free: np.ndarray,
) -> Array:
    """Fit many small logistic regressions with a Gaussian prior by Newton's method.

    Parameters
    ----------
    features : ndarray of shape (n_problems, n_points, n_features)
    successes, trials : ndarray of shape (n_problems, n_points)
        Weighted numbers of positive labels and of all labels.
    prior_mean, prior_precision : ndarray of shape (n_problems, n_features)
    free : bool ndarray of shape (n_features,)
        Coefficients that are fitted; the others stay 0.

    Returns
    -------
    ndarray of shape (n_problems, n_features)
    """
    coefficients = np.where(free, prior_mean, 0.0)
    identity = np.eye(features.shape[2])

    def objective(beta: Array) -> Array:
        return _penalised_loss(beta, features, successes, trials, prior_mean, prior_precision)

    current = objective(coefficients)
    for _ in range(_MAX_ITERATIONS):
        eta = np.einsum("kpf,kf->kp", features, coefficients)
        p = expit(eta)
        residual = trials * p - successes
        gradient = np.einsum("kp,kpf->kf", residual, features)
        gradient += prior_precision * (coefficients - prior_mean)
        weighted = (trials * p * (1 - p))[:, :, np.newaxis] * features
        hessian = (
            np.swapaxes(weighted, 1, 2) @ features + prior_precision[..., np.newaxis] * identity
        )
        gradient = np.where(free, gradient, 0.0)
        hessian = np.where(free & free[:, np.newaxis], hessian, identity)
        step = _newton_step(hessian, gradient)
        coefficients, current, moved = _line_search(objective, coefficients, current, step)
        if moved < 1e-10:
            break
    return coefficients


def _newton_step(hessian: Array, gradient: Array) -> Array:
    """Return -H^-1 g, scaled so that features of very different size do no harm."""
    scale = 1.0 / np.sqrt(np.maximum(np.einsum("kff->kf", hessian), 1e-300))
    scaled = hessian * scale[:, :, np.newaxis] * scale[:, np.newaxis, :]
    scaled += 1e-12 * np.eye(hessian.shape[1])
    return -scale * np.linalg.solve(scaled, (scale * gradient)[..., np.newaxis])[..., 0]


def _line_search(
    objective: Any, start: Array, current: Array, step: Array
) -> tuple[Array, Array, float]:
    """Halve each problem's step until its objective does not increase."""
    length = np.ones(len(start))
    for _ in range(_MAX_HALVINGS):
        candidate = start + length[:, np.newaxis] * step
        value = objective(candidate)
        worse = ~(value <= current + 1e-12 * np.abs(current))
        if not worse.any():
            break
        length = np.where(worse, 0.5 * length, length)
    else:
        candidate = np.where(worse[:, np.newaxis], start, candidate)
        value = np.where(worse, current, value)
    moved = np.abs(candidate - start) / (1.0 + np.abs(candidate))
    return candidate, value, float(moved.max(initial=0.0))


class BinaryMap(BaseEstimator, ABC):
    """Base of the parametric maps; a logistic regression on features of log p.

    The map of column k is ``sigmoid(features(p) @ coefficients_[k])``.
    """

    ridge: float

    @abstractmethod
    def _features(self, log_p: Array) -> Array:
        """Return features of shape (..., n_features), the last of them constant."""

    @abstractmethod
    def _prior(self, base_rate: Array) -> tuple[Array, Array]:
        """Return the mean and the precision of the coefficients, (n_columns, n_features)."""

    def fit(self, p: Any, labels: Any, sample_weight: Any = None) -> Self:
        """Fit one map to probabilities and 0/1 labels.

        Parameters
        ----------
        p : array-like of shape (n,) or (n, 1)
            Predicted probabilities of the positive label.
        labels : array-like of shape (n,)
            0 or 1.
        sample_weight : array-like of shape (n,), optional
        """
        column = _checked_probabilities(p)
        labels = _checked_labels(labels, len(column))
        weights = check_weights(sample_weight, len(column))
        with np.errstate(divide="ignore"):
            log_p = np.log(column)
        return self.fit_columns(
            log_p[np.newaxis, :], (weights * labels)[np.newaxis, :], weights[np.newaxis, :]
        )

    def fit_columns(self, log_p: Array, successes: Array, trials: Array) -> Self:
        """Fit one map per segment to log probabilities with weighted label counts.

        Parameters
        ----------
        log_p, successes, trials : ndarray of shape (n_columns, n_points)
        """
        if not (np.ndim(self.ridge) == 0 and 0 <= self.ridge < np.inf):
            msg = f"ridge must be a number of at least 0, got {self.ridge!r}."
            raise ValueError(msg)
        features = self._features(log_p)
        total = trials.sum(axis=1)
        base_rate = (successes.sum(axis=1) + 0.5) / (total + 1.0)
        mean, precision = self._prior(base_rate)
        self.coefficients_ = self._fit_signed(features, successes, trials, mean, precision)
        return self

    def _fit_signed(
        self, features: Array, successes: Array, trials: Array, mean: Array, precision: Array
    ) -> Array:
        free = np.ones(features.shape[2], dtype=bool)
        return penalised_logistic(features, successes, trials, mean, precision, free)

    def predict(self, p: Any) -> Array:
        """Return calibrated probabilities of the first map, for p of shape (n,)."""
        check_has_learnt(self, "coefficients_")
        with np.errstate(divide="ignore"):
            log_p = np.log(_checked_probabilities(p))
        return expit(self._features(log_p) @ self.coefficients_[0])

    def predict_log_columns(self, log_p: Array) -> Array:
        """Return log calibrated probabilities, (n_rows, n_columns), of all maps."""
        check_has_learnt(self, "coefficients_")
        return self.log_rates(log_p, self.coefficients_)

    def log_rates(self, log_p: Array, coefficients: Array) -> Array:
        """Return log calibrated probabilities of maps with coefficients, (..., n_columns, k)."""
        features = self._features(log_p)
        # one after the other, so that a row's digits do not depend on the rows beside it
        eta = features[..., 0] * coefficients[..., 0]
        for k in range(1, features.shape[-1]):
            eta += features[..., k] * coefficients[..., k]
        return -np.logaddexp(0.0, -eta)


class LogisticCalibrator(BinaryMap):
    """Logistic calibration of a probability: ``sigmoid(gamma * p + delta)``.

    Parameters
    ----------
    ridge : float, default=0.1
        Strength of the pull of the slope towards 0 and of the offset towards the base rate, in
        units of observations. 0 is the plain maximum likelihood fit, which needs both labels.

    Attributes
    ----------
    coefficients_ : ndarray of shape (n_columns, 2)
        Slope and offset of each fitted map.

    Examples
    --------
    >>> from regcal import LogisticCalibrator
    >>> cal = LogisticCalibrator().fit([0.1, 0.4, 0.6, 0.9], [0, 1, 0, 1])
    >>> cal.predict([0.2, 0.8]).round(2)
    array([0.41, 0.62])
    """

    def __init__(self, ridge: float = 0.1) -> None:
        self.ridge = ridge

    def _features(self, log_p: Array) -> Array:
        p = np.exp(log_p)
        return np.stack([p, np.ones_like(p)], axis=-1)

    def _prior(self, base_rate: Array) -> tuple[Array, Array]:
        offset = np.log(base_rate) - np.log1p(-base_rate)
        mean = np.stack([np.zeros_like(offset), offset], axis=1)
        return mean, np.full_like(mean, float(self.ridge))


class BetaCalibrator(BinaryMap):
    """Beta calibration of a probability: ``sigmoid(a log p - b log(1 - p) + m)``.

    Parameters
    ----------
    ridge : float, default=0.3
        Strength of the pull towards the identity (a = b = 1, m = 0), in units of observations.
        0 is the plain maximum likelihood fit, which needs both labels.
    monotone : bool, default=True
        Whether a and b must not be negative, so that a larger p never gives a smaller result.

    Attributes
    ----------
    coefficients_ : ndarray of shape (n_columns, 3)
        a, b and m of each fitted map.

    Examples
    --------
    >>> from regcal import BetaCalibrator
    >>> cal = BetaCalibrator().fit([0.1, 0.4, 0.6, 0.9], [0, 1, 0, 1])
    >>> cal.predict([0.2, 0.8]).round(2)
    array([0.21, 0.79])
    """

    def __init__(self, ridge: float = 0.3, *, monotone: bool = True) -> None:
        self.ridge = ridge
        self.monotone = monotone

    def _features(self, log_p: Array) -> Array:
        log_p = np.minimum(np.maximum(log_p, _SMALLEST_LOG), -1e-300)
        features = np.ones((*log_p.shape, 3))
        features[..., 0], features[..., 1] = log_p, -np.log(-np.expm1(log_p))
        return features

    def _prior(self, base_rate: Array) -> tuple[Array, Array]:
        mean = np.tile([1.0, 1.0, 0.0], (len(base_rate), 1))
        return mean, np.full_like(mean, float(self.ridge))

    def _fit_signed(
        self, features: Array, successes: Array, trials: Array, mean: Array, precision: Array
    ) -> Array:
        best = super()._fit_signed(features, successes, trials, mean, precision)
        wrong = np.flatnonzero((best[:, :2] < 0).any(axis=1))
        if not self.monotone or len(wrong) == 0:
            return best
        # The objective is convex: the best point with a, b >= 0 is the best of those faces
        # (a = 0, b = 0, both) whose own optimum is feasible.
        problem = (
            features[wrong],
            successes[wrong],
            trials[wrong],
            mean[wrong],
            precision[wrong],
        )
        lowest = np.full(len(wrong), np.inf)
        for free in ([False, True, True], [True, False, True], [False, False, True]):
            face = penalised_logistic(*problem, np.array(free))
            value = _penalised_loss(face, *problem)
            better = (face[:, :2] >= 0).all(axis=1) & (value < lowest)
            best[wrong[better]] = face[better]
            lowest = np.where(better, value, lowest)
        return best


def _penalised_loss(
    beta: Array, features: Array, successes: Array, trials: Array, mean: Array, precision: Array
) -> Array:
    eta = np.einsum("kpf,kf->kp", features, beta)
    loss = (trials * np.logaddexp(0.0, eta) - successes * eta).sum(axis=1)
    return loss + 0.5 * (precision * (beta - mean) ** 2).sum(axis=1)


def _checked_probabilities(p: Any) -> Array:
    array = as_float_array(p, "p")
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1 or array.size == 0:
        msg = f"p must be one non-empty column of probabilities, got shape {array.shape}."
        raise ValueError(msg)
    check_finite(array, "p")
    if ((array < 0) | (array > 1)).any():
        first = array[(array < 0) | (array > 1)][0]
        msg = f"p must be probabilities between 0 and 1, got {first}."
        raise ValueError(msg)
    return array


def _checked_labels(labels: Any, n: int) -> Array:
    array = as_float_array(labels, "labels").ravel()
    if len(array) != n:
        msg = f"Got {len(array)} labels for {n} probabilities. Pass one label each."
        raise ValueError(msg)
    if not np.isin(array, (0.0, 1.0)).all():
        first = array[~np.isin(array, (0.0, 1.0))][0]
        msg = f"labels must be 0 or 1, got {first}."
        raise ValueError(msg)
    return array
