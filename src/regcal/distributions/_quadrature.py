"""Gauss-Legendre quadrature over panels, row by row."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import factorial

import numpy as np

from regcal._validation import Array

# What a row's integral may be wrong by, as a share of it, before its panels are halved.
_TOLERANCE = 3e-7

# Panels are cut in up to so many parts.
_MOST_PARTS = 16


@dataclass(frozen=True)
class _Rule:
    """Nodes and weights between -1 and 1, and what tells how well they suit an increasing function.

    The highest Legendre coefficient that k nodes can see is of degree k - 1; the rule misses those
    from 2 k on. Of ``exp(a x)``, as shares of the first coefficient, they go with ``a ** (k - 2)``
    and ``a ** (2 k - 1)``: the error is taken to be a power of the share, with the factor of that
    function.
    """

    nodes: Array
    weights: Array
    coefficients: Array  # the first and the highest
    power: float
    factor: float

    @classmethod
    def gauss(cls, k: int) -> "_Rule":
        """Return the rule with k nodes, which are at least three."""
        nodes, weights = np.polynomial.legendre.leggauss(k)
        coefficients = (weights * np.polynomial.legendre.legvander(nodes, k - 1).T[[1, -1]]).T
        power = (2 * k - 1) / (k - 2)
        rise, highest = np.exp(nodes) @ coefficients
        missed = 2.0 ** (2 * k + 1) * factorial(k) ** 4 / ((2 * k + 1) * factorial(2 * k) ** 3)
        factor = missed / (rise * (highest / rise) ** power)
        return cls(nodes, weights, coefficients, power, factor)

    def between(self, edges: Array) -> tuple[Array, Array]:
        """Return points and weights, (n_rows, n_points), of integrals over each row's panels."""
        half = 0.5 * np.diff(edges)[:, :, np.newaxis]
        middle = 0.5 * (edges[:, 1:] + edges[:, :-1])[:, :, np.newaxis]
        points = half * self.nodes
        points += middle
        shape = (len(edges), -1)
        return points.reshape(shape), (half * self.weights).reshape(shape)

    def stretched(self, lengths: Array, widths: Array) -> tuple[Array, Array]:
        """Return lengths of which those of a panel add up to its width, and the share they did not.

        The share is (n_rows, n_panels).
        """
        panels = lengths.reshape(len(lengths), -1, len(self.nodes))
        sums = panels.sum(axis=2)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            factors = widths / sums
        lost = ~(np.isfinite(factors) & np.isfinite(sums))
        if lost.any():
            panels, factors = panels.copy(), np.where(lost, 0.5 * widths, factors)
            panels[lost] = self.weights
        slack = np.where(lost, 1.0, np.minimum(np.abs(factors - 1.0), 1.0))
        return (panels * factors[:, :, np.newaxis]).reshape(len(lengths), -1), slack

    def middle(self, values: Array) -> Array:
        """Return the value of each panel at its node in the middle."""
        k = len(self.nodes)
        return values[:, k // 2 :: k]

    def widths(self, lengths: Array) -> Array:
        """Return about the width of each panel."""
        return self.middle(lengths) * (2.0 / self.weights[len(self.nodes) // 2])

    def error(self, values: Array, widths: Array, slack: Array | float) -> Array:
        """Return how wrong the sum of values times lengths may be, of values monotone in panels.

        The widths of panels are those of the sum, or what else each panel counts. They are uneven
        by shares.
        """
        rises, highest = np.abs(values.reshape(-1, len(self.nodes)) @ self.coefficients).T
        with np.errstate(invalid="ignore", divide="ignore"):
            shares = np.minimum(highest / rises, 1.0)
        shares = self.factor * np.where(rises > 0, shares, 0.0) ** self.power
        shares, rises = (part.reshape(len(values), -1) for part in (shares, rises))
        return 0.5 * (rises * (shares + slack) * widths).sum(axis=1)


# On the probit scale, where all rows look alike, three nodes do for panels of a third.
ALONG_PROBITS = _Rule.gauss(3)

# Elsewhere it depends on how many panels there are at most: the more, the narrower they are.
_RULES = {most: _Rule.gauss(count) for most, count in ((144, 8), (np.inf, 4))}


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
    slack : ndarray of shape (n_rows, n_panels) or float
        By what share the lengths in each panel are uncertain.
    """

    points: Array
    lengths: Array
    tails: Array
    centre: Array
    reach: Array
    rule: _Rule
    slack: Array | float = 0.0

    def moments(self) -> tuple[Array, Array]:
        """Return mean and variance, (2, n_rows), and how wrong they may be.

        They are integrals of the tails on both sides of the centre.
        """
        distances = self.points - self.centre
        # sf above the centre, and -cdf below it
        masses = np.subtract(distances >= 0, np.signbit(self.tails), dtype=float)
        masses -= self.tails
        first = masses * self.lengths
        shift = first.sum(axis=1)
        first *= distances
        second = first.sum(axis=1)
        moments = np.stack([self.centre[:, 0] + shift, 2.0 * second - shift**2])
        # of both at once, in the same unit
        distances = np.abs(self.rule.middle(distances)) + np.sqrt(second)[:, np.newaxis]
        distances *= self.rule.widths(self.lengths)
        return moments, self.rule.error(masses, distances, self.slack) / np.where(
            second > 0, second, 1.0
        )

    def crps(self, lower: Array, upper: Array, start: Array, end: Array) -> tuple[Array, Array]:
        """Return the integral of cdf^2 below `lower` and of sf^2 from `upper` on, in a region.

        The second number is how wrong it may be.
        """
        beyond = self.points >= upper
        # cdf, and -sf beyond
        tails = np.subtract(np.signbit(self.tails), beyond, dtype=float)
        tails += self.tails
        if lower is not upper:
            tails *= beyond | (self.points < lower)
        tails *= tails
        inside = (tails * self.lengths).sum(axis=1)
        first, last = self.reach[:, :1], self.reach[:, 1:]
        # outside, the CDF is 0 or 1
        outside = np.maximum(np.minimum(end, first) - np.maximum(start, upper), 0.0)
        outside += np.maximum(np.minimum(end, lower) - np.maximum(start, last), 0.0)
        error = self.rule.error(tails, self.rule.widths(self.lengths), self.slack)
        return inside + outside[:, 0], error / np.where(inside > 0, inside, 1.0)


def panels_between(edges: Array, inner: Sequence[Array | None]) -> Array:
    """Return sorted panel edges per row: `edges`, which are, and what else is between them."""
    many = [part for part in inner if part is not None and part.shape[1] > 1]
    if many:
        low, high = edges[:, :1], edges[:, -1:]
        edges = np.sort(joined_columns([edges, *(np.clip(p, low, high) for p in many)]), axis=1)
    for part in inner:
        if part is not None and part.shape[1] == 1:
            # one is put in its place without a sort
            ends = edges[:, :1], edges[:, -1:]
            after = np.concatenate([edges, ends[1]], axis=1)
            edges = np.clip(part, np.concatenate([ends[0], edges], axis=1), after)
    return edges


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
