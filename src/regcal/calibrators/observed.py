"""What a calibrator has observed of held-out rows: bounded, mergeable, enough to be fitted from."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from regcal._caching import WithoutCaches
from regcal._validation import Array
from regcal.calibrators.cells import Cells, Coordinates, Points
from regcal.calibrators.held_out import HeldOut, Sample, Waiting
from regcal.calibrators.targets import Targets
from regcal.distributions.alike import Readings, merged, readings_of
from regcal.outcomes import Outcomes

if TYPE_CHECKING:
    from regcal.calibrators.base import Calibrator

# What counts for less than this part of a row, all together, is as good as nothing.
_NOTHING = 2.0**-20

# What follows from the rows so far.
_DERIVED = ("rows", "rows_as_given", "targets", "n_possible", "_uncounted", "_all_cells")


class Observed(WithoutCaches):
    """What a calibrator needs of calibration rows, in bounded memory.

    Up to 16 384 rows are kept as they are. Beyond, a random sample of as many rows stays, and all
    rows are counted in fine cells, those of batches when 8 MB of them have come. What was observed
    of disjoint sets of rows merges, in any order.

    Made by `regcal.Calibrator.new_observed`, and turned into a fitted calibrator by
    `regcal.Calibrator.solve`.

    Parameters
    ----------
    calibrator : Calibrator
        Tells in which coordinates rows are looked at.
    targets : Targets, optional
        All outcomes that will come. With it the cells are laid out for them. Without it, they are
        laid out for the outcomes so far when 8 MB of rows have come, and again whenever outcomes
        leave their range; the kept sample then stands for earlier rows where the new cells ask
        for more than the old ones tell.

    Attributes
    ----------
    n_rows : int
        Number of rows.
    readings : tuple of Reading
        How draws and quantiles among the predictions were read.
    earlier : Calibrator, optional
        One that was learnt from nearly the same rows: where a method searches, it may begin where
        that ended.

    Examples
    --------
    >>> import regcal
    >>> scale = regcal.get_calibrator("scale")
    >>> monday = scale.new_observed().add(regcal.Normal([0.0, 1.0], [1.0, 1.0]), [2.0, 1.0])
    >>> tuesday = scale.new_observed().add(regcal.Normal([5.0], [1.0]), [3.0])
    >>> scale.solve(monday.merge(tuesday)).factor_
    1.5
    """

    earlier: Calibrator | None = None
    readings: Readings = ()
    _waiting = Waiting()

    def __init__(self, calibrator: Calibrator, targets: Targets | None = None) -> None:
        self.calibrator = calibrator
        self.layout = Targets() if targets is None else self._with_support(targets)
        self.fixed = targets is not None
        self.n_rows = 0
        self._n_possible = 0
        self._targets = Targets()
        self._sample = Sample()
        self._cells: tuple[Cells, ...] | None = None  # none while all rows are kept, or wait

    @classmethod
    def all_of(cls, calibrator: Calibrator, rows: HeldOut) -> Self:
        """Return what is observed of rows, of which there are no others."""
        observed = cls(calibrator, Targets.of_rows(rows))
        observed._targets = observed.layout
        observed.readings = readings_of(rows.dist)
        if observed.layout.step == 0:
            return observed._blocks(rows)
        # more distinct outcomes than rows are kept: which ones may never be asked
        observed.n_rows, observed._sample = len(rows), Sample((rows,))
        observed._cells = tuple(map(Cells, calibrator._coordinates(observed.layout)))
        observed._count(rows)
        return observed

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.calibrator!r}, rows={self.n_rows})"

    # ------------------------------------------------------------------------------ what was seen

    def _with_support(self, targets: Targets) -> Targets:
        """Return targets with the support that the calibrator asks for."""
        return targets.seen_through(*self.calibrator.asked_support)

    @cached_property
    def targets(self) -> Targets:
        """The outcomes so far, with the support that was given or that they show."""
        if self._made_of_all:
            return self.layout  # with its axis, if that has been chosen
        if self.fixed:
            return self._targets.seen_through(self.layout.support, None)
        return self._with_support(self._targets)

    @property
    def _made_of_all(self) -> bool:
        return self._targets is self.layout

    @cached_property
    def rows_as_given(self) -> HeldOut:
        """The rows that are kept, with weights of what they stand for, without gross errors."""
        return self._sample.all().within(self.targets.credible)

    @property
    def rows_at_hand(self) -> HeldOut:
        """All rows, without gross errors, if they are still there, else those that are kept."""
        return self._sample.at_hand.within(self.targets.credible)

    @property
    def outcomes_at_hand(self) -> Outcomes:
        """What was seen of the rows at hand, with gross errors as they were given."""
        return self._sample.at_hand.seen

    @cached_property
    def rows(self) -> HeldOut:
        """The rows that are kept, seen through the support."""
        return self.rows_as_given.through(self.targets.support)

    @cached_property
    def n_possible(self) -> int:
        """The number of outcomes that are possible under their predictions."""
        if self.n_rows == 0 or self._cells is not None:
            return self._n_possible
        if self._waiting.parts:
            return self._uncounted.n_possible
        # equal rows may be one row that is kept, and an impossible one then counts once
        n_impossible = len(self.rows) - self.rows.n_possible
        return self.n_rows - n_impossible if n_impossible < len(self.rows) else 0

    @property
    def all_kept(self) -> bool:
        """Whether the rows that are kept are all that were observed."""
        return self._cells is None and not self._waiting.parts

    @property
    def modest_rows(self) -> HeldOut:
        """The kept rows as given, whose weights sum to no more than their number or the total."""
        rows = self.rows_as_given
        if self.all_kept:
            return rows
        return rows.reweighted(rows.weights * min(1.0, len(rows) / rows.weights.sum()))

    @property
    def coordinates(self) -> tuple[Coordinates, ...]:
        """In which coordinates the points are."""
        return tuple(cells.coordinates for cells in self._all_cells)

    @property
    def points(self) -> tuple[Points, ...]:
        """The points of all rows, in each of the calibrator's coordinates."""
        return tuple(cells.points() for cells in self._all_cells)

    @cached_property
    def _all_cells(self) -> tuple[Cells, ...]:
        if self._cells is not None:
            return self._settled()
        wanted = self.calibrator._coordinates(self.targets)
        return tuple(Cells.of(one, self._uncounted) for one in wanted)

    @cached_property
    def _uncounted(self) -> HeldOut:
        """All rows, seen through the support, while none has been counted."""
        if not self._waiting.parts:
            return self.rows
        return self._waiting.all().within(self.targets.credible).through(self.targets.support)

    def _counted(self) -> Observed:
        """Return the same with rows that wait in cells, for the outcomes so far."""
        if not self._waiting.parts:
            return self
        counted = copy.copy(self)  # without what was derived
        counted.layout, counted.fixed = self.targets, True
        counted._cells, counted._n_possible = self._all_cells, self.n_possible
        counted._waiting = Waiting()
        return counted

    def part(self, calibrator: Calibrator, which: Sequence[int]) -> Observed:
        """Return what another calibrator would have observed, given which coordinates are its."""
        part = copy.copy(self)  # without what was derived
        part.calibrator, part.earlier = calibrator, None
        part._cells = None if self._cells is None else tuple(self._cells[k] for k in which)
        return part

    def after(self, earlier: Calibrator | None) -> Observed:
        """Return the same, beside what was learnt from nearly the same rows."""
        later = copy.copy(self)
        later.earlier = earlier
        return later

    # --------------------------------------------------------------------------------- forgetting

    @property
    def total_weight(self) -> float:
        """The number of rows that what was observed counts for."""
        return float(self._targets.weights.sum())

    def faded(self, factor: float) -> Observed:
        """Return the same with all weights multiplied, without what hardly counts any more.

        Range and support are those of the rows that still count.

        Parameters
        ----------
        factor : float
            Between 0 and 1.

        Returns
        -------
        Observed
        """
        if factor == 1 or self.n_rows == 0:
            return self
        if factor * self.total_weight < _NOTHING:
            return Observed(self.calibrator)
        faded = copy.copy(self._counted())  # without what was derived
        faded._sample = self._sample.faded(factor)
        rows = faded._sample.all()
        share = factor * self.total_weight / rows.weights.sum()
        faded._targets = Targets.of_rows(rows.reweighted(share * rows.weights))
        faded.fixed = False
        if faded._cells is None:
            faded.n_rows = len(rows)
        else:
            faded._cells = tuple(cells.faded(factor) for cells in faded._cells)
        return faded

    # ------------------------------------------------------------------------------------- adding

    def add(self, dist: Any, y: Any, sample_weight: Any = None, covariates: Any = None) -> Self:
        """Add rows; none are fine.

        Parameters
        ----------
        dist : Distribution or anything `as_distribution` takes
        y : array-like of shape (n_rows,), Outcomes, or a structured array of (event, time)
        sample_weight : array-like of shape (n_rows,), optional
        covariates : frame, mapping or array-like of shape (n_rows, n_columns), optional

        Returns
        -------
        self
        """
        seen = y.lower if isinstance(y, Outcomes) else y
        if np.shape(seen) == (0,) and hasattr(dist, "__len__") and len(dist) == 0:
            return self
        rows = self.calibrator.checked_rows(dist, y, sample_weight, covariates)
        # copied, since the caller may use the arrays for the next batch
        return self.add_rows(rows.take(np.arange(len(rows))))

    def add_rows(self, rows: HeldOut) -> Self:
        """Add rows that have been checked and will not change."""
        self._targets = self._targets.merge(Targets.of_rows(rows))
        self.readings = merged((*self.readings, *readings_of(rows.dist)))
        return self._blocks(rows)

    def _blocks(self, rows: HeldOut) -> Self:
        for block in rows.blocks():
            self._take_in(block)
        return self

    def _take_in(self, rows: HeldOut) -> Self:
        self._forget()
        before = self._sample
        self.n_rows += len(rows)
        self._sample = before.add(rows)
        if self._cells is None:
            return (
                self
                if self._sample.complete
                else self._wait((*before.parts, rows) if before.complete else (rows,))
            )
        earlier = self.layout
        self._lay_out()
        if self.layout is not earlier:
            known = before.all().within(self.targets.credible)
            self._cells = self._moved(earlier, self.layout, known)
        self._count(rows)
        return self

    def _wait(self, parts: tuple[HeldOut, ...]) -> Self:
        """Keep rows until so many wait that they are counted; at once if there are no others."""
        waiting = self._waiting.add(parts)
        if not (self._made_of_all or waiting.full):
            self._waiting = waiting
            return self
        self._waiting = Waiting()
        self._lay_out()
        self._cells = tuple(map(Cells, self.calibrator._coordinates(self.layout)))
        self._count(waiting.all())
        return self

    def merge(self, other: Observed) -> Observed:
        """Return what was observed of both sets of rows.

        Parameters
        ----------
        other : Observed
            Of the same calibrator, and laid out for the same targets if any were given.

        Returns
        -------
        Observed
        """
        check_observed(other)
        if repr(self.calibrator) != repr(other.calibrator):
            msg = (
                f"Cannot merge what {self.calibrator!r} and {other.calibrator!r} have observed. "
                "Look at all rows for one and the same calibrator."
            )
            raise ValueError(msg)
        if other._cells is None:
            whole = copy.copy(self)
            for rows in other._waiting.parts or other._sample.parts:
                whole.add_rows(rows)
            return whole
        if self._cells is None:
            return other.merge(self)
        whole = copy.copy(self)  # without what was derived
        whole.n_rows += other.n_rows
        whole._n_possible += other._n_possible
        whole._targets = self._targets.merge(other._targets)
        whole.readings = merged((*self.readings, *other.readings))
        whole._lay_out()
        both = [one._moved(one.layout, whole.layout, one.rows_as_given) for one in (self, other)]
        whole._cells = tuple(a + b for a, b in zip(*both, strict=True))
        whole._sample = self._sample.merge(other._sample)
        return whole

    def _forget(self) -> Self:
        """Drop what was derived from the rows so far."""
        for name in _DERIVED:
            vars(self).pop(name, None)
        return self

    # ------------------------------------------------------------------------------------- layout

    def _lay_out(self) -> None:
        """Choose the layout of the cells; one that is as good as the last is the last."""
        layout, targets = self.layout, self.targets
        if self.fixed and layout.low <= targets.low and targets.high <= layout.high:
            return
        if not layout.suits(targets):
            self.layout, self.fixed = targets.rounded(), False

    def _settled(self) -> tuple[Cells, ...]:
        """Return the cells with thresholds at quantiles where all outcomes want them.

        Equally spaced ones are there already. Quantiles may have moved since they were laid out.
        """
        assert self._cells is not None
        if self.fixed:
            return self._cells
        layout = self.layout
        wanted = replace(self.targets, low=layout.low, high=layout.high, told_axis=layout.told_axis)
        near = _near_or_wanted(self._cells, self.calibrator._coordinates(wanted), wanted)
        return self._moved(self.layout, wanted, self.rows_as_given, near)

    def _moved(
        self,
        before: Targets,
        after: Targets,
        rows: HeldOut,
        wanted: Sequence[Coordinates] | None = None,
    ) -> tuple[Cells, ...]:
        """Return the cells laid out anew; where need be, rows stand for all that were counted."""
        assert self._cells is not None
        wanted = self.calibrator._coordinates(after) if wanted is None else wanted
        rows = rows.through(after.support)
        if before.support != after.support:
            return tuple(Cells.of(one, rows) for one in wanted)
        return tuple(own.moved(one, rows) for own, one in zip(self._cells, wanted, strict=True))

    def _count(self, rows: HeldOut) -> None:
        assert self._cells is not None
        rows = rows.within(self.targets.credible).through(self.layout.support)
        self._n_possible += rows.n_possible
        self._cells = tuple(cells.counted(rows) for cells in self._cells)


def _near_or_wanted(
    cells: Sequence[Cells], wanted: Sequence[Coordinates], targets: Targets
) -> list[Coordinates]:
    """Return wanted coordinates, or those of cells whose thresholds are as good."""
    own = [one.coordinates for one in cells]
    return [
        a if _near(a.thresholds, b.thresholds, targets) else b
        for a, b in zip(own, wanted, strict=True)
    ]


def _near(old: Array, new: Array, targets: Targets) -> bool:
    """Return whether thresholds differ by less than a quarter of a segment's share of rows."""
    if len(old) != len(new):
        return False
    gap = np.abs(targets.share_below(old) - targets.share_below(new))
    return bool(gap.max(initial=0.0) <= 0.25 / (len(old) + 1))


def check_observed(observed: Any) -> None:
    """Refuse what was not observed of rows."""
    if not isinstance(observed, Observed):
        msg = f"Got a {type(observed).__name__}. Pass an Observed, from Calibrator.new_observed."
        raise TypeError(msg)
