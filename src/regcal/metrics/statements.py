"""What predictions say of many rows, as statistics of PIT values that are uniform if it is true.

All are functions of the rows' PIT values, because y <= t exactly when the PIT value of y is at most
P(Y <= t). Each has a score: about a standard normal number, or its absolute value, for calibrated
predictions, so that the largest of all scores weighs them alike. A row whose PIT value is an
interval, on a point mass or censored, adds the mean over its interval, and less variance by as much
as that leaves open.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.special import betainc, betaincinv, ndtr, ndtri

from regcal._validation import Array
from regcal.metrics.calibration import PitIntervals
from regcal.metrics.thresholds import expected_labels, probability_bin
from regcal.outcomes import Outcomes

# Scores end here: probabilities of 1e-300 have no use, and 0 has no normal score.
_LARGEST_SCORE = 37.0

# So much of a row counts as known at least: of what next to nothing is known, little is said.
_LEAST_KNOWN = 0.02

# Ends of bands are known to a share of 1e-9.
_HALVINGS = 30

# Levels of shares are multiples of this, so that one histogram of simulated values serves all.
_STEP = 0.005
_COVERAGES = np.arange(1, 20) / 20
_TAILS = np.array([0.01, 0.025, 0.05, 0.1])
_BARS = np.arange(11) / 10

# Added to variances of counts: a first surprise among sure predictions is no sign yet.
_ONE_EVENT = 1.0

# Bins of P(Y <= t), as in `threshold_calibration_error`.
_BINS = 8


@dataclass(frozen=True)
class JudgedRows:
    """Rows to judge; the sum of their weights is that of the squares.

    Shares are then as noisy as those of as many equal rows as the weights add up to.
    """

    outcomes: Outcomes
    values: PitIntervals
    weights: Array

    @property
    def total(self) -> float:
        """Of how many equal rows shares are as noisy as."""
        return float(self.weights.sum())


@dataclass(frozen=True)
class Bands:
    """What was observed and expected, and where scores of calibrated predictions are small."""

    observed: Array
    expected: Array
    lower: Array
    upper: Array


class Statements(Protocol):
    """Statements of one sort."""

    kinds: list[str]
    places: Array

    def scores(self) -> Array:
        """Return how much speaks against each statement."""

    def simulated(self, uniforms: Array) -> Array:
        """Return the same, simulations × statements, of calibrated rows with these PIT values."""

    def bands(self, limit: float) -> Bands:
        """Return what was seen, and where scores stay within a limit."""


class Shares:
    """Shares of PIT values between two levels: coverage, tails, and bars of the histogram."""

    def __init__(self, rows: JudgedRows) -> None:
        self.kinds = ["coverage"] * 19 + ["below"] * 4 + ["above"] * 4 + ["bar"] * 10 + ["shape"]
        self.places = np.concatenate([_COVERAGES, _TAILS, _TAILS, _BARS[:-1], [0.0]])
        self.low = np.concatenate([0.5 - _COVERAGES / 2, 0 * _TAILS, 1 - _TAILS, _BARS[:-1]])
        self.high = np.concatenate([0.5 + _COVERAGES / 2, _TAILS, 1 + 0 * _TAILS, _BARS[1:]])
        self.expected = self.high - self.low
        self.rows = rows
        self.observed, self.known = self._seen()

    def _seen(self) -> tuple[Array, Array]:
        """Return observed shares, and which part of their variance under calibration is known."""
        shares, known = np.empty((2, len(self.low)))
        weights, total = self.rows.weights, self.rows.total
        for k, (low, high) in enumerate(zip(self.low, self.high, strict=True)):
            inside = self.rows.values.between(low, high)
            shares[k] = weights @ inside / total
            complete = total * self.expected[k] * (1 - self.expected[k])
            known[k] = 1.0 - float(weights**2 @ (inside * (1 - inside))) / complete
        return shares, np.clip(known, _LEAST_KNOWN, 1.0)

    def scores(self) -> Array:
        """Return normal scores of binomial shares."""
        # What is left open is shared out as predicted, and hides so much of a difference.
        full = self.expected + (self.observed - self.expected) / self.known
        return self._scores_of(full, self.rows.total * self.known)

    def _scores_of(self, shares: Array, n_rows: Array) -> Array:
        single = np.abs(share_scores(shares, n_rows, self.expected))
        bars = slice(-len(_BARS) + 1, None)
        squares = (n_rows * (shares - self.expected) ** 2 / self.expected)[..., bars]
        shape = _chi_squared_scores(squares.sum(axis=-1, keepdims=True), 9.0)
        return np.concatenate([single, shape], axis=-1)

    def simulated(self, uniforms: Array) -> Array:
        """Return the same of simulated rows."""
        cells = round(1 / _STEP)
        starts = cells * np.arange(len(uniforms))[:, np.newaxis]
        cell_of = (uniforms * cells).astype(np.intp) + starts
        weights = np.broadcast_to(self.rows.weights, uniforms.shape)
        counts = np.bincount(cell_of.ravel(), weights.ravel(), cells * len(uniforms))
        upto = np.zeros((len(uniforms), cells + 1))
        np.cumsum(counts.reshape(-1, cells), axis=1, out=upto[:, 1:])
        first, last = (np.rint(ends * cells).astype(np.intp) for ends in (self.low, self.high))
        shares = (upto[:, last] - upto[:, first]) / self.rows.total
        return self._scores_of(shares, np.full(len(self.low), self.rows.total))

    def bands(self, limit: float) -> Bands:
        """Return where shares of calibrated predictions stay, and Pearson's statistic."""
        n_rows = self.rows.total * self.known
        gaps = [
            self.known * (end - self.expected)
            for end in _share_limits(n_rows, self.expected, limit)
        ]
        squares = (
            self.rows.total * (self.observed - self.expected) ** 2 / self.expected / self.known
        )
        pearson = squares[-len(_BARS) + 1 :].sum()
        return Bands(
            np.append(self.observed, pearson),
            np.append(self.expected, 9.0),
            np.append(self.expected + gaps[0], 0.0),
            np.append(self.expected + gaps[1], _chi_squared_limit(limit, 9.0)),
        )

    def noticed(self, coverage: float, limit: float, power: float) -> tuple[float, float]:
        """Return coverages that these rows would have told from the nominal one."""
        k = int(np.flatnonzero(np.isclose(_COVERAGES, coverage))[0])
        n_rows = self.rows.total * self.known[k : k + 1]
        lower, upper = _share_limits(n_rows, self.expected[k : k + 1], limit)
        return _noticed_shares(float(n_rows[0]), float(lower[0]), float(upper[0]), power)


def share_scores(shares: Array, n_rows: Array, expected: Array) -> Array:
    """Return normal scores of shares of so many rows, from the middle of binomial steps.

    Examples
    --------
    Three of ten rows where one half was expected; P(X <= 2) + P(X = 3) / 2 is 0.113:

    >>> import numpy as np
    >>> from regcal.metrics.statements import share_scores
    >>> share_scores(np.array([0.3]), np.array([10.0]), np.array([0.5])).round(2)
    array([-1.21])
    """
    count = np.clip(shares, 0.0, 1.0) * n_rows
    above, below = (
        0.5 * (_at_least(events, n_rows, p) + _at_least(events + 1.0, n_rows, p))
        for events, p in ((count, expected), (n_rows - count, 1.0 - expected))
    )
    with np.errstate(divide="ignore"):
        scores = np.where(below < above, ndtri(below), -ndtri(above))
    return np.clip(scores, -_LARGEST_SCORE, _LARGEST_SCORE)


def _at_least(count: Array, n_rows: Array, probability: Array) -> Array:
    """Return the probability of so many events or more, also between whole numbers."""
    inside = np.clip(count, 1e-9, n_rows + 1.0 - 1e-9)
    tail = betainc(inside, n_rows + 1.0 - inside, probability)
    return np.where(count <= 1e-9, 1.0, np.where(count >= n_rows + 1.0 - 1e-9, 0.0, tail))


def _share_limits(n_rows: Array, expected: Array, limit: float) -> tuple[Array, Array]:
    """Return the smallest and the largest share whose score is within a limit, by bisection."""
    ends = []
    for sign, far in ((-1.0, 0.0), (1.0, 1.0)):
        inside, outside = expected.copy(), np.full(len(expected), far)
        for _ in range(_HALVINGS):
            middle = 0.5 * (inside + outside)
            within = sign * share_scores(middle, n_rows, expected) <= limit
            inside, outside = np.where(within, middle, inside), np.where(within, outside, middle)
        ends.append(np.where(sign * share_scores(outside, n_rows, expected) <= limit, far, inside))
    return ends[0], ends[1]


def _noticed_shares(n_rows: float, lower: float, upper: float, power: float) -> tuple[float, float]:
    """Return the true shares, too small and too large, that leave the limits so often.

    They are nan where no share does: limits of 0 and 1 cannot be left.
    """
    few, many = np.ceil(lower * n_rows - 1e-6) - 1.0, np.floor(upper * n_rows + 1e-6) + 1.0
    low = 1.0 - betaincinv(n_rows - few, few + 1.0, power) if few >= 0 else np.nan
    high = betaincinv(many, n_rows - many + 1.0, power) if many <= n_rows else np.nan
    return float(low), float(high)


def _chi_squared_scores(squares: Array, freedom: Array | float) -> Array:
    """Return Wilson and Hilferty's normal scores of sums of squares."""
    spread = 2.0 / (9.0 * freedom)
    return (np.cbrt(squares / freedom) - (1.0 - spread)) / np.sqrt(spread)


def _chi_squared_limit(limit: float, freedom: Array | float) -> Array:
    spread = 2.0 / (9.0 * freedom)
    return freedom * np.maximum(1.0 - spread + limit * np.sqrt(spread), 0.0) ** 3


class Extremes:
    """The smallest and the largest PIT value: outcomes that predictions called impossible."""

    def __init__(self, rows: JudgedRows) -> None:
        self.kinds, self.places = ["lowest", "highest"], np.array([0.0, 1.0])
        self.n_rows = len(rows.weights)
        # Of an interval counts what is nearest to the middle.
        self.observed = np.array([rows.values.upto.min(), 1.0 - rows.values.below.max()])

    def _scores_of(self, distances: Array) -> Array:
        """Return scores of distances from the end: P(smallest of n <= d) = 1 - (1 - d)^n."""
        with np.errstate(divide="ignore"):
            tails = -np.expm1(self.n_rows * np.log1p(-np.clip(distances, 0.0, 1.0)))
            return np.clip(-ndtri(tails), -_LARGEST_SCORE, _LARGEST_SCORE)

    def scores(self) -> Array:
        """Return how unlikely ends are that are this near."""
        return self._scores_of(self.observed)

    def simulated(self, uniforms: Array) -> Array:
        """Return the same of simulated rows."""
        ends = [uniforms.min(axis=1), 1.0 - uniforms.max(axis=1)]
        return self._scores_of(np.stack(ends, axis=1))

    def bands(self, limit: float) -> Bands:
        """Return how far from the end the outermost of calibrated values lie."""
        nearest = -np.expm1(np.log1p(-ndtr(-limit)) / self.n_rows)
        middle = 1.0 / (self.n_rows + 1.0)
        return Bands(self.observed, np.full(2, middle), np.full(2, nearest), np.ones(2))


class Thresholds:
    """P(Y <= t) against the frequency of y <= t: on average, in bins of P, and over all t.

    The integral of 1[y <= t] - P(Y <= t) over t is the predicted mean less y, so that the mean is
    judged with the thresholds; within the range of the outcomes, and without an integral per row.

    Parameters
    ----------
    rows : JudgedRows
    thresholds : ndarray of shape (n_thresholds,)
        Increasing, all of the mean; some are judged.
    judged : ndarray of int
        Which ones.
    predicted : ndarray of shape (n_rows, n_thresholds)
        P(Y <= t).
    """

    def __init__(
        self, rows: JudgedRows, thresholds: Array, judged: np.ndarray, predicted: Array
    ) -> None:
        self.rows, self.judged, self.predicted = rows, judged, predicted
        self.kinds = ["threshold"] * len(judged) + ["reliability"] * len(judged) + ["mean"]
        self.places = np.concatenate([thresholds[judged], thresholds[judged], [np.nan]])
        self.widths = np.gradient(thresholds) if len(thresholds) > 1 else np.zeros(1)
        self.widths[[0, -1]] /= 2.0
        self.labels = self._expected_labels(thresholds)
        self.bin_weights = [self._bin_weights(k) for k in range(len(thresholds))]
        self.sums = np.stack([q @ w for q, w in zip(predicted.T, self.bin_weights, strict=True)])
        self.complete, self.open = self._variances(predicted), self._variances(self.labels)
        self.open = np.minimum(self.open, self.complete)
        self.mean_variance = self._mean_variance(predicted) - self._mean_variance(self.labels)

    def _expected_labels(self, thresholds: Array) -> Array:
        """Return P(Y <= t) given what was seen, if predictions are right."""
        outcomes, labels = self.rows.outcomes, np.empty(self.predicted.shape)
        for k, t in enumerate(thresholds):
            happened = outcomes.upper <= t
            known = outcomes.exact_rows | happened | (outcomes.lower > t)
            labels[:, k] = expected_labels(self.predicted[:, k], happened, known, self.rows.values)
        return labels

    def _bin_weights(self, k: int) -> Array:
        """Return rows × bins: a row's weight in its bin of P(Y <= t)."""
        bins = np.zeros((len(self.predicted), _BINS))
        places = probability_bin(self.predicted[:, k], _BINS)
        bins[np.arange(len(bins)), places] = self.rows.weights
        return bins

    def _variances(self, probabilities: Array) -> Array:
        """Return the variance of the number of y <= t, thresholds × bins."""
        columns = zip(probabilities.T, self.bin_weights, strict=True)
        return np.stack([(p * (1 - p)) @ weights**2 for p, weights in columns])

    def _mean_variance(self, probabilities: Array) -> float:
        """Return the variance of the weighted sum of labels times widths.

        Labels of a row are nested: cov(1[U <= p], 1[U <= q]) = min(p, q) - p q.
        """
        beyond = np.cumsum(self.widths[::-1])[::-1] - self.widths
        second = probabilities @ (self.widths * (self.widths + 2.0 * beyond))
        first = probabilities @ self.widths
        return float(self.rows.weights**2 @ (second - first**2))

    def scores(self) -> Array:
        """Return how much speaks against probabilities at each threshold, and against the mean."""
        gaps = self._gaps()[np.newaxis]
        return self._scores_of(gaps, self.complete - self.open, self.mean_variance)[0]

    def _gaps(self) -> Array:
        """Return observed less predicted numbers of y <= t, thresholds × bins."""
        seen = [labels @ w for labels, w in zip(self.labels.T, self.bin_weights, strict=True)]
        return np.stack(seen) - self.sums

    def _scores_of(self, gaps: Array, variances: Array, mean_variance: float) -> Array:
        """Return scores of gaps, simulations × thresholds × bins."""
        total, variance = gaps.sum(axis=2), variances.sum(axis=1)
        single = np.abs(total) / np.sqrt(variance + _ONE_EVENT)
        squares = (gaps**2 / (variances + _ONE_EVENT)).sum(axis=2)
        in_bins = _chi_squared_scores(squares, _freedom(variances))
        mean = np.abs(total @ self.widths) / np.sqrt(mean_variance) if mean_variance > 0 else 0.0
        mean = np.broadcast_to(mean, len(gaps))[:, np.newaxis]
        return np.concatenate([single[:, self.judged], in_bins[:, self.judged], mean], axis=1)

    def simulated(self, uniforms: Array) -> Array:
        """Return the same of simulated rows."""
        gaps = np.empty((len(uniforms), *self.sums.shape))
        for k, weights in enumerate(self.bin_weights):
            gaps[:, k] = (uniforms <= self.predicted[:, k]).astype(np.float64) @ weights
        mean_variance = self._mean_variance(self.predicted)
        return self._scores_of(gaps - self.sums, self.complete, mean_variance)

    def bands(self, limit: float) -> Bands:
        """Return frequencies and P(Y <= t), sums of squares in bins, and the error of the mean."""
        total, variances = self.rows.total, (self.complete - self.open)[self.judged]
        gaps, expected = self._gaps()[self.judged], self.sums[self.judged].sum(axis=1) / total
        half = limit * np.sqrt(variances.sum(axis=1) + _ONE_EVENT) / total
        squares, freedom = (gaps**2 / (variances + _ONE_EVENT)).sum(axis=1), _freedom(variances)
        # y larger than predicted: y <= t less often
        mean = -self._gaps().sum(axis=1) @ self.widths / total
        mean_half = limit * np.sqrt(max(self.mean_variance, 0.0)) / total
        return Bands(
            np.concatenate([expected + gaps.sum(axis=1) / total, squares, [mean]]),
            np.concatenate([expected, freedom, [0.0]]),
            np.concatenate([np.maximum(expected - half, 0.0), 0.0 * freedom, [-mean_half]]),
            np.concatenate(
                [np.minimum(expected + half, 1.0), _chi_squared_limit(limit, freedom), [mean_half]]
            ),
        )

    def noticed(self, limit: float, power: float) -> float:
        """Return by how much P(Y <= t) had to be off, where it varies most, to be noticed so often.

        What is left open is shared out as predicted, and hides so much of a difference.
        """
        complete = self.complete[self.judged].sum(axis=1)
        k = int(complete.argmax())
        known = complete[k] - self.open[self.judged][k].sum()
        noise = limit * np.sqrt(known + _ONE_EVENT) + ndtri(power) * np.sqrt(known)
        if known <= _LEAST_KNOWN * complete[k]:
            return float("nan")
        return float(noise * complete[k] / known / self.rows.total)


class Masses:
    """P(Y = t) against the frequency of y = t, at the values that outcomes on masses share.

    Parameters
    ----------
    rows : JudgedRows
    places : ndarray of shape (n_places,)
    upto, masses : ndarray of shape (n_rows, n_places)
        P(Y <= t) and P(Y = t).
    """

    def __init__(self, rows: JudgedRows, places: Array, upto: Array, masses: Array) -> None:
        self.rows, self.places, self.upto, self.masses = rows, places, upto, masses
        self.kinds = ["mass"] * len(places)
        self.complete = rows.weights**2 @ (masses * (1 - masses))
        labels = self._expected_labels()
        still_open = rows.weights**2 @ (labels * (1 - labels))
        self.known = self.complete - np.minimum(still_open, self.complete)
        self.gaps = rows.weights @ (labels - masses)

    def _expected_labels(self) -> Array:
        """Return P(Y = t) given what was seen, if predictions are right."""
        outcomes, values = self.rows.outcomes, self.rows.values
        lower, upper = outcomes.lower[:, np.newaxis], outcomes.upper[:, np.newaxis]
        holds = (lower <= self.places) & (self.places <= upper)
        inside = (values.upto - values.below)[:, np.newaxis]
        with np.errstate(invalid="ignore", divide="ignore"):
            share = np.where(inside > 0, np.minimum(self.masses / inside, 1.0), 0.0)
        share = np.where(outcomes.exact_rows[:, np.newaxis], 1.0, share)
        return np.where(holds, share, 0.0)

    def scores(self) -> Array:
        """Return how much speaks against each mass."""
        return np.abs(self.gaps) / np.sqrt(self.known + _ONE_EVENT)

    def simulated(self, uniforms: Array) -> Array:
        """Return the same of simulated rows."""
        counts = np.empty((len(uniforms), len(self.places)))
        for k, (upto, mass) in enumerate(zip(self.upto.T, self.masses.T, strict=True)):
            hit = (uniforms <= upto) & (uniforms > upto - mass)
            counts[:, k] = hit.astype(np.float64) @ self.rows.weights
        gaps = counts - self.rows.weights @ self.masses
        return np.abs(gaps) / np.sqrt(self.complete + _ONE_EVENT)

    def bands(self, limit: float) -> Bands:
        """Return frequencies and P(Y = t)."""
        total = self.rows.total
        expected = self.rows.weights @ self.masses / total
        half = limit * np.sqrt(self.known + _ONE_EVENT) / total
        lower, upper = np.maximum(expected - half, 0.0), np.minimum(expected + half, 1.0)
        return Bands(expected + self.gaps / total, expected, lower, upper)


def _freedom(variances: Array) -> Array:
    """Return how many squares a sum over bins is worth."""
    return np.maximum((variances / (variances + _ONE_EVENT)).sum(axis=1), 1.0)
