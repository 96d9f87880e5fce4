"""Held-out rows: predictions, outcomes and weights, with what every fit asks of them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from regcal._caching import WithoutCaches
from regcal._validation import Array, check_targets, check_weights
from regcal.distributions import Distribution, as_distribution, concatenate
from regcal.distributions.stacked import joined

# Numbers that agree in so many bits, about seven digits, count as equal. Other processors round
# differently in the last digit, and what was equal must not become different by that.
_EQUAL_BITS = 24


def without_last_digits(values: Array) -> Array:
    """Return numbers with about seven digits, so that those that should be equal are."""
    share, exponent = np.frexp(values)
    return np.ldexp(np.round(np.ldexp(share, _EQUAL_BITS)), exponent - _EQUAL_BITS)


@dataclass(frozen=True)
class HeldOut(WithoutCaches):
    """Predictions for rows that their model has not seen, and the outcomes.

    Parameters
    ----------
    dist : Distribution
    y, weights : ndarray of shape (n_rows,)
    """

    dist: Distribution
    y: Array
    weights: Array

    @classmethod
    def checked(cls, dist: Any, y: Any, sample_weight: Any = None) -> "HeldOut":
        """Return the rows that count, after checking what the user passed."""
        dist = as_distribution(dist)
        targets = check_targets(y, len(dist))
        weights = check_weights(sample_weight, len(dist))
        return cls(dist, targets, weights).counted()

    @classmethod
    def joined(cls, parts: Sequence["HeldOut"]) -> "HeldOut":
        """Return the rows of several parts; in one batch of their class where that is possible."""
        if len(parts) == 1:
            return parts[0]
        dists = [part.dist for part in parts]
        whole = joined(dists)
        rows = cls(
            concatenate(dists) if whole is None else whole,
            np.concatenate([part.y for part in parts]),
            np.concatenate([part.weights for part in parts]),
        )
        if all("_at_outcomes" in vars(part) for part in parts):
            known = zip(*(part._at_outcomes for part in parts), strict=True)
            vars(rows)["_at_outcomes"] = tuple(np.concatenate(one) for one in known)
        return rows

    def __len__(self) -> int:
        return len(self.y)

    @cached_property
    def _at_outcomes(self) -> tuple[Array, Array]:
        return self.dist.probit_and_logslope(self.y)

    @property
    def z(self) -> Array:
        """The probits of the outcomes; infinite where they are impossible."""
        return self._at_outcomes[0]

    @property
    def log_spread(self) -> Array:
        """The logs of dt / dz at the outcomes; infinite where there is no density."""
        return -self._at_outcomes[1]

    @property
    def any_possible(self) -> bool:
        """Whether any outcome has a density."""
        return bool((np.isfinite(self.z) & np.isfinite(self.log_spread)).any())

    @cached_property
    def distinct(self) -> np.ndarray:
        """The number of each row among the distinct ones, in the order of z and y."""
        seen = without_last_digits(np.column_stack([self.z, self.y]))
        return np.unique(seen, axis=0, return_inverse=True)[1].ravel()

    @property
    def constant(self) -> bool:
        """Whether all outcomes are equal."""
        return bool(np.ptp(self.y) == 0)

    def counted(self) -> "HeldOut":
        """Return the rows whose weight is not 0."""
        check_weights(self.weights, len(self))
        return self if self.weights.all() else self.take(np.flatnonzero(self.weights))

    def take(self, places: Any) -> "HeldOut":
        """Return some of the rows."""
        part = HeldOut(self.dist[places], self.y[places], self.weights[places])
        return self._with_known(part, places)

    def reweighted(self, weights: Array) -> "HeldOut":
        """Return the rows with other weights."""
        return self._with_known(replace(self, weights=weights), slice(None))

    def with_dist(self, dist: Distribution) -> "HeldOut":
        """Return the rows with the same predictions in another form."""
        return self._with_known(replace(self, dist=dist), slice(None))

    def _with_known(self, part: "HeldOut", places: Any) -> "HeldOut":
        """Give a part of these rows what is known of them."""
        if "_at_outcomes" in vars(self):
            vars(part)["_at_outcomes"] = tuple(known[places] for known in self._at_outcomes)
        return part
