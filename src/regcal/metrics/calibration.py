"""Calibration over the whole batch: PIT values, quantiles and central intervals.

Weighted rows are as noisy as their effective number of equal rows, ``sum(w)**2 / sum(w**2)``;
multiplying all weights by a number changes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from scipy import stats

from regcal._random import child_generator, uniforms_by_order
from regcal._validation import Array, check_increasing, check_weights
from regcal.metrics._inputs import (
    check_count,
    check_level,
    checked_outcomes,
    effective_rows,
    seen_in_words,
    weighted_mean,
)
from regcal.outcomes import Outcomes


def pit(y: Any, dist: Any, random_state: Any = 0) -> Array:
    """Return the probability integral transform of each target.

    At a point mass it is drawn at random between P(Y < y) and P(Y <= y), and for an outcome that
    is only known to lie in an interval, between the probabilities of its ends, so that it is
    uniform for calibrated predictions in any case.

    Parameters
    ----------
    y : array-like of shape (n_rows,), or Outcomes
        Observed targets.
    dist : Distribution or anything `as_distribution` takes
        One predictive distribution per target.
    random_state : int, RandomState, Generator or None, default=0
        Draws where there is something to draw. A number draws the same in each call: where rows
        come one by one, or in batches, pass one Generator to all calls, or the values of rows at
        masses are copies of a few draws and not uniform together.

    Returns
    -------
    ndarray of shape (n_rows,)
        ``dist.cdf(y)`` where there is no mass; uniform on [0, 1] when `dist` is calibrated.

    Examples
    --------
    >>> from regcal import Normal, pit
    >>> pit([0.0, 1.0], Normal([0.0, 1.0], [1.0, 1.0]))
    array([0.5, 0.5])
    >>> from regcal import Outcomes
    >>> seen = Outcomes.right_censored([0.0, 1.0], observed=[True, False])
    >>> pit(seen, Normal([0.0, 1.0], [1.0, 1.0])).round(2)  # the second is drawn from [0.5, 1]
    array([0.5 , 0.53])
    """
    return pit_intervals(y, dist).drawn(random_state)


@dataclass(frozen=True)
class PitIntervals:
    """Where each row's PIT value lies: between F(y-) and F(y), or the probabilities of ends.

    What is counted over rows takes a row's value to be spread evenly over its interval, which is
    what draws give on average (Czado, Gneiting and Held, 2009).
    """

    below: Array
    upto: Array
    note: str

    def __len__(self) -> int:
        return len(self.upto)

    @property
    def spread(self) -> np.ndarray:
        """Whether a row's value is an interval."""
        return self.upto > self.below

    def between(self, low: float, high: float) -> Array:
        """Return the share of each row's value that lies between two levels, ends included."""
        inside = ((self.upto >= low) & (self.upto <= high)).astype(np.float64)
        rows = self.spread
        below, upto = self.below[rows], self.upto[rows]
        overlap = np.minimum(upto, high) - np.maximum(below, low)
        inside[rows] = np.maximum(overlap, 0.0) / (upto - below)
        return inside

    def drawn(self, random_state: Any) -> Array:
        """Return one value per row; the same rows in another order get the same draws."""
        values, rows = self.upto.copy(), np.flatnonzero(self.spread)
        if len(rows):
            shares = uniforms_by_order(self.below[rows], self.upto[rows], random_state)
            values[rows] -= shares * (self.upto - self.below)[rows]
        return values


def pit_intervals(y: Any, dist: Any) -> PitIntervals:
    """Return where the PIT value of each target lies."""
    outcomes, dist = checked_outcomes(y, dist)
    masses = dist.mass(outcomes.lower)
    upto = dist.cdf(outcomes.upper)
    below, rows = upto.copy(), np.flatnonzero(~outcomes.exact_rows | (masses > 0))
    if len(rows):
        at_most = dist[rows].cdf(outcomes.lower[rows])
        below[rows] = np.clip(at_most - masses[rows], 0.0, upto[rows])
    return PitIntervals(below, upto, _spread_in_words(outcomes, masses))


def _spread_in_words(outcomes: Outcomes, masses: Array) -> str:
    """Return which rows' values are intervals, and what is done with them."""
    on_mass = int((outcomes.exact_rows & (masses > 0)).sum())
    words = [seen_in_words(outcomes)]
    if on_mass:
        words.append(f"{on_mass:,} of {len(outcomes):,} outcomes lie on point masses")
    known = "; ".join(word for word in words if word)
    return f"{known}: their PIT values are spread evenly over intervals" if known else ""


@dataclass(frozen=True)
class PitHistogram:
    """Histogram of PIT values, with the band in which calibrated ones stay.

    Attributes
    ----------
    edges : ndarray of shape (n_bins + 1,)
    density : ndarray of shape (n_bins,)
        Relative to the uniform distribution: 1 everywhere is perfect.
    lower, upper : float
        Simultaneous band: all bars of a calibrated model lie inside with probability
        `confidence` or more.
    confidence : float
    note : str
        What was done with censored outcomes and with those on point masses.

    Examples
    --------
    >>> from regcal import Normal
    >>> from regcal.metrics import pit_histogram
    >>> histogram = pit_histogram([-1.0, -0.2, 0.2, 1.0], Normal([0.0] * 4, [1.0] * 4), bins=2)
    >>> histogram.density
    array([1., 1.])
    """

    edges: Array
    density: Array
    lower: float
    upper: float
    confidence: float
    note: str = ""


def pit_histogram(
    y: Any, dist: Any, bins: int = 10, sample_weight: Any = None, confidence: float = 0.95
) -> PitHistogram:
    """Return the histogram of PIT values with a consistency band.

    An outcome that is censored, or lies on a point mass, counts evenly over its interval of PIT
    values: the band, which is that of numbers, is then wide enough.

    Parameters
    ----------
    y : array-like of shape (n_rows,), or Outcomes
        Observed targets.
    dist : Distribution or anything `as_distribution` takes
        One predictive distribution per target.
    bins : int, default=10
        Number of equally wide bars.
    sample_weight : array-like of shape (n_rows,), optional
    confidence : float, default=0.95
        Probability that all bars of a calibrated model lie inside the band.

    Returns
    -------
    PitHistogram

    Examples
    --------
    >>> import numpy as np
    >>> from regcal import Normal
    >>> from regcal.metrics import pit_histogram
    >>> y = np.random.default_rng(0).normal(size=1000)
    >>> pit_histogram(y, Normal(np.zeros(1000), np.full(1000, 2.0)), bins=4).density
    array([0.316, 1.82 , 1.556, 0.308])
    """
    values = pit_intervals(y, dist)
    weights = check_weights(sample_weight, len(values))
    bins = check_count(bins, "bins")
    edges = np.linspace(0.0, 1.0, bins + 1)
    shares = _shares_of_bins(values, edges, weights)
    # Bonferroni: each bar gets its part of the error probability.
    lower, upper = _share_band(np.array([1.0 / bins]), effective_rows(weights), confidence, bins)
    return PitHistogram(
        edges,
        shares * bins,
        float(lower[0] * bins),
        float(upper[0] * bins),
        confidence,
        values.note,
    )


def _shares_of_bins(values: PitIntervals, edges: Array, weights: Array) -> Array:
    narrow = ~values.spread
    counts = np.histogram(values.upto[narrow], edges, weights=weights[narrow])[0]
    spread = [weights[~narrow] @ values.between(*ends)[~narrow] for ends in pairwise(edges)]
    return (counts + np.array(spread)) / weights.sum()


def _share_band(
    expected: Array, n_rows: float, confidence: float, comparisons: int
) -> tuple[Array, Array]:
    """Return the band for binomial shares that holds for all comparisons at once."""
    tail = (1.0 - check_level(confidence, "confidence")) / (2 * comparisons)
    trials = max(1, round(n_rows))
    low = stats.binom.ppf(tail, trials, expected) / trials
    high = stats.binom.isf(tail, trials, expected) / trials
    return np.maximum(low, 0.0), np.minimum(high, 1.0)


@dataclass(frozen=True)
class UniformityTest:
    """Two tests of whether PIT values are uniform; small p-values speak against calibration.

    Attributes
    ----------
    ks_statistic : float
        Kolmogorov-Smirnov: the largest distance from the uniform CDF. Sensitive to bias.
    ks_p_value : float
    chi2_statistic : float
        Pearson's, over equally wide bins. Sensitive to a wrong spread or shape.
    chi2_p_value : float

    Examples
    --------
    >>> from regcal import Normal
    >>> from regcal.metrics import pit_test
    >>> test = pit_test([-1.0, -0.2, 0.2, 1.0], Normal([0.0] * 4, [1.0] * 4))
    >>> round(test.ks_statistic, 2), test.ks_p_value > 0.05
    (0.17, True)
    """

    ks_statistic: float
    ks_p_value: float
    chi2_statistic: float
    chi2_p_value: float


def pit_test(
    y: Any, dist: Any, bins: int = 10, sample_weight: Any = None, *, random_state: Any = 0
) -> UniformityTest:
    """Test whether PIT values are uniform, as those of a calibrated model are.

    Values of outcomes that are censored or lie on point masses are drawn, as in `regcal.pit`.

    Parameters
    ----------
    y : array-like of shape (n_rows,), or Outcomes
        Observed targets.
    dist : Distribution or anything `as_distribution` takes
        One predictive distribution per target.
    bins : int, default=10
        Bins of the chi-squared test; fewer are used when there are less than five rows per bin.
    sample_weight : array-like of shape (n_rows,), optional
    random_state : int, RandomState, Generator or None, default=0
        Draws where there is something to draw.

    Returns
    -------
    UniformityTest

    Examples
    --------
    >>> import numpy as np
    >>> from regcal import Normal
    >>> from regcal.metrics import pit_test
    >>> y = np.random.default_rng(0).normal(size=500)
    >>> pit_test(y, Normal(np.zeros(500), np.ones(500))).ks_p_value > 0.05
    True
    >>> pit_test(y, Normal(np.zeros(500), np.full(500, 2.0))).chi2_p_value < 1e-6
    True
    """
    values = pit(y, dist, random_state)
    weights = check_weights(sample_weight, len(values))
    n_rows = effective_rows(weights)
    distance = _ks_distance(values, weights)
    if np.ptp(weights) == 0:
        ks_p_value = stats.kstwo.sf(distance, len(values))
    else:
        ks_p_value = stats.kstwobign.sf(distance * np.sqrt(n_rows))
    bins = min(check_count(bins, "bins"), max(2, int(n_rows // 5)))
    shares = np.histogram(values, bins, (0.0, 1.0), weights=weights)[0] / weights.sum()
    chi2 = n_rows * bins * float(((shares - 1.0 / bins) ** 2).sum())
    return UniformityTest(distance, float(ks_p_value), chi2, float(stats.chi2.sf(chi2, bins - 1)))


def _ks_distance(values: Array, weights: Array) -> float:
    order = np.argsort(values)
    cumulative = np.cumsum(weights[order]) / weights.sum()
    before = np.concatenate([[0.0], cumulative[:-1]])
    return float(max((cumulative - values[order]).max(), (values[order] - before).max()))


@dataclass(frozen=True)
class CalibrationTest:
    """A calibration error together with what chance alone would give.

    Attributes
    ----------
    error : float
        Root mean squared gap with the part that sampling noise is expected to add removed; 0 where
        noise explains all of it.
    raw_error : float
        Root mean squared gap as observed. It is positive for calibrated models too.
    expected : float
        Mean of `raw_error` if the model were calibrated, by simulation.
    p_value : float
        Probability of a `raw_error` at least this large if the model were calibrated.

    Examples
    --------
    >>> from regcal import Normal
    >>> from regcal.metrics import quantile_calibration_test
    >>> y = [-1.0, -0.2, 0.2, 1.0]
    >>> test = quantile_calibration_test(y, Normal([3.0] * 4, [1.0] * 4), random_state=0)
    >>> test.p_value < 0.05, test.raw_error > test.expected
    (True, True)
    """

    error: float
    raw_error: float
    expected: float
    p_value: float


def quantile_calibration_error(
    y: Any, dist: Any, levels: Any = None, sample_weight: Any = None
) -> float:
    """Return how far the shares of outcomes below predicted quantiles are from their levels.

    An outcome that is censored, or lies on a point mass, counts evenly over its interval of PIT
    values.

    Parameters
    ----------
    y : array-like of shape (n_rows,), or Outcomes
        Observed targets.
    dist : Distribution or anything `as_distribution` takes
        One predictive distribution per target.
    levels : array-like of shape (n_levels,), optional
        Increasing levels of the quantiles; 0.05, 0.10, ..., 0.95 by default.
    sample_weight : array-like of shape (n_rows,), optional

    Returns
    -------
    float
        Root mean squared gap over the levels, in probability. The part that sampling noise is
        expected to add is removed, so about half of all calibrated models get 0.

    Examples
    --------
    >>> import numpy as np
    >>> from regcal import Normal
    >>> from regcal.metrics import quantile_calibration_error
    >>> y = np.random.default_rng(0).normal(size=500)
    >>> round(quantile_calibration_error(y, Normal(np.full(500, 0.5), np.ones(500))), 2)
    0.16
    """
    values = pit_intervals(y, dist)
    weights = check_weights(sample_weight, len(values))
    gaps, noise = quantile_gaps(values, checked_levels(levels), weights)
    return debiased_root(np.mean(gaps**2), np.mean(noise))


def quantile_calibration_test(
    y: Any,
    dist: Any,
    levels: Any = None,
    sample_weight: Any = None,
    *,
    n_simulations: int = 999,
    random_state: Any = None,
) -> CalibrationTest:
    """Test the quantile calibration error against what calibrated models get by chance.

    PIT values of outcomes that are censored or lie on point masses are drawn, as in `regcal.pit`,
    and the errors are those of the draws.

    Parameters
    ----------
    y, dist, levels, sample_weight
        As in `quantile_calibration_error`.
    n_simulations : int, default=999
        Number of simulated calibrated data sets.
    random_state : int, RandomState, Generator or None, default=None

    Returns
    -------
    CalibrationTest

    Examples
    --------
    >>> import numpy as np
    >>> from regcal import Normal
    >>> from regcal.metrics import quantile_calibration_test
    >>> y = np.random.default_rng(0).normal(size=500)
    >>> dist = Normal(np.zeros(500), np.ones(500))
    >>> quantile_calibration_test(y, dist, random_state=0).p_value > 0.05
    True
    """
    rng = child_generator(random_state)
    values = pit(y, dist, rng)
    weights = check_weights(sample_weight, len(values))
    levels = checked_levels(levels)
    gaps, noise = quantile_gaps(PitIntervals(values, values, ""), levels, weights)
    masses = np.diff(np.concatenate([[0.0], levels, [1.0]]))
    trials = max(1, round(effective_rows(weights)))
    counts = rng.multinomial(trials, masses, size=check_count(n_simulations, "n_simulations"))
    simulated = np.cumsum(counts[:, :-1], axis=1) / trials - levels
    return compared_with_chance(np.mean(gaps**2), np.mean(noise), np.mean(simulated**2, axis=1))


def quantile_gaps(values: PitIntervals, levels: Array, weights: Array) -> tuple[Array, Array]:
    """Return observed less nominal share at each level, and its variance under calibration."""
    share, noise = np.empty((2, len(levels)))
    for k, level in enumerate(levels):
        below = values.between(0.0, level)
        share[k] = weighted_mean(below, weights)
        # a row that is spread over the level is known in part, and varies less by that
        varies = level * (1 - level) - below * (1 - below)
        noise[k] = max(float(weights**2 @ varies), 0.0) / weights.sum() ** 2
    return share - levels, noise


def checked_levels(levels: Any) -> Array:
    """Return increasing probabilities, 0.05 to 0.95 by default."""
    if levels is None:
        return np.arange(1, 20) / 20
    levels = check_increasing(np.atleast_1d(levels), "levels")
    check_level(levels[0], "levels")
    check_level(levels[-1], "levels")
    return levels


def debiased_root(squared: Any, noise: Any) -> float:
    """Return the root of a mean squared gap after removing the expected noise."""
    return float(np.sqrt(max(0.0, float(squared) - float(noise))))


def compared_with_chance(squared: Any, noise: Any, simulated: Array) -> CalibrationTest:
    """Return the test of a mean squared gap, given those of simulated calibrated data."""
    # Relative tolerance: ties with the observed value count as at least as large.
    exceeding = int((simulated >= float(squared) * (1 - 1e-12)).sum())
    return CalibrationTest(
        error=debiased_root(squared, noise),
        raw_error=float(np.sqrt(squared)),
        expected=float(np.sqrt(simulated).mean()),
        p_value=(1 + exceeding) / (1 + len(simulated)),
    )


def interval_coverage(y: Any, dist: Any, coverage: float = 0.9, sample_weight: Any = None) -> float:
    """Return the share of outcomes inside the central interval.

    An interval that ends in a point mass holds all of it, and so more than its nominal coverage.
    Of an outcome on a point mass, only the part of the mass counts that lies between the levels of
    the interval's ends; of a censored outcome, the part of its interval of PIT values that does.
    A calibrated model then has nominal coverage whatever its masses and whatever was seen.

    Parameters
    ----------
    y : array-like of shape (n_rows,), or Outcomes
        Observed targets.
    dist : Distribution or anything `as_distribution` takes
        One predictive distribution per target.
    coverage : float, default=0.9
        Probability that the interval is meant to hold; a calibrated model returns about that.
    sample_weight : array-like of shape (n_rows,), optional

    Returns
    -------
    float

    Examples
    --------
    >>> from regcal import Normal
    >>> from regcal.metrics import interval_coverage
    >>> interval_coverage([0.0, 1.0, 2.0, 0.5], Normal([0.0] * 4, [1.0] * 4), 0.9)
    0.75
    >>> from regcal import Clipped
    >>> rain = Clipped(Normal([0.0] * 4, [1.0] * 4), low=0.0)  # P(Y = 0) = 0.5
    >>> interval_coverage([0.0, 0.0, 0.3, 1.2], rain, 0.5)  # half of the mass is in [0.25, 0.75]
    0.5
    """
    inside = covered(pit_intervals(y, dist), check_level(coverage, "coverage"))
    return weighted_mean(inside, check_weights(sample_weight, len(inside)))


def covered(values: PitIntervals, coverage: float) -> Array:
    """Return which share of each outcome lies in the central interval, from its PIT values."""
    return values.between(0.5 - coverage / 2, 0.5 + coverage / 2)


@dataclass(frozen=True)
class CoverageCurve:
    """Observed against nominal coverage of central intervals.

    Attributes
    ----------
    nominal, observed : ndarray of shape (n_levels,)
    lower, upper : ndarray of shape (n_levels,)
        Simultaneous band: a calibrated model's curve lies inside with probability `confidence` or
        more.
    confidence : float
    note : str
        What was done with censored outcomes and with those on point masses.

    Examples
    --------
    >>> from regcal import Normal
    >>> from regcal.metrics import coverage_curve
    >>> coverage_curve([-1.0, -0.2, 0.2, 1.0], Normal([0.0] * 4, [1.0] * 4), [0.5, 0.9]).observed
    array([0.5, 1. ])
    """

    nominal: Array
    observed: Array
    lower: Array
    upper: Array
    confidence: float
    note: str = ""


def coverage_curve(
    y: Any,
    dist: Any,
    levels: Any = None,
    sample_weight: Any = None,
    confidence: float = 0.95,
) -> CoverageCurve:
    """Return the coverage of central intervals at many nominal levels.

    Parameters
    ----------
    y : array-like of shape (n_rows,), or Outcomes
        Observed targets; those that are censored or lie on point masses count as in
        `interval_coverage`.
    dist : Distribution or anything `as_distribution` takes
        One predictive distribution per target.
    levels : array-like of shape (n_levels,), optional
        Increasing nominal coverages; 0.05, 0.10, ..., 0.95 by default.
    sample_weight : array-like of shape (n_rows,), optional
    confidence : float, default=0.95
        Probability that the whole curve of a calibrated model lies inside the band.

    Returns
    -------
    CoverageCurve

    Examples
    --------
    >>> import numpy as np
    >>> from regcal import Normal
    >>> from regcal.metrics import coverage_curve
    >>> y = np.random.default_rng(0).normal(size=1000)
    >>> coverage_curve(y, Normal(np.zeros(1000), np.full(1000, 2.0)), [0.5, 0.9]).observed
    array([0.844, 0.998])
    """
    values = pit_intervals(y, dist)
    weights = check_weights(sample_weight, len(values))
    nominal = checked_levels(levels)
    observed = np.array([weighted_mean(covered(values, level), weights) for level in nominal])
    lower, upper = _share_band(nominal, effective_rows(weights), confidence, len(nominal))
    return CoverageCurve(nominal, observed, lower, upper, confidence, values.note)
