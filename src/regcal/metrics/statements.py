"""What predictions say of many rows, as statistics of PIT values that are uniform if it is true.

All are functions of the rows' PIT values, because y <= t exactly when the PIT value of y is at most
P(Y <= t). Each has a score: about a standard normal number, or its absolute value, for calibrated
predictions, so that the largest of all scores weighs them alike. A row whose PIT value is an
interval, on a point mass or censored, adds the mean over its interval, and less variance by as much
as that leaves open; simulated rows are seen through the same intervals.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.special import betainc, betaincinv, ndtr, ndtri

from regcal._validation import Array
from regcal.metrics.calibration import PitIntervals
from regcal.metrics.coarsening import SeenLevels
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
_LOW = np.concatenate([0.5 - _COVERAGES / 2, 0 * _TAILS, 1 - _TAILS, _BARS[:-1]])
_HIGH = np.concatenate([0.5 + _COVERAGES / 2, _TAILS, 1 + 0 * _TAILS, _BARS[1:]])
_OF_BARS = slice(-len(_BARS) + 1, None)
LEVELS = np.unique(np.round(np.concatenate([_LOW, _HIGH]), 9))

# Added to variances of counts: a first surprise among sure predictions is no sign yet.
_ONE_EVENT = 1.0

# Predicted means that differ by less than this share of the outcomes' range are the same.
_SAME = 1e-9

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
    """Shares of PIT values between two levels: coverage, tails, and bars of the histogram.

    Parameters
    ----------
    rows : JudgedRows
    seen : SeenLevels
        Of `LEVELS`.
    """

    def __init__(self, rows: JudgedRows, seen: SeenLevels) -> None:
        self.kinds = ["coverage"] * 19 + ["below"] * 4 + ["above"] * 4 + ["bar"] * 10 + ["shape"]
        self.places = np.concatenate([_COVERAGES, _TAILS, _TAILS, _BARS[:-1], [0.0]])
        self.expected = _HIGH - _LOW
        self.rows, self.seen = rows, seen
        between = zip(_LOW, _HIGH, strict=True)
        weights, total = rows.weights, rows.total
        self.observed = np.array([weights @ rows.values.between(*ends) for ends in between]) / total
        self.first, self.last = (np.searchsorted(LEVELS, ends - 1e-9) for ends in (_LOW, _HIGH))
        known = self._known_variances() / (total * self.expected * (1.0 - self.expected))
        self.known = np.clip(known, _LEAST_KNOWN, 1.0)
        self.axes, self.lengths = self._independent_bars()

    def _known_variances(self) -> Array:
        """Return the variances of counts of calibrated rows, as these are seen."""
        cov, squares = self.seen.covariances, self.rows.weights**2
        ends = zip(self.first, self.last, strict=True)
        return np.array([squares @ (cov(j, j) + cov(k, k) - 2.0 * cov(j, k)) for j, k in ends])

    def _independent_bars(self) -> tuple[Array, Array]:
        """Return directions in which bars vary independently, and variances along them.

        Of numbers these are nine, with equal variances; the sum of squares is then Pearson's.
        """
        levels = self.last[_OF_BARS][:-1]
        squares, cov = self.rows.weights**2, np.zeros((len(_BARS), len(_BARS)))
        for a, j in enumerate(levels, start=1):
            for b, k in enumerate(levels[:a], start=1):
                cov[a, b] = cov[b, a] = squares @ self.seen.covariances(j, k)
        bars = np.diff(np.diff(cov, axis=0), axis=1)
        lengths, axes = np.linalg.eigh(bars)
        kept = lengths > _LEAST_KNOWN * self.rows.total * _BARS[1]
        return axes[:, kept], lengths[kept]

    def scores(self) -> Array:
        """Return normal scores of binomial shares."""
        return self._scores_of(self.observed)

    def _scores_of(self, shares: Array) -> Array:
        # What is left open is shared out as predicted, and hides so much of a difference.
        full = self.expected + (shares - self.expected) / self.known
        single = np.abs(share_scores(full, self.rows.total * self.known, self.expected))
        shape = _chi_squared_scores(self._squares(shares), self._freedom)
        return np.concatenate([single, shape[..., np.newaxis]], axis=-1)

    @property
    def _freedom(self) -> float:
        return max(float(len(self.lengths)), 1.0)

    def _squares(self, shares: Array) -> Array:
        gaps = self.rows.total * (shares - self.expected)[..., _OF_BARS]
        return ((gaps @ self.axes) ** 2 / self.lengths).sum(axis=-1)

    def simulated(self, uniforms: Array) -> Array:
        """Return the same of simulated rows."""
        upto = self._counts(uniforms)
        return self._scores_of((upto[:, self.last] - upto[:, self.first]) / self.rows.total)

    def _counts(self, uniforms: Array) -> Array:
        """Return weights of values up to each level: one histogram, but of what is spread."""
        spread = np.flatnonzero(self.seen.spread.any(axis=1))
        plain, cells = np.setdiff1d(np.arange(len(self.seen.spread)), spread), round(1 / _STEP)
        starts = cells * np.arange(len(uniforms))[:, np.newaxis]
        cell_of = (uniforms[:, plain] * cells).astype(np.intp) + starts
        weights = np.broadcast_to(self.rows.weights[plain], cell_of.shape)
        counts = np.bincount(cell_of.ravel(), weights.ravel(), cells * len(uniforms))
        upto = np.zeros((len(uniforms), cells + 1))
        np.cumsum(counts.reshape(-1, cells), axis=1, out=upto[:, 1:])
        upto = upto[:, np.rint(LEVELS * cells).astype(np.intp)]
        if len(spread):
            some, values = self.seen.of_rows(spread), uniforms[:, spread]
            weights = self.rows.weights[spread, np.newaxis]
            upto += np.hstack([some.counts(values, k, weights) for k in range(len(LEVELS))])
        return upto

    def bands(self, limit: float) -> Bands:
        """Return where shares of calibrated predictions stay, and Pearson's statistic."""
        n_rows = self.rows.total * self.known
        gaps = [
            self.known * (end - self.expected)
            for end in _share_limits(n_rows, self.expected, limit)
        ]
        return Bands(
            np.append(self.observed, self._squares(self.observed)),
            np.append(self.expected, self._freedom),
            np.append(self.expected + gaps[0], 0.0),
            np.append(self.expected + gaps[1], _chi_squared_limit(limit, self._freedom)),
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

    The integral of 1[y <= t] - P(Y <= t) over t is the predicted mean less y, so that means are
    judged with the thresholds, on average and along the predicted ones; within the range of the
    outcomes, and without an integral per row.

    Parameters
    ----------
    rows : JudgedRows
    thresholds : ndarray of shape (n_thresholds,)
        Increasing, all of the mean; some are judged.
    judged : ndarray of int
        Which ones.
    seen : SeenLevels
        Of P(Y <= t), rows × thresholds.
    """

    def __init__(
        self, rows: JudgedRows, thresholds: Array, judged: np.ndarray, seen: SeenLevels
    ) -> None:
        self.rows, self.thresholds, self.judged = rows, thresholds, judged
        self.seen, self.predicted = seen, seen.levels
        kinds = ("threshold", "reliability")
        self.kinds = [kind for kind in kinds for _ in judged] + ["mean", "slope"]
        self.places = np.concatenate([thresholds[judged], thresholds[judged], [np.nan, np.nan]])
        self.widths = np.gradient(thresholds) if len(thresholds) > 1 else np.zeros(1)
        self.widths[[0, -1]] /= 2.0
        self.columns = [self._columns(k) for k in range(len(thresholds))]
        self.sums = np.stack(
            [q @ columns for q, columns in zip(self.predicted.T, self.columns, strict=True)]
        )
        self.gaps = self._observed() - self.sums
        self.complete = self._variances(self.predicted * (1.0 - self.predicted))
        each = (seen.covariances(k, k) for k in range(len(thresholds)))
        self.known = self._variances(np.stack(list(each), axis=1))
        self.mean_variances = self._mean_variances()

    def _columns(self, k: int) -> Array:
        """Return rows × columns: a row's weight in its bin of P(Y <= t), and along the means."""
        columns = np.zeros((len(self.predicted), _BINS + 1))
        places = probability_bin(self.predicted[:, k], _BINS)
        columns[np.arange(len(columns)), places] = self.rows.weights
        columns[:, _BINS] = self.rows.weights * self._directions()
        return columns

    def _directions(self) -> Array:
        """Return how far each row's predicted mean is above the average one."""
        means = -self.predicted @ self.widths
        above = means - np.average(means, weights=self.rows.weights)
        return np.where(np.ptp(means) > _SAME * self.widths.sum(), above, 0.0)

    def _observed(self) -> Array:
        """Return sums of the expected labels, P(Y <= t) given what was seen."""
        outcomes, sums = self.rows.outcomes, []
        for k, (t, columns) in enumerate(zip(self.thresholds, self.columns, strict=True)):
            happened = outcomes.upper <= t
            known = outcomes.exact_rows | happened | (outcomes.lower > t)
            labels = expected_labels(self.predicted[:, k], happened, known, self.rows.values)
            sums.append(labels @ columns)
        return np.stack(sums)

    def _variances(self, of_rows: Array) -> Array:
        """Return the variance of the number of y <= t, thresholds × bins, from that of rows."""
        pairs = zip(of_rows.T, self.columns, strict=True)
        return np.stack([one @ columns[:, :_BINS] ** 2 for one, columns in pairs])

    def _mean_variances(self) -> Array:
        """Return variances of the weighted sums of labels times widths: plain, and along means."""
        weights = np.stack([self.rows.weights, self.columns[0][:, _BINS]])
        return weights**2 @ self.seen.sum_variances(self.widths)

    def scores(self) -> Array:
        """Return how much speaks against probabilities at each threshold, and against means."""
        return self._scores_of(self.gaps[np.newaxis])[0]

    def _scores_of(self, gaps: Array) -> Array:
        """Return scores of gaps, simulations × thresholds × columns."""
        in_bins, judged = gaps[:, self.judged, :_BINS], self.known[self.judged]
        single = np.abs(in_bins.sum(axis=2)) / np.sqrt(judged.sum(axis=1) + _ONE_EVENT)
        squares = (in_bins**2 / (judged + _ONE_EVENT)).sum(axis=2)
        chi_squared = _chi_squared_scores(squares, _freedom(judged))
        errors = np.abs(self._mean_errors(gaps))
        noise = np.sqrt(self.mean_variances)
        means = np.divide(errors, noise, out=np.zeros_like(errors), where=noise > 0)
        return np.concatenate([single, chi_squared, means], axis=1)

    def _mean_errors(self, gaps: Array) -> Array:
        """Return predicted means less outcomes, summed over rows: plain, and along means."""
        totals = np.stack([gaps[..., :_BINS].sum(axis=-1), gaps[..., _BINS]], axis=-2)
        return totals @ self.widths

    def simulated(self, uniforms: Array) -> Array:
        """Return the same of simulated rows."""
        sums = [self.seen.counts(uniforms, k, columns) for k, columns in enumerate(self.columns)]
        return self._scores_of(np.stack(sums, axis=1) - self.sums)

    def bands(self, limit: float) -> Bands:
        """Return frequencies and P(Y <= t), sums of squares in bins, and the errors of means."""
        total, variances, wanted = self.rows.total, self.known[self.judged], np.array([0.0, 1.0])
        gaps, expected = self.gaps[self.judged, :_BINS], self.sums[self.judged, :_BINS]
        expected = expected.sum(axis=1) / total
        half = limit * np.sqrt(variances.sum(axis=1) + _ONE_EVENT) / total
        squares, freedom = (gaps**2 / (variances + _ONE_EVENT)).sum(axis=1), _freedom(variances)
        # of a row, and of a unit of predicted means; y larger than predicted: y <= t less often
        units = np.array([total, self.columns[0][:, _BINS] @ self._directions() or 1.0])
        means = wanted - self._mean_errors(self.gaps) / units
        means_half = limit * np.sqrt(self.mean_variances) / units
        return Bands(
            np.concatenate([expected + gaps.sum(axis=1) / total, squares, means]),
            np.concatenate([expected, freedom, wanted]),
            np.concatenate([np.maximum(expected - half, 0.0), 0.0 * freedom, wanted - means_half]),
            np.concatenate(
                [
                    np.minimum(expected + half, 1.0),
                    _chi_squared_limit(limit, freedom),
                    wanted + means_half,
                ]
            ),
        )

    def noticed(self, limit: float, power: float) -> float:
        """Return by how much P(Y <= t) had to be off, where it varies most, to be noticed so often.

        What is left open is shared out as predicted, and hides so much of a difference.
        """
        complete, known = (one[self.judged].sum(axis=1) for one in (self.complete, self.known))
        k = int(complete.argmax())
        noise = limit * np.sqrt(known[k] + _ONE_EVENT) + ndtri(power) * np.sqrt(known[k])
        if known[k] <= _LEAST_KNOWN * complete[k]:
            return float("nan")
        return float(noise * complete[k] / known[k] / self.rows.total)


class Masses:
    """P(Y = t) against the frequency of y = t, at the values that outcomes on masses share.

    Parameters
    ----------
    rows : JudgedRows
    places : ndarray of shape (n_places,)
    masses : ndarray of shape (n_rows, n_places)
        P(Y = t).
    seen : SeenLevels
        Of the middle of the masses, P(Y < t) + P(Y = t) / 2.
    """

    def __init__(self, rows: JudgedRows, places: Array, masses: Array, seen: SeenLevels) -> None:
        self.rows, self.places, self.masses = rows, places, masses
        self.kinds = ["mass"] * len(places)
        # A value in the interval that holds the mass, or is the mass, counts as its share of it.
        self.low = np.where(seen.spread, seen.low, seen.levels - 0.5 * masses)
        self.high = np.where(seen.spread, seen.high, seen.levels + 0.5 * masses)
        with np.errstate(invalid="ignore", divide="ignore"):
            share = np.minimum(masses / (seen.high - seen.low), 1.0)
        self.share = np.where(seen.spread, share, 1.0)
        self.known = rows.weights**2 @ (self.share * masses - masses**2)
        self.gaps = rows.weights @ (self._expected_labels() - masses)

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
        return self._scores_of(self.gaps)

    def _scores_of(self, gaps: Array) -> Array:
        return np.abs(gaps) / np.sqrt(self.known + _ONE_EVENT)

    def simulated(self, uniforms: Array) -> Array:
        """Return the same of simulated rows."""
        counts = np.empty((len(uniforms), len(self.places)))
        for k, (low, high, share) in enumerate(
            zip(self.low.T, self.high.T, self.share.T, strict=True)
        ):
            hit = (uniforms <= high) & (uniforms > low)
            counts[:, k] = hit.astype(np.float64) @ (self.rows.weights * share)
        return self._scores_of(counts - self.rows.weights @ self.masses)

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
