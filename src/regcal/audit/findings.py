"""What an audit found: segments in which predictions are wrong, as objects, text and tables."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sized
from dataclasses import dataclass, fields
from typing import Any

from regcal._inspection import notebook_card
from regcal._validation import Array
from regcal.audit.costs import DecisionCost

# Segments that a text names; a table has all.
_NAMED = 10

# A segment is called wrong where that is right for 19 of 20 searches.
SIGNIFICANT = 0.05


@dataclass(frozen=True)
class AuditedSegment:
    """One segment of the rows, with the event that says most against its predictions.

    Attributes
    ----------
    covariate : str
        Where the segment comes from; empty for all rows together.
    segment : str
        Its rows in words: ``age < 7``.
    n_rows : int
    weight : float
        Their total weight.
    kind : str
        The event is Y <= t at a ``"threshold"``, that a central interval of some ``"coverage"``
        holds Y, or that Y is ``"below"`` or ``"above"`` it.
    place : float
        Threshold, nominal coverage, or share beyond that end of the interval.
    predicted, observed : float
        Mean probability of the event, and the share of outcomes for which it happened.
    lower, upper : float
        Where `difference` stays by chance, in all segments and for all events at once, in 95
        of 100 searches of calibrated predictions.
    statistic : float
        The standardised sum S of the event.
    p_value : float
        Adjusted for the search: it is small in one search of twenty by chance, whatever the number
        of segments, thresholds and intervals.

    Examples
    --------
    >>> import regcal
    >>> dist = regcal.Normal([0.0] * 60, 1.0)
    >>> y, x = [-3.0, 3.0] * 30, {"x": [1, 2] * 30}
    >>> segment = regcal.audit(y, dist, x, thresholds=[0.0], coverage=()).segments[0]
    >>> print(segment)
    x = 1: P(Y <= 0) was 0.50, observed 1.00 (30 rows), p < 0.001
    >>> segment.upper < segment.difference
    True
    >>> print(regcal.audit(y, dist, x, thresholds=[0.0]).segments[0])
    all rows: 90 % intervals hold 0 % (60 rows), p < 0.001
    """

    covariate: str
    segment: str
    n_rows: int
    weight: float
    kind: str
    place: float
    predicted: float
    observed: float
    lower: float
    upper: float
    statistic: float
    p_value: float

    @property
    def difference(self) -> float:
        """Observed share less predicted probability."""
        return self.observed - self.predicted

    def event(self, target: str = "Y") -> str:
        """Return what was predicted and observed, in words for a cell of a table."""
        if self.kind == "threshold":
            return f"{target} <= {self.place:.4g}"
        if self.kind == "coverage":
            return f"{target} in its {_percent(self.place)} interval"
        return f"{target} {self._beyond_quantile('its')}"

    def _beyond_quantile(self, article: str) -> str:
        level = self.place if self.kind == "below" else 1.0 - self.place
        return f"{self.kind} {article} {_percent(level)} quantile"

    def _found(self) -> str:
        """Return what was predicted and observed as a clause."""
        if self.kind == "threshold":
            return f"P({self.event()}) was {self.predicted:.2f}, observed {self.observed:.2f}"
        # as many digits as tell the share from the one that was promised
        distance = max(100.0 * abs(self.difference), 1e-3)
        observed = f"{100.0 * self.observed:.{max(0, math.ceil(-math.log10(distance)))}f} %"
        if self.kind == "coverage":
            return f"{_percent(self.place)} intervals hold {observed}"
        return f"{observed} lie {self._beyond_quantile('the')}"

    def __str__(self) -> str:
        rows = f"{self.n_rows:,} row{'s' if self.n_rows != 1 else ''}"
        return f"{self.segment}: {self._found()} ({rows}), {p_in_words(self.p_value)}"


@dataclass(frozen=True, repr=False)
class Audit:
    """Whether predictions are calibrated in every segment of the rows, and where not.

    Attributes
    ----------
    p_value : float
        Of the whole search: how often the worst segment of calibrated predictions looks as bad.
    segments : tuple of AuditedSegment
        The worst first.
    kinds : tuple of str
    places : ndarray of shape (n_events,)
        The events that were counted, as in `AuditedSegment`: thresholds first, then intervals.
    predicted, observed, statistics, p_values : ndarray of shape (n_segments, n_events)
        For the segments in their order, of all events.
    n_rows : int
    costs : tuple of DecisionCost
        What decisions cost, if `costs` were given; the worst predicted first. Their standard
        errors are not adjusted for the search.
    note : str
        What was done with censored outcomes, and with those on point masses.

    Examples
    --------
    >>> import numpy as np
    >>> import regcal
    >>> rng = np.random.default_rng(0)
    >>> age = rng.uniform(0.0, 10.0, 2000)
    >>> y = rng.normal(np.where(age < 2, -0.5, 0.0))
    >>> audit = regcal.audit(y, regcal.Normal(np.zeros(2000), 1.0), {"age": age})
    >>> audit.segments[0].segment
    'age < 1.94'
    """

    p_value: float
    segments: tuple[AuditedSegment, ...]
    kinds: tuple[str, ...]
    places: Array
    predicted: Array
    observed: Array
    statistics: Array
    p_values: Array
    n_rows: int
    costs: tuple[DecisionCost, ...] = ()
    note: str = ""

    @property
    def thresholds(self) -> Array:
        """Where P(Y <= t) was judged."""
        return self._places_of("threshold")

    @property
    def coverage(self) -> Array:
        """Nominal coverage of the intervals that were judged."""
        return self._places_of("coverage")

    def _places_of(self, kind: str) -> Array:
        return self.places[[one == kind for one in self.kinds]]

    @property
    def wrong(self) -> tuple[AuditedSegment, ...]:
        """The segments whose adjusted p-value is below 0.05."""
        return tuple(one for one in self.segments if one.p_value < SIGNIFICANT)

    def table(self) -> Any:
        """Return a row per segment: a pandas frame, or a list of dicts without pandas."""
        return as_table(map(_record, self.segments))

    def cost_table(self) -> Any:
        """Return a row per segment and decision, like `table`."""
        return as_table(map(_record, self.costs))

    def headline(self) -> str:
        """Return what was found in one sentence."""
        segments = _number_of(self.segments, "segment")
        places = _number_of(self.thresholds, "threshold")
        if len(self.coverage):
            places += f" and {_number_of(self.coverage, 'interval')}"
        rows = f"{self.n_rows:,} rows: {p_in_words(self.p_value)}"
        searched = f"{segments} at {places}, {rows}"
        if self.p_value >= SIGNIFICANT:
            return f"No sign of miscalibration in any segment ({searched})."
        return f"Not calibrated in {len(self.wrong)} of {searched}."

    def __str__(self) -> str:
        wrong = self.wrong
        lines = [self.headline(), *(f"  {one}" for one in wrong[:_NAMED])]
        if len(wrong) > _NAMED:
            lines.append(f"  and {len(wrong) - _NAMED} more; audit.table() has all")
        if not wrong:
            lines.append(f"  the largest difference beside its chance: {self.segments[0]}")
        lines += [f"  {cost}" for cost in self.costs if not cost.covariate][:1]
        return "\n".join([*lines, self.note] if self.note else lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return notebook_card(self)


def shown_p(p_value: float) -> str:
    """Return a p-value with two digits; of a smaller one than a simulation knows, only that."""
    return f"{p_value:.2g}" if p_value >= 0.001 else "< 0.001"


def p_in_words(p_value: float) -> str:
    """Return a p-value in words that fit into a sentence."""
    shown = shown_p(p_value)
    return f"p {shown}" if shown.startswith("<") else f"p = {shown}"


def _percent(share: float) -> str:
    return f"{100.0 * share:.4g} %"


def _number_of(things: Sized, name: str) -> str:
    return f"{len(things)} {name}{'s' if len(things) != 1 else ''}"


def as_table(records: Iterable[dict[str, Any]]) -> Any:
    """Return a pandas frame of records, or a list of them without pandas."""
    records = list(records)
    try:
        import pandas as pd
    except ImportError:
        return records
    return pd.DataFrame(records)


def _record(row: Any) -> dict[str, Any]:
    """Return the attributes of a row, its difference after what it is the difference of."""
    record = {}
    for field in fields(row):
        record[field.name] = getattr(row, field.name)
        if field.name in ("observed", "realised"):
            record["difference"] = row.difference
    return record
