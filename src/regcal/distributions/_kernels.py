"""Sums of normal kernels around draws: over the whole line, or cut off at ends."""

from typing import Self

import numpy as np
from scipy.special import log_ndtr, ndtr, ndtri_exp

from regcal._validation import Array
from regcal.distributions._kernel_table import KernelSum
from regcal.distributions._logs import log_sum
from regcal.distributions.base import Distribution
from regcal.distributions.primitives import LOG_HALF, log_difference, log_normal_density

# Below this probability the sum of tails is formed in log space.
_SMALL = 1e-200

# So many bandwidths beyond all draws, those further than some bandwidths from the outermost one add
# less than 1e-16 of the tail.
_FAR = 13.0
_FAR_REACH = 3.0


class Kernels(Distribution):
    """Normal kernels around the draws of each row.

    Parameters
    ----------
    draws : ndarray of shape (n_rows, n_kernels)
        In increasing order.
    bandwidth : ndarray of shape (n_rows,)
        Standard deviations of the kernels.
    n_draws : int, optional
        How many draws there are, if these are some of them.
    """

    _row_fields: tuple[str, ...] = ("draws", "bandwidth")

    def __init__(self, draws: Array, bandwidth: Array, n_draws: int | None = None) -> None:
        self.draws, self.bandwidth = draws, bandwidth
        self.n_draws = n_draws or draws.shape[1]
        self._work_per_point = draws.shape[1]

    def __len__(self) -> int:
        return len(self.draws)

    def _take(self, rows: np.ndarray) -> Self:
        part = object.__new__(type(self))
        vars(part).update(self.__getstate__())
        for name in self._row_fields:
            setattr(part, name, getattr(self, name)[rows])
        return part

    def sums(self) -> KernelSum:
        """Return the kernels as they are tabulated."""
        none = np.zeros((len(self), 2))
        weights = np.full(self.draws.shape, 1.0 / self.n_draws)
        return KernelSum(self.draws, weights, self.bandwidth, none, none, (-np.inf, np.inf))

    def beyond(self, points: Array) -> np.ndarray:
        """Return -1 where points are so far below all draws that only the lowest count, 1 above."""
        far = _FAR * self.bandwidth[:, np.newaxis]
        above = (points > self.draws[:, -1:] + far).astype(np.intp)
        return above - (points < self.draws[:, :1] - far)

    def outermost(self, side: int) -> "Kernels":
        """Return the kernels that count far below all draws, or far above them."""
        near = _FAR_REACH * self.bandwidth
        if side < 0:
            count = (self.draws < (self.draws[:, 0] + near)[:, np.newaxis]).sum(axis=1).max()
            return self._columns(slice(int(count)))
        count = (self.draws > (self.draws[:, -1] - near)[:, np.newaxis]).sum(axis=1).max()
        return self._columns(slice(-int(count), None))

    def _columns(self, columns: slice) -> "Kernels":
        return Kernels(self.draws[:, columns], self.bandwidth, self.n_draws)

    def _standardised(self, points: Array) -> Array:
        """Return (point - draw) / bandwidth of shape (n_rows, n_points, n_draws)."""
        gaps = points[:, :, np.newaxis] - self.draws[:, np.newaxis, :]
        return gaps / self.bandwidth[:, np.newaxis, np.newaxis]

    def _cdf(self, points: Array) -> Array:
        return ndtr(self._standardised(points)).sum(axis=2) / self.n_draws

    def _sf(self, points: Array) -> Array:
        return ndtr(-self._standardised(points)).sum(axis=2) / self.n_draws

    def _logcdf(self, points: Array) -> Array:
        return self._log_mean_tail(self._standardised(points))

    def _logsf(self, points: Array) -> Array:
        return self._log_mean_tail(-self._standardised(points))

    def _log_mean_tail(self, z: Array) -> Array:
        probability = ndtr(z).sum(axis=2) / self.n_draws
        small = probability < _SMALL
        with np.errstate(divide="ignore"):
            logs = np.log(probability)
        if small.any():
            logs[small] = log_sum(log_ndtr(z[small]), axis=-1) - np.log(self.n_draws)
        return logs

    def _log_mass_between(self, low: Array, high: Array) -> Array:
        # a valley between draws is a far tail of each kernel
        masses = self._kernel_masses(low, high)
        return log_sum(masses, axis=2) - np.log(self.n_draws)

    def _kernel_masses(self, low: Array, high: Array) -> Array:
        """Return the log probability of each kernel between points."""
        ends = (self._standardised(t) for t in (low, high))
        return log_difference(*((log_ndtr(z), log_ndtr(-z)) for z in ends))

    def _logpdf(self, points: Array) -> Array:
        with np.errstate(invalid="ignore"):
            logs = log_sum(log_normal_density(self._standardised(points)), axis=2)
        logs = np.where(np.isinf(points), -np.inf, logs)
        return logs - np.log(self.n_draws * self.bandwidth)[:, np.newaxis]

    def _bracket(self, probits: Array) -> tuple[Array, Array]:
        shift = self.bandwidth[:, np.newaxis] * probits
        shift = np.where(np.isfinite(shift), shift, 0.0)
        return self.draws[:, :1] + shift, self.draws[:, -1:] + shift

    def _mean_and_var(self) -> tuple[Array, Array]:
        return self.draws.mean(axis=1), self.draws.var(axis=1) + self.bandwidth**2

    def _kinks(self) -> Array:
        # panels between order statistics, so that separate clusters of draws are resolved
        step = max(1, self.draws.shape[1] // 64)
        return self.draws[:, ::step]


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
        draws = np.sort(np.clip(draws, low, high), axis=1)
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

    def _columns(self, columns: slice) -> "Kernels":
        parts = self.draws[:, columns], self.bandwidth, self.log_weights[:, columns]
        return BoundedKernels(*parts, self.lower[columns], self.upper[columns])

    def sums(self) -> KernelSum:
        """Return the kernels between the ends as they are tabulated."""
        low, high = self._ends_of_kernels
        ends = np.isfinite([low, high])
        inner = slice(int(ends[0]), self.draws.shape[1] - int(ends[1]))
        draws, weights = self.draws[:, inner], self._weights[:, inner]
        scale = self.bandwidth[:, np.newaxis]
        below = (weights * ndtr((low - draws) / scale)).sum(axis=1)
        above = (weights * ndtr((draws - high) / scale)).sum(axis=1)
        # half of the kernel around an end is spread beyond it
        masses = 0.5 * ends * self._weights[:, [0, -1]]
        cut_off = np.stack([below, above], axis=1)
        return KernelSum(draws, weights, self.bandwidth, cut_off, masses, (low, high))

    @property
    def _ends_of_kernels(self) -> tuple[float, float]:
        """The ends at which kernels of draws are cut off: the second is one, the first may not."""
        return float(self.lower[1]), float(self.upper[1])

    def _from_probit(self, probits: Array) -> Array:
        probits = np.broadcast_to(probits, (len(self), probits.shape[1]))
        points, beyond = self._beyond_ends(probits)
        inside = super()._from_probit(np.where(beyond, np.inf, probits))
        return np.where(beyond, points, inside)

    def _beyond_ends(self, probits: Array) -> tuple[Array, np.ndarray]:
        """Return quantiles beyond ends, on halves of kernels around them, and which are there."""
        points, beyond = np.zeros(probits.shape), np.zeros(probits.shape, dtype=bool)
        for end, column, sign in zip(self._ends_of_kernels, (0, -1), (1.0, -1.0), strict=True):
            if np.isfinite(end):
                share = log_ndtr(sign * probits) - self.log_weights[:, [column]]
                here = share < LOG_HALF
                own = end + sign * self.bandwidth[:, np.newaxis] * ndtri_exp(np.minimum(share, 0.0))
                points, beyond = np.where(here, own, points), beyond | here
        return points, beyond

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
        return np.concatenate([super()._kinks(), self.draws[:, -1:]], axis=1)


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
