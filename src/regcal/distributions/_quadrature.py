"""Gauss-Legendre quadrature over panels, row by row."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from regcal._validation import Array

# Nodes of a panel, by how many panels there are at most: the more, the narrower they are.
_RULES = {
    most: np.polynomial.legendre.leggauss(count)
    for most, count in ((32, 6), (128, 3), (np.inf, 2))
}


@dataclass(frozen=True)
class Nodes:
    """Points of a quadrature rule over thresholds, and the probabilities there.

    Parameters
    ----------
    points, lengths : ndarray of shape (n_rows, n_points)
        An integral over thresholds is the sum of values times lengths.
    tails : ndarray of shape (n_rows or 1, n_points)
        The CDF below the median and -sf above it, as `Distribution._signed_tail` has them.
    centre : ndarray of shape (n_rows, 1)
        A place in the middle of each row that is an edge of panels.
    reach : ndarray of shape (n_rows, 2)
        Between which all of the probability is.
    """

    points: Array
    lengths: Array
    tails: Array
    centre: Array
    reach: Array

    def moments(self) -> tuple[Array, Array]:
        """Return mean and variance, from integrals of the tails on both sides of the centre."""
        distances = self.points - self.centre
        # sf above the centre and -cdf below it: -tails, or what they lack of 1
        upper = distances >= 0
        lack = np.where(upper == np.signbit(self.tails), 0.0, np.where(upper, 1.0, -1.0))
        masses = lack - self.tails
        masses *= self.lengths
        shift = masses.sum(axis=1)
        distances *= masses
        return self.centre[:, 0] + shift, 2.0 * distances.sum(axis=1) - shift**2

    def crps(self, lower: Array, upper: Array, start: Array, end: Array) -> Array:
        """Return the integral of cdf^2 below `lower` and of sf^2 from `upper` on, in a region."""
        below, beyond = (self.points < lower), (self.points >= upper)
        lack = np.where(np.signbit(self.tails) == beyond, 0.0, np.where(beyond, -1.0, 1.0))
        tails = lack + self.tails
        if lower is not upper:
            tails *= below | beyond
        tails *= tails
        tails *= self.lengths
        first, last = self.reach[:, :1], self.reach[:, 1:]
        # outside, the CDF is 0 or 1
        outside = np.maximum(np.minimum(end, first) - np.maximum(start, upper), 0.0)
        outside += np.maximum(np.minimum(end, lower) - np.maximum(start, last), 0.0)
        return tails.sum(axis=1) + outside[:, 0]


def panels_between(edges: Array, inner: Sequence[Array | None]) -> Array:
    """Return sorted panel edges per row: `edges`, and what else there is between them."""
    low, high = edges[:, :1], edges[:, -1:]
    parts = [np.clip(part, low, high) for part in inner if part is not None]
    return np.sort(joined_columns([edges, *parts]), axis=1) if parts else edges


def joined_columns(parts: Sequence[Array]) -> Array:
    """Return arrays of one or all rows beside each other."""
    n_rows = max(len(part) for part in parts)
    if all(len(part) == n_rows for part in parts):
        return np.concatenate(parts, axis=1)
    return np.concatenate([np.broadcast_to(p, (n_rows, p.shape[1])) for p in parts], axis=1)


def nodes_between(edges: Array) -> tuple[Array, Array]:
    """Return points and weights, (n_rows, n_points), of integrals over each row's panels."""
    nodes, weights = next(rule for most, rule in _RULES.items() if edges.shape[1] <= most)
    half = 0.5 * np.diff(edges)[:, :, np.newaxis]
    middle = 0.5 * (edges[:, 1:] + edges[:, :-1])[:, :, np.newaxis]
    points = half * nodes
    points += middle
    return points.reshape(len(edges), -1), (half * weights).reshape(len(edges), -1)


def integrate(function: Callable[[Array], Array], edges: Array) -> Array:
    """Integrate a function of (n_rows, n_points) over each row's panels."""
    points, weights = nodes_between(edges)
    return (function(points) * weights).sum(axis=1)
