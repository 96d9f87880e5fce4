"""Laplace inference for log-concave likelihoods with a diagonal normal prior.

All work is done in whitened coordinates w = coefficients / prior standard deviation, where tiny
prior variances do no harm.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import linalg

from regcal.gp.basis import HilbertBasis
from regcal.gp.design import Design
from regcal.gp.kernels import RBF, Kernel
from regcal.gp.likelihood import Evaluation

__all__ = [
    "CoefficientPrior",
    "LaplaceEvidence",
    "LaplaceLikelihood",
    "LaplacePosterior",
    "Mode",
    "ProcessPrior",
    "find_mode",
    "laplace_evidence",
    "laplace_posterior",
]

# Functions with a smaller prior standard deviation, relative to the largest, are left out.
_NEGLIGIBLE = 1e-6
_CHUNK = 4096


class LaplaceLikelihood(Protocol):
    """What inference asks of a likelihood; `regcal.gp.Likelihood` offers it."""

    @property
    def n_coefficients(self) -> int:
        """Number of coefficients."""

    def value(self, coefficients: NDArray) -> float:
        """Return the log-likelihood; minus infinity outside its domain."""

    def evaluate(self, coefficients: NDArray) -> Evaluation:
        """Return the log-likelihood, its gradient and its negative Hessian."""

    def trace_gradient(self, coefficients: NDArray, covariance: NDArray) -> NDArray:
        """Return the gradient of trace(covariance @ neg_hessian)."""

    def restrict(self, active: NDArray) -> LaplaceLikelihood:
        """Return the likelihood in a subset of the coefficients."""


class CoefficientPrior(Protocol):
    """What inference asks of a prior; `ProcessPrior` offers it."""

    def log_variances(self, theta: ArrayLike) -> tuple[NDArray, NDArray]:
        """Return the log prior variances and their gradient in the hyper-parameters."""

    def active(self, log_variances: NDArray) -> NDArray:
        """Return the indices of the coefficients that matter."""


@dataclass(frozen=True)
class ProcessPrior:
    """Prior variances of the extra columns and of the functions of a basis.

    Parameters
    ----------
    basis : HilbertBasis
        The functions.
    kernel : Kernel
        Spectral density of the process.
    extra_variances : tuple of float
        Fixed prior variances of the extra columns of the design.

    Examples
    --------
    >>> prior = ProcessPrior(HilbertBasis(sizes=(2, 2)), extra_variances=(1.0,))
    >>> log_variances, gradient = prior.log_variances([0.0, 0.0, 0.0])
    >>> log_variances.shape, gradient.shape
    ((5,), (5, 3))
    """

    basis: HilbertBasis
    kernel: Kernel = field(default_factory=RBF)
    extra_variances: tuple[float, ...] = ()

    def log_variances(self, theta: ArrayLike) -> tuple[NDArray, NDArray]:
        """Return the log prior variances and their gradient in theta.

        Parameters
        ----------
        theta : array-like of shape (3,)
            Log standard deviation of the process and its two log length-scales.
        """
        theta = np.asarray(theta, dtype=float)
        log_density, in_lengthscales = self.kernel.log_spectral_density(
            self.basis.squared_frequencies, theta[1:]
        )
        n_extra = len(self.extra_variances)
        gradient = np.zeros((n_extra + len(log_density), len(theta)))
        gradient[n_extra:, 0] = 2.0
        gradient[n_extra:, 1:] = in_lengthscales
        return np.concatenate([np.log(self.extra_variances), 2 * theta[0] + log_density]), gradient

    def active(self, log_variances: NDArray) -> NDArray:
        """Return the indices of the coefficients that matter."""
        n_extra = len(self.extra_variances)
        floor = log_variances[n_extra:].max() + 2 * np.log(_NEGLIGIBLE)
        return np.flatnonzero((log_variances > floor) | (np.arange(len(log_variances)) < n_extra))


@dataclass(frozen=True, eq=False)
class Mode:
    """The whitened mode, the likelihood there and the Cholesky factor of the curvature."""

    whitened: NDArray
    likelihood: Evaluation
    cholesky: NDArray
    n_iterations: int
    converged: bool


@dataclass(frozen=True, eq=False)
class LaplacePosterior:
    """Normal approximation to the coefficients, given the hyper-parameters.

    Attributes
    ----------
    coefficients : ndarray of shape (n_coefficients,)
        The mode; zero for functions that were left out.
    log_evidence : float
        Laplace approximation to the log marginal likelihood.
    theta : ndarray
        Hyper-parameters, in logarithms.
    gradient : ndarray
        Gradient of the log evidence in theta.
    information : ndarray
        Fisher information on theta, which stands in for the negative Hessian of the evidence.
    active : ndarray of int
        Coefficients that were not left out.
    scale : ndarray
        Prior standard deviations of the active coefficients.
    cholesky : ndarray
        Lower factor L with covariance = scale (L Lᵀ)^-1 scale.
    sensitivity : ndarray
        Derivative of the whitened mode in theta.
    n_newton, n_evaluations : int
        Newton iterations, and evaluations of the evidence, that it took.
    converged : bool
        Whether the mode was found, and the search for theta (if any) ended regularly.

    Examples
    --------
    >>> from regcal.gp import BinomialLikelihood, HilbertBasis, ProcessPrior, TensorDesign
    >>> from regcal.gp import laplace_posterior
    >>> basis = HilbertBasis(sizes=(6, 6))
    >>> design = TensorDesign.values(basis, [-0.5, 0.5], [0.0, 0.0])
    >>> likelihood = BinomialLikelihood(design, successes=[0.0, 1.0])
    >>> posterior = laplace_posterior(likelihood, ProcessPrior(basis), [0.0, -1.0, -1.0])
    >>> posterior.coefficients.shape, posterior.log_evidence < 0
    ((36,), True)
    """

    coefficients: NDArray
    log_evidence: float
    theta: NDArray
    gradient: NDArray
    information: NDArray
    active: NDArray
    scale: NDArray
    cholesky: NDArray
    sensitivity: NDArray
    n_newton: int
    n_evaluations: int = 1
    converged: bool = True

    def covariance(self) -> NDArray:
        """Return the posterior covariance of the active coefficients."""
        return _inverse(self.cholesky) * np.multiply.outer(self.scale, self.scale)

    def mean(self, design: Design) -> NDArray:
        """Return the posterior mean of the predictors of a design."""
        return design.predict(self.coefficients)

    def variance(self, design: Design) -> NDArray:
        """Return the posterior variance of the predictors of a design."""
        return design.restrict(self.active).quadratic(self.covariance())

    def row_variance(self, features: NDArray) -> NDArray:
        """Return the posterior variance of feature rows of shape (n, n_coefficients)."""
        variances = np.empty(len(features))
        for start in range(0, len(features), _CHUNK):
            rows = features[start : start + _CHUNK, self.active] * self.scale
            solved = linalg.solve_triangular(self.cholesky, rows.T, lower=True, check_finite=False)
            variances[start : start + _CHUNK] = np.einsum("ij,ij->j", solved, solved)
        return variances

    def sample(self, size: int, random_state: np.random.Generator) -> NDArray:
        """Draw coefficient vectors, of shape (size, n_coefficients)."""
        noise = random_state.standard_normal((len(self.active), size))
        solved = linalg.solve_triangular(self.cholesky, noise, lower=True, trans=1)
        draws = np.tile(self.coefficients, (size, 1))
        draws[:, self.active] += solved.T * self.scale
        return draws


def _cholesky(curvature: NDArray) -> NDArray:
    """Return the lower factor; where rounding made the matrix indefinite, of it and a ridge."""
    try:
        # The transpose is the same matrix, in the order LAPACK works in.
        return linalg.cholesky(curvature.T, lower=True, check_finite=False)
    except linalg.LinAlgError:
        ridge = 1e-8 * np.abs(curvature.diagonal()).max() * np.eye(len(curvature))
        return linalg.cholesky(curvature + ridge, lower=True, check_finite=False)


def find_mode(
    likelihood: LaplaceLikelihood,
    scale: NDArray,
    start: NDArray | None = None,
    *,
    tolerance: float = 1e-12,
    max_iterations: int = 100,
) -> Mode:
    """Maximise log-likelihood(scale * w) - w'w / 2 by Newton's method.

    Parameters
    ----------
    likelihood : LaplaceLikelihood
        Log-concave in the coefficients, and finite at zero.
    scale : ndarray of shape (n_coefficients,)
        Prior standard deviations.
    start : ndarray of shape (n_coefficients,), optional
        Whitened coefficients to begin at.
    tolerance : float
        Stop when the squared Newton decrement, twice the possible gain, is below it.
    max_iterations : int
        Give up after so many steps.

    Examples
    --------
    >>> import numpy as np
    >>> from regcal.gp import BinomialLikelihood, DenseDesign, find_mode
    >>> design = DenseDesign(np.ones((4, 1)))
    >>> likelihood = BinomialLikelihood(design, np.array([1.0, 1.0, 1.0, 0.0]))
    >>> mode = find_mode(likelihood, np.ones(1))
    >>> mode.whitened.round(2)
    array([0.47])
    """
    whitened = np.zeros(len(scale)) if start is None else start
    outer = np.multiply.outer(scale, scale)
    n_iterations = 0
    while True:
        n_iterations += 1
        at = likelihood.evaluate(scale * whitened)
        curvature = at.neg_hessian * outer
        curvature.flat[:: len(scale) + 1] += 1.0
        cholesky = _cholesky(curvature)
        gradient = scale * at.gradient - whitened
        step = linalg.cho_solve((cholesky, True), gradient, check_finite=False)
        decrement = float(gradient @ step)
        if decrement < tolerance or n_iterations >= max_iterations:
            break
        moved = _line_search(likelihood, scale, whitened, step, decrement, at.value)
        if moved is None:
            break
        whitened = moved
    # A line search that cannot improve by rounding alone has also arrived.
    arrived = decrement < max(1e-6, 1e-9 * abs(at.value))
    return Mode(whitened, at, cholesky, n_iterations, arrived)


def _line_search(
    likelihood: LaplaceLikelihood,
    scale: NDArray,
    whitened: NDArray,
    step: NDArray,
    decrement: float,
    value: float,
) -> NDArray | None:
    """Halve the step until it improves the objective enough; None when no step does."""
    current = value - 0.5 * whitened @ whitened
    rounding = 1e-14 * (abs(value) + whitened @ whitened)
    length = 1.0
    for _ in range(60):
        candidate = whitened + length * step
        reached = likelihood.value(scale * candidate) - 0.5 * candidate @ candidate
        # Outside the domain `reached` is -inf or nan, and the comparison is false.
        if reached >= current + 1e-4 * length * decrement - rounding:
            return candidate
        length *= 0.5
    return None


def laplace_posterior(
    likelihood: LaplaceLikelihood,
    prior: CoefficientPrior,
    theta: ArrayLike,
    start: LaplacePosterior | None = None,
    *,
    tolerance: float = 1e-12,
) -> LaplacePosterior:
    """Return the Laplace posterior and evidence at given hyper-parameters.

    Parameters
    ----------
    likelihood : LaplaceLikelihood
        Log-concave in the coefficients.
    prior : CoefficientPrior
        Prior variances as a function of theta, such as a `ProcessPrior`.
    theta : array-like
        Hyper-parameters; log standard deviation and log length-scales of a process.
    start : LaplacePosterior, optional
        A posterior at nearby hyper-parameters (and the same prior) to start from.
    tolerance : float
        Passed to `find_mode`.

    Examples
    --------
    >>> from regcal.gp import BinomialLikelihood, TensorDesign
    >>> basis = HilbertBasis(sizes=(6, 6))
    >>> design = TensorDesign.values(basis, [-0.5, 0.5], [0.0, 0.0])
    >>> likelihood = BinomialLikelihood(design, successes=[0.0, 1.0])
    >>> posterior = laplace_posterior(likelihood, ProcessPrior(basis), [0.0, -1.0, -1.0])
    >>> posterior.mean(design).round(2)
    array([-0.49,  0.49])
    """
    return laplace_evidence(likelihood, prior, theta, start, tolerance=tolerance).posterior()


def laplace_evidence(
    likelihood: LaplaceLikelihood,
    prior: CoefficientPrior,
    theta: ArrayLike,
    start: LaplacePosterior | None = None,
    *,
    tolerance: float = 1e-12,
) -> LaplaceEvidence:
    """Return the evidence at given hyper-parameters; see `laplace_posterior`."""
    theta = np.array(theta, dtype=float)
    log_variances, variance_gradient = prior.log_variances(theta)
    active = prior.active(log_variances)
    scale = np.exp(0.5 * log_variances[active])
    likelihood = likelihood.restrict(active)
    begin = None
    if start is not None:
        begin = _best_start(likelihood, scale, _whitened_guesses(start, theta, active))
    mode = find_mode(likelihood, scale, begin, tolerance=tolerance)
    return LaplaceEvidence(likelihood, mode, theta, active, scale, variance_gradient)


@dataclass(frozen=True, eq=False)
class LaplaceEvidence:
    """The mode at some hyper-parameters: enough to compare them with others.

    Parameters
    ----------
    likelihood : LaplaceLikelihood
        In the active coefficients.
    mode : Mode
    theta, active, scale : ndarray
        As in `LaplacePosterior`.
    variance_gradient : ndarray
        Gradient of the log prior variances of all coefficients in theta.
    """

    likelihood: LaplaceLikelihood
    mode: Mode
    theta: NDArray
    active: NDArray
    scale: NDArray
    variance_gradient: NDArray

    @cached_property
    def value(self) -> float:
        """Laplace approximation to the log marginal likelihood."""
        w = self.mode.whitened
        log_determinant = 2.0 * np.log(np.diag(self.mode.cholesky)).sum()
        return float(self.mode.likelihood.value - 0.5 * w @ w - 0.5 * log_determinant)

    def posterior(self) -> LaplacePosterior:
        """Return the posterior, with the gradient of the evidence."""
        mode, active, scale = self.mode, self.active, self.scale
        gradient, information, sensitivity = _evidence_gradient(
            self.likelihood, mode, scale, 0.5 * self.variance_gradient[active]
        )
        coefficients = np.zeros(len(self.variance_gradient))
        coefficients[active] = scale * mode.whitened
        return LaplacePosterior(
            coefficients=coefficients,
            log_evidence=self.value,
            theta=self.theta,
            gradient=gradient,
            information=information,
            active=active,
            scale=scale,
            cholesky=mode.cholesky,
            sensitivity=sensitivity,
            n_newton=mode.n_iterations,
            converged=mode.converged,
        )


def _whitened_guesses(
    start: LaplacePosterior, theta: NDArray, active: NDArray
) -> tuple[NDArray, ...]:
    """Return guesses at the whitened mode: as it was, and extrapolated to theta."""
    whitened = start.coefficients[start.active] / start.scale
    guesses = []
    for guess in (whitened, whitened + start.sensitivity @ (theta - start.theta)):
        full = np.zeros(len(start.coefficients))
        full[start.active] = guess
        guesses.append(full[active])
    return tuple(guesses)


def _best_start(
    likelihood: LaplaceLikelihood, scale: NDArray, guesses: tuple[NDArray, ...]
) -> NDArray | None:
    """Return the best guess, or None (zero, always in the domain) when none is better."""
    best, highest = None, likelihood.value(np.zeros(len(scale)))
    for guess in guesses:
        reached = likelihood.value(scale * guess) - 0.5 * guess @ guess
        if reached > highest:
            best, highest = guess, reached
    return best


def _evidence_gradient(
    likelihood: LaplaceLikelihood, mode: Mode, scale: NDArray, log_scale_gradient: NDArray
) -> tuple[NDArray, NDArray, NDArray]:
    """Return gradient and information of the evidence, and the slope of the whitened mode."""
    # With β = D w, B = I + D H D and d = ∂ log D / ∂θ, the mode w = D ∇ℓ(β) moves by
    #   ∂w = B^-1 (d w - D H d β),
    # and Rasmussen & Williams (2006), equations 5.22 to 5.24, become
    #   ∂ log Z = Σ d w² - Σ d (1 - diag B^-1) - ½ t · (d β + D ∂w),  t_k = tr(C ∂H / ∂β_k).
    d, w = log_scale_gradient, mode.whitened[:, np.newaxis]
    beta = scale[:, np.newaxis] * w
    pull = d * w - scale[:, np.newaxis] * (mode.likelihood.neg_hessian @ (d * beta))
    sensitivity = linalg.cho_solve((mode.cholesky, True), pull, check_finite=False)
    inverse = _inverse(mode.cholesky)
    trace = likelihood.trace_gradient(beta[:, 0], inverse * np.multiply.outer(scale, scale))
    explicit = d.T @ (mode.whitened**2 - 1.0 + np.diag(inverse))
    implicit = trace @ (d * beta + scale[:, np.newaxis] * sensitivity)
    # Fisher information ½ tr(K^-1 ∂K K^-1 ∂K), with K^-1 ∂K = 2 (I - B^-1) d in whitened terms.
    determined = np.eye(len(inverse)) - inverse
    information = 2.0 * d.T @ (determined**2 @ d)
    return explicit - 0.5 * implicit, information, sensitivity


def _inverse(cholesky: NDArray) -> NDArray:
    """Return (L Lᵀ)^-1 from its lower Cholesky factor."""
    lower, _ = linalg.lapack.dpotri(cholesky, lower=1)
    strict = np.tril(lower, -1)
    return strict + strict.T + np.diag(np.diag(lower))
