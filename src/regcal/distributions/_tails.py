"""Masses that differences of probabilities have lost, from the density alone."""

from collections.abc import Callable

import numpy as np

from regcal._validation import Array
from regcal.distributions._logs import log_sum

_NODES, _WEIGHTS = np.polynomial.laguerre.laggauss(20)

# The double exponential rule (Takahasi and Mori, 1974) on [0, 1]: it resolves a density that falls
# by hundreds of orders of magnitude from either end. Distances are from the nearer end, and the
# weights are logs.
_STEPS = np.arange(-3.2, 3.3, 0.1)
_DISTANCES = 1.0 / (1.0 + np.exp(np.pi * np.sinh(np.abs(_STEPS))))
_LOG_SHARES = np.log(0.1 * np.pi * np.cosh(_STEPS)) + np.log(_DISTANCES) + np.log1p(-_DISTANCES)


def log_mass_beyond(
    logpdf: Callable[[Array], Array], points: Array, direction: float, room: Array, step: Array
) -> Array:
    """Return the log probability beyond points at which the density falls.

    Parameters
    ----------
    logpdf : callable
        Takes points of shape (n, n_points).
    points : ndarray of shape (n, 1)
    direction : {-1.0, 1.0}
        Whether the mass below or above is wanted.
    room : ndarray of shape (n, 1)
        Distance to the end of the support on that side, maybe infinite.
    step : ndarray of shape (n, 1)
        Distance for the slope of the log density, less than `room`.

    Returns
    -------
    ndarray of shape (n, 1)
        NaN where the density does not fall.
    """
    with np.errstate(all="ignore"):
        rate = -direction * (logpdf(points + step) - logpdf(points - step)) / (2 * step)
        # an exponential decay at this rate, corrected by Gauss-Laguerre quadrature
        falls = (rate > 0) & (rate < np.inf)
        nodes = logpdf(points + direction * _NODES / np.where(falls, rate, 1.0))
        decaying = log_sum(nodes + _NODES + np.log(_WEIGHTS), axis=1)[:, np.newaxis]
        open_ended = np.where(falls, decaying - np.log(rate), np.nan)
        # towards an end of the support: exact for a power of the distance to it
        return np.where(np.isinf(room), open_ended, logpdf(points) - np.log(rate + 1.0 / room))


def log_mass_inside(logpdf: Callable[[Array], Array], low: Array, high: Array) -> Array:
    """Return the log probability between two points, in a valley of the density.

    Parameters
    ----------
    logpdf : callable
        Takes points of shape (n, n_points).
    low, high : ndarray of shape (n, 1)

    Returns
    -------
    ndarray of shape (n, 1)
        -inf where there is no density, and where `high` is not above `low`.
    """
    width = np.maximum(high - low, 0.0)
    points = np.where(_STEPS < 0, low + width * _DISTANCES, high - width * _DISTANCES)
    # nodes that round to an end would see the density beyond it
    inside = (points > low) & (points < high)
    with np.errstate(divide="ignore"):
        logs = np.where(inside, logpdf(points) + _LOG_SHARES, -np.inf)
        return log_sum(logs, axis=1)[:, np.newaxis] + np.log(width)
