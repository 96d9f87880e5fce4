"""Scores of predictive distributions.

Depends on the distributions and `_validation`.
"""

from typing import Any

from regcal._validation import Array, check_targets
from regcal.distributions import Distribution, as_distribution


def _checked(y: Any, dist: Any) -> tuple[Array, Distribution]:
    dist = as_distribution(dist)
    return check_targets(y, len(dist)), dist


def log_score(y: Any, dist: Any) -> Array:
    """Return the log density of each target; larger is better.

    Parameters
    ----------
    y : array-like of shape (n_rows,)
        Observed targets.
    dist : Distribution or anything `as_distribution` takes
        One predictive distribution per target.

    Returns
    -------
    ndarray of shape (n_rows,)
        ``dist.logpdf(y)``.

    Examples
    --------
    >>> from regcal import Normal, log_score
    >>> log_score([0.0, 1.0], Normal([0.0, 0.0], [1.0, 1.0])).round(3)
    array([-0.919, -1.419])
    """
    y, dist = _checked(y, dist)
    return dist.logpdf(y)


def crps(y: Any, dist: Any) -> Array:
    """Return the continuous ranked probability score of each target; smaller is better.

    Parameters
    ----------
    y : array-like of shape (n_rows,)
        Observed targets.
    dist : Distribution or anything `as_distribution` takes
        One predictive distribution per target.

    Returns
    -------
    ndarray of shape (n_rows,)
        In the units of `y`; the absolute error for a point forecast.

    Examples
    --------
    >>> from regcal import Normal, crps
    >>> crps([0.0, 1.0], Normal([0.0, 0.0], [1.0, 1.0])).round(3)
    array([0.234, 0.602])
    """
    y, dist = _checked(y, dist)
    return dist.crps(y)


def pit(y: Any, dist: Any) -> Array:
    """Return the probability integral transform of each target.

    Parameters
    ----------
    y : array-like of shape (n_rows,)
        Observed targets.
    dist : Distribution or anything `as_distribution` takes
        One predictive distribution per target.

    Returns
    -------
    ndarray of shape (n_rows,)
        ``dist.cdf(y)``; uniform on [0, 1] when `dist` is calibrated.

    Examples
    --------
    >>> from regcal import Normal, pit
    >>> pit([0.0, 1.0], Normal([0.0, 1.0], [1.0, 1.0]))
    array([0.5, 0.5])
    """
    y, dist = _checked(y, dist)
    return dist.cdf(y)
