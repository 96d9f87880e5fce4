"""Range and distribution of outcomes, which merge: what thresholds and axes are laid out by."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from regcal._caching import WithoutCaches
from regcal._validation import Array, check_increasing, check_weights
from regcal._weighted import all_equal
from regcal.calibrators.support import UNBOUNDED, Support
from regcal.ends import (
    BEYOND_OTHERS,
    LAST_DIGITS,
    NOTHING,
    WHOLE_LINE,
    Ends,
    credible_ends,
    find_ends,
    given_ends,
    given_step,
    none_gross,
)
from regcal.grids import EqualGrid, make_thresholds
from regcal.maps import Axis
from regcal.maps.axis import axis_of_values
from regcal.outcomes import Outcomes

if TYPE_CHECKING:
    from regcal.calibrators.held_out import HeldOut

# So many of the outermost distinct values are counted exactly.
_OUTERMOST = 4

# No more distinct values than gpc has thresholds: those between them tell all that is known.
_FEW_VALUES = 64

# More distinct outcomes than this are merged in cells, whose width is a power of two.
_MAX_VALUES = 2**14

# So many of many outcomes tell whether any can be a gross error.
_SOME = 4096

# Cells so many times narrower tell whether there are more.
_NARROWER = 16

# Ranges that are not known beforehand are rounded outwards to multiples of a power of two, about
# this part of the range.
_PARTS = 64

# How far outcomes may leave the range for which thresholds were laid out, as a share of it, before
# they are laid out anew; see `Targets.suits`.
_SPARE = 0.25


def _empty() -> Array:
    return np.empty(0)


def _no_values() -> Array:
    return np.empty((2, 0))


@dataclass(frozen=True)
class Targets(WithoutCaches):
    """Range and distribution of outcomes; those of disjoint sets of rows merge.

    Distinct values are kept with their weights while there are at most 16 384 of them. Beyond, they
    are merged in cells whose width is a power of two, so that the order in which outcomes come
    does not matter. Of an outcome that was seen as an interval, one number counts.

    Parameters
    ----------
    values, weights : ndarray
        Distinct outcomes, or the means of cells, in increasing order.
    low, high : float
        Smallest and largest outcome.
    step : float
        Width of the cells; 0 while values are distinct outcomes.
    exact : ndarray
        The weights of outcomes that were seen exactly.
    lowest, highest : ndarray of shape (2, n)
        The outermost distinct values that were seen exactly, from the outside inwards, with their
        weights. They are counted exactly however many outcomes there are.
    smallest_upper, largest_lower : float
        Of the intervals that outcomes were seen in: no end of the support lies above the one or
        below the other.
    support : Support
        Through what outcomes are seen.
    foreseen : pair of float
        The outermost outcomes that are possible by what was predicted of their own rows.
    credible : pair of float
        Outcomes beyond are gross errors, and count as if they were there.
    told_axis : Axis, optional
        Along which maps see them, instead of the axis that suits them best.

    Examples
    --------
    >>> from regcal.calibrators import Targets
    >>> targets = Targets.of([3.0, 1.0]).merge(Targets.of([7.0, 3.0]))
    >>> targets.low, targets.high, targets.values
    (1.0, 7.0, array([1., 3., 7.]))
    """

    values: Array = field(default_factory=_empty)
    weights: Array = field(default_factory=_empty)
    low: float = np.inf
    high: float = -np.inf
    step: float = 0.0
    exact: Array = field(default_factory=_empty)
    lowest: Array = field(default_factory=_no_values)
    highest: Array = field(default_factory=_no_values)
    smallest_upper: float = np.inf
    largest_lower: float = -np.inf
    support: Support = UNBOUNDED
    foreseen: Ends = NOTHING
    credible: Ends = WHOLE_LINE
    told_axis: Axis | None = None

    @classmethod
    def of(cls, y: Any, sample_weight: Any = None) -> Self:
        """Return the targets of some rows; rows of weight 0 do not count."""
        outcomes = Outcomes.of(y)
        weights = check_weights(sample_weight, len(outcomes))
        used = weights > 0
        return cls.of_outcomes(outcomes[used], weights[used])

    @classmethod
    def of_rows(cls, rows: HeldOut) -> Self:
        """Return the targets of rows with positive weights."""
        return cls.of_outcomes(rows.seen, rows.weights, rows.foreseen)

    @classmethod
    def of_outcomes(cls, outcomes: Outcomes, weights: Array, foreseen: Ends = NOTHING) -> Self:
        """Return the targets of outcomes with positive weights."""
        y = outcomes.values
        exact = weights if outcomes.exact_rows.all() else weights * outcomes.exact_rows
        ends = low, high = float(y.min()), float(y.max())
        inner = (float(outcomes.upper.min()), float(outcomes.lower.max()))
        between = first, last = _credible_ends_of_many(y, weights, foreseen)
        near = y if between == WHOLE_LINE else np.clip(y, first, last)
        step = _width_of_cells(max(low, first), min(high, last))
        cells = _cells_if_many(near, max(low, first), step)
        if cells is None:
            values, totals = _merged(y, (weights, exact))
            known = (*_outermost_values(values, totals[1]), *inner)
            return cls._in_cells(values, totals, 0.0, ends, known, foreseen)
        values, totals = _in_given_cells(near, (weights, exact), cells)
        outermost = _outermost_rows(y, exact, cells)
        known = (*outermost, *inner)
        counted = (values, totals[0], low, high, step, totals[1])
        return cls(*counted, *known, foreseen=foreseen, credible=between)

    @classmethod
    def _in_cells(
        cls,
        values: Array,
        totals: Array,
        step: float,
        ends: tuple[float, float],
        known: tuple[Array, Array, float, float],
        foreseen: Ends,
        credible: Ends = WHOLE_LINE,
    ) -> Self:
        """Return targets whose values are merged in cells if there are too many."""
        low, high = ends
        if step > 0 or len(values) > _MAX_VALUES:
            distinct, (shares,) = _merged(values, (totals[0],))
            first, last = credible_ends(distinct, shares, foreseen)
            credible = first, last = max(first, credible[0]), min(last, credible[1])
            values = np.clip(values, first, last)
            step = max(step, _width_of_cells(max(low, first), min(high, last)))
            cells = np.floor(values / step)
            cells -= cells.min()
            values, totals = _in_given_cells(values, (totals[0], totals[1]), cells.astype(np.intp))
        counted = (values, totals[0], low, high, step, totals[1])
        return cls(*counted, *known, foreseen=foreseen, credible=credible)

    def merge(self, other: Targets) -> Targets:
        """Return the targets of both sets of rows."""
        if not len(other.values):
            return self
        if not len(self.values):
            return other
        step = max(self.step, other.step)
        values, weights, exact = (
            np.concatenate([getattr(self, name), getattr(other, name)])
            for name in ("values", "weights", "exact")
        )
        totals = np.stack([weights, exact])
        if step == 0:
            values, totals = _merged(values, (weights, exact))
        outermost = (
            _outermost(self.lowest, other.lowest, 1.0),
            _outermost(self.highest, other.highest, -1.0),
        )
        ends = (min(self.low, other.low), max(self.high, other.high))
        inner = (
            min(self.smallest_upper, other.smallest_upper),
            max(self.largest_lower, other.largest_lower),
        )
        foreseen = (
            min(self.foreseen[0], other.foreseen[0]),
            max(self.foreseen[1], other.foreseen[1]),
        )
        told = (*outermost, *inner), foreseen, self._believed_by(other)
        return self._in_cells(values, totals, step, ends, *told)

    def _believed_by(self, other: Targets) -> Ends:
        """Return the ends beyond which outcomes of both were moved already, if any were."""
        both = (self, other)
        if all(one.credible == WHOLE_LINE for one in both):
            return WHOLE_LINE
        low = min(max(one.low, one.credible[0]) for one in both)
        high = max(min(one.high, one.credible[1]) for one in both)
        return (
            low if any(np.isfinite(one.credible[0]) for one in both) else -np.inf,
            high if any(np.isfinite(one.credible[1]) for one in both) else np.inf,
        )

    def seen_through(self, support: Any, step: Any) -> Targets:
        """Return the same with the support that the parameters of a calibrator ask for.

        Parameters
        ----------
        support : {"auto", None}, pair or Support
            With "auto", ends at which outcomes pile up are found by `regcal.ends.find_ends`. An
            object is taken as it is.
        step : {"auto", None} or float
            With "auto", the distance of values that are all multiples of it. With None, few such
            values still count as rounded, since a density at a lattice has no meaning.
        """
        if isinstance(support, Support):
            believed = self._believed(self._credible_ends(support), support)
            return replace(believed, support=support)
        told_step, told_ends = given_step(step), given_ends(support)
        told = Support(*(told_ends or WHOLE_LINE))
        credible = self._credible_ends(told)
        inner = self._without(credible)
        width = inner._found_step() if told_step is None else told_step
        exact = np.array_equal(self.exact, self.weights)
        few = len(inner._gaps) < _FEW_VALUES and exact
        lattice = inner._found_step() if width == 0 and few else 0.0
        ends = inner._found_ends() if told_ends is None else told_ends
        wanted = Support(
            *ends,
            step=width or lattice,
            smooth=lattice > 0,
            bare_low=not exact and -np.inf < ends[0] < inner.smallest_upper,
            bare_high=not exact and inner.largest_lower < ends[1] < np.inf,
        )
        return replace(self._believed(credible, wanted), support=wanted)

    def _credible_ends(self, told: Support) -> Ends:
        """Return the ends beyond which outcomes are gross errors.

        Those at a told end are none, and those beyond it are.
        """
        inside = (self.values > told.low) & (self.values < told.high)
        if not inside.any():
            return WHOLE_LINE
        low, high = credible_ends(self.values[inside], self.weights[inside], self.foreseen)
        low, high = max(low, self.credible[0]), min(high, self.credible[1])
        if self.low <= told.low:
            low = told.low if self.low < told.low else -np.inf
        if self.high >= told.high:
            high = told.high if self.high > told.high else np.inf
        return low, high

    def _without(self, ends: Ends) -> Targets:
        """Return the outcomes between some ends alone."""
        inside = (self.values > ends[0]) & (self.values < ends[1])
        if inside.all():
            return self
        values = self.values[inside]
        weights, exact = self.weights[inside], self.exact[inside]
        lowest, highest = (
            one[:, (one[0] > ends[0]) & (one[0] < ends[1])] for one in (self.lowest, self.highest)
        )
        return replace(
            self,
            values=values,
            weights=weights,
            exact=exact,
            low=float(values[0]),
            high=float(values[-1]),
            lowest=lowest,
            highest=highest,
            smallest_upper=max(self.smallest_upper, float(values[0])),
            largest_lower=min(self.largest_lower, float(values[-1])),
        )

    def _believed(self, ends: Ends, support: Support) -> Targets:
        """Return outcomes of which gross errors count as if they were at ends, and seen there."""
        low, high = ends
        if ends == WHOLE_LINE:
            return replace(self, credible=ends)
        if support.step > 0:
            low = float(support.step * np.floor(low / support.step))
            high = float(support.step * np.ceil(high / support.step))
        low = max(low, support.low) if np.isfinite(low) else low
        high = min(high, support.high) if np.isfinite(high) else high
        values, totals = _merged(np.clip(self.values, low, high), (self.weights, self.exact))
        lowest, highest = (
            np.stack([np.clip(one[0], low, high), one[1]]) for one in (self.lowest, self.highest)
        )
        return replace(
            self,
            values=values,
            weights=totals[0],
            exact=totals[1],
            low=max(self.low, low),
            high=min(self.high, high),
            lowest=_outermost(lowest, _no_values(), 1.0),
            highest=_outermost(highest, _no_values(), -1.0),
            credible=(low, high),
        )

    @cached_property
    def axis(self) -> Axis:
        """The axis on which values between the ends look most normal, along which maps see them."""
        if self.told_axis is not None:
            return self.told_axis
        inside = (self.values > self.support.low) & (self.values < self.support.high)
        return axis_of_values(self.values[inside], self.weights[inside])

    @cached_property
    def near(self) -> tuple[float, float]:
        """The range of outcomes up to where ends of the support would be far from all others."""
        values = self.values[(self.values > self.support.low) & (self.values < self.support.high)]
        if len(values) == 0 or values[0] == values[-1]:
            return self.low, self.high
        far = BEYOND_OTHERS * (values[-1] - values[0])
        return max(self.low, float(values[0] - far)), min(self.high, float(values[-1] + far))

    def _found_ends(self) -> tuple[float, float]:
        """Return ends that outcomes seen exactly pile up at, and no interval lies beyond."""
        low, high = self._ends_of_exact()
        return (
            low if low <= self.smallest_upper else -np.inf,
            high if high >= self.largest_lower else np.inf,
        )

    def _ends_of_exact(self) -> tuple[float, float]:
        if self.step == 0:
            return find_ends(self.values, self.exact)
        # where all outermost values are gross errors, nobody knows the next ones
        cells = np.stack([self.values, self.exact])
        lowest = self.lowest if self.lowest.size else cells[:, :1]
        highest = self.highest if self.highest.size else cells[:, -1:]
        # the outermost values and, at some place between them, all others
        rest = self.exact.sum() - lowest[1].sum() - highest[1].sum()
        middle = np.array([[0.5 * (lowest[0, -1] + highest[0, -1])], [rest]])
        low, high = find_ends(*np.concatenate([lowest, middle, highest[:, ::-1]], axis=1))
        return low if self.lowest.size else -np.inf, high if self.highest.size else np.inf

    def _found_step(self) -> float:
        """Return the smallest gap if all values are multiples of it, and shared by several rows."""
        gaps = self._gaps
        if not len(gaps) or self.weights.sum() < 2 * (len(gaps) + 1):
            return 0.0
        width = self.high - self.low
        step = width / np.round(width / gaps.min())
        steps = self.values / step
        return float(step) if np.abs(steps - np.round(steps)).max() < 1e-6 else 0.0

    @property
    def _gaps(self) -> Array:
        """Distances of neighbouring values, but for those that differ in their last digits.

        There are none where values were merged in cells.
        """
        if self.step > 0:
            return _empty()
        gaps = np.diff(self.values)
        return gaps[gaps > LAST_DIGITS * (self.high - self.low)]

    def rounded(self) -> Targets:
        """Return the same with a range and an axis that change rarely as rows are added."""
        if self.low >= self.high:
            return self
        part = power_of_two((self.high - self.low) / _PARTS)
        low, high = part * np.floor(self.low / part), part * np.ceil(self.high / part)
        return replace(self, low=float(low), high=float(high), told_axis=self.axis.rounded())

    def suits(self, other: Targets) -> bool:
        """Return whether thresholds laid out for these targets are as good for others.

        They lie beyond all of these by half of their range on the axis, and may lie beyond the
        others by a quarter less or more.
        """
        return self.support == other.support and self._reaches(other) and other._reaches(self)

    def _reaches(self, other: Targets) -> bool:
        if not self.low < self.high:
            return False
        low, high = self.axis(np.array([self.low, self.high]))
        first, last = self.axis(np.array([other.low, other.high]))
        spare = _SPARE * (high - low)
        return bool(low - spare <= first and last <= high + spare)

    def thresholds(self, spec: Any) -> Array:
        """Return thresholds as ``regcal.grids.make_thresholds`` does, within the support."""
        if isinstance(spec, int | np.integer) and not isinstance(spec, bool):
            return self.support.within(self._equally_spaced(int(spec)))
        values = np.clip(self.values, self.low, self.high)
        values[0], values[-1] = self.low, self.high
        return self.support.within(make_thresholds(spec, values, self.weights))

    def _equally_spaced(self, count: int) -> Array:
        """Return thresholds that are equally spaced on the axis, up to the ends of the support."""
        thresholds = check_increasing(EqualGrid(count).over(*self.near), "thresholds")
        if not self.support and self.axis.linear:
            return self.past_outcomes(thresholds)
        ends = np.clip(thresholds[[0, -1]], *self.support.ends)
        first, last = self.axis(ends)
        spaced = np.clip(self.axis.inverse(np.linspace(first, last, count)), *ends)
        return self.past_outcomes(spaced)

    def past_outcomes(self, thresholds: Array) -> Array:
        """Return thresholds of which those on an outcome are moved past its last digits.

        Else these would tell whether it is at most the threshold. Ends of the support stay.
        """
        low, high = self.support.ends
        slack = self._last_digits(thresholds)
        at = np.minimum(np.searchsorted(self.values, thresholds - slack), len(self.values) - 1)
        on = np.abs(self.values[at] - thresholds) <= slack
        on &= (thresholds > low) & (thresholds < high)
        return np.where(on, self.values[at] + 10.0 * slack, thresholds)

    def before_gaps(self) -> np.ndarray:
        """Return the numbers of values after which one follows that differs in more than digits."""
        return np.flatnonzero(np.diff(self.values) > self._last_digits(self.values[1:]))

    def _last_digits(self, places: Array) -> Array:
        """Return by how much numbers differ in their last digits, in parts of the axis's range.

        Of outcomes that differ by many powers of ten, those of the largest are wide.
        """
        low, high = self.axis(np.array([self.low, self.high]))
        return LAST_DIGITS * (high - low) / self.axis.slope(places)

    def share_below(self, points: Array) -> Array:
        """Return the share of weight at or below each point."""
        shares = np.concatenate([[0.0], np.cumsum(self.weights)]) / self.weights.sum()
        return shares[np.searchsorted(self.values, points, side="right")]


def _outermost(one: Array, other: Array, direction: float) -> Array:
    """Return the outermost distinct values of two sets of them, with total weights."""
    both = np.concatenate([one, other], axis=1)
    values, totals = _merged(direction * both[0], (both[1],))
    return np.stack([direction * values, totals[0]])[:, :_OUTERMOST]


def _outermost_values(values: Array, weights: Array) -> tuple[Array, Array]:
    """Return the lowest and the highest of increasing values that have a weight, with it."""
    seen = np.flatnonzero(weights)
    lowest, highest = seen[:_OUTERMOST], seen[: -_OUTERMOST - 1 : -1]
    return (
        np.stack([values[lowest], weights[lowest]]),
        np.stack([values[highest], weights[highest]]),
    )


def _outermost_rows(y: Array, weights: Array, cells: np.ndarray) -> tuple[Array, Array]:
    """Return the lowest and the highest distinct values of rows, which are in the outermost cells.

    So many cells that are not empty hold as many distinct values at least.
    """
    used = np.flatnonzero(np.bincount(cells, weights))
    first, last = used[:_OUTERMOST].max(initial=0), used[-_OUTERMOST:].min(initial=len(y))
    near = np.flatnonzero((cells <= first) | (cells >= last))
    values, totals = _merged(y[near], (weights[near],))
    return _outermost_values(values, totals[0])


def power_of_two(width: float) -> float:
    """Return the smallest power of two that is at least `width`; 0 for 0."""
    return float(2.0 ** np.ceil(np.log2(width))) if width > 0 else 0.0


def _width_of_cells(low: float, high: float) -> float:
    """Return the width of cells in which too many values between two ends are merged."""
    return power_of_two((high - low) / _MAX_VALUES)


def _credible_ends_of_many(y: Array, weights: Array, foreseen: Ends) -> Ends:
    """Return `credible_ends` where so many rows are asked that values may be merged."""
    if len(y) <= _MAX_VALUES:
        return WHOLE_LINE
    # sorting all takes as long as a fit; half of some are nearly always wide enough to tell
    some = np.sort(y[:: len(y) // _SOME])
    if none_gross(float(y.min()), float(y.max()), *some[[len(some) // 4, -(len(some) // 4)]]):
        return WHOLE_LINE
    values, totals = _merged(y, (weights,))
    return credible_ends(values, totals[0], foreseen)


def _cells_if_many(y: Array, low: float, step: float) -> np.ndarray | None:
    """Return cells of a width if it can be told without sorting that too many values are distinct.

    There are as many at least as narrower cells that are not empty.
    """
    if len(y) <= _MAX_VALUES or step < np.finfo(float).tiny:
        return None
    narrow = y / (step / _NARROWER)
    np.floor(narrow, out=narrow)
    narrow -= _NARROWER * np.floor(low / step)
    cells = narrow.astype(np.intp)
    filled = np.zeros(int(cells.max()) + 1, dtype=bool)
    filled[cells] = True
    if np.count_nonzero(filled) <= _MAX_VALUES:
        return None
    cells //= _NARROWER
    return cells


def _in_given_cells(y: Array, weights: Sequence[Array], cells: np.ndarray) -> tuple[Array, Array]:
    """Return the weighted mean of each cell, with totals of several weights."""
    counts = np.bincount(cells)
    used = np.flatnonzero(counts)
    counts = counts[used]
    if all(map(all_equal, weights)):
        totals = [one[0] * counts for one in weights]
        return np.bincount(cells, y)[used] / counts, np.stack(totals)
    *sums, of_values = (np.bincount(cells, one)[used] for one in (*weights, weights[0] * y))
    return of_values / sums[0], np.stack(sums)


def _merged(y: Array, weights: Sequence[Array]) -> tuple[Array, Array]:
    """Return distinct values with totals of several weights."""
    if all(map(all_equal, weights)):  # sorting numbers is faster than sorting their places
        kept, counts = np.unique(y, return_counts=True)
        return kept, np.stack([one[0] * counts for one in weights])
    kept, place = np.unique(y, return_inverse=True)
    return kept, np.stack([np.bincount(place, one, len(kept)).astype(float) for one in weights])
