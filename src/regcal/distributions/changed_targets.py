"""Distributions of targets, from those of a function of the targets such as their logarithm."""

from collections.abc import Callable
from typing import Any

import numpy as np

from regcal._validation import Array
from regcal.distributions.base import Distribution
from regcal.distributions.custom import CustomDistribution

Change = Callable[[Array], Any]

# Where a function has to be what its inverse says: quartiles, median, three deviations out.
_CHECKED = np.array([[-3.0, -0.6745, 0.0, 0.6745, 3.0]])

# Share of the distance of quartiles over which the slope of a function is taken: about the cube
# root of the rounding error, which balances that against the curvature.
_STEP = 1e-5


def of_changed_targets(dist: Distribution, forward: Change, inverse: Change) -> Distribution:
    """Return the distributions of Y, given those of ``forward(Y)``.

    Parameters
    ----------
    dist : Distribution
        What is said about the changed targets.
    forward, inverse : callable
        A function of arrays that increases or decreases, and its inverse. Points at which the
        function is NaN, such as the logarithm of negative numbers, are outside of the support.

    Returns
    -------
    Distribution

    Examples
    --------
    >>> import numpy as np
    >>> from regcal import Normal
    >>> from regcal.distributions.changed_targets import of_changed_targets
    >>> dist = of_changed_targets(Normal([0.0], [0.5]), np.log, np.exp)
    >>> dist.mean().round(4), dist.cdf(-1.0)
    (array([1.1331]), array([0.]))
    """
    changed = dist.from_probit(_CHECKED)
    with np.errstate(all="ignore"):
        targets = np.asarray(inverse(changed), dtype=float)
        again = np.asarray(forward(targets), dtype=float)
    up, down = ((sign * np.diff(targets) > 0).all() for sign in (1.0, -1.0))
    spread = np.abs(changed[:, 3:4] - changed[:, 1:2])
    if not (up or down) or not (np.abs(again - changed) < 1e-4 * spread).all():
        msg = (
            "The function of the target has no inverse where the model predicts: three deviations "
            "from the median it does not come back to the same value. Pass a function that "
            "increases everywhere, such as np.log1p with np.expm1."
        )
        raise ValueError(msg)
    middle = targets[:, 2:3]

    def place(points: Array, rows: np.ndarray) -> Array:
        inside = np.where(np.isfinite(points), points, middle[rows])
        with np.errstate(all="ignore"):
            found = np.asarray(forward(inside), dtype=float)
        beyond = np.where(points < middle[rows], -np.inf, np.inf) * (1.0 if up else -1.0)
        return np.where(np.isfinite(points) & ~np.isnan(found), found, beyond)

    def pdf(points: Array, rows: np.ndarray) -> Array:
        # the slope of the inverse, since the model's own spread is the scale of what it predicts:
        # close to 0, a step in the target would be beyond the support of a logarithm
        at, step = place(points, rows), _STEP * spread[rows]
        inside = np.where(np.isfinite(at), at, changed[rows, 2:3])
        with np.errstate(all="ignore"):
            run = np.abs(inverse(inside + step) - inverse(inside - step)) / (2.0 * step)
            density = dist[rows].pdf(inside) / run
        return np.where(np.isfinite(at) & np.isfinite(density), density, 0.0)

    def lower(points: Array, rows: np.ndarray) -> Array:
        return dist[rows].cdf(place(points, rows))

    def upper(points: Array, rows: np.ndarray) -> Array:
        return dist[rows].sf(place(points, rows))

    cdf, sf = (lower, upper) if up else (upper, lower)
    return CustomDistribution(cdf, len(dist), pdf=pdf, sf=sf)
