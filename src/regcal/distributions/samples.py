"""Distributions given by draws: ensembles, MCMC, simulation."""

from typing import Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import log_ndtr, ndtr

from regcal._validation import Array, as_float_array, check_finite, check_positive
from regcal.distributions._logs import log_sum
from regcal.distributions.base import Distribution, log_difference, log_normal_density

# Below this probability the sum of tails is formed in log space.
_SMALL = 1e-200


class Samples(Distribution):
    """Draws from each row's distribution, smoothed by a normal kernel.

    Parameters
    ----------
    draws : array-like of shape (n_rows, n_draws)
        At least two draws per row.
    bandwidth : float or array-like of shape (n_rows,), optional
        Standard deviation of the kernel. By default Silverman's rule per row:
        ``0.9 * min(std, IQR / 1.34) * n_draws ** -0.2``, with the standard deviation alone where
        the interquartile range is 0. A row whose draws are all equal takes the median of the
        other rows' bandwidths.

    Examples
    --------
    >>> from regcal import Samples
    >>> dist = Samples([[1.0, 2.0, 3.0, 4.0], [5.0, 5.0, 6.0, 7.0]])
    >>> dist.mean()
    array([2.5 , 5.75])
    """

    _row_fields = ("draws", "bandwidth")

    def __init__(self, draws: ArrayLike, bandwidth: ArrayLike | None = None) -> None:
        array = np.atleast_2d(as_float_array(draws, "draws"))
        if array.ndim != 2 or array.shape[1] < 2:
            msg = (
                f"Need at least two draws per row as (n_rows, n_draws), got shape {array.shape}. "
                "Transpose if rows and draws are swapped."
            )
            raise ValueError(msg)
        self.draws = check_finite(array, "draws")
        self.bandwidth = self._bandwidths(bandwidth)
        self._work_per_point = self.draws.shape[1]

    def _bandwidths(self, bandwidth: ArrayLike | None) -> Array:
        if bandwidth is not None:
            given = check_finite(as_float_array(bandwidth, "bandwidth"), "bandwidth")
            given = check_positive(np.atleast_1d(given), "bandwidth")
            if given.ndim != 1 or len(given) not in (1, len(self.draws)):
                msg = (
                    f"Got {given.size} bandwidths for {len(self.draws)} rows. "
                    "Pass one number, or one per row."
                )
                raise ValueError(msg)
            return np.broadcast_to(given, len(self.draws)).copy()
        spread = self.draws.std(axis=1, ddof=1)
        quartiles = np.quantile(self.draws, [0.25, 0.75], axis=1)
        robust = (quartiles[1] - quartiles[0]) / 1.34
        spread = np.where(robust > 0, np.minimum(spread, robust), spread)
        agreeing = np.ptp(self.draws, axis=1) == 0
        if agreeing.all() and len(agreeing):
            msg = (
                f"The draws agree in all {len(agreeing)} rows, as in the first on "
                f"{self.draws[0, 0]:g}, which leaves no spread. Pass bandwidth=, a positive number."
            )
            raise ValueError(msg)
        spread[agreeing] = np.median(spread[~agreeing]) if agreeing.any() else 0.0
        return 0.9 * spread * self.draws.shape[1] ** -0.2

    def __len__(self) -> int:
        return len(self.draws)

    def _take(self, rows: np.ndarray) -> Self:
        part = object.__new__(type(self))
        part.draws, part.bandwidth = self.draws[rows], self.bandwidth[rows]
        part._work_per_point = self._work_per_point
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
        ends = (self._standardised(t) for t in (low, high))
        masses = log_difference(*((log_ndtr(z), log_ndtr(-z)) for z in ends))
        return log_sum(masses, axis=2) - np.log(self.draws.shape[1])

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
