"""Link functions of a binomial likelihood, stable far into both tails."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

__all__ = ["Derivatives", "Link", "Logit", "Probit"]

_FAR_TAIL = -50.0


class Derivatives(NamedTuple):
    """A function of the linear predictor with its first three derivatives, all pointwise."""

    value: NDArray
    first: NDArray
    second: NDArray
    third: NDArray


class Link(Protocol):
    """A symmetric distribution function F that turns a predictor into a probability.

    Examples
    --------
    >>> from regcal.gp import Probit
    >>> float(Probit().average(0.0, 1.0))
    0.5
    """

    def log_cdf(self, eta: NDArray) -> NDArray:
        """Return log F."""

    def derivatives(self, eta: NDArray) -> Derivatives:
        """Return log F and its derivatives; the second is given as its (positive) negative."""

    def average(self, mean: ArrayLike, variance: ArrayLike) -> NDArray:
        """Return the expectation of F over a normal predictor."""

    def average_probit(self, mean: ArrayLike, variance: ArrayLike) -> NDArray:
        """Return the standard normal quantile of `average`, accurate in both tails."""


@dataclass(frozen=True)
class Probit:
    """The normal distribution function.

    Examples
    --------
    >>> Probit().average(1.0, 3.0) == Probit().average(0.5, 0.0)
    np.True_
    """

    def log_cdf(self, eta: NDArray) -> NDArray:
        """Return log Φ(eta)."""
        return special.log_ndtr(eta)

    def derivatives(self, eta: NDArray) -> Derivatives:
        """Return log Φ, its first, negative second and third derivative."""
        # The hazard φ/Φ through erfcx neither overflows nor loses digits in the lower tail.
        hazard = np.sqrt(2 / np.pi) / special.erfcx(-eta / np.sqrt(2))
        excess = hazard + eta
        second = hazard * excess
        third = np.where(hazard > 0, hazard * (excess * (hazard + excess) - 1.0), 0.0)
        far = eta < _FAR_TAIL
        if far.any():
            inverse = 1.0 / eta[far]
            x = inverse**2
            second[far] = 1.0 - x * (1.0 - x * (6.0 - x * (50.0 - 518.0 * x)))
            third[far] = -2.0 * x * inverse * (1.0 - x * (12.0 - x * (150.0 - 2072.0 * x)))
        return Derivatives(special.log_ndtr(eta), hazard, second, third)

    def average(self, mean: ArrayLike, variance: ArrayLike) -> NDArray:
        """Return E Φ(f) for normal f, which is Φ(mean / sqrt(1 + variance))."""
        return special.ndtr(self.average_probit(mean, variance))

    def average_probit(self, mean: ArrayLike, variance: ArrayLike) -> NDArray:
        """Return mean / sqrt(1 + variance)."""
        return np.asarray(mean) / np.sqrt(1.0 + np.asarray(variance))


@dataclass(frozen=True)
class Logit:
    """The logistic distribution function.

    Examples
    --------
    >>> float(Logit().average(0.5, 0.0).round(9)), float(special.expit(0.5).round(9))
    (0.622459331, 0.622459331)
    """

    def log_cdf(self, eta: NDArray) -> NDArray:
        """Return the log of the logistic function."""
        return special.log_expit(eta)

    def derivatives(self, eta: NDArray) -> Derivatives:
        """Return log F, its first, negative second and third derivative."""
        upper, lower = special.expit(eta), special.expit(-eta)
        second = upper * lower
        return Derivatives(special.log_expit(eta), lower, second, second * (upper - lower))

    def average(self, mean: ArrayLike, variance: ArrayLike) -> NDArray:
        """Return E F(f) for normal f.

        A logistic variable is a normal one with standard deviation 2K, K from Kolmogorov's
        distribution, so the expectation is an average of probits and good for any variance.
        """
        mean, variance = np.broadcast_arrays(mean, variance)
        total = np.zeros(mean.shape)
        for node, weight in zip(*_kolmogorov_rule(), strict=True):
            total += weight * special.ndtr(mean / np.sqrt(variance + 4.0 * node**2))
        return np.clip(total, 0.0, 1.0)

    def average_probit(self, mean: ArrayLike, variance: ArrayLike) -> NDArray:
        """Return the standard normal quantile of `average`, from whichever tail is smaller."""
        mean = np.asarray(mean)
        lower, upper = self.average(mean, variance), self.average(-mean, variance)
        return np.where(lower < upper, special.ndtri(lower), -special.ndtri(upper))


@lru_cache
def _kolmogorov_rule(n_nodes: int = 24) -> tuple[NDArray, NDArray]:
    """Return nodes and weights for expectations under Kolmogorov's distribution."""
    # On the log scale the density vanishes fast at both ends, and the trapezoidal rule with 24
    # nodes reproduces the logistic function to 1e-14.
    nodes = np.geomspace(0.2, 4.0, n_nodes)
    n = np.arange(1, 80)[:, np.newaxis]
    series = np.sum((-1.0) ** (n + 1) * n**2 * np.exp(-2.0 * (n * nodes) ** 2), axis=0)
    weights = nodes**2 * series
    return nodes, weights / weights.sum()
