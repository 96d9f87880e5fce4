"""A latent distribution seen through ends: what lies beyond an end is seen at the end."""

from typing import Any, Self

import numpy as np

from regcal._validation import Array, as_float_array
from regcal.distributions.base import Distribution


class Clipped(Distribution):
    """The distribution of ``clip(Y, low, high)``, with point masses at the ends.

    No rain, no claim, a price that is capped at 50: P(Y = low) is the latent P(Y <= low), and
    P(Y = high) the latent P(Y >= high). At an end `pdf` and `logpdf` give the mass, that is the
    density with respect to length plus the places of the masses.

    Parameters
    ----------
    dist : Distribution
        The latent distributions.
    low, high : float, optional
        Ends of the support, the same for all rows.

    Examples
    --------
    >>> from regcal import Clipped, Normal
    >>> rain = Clipped(Normal([0.0, 5.0], [2.0, 2.0]), low=0.0)
    >>> rain.mass(0.0).round(3), rain.cdf(-0.1), rain.ppf(0.3).round(2)
    (array([0.5  , 0.006]), array([0., 0.]), array([0.  , 3.95]))
    >>> rain.mean().round(2)
    array([0.8, 5. ])
    """

    def __init__(self, dist: Distribution, low: float | None = None, high: float | None = None):
        self.base = dist
        self.low = _end(low, -np.inf, "low")
        self.high = _end(high, np.inf, "high")
        if not self.low < self.high:
            msg = f"low must be smaller than high, got {self.low} and {self.high}. Swap the two."
            raise ValueError(msg)
        self._work_per_point = dist._work_per_point

    def __len__(self) -> int:
        return len(self.base)

    def _details(self) -> list[str]:
        ends = [("low", self.low), ("high", self.high)]
        return [self.base._kind(), *(f"{name}={end:g}" for name, end in ends if np.isfinite(end))]

    def _take(self, rows: np.ndarray) -> Self:
        return type(self)(self.base._take(rows), self.low, self.high)

    def _row_work(self, n_points: int) -> int:
        return self.base._row_work(n_points)

    def _seen(self, points: Array, inside: Array, below: float, above: float) -> Array:
        """Return values inside, and what they are below the low and from the high end on."""
        return np.where(points < self.low, below, np.where(points >= self.high, above, inside))

    def _cdf(self, points: Array) -> Array:
        return self._seen(points, self.base._cdf(points), 0.0, 1.0)

    def _sf(self, points: Array) -> Array:
        return self._seen(points, self.base._sf(points), 1.0, 0.0)

    def _logcdf(self, points: Array) -> Array:
        return self._seen(points, self.base._logcdf(points), -np.inf, 0.0)

    def _logsf(self, points: Array) -> Array:
        return self._seen(points, self.base._logsf(points), 0.0, -np.inf)

    def _probit(self, points: Array) -> Array:
        return self._seen(points, self.base._probit(points), -np.inf, np.inf)

    def _logpdf(self, points: Array) -> Array:
        inside = (points > self.low) & (points < self.high)
        return np.where(inside, self.base._logpdf(points), self._logmass(points))

    def _logmass(self, points: Array) -> Array:
        masses = np.full((len(self), points.shape[1]), -np.inf)
        for end, method in ((self.low, self.base._logcdf), (self.high, self.base._logsf)):
            here = np.broadcast_to(points == end, masses.shape)
            if np.isfinite(end) and here.any():
                masses = np.where(here, method(np.full((1, 1), end)), masses)
        return masses

    def _ends(self) -> tuple[float, ...]:
        return tuple(end for end in (self.low, self.high) if np.isfinite(end))

    def _from_probit(self, probits: Array) -> Array:
        return np.clip(self.base._from_probit(probits), self.low, self.high)

    def _crps(self, lower: Array, upper: Array, start: Array, end: Array) -> Array:
        ends = (np.clip(place, self.low, self.high) for place in (start, end))
        inside = self.base._crps(lower, upper, *ends)
        # outcomes that cannot be: the CDF is 0 from them to the low end, 1 from the high end on
        below = np.minimum(end, self.low) - np.maximum(start, upper)
        above = np.minimum(end, lower) - np.maximum(start, self.high)
        return inside + np.maximum(below, 0.0) + np.maximum(above, 0.0)

    def _landmarks(self) -> Array | None:
        return self.base._landmarks()

    def _kinks(self) -> Array | None:
        return self.base._kinks()


def _end(value: Any, default: float, name: str) -> float:
    if value is None:
        return default
    array = as_float_array(value, name)
    if array.ndim or np.isnan(array):
        msg = f"{name} must be one number, got {value!r}. It is the same for all rows."
        raise ValueError(msg)
    return float(array)
