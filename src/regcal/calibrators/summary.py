"""Calibration rows in a bounded, mergeable form, from which calibrators are fitted.

Depends on the distributions and `_validation`; a calibrator tells what it counts.
"""

import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol, Self

import numpy as np

from regcal._validation import Array, check_targets, check_weights
from regcal.calibrators._rows import KeptRows, Rows
from regcal.calibrators._targets import TargetSummary
from regcal.distributions import as_distribution

if TYPE_CHECKING:
    from regcal.calibrators.base import Calibrator

# Rows that are counted at a time.
_BLOCK = 2**16


class Tally(Protocol):
    """Sums over rows in cells that are fixed beforehand; tallies of disjoint sets add up."""

    def counted(self, rows: Rows, z: Array) -> Self:
        """Return these sums with more rows added; z are the probits of their outcomes."""
        ...

    def __add__(self, other: Self) -> Self: ...

    def moved(self, other: Self, rows: Rows) -> Self:
        """Return this tally in the cells of another, empty one.

        Where its cells do not tell, the rows stand for all that were counted.
        """
        ...


def checked_rows(dist: Any, y: Any, sample_weight: Any) -> Rows:
    """Return predictions, outcomes and weights of the rows that count."""
    dist = as_distribution(dist)
    targets = check_targets(y, len(dist))
    weights = check_weights(sample_weight, len(dist))
    if not weights.all():
        used = np.flatnonzero(weights)
        dist, targets, weights = dist[used], targets[used], weights[used]
    return Rows(dist, targets, weights)


def check_summary(summary: Any) -> None:
    """Refuse what is no summary of rows."""
    if not isinstance(summary, Summary):
        msg = f"Got a {type(summary).__name__}. Pass a Summary, from Calibrator.new_summary."
        raise TypeError(msg)


class Summary:
    """What a calibrator needs of calibration rows, in bounded memory.

    Up to 16 384 rows are kept as they are. Beyond, all rows are counted in fine cells, and a
    random sample of as many rows stays. Summaries of disjoint sets of rows merge, in any order.

    Made by `regcal.Calibrator.new_summary`, and turned into a fitted calibrator by
    `regcal.Calibrator.fit_summary`.

    Parameters
    ----------
    calibrator : Calibrator
        Tells what has to be counted.
    targets : TargetSummary, optional
        All outcomes that will come. With it the cells are laid out for them from the start.
        Without it, they are laid out when there are more rows than can be kept, and again
        whenever outcomes leave their range; the kept sample then stands for earlier rows where
        the new cells ask for more than the old ones tell.

    Attributes
    ----------
    n_rows : int
    total_weight, squared_weight : float
        Sums of the weights and of their squares.
    targets : TargetSummary
        The outcomes so far.
    counting : bool
        Whether rows are counted in cells; not while all of them are kept.
    tallies : tuple
        The sums in cells.

    Examples
    --------
    >>> import regcal
    >>> scale = regcal.get_calibrator("scale")
    >>> monday = scale.new_summary().add(regcal.Normal([0.0, 1.0], [1.0, 1.0]), [2.0, 1.0])
    >>> tuesday = scale.new_summary().add(regcal.Normal([5.0], [1.0]), [3.0])
    >>> scale.fit_summary(monday.merge(tuesday)).factor_
    1.5
    """

    def __init__(self, calibrator: "Calibrator", targets: TargetSummary | None = None) -> None:
        self.calibrator = calibrator
        self.layout = TargetSummary() if targets is None else targets
        self.fixed = targets is not None
        self.n_rows = 0
        self.total_weight = 0.0
        self.squared_weight = 0.0
        self.any_possible = False
        self.targets = TargetSummary()
        self.counting = False
        self.tallies: tuple[Any, ...] = ()
        self._kept = KeptRows()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.calibrator!r}, rows={self.n_rows})"

    @property
    def rows(self) -> Rows:
        """The rows that are kept, with weights of what they stand for."""
        return self._kept.all()

    def add(self, dist: Any, y: Any, sample_weight: Any = None) -> Self:
        """Add rows; none are fine.

        Parameters
        ----------
        dist : Distribution or anything `as_distribution` takes
        y : array-like of shape (n_rows,)
        sample_weight : array-like of shape (n_rows,), optional

        Returns
        -------
        self
        """
        if np.shape(y) == (0,) and hasattr(dist, "__len__") and len(dist) == 0:
            return self
        rows = checked_rows(dist, y, sample_weight)
        for start in range(0, len(rows.y), _BLOCK):
            block = slice(start, start + _BLOCK)
            self._add(Rows(rows.dist[block], rows.y[block], rows.weights[block]))
        return self

    def merge(self, other: "Summary") -> "Summary":
        """Return the summary of both sets of rows.

        Parameters
        ----------
        other : Summary
            Of the same calibrator, and laid out for the same targets if any were given.

        Returns
        -------
        Summary
        """
        check_summary(other)
        if repr(self.calibrator) != repr(other.calibrator):
            msg = (
                f"Cannot merge summaries for {self.calibrator!r} and {other.calibrator!r}. "
                "Summarise all rows for one and the same calibrator."
            )
            raise ValueError(msg)
        if not other.counting:
            merged = copy.copy(self)
            return merged._add(other.rows) if other.n_rows else merged
        if not self.counting:
            return other.merge(self)
        merged = copy.copy(self)._record(other)
        merged._lay_out()
        empty = merged._empty_tallies()
        both = [one._moved(empty, one.rows) for one in (self, other)]
        merged.tallies = tuple(a + b for a, b in zip(*both, strict=True))
        merged._kept = self._kept.merge(other._kept)
        return merged

    def settled(self) -> "Summary":
        """Return the summary with thresholds at quantiles where all outcomes want them.

        Equally spaced ones are there already. Quantiles may have moved since they were laid out.
        """
        if not self.counting or self.fixed:
            return self
        settled = copy.copy(self)
        settled.layout = self.targets.rounded()
        wanted = settled._empty_tallies()
        near = [_near(a, b, self.targets) for a, b in zip(self.tallies, wanted, strict=True)]
        moved = [a if n else b for a, b, n in zip(self.tallies, wanted, near, strict=True)]
        settled.tallies = self._moved(tuple(moved), self.rows)
        return settled

    def part(self, calibrator: "Calibrator", tallies: tuple[Any, ...]) -> "Summary":
        """Return the summary of the same rows for another calibrator, given its own tallies."""
        part = copy.copy(self)
        part.calibrator, part.tallies = calibrator, tallies
        return part

    def _add(self, rows: Rows) -> Self:
        kept, seed = self._kept, self.n_rows
        z = rows.dist.probit(rows.y)
        if not self.any_possible:
            with np.errstate(divide="ignore"):
                self.any_possible = not np.isneginf(rows.dist.logpdf(rows.y)).all()
        self.n_rows += len(rows.y)
        self.total_weight += float(rows.weights.sum())
        self.squared_weight += float((rows.weights**2).sum())
        self.targets = self.targets.merge(TargetSummary.of(rows.y, rows.weights))
        self._kept = kept.add(rows, seed)
        if not self.counting and self._kept.complete:
            return self
        moved = self._lay_out()
        if not self.counting:
            self.counting = True
            self.tallies = self._empty_tallies()
            if len(kept):
                self._count(kept.all())
        elif moved:
            self.tallies = self._moved(self._empty_tallies(), kept.all())
        self._count(rows, z)
        return self

    def _record(self, other: "Summary") -> Self:
        """Add the numbers that describe the other's rows."""
        self.n_rows += other.n_rows
        self.total_weight += other.total_weight
        self.squared_weight += other.squared_weight
        self.any_possible |= other.any_possible
        self.targets = self.targets.merge(other.targets)
        return self

    def _lay_out(self) -> bool:
        """Choose the layout of the cells; return whether it differs from the one before."""
        layout, targets = self.layout, self.targets
        if self.fixed and layout.low <= targets.low and targets.high <= layout.high:
            return False
        wanted = targets.rounded()
        if (layout.low, layout.high) == (wanted.low, wanted.high):
            return False
        self.layout, self.fixed = wanted, False
        return True

    def _moved(self, wanted: tuple[Any, ...], rows: Rows) -> tuple[Any, ...]:
        """Return the tallies in other cells; the rows stand for all that were counted."""
        return tuple(a.moved(b, rows) for a, b in zip(self.tallies, wanted, strict=True))

    def _empty_tallies(self) -> tuple[Any, ...]:
        return tuple(self.calibrator._tallies(self.layout))

    def _count(self, rows: Rows, z: Array | None = None) -> None:
        z = rows.dist.probit(rows.y) if z is None else z
        self.tallies = tuple(tally.counted(rows, z) for tally in self.tallies)


def _near(old: Any, new: Any, targets: TargetSummary) -> bool:
    """Return whether thresholds differ by less than a quarter of a segment's share of rows."""
    thresholds = [getattr(tally, "thresholds", None) for tally in (old, new)]
    if thresholds[0] is None or thresholds[1] is None:
        return True
    if len(thresholds[0]) != len(thresholds[1]):
        return False
    gap = np.abs(targets.share_below(thresholds[0]) - targets.share_below(thresholds[1]))
    return bool(gap.max() <= 0.25 / (len(thresholds[0]) + 1))


def sampled_rows(summary: Summary) -> Rows:
    """Return the kept rows, whose weights sum to no more than their number or the total."""
    rows = summary.rows
    return replace(rows, weights=rows.weights * min(1.0, len(rows.y) / rows.weights.sum()))
