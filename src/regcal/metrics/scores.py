"""Scores: how good each row's predictive distribution was, one number per row.

Weights enter where rows are averaged, in `mean_score`, `compare` and the scorers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from regcal._validation import Array, as_float_array, check_column, check_weights
from regcal.distributions import as_distribution
from regcal.metrics._inputs import (
    check_level,
    checked_outcomes,
    exact_numbers,
    standard_error,
    weighted_mean,
)
from regcal.metrics.censoring import known_events


def log_score(y: Any, dist: Any) -> Array:
    """Return the log density of each target; larger is better.

    At a point mass it is the log of the mass. Of an outcome that is only known to lie in an
    interval, it is the log probability of the interval: the censored log score, which is proper
    whatever was censored (Rindt et al., 2022) and so the one to compare models by.

    Parameters
    ----------
    y : array-like of shape (n_rows,), or Outcomes
        Observed targets.
    dist : Distribution or anything `as_distribution` takes
        One predictive distribution per target.

    Returns
    -------
    ndarray of shape (n_rows,)
        ``dist.logpdf(y)``, or ``dist.logprob(lower, upper)`` of an interval.

    Examples
    --------
    >>> from regcal import Normal, log_score
    >>> log_score([0.0, 1.0], Normal([0.0, 0.0], [1.0, 1.0])).round(3)
    array([-0.919, -1.419])
    >>> from regcal import Outcomes
    >>> seen = Outcomes.right_censored([0.0, 1.0], observed=[True, False])
    >>> log_score(seen, Normal([0.0, 0.0], [1.0, 1.0])).round(3)  # the second is at least 1
    array([-0.919, -1.841])
    """
    outcomes, dist = checked_outcomes(y, dist)
    scores, exact = np.empty(len(outcomes)), outcomes.exact_rows
    if exact.all():
        return dist.logpdf(outcomes.lower)
    scores[exact] = dist[exact].logpdf(outcomes.lower[exact])
    scores[~exact] = dist[~exact].logprob(outcomes.lower[~exact], outcomes.upper[~exact])
    return scores


def crps(y: Any, dist: Any) -> Array:
    """Return the continuous ranked probability score of each target; smaller is better.

    It integrates the squared error of P(Y <= t) over all thresholds t, point masses included. Of
    an outcome that is only known to lie in an interval, it integrates where it is known whether
    y <= t: the survival CRPS (Avati et al., 2020), ``F**2`` below the interval and ``(1 - F)**2``
    above it.

    Parameters
    ----------
    y : array-like of shape (n_rows,), or Outcomes
        Observed targets.
    dist : Distribution or anything `as_distribution` takes
        One predictive distribution per target.

    Returns
    -------
    ndarray of shape (n_rows,)
        In the units of `y`; the absolute error for a point forecast.

    Notes
    -----
    The survival CRPS is smaller the less was seen, so that it does not compare rows or data sets
    with different censoring. Nor is it proper: even where censoring is independent of outcomes, a
    wrong distribution may score better on average than the true one (Rindt et al., 2022). To
    compare models on censored outcomes, use `log_score`.

    Examples
    --------
    >>> from regcal import Normal, Outcomes, crps
    >>> crps([0.0, 1.0], Normal([0.0, 0.0], [1.0, 1.0])).round(3)
    array([0.234, 0.602])
    >>> seen = Outcomes.right_censored([0.0, 1.0], observed=[True, False])
    >>> crps(seen, Normal([0.0, 0.0], [1.0, 1.0])).round(2)  # the second is at least 1
    array([0.23, 0.6 ])
    """
    outcomes, dist = checked_outcomes(y, dist)
    return dist.interval_crps(outcomes.lower, outcomes.upper)


def threshold_weighted_crps(
    y: Any, dist: Any, *, lower: float = -np.inf, upper: float = np.inf
) -> Array:
    """Return the CRPS restricted to a region of the target; smaller is better.

    It integrates the squared error of P(Y <= t) over thresholds between `lower` and `upper` only,
    so it judges the tail or the region that matters and stays proper.

    Parameters
    ----------
    y : array-like of shape (n_rows,), or Outcomes
        Observed targets; intervals count as in `regcal.crps`.
    dist : Distribution or anything `as_distribution` takes
        One predictive distribution per target.
    lower, upper : float, default=-inf and inf
        Ends of the region.

    Returns
    -------
    ndarray of shape (n_rows,)
        In the units of `y`.

    Examples
    --------
    >>> from regcal import Normal
    >>> from regcal.metrics import threshold_weighted_crps
    >>> dist = Normal([0.0, 0.0], [1.0, 1.0])
    >>> threshold_weighted_crps([0.0, 1.0], dist, lower=1.0).round(4)
    array([0.0072, 0.0072])
    """
    outcomes, dist = checked_outcomes(y, dist)
    if not lower < upper:
        msg = f"lower must be smaller than upper, got {lower} and {upper}. Swap the two."
        raise ValueError(msg)
    return dist.interval_crps(outcomes.lower, outcomes.upper, lower, upper)


def pinball_loss(y: Any, dist: Any, levels: Any) -> Array:
    """Return the pinball loss of predicted quantiles; smaller is better.

    Parameters
    ----------
    y : array-like of shape (n_rows,), or Outcomes
        Observed targets, which have to be numbers: intervals do not have this score.
    dist : Distribution or anything `as_distribution` takes
        One predictive distribution per target.
    levels : float or array-like of shape (n_levels,)
        Levels of the quantiles, between 0 and 1.

    Returns
    -------
    ndarray of shape (n_rows,) or (n_rows, n_levels)
        One column per level; no column axis for a single number.

    Examples
    --------
    >>> from regcal import Normal
    >>> from regcal.metrics import pinball_loss
    >>> pinball_loss([1.0, 0.0], Normal([0.0, 0.0], [1.0, 1.0]), 0.9).round(3)
    array([0.028, 0.128])
    """
    outcomes, dist = checked_outcomes(y, dist)
    targets = exact_numbers(outcomes, "pinball_loss")
    columns = check_column(np.atleast_1d(levels), "levels")
    for level in columns:
        check_level(level, "levels")
    gaps = targets[:, np.newaxis] - dist.ppf(columns[np.newaxis, :])
    losses = np.maximum(columns * gaps, (columns - 1.0) * gaps)
    return losses[:, 0] if np.ndim(levels) == 0 else losses


def interval_score(y: Any, dist: Any, coverage: float = 0.9) -> Array:
    """Return the interval (Winkler) score of central intervals; smaller is better.

    Parameters
    ----------
    y : array-like of shape (n_rows,), or Outcomes
        Observed targets, which have to be numbers: intervals do not have this score.
    dist : Distribution or anything `as_distribution` takes
        One predictive distribution per target.
    coverage : float, default=0.9
        Probability that the interval is meant to hold.

    Returns
    -------
    ndarray of shape (n_rows,)
        Width, plus ``2 / (1 - coverage)`` times the distance of outcomes outside.

    Examples
    --------
    >>> from regcal import Normal
    >>> from regcal.metrics import interval_score
    >>> interval_score([0.0, 2.0], Normal([0.0, 0.0], [1.0, 1.0]), 0.9).round(2)
    array([ 3.29, 10.39])
    """
    outcomes, dist = checked_outcomes(y, dist)
    targets = exact_numbers(outcomes, "interval_score")
    miss_rate = 1.0 - check_level(coverage, "coverage")
    low, high = dist.interval(coverage)
    outside = np.maximum(low - targets, 0.0) + np.maximum(targets - high, 0.0)
    return high - low + 2.0 / miss_rate * outside


def interval_width(dist: Any, coverage: float = 0.9) -> Array:
    """Return the width of each row's central interval.

    Parameters
    ----------
    dist : Distribution or anything `as_distribution` takes
    coverage : float, default=0.9
        Probability of the interval.

    Returns
    -------
    ndarray of shape (n_rows,)

    Examples
    --------
    >>> from regcal import Normal
    >>> from regcal.metrics import interval_width
    >>> interval_width(Normal([0.0, 5.0], [1.0, 2.0]), 0.9).round(2)
    array([3.29, 6.58])
    """
    low, high = as_distribution(dist).interval(check_level(coverage, "coverage"))
    return high - low


def brier_score(y: Any, dist: Any, thresholds: Any) -> Array:
    """Return the squared error of P(Y <= t) as a forecast of whether y <= t.

    Parameters
    ----------
    y : array-like of shape (n_rows,), or Outcomes
        Observed targets. Intervals have this score at thresholds that are not inside of them.
    dist : Distribution or anything `as_distribution` takes
        One predictive distribution per target.
    thresholds : float or array-like of shape (n_thresholds,)

    Returns
    -------
    ndarray of shape (n_rows,) or (n_rows, n_thresholds)
        One column per threshold; no column axis for a single number.

    Examples
    --------
    >>> from regcal import Normal
    >>> from regcal.metrics import brier_score
    >>> brier_score([-1.0, 1.0], Normal([0.0, 0.0], [1.0, 1.0]), 0.0)
    array([0.25, 0.25])
    """
    outcomes, dist = checked_outcomes(y, dist)
    columns = check_column(np.atleast_1d(thresholds), "thresholds")
    happened = known_events(outcomes, dist, columns)
    scores = (dist.cdf(columns[np.newaxis, :]) - happened) ** 2
    return scores[:, 0] if np.ndim(thresholds) == 0 else scores


def sharpness(dist: Any, sample_weight: Any = None) -> float:
    """Return the mean predictive standard deviation; smaller is sharper.

    Sharpness is a virtue among calibrated predictions only.

    Parameters
    ----------
    dist : Distribution or anything `as_distribution` takes
    sample_weight : array-like of shape (n_rows,), optional

    Returns
    -------
    float
        In the units of the target.

    Examples
    --------
    >>> from regcal import Normal
    >>> from regcal.metrics import sharpness
    >>> sharpness(Normal([0.0, 5.0], [1.0, 2.0]))
    1.5
    """
    dist = as_distribution(dist)
    weights = check_weights(sample_weight, len(dist))
    return weighted_mean(dist.std(), weights)


@dataclass(frozen=True)
class MeanScore:
    """A mean over rows with its standard error.

    Attributes
    ----------
    mean : float
    standard_error : float
        nan for a single row.

    Examples
    --------
    >>> from regcal.metrics import mean_score
    >>> mean_score([1.0, 2.0, 3.0]).mean
    2.0
    """

    mean: float
    standard_error: float


def mean_score(scores: Any, sample_weight: Any = None) -> MeanScore:
    """Return the weighted mean of per-row scores with its standard error.

    Parameters
    ----------
    scores : array-like of shape (n_rows,)
        What a score of this module returned; infinite values are allowed.
    sample_weight : array-like of shape (n_rows,), optional

    Returns
    -------
    MeanScore

    Examples
    --------
    >>> from regcal.metrics import mean_score
    >>> mean_score([1.0, 2.0, 3.0, 4.0])
    MeanScore(mean=2.5, standard_error=0.6454972243679028)
    """
    values = as_float_array(scores, "scores")
    if values.ndim != 1 or np.isnan(values).any():
        msg = (
            f"scores must be one number per row without NaN, got shape {values.shape}. "
            "Pass one column at a time."
        )
        raise ValueError(msg)
    weights = check_weights(sample_weight, len(values))
    return MeanScore(weighted_mean(values, weights), standard_error(values, weights))
