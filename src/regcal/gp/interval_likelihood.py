"""Observations that a standard normal variable lies between two linear predictors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special

from regcal.gp.design import DenseDesign
from regcal.gp.likelihood import Evaluation

__all__ = ["IntervalDerivatives", "IntervalTerm", "interval_derivatives", "log_interval"]

_LOG_SQRT_2PI = 0.5 * np.log(2 * np.pi)


def log_interval(lower: NDArray, upper: NDArray) -> NDArray:
    """Return log(Φ(upper) - Φ(lower)); minus infinity unless lower < upper.

    Examples
    --------
    >>> import numpy as np
    >>> log_interval(np.array([-np.inf, 0.0]), np.array([0.0, np.inf])).round(3)
    array([-0.693, -0.693])
    """
    # in the lower tail, where Φ has all its digits
    mirrored = lower > -upper
    low, high = np.where(mirrored, -upper, lower), np.where(mirrored, -lower, upper)
    with np.errstate(divide="ignore", invalid="ignore"):
        log_low, log_high = special.log_ndtr(low), special.log_ndtr(high)
        logs = log_high + np.log(-np.expm1(np.minimum(log_low - log_high, 0.0)))
    return np.where(low < high, logs, -np.inf)


class IntervalDerivatives(NamedTuple):
    """log(Φ(b) - Φ(a)) with its derivatives in (a, b), all pointwise."""

    value: NDArray
    first: tuple[NDArray, NDArray]
    # of (a, a), (a, b) and (b, b)
    second: tuple[NDArray, NDArray, NDArray]
    # of (a, a, a), (a, a, b), (a, b, b) and (b, b, b)
    third: tuple[NDArray, NDArray, NDArray, NDArray]


def interval_derivatives(lower: NDArray, upper: NDArray) -> IntervalDerivatives:
    """Return the log probability of intervals and its derivatives in both ends.

    Infinite ends are fine; they do not move.

    Examples
    --------
    >>> import numpy as np
    >>> at = interval_derivatives(np.array([-np.inf]), np.array([0.0]))
    >>> [float(d[0].round(3)) for d in at.first]
    [-0.0, 0.798]
    """
    value = log_interval(lower, upper)
    ends = [np.where(np.isfinite(end), end, 0.0) for end in (lower, upper)]
    a, b = ends
    with np.errstate(over="ignore", invalid="ignore"):
        pull_a, pull_b = (
            np.where(np.isfinite(end), np.exp(-0.5 * end**2 - _LOG_SQRT_2PI - value), 0.0)
            for end in (lower, upper)
        )
    pull_a = -pull_a
    aa, ab, bb = -a * pull_a - pull_a**2, -pull_a * pull_b, -b * pull_b - pull_b**2
    third = (
        -pull_a - (a + 2.0 * pull_a) * aa,
        -(a + 2.0 * pull_a) * ab,
        -(b + 2.0 * pull_b) * ab,
        -pull_b - (b + 2.0 * pull_b) * bb,
    )
    return IntervalDerivatives(value, (pull_a, pull_b), (aa, ab, bb), third)


@dataclass(frozen=True, eq=False)
class IntervalTerm:
    """Observations that offset + predictor at two places hold a standard normal between them.

    The log-likelihood is ``sum w log(Φ(upper) - Φ(lower))``, concave in the coefficients.

    Parameters
    ----------
    lower, upper : DenseDesign
        Turn coefficients into the predictors at both ends of each interval.
    offsets : pair of ndarray of shape (n,)
        The ends before the transformation.
    weights : ndarray of shape (n,)

    Examples
    --------
    >>> import numpy as np
    >>> from regcal.gp import DenseDesign, IntervalTerm
    >>> one = DenseDesign(np.ones((1, 1)))
    >>> term = IntervalTerm(one, one, (np.array([-1.0]), np.array([1.0])), np.ones(1))
    >>> round(term.value(np.zeros(1)), 3), term.evaluate(np.zeros(1)).gradient
    (-0.382, array([0.]))
    """

    lower: DenseDesign
    upper: DenseDesign
    offsets: tuple[NDArray, NDArray]
    weights: NDArray

    @property
    def n_coefficients(self) -> int:
        """Number of coefficients."""
        return self.lower.n_coefficients

    def _ends(self, coefficients: NDArray) -> tuple[NDArray, NDArray]:
        a, b = self.offsets
        return a + self.lower.predict(coefficients), b + self.upper.predict(coefficients)

    def value(self, coefficients: NDArray) -> float:
        """Return the log-likelihood; minus infinity where an interval is turned round."""
        return float(self.weights @ log_interval(*self._ends(coefficients)))

    def evaluate(self, coefficients: NDArray) -> Evaluation:
        """Return the log-likelihood, its gradient and its negative Hessian."""
        at = interval_derivatives(*self._ends(coefficients))
        w, (aa, ab, bb) = self.weights, at.second
        gradient = self.lower.adjoint(w * at.first[0]) + self.upper.adjoint(w * at.first[1])
        # -[[aa, ab], [ab, bb]] is a sum of two squares
        root = np.sqrt(np.maximum(-aa, 1e-300))
        both = root[:, np.newaxis] * self.lower.features
        both -= (ab / root)[:, np.newaxis] * self.upper.features
        rest = np.maximum(ab**2 / np.minimum(aa, -1e-300) - bb, 0.0)
        neg_hessian = DenseDesign(both).gram(w) + self.upper.gram(w * rest)
        return Evaluation(float(w @ at.value), gradient, neg_hessian)

    def trace_gradient(self, coefficients: NDArray, covariance: NDArray) -> NDArray:
        """Return the gradient of trace(covariance @ neg_hessian) in the coefficients."""
        aaa, aab, abb, bbb = interval_derivatives(*self._ends(coefficients)).third
        smeared = self.lower.features @ covariance
        var_a = np.einsum("ij,ij->i", smeared, self.lower.features)
        cov_ab = np.einsum("ij,ij->i", smeared, self.upper.features)
        var_b = self.upper.quadratic(covariance)
        by_a = aaa * var_a + 2.0 * aab * cov_ab + abb * var_b
        by_b = aab * var_a + 2.0 * abb * cov_ab + bbb * var_b
        return -self.lower.adjoint(self.weights * by_a) - self.upper.adjoint(self.weights * by_b)

    def restrict(self, active: NDArray) -> IntervalTerm:
        """Return the term in a subset of the coefficients."""
        designs = self.lower.restrict(active), self.upper.restrict(active)
        return IntervalTerm(*designs, self.offsets, self.weights)
