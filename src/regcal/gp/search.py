"""Search for the hyper-parameters with the largest evidence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from regcal.gp.laplace import (
    CoefficientPrior,
    LaplaceEvidence,
    LaplaceLikelihood,
    LaplacePosterior,
    laplace_evidence,
)

__all__ = ["EvidenceSearch", "HyperPrior"]

# Steps whose secants correct the Fisher information, and the least curvature along them.
_MEMORY = 3
_DAMPING = 0.2
_RIDGE = 1e-3


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
    """Maximise the evidence over (log sigma, log ell_0, log ell_1) within bounds.

    Fisher scoring, corrected by the secants of the last steps. The evidence has flat corners
    (no function at all, noise of any length-scale) into which a quasi-Newton method that begins
    with a gradient step jumps at once; the Fisher information knows how far to go.

    Parameters
    ----------
    starts : tuple of tuple of float
        Hyper-parameters to start from, in logarithms; the best end wins.
    bounds : tuple of pairs of float
        Bounds on the logarithms. Like the start, they suit axes of half-width about one.
    prior : HyperPrior, optional
        Weak prior that enters the objective, but not the reported evidence.
    tolerance : float
        Stop when a step gains, or can be expected to gain, less log evidence.
    gradient_tolerance : float
        Stop when no component of the gradient exceeds it.
    longest_step : float
        Longest step in any logarithm.
    max_evaluations : int
        Evaluations of the evidence allowed per start.

    Examples
    --------
    >>> from regcal.gp import BinomialLikelihood, HilbertBasis, ProcessPrior, TensorDesign
    >>> basis, x = HilbertBasis(sizes=(8, 4)), np.linspace(-1, 1, 40)
    >>> design = TensorDesign.values(basis, x, np.zeros(40))
    >>> likelihood = BinomialLikelihood(design, successes=(np.abs(x) < 0.5).astype(float))
    >>> posterior = EvidenceSearch().run(likelihood, ProcessPrior(basis))
    >>> posterior.converged
    True
    """

    starts: tuple[tuple[float, ...], ...] = ((-1.0, -0.7, -0.7),)
    bounds: tuple[tuple[float, float], ...] = ((-5.0, 4.0), (-2.6, 1.5), (-2.6, 1.5))
    prior: HyperPrior | None = None
    tolerance: float = 1e-3
    gradient_tolerance: float = 1e-2
    longest_step: float = 1.0
    max_evaluations: int = 60

    def run(
        self,
        likelihood: LaplaceLikelihood,
        prior: CoefficientPrior,
        starts: Sequence[ArrayLike] | None = None,
    ) -> LaplacePosterior:
        """Return the posterior at the best hyper-parameters found.

        Parameters
        ----------
        likelihood : LaplaceLikelihood
            The data.
        prior : CoefficientPrior
            Prior variances as a function of theta.
        starts : sequence of array-like, optional
            Hyper-parameters to start from instead of `self.starts`.
        """
        begins = self.starts if starts is None else starts
        climbs = [_Climb(self, likelihood, prior) for _ in begins]
        tops = [climb.run(theta) for climb, theta in zip(climbs, begins, strict=True)]
        best = int(np.argmax([top.value for top in tops]))
        posterior = tops[best].posterior
        return replace(
            posterior,
            n_evaluations=sum(climb.n_evaluations for climb in climbs),
            converged=climbs[best].converged and posterior.converged,
        )


@dataclass(frozen=True, eq=False)
class _Point:
    """The objective, with its gradient and expected curvature, at one theta."""

    posterior: LaplacePosterior
    value: float
    gradient: NDArray
    curvature: NDArray

    @property
    def theta(self) -> NDArray:
        return self.posterior.theta


class _Climb:
    """One ascent from one start."""

    def __init__(
        self, search: EvidenceSearch, likelihood: LaplaceLikelihood, prior: CoefficientPrior
    ):
        self.search, self.likelihood, self.prior = search, likelihood, prior
        self.lower, self.upper = np.transpose(search.bounds)
        self.n_evaluations = 0
        self.converged = False

    def run(self, start: ArrayLike) -> _Point:
        """Climb until nothing is left to gain."""
        theta = np.clip(np.asarray(start, dtype=float), self.lower, self.upper)
        point = self._point(self._evidence(theta))
        secants: list[tuple[NDArray, NDArray]] = []
        while self.n_evaluations < self.search.max_evaluations:
            step = self._step(point, secants[-_MEMORY:])
            higher = None if step is None else self._ascend(point, step)
            if higher is None:
                self.converged = True
                break
            secants.append((higher.theta - point.theta, point.gradient - higher.gradient))
            gain, point = higher.value - point.value, higher
            if gain < self.search.tolerance:
                self.converged = True
                break
        return point

    def _evidence(self, theta: NDArray, start: LaplacePosterior | None = None) -> LaplaceEvidence:
        """Return the evidence at theta."""
        self.n_evaluations += 1
        return laplace_evidence(self.likelihood, self.prior, theta, start)

    def _value(self, evidence: LaplaceEvidence) -> float:
        """Return the objective: the evidence, and the prior if there is one."""
        prior = self.search.prior
        return evidence.value + (0.0 if prior is None else prior.log_density(evidence.theta)[0])

    def _point(self, evidence: LaplaceEvidence) -> _Point:
        """Return the objective with its gradient and curvature."""
        posterior = evidence.posterior()
        gradient, theta = posterior.gradient, posterior.theta
        curvature = posterior.information + _RIDGE * np.eye(len(theta))
        if self.search.prior is not None:
            gradient = gradient + self.search.prior.log_density(theta)[1]
            curvature = curvature + np.diag(1.0 / np.square(self.search.prior.sd))
        return _Point(posterior, self._value(evidence), gradient, curvature)

    def _step(self, point: _Point, secants: list[tuple[NDArray, NDArray]]) -> NDArray | None:
        """Return the step to take, or None at the top."""
        gradient, theta = point.gradient, point.theta
        outward = np.where(gradient < 0, theta <= self.lower, theta >= self.upper)
        free = np.flatnonzero(~outward)
        if np.abs(gradient[free]).max(initial=0.0) < self.search.gradient_tolerance:
            return None
        curvature = point.curvature
        for moved, fell in secants:
            curvature = _secant_update(curvature, moved, fell)
        step = np.zeros(len(theta))
        step[free] = np.linalg.solve(curvature[np.ix_(free, free)], gradient[free])
        if 0.5 * gradient @ step < self.search.tolerance:
            return None
        return step / max(1.0, np.abs(step).max() / self.search.longest_step)

    def _ascend(self, point: _Point, step: NDArray) -> _Point | None:
        """Shorten the step until it climbs; None when it never does."""
        length = 1.0
        for _ in range(10):
            theta = np.clip(point.theta + length * step, self.lower, self.upper)
            candidate = self._evidence(theta, point.posterior)
            promised = float(point.gradient @ (theta - point.theta))
            gain = self._value(candidate) - point.value
            if gain >= 1e-4 * promised:
                return self._point(candidate)
            # The top of the parabola through both values and the slope.
            length *= float(np.clip(0.5 * promised / (promised - gain), 0.1, 0.5))
        return None


def _secant_update(curvature: NDArray, moved: NDArray, fell: NDArray) -> NDArray:
    """Make a curvature agree with an observed change of gradient (damped BFGS)."""
    expected = curvature @ moved
    energy = float(moved @ expected)
    if moved @ fell < _DAMPING * energy:
        share = (1.0 - _DAMPING) * energy / (energy - moved @ fell)
        fell = share * fell + (1.0 - share) * expected
    return curvature - np.outer(expected, expected) / energy + np.outer(fell, fell) / (moved @ fell)
