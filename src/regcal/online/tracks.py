"""Memories of different length, and which of them predicts best."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from sklearn.base import clone

from regcal._validation import Array
from regcal.calibrators import Calibrator
from regcal.calibrators.held_out import HeldOut
from regcal.calibrators.observed import Observed
from regcal.calibrators.support import Support
from regcal.distributions import Distribution

# A calibrator is fitted anew when this share of what it counts is new.
# benchmarks/streams.py --only refits: with 0.1, +0.000 nats and 1.4 times the time (gp-density).
REFIT_SHARE = 0.2

# Fewer rows teach nothing yet.
_FEWEST_ROWS = 10.0

# A row that is impossible under a prediction counts as if it had this log score.
_IMPOSSIBLE = -700.0


@dataclass
class Track:
    """What one half-life remembers, and the calibrator that has learnt from it.

    Parameters
    ----------
    half_life : float
        After so many rows, or so much time, a row counts half.
    observed : Observed
    fitted : Calibrator, optional
        None as long as there are too few rows.
    new : float
        Weight of the rows since it was fitted.
    """

    half_life: float
    observed: Observed
    fitted: Calibrator | None = None
    new: float = 0.0

    def factors(self, ages: Array) -> Array:
        """Return how much rows count that are so old."""
        return 2.0 ** -(ages / self.half_life)

    def wanted(self, passed: float = 0.0) -> float:
        """Return the weight of new rows with which it is fitted anew, after so much time."""
        kept = float(self.factors(np.array(passed)))
        total, new = kept * self.observed.total_weight, kept * self.new
        if self.fitted is None:
            return _FEWEST_ROWS - total
        return REFIT_SHARE * (total - new) - new

    def learn(
        self, rows: HeldOut, ages: Array, passed: float, longer: "Track | None" = None
    ) -> None:
        """Take in rows, so much later than the last ones, and fit anew if these are many.

        A longer memory that holds next to the same lends its calibrator. If so much has faded that
        the rest would teach nothing, what was learnt from it is forgotten.
        """
        weights = rows.weights * self.factors(ages)
        counted = np.flatnonzero(weights)
        faded = self.observed.faded(float(self.factors(np.array(passed))))
        self.new = self.new * float(self.factors(np.array(passed))) + float(weights.sum())
        self.observed = faded.add_rows(rows.reweighted(weights).take(counted))
        total = self.observed.total_weight
        if longer is not None and total > (1.0 - REFIT_SHARE) * longer.observed.total_weight:
            self.fitted, self.new = longer.fitted, longer.new
        elif total < _FEWEST_ROWS:
            self.fitted, self.new = None, 0.0
        elif self.wanted() <= 0 and _teaches(self.observed):
            self.fitted, self.new = _learnt(self.observed, self.fitted), 0.0

    def latent(self, rows: HeldOut) -> Distribution:
        """Return predictions of rows before they are seen through a support."""
        if self.fitted is None:
            return rows.dist
        return self.fitted.transform_rows(rows.dist, rows.covariates)


def can_learn(half_life: float) -> bool:
    """Return whether rows that count one each, at a half-life of so many, ever are enough."""
    # 1 + f + f^2 + ... = 1 / (1 - f), f = 2^(-1 / half-life)
    return 2.0 ** (-1.0 / half_life) > 1.0 - 1.0 / _FEWEST_ROWS


def _teaches(observed: Observed) -> bool:
    """Return whether there are enough rows to fit, and outcomes that are seen and possible."""
    if observed.total_weight < _FEWEST_ROWS:
        return False
    rows = observed.rows_as_given
    seen = (np.isfinite(rows.seen.lower) & np.isfinite(rows.seen.upper)).any()
    return bool(seen) and observed.n_possible > 0


def _learnt(observed: Observed, earlier: Calibrator | None) -> Calibrator | None:
    """Return a calibrator that has learnt from rows, or the last if equal outcomes teach nothing.

    What it is worth is told by the scores of the rows to come, not by its own.
    """
    own = clone(observed.calibrator)
    own.warn_of_impossible(observed.n_possible, observed.n_rows)
    try:
        own._learn(observed.after(earlier))
    except ValueError as error:
        if not observed.rows_as_given.constant:
            raise
        if earlier is None:
            msg = (
                f"Nothing is learnt yet, and predictions stay as they are: {error} If they stay "
                'equal, use "pit" or "scale", which learn from where they lie in predictions.'
            )
            warnings.warn(msg, UserWarning, stacklevel=5)
        return earlier
    own.warn_of_lost(observed.rows_as_given)
    return own


def learn(tracks: Sequence[Track], rows: HeldOut, ages: Array, passed: float) -> None:
    """Let all take in rows, from the longest memory; the last, of the identity, lends nothing."""
    for track, longer in zip(tracks, (None, *tracks[:-2], None), strict=True):
        track.learn(rows, ages, passed, longer)


def begun(tracks: Sequence[Track], rows: HeldOut, times: Array) -> list[Track]:
    """Return memories like these that have seen nothing but such rows.

    What they warn of is left to those that learn from all rows.
    """
    new = [Track(one.half_life, clone(one.observed.calibrator).new_observed()) for one in tracks]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        learn(new, rows, times.max() - times, 0.0)
    return new


def best(tracks: Sequence[Track], log_weights: Array) -> Track:
    """Return what has predicted best, of those that remember enough, if there are any."""
    learnt = np.array([track.fitted is not None for track in tracks])
    asked = np.where(learnt, log_weights, -np.inf) if learnt.any() else log_weights
    return tracks[int(np.argmax(asked))]


def log_scores(tracks: Sequence[Track], rows: HeldOut, support: Support) -> Array:
    """Return the total log score of rows under each track, all on the same scale."""
    if support.beyond(rows.seen).any() or support.off_step(rows.seen).any():
        support = Support()
    seen = rows.through(support)
    scores = [seen.log_scores(track.latent(rows)) for track in tracks]
    return np.stack([np.maximum(one, _IMPOSSIBLE) for one in scores]) @ rows.weights


def shared(log_weights: Array, scores: Array, before: int, now: int) -> Array:
    """Return the log weights of candidates after rows, if the best may change at any row.

    Fixed share (Herbster and Warmuth, 1998) with the rate 1 / n at row n, so that the number of
    changes that is expected grows with the logarithm of the rows.
    """
    posterior = log_weights + scores
    posterior -= np.logaddexp.reduce(posterior)
    stayed = before / now
    n = len(posterior)
    if stayed == 0:
        return np.full(n, -np.log(n))
    return np.logaddexp(np.log(stayed) + posterior, np.log((1.0 - stayed) / n))
