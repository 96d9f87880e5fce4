"""How far out ends of intervals have to be, from how far out held-out outcomes lie."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from regcal._validation import Array

# Sums of weights that differ by less are equal: 0.9 of 10 rows are 9 rows.
ROUNDING = 1e-12


@dataclass(frozen=True)
class Scores:
    """How far out held-out rows lie, and what each weighs; the larger, the farther.

    Parameters
    ----------
    values : ndarray of shape (n_rows,)
        Infinite where no end of an interval is far enough out, -infinite where every end is.
    weights : ndarray of shape (n_rows,)

    Examples
    --------
    >>> import numpy as np
    >>> from regcal.calibrators.order_statistics import Scores
    >>> scores = Scores(np.arange(1.0, 10.0), np.ones(9))
    >>> scores.reached(0.9), scores.reached(0.5)  # the 9th and the 5th of 9 rows, 10 with the new
    (array([9.]), array([5.]))
    """

    values: Array
    weights: Array

    def reached(self, share: float, new_weights: Any = 1.0) -> Array:
        """Return the score that new rows do not exceed with at least this probability.

        Exchangeable rows take each place in the order of all n + 1 with the same probability, so
        that ceil((n + 1) share) of the n known scores are enough. With weights, rows take a place
        with probability w_i / (sum_j w_j + w_new) (Tibshirani, Foygel Barber, Candes and Ramdas,
        2019, Lemma 3), which for w_new = 1 makes a weight of 2 two rows. It is nan where
        all known rows are too few.

        Parameters
        ----------
        share : float
        new_weights : float or ndarray of shape (n_new,), default=1.0

        Returns
        -------
        ndarray of shape (n_new,)
        """
        order = np.argsort(self.values, kind="stable")
        upto = np.cumsum(self.weights[order])
        needed = share * (upto[-1] + np.atleast_1d(new_weights)) * (1.0 - ROUNDING)
        return np.append(self.values[order], np.nan)[np.searchsorted(upto, needed)]

    def beyond(self, points: Array) -> Array:
        """Return what the rows weigh whose scores are larger than each of the points."""
        order = np.argsort(self.values)
        left = np.append(np.cumsum(self.weights[order][::-1])[::-1], 0.0)
        return left[np.searchsorted(self.values[order], points, side="right")]


@dataclass(frozen=True)
class Side:
    """How far out one end has to be on the probit line, the farther the larger; row by row.

    Parameters
    ----------
    held : ndarray of shape (n_rows,)
        From here on the end leaves the outcome inside; -infinite where it always does, as upper
        ends do with an outcome on the lowest point mass.
    drawn : ndarray of shape (n_rows,)
        The same without point masses; at a mass, a draw between `held` and where the end leaves it.
    rests : ndarray of shape (n_rows,)
        From here on the end lies on the outermost point mass, and moves no more.
    """

    held: Array
    drawn: Array
    rests: Array

    def take(self, rows: np.ndarray, least: float) -> "Side":
        """Return some of the rows; no end is nearer than `least`."""
        held, drawn = (np.maximum(values[rows], least) for values in (self.held, self.drawn))
        return Side(held, drawn, self.rests[rows])

    @property
    def likely(self) -> Array:
        """`drawn`, but `held` where the outcome lies on the mass on which the end rests."""
        return np.where(self.held >= self.rests, self.held, self.drawn)


def fairly_missed(
    scores: list[Array], rests: list[Array], weights: Array, share: float, new_weights: Array
) -> Array:
    """Return how far out ends are that miss their part of the outcomes, and no more.

    Of all ends that can still move, at most the part that would be missed without point masses:
    an end that rests on a mass at the end of the support misses nothing, and its part
    is not for other ends to miss. That is where the interval score, with lengths on the probit
    line, is least. Without masses it is the score that `Scores.reached` returns. It is nan where no
    end is far enough.

    Parameters
    ----------
    scores, rests : list of ndarray of shape (n_rows,)
        For each side of the intervals.
    weights : ndarray of shape (n_rows,)
    share : float
    new_weights : ndarray of shape (n_new,)

    Returns
    -------
    ndarray of shape (n_new,)
    """
    places = np.unique(np.concatenate(scores))
    places, total = places[places < np.inf], weights.sum()
    missed = sum(Scores(values, weights).beyond(places) for values in scores)
    moving = sum(Scores(values, weights).beyond(places) for values in rests)
    with np.errstate(divide="ignore", invalid="ignore"):
        parts = np.where(missed > 0, missed * len(rests) * total / moving, 0.0)
    allowed = total - share * (total + new_weights) * (1.0 - ROUNDING)
    fewest = np.minimum.accumulate(parts)
    return np.append(places, np.nan)[np.searchsorted(-fewest, -allowed)]
