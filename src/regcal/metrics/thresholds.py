"""Threshold calibration: for each t, outcomes y <= t against the predicted P(Y <= t).

Where outcomes are censored, so that for some rows nobody knows whether y <= t, frequencies in bins
of the predicted probability are estimated by Kaplan and Meier's rule or Turnbull's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

from regcal._random import child_generator
from regcal._validation import Array, check_weights
from regcal.distributions import Distribution
from regcal.grids import QuantileGrid, make_thresholds
from regcal.metrics._inputs import check_count, check_level, checked_outcomes, seen_in_words
from regcal.metrics.calibration import (
    CalibrationTest,
    PitIntervals,
    compared_with_chance,
    debiased_root,
    pit_intervals,
)
from regcal.metrics.censoring import Ends, Split, known_events
from regcal.outcomes import Outcomes

# Where thresholds lie unless said otherwise: at quantiles of the outcomes.
DEFAULT_THRESHOLDS = QuantileGrid(16)


@dataclass(frozen=True)
class Forecasts:
    """Predicted P(Y <= t) and what happened, rows × thresholds.

    Where that is not known of all rows, `happened` has their influences on the estimated frequency
    of their bin, which is their mean, and `information` says, thresholds × bins, how many known
    labels a row is worth: 0 where nothing but the predictions tells what happened.
    """

    thresholds: Array
    predicted: Array
    happened: np.ndarray
    weights: Array
    information: Any = 1.0
    method: str = ""
    note: str = ""


def thresholds_for(spec: Any, outcomes: Outcomes, weights: Array) -> Array:
    """Return thresholds for outcomes; of a censored one its known end, or the middle, counts."""
    with np.errstate(invalid="ignore"):
        middle = 0.5 * (outcomes.lower + outcomes.upper)
    known = np.where(np.isinf(outcomes.lower), outcomes.upper, outcomes.lower)
    return make_thresholds(spec, np.where(np.isfinite(middle), middle, known), weights)


def forecasts_at(
    y: Any, dist: Any, thresholds: Any, sample_weight: Any, bins: int | None = None
) -> Forecasts:
    """Return the binary forecasts that distributions make at thresholds; weight-0 rows dropped.

    What happened is estimated within bins where it is not known of all rows; without bins that is
    an error.
    """
    outcomes, dist = checked_outcomes(y, dist)
    weights = check_weights(sample_weight, len(outcomes))
    if not weights.all():
        used = np.flatnonzero(weights)
        outcomes, dist, weights = outcomes[used], dist[used], weights[used]
    grid = thresholds_for(thresholds, outcomes, weights)
    predicted = np.clip(dist.cdf(grid[np.newaxis, :]), 0.0, 1.0)
    if bins is None or outcomes.exact_rows.all():
        return Forecasts(grid, predicted, known_events(outcomes, dist, grid), weights)
    return _estimated(outcomes, dist, grid, predicted, weights, bins)


def _estimated(
    outcomes: Outcomes,
    dist: Distribution,
    thresholds: Array,
    predicted: Array,
    weights: Array,
    bins: int,
) -> Forecasts:
    """Return forecasts of which it is not known for all rows what happened."""
    ends = Ends(outcomes, dist)
    happened = (outcomes.upper[:, np.newaxis] <= thresholds).astype(np.float64)
    information = np.zeros((len(thresholds), bins))
    seen = pit_intervals(outcomes, dist)
    for k, t in enumerate(thresholds):
        if not ends.tell(t):
            continue
        known = ends.known(t)
        bin_of = probability_bin(predicted[:, k], bins)
        information[k, bin_of] = 1.0
        expected = expected_labels(predicted[:, k], happened[:, k], known, seen)
        for b in np.unique(bin_of[~known]):
            rows = np.flatnonzero(bin_of == b)
            if not known[rows].any() and _one_sided(outcomes[rows]):
                information[k, b] = 0.0  # nothing but the predictions would tell
                continue
            w = weights[rows]
            split = _predicted_split(dist[rows], w, predicted[rows, k])
            happened[rows, k] = ends.influences(t, rows, w, split)
            information[k, b] = _information(
                expected[rows], predicted[rows, k], happened[rows, k], w
            )
    told = information.sum(axis=1) > 0
    _refuse_untold(thresholds, told, outcomes)
    method = "Kaplan-Meier" if _one_sided(outcomes) else "Turnbull's estimate"
    method += f" within bins{untold_in_words(thresholds[~told])}"
    note = f"{seen_in_words(outcomes)}: frequencies by {method}"
    return Forecasts(thresholds, predicted, happened, weights, information, method, note)


def told_by_rows(outcomes: Outcomes, dist: Distribution, thresholds: Array) -> np.ndarray:
    """Return at which thresholds rows tell how often y <= t; that they do at none is an error."""
    if outcomes.exact_rows.all():
        return np.ones(len(thresholds), dtype=bool)
    ends = Ends(outcomes, dist)
    told = np.array([ends.tell(t) for t in thresholds])
    _refuse_untold(thresholds, told, outcomes)
    return told


def _refuse_untold(thresholds: Array, told: np.ndarray, outcomes: Outcomes) -> None:
    if not told.any():
        msg = (
            f"No row tells how often y <= t at t = {_listed(thresholds)}: "
            f"{seen_in_words(outcomes)}. Pass thresholds between outcomes that were seen, or use "
            "log_score, which judges such rows by what is known of them."
        )
        raise ValueError(msg)


def untold_in_words(untold: Array) -> str:
    """Return at which thresholds nothing is known, if there are any."""
    if len(untold) == 0:
        return ""
    return f"; nothing is known at {_listed(untold)}, beyond what was seen"


def _listed(thresholds: Array) -> str:
    named = ", ".join(f"{t:g}" for t in thresholds[:3])
    return named if len(thresholds) <= 3 else f"{named} ... {thresholds[-1]:g}"


def _one_sided(outcomes: Outcomes) -> bool:
    sides = (np.isinf(end) | outcomes.exact_rows for end in (outcomes.lower, outcomes.upper))
    return any(side.all() for side in sides)


def expected_labels(q: Array, happened: Array, known: np.ndarray, seen: PitIntervals) -> Array:
    """Return P(Y <= t) given what was seen, if the predictions are right."""
    with np.errstate(invalid="ignore", divide="ignore"):
        inside = np.clip((q - seen.below) / (seen.upto - seen.below), 0.0, 1.0)
    return np.where(known, happened, np.where(np.isnan(inside), 0.5, inside))


def _information(expected: Array, q: Array, influences: Array, weights: Array) -> float:
    """Return how many known labels a row of a bin is worth.

    It is the smaller of two estimates: the share of the labels' variance that is known if the
    predictions are right, and the variance of known labels over that of the influences. The first
    is too large where masses are estimated in between, the second is none without events.
    """
    missing, complete = (float(weights @ (p * (1 - p))) for p in (expected, q))
    shares = [1.0 - missing / complete if complete > 0 else 0.0]
    rate = np.average(influences, weights=weights)
    variance = np.average((influences - rate) ** 2, weights=weights)
    if 0 < rate < 1 and variance > 0:
        shares.append(rate * (1 - rate) / variance)
    return float(np.clip(min(shares), 1.0 / len(q), 1.0))  # at least one of its rows


def _predicted_split(dist: Distribution, weights: Array, q: Array) -> Split:
    """Return how predictions split an interval that the rows of a group cannot."""

    def split(low: float, closed: bool, high: float) -> float:
        start = dist.cdf(low) - (dist.mass(low) if closed else 0.0)
        inside = float(weights @ (dist.cdf(high) - start))
        return float(np.clip(weights @ (q - start) / inside, 0.0, 1.0)) if inside > 0 else 0.5

    return split


def probability_bin(predicted: Array, bins: int) -> np.ndarray:
    """Return in which of equally wide bins each probability lies."""
    return np.minimum((predicted * bins).astype(np.intp), bins - 1)


class ProbabilityBins:
    """Forecasts collected in equally wide bins of their probability, per threshold."""

    def __init__(self, forecasts: Forecasts, bins: int) -> None:
        n_thresholds = len(forecasts.thresholds)
        self.shape = (n_thresholds, bins)
        self._row_weights = forecasts.weights
        bin_of = probability_bin(forecasts.predicted, bins)
        self._cells = (bin_of + np.arange(n_thresholds) * bins).ravel()
        weights, q = forecasts.weights[:, np.newaxis], forecasts.predicted
        self.weight = self._totals(np.broadcast_to(weights, q.shape))
        self.squared_weight = self._totals(np.broadcast_to(weights**2, q.shape))
        self.share = self.weight / forecasts.weights.sum()
        self.predicted = self._per_weight(self._totals(weights * q))
        # Variance of a bin's frequency if every forecast in it is right and known.
        variance = self._totals(weights**2 * q * (1 - q))
        self._noise = self._per_weight(self._per_weight(variance))
        # A bin counts as much as is known in it, and its noise is larger by as much.
        self.information = np.broadcast_to(forecasts.information, self.shape)
        self._told_share = self.share * (self.information > 0)
        self.known = (self.share * self.information).sum(axis=1)

    def _totals(self, values: Array) -> Array:
        size = self.shape[0] * self.shape[1]
        totals = np.bincount(self._cells, values.ravel(), size).astype(np.float64, copy=False)
        return totals.reshape(self.shape)

    def _per_weight(self, totals: Array) -> Array:
        return np.divide(totals, self.weight, out=np.zeros(self.shape), where=self.weight > 0)

    def observed(self, happened: np.ndarray) -> Array:
        """Return the weighted frequency of the event in each bin."""
        return self._per_weight(self._totals(happened * self._row_weights[:, np.newaxis]))

    def _squared_gaps(self, happened: np.ndarray) -> Array:
        return (self.observed(happened) - self.predicted) ** 2

    def squared_gaps(self, happened: np.ndarray) -> Array:
        """Return the mean squared gap of each threshold."""
        gaps = self._squared_gaps(happened)
        return self._per_known(self.share * self.information * gaps)

    def simulated_gaps(self, happened: np.ndarray) -> Array:
        """Return the same of events that were drawn, which are known, as if they were not."""
        return self._per_known(self._told_share * self._squared_gaps(happened))

    def expected_noise(self) -> Array:
        """Return what sampling adds to the mean squared gap of each threshold."""
        return self._per_known(self._told_share * self._noise)

    def _per_known(self, values: Array) -> Array:
        """Return sums over bins by what is known; nan at thresholds at which nothing is."""
        unknown = np.full(self.shape[0], np.nan)
        return np.divide(values.sum(axis=1), self.known, out=unknown, where=self.known > 0)

    def over_thresholds(self, values: Array) -> Array:
        """Return the mean over thresholds, the last axis; they count as much as is known."""
        told = self.known > 0
        if not told.any():
            return np.full(values.shape[:-1], np.nan)
        return np.average(values[..., told], axis=-1, weights=self.known[told])


@dataclass(frozen=True)
class ReliabilityCurve:
    """Observed frequency against predicted probability of y <= t, one line per threshold.

    Attributes
    ----------
    thresholds : ndarray of shape (n_thresholds,)
    predicted : ndarray of shape (n_thresholds, n_points)
        Mean predicted probability in each bin (or grid points); nan where there is none, or where
        all that is known of its outcomes lies before (or beyond) the threshold.
    observed : ndarray of shape (n_thresholds, n_points)
        Estimated P(Y <= t) given the predicted probability.
    share : ndarray of shape (n_thresholds, n_points)
        Share of the total weight at each point.
    lower, upper : ndarray of shape (n_thresholds, n_points)
        Consistency band: where `observed` would lie if the model were calibrated.
    confidence : float
    note : str
        How frequencies were estimated, where outcomes are censored.

    Examples
    --------
    >>> from regcal import Normal
    >>> from regcal.metrics import reliability_curve
    >>> dist = Normal([-1.0, -1.0, 1.0, 1.0], [1.0] * 4)
    >>> curve = reliability_curve([-2.0, 1.0, 2.0, -1.0], dist, thresholds=[0.0], bins=2)
    >>> curve.predicted.round(2), curve.observed
    (array([[0.16, 0.84]]), array([[0.5, 0.5]]))
    """

    thresholds: Array
    predicted: Array
    observed: Array
    share: Array
    lower: Array
    upper: Array
    confidence: float
    note: str = ""


def reliability_curve(
    y: Any,
    dist: Any,
    thresholds: Any = DEFAULT_THRESHOLDS,
    bins: int = 8,
    sample_weight: Any = None,
    confidence: float = 0.95,
) -> ReliabilityCurve:
    """Return binned reliability per threshold, the paper's reliability diagram.

    Parameters
    ----------
    y : array-like of shape (n_rows,), or Outcomes
        Observed targets. With censored ones frequencies are estimated as in
        `threshold_calibration_error`.
    dist : Distribution or anything `as_distribution` takes
        One predictive distribution per target.
    thresholds : int, grid or array-like, default=QuantileGrid(16)
        As calibrators take them: a number of equally spaced thresholds over the paper's range, a
        grid from `regcal.grids`, or increasing values.
    bins : int, default=8
        Number of equally wide bins of the predicted probability.
    sample_weight : array-like of shape (n_rows,), optional
    confidence : float, default=0.95
        Probability that all points of one calibrated line lie inside the band.

    Returns
    -------
    ReliabilityCurve

    Examples
    --------
    >>> import numpy as np
    >>> from regcal import Normal
    >>> from regcal.metrics import reliability_curve
    >>> rng = np.random.default_rng(0)
    >>> mean = rng.normal(size=2000)
    >>> y = mean + 1.0 + rng.normal(size=2000)
    >>> curve = reliability_curve(y, Normal(mean, np.ones(2000)), thresholds=[0.0], bins=4)
    >>> curve.predicted.round(2), curve.observed.round(2)
    (array([[0.13, 0.37, 0.62, 0.87]]), array([[0.01, 0.1 , 0.25, 0.56]]))
    >>> from regcal import Outcomes
    >>> limit = rng.normal(size=2000)
    >>> seen = Outcomes.right_censored(np.minimum(y, limit), observed=y <= limit)
    >>> curve = reliability_curve(seen, Normal(mean, np.ones(2000)), thresholds=[0.0], bins=4)
    >>> curve.observed.round(2)
    array([[0.01, 0.09, 0.26, 0.56]])
    >>> curve.note
    '1,411 of 2,000 outcomes are right-censored: frequencies by Kaplan-Meier within bins'
    """
    forecasts = forecasts_at(y, dist, thresholds, sample_weight, check_count(bins, "bins"))
    table = ProbabilityBins(forecasts, bins)
    empty = (table.weight == 0) | (table.information == 0)
    tail = (1.0 - check_level(confidence, "confidence")) / (2 * bins)
    with np.errstate(invalid="ignore", divide="ignore"):
        trials = np.round(table.weight**2 / table.squared_weight * table.information)
    trials = np.where(empty, 1, np.maximum(trials, 1))
    lower = stats.binom.ppf(tail, trials, table.predicted) / trials
    upper = stats.binom.isf(tail, trials, table.predicted) / trials
    observed = table.observed(forecasts.happened)
    predicted, observed, lower, upper = (
        np.where(empty, np.nan, values)
        for values in (table.predicted, observed, np.maximum(lower, 0.0), np.minimum(upper, 1.0))
    )
    return ReliabilityCurve(
        forecasts.thresholds,
        predicted,
        observed,
        table.share,
        lower,
        upper,
        confidence,
        forecasts.note,
    )


def threshold_calibration_error(
    y: Any,
    dist: Any,
    thresholds: Any = DEFAULT_THRESHOLDS,
    bins: int = 8,
    sample_weight: Any = None,
) -> float:
    """Return how far frequencies of y <= t are from predicted probabilities, over thresholds.

    Rows are put into bins by their predicted P(Y <= t); a gap is the difference between the mean
    prediction and the frequency of the event in a bin.

    With censored outcomes the frequency in a bin is that of Kaplan and Meier's estimate, or of
    Turnbull's if outcomes are censored on both sides or between two values. It assumes that what
    was censored is independent of the outcome among the rows of a bin. Bins and thresholds count
    by how much is known in them, and their noise is larger by as much. Thresholds beyond what was
    seen, such as after the end of follow-up, are left out, and so are bins in which no row tells;
    an error says so if none are left. Where the rows of a bin leave some probability open, such as
    between two visits, it is split as predicted.

    Parameters
    ----------
    y : array-like of shape (n_rows,), or Outcomes
        Observed targets.
    dist : Distribution or anything `as_distribution` takes
        One predictive distribution per target.
    thresholds : int, grid or array-like, default=QuantileGrid(16)
        As calibrators take them.
    bins : int, default=8
        Number of equally wide bins of the predicted probability.
    sample_weight : array-like of shape (n_rows,), optional

    Returns
    -------
    float
        Root mean squared gap over rows and thresholds, in probability. The part that sampling
        noise is expected to add is removed, so about half of all calibrated models get 0.

    Examples
    --------
    >>> import numpy as np
    >>> from regcal import Normal
    >>> from regcal.metrics import threshold_calibration_error
    >>> rng = np.random.default_rng(0)
    >>> mean = rng.normal(size=2000)
    >>> y = mean + rng.normal(size=2000)
    >>> round(threshold_calibration_error(y, Normal(mean + 0.5, np.ones(2000))), 2)
    0.12
    >>> from regcal import Outcomes
    >>> seen = Outcomes.right_censored(np.minimum(y, 1.0), observed=y <= 1.0)
    >>> round(threshold_calibration_error(seen, Normal(mean + 0.5, np.ones(2000))), 2)
    0.13
    """
    forecasts = forecasts_at(y, dist, thresholds, sample_weight, check_count(bins, "bins"))
    return calibration_error(forecasts, bins)


def calibration_error(forecasts: Forecasts, bins: int) -> float:
    """Return the root mean squared gap over rows and thresholds with expected noise removed."""
    table = ProbabilityBins(forecasts, bins)
    squared = table.squared_gaps(forecasts.happened)
    return debiased_root(
        table.over_thresholds(squared), table.over_thresholds(table.expected_noise())
    )


@dataclass(frozen=True)
class ThresholdErrors:
    """Errors at each threshold, as `ThresholdCalibrationTest` has them."""

    thresholds: Array
    errors: Array
    biases: Array


def errors_by_threshold(forecasts: Forecasts, table: ProbabilityBins) -> ThresholdErrors:
    """Return how far frequencies are from P(Y <= t) at each threshold, noise removed."""
    squared = table.squared_gaps(forecasts.happened) - table.expected_noise()
    gaps = forecasts.predicted - forecasts.happened
    return ThresholdErrors(
        forecasts.thresholds,
        np.sqrt(np.maximum(squared, 0.0)),
        np.where(table.known > 0, np.average(gaps, axis=0, weights=forecasts.weights), np.nan),
    )


@dataclass(frozen=True)
class ThresholdCalibrationTest(CalibrationTest):
    """The threshold calibration error against chance, in all and at each threshold.

    Attributes
    ----------
    error, raw_error, expected, p_value : float
        See `CalibrationTest`.
    thresholds : ndarray of shape (n_thresholds,)
    errors : ndarray of shape (n_thresholds,)
        Error at each threshold, with expected noise removed.
    biases : ndarray of shape (n_thresholds,)
        Mean predicted P(Y <= t) less the frequency of y <= t.
    p_values : ndarray of shape (n_thresholds,)
        Adjusted for looking at all thresholds at once: if the model is calibrated, the smallest is
        below 0.05 with a probability of about 0.05.

    Examples
    --------
    >>> import numpy as np
    >>> from regcal import Normal
    >>> from regcal.metrics import threshold_calibration_test
    >>> y = np.random.default_rng(0).normal(size=200)
    >>> dist = Normal(np.full(200, 1.0), np.ones(200))
    >>> test = threshold_calibration_test(y, dist, thresholds=[0.0], random_state=0)
    >>> test.p_value < 0.05, test.biases.round(1)
    (True, array([-0.3]))
    """

    thresholds: Array
    errors: Array
    biases: Array
    p_values: Array


def threshold_calibration_test(
    y: Any,
    dist: Any,
    thresholds: Any = DEFAULT_THRESHOLDS,
    bins: int = 8,
    sample_weight: Any = None,
    *,
    n_simulations: int = 199,
    random_state: Any = None,
) -> ThresholdCalibrationTest:
    """Test whether, and at which thresholds, errors go beyond what chance explains.

    With censored outcomes p-values are approximate, and too small where all outcomes are
    intervals: Turnbull's estimate is then noisier than its formula says.

    Parameters
    ----------
    y, dist, thresholds, bins, sample_weight
        As in `threshold_calibration_error`.
    n_simulations : int, default=199
        Number of simulated calibrated data sets.
    random_state : int, RandomState, Generator or None, default=None

    Returns
    -------
    ThresholdCalibrationTest

    Examples
    --------
    >>> import numpy as np
    >>> from regcal import Normal
    >>> from regcal.metrics import threshold_calibration_test
    >>> rng = np.random.default_rng(0)
    >>> mean = rng.normal(size=500)
    >>> y = mean + rng.normal(size=500)
    >>> threshold_calibration_test(y, Normal(mean, np.ones(500)), random_state=0).p_value > 0.05
    True
    >>> threshold_calibration_test(y, Normal(mean + 1, np.ones(500)), random_state=0).p_value
    0.005
    """
    forecasts = forecasts_at(y, dist, thresholds, sample_weight, check_count(bins, "bins"))
    table = ProbabilityBins(forecasts, bins)
    squared, noise = table.squared_gaps(forecasts.happened), table.expected_noise()
    by_threshold = errors_by_threshold(forecasts, table)
    simulated = _simulated_gaps(forecasts, table, n_simulations, child_generator(random_state))
    overall = compared_with_chance(*map(table.over_thresholds, (squared, noise, simulated)))
    return ThresholdCalibrationTest(
        **vars(overall),
        **vars(by_threshold),
        p_values=_adjusted_p_values(squared, simulated),
    )


def _simulated_gaps(
    forecasts: Forecasts, table: ProbabilityBins, n_simulations: int, rng: np.random.Generator
) -> Array:
    """Return mean squared gaps, simulations × thresholds, of outcomes drawn as predicted."""
    n_rows = len(forecasts.weights)
    return np.stack(
        [
            table.simulated_gaps(rng.uniform(size=(n_rows, 1)) <= forecasts.predicted)
            for _ in range(check_count(n_simulations, "n_simulations"))
        ]
    )


def _adjusted_p_values(squared: Array, simulated: Array) -> Array:
    """Compare each standardised gap with the largest one of each simulation (Westfall-Young)."""
    told, p_values = ~np.isnan(squared), np.full(len(squared), np.nan)
    squared, simulated = squared[told], simulated[:, told]
    centre, spread = simulated.mean(axis=0), simulated.std(axis=0)
    spread = np.where(spread > 0, spread, np.inf)
    largest = ((simulated - centre) / spread).max(axis=1)
    exceeding = (largest[:, np.newaxis] >= (squared - centre) / spread - 1e-12).sum(axis=0)
    p_values[told] = (1 + exceeding) / (1 + len(simulated))
    return p_values
