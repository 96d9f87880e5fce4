"""Gauss-Legendre quadrature over panels, row by row."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import factorial
from typing import Self

import numpy as np

from regcal._validation import Array

# What a row's integral may be wrong by, as a share of it, before its panels are halved.
_TOLERANCE = 3e-7

# How much probability may lie beyond the panels of a first attempt.
SMALL_SHARE = 1e-9

# Panels are cut in up to so many parts; those of nodes that may tell too little, in fewer.
_MOST_PARTS = 16
_FEW_PARTS = 4


@dataclass(frozen=True)
class Rule:
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
    doubt: float  # how many times larger errors are taken to be

    @classmethod
    def gauss(cls, k: int, doubt: float = 1.0) -> "Rule":
        """Return the rule with k nodes, at least three, whose errors are taken to be larger."""
        nodes, weights = np.polynomial.legendre.leggauss(k)
        coefficients = (weights * np.polynomial.legendre.legvander(nodes, k - 1).T[[1, -1]]).T
        power = (2 * k - 1) / (k - 2)
        rise, highest = np.exp(nodes) @ coefficients
        missed = 2.0 ** (2 * k + 1) * factorial(k) ** 4 / ((2 * k + 1) * factorial(2 * k) ** 3)
        factor = missed / (rise * (highest / rise) ** power)
        return cls(nodes, weights, coefficients, power, factor, doubt)

    def between(self, edges: Array) -> tuple[Array, Array]:
        """Return points and weights, (n_rows, n_points), of integrals over each row's panels.

        Edges are those of neighbouring panels on their last axis.
        """
        half = 0.5 * np.diff(edges)[..., np.newaxis]
        middle = 0.5 * (edges[..., 1:] + edges[..., :-1])[..., np.newaxis]
        points = half * self.nodes
        points += middle
        shape = (len(edges), -1)
        return points.reshape(shape), (half * self.weights).reshape(shape)

    def stretched(self, lengths: Array, widths: Array) -> tuple[Array, Array]:
        """Return lengths of which those of a panel add up to its width, and the share they did not.

        The share is (n_rows, n_panels).
        """
        panels = self.panels(lengths)
        sums, widths = self.sums(lengths), widths.reshape(len(widths), -1)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            factors = widths / sums
        lost = ~(np.isfinite(factors) & np.isfinite(sums))
        if lost.any():
            panels, factors = panels.copy(), np.where(lost, 0.5 * widths, factors)
            panels[lost] = self.weights
        slack = np.where(lost, 1.0, np.minimum(np.abs(factors - 1.0), 1.0))
        return (panels * factors[:, :, np.newaxis]).reshape(len(lengths), -1), slack

    def panels(self, values: Array) -> Array:
        """Return values of shape (n_rows, n_panels, n_nodes)."""
        return values.reshape(len(values), -1, len(self.nodes))

    def middle(self, values: Array) -> Array:
        """Return the value of each panel at its node in the middle."""
        k = len(self.nodes)
        return values[:, k // 2 :: k]

    def widths(self, lengths: Array) -> Array:
        """Return about the width of each panel."""
        return self.middle(lengths) * (2.0 / self.weights[len(self.nodes) // 2])

    def sums(self, values: Array) -> Array:
        """Return the sum of each panel's values."""
        ones = np.ones(len(self.nodes))
        return (values.reshape(-1, len(self.nodes)) @ ones).reshape(len(values), -1)

    def errors(self, values: Array, widths: Array, slack: Array) -> Array:
        """Return how wrong each panel's sum of values times lengths may be, (n_rows, n_panels).

        Values are monotone in panels. Their lengths are uneven by shares.
        """
        rises, highest = np.abs(values.reshape(-1, len(self.nodes)) @ self.coefficients).T
        with np.errstate(invalid="ignore", divide="ignore"):
            shares = np.minimum(highest / rises, 1.0)
        shares = self.factor * np.where(rises > 0, shares, 0.0) ** self.power
        shares, rises = (part.reshape(len(values), -1) for part in (shares, rises))
        return 0.5 * self.doubt * (rises * (shares + slack) * widths)


# On the probit scale, where all rows look alike, three nodes do for panels of a third, and four
# where quantiles are bent. benchmarks/latency.py, rows of Quantiles: with three half of the panels
# are halved, and the mean of scale takes 6.0 instead of 4.0 times the CDF, of e-logistic 7.8
# instead of 4.9 (measured without the doubt, which costs some of that).
# Pieces of curves and the wide panels of mixtures are less like exp, hence the
# doubt: without it, test_mass_laws.py finds a CRPS off by 3e-6 of the spread, and that of a narrow
# normal distribution mixed with Student's of three degrees is off by 2.4e-5 of it.
ALONG_PROBITS = Rule.gauss(3)
ALONG_BENDS = Rule.gauss(4, doubt=10.0)

# Elsewhere it depends on how many panels there are at most: the more, the narrower they are.
_RULES = {most: Rule.gauss(count) for most, count in ((144, 8), (np.inf, 4))}


def rule_for(edges: Array) -> Rule:
    """Return the rule for so many panels."""
    return next(rule for most, rule in _RULES.items() if edges.shape[1] <= most)


class OtherPanelsError(Exception):
    """Panels were chosen by their numbers among others than there are now."""


@dataclass(frozen=True)
class Effort:
    """Which panels to look at, and how closely.

    Parameters
    ----------
    panels : ndarray of int, optional
        Their numbers, increasing; all by default.
    parts : int
        In how many equal parts each is cut.
    careful : bool
        Whether nodes that may tell too little will not do.
    total : int
        Of how many panels they are some.
    """

    panels: np.ndarray | None = None
    parts: int = 1
    careful: bool = False
    total: int = 0

    def check(self, n_panels: int) -> None:
        """Refuse numbers that belong to more panels or fewer: they would be those of others."""
        if self.panels is not None and self.total != n_panels:
            raise OtherPanelsError

    def edges(self, edges: Array) -> Array:
        """Return edges of parts, (n_rows, n_runs, n_edges), neighbours on the last axis."""
        self.check(edges.shape[1] - 1)
        if self.panels is None:
            return edges[:, np.newaxis, :]
        start, end = (edges[:, self.panels + side, np.newaxis] for side in (0, 1))
        inside = start + (end - start) * (np.arange(self.parts + 1) / self.parts)
        inside[:, :, -1:] = end
        return inside

    def numbers(self, n_panels: int) -> np.ndarray:
        """Return the number of the panel of each part, of so many panels."""
        panels = np.arange(n_panels) if self.panels is None else self.panels
        return np.repeat(panels, self.parts)

    def split(self, n_panels: int) -> tuple["Effort", "Effort"]:
        """Return the efforts for so many first panels, and for those that follow them."""
        if self.panels is None:
            return self, self
        first = self.panels < n_panels
        return (
            replace(self, panels=self.panels[first], total=n_panels),
            replace(self, panels=self.panels[~first] - n_panels, total=self.total - n_panels),
        )


WHOLE = Effort()


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
    rule : Rule
        Of which each panel has the nodes.
    slack : ndarray of shape (n_rows or 1, n_panels)
        By what share the lengths in each panel are uncertain.
    quick : bool
        Whether there are other nodes for a careful effort.
    """

    points: Array
    lengths: Array
    tails: Array
    centre: Array
    reach: Array
    rule: Rule
    slack: Array
    quick: bool = False

    def moments(self) -> "Moments":
        """Return integrals of the tails on both sides of the centre, and of distance times tail."""
        distances = self.points - self.centre
        # sf above the centre, and -cdf below it
        masses = np.subtract(distances >= 0, np.signbit(self.tails), dtype=float)
        masses -= self.tails
        errors = self.rule.errors(masses, self.rule.widths(self.lengths), self.slack)
        masses *= self.lengths
        first = self.rule.sums(masses)
        masses *= distances
        return Moments(
            self.centre[:, 0],
            np.stack([first, self.rule.sums(masses)]),
            np.stack([errors, errors * np.abs(self.rule.middle(distances))]),
            self.quick,
        )

    def crps(self, lower: Array, upper: Array, start: Array, end: Array) -> "Score":
        """Return the integral of cdf^2 below `lower` and of sf^2 from `upper` on, in a region."""
        beyond = self.points >= upper
        # cdf, and -sf beyond
        tails = np.subtract(np.signbit(self.tails), beyond, dtype=float)
        tails += self.tails
        if lower is not upper:
            tails *= beyond | (self.points < lower)
        tails *= tails
        errors = self.rule.errors(tails, self.rule.widths(self.lengths), self.slack)
        tails *= self.lengths
        first, last = self.reach[:, :1], self.reach[:, 1:]
        # outside, the CDF is 0 or 1
        outside = np.maximum(np.minimum(end, first) - np.maximum(start, upper), 0.0)
        outside += np.maximum(np.minimum(end, lower) - np.maximum(start, last), 0.0)
        sums = self.rule.sums(tails)
        return Score(outside[:, 0], sums[np.newaxis], errors[np.newaxis], self.quick)


@dataclass(frozen=True)
class PanelSums(ABC):
    """Integrals over each panel, and how wrong they may be: (n_integrals, n_rows, n_panels).

    Parameters
    ----------
    start : ndarray of shape (n_rows,)
        What the first of the integrals is added to.
    values, errors : ndarray of shape (n_integrals, n_rows, n_panels)
    quick : bool
        Whether there are other nodes for a careful effort.
    """

    start: Array
    values: Array
    errors: Array
    quick: bool

    @abstractmethod
    def answers(self) -> Array:
        """Return what the integrals add up to, (n_answers, n_rows)."""

    @abstractmethod
    def doubts(self) -> Array:
        """Return by what share panels make the answers wrong, (n_rows, n_panels)."""

    def take(self, rows: np.ndarray) -> Self:
        """Return the sums of some rows."""
        values, errors = self.values[:, rows], self.errors[:, rows]
        return replace(self, start=self.start[rows], values=values, errors=errors)

    def put(self, chosen: np.ndarray, panels: np.ndarray, finer: "PanelSums") -> None:
        """Put what parts of panels add up to in the place of those that rows have chosen."""
        for own, new in ((self.values, finer.values), (self.errors, finer.errors)):
            sums = new.reshape(*own.shape[:2], len(panels), -1).sum(axis=3)
            own[:, :, panels] = np.where(chosen[:, panels], sums, own[:, :, panels])


class Moments(PanelSums):
    """Mean and variance, from integrals of tails and of distance times tail."""

    def answers(self) -> Array:
        """Return means and variances."""
        first, second = self.values.sum(axis=2)
        return np.stack([self.start + first, 2.0 * second - first**2])

    def doubts(self) -> Array:
        """Return errors of both at once, in the same unit."""
        second = self.values[1].sum(axis=1, keepdims=True)
        size = np.where(second > 0, second, 1.0)
        return (self.errors[1] + np.sqrt(second) * self.errors[0]) / size


class Score(PanelSums):
    """The CRPS."""

    def answers(self) -> Array:
        """Return the score."""
        return self.start + self.values.sum(axis=2)

    def doubts(self) -> Array:
        """Return errors as shares of what is inside of the reach."""
        inside = self.values[0].sum(axis=1, keepdims=True)
        return self.errors[0] / np.where(inside > 0, inside, 1.0)


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


def without_repeats(places: Array) -> Array:
    """Return sorted places of each row without those that are equal to others in all rows."""
    order = np.argsort(places[0], kind="stable")
    differ = (places[:, order[1:]] != places[:, order[:-1]]).any(axis=0)
    return places[:, order[np.concatenate([[True], differ])]]


def thinned(edges: Array, step: int) -> Array:
    """Return every so manieth of the edges, and the outermost ones."""
    return np.concatenate([edges[:, :-1:step], edges[:, -1:]], axis=1)


def cut_panels(edges: Array, cuts: Array) -> tuple[np.ndarray, Array]:
    """Return the numbers of the panels that hold cuts, (n_rows, 1), and the edges of both halves.

    Edges are (n_rows or 1, n_edges); cuts outside are moved to an end.
    """
    cuts = np.clip(cuts, edges[:, :1], edges[:, -1:])
    if len(edges) == 1:
        held = np.searchsorted(edges[0, 1:-1], cuts, side="right")
    else:
        held = np.count_nonzero(edges[:, 1:-1] <= cuts, axis=1)[:, np.newaxis]
    edges = np.broadcast_to(edges, (len(cuts), edges.shape[1]))
    start, end = (np.take_along_axis(edges, held + side, axis=1) for side in (0, 1))
    return held, np.concatenate([start, cuts, end], axis=1)


def joined_columns(parts: Sequence[Array]) -> Array:
    """Return arrays of one or all rows beside each other."""
    n_rows = max(len(part) for part in parts)
    if all(len(part) == n_rows for part in parts):
        return np.concatenate(parts, axis=1)
    return np.concatenate([np.broadcast_to(p, (n_rows, p.shape[1])) for p in parts], axis=1)


def refined(
    sums_of: Callable[[np.ndarray | None], Callable[[Effort], PanelSums]],
    rows: np.ndarray | None = None,
    careful: bool = False,
) -> Array:
    """Return answers, (n_answers, n_rows), of which none is in doubt if more effort helps.

    Parameters
    ----------
    sums_of : callable
        Takes row numbers, None for all, and returns a function that takes an effort and returns
        those rows' sums. What is not known is not a number.
    rows : ndarray of int, optional
        The rows to answer for; all by default.
    careful : bool, default=False
        Whether to begin with a careful effort.
    """
    function = sums_of(rows)
    sums = function(Effort(careful=careful))
    answers, doubts, parts = sums.answers(), sums.doubts(), 1
    most = _FEW_PARTS if sums.quick else _MOST_PARTS
    own = np.arange(answers.shape[1])  # the rows that are still looked at
    settled = np.zeros(len(own), dtype=bool)
    while True:
        total = doubts.sum(axis=1)
        settled[own] = total <= _TOLERANCE
        doubtful = np.flatnonzero(total > _TOLERANCE)
        if parts == most or len(doubtful) == 0:
            break
        parts *= 2
        if 2 * len(doubtful) < len(own):
            own, sums, doubts = own[doubtful], sums.take(doubtful), doubts[doubtful]
            function = sums_of(own if rows is None else rows[own])
        chosen = _worst_panels(doubts)
        panels = np.flatnonzero(chosen.any(axis=0))
        try:
            finer = function(Effort(panels, parts, careful, doubts.shape[1]))
        except OtherPanelsError:
            # by themselves, these rows are laid out otherwise than beside the others
            answers[:, own] = refined(sums_of, own if rows is None else rows[own], careful)
            settled[own] = True
            break
        sums.put(chosen, panels, finer)
        answers[:, own], doubts = sums.answers(), sums.doubts()
    again = np.flatnonzero(~settled)
    if sums.quick and len(again):
        answers[:, again] = refined(sums_of, again if rows is None else rows[again], careful=True)
    return answers


def _worst_panels(doubts: Array) -> np.ndarray:
    """Return which panels have to be cut, (n_rows, n_panels).

    Each row chooses by itself: what it gets does not depend on the rows beside it.
    """
    doubtful = doubts.sum(axis=1) > _TOLERANCE
    order = np.argsort(doubts, axis=1)
    # all others together may keep a tenth of what is tolerable
    kept = np.cumsum(np.take_along_axis(doubts, order, axis=1), axis=1) <= 0.1 * _TOLERANCE
    chosen = np.empty(doubts.shape, dtype=bool)
    np.put_along_axis(chosen, order, ~kept & doubtful[:, np.newaxis], axis=1)
    return chosen


def integrate(function: Callable[[Array], Array], edges: Array) -> Array:
    """Integrate a function of (n_rows, n_points) over each row's panels."""
    points, weights = rule_for(edges).between(edges)
    return (function(points) * weights).sum(axis=1)
