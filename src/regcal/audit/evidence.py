"""How far predicted and observed frequencies of y <= t are apart in each segment, beside chance.

For a segment g and a threshold t, with F the predicted P(Y <= t) of a row and w its weight,

    S_gt = sum_g w (1[y <= t] - F(t)) / sqrt(sum_g w^2 F(t) (1 - F(t))).

Sums over few rows, or of rare events, are skewed, so that each is turned into a normal score by
the gamma distribution of the same three moments. The largest of all scores is compared with the
largest of many draws that have the correlations of the sums: residuals times normal multipliers.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix
from scipy.special import gammainc, gammaincc, ndtr, ndtri

from regcal._random import child_generator
from regcal._validation import Array
from regcal.audit.segments import Segments

# Rows share multipliers in so many bins, with signs of their own, so that a draw costs no more for
# a million rows: correlations are then known to 1 / sqrt(bins).
_N_BINS = 2000

# Numbers in the table bins × segments × thresholds: 160 MB. With more cells there are fewer bins.
_MOST_NUMBERS = 20_000_000

# Numbers in the table of draws that are held at a time.
_DRAWN_NUMBERS = 4_000_000

# Rows whose sums are added up at a time.
_ROWS_AT_ONCE = 50_000

# Below this skewness a gamma distribution is a normal one, to the digits that it is computed with.
_NO_SKEWNESS = 1e-5

# Halvings of a range of sums until its ends are equal, as floats are.
_BISECTIONS = 60

# Scores end here: probabilities of 1e-300 have no use, and 0 has no normal score.
_LARGEST_SCORE = 37.0


@dataclass(frozen=True)
class Labels:
    """Predicted P(Y <= t) and whether y <= t, rows × thresholds.

    Where that is not known, `happened` is its probability given what was seen, if the predictions
    are right, and `unknown` the variance that is left of it.
    """

    thresholds: Array
    predicted: Array
    happened: Array
    unknown: Array
    weights: Array


@dataclass(frozen=True)
class Cells:
    """What was added up over the rows of each segment, segments × thresholds.

    Attributes
    ----------
    n_rows, weight : ndarray of shape (n_segments,)
    predicted, happened : ndarray
        Sums of w F and of w 1[y <= t].
    variance : ndarray
        Of the latter if predictions are right.
    spread : ndarray
        Its standard deviation; larger where the residuals of a segment vary more than its
        predictions say: those that are too sure are not taken at their word.
    skewness : ndarray
    step : ndarray
        How far one more outcome below t moves the sum: the weight of a row.
    """

    n_rows: np.ndarray
    weight: Array
    predicted: Array
    happened: Array
    variance: Array
    spread: Array
    skewness: Array
    step: Array

    @property
    def statistics(self) -> Array:
        """The standardised sums S."""
        return _divided(self.happened - self.predicted, np.sqrt(self.variance))

    @property
    def scores(self) -> Array:
        """Normal scores that have the tail probabilities of the sums."""
        return normal_scores(
            self.happened - self.predicted, self.spread, self.skewness, self.step
        )

    def by_chance(self, score: float) -> tuple[Array, Array]:
        """Return between which sums scores are within ± score."""
        return self._reached(-score), self._reached(score)

    def _reached(self, score: float) -> Array:
        """Return the sum at which a score is reached, by bisection from no event to all."""
        low = np.zeros_like(self.predicted)
        high = np.broadcast_to(self.weight[:, np.newaxis], low.shape)
        for _ in range(_BISECTIONS):
            middle = 0.5 * (low + high)
            scores = normal_scores(middle - self.predicted, self.spread, self.skewness, self.step)
            low, high = np.where(scores > score, low, middle), np.where(scores > score, middle, high)
        return 0.5 * (low + high)


def _divided(a: Array, b: Array) -> Array:
    """Return a / b, and 0 for 0 / 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(a == 0, 0.0, a / b)


# -------------------------------------------------------------------------------------------- sums


def add_up(labels: Labels, segments: Segments) -> Cells:
    """Return the sums of all rows, segment by segment."""
    n_cells, total = (len(segments), len(labels.thresholds)), np.zeros(())
    for start in range(0, len(labels.weights), _ROWS_AT_ONCE):
        rows = slice(start, start + _ROWS_AT_ONCE)
        columns = np.concatenate(_to_add_up(labels, rows), axis=1)
        total = total + sums_by_code(segments.codes[rows], len(segments), columns)
    n_rows, weight, squared = total[:, :3].T
    tables = np.split(total[:, 3:], total[:, 3:].shape[1] // n_cells[1], axis=1)
    predicted, happened, said, free, third, gap, squared_gap = tables
    # residuals around their mean, e - d with d = sum w e / sum w
    mean = (happened - predicted) / weight[:, np.newaxis]
    seen = squared_gap - 2.0 * mean * gap + mean**2 * squared[:, np.newaxis]
    ratio = np.maximum(_divided(seen.sum(axis=1), said.sum(axis=1)), 1.0)
    return Cells(
        n_rows.astype(np.intp),
        weight,
        predicted,
        happened,
        said,
        np.sqrt(said * ratio[:, np.newaxis]),
        _divided(third, said**1.5),
        _divided(said, free),
    )


def _to_add_up(labels: Labels, rows: slice) -> list[Array]:
    """Return what is added up over rows: columns for each threshold, after those for rows."""
    w, q = labels.weights[rows, np.newaxis], labels.predicted[rows]
    residuals = labels.happened[rows] - q
    variance = np.maximum(q * (1.0 - q) - labels.unknown[rows], 0.0)
    return [
        np.ones_like(w),
        w,
        w**2,
        w * q,
        w * labels.happened[rows],
        w**2 * variance,
        w * variance,
        w**3 * variance * (1.0 - 2.0 * q),
        w**2 * residuals,
        w**2 * residuals**2,
    ]


def sums_by_code(codes: np.ndarray, n_codes: int, values: Array) -> Array:
    """Return sums of the rows of each code; a row has one code of every column."""
    n_rows, n_sources = codes.shape
    ends = np.arange(n_rows + 1) * n_sources
    table = csr_matrix((np.ones(codes.size), codes.ravel(), ends), shape=(n_rows, n_codes))
    return np.asarray(table.T @ values)


# ------------------------------------------------------------------------------------------ chance


def normal_scores(excess: Array, spread: Array, skewness: Array, step: Array) -> Array:
    """Return normal scores with the tail probabilities of sums of independent events.

    They are those of the gamma distribution with the same three moments, half a step below and
    half a step above the sum, averaged ("mid-p"), as a sum of events moves by whole steps.

    Examples
    --------
    Three events where a hundredth was expected, as good as Poisson distributed:

    >>> import numpy as np
    >>> from scipy.special import ndtr
    >>> from scipy.stats import poisson
    >>> score = normal_scores(*map(np.array, (2.99, 0.1, 10.0, 1.0)))
    >>> p = 0.5 * (poisson.sf(2, 0.01) + poisson.sf(3, 0.01))
    >>> bool(0.5 < ndtr(-score) / p < 2.0)
    True
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        places = [(excess + half * step) / spread for half in (-0.5, 0.5)]
    places = [np.where(np.isnan(place), 0.0, place) for place in places]
    above, below = (
        0.5 * sum(_gamma_tail(sign * place, sign * skewness) for place in places)
        for sign in (1.0, -1.0)
    )
    scores = np.where(above < below, -ndtri(above), ndtri(below))
    impossible = (spread == 0) & (excess != 0)
    scores = np.where(impossible, np.copysign(np.inf, excess), scores)
    return np.clip(scores, -_LARGEST_SCORE, _LARGEST_SCORE)


def _gamma_tail(x: Array, skewness: Array) -> Array:
    """Return P(X > x) for a gamma variable moved and scaled to mean 0 and variance 1.

    With a negative skewness it is mirrored.
    """
    skewed = np.abs(skewness) > _NO_SKEWNESS
    g = np.where(skewed, np.abs(skewness), 1.0)
    shape = 4.0 / g**2
    place = np.maximum(shape + 2.0 / g * np.where(skewness > 0, x, -x), 0.0)
    tail = np.where(skewness > 0, gammaincc(shape, place), gammainc(shape, place))
    return np.where(skewed, tail, ndtr(-x))


def largest_by_chance(
    labels: Labels, segments: Segments, order: np.ndarray, n_draws: int, random_state: Any
) -> Array:
    """Return the largest absolute score of each draw, increasing.

    A draw is sum_g ξ w (1[y <= t] - F(t)) with normal multipliers ξ of the rows, divided by its
    own standard deviation. Rows that share a bin share ξ but for its sign.

    Parameters
    ----------
    labels : Labels
    segments : Segments
    order : ndarray of shape (n_rows,)
        Rows in an order that does not depend on that of the data: multipliers follow it.
    n_draws : int
    random_state : int, RandomState, Generator or None
    """
    rng = child_generator(random_state)
    table = _residuals_in_bins(labels, segments, order, rng)
    norms = np.sqrt(np.einsum("ij,ij->j", table, table))
    table /= np.where(norms > 0, norms, 1.0)
    at_once = max(1, _DRAWN_NUMBERS // table.shape[1])
    largest = [
        np.abs(rng.standard_normal((min(at_once, n_draws - start), len(table))) @ table).max(axis=1)
        for start in range(0, n_draws, at_once)
    ]
    return np.sort(np.concatenate(largest))


def _residuals_in_bins(
    labels: Labels, segments: Segments, order: np.ndarray, rng: np.random.Generator
) -> Array:
    """Return sums of residuals with random signs, bins × (segments and thresholds)."""
    n_rows, n_thresholds, n_segments = len(order), len(labels.thresholds), len(segments)
    n_bins = min(_N_BINS, max(1, _MOST_NUMBERS // (n_thresholds * n_segments)))
    bins, signs = np.empty(n_rows, dtype=np.intp), np.ones(n_rows)
    if n_rows <= n_bins:
        n_bins = n_rows
        bins[order] = np.arange(n_rows)
    else:
        bins[order] = rng.permutation(n_rows) % n_bins
        signs[order] = rng.choice([-1.0, 1.0], n_rows)
    total = np.zeros(())
    for start in range(0, n_rows, _ROWS_AT_ONCE):
        rows = slice(start, start + _ROWS_AT_ONCE)
        residuals = (signs * labels.weights)[rows, np.newaxis] * (
            labels.happened[rows] - labels.predicted[rows]
        )
        codes = segments.codes[rows] + n_segments * bins[rows, np.newaxis]
        total = total + sums_by_code(codes, n_bins * n_segments, residuals)
    return total.reshape(n_bins, n_segments * n_thresholds)


def share_as_large(largest: Array, scores: Array) -> Array:
    """Return p-values: the share of draws, with the data themselves, that are as large."""
    below = np.searchsorted(largest, np.abs(scores))
    return (1.0 + len(largest) - below) / (1.0 + len(largest))
