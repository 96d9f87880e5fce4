"""Linear predictors: the four products with a feature matrix that inference needs.

The features of a `TensorDesign` are never written out, since products of sines are sums of cosines:
the normal matrix of n observations on m x m functions costs n m + K m**2 + m**4 operations for K
distinct second coordinates.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property, reduce
from itertools import combinations_with_replacement
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from regcal.gp.basis import HilbertBasis

__all__ = ["DenseDesign", "Design", "TensorDesign"]


class Design(Protocol):
    """A feature matrix X of shape (n_observations, n_coefficients).

    Examples
    --------
    >>> import numpy as np
    >>> from regcal.gp import DenseDesign
    >>> design = DenseDesign(np.array([[1.0, 0.0], [1.0, 2.0]]))
    >>> design.predict(np.array([1.0, 1.0]))
    array([1., 3.])
    """

    @property
    def n_coefficients(self) -> int:
        """Number of columns."""

    def predict(self, coefficients: NDArray) -> NDArray:
        """Return X b."""

    def adjoint(self, values: NDArray) -> NDArray:
        """Return Xᵀ v."""

    def gram(self, weights: NDArray) -> NDArray:
        """Return Xᵀ diag(w) X."""

    def quadratic(self, covariance: NDArray) -> NDArray:
        """Return the diagonal of X C Xᵀ."""

    def restrict(self, active: NDArray) -> Design:
        """Return the design of a subset of the columns."""


@dataclass(frozen=True)
class DenseDesign:
    """A feature matrix that is written out.

    Parameters
    ----------
    features : ndarray of shape (n_observations, n_coefficients)
        One row of feature values per observation.

    Examples
    --------
    >>> DenseDesign(np.array([[1.0, 2.0]])).predict(np.array([1.0, 1.0]))
    array([3.])
    """

    features: NDArray

    @property
    def n_coefficients(self) -> int:
        """Number of columns."""
        return self.features.shape[1]

    def predict(self, coefficients: NDArray) -> NDArray:
        """Return the linear predictor of every row."""
        return self.features @ coefficients

    def adjoint(self, values: NDArray) -> NDArray:
        """Return the features summed with one weight per row."""
        return values @ self.features

    def gram(self, weights: NDArray) -> NDArray:
        """Return the weighted normal matrix; the weights must not be negative."""
        # X'X with one and the same array on both sides makes NumPy call the symmetric product.
        rows = self.features * np.sqrt(weights)[:, np.newaxis]
        return rows.T @ rows

    def quadratic(self, covariance: NDArray) -> NDArray:
        """Return the variance of every row's predictor under a coefficient covariance."""
        return np.einsum("ij,ij->i", self.features @ covariance, self.features)

    def restrict(self, active: NDArray) -> DenseDesign:
        """Return the design of a subset of the columns."""
        return self if len(active) == self.n_coefficients else DenseDesign(self.features[:, active])


@dataclass(frozen=True)
class _Part:
    """One product of axis functions or their derivatives, times a number per observation."""

    orders: tuple[int, int]
    scale: NDArray


class _Tables:
    """Where observations are, and the waves and functions of a basis there.

    Observations that share their second coordinate belong to one level.
    """

    def __init__(
        self, basis: HilbertBasis, points: NDArray, levels: NDArray, level_of: NDArray
    ) -> None:
        self.basis, self.points, self.levels, self.level_of = basis, points, levels, level_of
        self._last_cut: _Tables | None = None

    @classmethod
    def at(cls, basis: HilbertBasis, x0: ArrayLike, x1: ArrayLike) -> _Tables:
        """Return the tables of scattered points."""
        points = np.asarray(x0, dtype=float).ravel()
        second = np.asarray(x1, dtype=float).ravel()
        levels, level_of = np.unique(second, return_inverse=True)
        if len(levels) == len(second):
            levels, level_of = second, np.arange(len(second))
        if len(level_of) != len(points):
            msg = (
                f"Got {len(points)} first and {len(level_of)} second coordinates. "
                "Pass one pair per observation."
            )
            raise ValueError(msg)
        return cls(basis, points, levels, level_of)

    @cached_property
    def waves(self) -> dict[str, tuple[NDArray, NDArray]]:
        """Cosines and sines of all multiples of the phases, for both axes."""
        m0, m1 = self.basis.sizes
        phases = (
            self.basis.phases(0, self.points, 2 * m0),
            self.basis.phases(1, self.levels, 2 * m1),
        )
        return {
            "cos": (np.cos(phases[0]), np.cos(phases[1])),
            "sin": (np.sin(phases[0]), np.sin(phases[1])),
        }

    @cached_property
    def axes(self) -> tuple[tuple[NDArray, NDArray], tuple[NDArray, NDArray]]:
        """Functions and derivatives of the first axis at points, of the second at levels."""
        return self._of_axis(0), self._of_axis(1)

    def _of_axis(self, axis: int) -> tuple[NDArray, NDArray]:
        own = slice(1, self.basis.sizes[axis] + 1)
        sines, cosines = self.waves["sin"][axis][:, own], self.waves["cos"][axis][:, own]
        root = np.sqrt(self.basis.box[axis])
        return sines / root, cosines * (self.basis.frequencies(axis) / root)

    @cached_property
    def _level_sums(self) -> sparse.csr_array:
        """The matrix that sums the observations of every level, its weights to be filled in."""
        counts = np.bincount(self.level_of, minlength=len(self.levels))
        order = np.argsort(self.level_of, kind="stable")
        shape = (len(self.levels), len(order))
        return sparse.csr_array((np.ones(len(order)), order, np.append(0, counts.cumsum())), shape)

    def sum_levels(self, weights: NDArray, rows: NDArray) -> NDArray:
        """Return the weighted sum of the rows of every level."""
        if len(self.levels) == len(self.points):
            return weights[:, np.newaxis] * rows
        sums = self._level_sums
        sums.data = weights[sums.indices]  # far cheaper than a new matrix
        return sums @ rows

    def at_points(self, rows: NDArray) -> NDArray:
        """Return the row of each observation's level."""
        return rows if len(self.levels) == len(self.points) else rows.take(self.level_of, axis=0)

    def cut(self, sizes: tuple[int, int]) -> _Tables:
        """Return the tables of the first functions of each axis; designs share the last ones."""
        if self._last_cut is None or self._last_cut.basis.sizes != sizes:
            basis = replace(self.basis, sizes=sizes)
            small = _Tables(basis, self.points, self.levels, self.level_of)
            small.__dict__["_level_sums"] = self._level_sums
            small.__dict__["waves"] = {
                name: (
                    np.ascontiguousarray(first[:, : 2 * sizes[0] + 1]),
                    np.ascontiguousarray(second[:, : 2 * sizes[1] + 1]),
                )
                for name, (first, second) in self.waves.items()
            }
            self._last_cut = small
        return self._last_cut


@dataclass(frozen=True, eq=False)
class TensorDesign:
    """Features of a `HilbertBasis` at scattered points, kept as products of two axes.

    Coefficients are the `extra` columns first, then the functions of the basis. Points that share
    their second coordinate (cells of one threshold) share work. Build it with `values`, and with
    `slopes` that of derivatives at the same points.

    Examples
    --------
    >>> basis = HilbertBasis(sizes=(4, 3))
    >>> design = TensorDesign.values(basis, [0.0, 0.5], [0.1, 0.1], extra=np.ones((2, 1)))
    >>> design.n_coefficients
    13
    >>> design.gram(np.ones(2)).shape
    (13, 13)
    """

    tables: _Tables
    parts: tuple[_Part, ...]
    extra: NDArray
    active: NDArray | None = field(default=None)

    @classmethod
    def values(
        cls, basis: HilbertBasis, x0: ArrayLike, x1: ArrayLike, extra: ArrayLike | None = None
    ) -> TensorDesign:
        """Return the design of function values at the points (x0, x1).

        Parameters
        ----------
        basis : HilbertBasis
            The functions.
        x0, x1 : array-like of shape (n,)
            Coordinates of the observations.
        extra : array-like of shape (n, n_extra), optional
            Further columns, for example a constant.
        """
        tables = _Tables.at(basis, x0, x1)
        n = len(tables.points)
        return cls(tables, (_Part((0, 0), np.ones(n)),), _columns(extra, n))

    def slopes(
        self, along: tuple[ArrayLike, ArrayLike], extra: ArrayLike | None = None
    ) -> TensorDesign:
        """Return the design of derivatives along a direction at the points of this one.

        Parameters
        ----------
        along : pair of array-like of shape (n,)
            The direction: the feature is along[0] * df/dx0 + along[1] * df/dx1.
        extra : array-like of shape (n, n_extra), optional
            The slopes of the further columns, for example 0 for a constant.
        """
        n = len(self.tables.points)
        scales = [np.array(np.broadcast_to(a, n), dtype=float) for a in along]
        parts = (_Part((1, 0), scales[0]), _Part((0, 1), scales[1]))
        return TensorDesign(self.tables, parts, _columns(extra, n))

    @property
    def basis(self) -> HilbertBasis:
        """The functions."""
        return self.tables.basis

    @property
    def n_coefficients(self) -> int:
        """Number of extra columns and basis functions."""
        return self._n_extra + (self.basis.n_functions if self.active is None else len(self.active))

    @property
    def _n_extra(self) -> int:
        return self.extra.shape[1]

    @cached_property
    def _changing_extra(self) -> NDArray:
        """The numbers of the extra columns that are not 0, as that of the slope of a constant."""
        return np.flatnonzero(self.extra.any(axis=0))

    def _matrix(self, coefficients: NDArray) -> NDArray:
        """Return the coefficients of the basis functions as a matrix."""
        flat = coefficients[self._n_extra :]
        if self.active is not None:
            flat = _scatter(flat, self.active, self.basis.n_functions)
        return flat.reshape(self.basis.sizes)

    def _functions(self, part: _Part) -> tuple[NDArray, NDArray]:
        """Return the functions or derivatives of each axis."""
        first, second = self.tables.axes
        return first[part.orders[0]], second[part.orders[1]]

    def predict(self, coefficients: NDArray) -> NDArray:
        """Return the linear predictor at every point."""
        matrix = self._matrix(coefficients)
        total = self.extra @ coefficients[: self._n_extra]
        for part in self.parts:
            first, second = self._functions(part)
            rows = self.tables.at_points(second @ matrix.T)
            total = total + part.scale * np.einsum("ij,ij->i", first, rows)
        return total

    def adjoint(self, values: NDArray) -> NDArray:
        """Return the features summed with one weight per observation."""
        total = np.zeros(self.basis.sizes)
        for part in self.parts:
            first, second = self._functions(part)
            total += self.tables.sum_levels(values * part.scale, first).T @ second
        flat = total.ravel() if self.active is None else total.ravel()[self.active]
        return np.concatenate([values @ self.extra, flat])

    def dense(self) -> DenseDesign:
        """Return the features written out."""
        total = np.zeros((len(self.extra), *self.basis.sizes))
        for part in self.parts:
            first, second = self._functions(part)
            scaled = part.scale[:, np.newaxis] * first
            total += scaled[:, :, np.newaxis] * self.tables.at_points(second)[:, np.newaxis, :]
        flat = total.reshape(len(self.extra), -1)
        flat = flat if self.active is None else flat[:, self.active]
        return DenseDesign(np.concatenate([self.extra, flat], axis=1))

    def gram(self, weights: NDArray) -> NDArray:
        """Return the weighted normal matrix."""
        n_extra, blocks = self._n_extra, self._gram_blocks(weights)
        full = np.zeros((self.n_coefficients,) * 2)
        inner = full[n_extra:, n_extra:]
        if self.active is None:
            # Splitting axes makes a view, so the blocks are written in place.
            inner.reshape(blocks.shape)[...] = blocks
        else:
            square = blocks.reshape((self.basis.n_functions,) * 2)
            inner[...] = square[np.ix_(self.active, self.active)]
        for k in self._changing_extra:
            full[k] = full[:, k] = self.adjoint(weights * self.extra[:, k])
        return full

    def _gram_blocks(self, weights: NDArray) -> NDArray:
        """Return the normal matrix of the functions, indexed by (a, b, a', b')."""
        blocks = []
        for one, two in combinations_with_replacement(self.parts, 2):
            orders, waves = self._pair(one, two)
            sums = self.tables.sum_levels(weights * one.scale * two.scale, waves[0])
            block = self.basis.quadratic_matrix(sums.T @ waves[1], *orders)
            blocks.append(block if one is two else block + block.transpose(2, 3, 0, 1))
        return reduce(np.add, blocks)

    def _pair(self, one: _Part, two: _Part):
        """Return the derivative orders of a product of parts, and the waves it is made of."""
        orders = tuple(zip(one.orders, two.orders, strict=True))
        return orders, self.tables.waves["cos" if one is two else "sin"]

    def quadratic(self, covariance: NDArray) -> NDArray:
        """Return the variance of every predictor under a coefficient covariance."""
        n_extra = self._n_extra
        total = np.einsum("ij,ij->i", self.extra @ covariance[:n_extra, :n_extra], self.extra)
        block = covariance[n_extra:, n_extra:]
        if self.active is not None:
            block = _scatter_square(block, self.active, self.basis.n_functions)
        for one, two in combinations_with_replacement(self.parts, 2):
            orders, waves = self._pair(one, two)
            series = self.basis.quadratic_series(block, *orders)
            rows = self.tables.at_points(waves[1] @ series.T)
            scale = one.scale * two.scale * (1.0 if one is two else 2.0)
            total = total + scale * np.einsum("ij,ij->i", waves[0], rows)
        for k in self._changing_extra:
            cross = np.concatenate([np.zeros(n_extra), covariance[k, n_extra:]])
            total = total + 2.0 * self.extra[:, k] * self.predict(cross)
        return np.maximum(total, 0.0)

    def restrict(self, active: NDArray) -> TensorDesign:
        """Return the design of a subset of the columns, which must keep all extra ones."""
        if len(active) == self.n_coefficients:
            return self
        kept = active[self._n_extra :] - self._n_extra
        if self.active is not None:
            kept = self.active[kept]
        first, second = np.divmod(kept, self.basis.sizes[1])
        sizes = (int(first.max(initial=0)) + 1, int(second.max(initial=0)) + 1)
        inner = first * sizes[1] + second
        complete = len(inner) == sizes[0] * sizes[1]
        return replace(self, tables=self.tables.cut(sizes), active=None if complete else inner)


def _columns(extra: ArrayLike | None, n: int) -> NDArray:
    """Return further columns of a design of n observations, if any, as a matrix."""
    columns = np.empty((n, 0)) if extra is None else np.asarray(extra, dtype=float)
    return columns if columns.ndim == 2 else columns[:, np.newaxis]


def _scatter(values: NDArray, index: NDArray, size: int) -> NDArray:
    """Return a vector of zeros with `values` at `index`."""
    full = np.zeros(size)
    full[index] = values
    return full


def _scatter_square(matrix: NDArray, index: NDArray, size: int) -> NDArray:
    """Return a matrix of zeros with `matrix` at the rows and columns `index`."""
    full = np.zeros((size, size))
    full[np.ix_(index, index)] = matrix
    return full
