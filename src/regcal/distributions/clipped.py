"""Latent distributions seen through ends: what lies beyond an end is seen at the end."""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Self

import numpy as np
from scipy.special import ndtr, ndtri

from regcal._validation import Array
from regcal.distributions._quadrature import WHOLE, Effort, Nodes
from regcal.distributions.base import Distribution, checked_base
from regcal.distributions.mixture import Mixture
from regcal.distributions.primitives import PANEL_PROBITS, log_normal_density
from regcal.ends import checked_ends, checked_near

# Levels that differ by this share are equal up to rounding.
_ROUNDING = 16 * float(np.finfo(float).eps)


class Bounded(Distribution):
    """A latent distribution on the whole line, seen through ends where there are any.

    P(Y = low) is the latent P(Y <= low + near), and P(Y = high) the latent P(Y >= high - near). At
    an end `pdf` and `logpdf` give the mass, that is the density with respect to length plus the
    places of the masses.
    """

    # Ends of the support that hold a point mass, the same for all rows.
    low: float = -np.inf
    high: float = np.inf
    # What lies so near to an end is seen at it as well.
    near: float = 0.0

    @property
    @abstractmethod
    def latent(self) -> Distribution:
        """The distributions behind the ends."""

    @property
    def _open(self) -> bool:
        return not np.isfinite([self.low, self.high]).any()

    @property
    def _cuts(self) -> tuple[float, float]:
        """Up to where latent values are seen at the low end, and from where on at the high one."""
        return self.low + self.near, self.high - self.near

    def __len__(self) -> int:
        return len(self.latent)

    def _details(self) -> list[str]:
        ends = [("low", self.low), ("high", self.high)]
        return [f"{name}={end:g}" for name, end in ends if np.isfinite(end)]

    def _row_work(self, n_points: int) -> int:
        return self.latent._row_work(n_points)

    def _behind(self, points: Array) -> Array:
        """Return up to where latent values are seen at or below points between the ends."""
        return points if self.near == 0 else np.clip(points, *self._cuts)

    def _seen(
        self, points: Array, latent: Callable[[Array], Array], below: float, above: float
    ) -> Array:
        """Return latent values inside, and what they are below the low and from the high end on."""
        inside = latent(self._behind(points))
        return inside if self._open else self._between(points, inside, below, above)

    def _between(self, points: Array, inside: Array, below: float, above: float) -> Array:
        return np.where(points < self.low, below, np.where(points >= self.high, above, inside))

    def _cdf(self, points: Array) -> Array:
        return self._seen(points, self.latent._cdf, 0.0, 1.0)

    def _sf(self, points: Array) -> Array:
        return self._seen(points, self.latent._sf, 1.0, 0.0)

    def _logcdf(self, points: Array) -> Array:
        return self._seen(points, self.latent._logcdf, -np.inf, 0.0)

    def _logsf(self, points: Array) -> Array:
        return self._seen(points, self.latent._logsf, 0.0, -np.inf)

    def _signed_tail(self, points: Array) -> Array:
        return self._seen(points, self.latent._signed_tail, 0.0, -0.0)

    def _probit(self, points: Array) -> Array:
        return self._seen(points, self.latent._probit, -np.inf, np.inf)

    def _probit_and_logslope(self, points: Array) -> tuple[Array, Array]:
        z, logslope = self.latent._probit_and_logslope(self._behind(points))
        if self._open:
            return z, logslope
        z = self._between(points, z, -np.inf, np.inf)
        # as where a density has the value of the mass
        with np.errstate(invalid="ignore"):
            at_ends = self._logmass(points) - log_normal_density(z)
        at_ends = np.where(np.isnan(at_ends), -np.inf, at_ends)
        return z, np.where(self._inside(points), logslope, at_ends)

    def _logpdf(self, points: Array) -> Array:
        inside = self.latent._logpdf(points)
        if self._open:
            return inside
        return np.where(self._inside(points), inside, self._logmass(points))

    def _inside(self, points: Array) -> np.ndarray:
        first, last = self._cuts
        return (points > first) & (points < last)

    def _logmass(self, points: Array) -> Array:
        masses = np.where(self._inside(points), self.latent._logmass(points), -np.inf)
        ends = zip((self.low, self.high), self._cuts, strict=True)
        for (end, cut), beyond in zip(ends, (self.latent._logcdf, self._log_from), strict=True):
            here = np.broadcast_to(points == end, masses.shape)
            if np.isfinite(end) and here.any():
                masses = np.where(here, beyond(np.full((1, 1), cut)), masses)
        return masses

    def _log_from(self, points: Array) -> Array:
        """Return the latent log P(Y >= t)."""
        return np.logaddexp(self.latent._logsf(points), self.latent._logmass(points))

    def _log_mass_between(self, low: Array, high: Array) -> Array:
        nothing = (high < self.low) | (low >= self.high)
        low = np.where(low < self.low, -np.inf, self._behind(low))
        high = np.where(high >= self.high, np.inf, self._behind(high))
        return np.where(nothing, -np.inf, self.latent._log_mass_between(low, high))

    def _ends(self) -> tuple[float, ...]:
        first, last = self._cuts
        inner = (end for end in self.latent._ends() if first < end < last)
        return tuple(end for end in (self.low, *inner, self.high) if np.isfinite(end))

    def _ppf(self, levels: Array) -> Array:
        levels = self._outermost_at_ends(levels, self.latent._cdf, 0.0, 1.0)
        return np.clip(self.latent._ppf(levels), self.low, self.high)

    def _from_probit(self, probits: Array) -> Array:
        probits = self._outermost_at_ends(probits, self.latent._probit, -np.inf, np.inf)
        return np.clip(self.latent._from_probit(probits), self.low, self.high)

    def _outermost_at_ends(
        self, wanted: Array, function: Callable[[Array], Array], first: float, last: float
    ) -> Array:
        """Return levels, of which those that a mass reaches, up to rounding, are outermost ones.

        There is nothing to search for, and what has the level of the low end is the low end.
        """
        if self._open:
            return wanted
        reached = function(np.array([self._cuts]))
        if np.isfinite(self.low):
            rounding = np.where(np.isinf(reached), 0.0, np.maximum(np.abs(reached), 1.0))
            wanted = np.where(wanted <= (reached + _ROUNDING * rounding)[:, :1], first, wanted)
        if np.isfinite(self.high):
            wanted = np.where(wanted > reached[:, 1:], last, wanted)
        return wanted

    @cached_property
    def _panel_quantiles(self) -> Array:
        """Return quantiles as close between the ends as if there were no masses at them."""
        if self._open:
            return self.latent._panel_quantiles
        ends = np.array([self._cuts])
        below, above = self.latent._cdf(ends)[:, :1], self.latent._sf(ends)[:, 1:]
        inside = np.maximum(1.0 - below - above, 0.0)
        lower = below + inside * ndtr(PANEL_PROBITS)
        upper = above + inside * ndtr(-PANEL_PROBITS)
        probits = np.where(lower < upper, ndtri(lower), -ndtri(upper))
        # with the median, at which moments are taken
        probits = np.insert(np.clip(probits, PANEL_PROBITS[0], PANEL_PROBITS[-1]), 1, 0.0, axis=1)
        return np.sort(self._from_probit(probits), axis=1)

    @cached_property
    def _moments(self) -> tuple[Array, Array]:
        if isinstance(self.latent, Mixture):
            # what is averaged and then clipped is clipped and then averaged
            ends = (self.low, self.high, self.near)
            clipped = [Clipped(part, *ends) for part in self.latent.components]
            mixture = self.latent if self._open else Mixture(clipped, self.latent.weights)
            return mixture._with_threads(self._n_threads)._moments
        return super()._moments

    def _mean_and_var(self) -> tuple[Array, Array]:
        if self._open:
            return self.latent._mean_and_var()
        if self.near == 0:
            return super()._mean_and_var()
        # as if what is seen at the ends were seen at the cuts, and then moved
        first, last = cuts = self._cuts
        if first < last:
            mean, var = Clipped(self.latent, *cuts)._mean_and_var()
        else:
            mean, var = np.full(len(self), first), np.zeros(len(self))
        moved, squared = np.zeros(len(self)), var
        for end, cut in zip((self.low, self.high), cuts, strict=True):
            if np.isfinite(end):
                mass = np.exp(self._logmass(np.full((1, 1), end)))[:, 0]
                moved = moved + mass * (end - cut)
                squared = squared + mass * (end - cut) * (end + cut - 2.0 * mean)
        return mean + moved, squared - moved**2

    def _crps(self, lower: Array, upper: Array, start: Array, end: Array) -> Array:
        cuts = self._cuts
        inner = (np.clip(place, *cuts) for place in (start, end))
        # outcomes that cannot be: the CDF is 0 from them to the low end, 1 from the high end on
        below = np.minimum(end, self.low) - np.maximum(start, upper)
        above = np.minimum(end, lower) - np.maximum(start, self.high)
        total = self.latent._crps(lower, upper, *inner)
        total = total + np.maximum(below, 0.0) + np.maximum(above, 0.0)
        for low, high, cut in ((self.low, cuts[0], cuts[0]), (cuts[1], self.high, cuts[1])):
            if low < high:  # between an end and its cut, where the CDF is that of the cut
                first, last = np.maximum(start, low), np.minimum(end, high)
                before = np.maximum(np.minimum(last, lower) - first, 0.0)
                after = np.maximum(last - np.maximum(first, upper), 0.0)
                cdf, sf = (f(np.full((1, 1), cut))[:, 0] for f in (self._cdf, self._sf))
                total = total + cdf**2 * before + sf**2 * after
        return total

    @property
    def _explicit(self) -> bool:  # type: ignore[override]
        return self._open and self.latent._explicit

    @property
    def _straight(self) -> bool:  # type: ignore[override]
        return self._open and self.latent._straight

    def _trace(self, probits: Array) -> tuple[Array, Array]:
        return self.latent._trace(probits) if self._open else super()._trace(probits)

    def _probit_kinks(self) -> Array | None:
        return self.latent._probit_kinks() if self._open else super()._probit_kinks()

    def _nodes(
        self, cuts: Array | None = None, region: Sequence[Array] = (), effort: Effort = WHOLE
    ) -> Nodes:
        """Return the latent nodes between the ends: what is beyond them has no length."""
        if self._open:
            return self.latent._nodes(cuts, region, effort)
        if self.near > 0:
            return super()._nodes(cuts, region, effort)
        ends = (np.full((len(self), 1), end) for end in (-np.inf, np.inf))
        seen = [np.clip(end, self.low, self.high) for end in region or ends]
        nodes = self.latent._nodes(cuts, seen, effort)
        return replace(
            nodes,
            centre=np.clip(nodes.centre, self.low, self.high),
            reach=np.clip(nodes.reach, self.low, self.high),
        )

    def _landmarks(self) -> Array | None:
        return self.latent._landmarks()

    def _kinks(self) -> Array | None:
        kinks = self.latent._kinks()
        if self.near == 0:
            return kinks
        own = np.array([[place for place in (*self._cuts, *self._ends()) if np.isfinite(place)]])
        if kinks is None:
            return own
        return np.concatenate([kinks, np.broadcast_to(own, (len(kinks), own.shape[1]))], axis=1)


class Clipped(Bounded):
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
    near : float, default=0.0
        What lies so near to an end is seen at it as well: half a step, where outcomes are rounded.

    Examples
    --------
    >>> from regcal import Clipped, Normal
    >>> rain = Clipped(Normal([0.0, 5.0], [2.0, 2.0]), low=0.0)
    >>> rain.mass(0.0).round(3), rain.cdf(-0.1), rain.ppf(0.3).round(2)
    (array([0.5  , 0.006]), array([0., 0.]), array([0.  , 3.95]))
    >>> rain.mean().round(2)
    array([0.8, 5. ])
    """

    _row_fields = ("base",)

    def __init__(
        self,
        dist: Distribution,
        low: float | None = None,
        high: float | None = None,
        near: float = 0.0,
    ):
        self.base = checked_base(dist)
        self.low, self.high = checked_ends(low, high)
        self.near = checked_near(near, self.low, self.high)
        self._work_per_point = dist._work_per_point

    @property
    def latent(self) -> Distribution:
        """The distributions that were clipped."""
        return self.base

    def _details(self) -> list[str]:
        return [
            self.base._kind(),
            *super()._details(),
            *([f"near={self.near:g}"] * bool(self.near)),
        ]

    def _take(self, rows: np.ndarray) -> Self:
        return type(self)(self.base._take(rows), self.low, self.high, self.near)
