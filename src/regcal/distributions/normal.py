"""Normal distributions, the output of most probabilistic regressors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr

from regcal._random import as_generator
from regcal._validation import Array, as_float_array, check_column, check_positive
from regcal.distributions.base import ProbitDistribution, check_size
from regcal.distributions.primitives import log_normal_density, mass_between, signed_tails
from regcal.maps.members import Members


def check_loc_scale(loc: ArrayLike, scale: ArrayLike) -> tuple[Array, Array]:
    """Return location and scale as finite columns of one length, the scale positive."""
    loc_column, scale_column = _column(loc, "loc"), _column(scale, "scale")
    check_positive(scale_column, "scale")
    n_rows = max(len(loc_column), len(scale_column))
    for name, column in (("loc", loc_column), ("scale", scale_column)):
        if len(column) not in (1, n_rows):
            msg = (
                f"Got {len(loc_column)} values of loc and {len(scale_column)} of scale; {name} "
                f"has to have {n_rows} or be a single number. Pass one of each per row."
            )
            raise ValueError(msg)
    return (
        loc_column.repeat(n_rows // len(loc_column)),
        scale_column.repeat(n_rows // len(scale_column)),
    )


def _column(values: ArrayLike, name: str) -> Array:
    array = as_float_array(values, name)
    return check_column(array.reshape(1) if array.ndim == 0 else array, name)


class Normal(ProbitDistribution):
    """Normal distributions given by their means and standard deviations.

    Parameters
    ----------
    loc : array-like of shape (n_rows,) or float
        Means.
    scale : array-like of shape (n_rows,) or float
        Standard deviations, positive.

    Examples
    --------
    >>> from regcal import Normal
    >>> dist = Normal(loc=[0.0, 10.0], scale=[1.0, 2.0])
    >>> dist.cdf([0.0, 12.0]).round(3)
    array([0.5  , 0.841])
    >>> low, high = dist.interval(0.9)
    >>> high.round(2)
    array([ 1.64, 13.29])
    """

    _explicit = _straight = True
    _row_fields = ("loc", "scale")

    def __init__(self, loc: ArrayLike, scale: ArrayLike) -> None:
        self.loc, self.scale = check_loc_scale(loc, scale)

    def __len__(self) -> int:
        return len(self.loc)

    def _take(self, rows: np.ndarray) -> Self:
        part = object.__new__(type(self))
        part.loc, part.scale = self.loc[rows], self.scale[rows]
        return part

    @classmethod
    def _joint(cls, parts: Sequence[Normal], members: Members) -> Normal:
        whole = object.__new__(cls)
        whole.loc = np.concatenate([part.loc for part in parts])
        whole.scale = np.concatenate([part.scale for part in parts])
        return whole

    def _probit(self, points: Array) -> Array:
        z = points - self.loc[:, np.newaxis]
        z /= self.scale[:, np.newaxis]
        return z

    def _probit_and_logslope(self, points: Array) -> tuple[Array, Array]:
        z = self._probit(points)
        return z, np.full(z.shape, -np.log(self.scale)[:, np.newaxis])

    def _from_probit(self, probits: Array) -> Array:
        return self.loc[:, np.newaxis] + self.scale[:, np.newaxis] * probits

    def _trace(self, probits: Array) -> tuple[Array, Array]:
        return self._from_probit(probits), self.scale[:, np.newaxis]

    def _largest_spread(self) -> Array:
        return self.scale

    def _mean_and_var(self) -> tuple[Array, Array]:
        return self.loc.copy(), self.scale**2

    def _partial_moments(self, edges: Array) -> tuple[Array, Array, Array]:
        z, scale = self._probit(edges), self.scale[:, np.newaxis]
        density = np.exp(log_normal_density(z))
        # z phi(z), which vanishes at the open ends; the integral of z^2 phi is Phi - z phi
        slope = np.where(np.isinf(z), 0.0, z) * density
        tails = signed_tails(z)
        second = mass_between(tails[:, :-1], tails[:, 1:]) - (slope[:, 1:] - slope[:, :-1])
        first = density[:, :-1] - density[:, 1:]
        return self.loc[:, np.newaxis], scale * first, scale**2 * second

    def _crps(self, lower: Array, upper: Array, start: Array, end: Array) -> Array:
        lower, upper, start, end = (
            (place - self.loc) / self.scale for place in (lower, upper, start, end)
        )
        below = _squared_cdf_up_to(np.minimum(lower, end)) - _squared_cdf_up_to(
            np.minimum(lower, start)
        )
        above = _squared_cdf_up_to(-np.maximum(upper, start)) - _squared_cdf_up_to(
            -np.maximum(upper, end)
        )
        return self.scale * (below + above)

    def sample(self, size: int = 1, random_state: Any = None) -> Array:
        """Draw `size` values per row, as an array of shape (n_rows, size)."""
        generator = as_generator(random_state)
        return self._from_probit(generator.normal(size=(len(self), check_size(size))))


def _squared_cdf_up_to(z: Array) -> Array:
    """Return the integral of Phi^2 from -inf to z; at z and -z they add up to the CRPS."""
    # Gneiting and Raftery (2007), equation 21, is the sum of both sides; from -40 on it is 0
    z = np.maximum(z, -40.0)
    cdf, density = ndtr(z), np.exp(log_normal_density(z))
    return z * cdf**2 + 2 * density * cdf - ndtr(np.sqrt(2) * z) / np.sqrt(np.pi)
