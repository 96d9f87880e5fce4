"""Labels of outcomes that were seen as intervals: known, or expected under a map.

For a threshold inside an interval nobody knows on which side of it the outcome lies. Its label is
the conditional probability under calibrated predictions (self-consistency; Efron, 1967; Turnbull,
1976): first those of PIT recalibration, which is learnt from the intervals themselves, then those
of the map that was learnt with these labels.
"""

from collections.abc import Callable
from functools import partial
from typing import Protocol

import numpy as np

from regcal._validation import Array
from regcal.calibrators.cells import IntervalCoordinates, OutcomeCoordinates, Points
from regcal.calibrators.held_out import HeldOut
from regcal.calibrators.pit import solve_pit
from regcal.distributions import Distribution, Transformed
from regcal.distributions.primitives import mass_between
from regcal.maps import ProbitMap
from regcal.maps.scale import IDENTITY

# So often are labels expected. benchmarks/outcomes.py, "censoring": of the gain of uncensored rows
# gpc keeps 91, 95 and 81 % in its worst world after 1, 2 and all rounds, e-beta on average 104, 103
# and 87 %: a map that cannot bend as it should moves away with labels of its own.
_ROUNDS = 2

# Thresholds this near to an end of an interval, in widths of it, are at the end, as between the
# values of rounded outcomes: last digits are not to tell whether something is known.
_LAST_DIGITS = 1e-9

# So many rows stand for all whose labels are not known.
_MAX_ROWS = 4096


Calibrated = Callable[[Distribution], Distribution]
Learn = Callable[[list[Points]], Calibrated]


class Labelled(Protocol):
    """Coordinates whose second value is a label."""

    @property
    def thresholds(self) -> Array:
        """The targets at which rows are looked at."""
        ...

    def expected(self, rows: HeldOut, latent: Distribution) -> Points:
        """Return the others, labelled by their expectation."""
        ...


def known_below(rows: HeldOut, thresholds: Array) -> Array:
    """Return 1 where Y <= t is known to be true, 0 where it is not, NaN where nobody knows."""
    lower, upper = rows.seen.lower[:, np.newaxis], rows.seen.upper[:, np.newaxis]
    width = upper - lower
    slack = np.where(np.isfinite(width), _LAST_DIGITS * width, 0.0)
    known = np.where(thresholds <= lower + slack, 0.0, np.nan)
    return np.where(thresholds >= upper - slack, 1.0, known)


def expected_below(rows: HeldOut, latent: Distribution, thresholds: Array) -> Array:
    """Return P(Y <= t) given that Y lies in what was seen of it."""
    lower, upper = rows.seen.lower[:, np.newaxis], rows.seen.upper[:, np.newaxis]
    points = np.concatenate([lower, np.clip(thresholds, lower, upper), upper], axis=1)
    tails = latent._evaluate("_signed_tail", points, False)
    masses = mass_between(tails[:, :1], tails[:, 1:])
    whole = masses[:, -1:]
    with np.errstate(invalid="ignore", divide="ignore"):
        share = masses[:, :-1] / whole
    # what is impossible under the map lies at the end where it is least so
    nearest = np.where(np.isfinite(upper), 0.0, 1.0) * (thresholds > lower)
    return np.where(whole > 0, share, nearest)


def learn_labels(coordinates: Labelled, rows: HeldOut, learn: Learn) -> None:
    """Learn from the labels that are known, and from those that are expected of the others.

    Parameters
    ----------
    coordinates : Labelled
    rows : HeldOut
        Those that are kept, with weights of what they stand for.
    learn : callable
        Learns from expected labels, beside those that are known, and returns what calibrates
        predictions by them. Without any it is called once.
    """
    some = _with_unknown(coordinates, rows)
    if some is None:
        learn([])
        return
    calibrated: Calibrated = partial(Transformed, mapping=_recalibration(rows))
    for _ in range(_ROUNDS):
        calibrated = learn([coordinates.expected(some, calibrated(some.dist))])


def _recalibration(rows: HeldOut) -> ProbitMap:
    """Return PIT recalibration by the likelihood of rows, or nothing if all are impossible."""
    outcomes, intervals = OutcomeCoordinates().observe(rows), IntervalCoordinates(0.0).observe(rows)
    return solve_pit(outcomes, intervals) if len(outcomes) + len(intervals) else IDENTITY


def _with_unknown(coordinates: Labelled, rows: HeldOut) -> HeldOut | None:
    """Return the rows some of whose labels are not known, or as many as are worth their time."""
    if rows.exact.all():
        return None
    some = rows.take(np.flatnonzero(~rows.exact))
    unknown = np.flatnonzero(np.isnan(known_below(some, coordinates.thresholds)).any(axis=1))
    if len(unknown) == 0:
        return None
    every = -(-len(unknown) // _MAX_ROWS)
    chosen = some.take(unknown[::every])
    return chosen.reweighted(chosen.weights * (some.weights[unknown].sum() / chosen.weights.sum()))
