"""A latent distribution seen in steps: counts and other lattices."""

from typing import Self

import numpy as np

from regcal._validation import Array, as_float_array
from regcal.distributions.base import PANEL_PROBITS, Distribution, mass_between

# Up to so many values moments are sums over all of them; beyond, the latent ones are as good, but
# for the variance of the rounding.
_MOST_VALUES = 4096


class Rounded(Distribution):
    """The distribution of Y rounded to multiples of a step: P(Y = k), with masses only.

    P(Y <= k) is the latent P(Y <= k + step / 2). `pdf` and `logpdf` give the masses of values, and
    nothing between them.

    Parameters
    ----------
    dist : Distribution
        The latent distributions.
    step : float, default=1.0
        Distance of the values.

    Examples
    --------
    >>> from regcal import Clipped, Normal, Rounded
    >>> visits = Rounded(Clipped(Normal([0.4], [1.0]), low=0.0))
    >>> visits.mass([[0.0, 1.0, 2.0]]).round(3), visits.mass(0.5)
    (array([[0.54 , 0.325, 0.118]]), array([0.]))
    >>> visits.cdf(1.7).round(3), visits.ppf(0.9)
    (array([0.864]), array([2.]))
    """

    _row_fields = ("base",)

    def __init__(self, dist: Distribution, step: float = 1.0) -> None:
        array = as_float_array(step, "step")
        if array.ndim or not (np.isfinite(array) and array > 0):
            msg = f"step must be one positive number, got {step!r}. Counts have a step of 1."
            raise ValueError(msg)
        self.base = dist
        self.step = float(array)
        self._work_per_point = 2 * dist._work_per_point

    def __len__(self) -> int:
        return len(self.base)

    def _details(self) -> list[str]:
        return [self.base._kind(), f"step={self.step:g}"]

    def _take(self, rows: np.ndarray) -> Self:
        return type(self)(self.base._take(rows), self.step)

    def _number(self, points: Array) -> Array:
        """Return how many steps the value at or below each point is from 0."""
        place = points / self.step
        with np.errstate(invalid="ignore"):
            nearest = np.round(place)
            close = np.abs(place - nearest) <= 1e-9 * np.maximum(np.abs(place), 1.0)
        return np.where(close, nearest, np.floor(place))

    def _edge(self, points: Array) -> Array:
        """Return the end of the latent values that are seen at or below points."""
        return (self._number(points) + 0.5) * self.step

    def _cdf(self, points: Array) -> Array:
        return self.base._cdf(self._edge(points))

    def _sf(self, points: Array) -> Array:
        return self.base._sf(self._edge(points))

    def _logcdf(self, points: Array) -> Array:
        return self.base._logcdf(self._edge(points))

    def _logsf(self, points: Array) -> Array:
        return self.base._logsf(self._edge(points))

    def _probit(self, points: Array) -> Array:
        return self.base._probit(self._edge(points))

    def _logpdf(self, points: Array) -> Array:
        return self._logmass(points)

    def _logmass(self, points: Array) -> Array:
        number = self._number(points)
        with np.errstate(invalid="ignore"):
            gap = np.abs(points / self.step - number)
            on_value = np.isfinite(points) & (gap <= 1e-9 * np.maximum(np.abs(number), 1.0))
        centre = np.broadcast_to(np.where(on_value, number, 0.0), (len(self), points.shape[1]))
        low, high = ((centre + side) * self.step for side in (-0.5, 0.5))
        with np.errstate(divide="ignore"):
            mass = np.log(mass_between(*map(self.base._signed_tail, (low, high))))
        return np.where(on_value, mass, -np.inf)

    def _from_probit(self, probits: Array) -> Array:
        latent = self.base._from_probit(probits) / self.step
        with np.errstate(invalid="ignore"):
            return np.where(np.isfinite(latent), np.ceil(latent - 0.5), latent) * self.step

    def _values(self) -> Array | None:
        """Return all values that matter, (n_rows, n_values), unless they are too many."""
        ends = self._from_probit(np.broadcast_to(PANEL_PROBITS[[0, -1]], (len(self), 2)))
        count = np.round((ends[:, 1] - ends[:, 0]) / self.step).max(initial=0.0)
        if not count < _MOST_VALUES:
            return None
        return ends[:, :1] + self.step * np.arange(int(count) + 1)

    def _mean_and_var(self) -> tuple[Array, Array]:
        values = self._values()
        if values is None:
            mean, var = self.base._mean_and_var()
            return mean, var + self.step**2 / 12.0
        masses = np.exp(self._logmass(values))
        mean = (masses * values).sum(axis=1)
        return mean, (masses * (values - mean[:, np.newaxis]) ** 2).sum(axis=1)

    def _crps(self, y: Array) -> Array:
        values = self._values()
        if values is None:
            return self.base._crps(y)
        # the CDF is constant between neighbouring values and the outcome
        edges = np.sort(np.concatenate([values, y[:, np.newaxis]], axis=1), axis=1)
        left, widths = edges[:, :-1], np.diff(edges)
        tail = np.where(left < y[:, np.newaxis], self._cdf(left), self._sf(left))
        return (widths * tail**2).sum(axis=1)
