"""Distributions given by the user's own CDF."""

from __future__ import annotations

from collections.abc import Callable
from typing import Self

import numpy as np

from regcal._validation import Array, as_float_array
from regcal.distributions._roots import solve_increasing
from regcal.distributions._tails import log_mass_beyond
from regcal.distributions.base import Distribution
from regcal.distributions.primitives import mass_between

# Below this, 1 - cdf is taken from the density instead, if there is one.
_SMALL = 1e-6

# Central differences are over at least so many neighbouring floats.
_SPACINGS = 64.0

RowFunction = Callable[[Array, np.ndarray], Array]


class CustomDistribution(Distribution):
    """A batch of distributions described by functions.

    Parameters
    ----------
    cdf : callable
        ``cdf(points, rows)`` takes points of shape (n, n_points) and the n row numbers they belong
        to, and returns probabilities of the same shape.
    n_rows : int
        Number of distributions.
    pdf : callable, optional
        The density, with the same arguments. Without it, central differences of `cdf` are used.
    sf : callable, optional
        P(Y > t), for accuracy in the upper tail. Without it, ``1 - cdf``, or far out an integral of
        `pdf` if that is given.

    Examples
    --------
    >>> import numpy as np
    >>> from regcal import CustomDistribution
    >>> rate = np.array([1.0, 2.0])
    >>> def cdf(t, rows):
    ...     return 1 - np.exp(-rate[rows, np.newaxis] * np.maximum(t, 0))
    >>> dist = CustomDistribution(cdf, n_rows=2)
    >>> dist.ppf(0.5).round(4)
    array([0.6931, 0.3466])
    """

    def __init__(
        self,
        cdf: RowFunction,
        n_rows: int,
        pdf: RowFunction | None = None,
        sf: RowFunction | None = None,
    ) -> None:
        if not callable(cdf):
            msg = f"cdf must be a function of (points, rows), got {type(cdf).__name__}."
            raise TypeError(msg)
        if int(n_rows) < 1:
            msg = f"n_rows must be at least 1, got {n_rows}."
            raise ValueError(msg)
        self._functions = (cdf, pdf, sf)
        self._rows = np.arange(int(n_rows))
        self._check_limits()
        self._quartiles = self._find_quartiles()

    def _check_limits(self) -> None:
        ends = self._call(self._functions[0], np.array([[-np.inf, np.inf]]))
        if not (np.allclose(ends[:, 0], 0, atol=1e-6) and np.allclose(ends[:, 1], 1, atol=1e-6)):
            row = int(np.argwhere(~np.isclose(ends, [0.0, 1.0], atol=1e-6))[0][0])
            msg = (
                f"cdf must be 0 at -inf and 1 at inf, row {row} gives {ends[row].tolist()}. "
                "Clip the points to the support inside the function if it cannot take infinities."
            )
            raise ValueError(msg)

    def __len__(self) -> int:
        return len(self._rows)

    def _take(self, rows: np.ndarray) -> Self:
        part = object.__new__(type(self))
        part._functions, part._rows = self._functions, self._rows[rows]
        part._quartiles = self._quartiles[rows]
        return part

    def _call(self, function: RowFunction, points: Array) -> Array:
        return self._call_rows(function, points, self._rows)

    def _call_rows(self, function: RowFunction, points: Array, rows: np.ndarray) -> Array:
        shape = (len(rows), points.shape[1])
        values = as_float_array(function(np.broadcast_to(points, shape), rows), "values")
        if values.shape != shape:
            msg = (
                f"The function returned shape {values.shape} for points of shape {shape}. "
                "Index the parameters with rows[:, np.newaxis]."
            )
            raise ValueError(msg)
        if np.isnan(values).any():
            row = int(rows[np.argwhere(np.isnan(values))[0][0]])
            msg = f"The function returned NaN for row {row}. Return a number for every point."
            raise ValueError(msg)
        return values

    def _cdf(self, points: Array) -> Array:
        return np.clip(self._call(self._functions[0], points), 0.0, 1.0)

    def _sf(self, points: Array) -> Array:
        _, pdf, sf = self._functions
        if sf is not None:
            return np.clip(self._call(sf, points), 0.0, 1.0)
        rest = 1.0 - self._cdf(points)
        return rest if pdf is None else self._with_upper_tail(points, rest)

    def _with_upper_tail(self, points: Array, rest: Array) -> Array:
        """Replace ``1 - cdf`` by an integral of the density where it has lost its digits."""
        points = np.broadcast_to(points, rest.shape)
        lost = (rest < _SMALL) & np.isfinite(points)
        if lost.any():
            part, at = self._take(np.nonzero(lost)[0]), points[lost][:, np.newaxis]
            step = 1e-4 * np.abs(at - part._quartiles[:, 1:2])
            logs = log_mass_beyond(part._logpdf, at, 1.0, np.full(at.shape, np.inf), step)[:, 0]
            rest[lost] = np.where(np.isnan(logs), rest[lost], np.exp(np.minimum(logs, 0.0)))
        return rest

    def _logpdf(self, points: Array) -> Array:
        with np.errstate(divide="ignore"):
            return np.log(self._pdf(points))

    def _pdf(self, points: Array) -> Array:
        pdf = self._functions[1]
        if pdf is not None:
            return np.maximum(self._call(pdf, points), 0.0)
        # the cube root of the rounding error balances it against the curvature
        finite = np.where(np.isfinite(points), points, 0.0)
        # of the numbers themselves far from 0, where they are wider apart than that
        step = 5e-6 * (self._quartiles[:, 2:] - self._quartiles[:, :1])
        step = np.maximum(step, _SPACINGS * np.spacing(np.abs(finite)))
        low, high = finite - step, finite + step
        rise = mass_between(self._signed_tail(low), self._signed_tail(high))
        return np.where(np.isfinite(points), rise / (high - low), 0.0)

    def _bracket(self, probits: Array) -> tuple[Array, Array]:
        low, high = self._quartiles[:, :1], self._quartiles[:, 2:]
        return np.broadcast_to(low, probits.shape), np.broadcast_to(high, probits.shape)

    def _find_quartiles(self) -> Array:
        levels = np.broadcast_to([0.25, 0.5, 0.75], (len(self), 3))

        def cdf_of_rows(rows: np.ndarray, points: Array) -> tuple[Array, Array]:
            values = self._call_rows(self._functions[0], points, rows)
            return values, np.full(points.shape, np.nan)

        ones = np.ones(levels.shape)
        quartiles = solve_increasing(cdf_of_rows, levels, -ones, ones)
        flat = quartiles[:, 0] >= quartiles[:, 2]
        if flat.any():
            row = int(np.flatnonzero(flat)[0])
            msg = (
                f"cdf of row {row} jumps from below 0.25 to above 0.75 at {quartiles[row, 1]:.6g}. "
                "Only continuous distributions have a density: pass draws or bins instead."
            )
            raise ValueError(msg)
        return quartiles
