"""A bounded sample of rows, which merges: all of them while few."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from scipy.special import ndtr

from regcal._validation import Array
from regcal.calibrators.held_out import HeldOut, without_last_digits
from regcal.distributions import Distribution, Quantiles
from regcal.distributions.stacked import joined

# So many rows are kept.
MAX_ROWS = 2**14

# Parts are joined when there are so many of them.
_MAX_PARTS = 256

# Sampled rows of classes that cannot be joined are tabulated at these probits.
_PROBITS = np.linspace(-6.0, 6.0, 97)


@dataclass(frozen=True)
class Sample:
    """Rows with random priorities: the `MAX_ROWS` of largest priority stay.

    Priority sampling (Duffield, Lund and Thorup, 2007): a row of weight w has the priority w / U
    for a uniform U. With the largest priority that was dropped, max(w, dropped) is an unbiased
    weight for what a kept row stands for, and samples of disjoint sets of rows merge.

    U follows from the row itself, from seven digits of the outcome and of its probit: neither the
    order of rows nor the last digit of a number matters, and rows that are equal are one row.

    Parameters
    ----------
    parts : tuple of HeldOut
    uniforms : tuple of ndarray
        U of the rows of each part.
    dropped : float
        Largest priority of a row that is not kept; 0 while all are.
    """

    parts: tuple[HeldOut, ...] = ()
    uniforms: tuple[Array, ...] = ()
    dropped: float = 0.0

    @property
    def complete(self) -> bool:
        """Whether no row has been dropped."""
        return self.dropped == 0

    def __len__(self) -> int:
        return sum(map(len, self.parts))

    def add(self, rows: HeldOut) -> Self:
        """Return these rows and more, dropping the least if they are too many."""
        uniforms = uniforms_of(rows)
        if not self.complete:
            known = np.isin(uniforms, np.concatenate(self.uniforms))
            wanted = np.flatnonzero(known | (rows.weights / uniforms > self.dropped))
            rows, uniforms = rows.take(wanted), uniforms[wanted]
        return self._with([rows], [uniforms], self.dropped)

    def merge(self, other: "Sample") -> "Sample":
        """Return the rows of both, dropping the least if they are too many."""
        return self._with(other.parts, other.uniforms, max(self.dropped, other.dropped))

    def _with(self, parts: Sequence[HeldOut], uniforms: Sequence[Array], dropped: float) -> Self:
        more = [k for k, part in enumerate(parts) if len(part)]
        kept = replace(
            self,
            parts=(*self.parts, *(parts[k] for k in more)),
            uniforms=(*self.uniforms, *(uniforms[k] for k in more)),
            dropped=dropped,
        )
        most = MAX_ROWS * (1.0 if kept.complete else 1.5)
        return kept.trimmed() if len(kept) > most or len(kept.parts) > _MAX_PARTS else kept

    def trimmed(self) -> Self:
        """Return at most `MAX_ROWS` rows, in one part where that is possible."""
        if len(self) <= MAX_ROWS:
            uniforms = np.concatenate(self.uniforms)
            return replace(self, parts=(HeldOut.joined(self.parts),), uniforms=(uniforms,))
        weights, uniforms, first = self._distinct()
        priorities = weights / uniforms
        least = np.sort(priorities)[: max(0, len(first) - MAX_ROWS)]
        dropped = float(least.max(initial=self.dropped))
        chosen = np.flatnonzero(priorities > dropped)
        chosen = chosen[np.argsort(first[chosen])]
        rows = self._taken(first[chosen]).reweighted(weights[chosen])
        return replace(self, parts=(rows,), uniforms=(uniforms[chosen],), dropped=dropped)

    def _distinct(self) -> tuple[Array, Array, np.ndarray]:
        """Return weight and U of distinct rows, and the place of the first of each."""
        weights = np.concatenate([part.weights for part in self.parts])
        uniforms, first, place = np.unique(
            np.concatenate(self.uniforms), return_index=True, return_inverse=True
        )
        return np.bincount(place, weights).astype(float), uniforms, first

    def _taken(self, places: np.ndarray) -> HeldOut:
        """Return the rows at increasing places of all parts together, in plain arrays."""
        starts = np.cumsum([0, *map(len, self.parts)])
        own = np.split(places, np.searchsorted(places, starts[1:-1]))
        parts = [
            part.take(numbers - start)
            for part, numbers, start in zip(self.parts, own, starts[:-1], strict=True)
            if len(numbers)
        ]
        return HeldOut.joined([part.with_dist(_plain(part.dist)) for part in parts])

    def all(self) -> HeldOut:
        """Return the rows in one batch, with the weights of what they stand for."""
        whole = self._whole()
        (rows,) = whole.parts
        return rows if self.complete else rows.reweighted(np.maximum(rows.weights, whole.dropped))

    @property
    def own_weights(self) -> Array:
        """The weights of the rows themselves, in the order of `all`."""
        return self._whole().parts[0].weights

    def _whole(self) -> Self:
        return self if len(self.parts) == 1 and len(self) <= MAX_ROWS else self.trimmed()


def _plain(dist: Distribution) -> Distribution:
    """Return rows that hold nothing but their own arrays; a table of quantiles if need be."""
    if joined([dist, dist]) is not None:
        return dist
    return Quantiles(ndtr(_PROBITS), dist.from_probit(_PROBITS[np.newaxis, :]))


def uniforms_of(rows: HeldOut) -> Array:
    """Return numbers in (0, 1] that look random and follow from each row's z and y alone."""
    mixed = np.zeros(len(rows), dtype=np.uint64)
    for values in (rows.z, rows.y):
        # adding 0 makes of -0.0 what it is equal to
        mixed = _scrambled(mixed ^ (without_last_digits(values) + 0.0).view(np.uint64))
    return ((mixed >> np.uint64(11)).astype(np.float64) + 1.0) * 2.0**-53


def _scrambled(x: np.ndarray) -> np.ndarray:
    """Return the finaliser of SplitMix64 (Steele, Lea and Flood, 2014)."""
    x = x + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))
