"""How far predicted and observed frequencies of events are apart in each segment, beside chance.

For a segment g and a threshold t, with F the predicted P(Y <= t) of a row and w its weight,

    S_gt = sum_g w (1[y <= t] - F(t)) / sqrt(sum_g w^2 F(t) (1 - F(t))),

and likewise for a central interval, which holds y, or ends below or above it, with probabilities
that are equal for all rows.

Sums over few rows, or of rare events, are far from normal, so that each is turned into a normal
score by its tail probability (`regcal.audit.tails`). The largest of all scores is compared with the
largest of many draws that have the correlations of the sums: residuals times normal multipliers.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix

from regcal._random import child_generator
from regcal._validation import Array
from regcal.audit.segments import Segments
from regcal.audit.statements import Labels
from regcal.audit.tails import PARTS, EventCounts, Steps

# Rows share multipliers in so many bins, with signs of their own, so that a draw costs no more for
# a million rows: correlations are then known to 1 / sqrt(bins).
_N_BINS = 1000

# Numbers in the table bins × segments × statements: 160 MB. With more cells there are fewer bins.
_MOST_NUMBERS = 20_000_000

# Numbers in the table of draws that are held at a time.
_DRAWN_NUMBERS = 4_000_000

# Rows whose sums are added up at a time, so that they stay in the processor's cache.
_ROWS_AT_ONCE = 10_000

# Scores that differ by less are equal: small sums have the same ones again and again.
EQUAL = 1e-5

# Probabilities of 0 and 1 are taken for these, which have finite odds.
_NEVER = 1e-15

# Residuals vary more than predictions say where they do so by this many standard errors: less is
# chance, and would cost power in small segments.
_STANDARD_ERRORS = 2.0


@dataclass(frozen=True)
class Cells:
    """What was added up over the rows of each segment, segments × statements.

    Attributes
    ----------
    n_rows, weight : ndarray of shape (n_segments,)
    predicted, happened : ndarray
        Sums of w F and of w 1[y <= t], or of another event.
    variance : ndarray
        Of the latter if predictions are right.
    counts : EventCounts
        Numbers of events with the moments of the sums.
    step : ndarray
        How far one more event moves a sum: the weight of a row.
    ratio : ndarray
        How much larger the sums' variance is than that of the events. It is smaller than 1 where
        outcomes are censored, and larger at thresholds where the residuals of a segment vary more
        than its predictions say: those that are too sure are not taken at their word.
    """

    n_rows: np.ndarray
    weight: Array
    predicted: Array
    happened: Array
    variance: Array
    counts: EventCounts
    step: Array
    ratio: Array

    @property
    def excess(self) -> Array:
        """By how much the observed sums exceed the predicted ones."""
        return self.happened - self.predicted

    @property
    def statistics(self) -> Array:
        """The standardised sums S."""
        return divided(self.excess, np.sqrt(self.variance))

    @property
    def scores(self) -> Array:
        """Normal scores that have the tail probabilities of the sums."""
        return self.counts.scores(divided(self.excess, self._event), self._step)

    @property
    def steps(self) -> Steps:
        """Which scores the smaller sums can have."""
        counts = EventCounts(
            *(_flat(one) for one in (self.counts.trials, self.counts.probabilities))
        )
        return Steps.of(counts, divided(self.excess, self._event).ravel(), self._step.ravel())

    def by_chance(self, score: float, statements: np.ndarray) -> tuple[Array, Array]:
        """Return between which excesses scores are within ± score, for a statement per segment."""
        cells = (np.arange(len(self.weight)), statements)
        counts = EventCounts(
            *(one[:, *cells] for one in (self.counts.trials, self.counts.probabilities))
        )
        low, high = (
            counts.excess_at(sign * score, self._step[cells]) * self._event[cells]
            for sign in (-1.0, 1.0)
        )
        return np.maximum(low, -self.predicted[cells]), np.minimum(
            high, (self.weight[:, np.newaxis] - self.predicted)[cells]
        )

    @property
    def _event(self) -> Array:
        """What excesses are divided by: the variance is then that of events."""
        return self.step * np.sqrt(self.ratio)

    @property
    def _step(self) -> Array:
        return 1.0 / np.sqrt(self.ratio)


def _flat(values: Array) -> Array:
    return values.reshape(len(values), -1)


def divided(a: Array, b: Array) -> Array:
    """Return a / b, and 0 where a is 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(a == 0, 0.0, a / b)


# -------------------------------------------------------------------------------------------- sums


def add_up(labels: Labels, segments: Segments) -> Cells:
    """Return the sums of all rows, segment by segment."""
    n_segments, n_statements, n_parts = len(segments), len(labels.places), len(PARTS) - 1
    own = labels.at_thresholds
    total, by_part = np.zeros(()), np.zeros((n_statements, n_segments * n_parts, 2))
    for start in range(0, len(labels.weights), _ROWS_AT_ONCE):
        rows = slice(start, start + _ROWS_AT_ONCE)
        codes, w, q = segments.codes[rows], labels.weights[rows], labels.predicted[rows]
        columns = np.concatenate(_to_add_up(labels, rows), axis=1)
        total = total + sums_by_code(codes, n_segments, columns)
        for k in np.flatnonzero(own):
            parted = codes + n_segments * _part(q[:, k : k + 1])
            by_part[k] += sums_by_code(parted, n_segments * n_parts, np.c_[w, w * q[:, k]])
    n_rows, weight, squared, noise = total[:, :4].T
    events = by_part.reshape(n_statements, n_parts, n_segments, 2)
    for k in np.flatnonzero(~own):  # of intervals, all rows say the same
        share = labels.places[k]
        events[k, _part(share)] = np.column_stack([weight, weight * share])
    tables = np.split(total[:, 4:], total[:, 4:].shape[1] // n_statements, axis=1)
    predicted, happened, variance, known, free, gap, squared_gap = tables
    # what is known of censored rows is an estimate: by the residuals, where that is more
    known = np.where(known < variance, np.maximum(known, squared_gap), variance)
    # residuals around their mean, e - d with d = sum w e / sum w
    mean = (happened - predicted) / weight[:, np.newaxis]
    seen = squared_gap - 2.0 * mean * gap + mean**2 * squared[:, np.newaxis]
    # predictions of intervals are not too sure of single rows
    more = np.sum((seen - known)[:, own], axis=1) - _STANDARD_ERRORS * np.sqrt(noise)
    too_sure = 1.0 + np.maximum(divided(more, known[:, own].sum(axis=1)), 0.0)
    step = divided(variance, free)
    counts = _counts(events, step)
    ratio = divided(known, step**2 * counts.variance)
    ratio[:, own] *= too_sure[:, np.newaxis]
    return Cells(
        n_rows.astype(np.intp),
        weight,
        predicted,
        happened,
        variance=known,
        counts=counts,
        step=step,
        ratio=np.where(ratio > 0, ratio, 1.0),
    )


def _part(probabilities: Array | float) -> np.ndarray:
    return np.searchsorted(PARTS[1:-1], probabilities, side="right")


def _counts(events: Array, step: Array) -> EventCounts:
    """Return numbers of events from weights of rows and of predicted events, by `PARTS`."""
    weights, predicted = events.transpose(3, 1, 2, 0)  # each parts × segments × statements
    with np.errstate(divide="ignore", invalid="ignore"):
        trials = np.where(step > 0, weights / step, 0.0)
        probabilities = predicted / weights
    # a part without rows has any probability; a certain one has no odds
    return EventCounts(trials, np.clip(np.nan_to_num(probabilities, nan=0.5), _NEVER, 1.0 - _NEVER))


def _to_add_up(labels: Labels, rows: slice) -> list[Array]:
    """Return what is added up over rows: columns for each statement, after those for rows."""
    w, q = labels.weights[rows, np.newaxis], labels.predicted[rows]
    residuals = labels.happened[rows] - q
    variance = q * (1.0 - q)
    known = variance - labels.unknown(rows)
    beyond = (w**2 * (residuals**2 - known))[:, labels.at_thresholds]
    noise = np.sum(beyond, axis=1, keepdims=True) ** 2
    return [
        np.ones_like(w),
        w,
        w**2,
        noise,
        w * q,
        w * labels.happened[rows],
        w**2 * variance,
        w**2 * known,
        w * variance,
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


def largest_by_chance(
    labels: Labels,
    segments: Segments,
    steps: Steps,
    order: np.ndarray,
    n_draws: int,
    random_state: Any,
) -> Array:
    """Return the largest absolute score of each draw, increasing.

    A draw is sum_g ξ w (1[y <= t] - F(t)) with normal multipliers ξ of the rows, divided by its
    own standard deviation. Rows that share a bin share ξ but for its sign.

    Parameters
    ----------
    labels : Labels
    segments : Segments
    steps : Steps
        The scores that small sums can have.
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
    largest = []
    for start in range(0, n_draws, at_once):
        multipliers = rng.standard_normal((min(at_once, n_draws - start), len(table)))
        largest.append(np.abs(steps.taken(multipliers @ table)).max(axis=1))
    return np.sort(np.concatenate(largest))


def _residuals_in_bins(
    labels: Labels, segments: Segments, order: np.ndarray, rng: np.random.Generator
) -> Array:
    """Return sums of residuals with random signs, bins × (segments and statements)."""
    n_rows, n_statements, n_segments = len(order), len(labels.places), len(segments)
    n_bins = min(_N_BINS, max(1, _MOST_NUMBERS // (n_statements * n_segments)))
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
        residuals = labels.happened[rows] - labels.predicted[rows]
        residuals *= (signs * labels.weights)[rows, np.newaxis]
        codes = segments.codes[rows] + n_segments * bins[rows, np.newaxis]
        total = total + sums_by_code(codes, n_bins * n_segments, residuals)
    return total.reshape(n_bins, n_segments * n_statements)


def share_as_large(largest: Array, scores: Array) -> Array:
    """Return p-values: the share of draws, with the data themselves, that are as large."""
    below = np.searchsorted(largest, np.abs(scores) - EQUAL)
    return np.asarray((1.0 + len(largest) - below) / (1.0 + len(largest)), dtype=np.float64)
