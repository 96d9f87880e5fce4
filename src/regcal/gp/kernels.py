"""Stationary kernels, described by their spectral densities.

Every kernel has unit variance and one length-scale per axis. A new kernel joins by offering
`log_spectral_density` and the two numbers that size a basis for it.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import lgamma
from typing import ClassVar, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["RBF", "Kernel", "Matern32", "Matern52"]


class Kernel(Protocol):
    """What the Hilbert-space expansion needs to know about a kernel.

    Examples
    --------
    >>> from regcal.gp import RBF
    >>> log_density, gradient = RBF().log_spectral_density([[0.0, 0.0]], [0.0, 0.0])
    >>> log_density.shape, gradient.shape
    ((1,), (1, 2))
    """

    @property
    def functions_per_box(self) -> float:
        """Basis functions needed per (half-width of the box / length-scale)."""

    @property
    def boundary_per_lengthscale(self) -> float:
        """Boundary factor needed per (length-scale / half-width of the data)."""

    def log_spectral_density(
        self, squared_frequencies: ArrayLike, log_lengthscales: ArrayLike
    ) -> tuple[NDArray, NDArray]:
        """Return log S at each frequency and its gradient in the log length-scales."""


@dataclass(frozen=True)
class RBF:
    """Squared-exponential kernel, ``exp(-r**2 / 2)`` in scaled distance r.

    Examples
    --------
    >>> log_density, gradient = RBF().log_spectral_density([[0.0, 0.0]], [0.0, 0.0])
    >>> round(float(np.exp(log_density[0])), 6)  # 2 pi
    6.283185
    >>> gradient
    array([[1., 1.]])
    """

    # Riutort-Mayol et al. (2022), Section 4.2.
    functions_per_box: ClassVar[float] = 1.75
    boundary_per_lengthscale: ClassVar[float] = 3.2

    def log_spectral_density(
        self, squared_frequencies: ArrayLike, log_lengthscales: ArrayLike
    ) -> tuple[NDArray, NDArray]:
        """Return the log spectral density and its gradient.

        Parameters
        ----------
        squared_frequencies : array-like of shape (n_functions, n_axes)
            Squared angular frequency of each function on each axis.
        log_lengthscales : array-like of shape (n_axes,)
            One log length-scale per axis.

        Returns
        -------
        log_density : ndarray of shape (n_functions,)
            Logarithm of the spectral density.
        gradient : ndarray of shape (n_functions, n_axes)
            Its derivative in each log length-scale.
        """
        scaled, log_volume = _scale(squared_frequencies, log_lengthscales)
        n_axes = scaled.shape[1]
        log_density = 0.5 * n_axes * np.log(2 * np.pi) + log_volume - 0.5 * scaled.sum(axis=1)
        return log_density, 1.0 - scaled


class _Matern:
    """Matérn kernel of half-integer smoothness, isotropic after scaling each axis."""

    smoothness: ClassVar[float]
    functions_per_box: ClassVar[float]
    boundary_per_lengthscale: ClassVar[float]

    def log_spectral_density(
        self, squared_frequencies: ArrayLike, log_lengthscales: ArrayLike
    ) -> tuple[NDArray, NDArray]:
        """Return the log spectral density and its gradient; see `RBF`."""
        scaled, log_volume = _scale(squared_frequencies, log_lengthscales)
        n_axes = scaled.shape[1]
        nu, power = self.smoothness, self.smoothness + 0.5 * n_axes
        radius = 2 * nu + scaled.sum(axis=1)
        # Rasmussen & Williams (2006), equation 4.15.
        log_constant = (
            n_axes * (np.log(2.0) + 0.5 * np.log(np.pi))
            + _log_gamma_ratio(nu, n_axes)
            + nu * np.log(2 * nu)
        )
        log_density = log_constant + log_volume - power * np.log(radius)
        return log_density, 1.0 - 2.0 * power * scaled / radius[:, np.newaxis]


@dataclass(frozen=True)
class Matern32(_Matern):
    """Matérn kernel of smoothness 3/2: once differentiable functions.

    Examples
    --------
    >>> log_density, _ = Matern32().log_spectral_density([[0.0, 0.0]], [0.0, 0.0])
    >>> round(float(np.exp(log_density[0])), 6)  # 2 pi
    6.283185
    """

    smoothness: ClassVar[float] = 1.5
    functions_per_box: ClassVar[float] = 3.42
    boundary_per_lengthscale: ClassVar[float] = 4.5


@dataclass(frozen=True)
class Matern52(_Matern):
    """Matérn kernel of smoothness 5/2: twice differentiable functions.

    Examples
    --------
    >>> log_density, _ = Matern52().log_spectral_density([[0.0, 0.0]], [0.0, 0.0])
    >>> round(float(np.exp(log_density[0])), 6)  # 2 pi
    6.283185
    """

    smoothness: ClassVar[float] = 2.5
    functions_per_box: ClassVar[float] = 2.65
    boundary_per_lengthscale: ClassVar[float] = 4.1


def _scale(squared_frequencies: ArrayLike, log_lengthscales: ArrayLike) -> tuple[NDArray, float]:
    """Return the frequencies in units of the length-scales, and the log of their product."""
    log_lengthscales = np.asarray(log_lengthscales, dtype=float)
    scaled = np.asarray(squared_frequencies, dtype=float) * np.exp(2 * log_lengthscales)
    return scaled, float(log_lengthscales.sum())


def _log_gamma_ratio(nu: float, n_axes: int) -> float:
    """Return log Γ(ν + D/2) - log Γ(ν)."""
    return lgamma(nu + 0.5 * n_axes) - lgamma(nu)
