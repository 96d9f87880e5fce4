"""What is counted in an audit: outcomes at or below thresholds, in central intervals and beyond.

At a fixed threshold a wrong spread cancels where medians vary: P(Y <= t) is too high in rows whose
median is below t and too low in the others. Where outcomes lie in their own distributions does not
cancel, so that both are counted.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from regcal._validation import Array, as_float_array
from regcal.distributions import Distribution
from regcal.metrics._inputs import check_level
from regcal.metrics.calibration import PitIntervals, pit_intervals
from regcal.metrics.censoring import Ends
from regcal.metrics.thresholds import expected_labels
from regcal.outcomes import Outcomes


@dataclass(frozen=True)
class Labels:
    """Predicted probabilities of events and whether they happened, rows × statements.

    Attributes
    ----------
    kinds : tuple of str
        The event is y <= t at a ``"threshold"``, that a central interval of some ``"coverage"``
        holds y, or that y is ``"below"`` or ``"above"`` it.
    places : ndarray of shape (n_statements,)
        Threshold, nominal coverage, or share beyond that end of the interval.
    predicted : ndarray of shape (n_rows, n_statements)
    happened : ndarray of shape (n_rows, n_statements)
        Where that is not known, its probability given what was seen, if predictions are right.
    weights : ndarray of shape (n_rows,)
    """

    kinds: tuple[str, ...]
    places: Array
    predicted: Array
    happened: Array
    weights: Array

    @property
    def at_thresholds(self) -> np.ndarray:
        """Which statements are on y <= t."""
        return np.array([kind == "threshold" for kind in self.kinds], dtype=bool)

    def unknown(self, rows: slice = slice(None)) -> Array:
        """Return the variance that is left of events given what was seen; 0 of known ones."""
        return self.happened[rows] * (1.0 - self.happened[rows])


def make_labels(
    outcomes: Outcomes, dist: Distribution, thresholds: Array, coverage: Array, weights: Array
) -> Labels:
    """Return predicted and observed events: thresholds first, then intervals by their coverage.

    Parameters
    ----------
    outcomes : Outcomes
    dist : Distribution
    thresholds : ndarray of shape (n_thresholds,)
    coverage : ndarray of shape (n_intervals,)
        Nominal; each interval has three statements.
    weights : ndarray of shape (n_rows,)

    Examples
    --------
    >>> import numpy as np
    >>> from regcal import Normal, Outcomes
    >>> from regcal.audit.statements import make_labels
    >>> rows = Outcomes.exact([0.1, 2.0]), Normal([0.0, 0.0], 1.0)
    >>> labels = make_labels(*rows, np.array([0.0]), np.array([0.9]), np.ones(2))
    >>> labels.kinds
    ('threshold', 'coverage', 'below', 'above')
    >>> labels.happened
    array([[0., 1., 0., 0.],
           [0., 0., 0., 1.]])
    """
    needed = len(coverage) > 0 or not outcomes.exact_rows.all()
    values = pit_intervals(outcomes, dist) if needed else None
    predicted = np.clip(dist.cdf(thresholds[np.newaxis, :]), 0.0, 1.0)
    happened = _at_or_below(outcomes, dist, thresholds, predicted, values)
    kinds, places = ("threshold",) * len(thresholds), [thresholds]
    if values is not None and len(coverage):
        shares = [_shares(values, level) for level in coverage]
        tails = 0.5 * (1.0 - coverage)
        of_intervals = np.column_stack([coverage, tails, tails])
        kinds += ("coverage", "below", "above") * len(coverage)
        places.append(of_intervals.ravel())
        said = np.broadcast_to(of_intervals.ravel(), (len(outcomes), of_intervals.size))
        predicted = np.concatenate([predicted, said], axis=1)
        happened = np.concatenate([happened, *shares], axis=1)
    return Labels(kinds, np.concatenate(places), predicted, happened, weights)


def _at_or_below(
    outcomes: Outcomes,
    dist: Distribution,
    thresholds: Array,
    predicted: Array,
    values: PitIntervals | None,
) -> Array:
    """Return whether y <= t; what is not known of it is expected."""
    happened = (outcomes.upper[:, np.newaxis] <= thresholds).astype(np.float64)
    if values is not None and not outcomes.exact_rows.all():
        ends = Ends(outcomes, dist)
        for k, t in enumerate(thresholds):
            known = ends.known(t)
            happened[:, k] = expected_labels(predicted[:, k], happened[:, k], known, values)
    return happened


def _shares(values: PitIntervals, level: float) -> Array:
    """Return which part of each row's value lies in the central interval, below and above it."""
    tail = 0.5 * (1.0 - level)
    ends = ((tail, 1.0 - tail), (0.0, tail), (1.0 - tail, 1.0))
    return np.column_stack([values.between(*pair) for pair in ends])


def checked_coverage(coverage: Any) -> Array:
    """Return nominal coverages as increasing numbers between 0 and 1; there may be none."""
    levels = np.atleast_1d(as_float_array(coverage, "coverage"))
    if levels.ndim > 1:
        msg = f"coverage has the shape {levels.shape}. Pass a number, or some: (0.5, 0.9)."
        raise ValueError(msg)
    return np.unique([check_level(level, "coverage") for level in levels]).astype(np.float64)
