"""Distributions given by draws: ensembles, MCMC, simulation."""

from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import log_ndtr, ndtr

from regcal._validation import Array, as_float_array, check_finite, check_positive
from regcal.distributions._logs import log_sum
from regcal.distributions.base import Distribution, log_difference, log_normal_density
from regcal.distributions.clipped import Bounded
from regcal.support import find_ends_of_draws, given_ends

# Below this probability the sum of tails is formed in log space.
_SMALL = 1e-200


class Samples(Bounded):
    """Draws from each row's distribution, smoothed by a normal kernel between ends.

    An end that draws pile up at, such as the 0 of rain, keeps its point mass: P(Y = end) is the
    share of a row's draws there, and the kernels of the other draws are cut off at the end. What
    holds none of a row's m draws, an end or all that is between, gets the share of the nearest
    draw's kernel that lies beyond, over m + 1: at most half a draw, and next to nothing far away.

    Parameters
    ----------
    draws : array-like of shape (n_rows, n_draws)
        At least two draws per row.
    bandwidth : float or array-like of shape (n_rows,), optional
        Standard deviation of the kernel. By default Silverman's rule per row:
        ``0.9 * min(std, IQR / 1.34) * n_draws ** -0.2``, with the standard deviation alone where
        the interquartile range is 0. A row whose draws are all equal takes the median of the
        other rows' bandwidths. Draws at an end count once in the rule, and a row moves towards
        that median by the share of its draws that are there.
    support : "auto", None or (low, high), default="auto"
        Ends of the support with a point mass; draws beyond them are at them. By default an end is
        the smallest (or largest) of all draws if at least 2 % of them and 5 draws are equal to it,
        5 times as many as to each of the next three values (or if it is the 0 of whole numbers),
        twice in at least two rows (in one, for 0). Repeats of a Markov chain and values that a
        forest takes from its training rows are no masses. None is the whole line.

    Examples
    --------
    >>> from regcal import Samples
    >>> dist = Samples([[1.0, 2.0, 3.0, 4.0], [5.0, 5.0, 6.0, 7.0]])
    >>> dist.mean()
    array([2.5 , 5.75])
    >>> rain = Samples([[0.0, 0.0, 0.0, 1.2], [0.0, 0.0, 0.4, 2.5], [3.1, 4.0, 4.2, 7.7]])
    >>> rain
    Samples(low=0, rows=3)
    >>> rain.mass(0.0).round(3), rain.cdf(-0.1)
    (array([0.75, 0.5 , 0.  ]), array([0., 0., 0.]))
    """

    _row_fields = ("draws", "bandwidth")

    def __init__(
        self, draws: ArrayLike, bandwidth: ArrayLike | None = None, *, support: Any = "auto"
    ) -> None:
        array = np.atleast_2d(as_float_array(draws, "draws"))
        if array.ndim != 2 or array.shape[1] < 2:
            msg = (
                f"Need at least two draws per row as (n_rows, n_draws), got shape {array.shape}. "
                "Transpose if rows and draws are swapped."
            )
            raise ValueError(msg)
        self.draws = check_finite(array, "draws")
        self.low, self.high = given_ends(support) or find_ends_of_draws(self.draws)
        self.bandwidth = self._bandwidths(bandwidth)
        self._work_per_point = self.draws.shape[1]

    def _bandwidths(self, bandwidth: ArrayLike | None) -> Array:
        if bandwidth is None:
            return self._usual_bandwidths()
        given = check_finite(as_float_array(bandwidth, "bandwidth"), "bandwidth")
        given = check_positive(np.atleast_1d(given), "bandwidth")
        if given.ndim != 1 or len(given) not in (1, len(self.draws)):
            msg = (
                f"Got {given.size} bandwidths for {len(self.draws)} rows. "
                "Pass one number, or one per row."
            )
            raise ValueError(msg)
        return np.broadcast_to(given, len(self.draws)).copy()

    def _usual_bandwidths(self) -> Array:
        """Return Silverman's rule; 0 if all rows lie on the ends, with nothing to be smoothed."""
        seen = np.clip(self.draws, self.low, self.high)
        own = silverman(seen) if self._open else silverman_between(seen, self.low, self.high)
        known = own > 0
        if known.any():
            usual = np.median(own[known])
            # draws at an end tell nothing of the spread; by rows alone, two draws that happen to
            # be close make spikes (RainIbk, mean log score: -14.9 instead of -5.8)
            share = 0.0 if self._open else 1.0 - self._inside(seen).mean(axis=1)
            return np.where(known, (1.0 - share) * own + share * usual, usual)
        if self._inside(seen).any():
            first = self.draws[0, 0]
            msg = (
                f"The draws agree in all {len(seen)} rows, as in the first on {first:g}, which "
                "leaves no spread: this is a point forecast. Wrap the model in "
                "regcal.NormalResidualRegressor. Pass bandwidth=, a positive number, to smooth it, "
                f"or support=({first:g}, None) if outcomes pile up there."
            )
            raise ValueError(msg)
        return own

    @cached_property
    def latent(self) -> "Kernels":
        """The smoothed draws; those at an end are spread beyond it."""
        if self._open:
            return Kernels(self.draws, self.bandwidth)
        return BoundedKernels.between(self.draws, self.bandwidth, self.low, self.high)

    def __len__(self) -> int:
        return len(self.draws)

    def _take(self, rows: np.ndarray) -> Self:
        part = object.__new__(type(self))
        part.draws, part.bandwidth = self.draws[rows], self.bandwidth[rows]
        part.low, part.high = self.low, self.high
        part._work_per_point = self._work_per_point
        if "latent" in vars(self):
            vars(part)["latent"] = self.latent._take(rows)
        return part

    def _mean_and_var(self) -> tuple[Array, Array]:
        latent = self.latent
        if isinstance(latent, BoundedKernels):
            return latent.clipped_moments(self.low, self.high)
        return latent._mean_and_var()


def silverman(draws: Array) -> Array:
    """Return the bandwidth of each row by Silverman's rule, 0 where all draws are equal."""
    quartiles = np.quantile(draws, [0.25, 0.75], axis=1)
    spread = _robust(draws.std(axis=1, ddof=1), quartiles[1] - quartiles[0])
    return np.where(np.ptp(draws, axis=1) > 0, 0.9 * spread * draws.shape[1] ** -0.2, 0.0)


def silverman_between(draws: Array, low: float, high: float) -> Array:
    """Return the same of the draws between two ends, and of each end that has draws, once."""
    draws = np.sort(draws, axis=1)
    start = np.maximum((draws <= low).sum(axis=1) - 1, 0)
    end = draws.shape[1] - 1 - np.maximum((draws >= high).sum(axis=1) - 1, 0)
    n = np.maximum(end - start + 1, 2)
    places = np.arange(draws.shape[1])
    used = (places >= start[:, np.newaxis]) & (places <= end[:, np.newaxis])
    mean = np.where(used, draws, 0.0).sum(axis=1) / n
    square = np.where(used, draws - mean[:, np.newaxis], 0.0) ** 2
    first, third = (_between(draws, start + share * (n - 1)) for share in (0.25, 0.75))
    spread = _robust(np.sqrt(square.sum(axis=1) / (n - 1)), third - first)
    return np.where(_at(draws, end) > _at(draws, start), 0.9 * spread * n**-0.2, 0.0)


def _robust(std: Array, quartile_range: Array) -> Array:
    robust = quartile_range / 1.34
    return np.where(robust > 0, np.minimum(std, robust), std)


def _at(draws: Array, places: np.ndarray) -> Array:
    places = np.clip(places, 0, draws.shape[1] - 1)
    return np.take_along_axis(draws, places[:, np.newaxis], axis=1)[:, 0]


def _between(draws: Array, places: Array) -> Array:
    """Return sorted draws at places that may lie between two of them."""
    whole = np.floor(places).astype(np.intp)
    below, above = _at(draws, whole), _at(draws, whole + 1)
    return below + (places - whole) * (above - below)


class Kernels(Distribution):
    """Normal kernels around the draws of each row.

    Parameters
    ----------
    draws : ndarray of shape (n_rows, n_draws)
    bandwidth : ndarray of shape (n_rows,)
        Standard deviations of the kernels.
    """

    _row_fields: tuple[str, ...] = ("draws", "bandwidth")

    def __init__(self, draws: Array, bandwidth: Array) -> None:
        self.draws, self.bandwidth = draws, bandwidth
        self._work_per_point = draws.shape[1]

    def __len__(self) -> int:
        return len(self.draws)

    def _take(self, rows: np.ndarray) -> Self:
        part = object.__new__(type(self))
        vars(part).update(self.__getstate__())
        for name in self._row_fields:
            setattr(part, name, getattr(self, name)[rows])
        return part

    def _standardised(self, points: Array) -> Array:
        """Return (point - draw) / bandwidth of shape (n_rows, n_points, n_draws)."""
        gaps = points[:, :, np.newaxis] - self.draws[:, np.newaxis, :]
        return gaps / self.bandwidth[:, np.newaxis, np.newaxis]

    def _cdf(self, points: Array) -> Array:
        return ndtr(self._standardised(points)).mean(axis=2)

    def _sf(self, points: Array) -> Array:
        return ndtr(-self._standardised(points)).mean(axis=2)

    def _logcdf(self, points: Array) -> Array:
        return self._log_mean_tail(self._standardised(points))

    def _logsf(self, points: Array) -> Array:
        return self._log_mean_tail(-self._standardised(points))

    def _log_mean_tail(self, z: Array) -> Array:
        probability = ndtr(z).mean(axis=2)
        small = probability < _SMALL
        with np.errstate(divide="ignore"):
            logs = np.log(probability)
        if small.any():
            logs[small] = log_sum(log_ndtr(z[small]), axis=-1) - np.log(self.draws.shape[1])
        return logs

    def _log_mass_between(self, low: Array, high: Array) -> Array:
        # a valley between draws is a far tail of each kernel
        masses = self._kernel_masses(low, high)
        return log_sum(masses, axis=2) - np.log(self.draws.shape[1])

    def _kernel_masses(self, low: Array, high: Array) -> Array:
        """Return the log probability of each kernel between points."""
        ends = (self._standardised(t) for t in (low, high))
        return log_difference(*((log_ndtr(z), log_ndtr(-z)) for z in ends))

    def _logpdf(self, points: Array) -> Array:
        with np.errstate(invalid="ignore"):
            logs = log_sum(log_normal_density(self._standardised(points)), axis=2)
        logs = np.where(np.isinf(points), -np.inf, logs)
        return logs - np.log(self.draws.shape[1] * self.bandwidth)[:, np.newaxis]

    def _bracket(self, probits: Array) -> tuple[Array, Array]:
        shift = self.bandwidth[:, np.newaxis] * probits
        shift = np.where(np.isfinite(shift), shift, 0.0)
        low, high = self.draws.min(axis=1), self.draws.max(axis=1)
        return low[:, np.newaxis] + shift, high[:, np.newaxis] + shift

    def _mean_and_var(self) -> tuple[Array, Array]:
        return self.draws.mean(axis=1), self.draws.var(axis=1) + self.bandwidth**2

    def _kinks(self) -> Array:
        # panels between order statistics, so that separate clusters of draws are resolved
        step = max(1, self.draws.shape[1] // 64)
        return np.sort(self.draws, axis=1)[:, ::step]


class BoundedKernels(Kernels):
    """Weighted kernels, each cut off at both ends of its own interval.

    Those of draws are cut off at the ends of the support. What lies on an end is spread beyond it:
    half a kernel with the end as its centre.

    Parameters
    ----------
    draws : ndarray of shape (n_rows, n_kernels)
        Centres of the kernels.
    bandwidth : ndarray of shape (n_rows,)
    log_weights : ndarray of shape (n_rows, n_kernels)
        Of the kernels before they are cut off.
    lower, upper : ndarray of shape (n_kernels,)
        Between which the kernels are, those of all rows alike.
    """

    _row_fields = ("draws", "bandwidth", "log_weights")

    def __init__(
        self, draws: Array, bandwidth: Array, log_weights: Array, lower: Array, upper: Array
    ) -> None:
        super().__init__(draws, bandwidth)
        self.log_weights, self.lower, self.upper = log_weights, lower, upper

    @classmethod
    def between(cls, draws: Array, bandwidth: Array, low: float, high: float) -> "BoundedKernels":
        """Return what draws say between ends; with a bandwidth of 0 all of them are at ends."""
        draws = np.clip(draws, low, high)
        log_masses = _log_masses(draws, bandwidth, low, high)
        inside = (draws > low) & (draws < high)
        centres = inside | ~inside.any(axis=1, keepdims=True)
        with np.errstate(divide="ignore"):
            log_shares = np.log(centres / centres.sum(axis=1, keepdims=True))
        draws = np.insert(draws, [0, draws.shape[1]], [low, high], axis=1)
        logs = [log_masses[:, :1], log_masses[:, 1:2] + log_shares, log_masses[:, 2:]]
        lower, upper = np.full((2, draws.shape[1]), [[low], [high]])
        lower[0], upper[0], lower[-1], upper[-1] = -np.inf, low, high, np.inf
        used = lower < upper  # there is nothing beyond an infinite end
        kernels = cls(
            draws[:, used],
            np.where(bandwidth > 0, bandwidth, 1.0),
            np.concatenate(logs, axis=1)[:, used],
            lower[used],
            upper[used],
        )
        kernels.log_weights -= kernels._kernel_masses(*np.array([[[-np.inf]], [[np.inf]]]))[:, 0]
        return kernels

    def _standardised(self, points: Array) -> Array:
        """Return (point - centre) / bandwidth, for the point of the interval that is nearest."""
        near = np.clip(points[:, :, np.newaxis], self.lower, self.upper)
        return (near - self.draws[:, np.newaxis, :]) / self.bandwidth[:, np.newaxis, np.newaxis]

    def _cdf(self, points: Array) -> Array:
        return self._tail(points, 1.0)

    def _sf(self, points: Array) -> Array:
        return self._tail(points, -1.0)

    def _logcdf(self, points: Array) -> Array:
        return self._log_tail(points, 1.0)

    def _logsf(self, points: Array) -> Array:
        return self._log_tail(points, -1.0)

    def _tail(self, points: Array, sign: float) -> Array:
        """Return P(Y <= t) for a positive sign and P(Y > t) for a negative one."""
        places = points, np.array([[-sign * np.inf]])
        here, start = (ndtr(sign * self._standardised(t)) for t in places)
        return np.minimum(((here - start) * self._weights[:, np.newaxis, :]).sum(axis=2), 1.0)

    @property
    def _weights(self) -> Array:
        return np.exp(self.log_weights)

    def _log_tail(self, points: Array, sign: float) -> Array:
        probability = self._tail(points, sign)
        small = probability < _SMALL
        with np.errstate(divide="ignore"):
            logs = np.log(probability)
        if small.any():
            end = np.array([[-sign * np.inf]])
            ends = (end, points) if sign > 0 else (points, end)
            logs = np.where(small, self._log_mass_between(*ends), logs)
        return logs

    def _log_mass_between(self, low: Array, high: Array) -> Array:
        masses = self._kernel_masses(low, high) + self.log_weights[:, np.newaxis, :]
        return np.minimum(log_sum(masses, axis=2), 0.0)

    def _logpdf(self, points: Array) -> Array:
        places = points[:, :, np.newaxis]
        within = (places >= self.lower) & (places <= self.upper)
        logs = self.log_weights[:, np.newaxis, :] + log_normal_density(self._standardised(points))
        logs = log_sum(np.where(within, logs, -np.inf), axis=2)
        return logs - np.log(self.bandwidth)[:, np.newaxis]

    def _mean_and_var(self) -> tuple[Array, Array]:
        return self._moments_of(self.lower, self.upper)

    def clipped_moments(self, low: float, high: float) -> tuple[Array, Array]:
        """Return mean and variance when what is spread beyond the ends is seen at them."""
        return self._moments_of(np.maximum(self.lower, low), np.minimum(self.upper, high))

    def _moments_of(self, lower: Array, upper: Array) -> tuple[Array, Array]:
        """Return mean and variance with other intervals; one without width is a point mass."""
        scale = self.bandwidth[:, np.newaxis]
        start, end = ((side - self.draws) / scale for side in (self.lower, self.upper))
        masses = self._weights * (ndtr(end) - ndtr(start))
        spread = np.where(lower < upper, self._weights, 0.0)
        # E (Z; start < Z < end) and E (Z^2; start < Z < end) of a standard normal Z
        first = _density(start) - _density(end)
        second = ndtr(end) - ndtr(start) + _density(start, start) - _density(end, end)
        centre = self.draws.mean(axis=1)
        gaps = self.draws - centre[:, np.newaxis]
        shift = (masses * gaps + spread * scale * first).sum(axis=1)
        square = masses * gaps**2 + spread * (2.0 * gaps * scale * first + scale**2 * second)
        return centre + shift, square.sum(axis=1) - shift**2

    def _kinks(self) -> Array:
        return np.concatenate([super()._kinks(), self.draws.max(axis=1, keepdims=True)], axis=1)


def _density(z: Array, factor: Array | float = 1.0) -> Array:
    """Return the standard normal density times a factor, 0 at infinity."""
    with np.errstate(invalid="ignore"):
        return np.where(np.isfinite(z), factor * np.exp(log_normal_density(z)), 0.0)


def _log_masses(draws: Array, bandwidth: Array, low: float, high: float) -> Array:
    """Return log probabilities of the low end, of what is between, and of the high end.

    They are shares of the draws. What has none gets the share of the nearest draw's kernel that
    lies beyond, as if it were one of m + 1 draws: an outcome may be where no draw is, and how far
    the draws are from an end tells how rare that is.
    """
    n_draws = draws.shape[1]
    below, above = (draws <= low).sum(axis=1), (draws >= high).sum(axis=1)
    counts = np.stack([below, n_draws - below - above, above], axis=1)
    gaps = np.stack(
        [draws.min(axis=1) - low, np.zeros(len(draws)), high - draws.max(axis=1)], axis=1
    )
    scale = bandwidth[:, np.newaxis]
    with np.errstate(divide="ignore", invalid="ignore"):
        beyond = np.where(scale > 0, log_ndtr(-gaps / scale) - np.log(n_draws + 1), -np.inf)
        beyond = np.where(counts > 0, -np.inf, beyond)
        rest = np.log1p(-np.exp(beyond).sum(axis=1, keepdims=True))
        return np.where(counts > 0, np.log(counts / n_draws) + rest, beyond)
