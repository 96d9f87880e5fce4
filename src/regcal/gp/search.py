"""Search for the hyper-parameters with the largest evidence.

Depends on NumPy, SciPy and `regcal.gp.laplace`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import optimize

from regcal.gp.laplace import LaplaceLikelihood, LaplacePosterior, ProcessPrior, laplace_posterior

__all__ = ["EvidenceSearch", "HyperPrior"]


@dataclass(frozen=True)
class HyperPrior:
    """Independent log-normal priors on the hyper-parameters.

    Parameters
    ----------
    mean, sd : tuple of float
        Mean and standard deviation of each logarithm; an infinite sd leaves it free.

    Examples
    --------
    >>> HyperPrior(mean=(0.0, 0.0, 0.0), sd=(1.0, 1.0, np.inf)).log_density([1.0, 0.0, 5.0])
    (-0.5, array([-1., -0., -0.]))
    """

    mean: tuple[float, ...]
    sd: tuple[float, ...]

    def log_density(self, theta: ArrayLike) -> tuple[float, NDArray]:
        """Return the log density, up to a constant, and its gradient."""
        standardised = (np.asarray(theta, dtype=float) - self.mean) / np.asarray(self.sd)
        return float(-0.5 * standardised @ standardised), -standardised / np.asarray(self.sd)


@dataclass(frozen=True)
class EvidenceSearch:
    """Maximise the evidence over (log sigma, log ell_0, log ell_1) with L-BFGS-B.

    Parameters
    ----------
    starts : tuple of tuple of float
        Hyper-parameters to start from, in logarithms; the best end wins.
    bounds : tuple of pairs of float
        Bounds on the logarithms.
    prior : HyperPrior, optional
        Weak prior that enters the objective, but not the reported evidence.
    tolerance : float
        Stop when a step improves the log evidence by less.
    gradient_tolerance : float
        Stop when no component of the gradient exceeds it.
    max_evaluations : int
        Evaluations of the evidence allowed per start.

    Examples
    --------
    >>> from regcal.gp import BinomialLikelihood, HilbertBasis, TensorDesign
    >>> basis, x = HilbertBasis(sizes=(8, 4)), np.linspace(-1, 1, 40)
    >>> design = TensorDesign.values(basis, x, np.zeros(40))
    >>> likelihood = BinomialLikelihood(design, successes=(np.abs(x) < 0.5).astype(float))
    >>> posterior = EvidenceSearch().run(likelihood, ProcessPrior(basis))
    >>> posterior.converged
    True
    """

    starts: tuple[tuple[float, ...], ...] = ((-1.0, -0.7, -0.7),)
    bounds: tuple[tuple[float, float], ...] = ((-5.0, 4.0), (-3.5, 1.5), (-3.5, 1.5))
    prior: HyperPrior | None = None
    tolerance: float = 5e-3
    gradient_tolerance: float = 1e-2
    max_evaluations: int = 60

    def run(
        self,
        likelihood: LaplaceLikelihood,
        prior: ProcessPrior,
        starts: tuple[ArrayLike, ...] | None = None,
    ) -> LaplacePosterior:
        """Return the posterior at the best hyper-parameters found.

        Parameters
        ----------
        likelihood : LaplaceLikelihood
            The data.
        prior : ProcessPrior
            Prior variances as a function of theta.
        starts : tuple of array-like, optional
            Hyper-parameters to start from instead of `self.starts`.
        """
        climbs = [_Climb(self, likelihood, prior, theta) for theta in starts or self.starts]
        best = max(climbs, key=lambda climb: climb.highest)
        n_evaluations = sum(climb.n_evaluations for climb in climbs)
        return replace(
            best.posterior,
            n_evaluations=n_evaluations,
            converged=best.converged and best.posterior.converged,
        )


class _Climb:
    """One ascent: remembers the best posterior and starts each mode from the last one."""

    def __init__(
        self,
        search: EvidenceSearch,
        likelihood: LaplaceLikelihood,
        prior: ProcessPrior,
        start: ArrayLike,
    ):
        self.search, self.likelihood, self.prior = search, likelihood, prior
        lower, upper = np.transpose(search.bounds)
        begin = np.clip(np.asarray(start, dtype=float), lower, upper)
        self.posterior = self._last = laplace_posterior(likelihood, prior, begin)
        self.n_evaluations = 1
        self.highest = -np.inf
        self._objective(begin)
        result = optimize.minimize(
            self._objective,
            begin,
            jac=True,
            method="L-BFGS-B",
            bounds=search.bounds,
            options={
                "ftol": search.tolerance / max(abs(self.highest), 1.0),
                "gtol": search.gradient_tolerance,
                "maxfun": search.max_evaluations,
            },
        )
        # Status 2 is a line search that found nothing better: rounding, near the optimum.
        self.converged = result.status in (0, 2)

    def _objective(self, theta: NDArray) -> tuple[float, NDArray]:
        """Return minus the log evidence (and prior), and its gradient."""
        posterior = self._last
        if not np.array_equal(theta, posterior.theta):
            posterior = self._last = laplace_posterior(
                self.likelihood, self.prior, theta, posterior
            )
            self.n_evaluations += 1
        value, gradient = posterior.log_evidence, posterior.gradient
        if self.search.prior is not None:
            log_density, slope = self.search.prior.log_density(theta)
            value, gradient = value + log_density, gradient + slope
        if value > self.highest:
            self.highest, self.posterior = value, posterior
        return -value, -gradient
