"""Laplacian eigenfunctions on a box: the features of a Hilbert-space Gaussian process."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from regcal.gp.kernels import Kernel

__all__ = ["HilbertBasis"]


@dataclass(frozen=True)
class HilbertBasis:
    """Products of sines on the box [-L_0, L_0] x [-L_1, L_1] (Solin & Särkkä 2020).

    A function is ``f(x0, x1) = sum_ab B[a, b] phi_a(x0) psi_b(x1)``. Coefficients are stored as
    the raveled matrix B. All evaluations keep the two axes apart. Points must lie inside the box:
    beyond it the sines come back as mirror images.

    Parameters
    ----------
    sizes : tuple of int
        Number of functions on each axis.
    boundary : float or tuple of float
        Half-width of the box over half-width of the data, on both axes or on each.
    halfwidth : tuple of float
        The data lie in [-halfwidth, halfwidth] on each axis.

    Examples
    --------
    >>> basis = HilbertBasis(sizes=(3, 2))
    >>> basis.n_functions
    6
    >>> basis.axis(0, [0.0]).round(3)
    array([[ 0.877,  0.   , -0.877]])
    """

    sizes: tuple[int, int] = (10, 10)
    boundary: float | tuple[float, float] = 1.3
    halfwidth: tuple[float, float] = (1.0, 1.0)

    @property
    def n_functions(self) -> int:
        """Number of product functions."""
        return self.sizes[0] * self.sizes[1]

    @property
    def box(self) -> NDArray:
        """Half-width of the box on each axis."""
        return np.multiply(self.boundary, self.halfwidth)

    @property
    def squared_frequencies(self) -> NDArray:
        """Squared angular frequencies of the product functions, of shape (n_functions, 2)."""
        first, second = np.meshgrid(self.frequencies(0), self.frequencies(1), indexing="ij")
        return np.column_stack([first.ravel(), second.ravel()]) ** 2

    def frequencies(self, axis: int) -> NDArray:
        """Return the angular frequencies of the functions of one axis."""
        return np.arange(1, self.sizes[axis] + 1) * np.pi / (2 * self.box[axis])

    def axis(self, axis: int, x: ArrayLike) -> NDArray:
        """Return the functions of one axis at the points `x`, of shape (n, sizes[axis])."""
        return np.sin(self.phases(axis, x, self.sizes[axis])[:, 1:]) / np.sqrt(self.box[axis])

    def axis_derivative(self, axis: int, x: ArrayLike) -> NDArray:
        """Return the derivatives of the functions of one axis, of shape (n, sizes[axis])."""
        amplitude = self.frequencies(axis) / np.sqrt(self.box[axis])
        return np.cos(self.phases(axis, x, self.sizes[axis])[:, 1:]) * amplitude

    def phases(self, axis: int, x: ArrayLike, highest: int) -> NDArray:
        """Return the multiples 0, ..., `highest` of the lowest phase, of shape (n, highest + 1)."""
        half = self.box[axis]
        lowest = np.pi * (np.asarray(x, dtype=float).ravel() + half) / (2 * half)
        return np.multiply.outer(lowest, np.arange(highest + 1))

    def products(self, axis: int, orders: tuple[int, int]) -> sparse.csr_array:
        """Write products of two functions of one axis as sums of single waves.

        Parameters
        ----------
        axis : int
            The axis, 0 or 1.
        orders : tuple of int
            For each factor, 0 for the function itself and 1 for its derivative.

        Returns
        -------
        csr_array of shape (sizes[axis] ** 2, 2 * sizes[axis] + 1)
            Row (a, b), raveled, holds the coefficients of factor a times factor b in
            the cosines of `phases` when the orders are equal, in the sines when they differ.
        """
        return _products(self.sizes[axis], float(self.box[axis]), orders)

    def grid(self, coefficients: ArrayLike, x0: ArrayLike, x1: ArrayLike) -> NDArray:
        """Evaluate a function on the product of two axes, of shape (n0, n1)."""
        matrix = np.reshape(coefficients, self.sizes)
        return self.axis(0, x0) @ matrix @ self.axis(1, x1).T

    def grid_quadratic(self, covariance: NDArray, x0: ArrayLike, x1: ArrayLike) -> NDArray:
        """Return the variance of a function with that coefficient covariance, on a grid.

        A product of two sines is a sum of cosines, so the variance is a cosine series and costs
        two small matrix products, whatever the number of functions.
        """
        series = self.quadratic_series(covariance, (0, 0), (0, 0))
        waves = [np.cos(self.phases(d, x, 2 * self.sizes[d])) for d, x in enumerate((x0, x1))]
        return waves[0] @ series @ waves[1].T

    def quadratic_series(
        self, covariance: NDArray, orders0: tuple[int, int], orders1: tuple[int, int]
    ) -> NDArray:
        """Return the wave coefficients of the quadratic form in `covariance`."""
        m0, m1 = self.sizes
        blocks = covariance.reshape(m0, m1, m0, m1).transpose(0, 2, 1, 3).reshape(m0 * m0, m1 * m1)
        reduced = self.products(0, orders0).T @ blocks
        return (self.products(1, orders1).T @ reduced.T).T

    def quadratic_matrix(
        self, series: NDArray, orders0: tuple[int, int], orders1: tuple[int, int]
    ) -> NDArray:
        """Return the adjoint of the series: an array indexed by (a, b, a', b')."""
        m0, m1 = self.sizes
        expanded = (self.products(1, orders1) @ (self.products(0, orders0) @ series).T).T
        return expanded.reshape(m0, m0, m1, m1).transpose(0, 2, 1, 3)

    def required_sizes(self, kernel: Kernel, lengthscales: ArrayLike) -> tuple[int, int]:
        """Return the number of functions an accurate expansion needs on each axis."""
        needed = np.ceil(kernel.functions_per_box * self.box / np.asarray(lengthscales))
        return int(needed[0]), int(needed[1])

    def required_boundary(self, kernel: Kernel, lengthscales: ArrayLike) -> NDArray:
        """Return the boundary factor an accurate expansion needs on each axis."""
        relative = np.asarray(lengthscales) / np.asarray(self.halfwidth)
        return kernel.boundary_per_lengthscale * relative


@lru_cache(maxsize=256)
def _products(size: int, half: float, orders: tuple[int, int]) -> sparse.csr_array:
    """Return `HilbertBasis.products` for one axis; see there."""
    first, second = np.divmod(np.arange(size * size), size) + np.ones((2, 1), dtype=int)
    lowest = np.pi / (2 * half)
    amplitude = (lowest * first) ** orders[0] * (lowest * second) ** orders[1] * 0.5 / half
    # sin a sin b = (cos(a-b) - cos(a+b)) / 2 and its kin; cos a sin b has sin(b-a), which is
    # odd, so that its sign moves into the coefficient.
    sum_sign = -1.0 if orders == (0, 0) else 1.0
    difference_sign = np.sign(first - second) ** abs(orders[0] - orders[1])
    if orders == (1, 0):
        difference_sign = -difference_sign
    coefficients = np.concatenate([amplitude * difference_sign, amplitude * sum_sign])
    waves = np.concatenate([np.abs(first - second), first + second])
    rows = np.tile(np.arange(size * size), 2)
    return sparse.csr_array((coefficients, (rows, waves)), shape=(size * size, 2 * size + 1))
