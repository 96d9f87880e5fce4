"""What an audit found: segments in which predictions are wrong, as objects, text and tables."""

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
    """One segment of the rows, at the threshold that says most against its predictions.

    Attributes
    ----------
    covariate : str
        Where the segment comes from; empty for all rows together.
    segment : str
        Its rows in words: ``age < 7``.
    n_rows : int
    weight : float
        Their total weight.
    threshold : float
    predicted, observed : float
        Mean P(Y <= threshold), and the share of outcomes for which that was so.
    lower, upper : float
        Where `difference` stays by chance, in all segments and at all thresholds at once, in 95
        of 100 searches of calibrated predictions.
    statistic : float
        The standardised sum S at the threshold.
    p_value : float
        Adjusted for the search: it is small in one search of twenty by chance, whatever the number
        of segments and thresholds.

    Examples
    --------
    >>> import regcal
    >>> dist = regcal.Normal([0.0] * 60, 1.0)
    >>> audit = regcal.audit([-3.0, 3.0] * 30, dist, {"x": [1, 2] * 30}, thresholds=[0.0])
    >>> segment = audit.segments[0]
    >>> print(segment)
    x = 1: P(Y <= 0) was 0.50, observed 1.00 (30 rows), p < 0.001
    >>> segment.upper < segment.difference
    True
    """

    covariate: str
    segment: str
    n_rows: int
    weight: float
    threshold: float
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

    def __str__(self) -> str:
        return (
            f"{self.segment}: P(Y <= {self.threshold:.4g}) was {self.predicted:.2f}, observed "
            f"{self.observed:.2f} ({self.n_rows:,} rows), {p_in_words(self.p_value)}"
        )


@dataclass(frozen=True, repr=False)
class Audit:
    """Whether predictions are calibrated in every segment of the rows, and where not.

    Attributes
    ----------
    p_value : float
        Of the whole search: how often the worst segment of calibrated predictions looks as bad.
    segments : tuple of AuditedSegment
        The worst first.
    thresholds : ndarray of shape (n_thresholds,)
    predicted, observed, statistics, p_values : ndarray of shape (n_segments, n_thresholds)
        For the segments in their order, at all thresholds.
    n_rows : int
    costs : tuple of DecisionCost
        What decisions cost, if `costs` were given; the worst predicted first. Their standard
        errors are not adjusted for the search.
    note : str
        What was done with censored outcomes.

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
    thresholds: Array
    predicted: Array
    observed: Array
    statistics: Array
    p_values: Array
    n_rows: int
    costs: tuple[DecisionCost, ...] = ()
    note: str = ""

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
        thresholds = _number_of(self.thresholds, "threshold")
        rows = f"{self.n_rows:,} rows: {p_in_words(self.p_value)}"
        searched = f"{segments} at {thresholds}, {rows}"
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
