"""Batches that are read alike, so that a row says the same whatever other rows it comes with."""

import copy
import operator
from collections.abc import Iterable

import numpy as np

from regcal._validation import Array
from regcal.distributions.base import Distribution
from regcal.distributions.clipped import Clipped
from regcal.distributions.mixture import Mixture
from regcal.distributions.quantiles import Quantiles
from regcal.distributions.reading import Reading
from regcal.distributions.rounded import Rounded
from regcal.distributions.samples import Samples
from regcal.distributions.stacked import Stacked

Readings = tuple[Reading, ...]

_GOLDEN = 0.5 * (np.sqrt(5.0) - 1.0)

# Where batches that consist of others keep them. What calibrators return is not here: they have
# read what they were given.
_PARTS = {Mixture: "components", Stacked: "parts", Clipped: "base", Rounded: "base"}

# What rows hold that they have not taken from others, where that is not all they hold.
_TOLD = {Samples: ("draws",), Quantiles: ("values",)}


def merged(readings: Iterable[Reading]) -> Readings:
    """Return one reading of each kind."""
    kinds: dict[str, Reading] = {}
    for one in readings:
        known = kinds.get(one.kind, one)
        kinds[one.kind] = known if known == one else known.merge(one)
    return tuple(kinds[kind] for kind in sorted(kinds))


def readings_of(*dists: Distribution) -> Readings:
    """Return how the draws and quantiles in batches are read."""
    told: list[Reading] = []
    for dist in dists:
        if type(dist) in _PARTS:
            told += readings_of(*_parts(dist))
        elif isinstance(dist, Samples | Quantiles):
            told.append(dist.reading)
    return merged(told)


def read(dist: Distribution, readings: Readings) -> Distribution:
    """Return a batch whose draws and quantiles are read as those of other batches were."""
    if isinstance(dist, Samples | Quantiles):
        known = [one for one in readings if one.kind == dist.reading.kind]
        return dist.read(known[0]) if known else dist
    if type(dist) not in _PARTS:
        return dist
    parts = _parts(dist)
    again = [read(part, readings) for part in parts]
    if all(map(operator.is_, parts, again)):
        return dist
    same, name = copy.copy(dist), _PARTS[type(dist)]
    setattr(same, name, again if isinstance(getattr(dist, name), list) else again[0])
    return same


def _parts(dist: Distribution) -> list[Distribution]:
    held = getattr(dist, _PARTS[type(dist)])
    return held if isinstance(held, list) else [held]


def row_keys(dist: Distribution) -> list[Array]:
    """Return numbers by which rows that say different things can be told apart.

    Two rows may say the same of one target, as of a mass, and differ elsewhere. What a row takes
    from the others of its batch is no part of them. Batches below each other have their own.
    """
    if isinstance(dist, Stacked):
        return _stacked_keys(dist)
    keys: list[Array] = []
    for name in _TOLD.get(type(dist), dist._row_fields):
        held = getattr(dist, name)
        for part in held if isinstance(held, list) else [held]:
            if isinstance(part, Distribution):
                keys += row_keys(part)
            elif isinstance(part, np.ndarray) and part.ndim <= 2 and part.shape[:1] == (len(dist),):
                columns = part.reshape(len(dist), -1)
                if not np.isfinite(columns).all():
                    columns = np.nan_to_num(columns)
                # no weights are alike, so that the order of columns counts
                weights = 1.0 + np.arange(columns.shape[1]) * _GOLDEN % 1.0
                keys.append(columns @ weights)
    return keys


def _stacked_keys(dist: Stacked) -> list[Array]:
    """Return the keys of all batches, with zeros where a batch has fewer."""
    # benchmarks/quality.py, three folds of boosted quantiles on articles: without them 181 of 610
    # rows, which are as sure of a zero, count as one row, and "auto" leaves a model as it is that
    # loses 4.5 nats
    parts = [(places, row_keys(part)) for places, part in dist._groups()]
    keys = np.zeros((max(len(own) for _, own in parts), len(dist)))
    for places, own in parts:
        keys[: len(own), places] = own
    return list(keys)


def says_the_same(dist: Distribution, again: Distribution) -> bool:
    """Whether a batch that was read anew says what it said before, to the last digit."""
    if dist is again:
        return True
    if not (isinstance(dist, Samples | Quantiles) and isinstance(again, type(dist))):
        return False
    same = (getattr(dist, name) is getattr(again, name) for name in dist._row_fields)
    return (dist.low, dist.high) == (again.low, again.high) and all(same)
