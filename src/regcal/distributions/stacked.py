"""Batches put below each other, such as the out-of-fold predictions of several models."""

from collections.abc import Sequence
from dataclasses import fields
from typing import Any, Self

import numpy as np

from regcal._validation import Array
from regcal.distributions.base import Distribution
from regcal.maps import RationalQuadraticSpline
from regcal.maps.members import Members


def concatenate(parts: Sequence[Distribution]) -> Distribution:
    """Return one batch with the rows of all parts, in order.

    Parameters
    ----------
    parts : sequence of Distribution
        Of any classes and lengths.

    Returns
    -------
    Distribution

    Examples
    --------
    >>> from regcal import Normal, concatenate
    >>> dist = concatenate([Normal([0.0, 1.0], 1.0), Normal([5.0], 2.0)])
    >>> dist.mean()
    array([0., 1., 5.])
    """
    if len(parts) == 0:
        msg = "There is nothing to concatenate. Pass at least one distribution."
        raise ValueError(msg)
    return parts[0] if len(parts) == 1 else Stacked(parts)


def joined(parts: Sequence[Distribution]) -> Distribution | None:
    """Return one batch of the parts' own class, or None where they cannot be put in one.

    Unlike `concatenate`, it copies the rows, and the parts may go.
    """
    first = parts[0]
    kinds = {type(part) for part in parts}
    if len(kinds) > 1 or not first._row_fields:
        return None
    shared = set(first.__getstate__()) - set(first._row_fields)
    if not all(_equal(getattr(first, name), getattr(p, name)) for name in shared for p in parts):
        return None
    whole = object.__new__(type(first))
    vars(whole).update({name: getattr(first, name) for name in shared})
    lengths = [len(part) for part in parts]
    for name in first._row_fields:
        value = _joined_field([getattr(part, name) for part in parts], lengths)
        if value is None:
            return None
        setattr(whole, name, value)
    return whole


def joint(parts: Sequence[Distribution], members: Members) -> Distribution | None:
    """Return one batch that answers for the rows of all parts at once, or None if there is none.

    Unlike what `joined` returns, it may refer to the parts' own maps: it is made to be asked.
    """
    first = type(parts[0])
    if any(type(part) is not first for part in parts):
        return None
    return first._joint(parts, members) or joined(parts)


def _equal(a: Any, b: Any) -> bool:
    if isinstance(a, np.ndarray):
        return np.array_equal(a, b)
    if hasattr(a, "_updated_ctor_param"):  # scipy.stats copies a family each time it is frozen
        return type(a) is type(b) and a._updated_ctor_param() == b._updated_ctor_param()
    return bool(a == b)


def _joined_field(values: Sequence[Any], lengths: Sequence[int]) -> Any:
    first = values[0]
    if isinstance(first, Distribution):
        return joined(values)
    if isinstance(first, list):
        if len({len(value) for value in values}) > 1:
            return None
        items = [_joined_field(item, lengths) for item in zip(*values, strict=True)]
        return None if any(item is None for item in items) else items
    if isinstance(first, RationalQuadraticSpline):
        names = [field.name for field in fields(first)]
        parts = [_joined_field([getattr(v, name) for v in values], lengths) for name in names]
        return None if any(part is None for part in parts) else RationalQuadraticSpline(*parts)
    if len({value.shape[1:] for value in values}) > 1:
        return None
    # what all rows of a part share has one entry
    return np.concatenate(
        [np.broadcast_to(v, (n, *v.shape[1:])) for v, n in zip(values, lengths, strict=True)]
    )


class Stacked(Distribution):
    """The rows of several batches; every row is computed by the batch it comes from.

    Parameters
    ----------
    parts : sequence of Distribution
        Of any classes and lengths.
    """

    def __init__(self, parts: Sequence[Distribution]) -> None:
        self.parts = list(parts)
        self._part = np.repeat(np.arange(len(parts)), [len(part) for part in parts])
        self._row = np.concatenate([np.arange(len(part)) for part in parts])
        self._work_per_point = max(part._work_per_point for part in parts)

    def __len__(self) -> int:
        return len(self._part)

    def _details(self) -> list[str]:
        return [f"{len(self.parts)} parts"]

    def _take(self, rows: np.ndarray) -> Self:
        taken = object.__new__(type(self))
        taken.parts, taken._work_per_point = self.parts, self._work_per_point
        taken._part, taken._row = self._part[rows], self._row[rows]
        return taken

    def _groups(self) -> list[tuple[np.ndarray, Distribution]]:
        """Return, for each part in use, the places of its rows and those rows."""
        groups = []
        for k, part in enumerate(self.parts):
            places = np.flatnonzero(self._part == k)
            if len(places):
                groups.append((places, part._take(self._row[places])))
        return groups

    def _by_part(self, method: str, points: Array) -> Array:
        values = np.empty((len(self), points.shape[1]))
        for places, part in self._groups():
            values[places] = getattr(part, method)(points if len(points) == 1 else points[places])
        return values

    def _cdf(self, points: Array) -> Array:
        return self._by_part("_cdf", points)

    def _sf(self, points: Array) -> Array:
        return self._by_part("_sf", points)

    def _logcdf(self, points: Array) -> Array:
        return self._by_part("_logcdf", points)

    def _logsf(self, points: Array) -> Array:
        return self._by_part("_logsf", points)

    def _pdf(self, points: Array) -> Array:
        return self._by_part("_pdf", points)

    def _logpdf(self, points: Array) -> Array:
        return self._by_part("_logpdf", points)

    def _logmass(self, points: Array) -> Array:
        return self._by_part("_logmass", points)

    def _ends(self) -> tuple[float, ...]:
        return tuple(sorted({end for part in self.parts for end in part._ends()}))

    def _probit(self, points: Array) -> Array:
        return self._by_part("_probit", points)

    def _probit_and_logslope(self, points: Array) -> tuple[Array, Array]:
        z, logslope = np.empty((2, len(self), points.shape[1]))
        for places, part in self._groups():
            own = points if len(points) == 1 else points[places]
            z[places], logslope[places] = part._probit_and_logslope(own)
        return z, logslope

    def _from_probit(self, probits: Array) -> Array:
        return self._by_part("_from_probit", probits)

    def _ppf(self, levels: Array) -> Array:
        return self._by_part("_ppf", levels)

    def _crps(self, lower: Array, upper: Array, start: Array, end: Array) -> Array:
        values = np.empty(len(self))
        for places, part in self._groups():
            values[places] = part._crps(*(c[places] for c in (lower, upper, start, end)))
        return values

    def _mean_and_var(self) -> tuple[Array, Array]:
        mean, var = np.empty(len(self)), np.empty(len(self))
        for places, part in self._groups():
            mean[places], var[places] = part._moments
        return mean, var

    def _kinks(self) -> Array | None:
        """Return the parts' kinks; a row that has fewer than others repeats its median."""
        kinks = [(places, part._kinks()) for places, part in self._groups()]
        width = max((k.shape[1] for _, k in kinks if k is not None), default=0)
        if width == 0:
            return None
        table = np.repeat(self._from_probit(np.zeros((1, 1))), width, axis=1)
        for places, own in kinks:
            if own is not None:
                table[places, : own.shape[1]] = own
        return table
