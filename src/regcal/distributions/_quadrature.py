"""Gauss-Legendre quadrature over panels, row by row."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import factorial

import numpy as np

from regcal._validation import Array

# What a row's integral may be wrong by, as a share of it, before its panels are halved.
_TOLERANCE = 1e-6

# Panels are cut in up to so many parts.
_MOST_PARTS = 16


@dataclass(frozen=True)
class _Rule:
    """Nodes and weights between -1 and 1, and what tells how well they suit a function.

    The highest Legendre coefficient that k nodes can see is of degree k - 1; the rule misses those
    from 2 k on. Of ``exp(a x)`` they go with ``a ** (k - 1)`` and ``a ** (2 k)``, so the error is
    taken to go with the coefficient to the power ``2 k / (k - 1)``, with the factor of that
    function.
    """

    nodes: Array
    weights: Array
    detail: Array
    power: float
    factor: float

    @classmethod
    def gauss(cls, k: int) -> "_Rule":
        """Return the rule with k nodes."""
        nodes, weights = np.polynomial.legendre.leggauss(k)
        detail = np.polynomial.legendre.legval(nodes, np.eye(k)[-1])
        detail /= np.abs(detail).max()
        power = 2 * k / (k - 1)
        # for a = 1
        size, share = weights @ np.exp(nodes), weights * detail @ np.exp(nodes)
        missed = 2.0 ** (2 * k + 1) * factorial(k) ** 4 / ((2 * k + 1) * factorial(2 * k) ** 3)
        return cls(nodes, weights, detail, power, missed / size / (share / size) ** power)

    def between(self, edges: Array) -> tuple[Array, Array]:
        """Return points and weights, (n_rows, n_points), of integrals over each row's panels."""
        half = 0.5 * np.diff(edges)[:, :, np.newaxis]
        middle = 0.5 * (edges[:, 1:] + edges[:, :-1])[:, :, np.newaxis]
        points = half * self.nodes
        points += middle
        shape = (len(edges), -1)
        return points.reshape(shape), (half * self.weights).reshape(shape)

    def stretched(self, lengths: Array, widths: Array) -> Array:
        """Return lengths of which those of a panel add up to its width, as they have to."""
        panels = lengths.reshape(len(lengths), -1, len(self.nodes))
        sums = panels.sum(axis=2)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            factors = widths / sums
        lost = ~(np.isfinite(factors) & np.isfinite(sums))
        if lost.any():
            panels, factors = panels.copy(), np.where(lost, 0.5 * widths, factors)
            panels[lost] = self.weights
        return (panels * factors[:, :, np.newaxis]).reshape(len(lengths), -1)

    def error(self, products: Array) -> Array:
        """Return how wrong the sum of values times weights may be, as a share of it."""
        panels = np.abs(products).reshape(len(products), -1, len(self.nodes))
        sizes = panels.sum(axis=2)
        shares = np.abs(panels @ self.detail) / np.where(sizes > 0, sizes, 1.0)
        # a share that is not small tells of a bend, and no series that falls
        errors = (sizes * shares**self.power * (self.factor + shares)).sum(axis=1)
        whole = sizes.sum(axis=1)
        return errors / np.where(whole > 0, whole, 1.0)


# Nodes of a panel, by how many panels there are at most: the more, the narrower they are.
_RULES = {most: _Rule.gauss(count) for most, count in ((32, 6), (144, 3), (np.inf, 2))}


def rule_for(edges: Array) -> _Rule:
    """Return the rule for so many panels."""
    return next(rule for most, rule in _RULES.items() if edges.shape[1] <= most)


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
    rule : _Rule
        Of which each panel has the nodes.
    """

    points: Array
    lengths: Array
    tails: Array
    centre: Array
    reach: Array
    rule: _Rule

    def moments(self) -> tuple[Array, Array]:
        """Return mean and variance, (2, n_rows), and how wrong they may be.

        They are integrals of the tails on both sides of the centre.
        """
        distances = self.points - self.centre
        # sf above the centre and -cdf below it: -tails, or what they lack of 1
        upper = distances >= 0
        lack = np.where(upper == np.signbit(self.tails), 0.0, np.where(upper, 1.0, -1.0))
        masses = lack - self.tails
        masses *= self.lengths
        shift = masses.sum(axis=1)
        distances *= masses
        second = distances.sum(axis=1)
        moments = np.stack([self.centre[:, 0] + shift, 2.0 * second - shift**2])
        # of both at once, in the same unit
        masses *= np.where(upper, 1.0, -1.0) * np.sqrt(second)[:, np.newaxis]
        distances += masses
        return moments, self.rule.error(distances)

    def crps(
        self, lower: Array, upper: Array, start: Array, end: Array
    ) -> tuple[Array, Array]:
        """Return the integral of cdf^2 below `lower` and of sf^2 from `upper` on, in a region.

        The second number is how wrong it may be.
        """
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
        return tails.sum(axis=1) + outside[:, 0], self.rule.error(tails)


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


def in_parts(edges: Array, parts: int) -> Array:
    """Return edges of panels of which each was cut in equal parts."""
    if parts == 1:
        return edges
    steps = np.diff(edges)[:, :, np.newaxis] * (np.arange(parts) / parts)
    starts = (edges[:, :-1, np.newaxis] + steps).reshape(len(edges), -1)
    return np.concatenate([starts, edges[:, -1:]], axis=1)


def refined(
    answer: Callable[[np.ndarray | None, int], tuple[Array, Array]],
) -> Array:
    """Return answers, (..., n_rows), of which none is in doubt if halving panels helps.

    Parameters
    ----------
    answer : callable
        Takes row numbers, None for all, and in how many parts to cut panels; returns the answers
        of those rows, and how wrong they may be: not a number if that is not known.
    """
    values, error = answer(None, 1)
    rows, parts = np.flatnonzero(~(error <= _TOLERANCE)), 2
    while len(rows) and parts <= _MOST_PARTS:
        values[..., rows], error = answer(rows, parts)
        rows, parts = rows[~(error <= _TOLERANCE)], 2 * parts
    return values


def integrate(function: Callable[[Array], Array], edges: Array) -> Array:
    """Integrate a function of (n_rows, n_points) over each row's panels."""
    points, weights = rule_for(edges).between(edges)
    return (function(points) * weights).sum(axis=1)
