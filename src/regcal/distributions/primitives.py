"""What distributions compute, for points that have been checked.

A subclass of `Distribution` describes itself by some of these, and everything else is derived. All
take points of shape (n_rows or 1, n_points) and return (n_rows, n_points).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Self

import numpy as np
from scipy.special import ndtr, ndtri, ndtri_exp

from regcal._caching import WithoutCaches
from regcal._validation import Array
from regcal.distributions._quadrature import (
    ALONG_BENDS,
    ALONG_PROBITS,
    WHOLE,
    Effort,
    Nodes,
    PanelSums,
    Rule,
    cut_panels,
    joined_columns,
    panels_between,
    refined,
    rule_for,
)
from regcal.distributions._roots import solve_increasing
from regcal.distributions._tails import log_mass_inside
from regcal.maps.base import Curve
from regcal.maps.scale import IDENTITY

LOG_HALF = float(np.log(0.5))
LOG_SQRT_2PI = 0.5 * float(np.log(2 * np.pi))

# A mass below this share of the tails whose difference it is has lost half of its digits.
CANCELLED = 1e-8

# Tails and masses below this are formed as logarithms.
FAR_TAIL = 1e-290

# Quantiles at these probit values separate the panels of numerical integrals.
_PANEL_PROBITS = np.array([0, 0.4, 0.8, 1.2, 1.7, 2.3, 3, 3.75, 4.5, 5.5, 6.5, 8, 10, 13])
PANEL_PROBITS = np.concatenate([-_PANEL_PROBITS[:0:-1], _PANEL_PROBITS])


def log_normal_density(z: Array) -> Array:
    """Return the log density of the standard normal distribution."""
    with np.errstate(over="ignore"):
        return -0.5 * z * z - LOG_SQRT_2PI


def signed_tails(probits: Array) -> Array:
    """Return cdf below the median and -sf above it, of standard normal quantiles."""
    tails = np.abs(probits)
    np.negative(tails, out=tails)
    ndtr(tails, out=tails)
    return np.copysign(tails, -probits, out=tails)


class Primitives(WithoutCaches, ABC):
    """A batch of distributions, one per row, without checks of what they are asked."""

    # Whether quantiles are had without a search.
    _explicit = False

    # Whether quantiles are straight lines in their probits.
    _straight = False

    @abstractmethod
    def __len__(self) -> int:
        """Return the number of rows."""

    @abstractmethod
    def _take(self, rows: np.ndarray) -> Self:
        """Return the distributions of the given row numbers."""

    def _logcdf(self, points: Array) -> Array:
        with np.errstate(divide="ignore"):
            return np.log(self._cdf(points))

    def _logsf(self, points: Array) -> Array:
        with np.errstate(divide="ignore"):
            return np.log(self._sf(points))

    def _cdf(self, points: Array) -> Array:
        return np.exp(self._logcdf(points))

    def _sf(self, points: Array) -> Array:
        return np.exp(self._logsf(points))

    @abstractmethod
    def _logpdf(self, points: Array) -> Array: ...

    def _pdf(self, points: Array) -> Array:
        return np.exp(self._logpdf(points))

    def _logmass(self, points: Array) -> Array:
        return np.full((len(self), points.shape[1]), -np.inf)

    def _ends(self) -> tuple[float, ...]:
        """Return the places of point masses at ends of the support, the same for all rows."""
        return ()

    def _probit(self, points: Array) -> Array:
        lower, upper = self._logcdf(points), self._logsf(points)
        return np.where(lower < upper, ndtri_exp(lower), -ndtri_exp(upper))

    def _probit_below(self, points: Array) -> Array:
        """Return the probit of P(Y < t), which differs from that of P(Y <= t) at point masses."""
        z, masses = self._probit(points), self._logmass(points)
        here = np.isfinite(masses)
        if not here.any():
            return z
        at, before = self._logcdf(points), np.logaddexp(self._logsf(points), masses)
        with np.errstate(divide="ignore", invalid="ignore"):
            lower = at + np.log(-np.expm1(np.minimum(masses - at, 0.0)))
        below = np.where(lower < before, ndtri_exp(lower), -ndtri_exp(np.minimum(before, 0.0)))
        return np.where(here, below, z)

    def _logslope(self, points: Array) -> Array:
        """Return log dz/dt for z = probit(t)."""
        return self._probit_and_logslope(points)[1]

    def _probit_and_logslope(self, points: Array) -> tuple[Array, Array]:
        return self._far_probit_and_logslope(points)

    def _far_probit_and_logslope(self, points: Array) -> tuple[Array, Array]:
        """Return both by logs, also where probabilities and densities are too small to tell."""
        z = self._probit(points)
        with np.errstate(invalid="ignore"):
            slope = self._logpdf(points) - log_normal_density(z)
        return z, np.where(np.isnan(slope), -np.inf, slope)  # where there is no density at all

    def _sides_and_density(self, points: Array) -> Array:
        """Return cdf, sf and density, (3, n_rows, n_points); far out they may be 0.

        Whoever asks has switched off warnings of numbers that are not finite on the way.
        """
        z, logslope = self._probit_and_logslope(points)
        told = np.empty((3, *z.shape))
        ndtr(z, out=told[0])
        ndtr(-z, out=told[1])
        np.exp(logslope - 0.5 * z * z - LOG_SQRT_2PI, out=told[2])
        return told

    def _signed_tail(self, points: Array) -> Array:
        """Return cdf below the median and cdf - 1 = -sf above it: exact in both tails.

        The sign bit tells the side, also where the tail has become 0.
        """
        lower, upper = self._cdf(points), self._sf(points)
        return np.where(upper < lower, -upper, lower)

    def _log_mass_between(self, low: Array, high: Array) -> Array:
        """Return log P(low < Y <= high), also of a valley between two tails that are large."""
        shape = (len(self), max(low.shape[1], high.shape[1]))
        low, high = np.broadcast_to(low, shape), np.broadcast_to(high, shape)
        start, end = ((self._logcdf(t), self._logsf(t)) for t in (low, high))
        logs = log_difference(start, end)
        with np.errstate(invalid="ignore"):
            lost = logs < np.minimum(end[0], start[1]) + np.log(CANCELLED)
        lost &= np.isfinite(low) & np.isfinite(high)
        if lost.any():
            part = self._take(np.nonzero(lost)[0])
            ends = low[lost][:, np.newaxis], high[lost][:, np.newaxis]
            logs[lost] = log_mass_inside(part._logpdf, *ends)[:, 0]
        return logs

    def _bracket(self, probits: Array) -> tuple[Array, Array]:
        """Return points between which the quantiles at `probits` lie; may be narrow guesses."""
        return np.full(probits.shape, -1.0), np.full(probits.shape, 1.0)

    def _from_probit(self, probits: Array) -> Array:
        """Return the quantiles at the given probit values, the inverse of `_probit`."""
        probits = np.broadcast_to(probits, (len(self), probits.shape[1]))
        low, high = self._bracket(probits)
        return solve_increasing(self._probit_of_rows, probits, low, high)

    def _trace(self, probits: Array) -> tuple[Array, Array]:
        """Return the quantiles at probit values z, and dt / dz there."""
        t = self._from_probit(probits)
        with np.errstate(over="ignore"):
            return t, np.exp(-self._logslope(t))

    def _probit_of_rows(self, rows: np.ndarray, points: Array) -> tuple[Array, Array]:
        z, logslope = self._take(rows)._probit_and_logslope(points)
        with np.errstate(over="ignore"):
            return z, np.exp(logslope)

    def _ppf(self, levels: Array) -> Array:
        return self._from_probit(ndtri(levels))

    def _largest_spread(self) -> Array | None:
        """Return a bound on dt / dz per row, for the probit z, or None where none is known."""
        return None

    def _kinks(self) -> Array | None:
        """Return points, (n_rows or 1, n_kinks), where the density is not smooth."""
        return None

    def _jumps(self) -> Array | None:
        """Return those kinks at which the density itself may jump."""
        return self._kinks()

    def _probit_kinks(self) -> Array | None:
        """Return the probits of kinks, (n_rows or 1, n_kinks)."""
        kinks = self._kinks()
        return None if kinks is None else self._probit(kinks)

    def _landmarks(self) -> Array | None:
        """Return points, (n_rows, n_points), close enough to show all narrow parts, if any."""
        return None

    def _crps(self, lower: Array, upper: Array, start: Array, end: Array) -> Array:
        """Return the integral from start to end of cdf^2 below outcomes and of sf^2 above them.

        Outcomes lie in [lower, upper]; in between it is not known which of the two it is, and
        nothing is added.
        """
        below = lower[:, np.newaxis]
        above = below if np.array_equal(lower, upper) else upper[:, np.newaxis]
        known = [np.where(np.isinf(below), above, below)]
        if above is not below:
            known.append(np.where(np.isinf(above), below, above))
        cuts = np.concatenate(known, axis=1)
        places = below, above, start[:, np.newaxis], end[:, np.newaxis]

        def sums_of(rows: np.ndarray | None) -> Callable[[Effort], PanelSums]:
            if rows is None:
                return lambda effort: self._nodes(cuts, places[2:], effort).crps(*places)
            part, lower, *rest = self._take(rows), *(place[rows] for place in places)
            own = [lower, lower if above is below else rest[0], *rest[1:]]
            return lambda effort: part._nodes(cuts[rows], own[2:], effort).crps(*own)

        return refined(sums_of)[0]

    def _mean_and_var(self) -> tuple[Array, Array]:
        # E (Y - c) and E (Y - c)^2 as integrals of the tails, which stay finite where a density
        # does not
        def sums_of(rows: np.ndarray | None) -> Callable[[Effort], PanelSums]:
            dist = self if rows is None else self._take(rows)
            return lambda effort: dist._nodes(effort=effort).moments()

        mean, var = refined(sums_of)
        return mean, var

    def _partial_moments(self, edges: Array) -> tuple[Array, Array, Array] | None:
        """Return places c, and integrals of (t - c) and (t - c)^2 times the density, if known.

        Between neighbouring edges, (n_rows or 1, n_edges), of which the first and last are
        infinite. The places are (n_rows, 1).
        """
        return None

    def _nodes(
        self, cuts: Array | None = None, region: Sequence[Array] = (), effort: Effort = WHOLE
    ) -> Nodes:
        """Return where to evaluate integrals over thresholds, in a region if one is given.

        No panel has a cut inside, cuts being (n_rows, n_cuts).
        """
        if self._explicit:
            return self._nodes_along(IDENTITY, cuts, region, effort)
        edges = self._panel_edges(cuts)
        inside, rule = np.clip(edges, *region) if region else edges, rule_for(edges)
        points, lengths = rule.between(effort.edges(inside))
        centre, reach = edges[:, edges.shape[1] // 2, np.newaxis], edges[:, [0, -1]]
        slack = np.zeros((1, points.shape[1] // len(rule.nodes)))
        return Nodes(points, lengths, self._signed_tail(points), centre, reach, rule, slack)

    def _nodes_along(
        self, curve: Curve, cuts: Array | None, region: Sequence[Array], effort: Effort
    ) -> Nodes:
        """Return nodes along the rows' own probits, which a curve turns into those of a result.

        There is nothing to search for: a node has a quantile, and its probability is the curve's.
        """
        edges = self._probit_panels(curve)
        ends = self._from_probit(edges[:, [0, edges.shape[1] // 2, -1]])
        if region and np.isfinite(region).any():
            edges = np.clip(edges, *(self._probit(end) for end in region))
        places = None if cuts is None else self._probit(cuts)
        if places is not None and places.shape[1] > 1:
            edges, places = panels_between(edges, [places]), None
        n_panels = edges.shape[1] - 1
        shared, own = effort.split(n_panels)
        rule = ALONG_PROBITS if self._straight else ALONG_BENDS
        nodes = self._traced(curve, shared.edges(edges), rule)
        if places is not None:
            # what rows share stays shared: the panel of a row's cut is replaced by two of its own
            held, halves = cut_panels(edges, places)
            rule.panels(nodes[1])[shared.numbers(n_panels) == held] = 0.0
            both = nodes, self._traced(curve, own.edges(halves), rule)
            nodes = tuple(map(joined_columns, zip(*both, strict=True)))
        else:
            own.check(0)
        points, lengths, tails, slack = nodes
        centre, reach = ends[:, 1:2], ends[:, ::2]
        return Nodes(points, lengths, tails, centre, reach, rule, slack)

    def _traced(self, curve: Curve, edges: Array, rule: Rule) -> tuple[Array, ...]:
        """Return points, lengths, tails and slack of panels between probits."""
        z, widths = rule.between(edges)
        points, spread = self._trace(z)
        with np.errstate(invalid="ignore"):
            lengths = widths * spread
        slack = np.zeros((1, edges.shape[1] * (edges.shape[2] - 1)))
        if not self._straight:  # else lengths are exact
            places = self._from_probit(edges.reshape(len(edges), -1))
            places = places.reshape(len(places), *edges.shape[1:])
            lengths, slack = rule.stretched(lengths, np.diff(places))
        return points, lengths, signed_tails(curve(z)), slack

    def _probit_panels(self, curve: Curve) -> Array:
        """Return edges of panels along the rows' own probits, (n_rows or 1, n_edges)."""
        return panels_between(curve.panels(), [self._probit_kinks()])

    def _panel_edges(self, extra: Array | None = None) -> Array:
        return panels_between(self._panel_quantiles, [self._kinks(), self._landmarks(), extra])

    def _first_edges(self) -> Array:
        """Return edges of panels for a first attempt at an integral, (n_rows, n_edges)."""
        return self._panel_edges()

    @cached_property
    def _panel_quantiles(self) -> Array:
        return self._from_probit(np.broadcast_to(PANEL_PROBITS, (len(self), len(PANEL_PROBITS))))


def outer_tail(points: Array, lower: Array, upper: Array, cdf: Array, sf: Array) -> Array:
    """Return the CDF below outcomes in [lower, upper], sf above them, and 0 in between."""
    return np.where(points < lower, cdf, np.where(points >= upper, sf, 0.0))


def mass_between(low: Array, high: Array) -> Array:
    """Return P(low < Y <= high) from the signed tails at both ends, without cancellation."""
    across = np.signbit(high) > np.signbit(low)
    return np.maximum(high - low + across, 0.0)


def log_difference(low: tuple[Array, Array], high: tuple[Array, Array]) -> Array:
    """Return log P(low < Y <= high) from (logcdf, logsf) at both ends."""
    (low_cdf, low_sf), (high_cdf, high_sf) = low, high
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        lower = high_cdf + np.log(-np.expm1(np.minimum(low_cdf - high_cdf, 0.0)))
        upper = low_sf + np.log(-np.expm1(np.minimum(high_sf - low_sf, 0.0)))
        across = np.log1p(-np.minimum(np.exp(low_cdf) + np.exp(high_sf), 1.0))
        result = np.where(high_cdf <= LOG_HALF, lower, np.where(low_sf <= LOG_HALF, upper, across))
    return np.where(np.isnan(result), -np.inf, result)


def joined_kinks(parts: Sequence[Array | None], n_rows: int) -> Array | None:
    """Return the kinks of several parts, (n_rows, n_kinks), or None if there are none."""
    known = [np.broadcast_to(k, (n_rows, k.shape[1])) for k in parts if k is not None]
    return np.concatenate(known, axis=1) if known else None


def outermost(filled: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the numbers of each row's first and last filled segment, as columns."""
    first = filled.argmax(axis=1)
    last = filled.shape[1] - 1 - filled[:, ::-1].argmax(axis=1)
    return first[:, np.newaxis], last[:, np.newaxis]
