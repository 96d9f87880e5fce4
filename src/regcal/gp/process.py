"""Fit a Gaussian process whose basis grows until it suits the length-scales."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from regcal.gp.basis import HilbertBasis
from regcal.gp.design import TensorDesign
from regcal.gp.kernels import RBF, Kernel
from regcal.gp.laplace import (
    LaplaceLikelihood,
    LaplacePosterior,
    ProcessPrior,
    laplace_evidence,
    laplace_posterior,
)
from regcal.gp.search import EvidenceSearch

__all__ = ["BasisWarning", "FittedProcess", "fit_process"]

# How far from its mode a posterior may be that is only compared with another, in nats, and by how
# much the evidence has to be larger: very strong in the words of Kass and Raftery (1995).
# benchmarks/defects.py: with any gain at all, gpc loses up to 0.03 nats in 6 of 160 fits.
_ROUGHLY, _VERY_STRONG = 0.1, 5.0


class BasisWarning(UserWarning):
    """The basis is too small for the length-scale that was found.

    Examples
    --------
    >>> from regcal.gp import BasisWarning
    >>> issubclass(BasisWarning, UserWarning)
    True
    """


@dataclass(frozen=True, eq=False)
class FittedProcess:
    """A basis, a prior and the posterior of the coefficients.

    Attributes
    ----------
    prior : ProcessPrior
        Basis and kernel.
    posterior : LaplacePosterior
        Normal approximation at the best hyper-parameters.

    Examples
    --------
    >>> import numpy as np
    >>> from regcal.gp import BinomialLikelihood, TensorDesign, fit_process
    >>> x0, x1 = np.random.default_rng(0).uniform(-1, 1, size=(2, 100))
    >>> def likelihood(basis):
    ...     design = TensorDesign.values(basis, x0, x1)
    ...     return BinomialLikelihood(design, (x0 > 0).astype(float))
    >>> mean, variance = fit_process(likelihood).moments([-0.5, 0.5], [0.0, 0.0])
    >>> mean[0] < 0 < mean[1]
    np.True_
    """

    prior: ProcessPrior
    posterior: LaplacePosterior

    @property
    def basis(self) -> HilbertBasis:
        """The basis the fit ended with."""
        return self.prior.basis

    @property
    def lengthscales(self) -> NDArray:
        """Length-scale on each axis."""
        return np.exp(self.posterior.theta[1:])

    @property
    def sigma(self) -> float:
        """Prior standard deviation of the process."""
        return float(np.exp(self.posterior.theta[0]))

    def refitted(self, likelihood: LaplaceLikelihood) -> FittedProcess:
        """Return the posterior given other data, with the same hyper-parameters.

        Parameters
        ----------
        likelihood : LaplaceLikelihood
            The data, in the coefficients of this basis.
        """
        before = self.posterior
        posterior = laplace_posterior(likelihood, self.prior, before.theta, before)
        n_evaluations = before.n_evaluations + posterior.n_evaluations
        return replace(self, posterior=replace(posterior, n_evaluations=n_evaluations))

    def moments(
        self, x0: ArrayLike, x1: ArrayLike, extra: ArrayLike | None = None
    ) -> tuple[NDArray, NDArray]:
        """Return posterior mean and variance at the points (x0, x1).

        Parameters
        ----------
        x0, x1 : array-like of shape (n,)
            Coordinates.
        extra : array-like of shape (n, n_extra), optional
            The extra columns at these points.
        """
        design = TensorDesign.values(self.basis, x0, x1, extra)
        return self.posterior.mean(design), self.posterior.variance(design)

    def mean_grid(self, x0: ArrayLike, x1: ArrayLike, extra: NDArray | None = None) -> NDArray:
        """Return the posterior mean on the product of two axes.

        Parameters
        ----------
        x0 : array-like of shape (n0,)
            Coordinates on the first axis.
        x1 : array-like of shape (n1,)
            Coordinates on the second axis.
        extra : ndarray that broadcasts to (n0, n1, n_extra), optional
            The extra columns on the grid.

        Returns
        -------
        ndarray of shape (n0, n1)
        """
        n_extra = len(self.prior.extra_variances)
        values = self.basis.grid(self.posterior.coefficients[n_extra:], x0, x1)
        return values if extra is None else values + extra @ self.posterior.coefficients[:n_extra]

    def variance_grid(self, x0: ArrayLike, x1: ArrayLike, extra: NDArray | None = None) -> NDArray:
        """Return the posterior variance on the product of two axes; see `mean_grid`."""
        n_extra = len(self.prior.extra_variances)
        full = np.zeros((len(self.posterior.coefficients),) * 2)
        full[np.ix_(self.posterior.active, self.posterior.active)] = self.posterior.covariance()
        variance = self.basis.grid_quadratic(full[n_extra:, n_extra:], x0, x1)
        if extra is not None:
            variance = variance + np.einsum(
                "...i,ij,...j->...", extra, full[:n_extra, :n_extra], extra
            )
            for k in range(n_extra):
                cross = self.basis.grid(full[k, n_extra:], x0, x1)
                variance = variance + 2.0 * np.asarray(extra)[..., k] * cross
        return np.maximum(variance, 0.0)


def fit_process(
    likelihood_for: Callable[[HilbertBasis], LaplaceLikelihood],
    *,
    kernel: Kernel | None = None,
    basis: HilbertBasis | None = None,
    extra_variances: tuple[float, ...] = (),
    search: EvidenceSearch | None = None,
    largest_sizes: tuple[int, int] = (32, 32),
    largest_boundary: float = 2.5,
    warn: bool = True,
) -> FittedProcess:
    """Fit hyper-parameters and coefficients, enlarging the basis where it is too small.

    Parameters
    ----------
    likelihood_for : callable
        Returns the likelihood of the data in the coefficients of a given basis.
    kernel : Kernel, optional
        Spectral density of the process, `RBF` by default.
    basis : HilbertBasis, optional
        Basis to begin with.
    extra_variances : tuple of float
        Prior variances of the extra columns of the design.
    search : EvidenceSearch, optional
        How to find the hyper-parameters.
    largest_sizes : tuple of int
        Most functions per axis.
    largest_boundary : float
        Largest boundary factor. Long length-scales ask for a large one.
    warn : bool, default=True
        Whether a `BasisWarning` tells when the largest sizes do not suffice.

    Examples
    --------
    >>> from regcal.gp import BinomialLikelihood
    >>> rng = np.random.default_rng(0)
    >>> x0, x1 = rng.uniform(-1, 1, size=(2, 200))
    >>> y = (x0 + 0.3 * rng.normal(size=200) > 0).astype(float)
    >>> process = fit_process(
    ...     lambda basis: BinomialLikelihood(TensorDesign.values(basis, x0, x1), y)
    ... )
    >>> mean, variance = process.moments([-0.8, 0.8], [0.0, 0.0])
    >>> np.sign(mean)
    array([-1.,  1.])
    """
    kernel = RBF() if kernel is None else kernel
    search = EvidenceSearch() if search is None else search
    fits = GrowingFits(
        likelihood_for, kernel, extra_variances, search, largest_sizes, largest_boundary
    )
    process = fits.finished(HilbertBasis() if basis is None else basis, None)
    while (finer := fits.finer(process)) is not None:
        process = fits.finished(*finer)
    if warn:
        _warn_if_small(process.basis, kernel, process.lengthscales)
    return replace(process, posterior=replace(process.posterior, n_evaluations=fits.n_evaluations))


class GrowingFits:
    """Fits on bases that grow until they suit the length-scales."""

    def __init__(
        self,
        likelihood_for: Callable[[HilbertBasis], LaplaceLikelihood],
        kernel: Kernel,
        extra_variances: tuple[float, ...],
        search: EvidenceSearch,
        largest_sizes: tuple[int, int],
        largest_boundary: float,
    ) -> None:
        self.likelihood_for, self.kernel = likelihood_for, kernel
        self.extra_variances, self.search = extra_variances, search
        self.limits = largest_sizes, largest_boundary
        self.n_evaluations = 0

    def finished(self, basis: HilbertBasis, start: NDArray | None) -> FittedProcess:
        """Return the fit from which on no larger basis is asked for."""
        while True:
            prior = ProcessPrior(basis, self.kernel, self.extra_variances)
            starts = None if start is None else (start,)
            posterior = self.search.run(self.likelihood_for(basis), prior, starts)
            self.n_evaluations += posterior.n_evaluations
            larger = self._enlarged(basis, posterior.theta)
            if larger == basis:
                return FittedProcess(prior, posterior)
            basis, start = larger, posterior.theta

    def finer(self, process: FittedProcess) -> tuple[HilbertBasis, NDArray] | None:
        """Return a larger basis and where to begin there, if half the length-scales say more.

        Functions that a basis does not have can be made up for by those that it has, if these are
        allowed to be large: the evidence then has a top with too long length-scales, and a sigma
        that is too large.
        """
        # benchmarks/quality.py: acts in 8 of 130 fits to "choose" and "paper", where gp-density
        # gains 0.02 nats on average (ridership with BRR 0.045, loans with NGBoost 0.054)
        lower, upper = np.transpose(self.search.bounds)
        theta = process.posterior.theta
        halved = np.clip(theta - np.log([max(process.sigma, 1.0), 2.0, 2.0]), lower, upper)
        basis = self._enlarged(process.basis, halved)
        if basis == process.basis:
            return None
        prior = ProcessPrior(basis, self.kernel, self.extra_variances)
        self.n_evaluations += 1
        there = laplace_evidence(self.likelihood_for(basis), prior, halved, tolerance=_ROUGHLY)
        more = there.value - process.posterior.log_evidence
        return (basis, halved) if more > _VERY_STRONG else None

    def _enlarged(self, basis: HilbertBasis, theta: NDArray) -> HilbertBasis:
        return _enlarge(basis, self.kernel, np.exp(theta[1:]), *self.limits)


def _enlarge(
    basis: HilbertBasis,
    kernel: Kernel,
    lengthscales: NDArray,
    largest_sizes: tuple[int, int],
    largest_boundary: float,
) -> HilbertBasis:
    """Return a basis that suits the length-scales as far as the limits allow; never smaller."""
    current = np.broadcast_to(np.asarray(basis.boundary, dtype=float), 2)
    needed = np.minimum(basis.required_boundary(kernel, lengthscales), largest_boundary)
    # A tenth more of either is not worth another fit.
    boundary = np.where(needed > 1.1 * current, needed, current)
    wider = replace(basis, boundary=(float(boundary[0]), float(boundary[1])))
    required = wider.required_sizes(kernel, lengthscales)
    sizes = tuple(
        max(has, min(needs, most)) if needs > 1.1 * has else has
        for has, needs, most in zip(basis.sizes, required, largest_sizes, strict=True)
    )
    if np.array_equal(boundary, current) and sizes == basis.sizes:
        return basis
    return replace(wider, sizes=(sizes[0], sizes[1]))


def _warn_if_small(basis: HilbertBasis, kernel: Kernel, lengthscales: NDArray) -> None:
    """Warn when an axis has too few functions for its length-scale."""
    required = basis.required_sizes(kernel, lengthscales)
    if any(needs > 1.1 * has for has, needs in zip(basis.sizes, required, strict=True)):
        msg = (
            f"The length-scales {lengthscales.round(3)} need {required} basis functions, and the "
            f"basis has {basis.sizes}. Raise largest_sizes, or bound the length-scales from below."
        )
        warnings.warn(msg, BasisWarning, stacklevel=3)
