"""A latent distribution seen in steps: counts and other lattices."""

from collections.abc import Callable
from typing import Any, Self

import numpy as np

from regcal._validation import Array
from regcal.distributions._quadrature import integrate
from regcal.distributions.base import Distribution, checked_base
from regcal.distributions.primitives import PANEL_PROBITS, mass_between, outer_tail
from regcal.ends import checked_step

# So many values around the median are summed. 512 steps from it the midpoint rule for the latent
# distribution, whose error goes with the square of a step over the distance, has seven digits.
_MOST_VALUES = 1024


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
        self.base = checked_base(dist)
        self.step = checked_step(step)
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
            # 0.0 is added so that no value is -0.0
            return np.where(np.isfinite(latent), np.ceil(latent - 0.5), latent) * self.step + 0.0

    def _window(self) -> tuple[Array, bool]:
        """Return values around the median, (n_rows, n_values), and whether they are all."""
        probits = np.broadcast_to(PANEL_PROBITS[[0, len(PANEL_PROBITS) // 2, -1]], (len(self), 3))
        first, middle, last = np.hsplit(self._from_probit(probits), 3)
        reach = _MOST_VALUES // 2 * self.step
        low, high = np.maximum(first, middle - reach), np.minimum(last, middle + reach)
        count = int(np.round((high - low) / self.step).max(initial=0.0))
        values = low + self.step * np.arange(count + 1)
        return values, bool(((first >= low) & (last <= high)).all())

    def _kinks(self) -> Array:
        return self._window()[0]

    def _integral(
        self, function: Callable[[Array, Array, Array], Array], cuts: Array, start: Any, end: Any
    ) -> Array:
        """Integrate a function of t, cdf and sf that is at most linear in t between the cuts."""
        values, complete = self._window()
        edges = np.sort(np.concatenate([values, cuts], axis=1), axis=1)
        edges = np.clip(np.clip(edges, values[:, :1], values[:, -1:]), start, end)
        left, width = edges[:, :-1], np.diff(edges)
        total = (width * function(left + 0.5 * width, self._cdf(left), self._sf(left))).sum(axis=1)
        if complete and ((cuts >= values[:, :1]) & (cuts <= values[:, -1:])).all():
            return total

        # each step is a midpoint rule for the latent distribution, and this far out as good
        def latent(points: Array) -> Array:
            return function(points, self.base._cdf(points), self.base._sf(points))

        panels = np.sort(np.concatenate([self.base._panel_edges(), cuts], axis=1), axis=1)
        panels = np.clip(panels, start, end)
        outer = np.minimum(panels, values[:, :1]), np.maximum(panels, values[:, -1:])
        return total + sum(integrate(latent, edges) for edges in outer)

    def _mean_and_var(self) -> tuple[Array, Array]:
        centre = self._from_probit(np.zeros((len(self), 1)))

        def tail(points: Array, cdf: Array, sf: Array) -> Array:
            return np.where(points < centre, -cdf, sf)

        def weighted_tail(points: Array, cdf: Array, sf: Array) -> Array:
            return 2.0 * (points - centre) * tail(points, cdf, sf)

        shift, second = (
            self._integral(one, centre, -np.inf, np.inf) for one in (tail, weighted_tail)
        )
        return centre[:, 0] + shift, second - shift**2

    def _crps(self, lower: Array, upper: Array, start: Array, end: Array) -> Array:
        below, above = lower[:, np.newaxis], upper[:, np.newaxis]
        cuts = np.where(np.isinf(below), above, below), np.where(np.isinf(above), below, above)

        def squared_tail(points: Array, cdf: Array, sf: Array) -> Array:
            return outer_tail(points, below, above, cdf, sf) ** 2

        region = start[:, np.newaxis], end[:, np.newaxis]
        return self._integral(squared_tail, np.concatenate(cuts, axis=1), *region)
