"""Calibration rows that are kept as they are: all of them while few, a sample beyond.

Depends on the distributions only.
"""

import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from scipy.special import ndtr

from regcal._validation import Array
from regcal.distributions import Distribution, Quantiles, concatenate
from regcal.distributions.stacked import joined

# So many rows are kept. While there are no more, a summary is the rows themselves.
MAX_ROWS = 2**14

# Sampled rows of classes that cannot be joined are tabulated at these probits.
_PROBITS = np.linspace(-6.0, 6.0, 97)


@dataclass(frozen=True)
class Rows:
    """Predictions, outcomes and weights of rows."""

    dist: Distribution
    y: Array
    weights: Array

    def __iter__(self) -> Iterator[Any]:
        return iter((self.dist, self.y, self.weights))


@dataclass(frozen=True)
class KeptRows:
    """Rows with random priorities: the `MAX_ROWS` of largest priority stay.

    Priority sampling (Duffield, Lund and Thorup, 2007): a row of weight w has the priority w / U
    for a uniform U. With the largest priority that was dropped, max(w, dropped) is an unbiased
    weight for what a kept row stands for, and samples of disjoint sets of rows merge.

    Parameters
    ----------
    parts : tuple of Rows
    priorities : tuple of ndarray
        Of the rows of each part.
    dropped : float
        Largest priority of a row that is not kept; 0 while all are.
    """

    parts: tuple[Rows, ...] = ()
    priorities: tuple[Array, ...] = ()
    dropped: float = 0.0

    @property
    def complete(self) -> bool:
        """Whether no row has been dropped."""
        return self.dropped == 0

    def __len__(self) -> int:
        return sum(len(part.y) for part in self.parts)

    def add(self, rows: Rows, seed: int) -> Self:
        """Return these rows and more, dropping the least if they are too many."""
        priorities = rows.weights / _uniform(rows.y, seed)
        wanted = np.flatnonzero(priorities > self.dropped)
        # taken even if all are wanted, since the caller may use the arrays for the next batch
        return self._with([_take(rows, wanted)], [priorities[wanted]], self.dropped)

    def merge(self, other: "KeptRows") -> "KeptRows":
        """Return the rows of both, dropping the least if they are too many."""
        return self._with(other.parts, other.priorities, max(self.dropped, other.dropped))

    def _with(self, parts: Sequence[Rows], priorities: Sequence[Array], dropped: float) -> Self:
        more = [k for k, part in enumerate(parts) if len(part.y)]
        kept = replace(
            self,
            parts=(*self.parts, *(parts[k] for k in more)),
            priorities=(*self.priorities, *(priorities[k] for k in more)),
            dropped=dropped,
        )
        crowded = len(kept) > MAX_ROWS * (1.0 if kept.complete else 1.5) or len(kept.parts) > 256
        return kept.trimmed() if crowded else kept

    def trimmed(self) -> Self:
        """Return at most `MAX_ROWS` rows, in one part where that is possible."""
        priorities = np.concatenate(self.priorities)
        order = np.argsort(-priorities, kind="stable")
        dropped = float(priorities[order[MAX_ROWS:]].max(initial=self.dropped))
        chosen = np.zeros(len(order), dtype=bool)
        chosen[order[:MAX_ROWS]] = True
        chosen &= priorities > dropped
        masks = np.split(chosen, np.cumsum([len(part.y) for part in self.parts])[:-1])
        parts = [
            _take(part, np.flatnonzero(mask))
            for part, mask in zip(self.parts, masks, strict=True)
            if mask.any()
        ]
        if dropped == 0:
            return replace(self, parts=(_joined_rows(parts),), priorities=(priorities,))
        whole = _joined_rows([replace(part, dist=_plain(part.dist)) for part in parts])
        return replace(self, parts=(whole,), priorities=(priorities[chosen],), dropped=dropped)

    def all(self) -> Rows:
        """Return the rows in one batch, with the weights of what they stand for."""
        if len(self.parts) == 1 and len(self) <= MAX_ROWS:
            rows = self.parts[0]
        elif self.complete:
            rows = _joined_rows(self.parts)
        else:
            return self.trimmed().all()
        return replace(rows, weights=np.maximum(rows.weights, self.dropped))


def _take(rows: Rows, places: np.ndarray) -> Rows:
    return Rows(rows.dist[places], rows.y[places], rows.weights[places])


def _joined_rows(parts: Sequence[Rows]) -> Rows:
    dists = [part.dist for part in parts]
    whole = joined(dists)
    return Rows(
        concatenate(dists) if whole is None else whole,
        np.concatenate([part.y for part in parts]),
        np.concatenate([part.weights for part in parts]),
    )


def _plain(dist: Distribution) -> Distribution:
    """Return rows that hold nothing but their own arrays; a table of quantiles if need be."""
    if joined([dist, dist]) is not None:
        return dist
    return Quantiles(ndtr(_PROBITS), dist.from_probit(_PROBITS[np.newaxis, :]))


def _uniform(y: Array, seed: int) -> Array:
    """Return numbers in (0, 1] that follow from the rows, so that a repeated run repeats them."""
    generator = np.random.default_rng([seed, zlib.crc32(np.ascontiguousarray(y).tobytes())])
    return 1.0 - generator.random(len(y))
