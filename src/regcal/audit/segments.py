"""Covariates and groups become segments of the rows: levels, ranges of numbers, missing values."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from regcal._validation import Array
from regcal.covariates import Column, Covariates
from regcal.grids import QuantileGrid

# Numbers are cut at quantiles into so many segments: fifths are small enough to show a trend, and
# large enough to see a difference in a thousand rows.
_N_RANGES = 5

# Levels of a covariate beyond the most frequent ones are a segment together: each further segment
# makes it harder to tell those that matter from chance.
_MOST_LEVELS = 20

# Levels of a group that a search can hold in memory.
_MOST_GROUPS = 1000


@dataclass(frozen=True)
class Segments:
    """To which segments each row belongs: one of every source.

    Attributes
    ----------
    sources : tuple of str
        The covariate or group of each segment; empty for all rows together.
    labels : tuple of str
        What a segment is called: ``age < 7``.
    codes : ndarray of shape (n_rows, n_sources)
        Numbers of the segments that a row belongs to.
    """

    sources: tuple[str, ...]
    labels: tuple[str, ...]
    codes: np.ndarray

    def __len__(self) -> int:
        return len(self.labels)


def make_segments(
    n_rows: int, covariates: Covariates | None, groups: Covariates | None, weights: Array
) -> Segments:
    """Return the segments of covariates and groups, and all rows together as the first.

    Parameters
    ----------
    n_rows : int
    covariates, groups : Covariates or None
        Numbers among the groups are labels, as categories are.
    weights : ndarray of shape (n_rows,)

    Examples
    --------
    >>> import numpy as np
    >>> from regcal.audit.segments import make_segments
    >>> from regcal.covariates import Covariates
    >>> age = Covariates.of({"age": [1, 2, 3, 4, 5, 6, 7, 8, 9, None]})
    >>> make_segments(10, age, None, np.ones(10)).labels[1:4]
    ('age < 2', '2 <= age < 4', '4 <= age < 6')
    """
    sources, labels = [""], ["all rows"]
    codes = [np.zeros(n_rows, dtype=np.intp)]
    for name, (own_labels, own_codes) in _divided(covariates, groups, weights):
        used, places = np.unique(own_codes, return_inverse=True)
        codes.append(len(labels) + places)
        sources += [name] * len(used)
        labels += [own_labels[k] for k in used]
    return Segments(tuple(sources), tuple(labels), np.column_stack(codes))


Divided = tuple[list[str], np.ndarray]


def _divided(
    covariates: Covariates | None, groups: Covariates | None, weights: Array
) -> Iterator[tuple[str, Divided]]:
    """Yield the labels of each column's segments, and the number of each row's segment."""
    for column in covariates.columns if covariates is not None else ():
        divide = _ranges if _has_many_values(column) else _levels
        yield column.name, divide(column, weights)
    for column in groups.columns if groups is not None else ():
        yield column.name, _all_levels(column)


def _has_many_values(column: Column) -> bool:
    """Whether a column holds more different numbers than ranges; a few rows may tell."""
    return column.kind == "number" and (
        len(_distinct(replace(column, values=column.values[:1000]))) > _N_RANGES
        or len(_distinct(column)) > _N_RANGES
    )


def _distinct(column: Column) -> np.ndarray:
    return np.unique(column.values[~column.missing])


def _ranges(column: Column, weights: Array) -> Divided:
    """Return numbers cut at quantiles."""
    known = ~column.missing
    values = column.values[known]
    cuts = QuantileGrid(_N_RANGES - 1).thresholds(values, weights[known])
    if cuts[0] == values.min():  # a value that many rows share is a range of its own
        cuts = np.unique(np.r_[values[values > cuts[0]].min(), cuts[1:]])
    labels = [*_range_labels(column.name, cuts), f"{column.name} is missing"]
    places = np.searchsorted(cuts, column.values, side="right")
    return labels, np.where(known, places, len(cuts) + 1)


def _range_labels(name: str, cuts: Array) -> list[str]:
    shown = _shown(cuts)
    inner = [f"{a} <= {name} < {b}" for a, b in pairwise(shown)]
    return [f"{name} < {shown[0]}", *inner, f"{name} >= {shown[-1]}"]


def _shown(values: Array) -> list[str]:
    """Return numbers with as few digits as tell them apart, four at least."""
    for digits in range(4, 17):
        shown = [f"{value:.{digits}g}" for value in values]
        if len(set(shown)) == len(values):
            break
    return shown


def _coded_levels(column: Column) -> Divided:
    """Return the label of each level, that of missing values last, and each row's level."""
    names = [str(level) for level in column.levels]
    codes = column.values
    if column.kind == "number":
        values = _distinct(column)
        names = _shown(values) if len(values) else []
        codes = np.searchsorted(values, column.values)
    labels = [f"{column.name} = {name}" for name in names] + [f"{column.name} is missing"]
    return labels, np.where(column.missing, len(names), codes)


def _levels(column: Column, weights: Array) -> Divided:
    """Return the levels of a covariate, of which rare ones are put together."""
    labels, codes = _coded_levels(column)
    n_levels = len(labels) - 1
    totals = np.bincount(codes, weights, n_levels + 1)[:n_levels]
    if np.count_nonzero(totals) <= _MOST_LEVELS:
        return labels, codes
    frequent = np.argsort(-totals, kind="stable")[: _MOST_LEVELS - 1]
    kept = np.append(np.isin(np.arange(n_levels), frequent), True)
    n_rare = np.count_nonzero(totals) - len(frequent)
    labels.append(f"{column.name} is one of {n_rare} rare levels")
    return labels, np.where(kept[codes], codes, n_levels + 1)


def _all_levels(column: Column) -> Divided:
    labels, codes = _coded_levels(column)
    n_used = len(np.unique(codes))
    if n_used > _MOST_GROUPS:
        msg = (
            f"groups: column {column.name!r} has {n_used} levels; {_MOST_GROUPS} are the most. "
            "Pass it as one of the covariates, whose numbers are cut into ranges and whose rare "
            "levels are put together."
        )
        raise ValueError(msg)
    return labels, codes
