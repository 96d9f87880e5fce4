"""Distributions whose segments carry new masses: the result of one-vs-rest calibration."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np
from scipy.special import log_expit, log_ndtr, ndtri_exp

from regcal._validation import Array
from regcal.distributions._quadrature import (
    WHOLE,
    Effort,
    Nodes,
    Rule,
    joined_columns,
    panels_between,
)
from regcal.distributions._roots import solve_increasing
from regcal.distributions.base import (
    CANCELLED,
    LOG_HALF,
    Distribution,
    joined_kinks,
    log_difference,
    mass_between,
    outermost,
)

# Below this mass a difference of tails is formed in log space.
_SMALL = 1e-290
_LOG_SMALL = float(np.log(_SMALL))

# The sides of a point.
_BELOW, _ABOVE = False, True

# What integrals may leave out beyond the outermost quantiles of the base.
_SMALL_SHARE = 1e-9


def log_segment_masses(dist: Distribution, thresholds: Array) -> Array:
    """Return the log probability of each segment between thresholds, outer ones open-ended.

    Returns
    -------
    ndarray of shape (n_rows, n_thresholds + 1)
    """
    n_thresholds = len(thresholds)
    tails = np.empty((len(dist), n_thresholds + 2))
    tails[:, 0], tails[:, -1] = 0.0, -0.0
    tails[:, 1:-1] = dist._signed_tail(thresholds[np.newaxis, :])
    masses = mass_between(tails[:, :-1], tails[:, 1:])
    sizes = np.abs(tails)
    least = np.maximum(CANCELLED * np.maximum(sizes[:, :-1], sizes[:, 1:]), _SMALL)
    rows, segments = np.nonzero(masses < least)
    with np.errstate(divide="ignore"):
        logs = np.log(masses, out=masses)
    if len(rows):
        grid = np.concatenate([[-np.inf], thresholds, [np.inf]])
        ends = grid[segments][:, np.newaxis], grid[segments + 1][:, np.newaxis]
        logs[rows, segments] = dist._take(rows)._log_mass_between(*ends)[:, 0]
    return logs


def _ends(dist: Distribution, thresholds: Array) -> tuple[Array, Array]:
    """Return logcdf and logsf at -inf, the thresholds, and +inf."""
    grid = np.concatenate([[-np.inf], thresholds, [np.inf]])[np.newaxis, :]
    shape = (len(dist), grid.shape[1])
    return (
        np.broadcast_to(dist._logcdf(grid), shape),
        np.broadcast_to(dist._logsf(grid), shape),
    )


def _support(dist: Distribution) -> Array:
    """Return the ends of each row's support, (n_rows, 2)."""
    return dist._from_probit(np.array([[-np.inf, np.inf]]))


@dataclass(frozen=True)
class _Table:
    """What a batch needs to know of its segments; all logs, (n_rows, n_segments)."""

    start_cdf: Array  # base logcdf and logsf at the start and the end of each segment
    start_sf: Array
    end_cdf: Array
    end_sf: Array
    low: Array  # where the segment starts and ends, within the base's support
    high: Array
    base: Array  # base mass of the segment
    new: Array  # calibrated mass of the segment
    below: Array  # calibrated mass of all segments below, and above
    above: Array
    whole: tuple[Array, Array]  # of all segments, (n_rows, 1): 0 but for digits of either sum

    @property
    def deep(self) -> np.ndarray:
        """Segments in a valley: differences of the base's tails have lost their mass."""
        least = np.minimum(self.end_cdf, self.start_sf) + np.log(CANCELLED)
        return (self.base > -np.inf) & (self.base < least)

    @property
    def lost(self) -> np.ndarray:
        """Segments that need logarithms: they count, and have next to nothing of the base."""
        return (self.new > -np.inf) & ((self.base < _LOG_SMALL) | self.deep)


class Segmented(Distribution):
    """A base distribution whose segments between thresholds carry new masses.

    Parameters
    ----------
    base : Distribution
        The distributions to change.
    thresholds : ndarray of shape (n_thresholds,)
        Increasing ends of the segments; the two outer segments are open-ended.
    reweight : callable
        Takes the base and its log masses (n_rows, n_thresholds + 1) and returns log new masses;
        they need not be normalised.
    uniform : bool
        Whether the mass of a bounded segment is spread evenly, or as the base density is inside
        it. The open-ended segments always follow the base.

    Notes
    -----
    The support stays that of the base. Segments beyond its ends get no mass, and one that an end
    lies in is spread evenly up to it. A segment in a gap of the support, in which the base has no
    mass at all, is uniform.
    """

    def __init__(
        self,
        base: Distribution,
        thresholds: Array,
        reweight: Callable[[Distribution, Array], Array],
        *,
        uniform: bool = False,
    ) -> None:
        self.base = base
        self.thresholds = thresholds
        self.reweight = reweight
        self.uniform = uniform
        self._work_per_point = base._work_per_point * 2 + len(thresholds)

    def __len__(self) -> int:
        return len(self.base)

    def _details(self) -> list[str]:
        return [self.base._kind(), f"{len(self.thresholds) + 1} segments"]

    def _take(self, rows: np.ndarray) -> Self:
        base = self.base._take(rows)
        return type(self)(base, self.thresholds, self.reweight, uniform=self.uniform)

    def log_masses(self) -> Array:
        """Return the calibrated log mass of each segment, (n_rows, n_segments)."""
        base = log_segment_masses(self.base, self.thresholds)
        return self._normalised(base)

    def _normalised(self, log_base: Array) -> Array:
        first, last = outermost(log_base > -np.inf)
        segments = np.arange(log_base.shape[1])
        within = (segments >= first) & (segments <= last)
        log_new = np.where(within, self.reweight(self.base, log_base), -np.inf)
        # Section 4, prediction step 2: q_i = c_i(p_i) / sum_j c_j(p_j)
        peak = log_new.max(axis=1, keepdims=True)
        peak = np.where(np.isfinite(peak), peak, 0.0)
        with np.errstate(divide="ignore"):
            total = peak + np.log(np.exp(log_new - peak).sum(axis=1, keepdims=True))
        return np.where(np.isfinite(total), log_new - total, log_base)

    @cached_property
    def _table(self) -> _Table:
        logcdf, logsf = _ends(self.base, self.thresholds)
        log_base = log_segment_masses(self.base, self.thresholds)
        log_new = self._normalised(log_base)
        support = _support(self.base)
        grid = np.concatenate([[-np.inf], self.thresholds, [np.inf]])[np.newaxis, :]
        grid = np.clip(grid, support[:, :1], support[:, 1:])
        empty = np.full((len(self), 1), -np.inf)
        below = np.logaddexp.accumulate(log_new, axis=1)
        above = np.logaddexp.accumulate(log_new[:, ::-1], axis=1)[:, ::-1]
        return _Table(
            start_cdf=logcdf[:, :-1],
            start_sf=logsf[:, :-1],
            end_cdf=logcdf[:, 1:],
            end_sf=logsf[:, 1:],
            low=grid[:, :-1],
            high=grid[:, 1:],
            base=log_base,
            new=log_new,
            below=np.concatenate([empty, below[:, :-1]], axis=1),
            above=np.concatenate([above[:, 1:], empty], axis=1),
            whole=(below[:, -1:], above[:, :1]),
        )

    # ---------------------------------------------------------------------------------- evaluation

    def _segment(self, points: Array) -> np.ndarray:
        """Return the number of the segment (t_{i-1}, t_i] of each point."""
        segments = np.searchsorted(self.thresholds, points, side="left")
        return np.broadcast_to(segments, (len(self), points.shape[1]))

    def _at(self, table: Array, segments: np.ndarray) -> Array:
        # by numbers in a flat table, which are faster than pairs
        starts = np.arange(len(table))[:, np.newaxis] * table.shape[1]
        return table.ravel().take(segments + starts)

    def _even(self, segments: np.ndarray) -> np.ndarray:
        """Return where a segment's mass is spread evenly."""
        inner = (segments > 0) & (segments < len(self.thresholds))
        if self.uniform:
            return inner
        return inner & np.isneginf(self._at(self._table.base, segments))

    def _edges(self, segments: np.ndarray) -> tuple[Array, Array]:
        return self._at(self._table.low, segments), self._at(self._table.high, segments)

    def _log_shares(self, points: Array, segments: np.ndarray) -> tuple[Array, Array]:
        """Return the log shares of a point's segment that lie below and above it."""
        below, above = self._log_masses_beside(points, segments)
        even, share = self._even(segments), self._even_share(points, segments)
        with np.errstate(divide="ignore", invalid="ignore"):
            # from their odds: far out, where last digits are large, shares still make a whole
            odds = below - above
            below = np.where(even, np.log(share), log_expit(odds))
            above = np.where(even, np.log1p(-share), log_expit(-odds))
        below, above = (np.where(np.isnan(a), -np.inf, a) for a in (below, above))
        return np.minimum(below, 0.0), np.minimum(above, 0.0)

    def _log_masses_beside(self, points: Array, segments: np.ndarray) -> tuple[Array, Array]:
        """Return the base's log masses of a point's segment that lie below and above it."""
        table = self._table
        here = (self.base._logcdf(points), self.base._logsf(points))
        start = (self._at(table.start_cdf, segments), self._at(table.start_sf, segments))
        end = (self._at(table.end_cdf, segments), self._at(table.end_sf, segments))
        below, above = log_difference(start, here), log_difference(here, end)
        deep = self._at(table.deep, segments)
        if deep.any():
            part = self.base._take(np.nonzero(deep)[0])
            low, at, high = (
                np.broadcast_to(edge, deep.shape)[deep][:, np.newaxis]
                for edge in (self._at(table.low, segments), points, self._at(table.high, segments))
            )
            below[deep] = part._log_mass_between(low, at)[:, 0]
            above[deep] = part._log_mass_between(at, high)[:, 0]
        return below, above

    def _even_share(self, points: Array, segments: np.ndarray) -> Array:
        """Return how much of the length of a point's segment lies below it."""
        low, high = self._edges(segments)
        with np.errstate(invalid="ignore"):
            return np.clip((points - low) / np.where(high > low, high - low, 1.0), 0.0, 1.0)

    def _cdf(self, points: Array) -> Array:
        return self._masses(points, _BELOW)[0]

    def _sf(self, points: Array) -> Array:
        return self._masses(points, _ABOVE)[0]

    def _signed_tail(self, points: Array) -> Array:
        lower, upper = self._masses(points, _BELOW, _ABOVE)
        return np.where(upper < lower, -upper, lower)

    def _masses(self, points: Array, *sides: bool) -> list[Array]:
        """Return the masses on sides of points, by logarithms where the base's mass underflows.

        These are slow. Which way a row goes does not depend on the rows beside it.
        """
        lost = np.flatnonzero(self._lost)
        if len(lost) == len(self):
            return [np.exp(self._log_tails(points)[side]) for side in sides]
        masses = self._masses_beside(points, sides)
        if len(lost):
            own = points if len(points) == 1 else points[lost]
            for mass, exact in zip(masses, self._take(lost)._masses(own, *sides), strict=True):
                mass[lost] = exact
        return masses

    @property
    def _lost(self) -> np.ndarray:
        """Rows that need logarithms; where masses are spread evenly, the base's does not matter."""
        segments = self._table.lost
        return (segments[:, [0, -1]] if self.uniform else segments).any(axis=1)

    def _new_tails(self, points: Array, here: Array) -> Array:
        """Return signed tails at points where the base has others, each on the base's side."""
        segments, above = self._segment(points), np.signbit(here)
        table, n_segments = self._table, len(self.thresholds) + 1
        # from the end of its segment on that side
        end = self._at(self._tails, segments + above)
        beside = np.maximum(np.where(above, end - here, here - end), 0.0)
        (lower, total), (upper, _) = self._sums(False), self._sums(True)
        outer = self._at(np.concatenate([lower, upper], axis=1), segments + n_segments * above)
        new, base = np.exp(table.new), np.exp(table.base)
        rate = self._at(new / np.where(base > 0, base, 1.0), segments)
        mass = outer + np.minimum(rate * beside, self._at(new, segments))
        return np.where(above, -mass, mass) / total

    def _masses_beside(self, points: Array, sides: Sequence[bool]) -> list[Array]:
        """Return the mass on each side of points: of whole segments, and within their own."""
        segments = self._segment(points)
        here, table = self.base._signed_tail(points), self._table
        mass = self._at(np.exp(table.new), segments)
        base = self._at(np.exp(table.base), segments)
        base = np.where(base > 0, base, 1.0)
        low, high = self._edges(segments)
        evenly = self._even_share(points, segments) if self.uniform else None
        masses = []
        for upper in sides:
            end = self._at(self._tails, segments + 1 if upper else segments)
            share = (mass_between(here, end) if upper else mass_between(end, here)) / base
            if evenly is not None:
                even = 1.0 - evenly if upper else evenly
                share = np.where(self._even(segments), even, share)
            whole = points <= low if upper else points >= high
            outer, total = self._sums(upper)
            share = np.where(whole, 1.0, np.minimum(share, 1.0))
            masses.append(np.minimum((self._at(outer, segments) + mass * share) / total, 1.0))
        return masses

    def _sums(self, upper: bool) -> tuple[Array, Array]:
        """Return the mass of all segments on one side of each, and of all, which is next to 1."""
        masses = np.exp(self._table.new)
        masses = masses[:, ::-1] if upper else masses
        sums = np.concatenate([np.zeros((len(self), 1)), np.cumsum(masses, axis=1)], axis=1)
        return sums[:, -2::-1] if upper else sums[:, :-1], sums[:, -1:]

    @cached_property
    def _tails(self) -> Array:
        """The base's signed tails at -inf, the thresholds and inf."""
        grid = np.concatenate([[-np.inf], self.thresholds, [np.inf]])[np.newaxis, :]
        tails = np.array(np.broadcast_to(self.base._signed_tail(grid), (len(self), grid.shape[1])))
        tails[:, 0], tails[:, -1] = 0.0, -0.0
        return tails

    def _logcdf(self, points: Array) -> Array:
        return self._log_tails(points)[0]

    def _logsf(self, points: Array) -> Array:
        return self._log_tails(points)[1]

    def _log_tails(self, points: Array) -> tuple[Array, Array]:
        """Return the log mass below points and above them."""
        table, segments = self._table, self._segment(points)
        new, (below, above) = self._at(table.new, segments), self._log_shares(points, segments)
        lower = np.logaddexp(self._at(table.below, segments), new + below) - table.whole[0]
        upper = np.logaddexp(self._at(table.above, segments), new + above) - table.whole[1]
        return np.minimum(lower, 0.0), np.minimum(upper, 0.0)

    def _probit(self, points: Array) -> Array:
        lower, upper = self._log_tails(points)
        return np.where(lower < upper, ndtri_exp(lower), -ndtri_exp(upper))

    def _logpdf(self, points: Array) -> Array:
        segments = self._segment(points)
        new = self._at(self._table.new, segments)
        mass = self._at(self._table.base, segments)
        low, high = self._edges(segments)
        inside = (points >= low) & (points <= high) & (new > -np.inf)
        with np.errstate(divide="ignore", invalid="ignore"):
            even = new - np.log(high - low)
            shaped = self.base._logpdf(points) + (new - mass)
        return np.where(inside, np.where(self._even(segments), even, shaped), -np.inf)

    # ----------------------------------------------------------------------------------- inversion

    def _from_probit(self, probits: Array) -> Array:
        """Find the segment of a level, then the base's quantile inside it."""
        probits = np.broadcast_to(probits, (len(self), probits.shape[1]))
        lower, upper = log_ndtr(probits), log_ndtr(-probits)
        table = self._table
        segments = np.zeros(probits.shape, dtype=np.intp)
        for k in range(1, table.new.shape[1]):
            start, rest = table.below[:, k : k + 1], table.above[:, k - 1 : k]
            segments += np.where(start <= LOG_HALF, lower > start, upper < rest)
        segments = np.clip(segments, *outermost(table.new > -np.inf))
        new = self._at(table.new, segments)
        below = np.minimum(_log_minus(lower, self._at(table.below, segments)) - new, 0.0)
        above = np.minimum(_log_minus(upper, self._at(table.above, segments)) - new, 0.0)
        # of the two, the one on the side of the smaller tail has kept its digits
        whole = np.zeros(below.shape)
        return self._inside(
            segments,
            np.where(probits < 0, below, _log_minus(whole, above)),
            np.where(probits < 0, _log_minus(whole, below), above),
        )

    def _inside(self, segments: np.ndarray, below: Array, above: Array) -> Array:
        """Return the points with the given log shares of their segment below and above them."""
        table = self._table
        low, high = self._edges(segments)
        mass = self._at(table.base, segments)
        logcdf = np.logaddexp(self._at(table.start_cdf, segments), mass + below)
        logsf = np.logaddexp(self._at(table.end_sf, segments), mass + above)
        logcdf, logsf = np.minimum(logcdf, 0.0), np.minimum(logsf, 0.0)
        z = np.where(logcdf < logsf, ndtri_exp(logcdf), -ndtri_exp(logsf))
        shaped = np.clip(self.base._from_probit(np.where(np.isnan(z), 0.0, z)), low, high)
        even = self._even(segments)
        deep = self._at(table.deep, segments) & ~even
        if deep.any():
            shaped[deep] = self._take(np.nonzero(deep)[0])._deep_inside(
                *(part[deep][:, np.newaxis] for part in (segments, below, above))
            )[:, 0]
        with np.errstate(invalid="ignore"):
            from_low, from_high = np.exp(below) * (high - low), np.exp(above) * (high - low)
            evenly = np.where(below < above, low + from_low, high - from_high)
        return np.where(even, evenly, shaped)

    def _deep_inside(self, segments: np.ndarray, below: Array, above: Array) -> Array:
        """Return the points with the given log shares of segments in a valley of the base."""
        low, high = self._edges(segments)

        def log_odds(rows: np.ndarray, points: Array) -> tuple[Array, Array]:
            lower, upper = self._take(rows)._log_masses_beside(points, segments[rows])
            return lower - upper, np.full(points.shape, np.nan)

        return np.clip(solve_increasing(log_odds, below - above, low, high), low, high)

    def _row_work(self, n_points: int) -> int:
        return self.base._row_work(n_points) + 2 * n_points + 4 * len(self.thresholds)

    def _nodes(
        self, cuts: Array | None = None, region: Sequence[Array] = (), effort: Effort = WHOLE
    ) -> Nodes:
        """Return the base's nodes, cut at thresholds; by quantiles where those are in doubt.

        A base that has next to nothing where the new masses are tells too little of them.
        """
        if effort.careful:
            return super()._nodes(cuts, region, effort)
        nodes = (self._even_nodes if self.uniform else self._shaped_nodes)(cuts, region, effort)
        outside = np.abs(self._signed_tail(nodes.reach)).max(axis=1)
        nodes.tails[self._lost | (outside > _SMALL_SHARE)] = np.nan
        return replace(nodes, quick=True)

    def _shaped_nodes(self, cuts: Array | None, region: Sequence[Array], effort: Effort) -> Nodes:
        """Return the base's nodes, cut at thresholds."""
        places = [self.thresholds[np.newaxis, :], self._finite_support(), cuts]
        nodes = self.base._nodes(_columns(places), region, effort)
        return replace(nodes, tails=self._new_tails(nodes.points, nodes.tails))

    def _even_nodes(self, cuts: Array | None, region: Sequence[Array], effort: Effort) -> Nodes:
        """Return nodes in segments that are spread evenly, and the base's beyond them."""
        grid = self.thresholds[np.newaxis, :]
        edges = panels_between(grid, [self._finite_support(), cuts])
        edges = np.clip(edges, *region) if region else edges
        inner, outer = effort.split(edges.shape[1] - 1)
        base = self.base._nodes(_columns([grid[:, [0, -1]], cuts]), region, outer)
        beyond = (base.points <= grid[:, :1]) | (base.points >= grid[:, -1:])
        own = self._even_values(inner.edges(edges), base.rule)
        beside = (
            base.points,
            np.where(beyond, base.lengths, 0.0),
            np.where(beyond, self._new_tails(base.points, base.tails), 0.0),
            base.slack,
        )
        middle = np.clip(self._sums(False)[0] <= 0.5, 0, 1).sum(axis=1) - 1
        points, lengths, tails, slack = map(joined_columns, zip(own, beside, strict=True))
        centre = self.thresholds.take(middle, mode="clip")[:, np.newaxis]
        return Nodes(points, lengths, tails, centre, base.reach, base.rule, slack)

    def _even_values(self, edges: Array, rule: Rule) -> tuple[Array, Array, Array, Array]:
        """Return points, lengths, tails and slack of panels within segments."""
        starts, ends = (part.reshape(len(edges), -1) for part in (edges[..., :-1], edges[..., 1:]))
        points, lengths = rule.between(edges)
        segments = self._segment(0.5 * (starts + ends))
        (lower, total), (upper, _) = self._sums(False), self._sums(True)
        below, above, mass = (
            self._at(table, segments)[:, :, np.newaxis]
            for table in (lower / total, upper / total, np.exp(self._table.new) / total)
        )
        low, high = (edge[:, :, np.newaxis] for edge in self._edges(segments))
        share = (rule.panels(points) - low) / np.where(high > low, high - low, 1.0)
        share = np.clip(share, 0.0, 1.0)
        below, above = below + share * mass, above + (1.0 - share) * mass
        tails = np.where(above < below, -above, below).reshape(len(self), -1)
        return points, np.broadcast_to(lengths, tails.shape), tails, np.zeros((1, starts.shape[1]))

    def _first_edges(self) -> Array:
        return self.base._first_edges()

    def _jumps(self) -> Array | None:
        parts = [self.thresholds[np.newaxis, :], self._finite_support(), self.base._jumps()]
        return joined_kinks(parts, len(self))

    def _panel_edges(self, extra: Array | None = None) -> Array:
        # the base knows best where its density is narrow
        edges = [super()._panel_edges(extra), self.base._panel_edges()]
        return np.sort(np.concatenate(edges, axis=1), axis=1)

    def _kinks(self) -> Array | None:
        parts = [self.thresholds[np.newaxis, :], self._finite_support(), self.base._kinks()]
        return joined_kinks(parts, len(self))

    def _finite_support(self) -> Array | None:
        """Return those ends of the support that are ends in any row, (n_rows, n_ends)."""
        ends = _support(self.base)
        ends = ends[:, np.isfinite(ends).any(axis=0)]
        return ends if ends.shape[1] else None


def _columns(parts: Sequence[Array | None]) -> Array:
    """Return those parts that there are beside each other."""
    return joined_columns([part for part in parts if part is not None])


def keep_masses(base: Distribution, log_masses: Array) -> Array:
    """Leave masses as they are: with ``uniform=True``, difference quotients of the base's CDF."""
    return log_masses


def _log_minus(total: Array, part: Array) -> Array:
    """Return log(exp(total) - exp(part)), -inf where nothing is left."""
    with np.errstate(divide="ignore", invalid="ignore"):
        left = total + np.log(-np.expm1(np.minimum(part - total, 0.0)))
    return np.where(np.isnan(left), -np.inf, left)
