"""Distributions whose segments carry new masses: the result of one-vs-rest calibration."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import Self

import numpy as np
from scipy.special import log_expit, log_ndtr, ndtr, ndtri, ndtri_exp

from regcal._validation import Array
from regcal.distributions._logs import log_sum
from regcal.distributions._quadrature import (
    WHOLE,
    Effort,
    Nodes,
    Rule,
    joined_columns,
    panels_between,
)
from regcal.distributions._roots import solve_increasing
from regcal.distributions._segment_table import SegmentMasses, SegmentTable
from regcal.distributions._segments import (
    BaseMasses,
    Reweight,
    SegmentLogs,
    columns_of,
    joined_segments,
    log_minus,
    share_behind,
    support_of,
    with_open_ends,
)
from regcal.distributions.base import Distribution, SidedDistribution
from regcal.distributions.primitives import (
    CANCELLED,
    FAR_TAIL,
    LOG_HALF,
    joined_kinks,
    log_difference,
    outermost,
)
from regcal.distributions.stacked import joint
from regcal.maps.base import for_rows
from regcal.maps.members import Members
from regcal.maps.spline import count_reached

# Beyond, the probability of a tail is smaller than that.
_FAR_PROBIT = 36.0

# The first and the last segment.
_ENDS = np.array([0, -1])

# What integrals may leave out beyond the outermost quantiles of the base.
_SMALL_SHARE = 1e-9


def log_segment_masses(dist: Distribution, thresholds: Array) -> Array:
    """Return the log probability of each segment between thresholds, outer ones open-ended.

    Returns
    -------
    ndarray of shape (n_rows, n_thresholds + 1)
    """
    return BaseMasses.of(dist, thresholds).logs(dist, thresholds)


class Segmented(SidedDistribution):
    """A base distribution whose segments between thresholds carry new masses.

    Parameters
    ----------
    base : Distribution
        The distributions to change.
    thresholds : ndarray of shape (n_thresholds,) or (n_rows, n_thresholds)
        Increasing ends of the segments, of all rows or each; the two outer segments are open-ended.
    reweight : callable
        Takes the base and its log masses (n_rows, n_thresholds + 1) and returns log new masses;
        they need not be normalised. It is asked to take rows if these have their own thresholds.
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
        reweight: Reweight,
        *,
        uniform: bool = False,
    ) -> None:
        self.base = base
        self.thresholds = thresholds
        self.reweight = reweight
        self.uniform = uniform
        self._work_per_point = base._work_per_point * 2 + thresholds.shape[-1]

    def __len__(self) -> int:
        return len(self.base)

    def _details(self) -> list[str]:
        return [self.base._kind(), f"{self._n_segments} segments"]

    @property
    def _n_segments(self) -> int:
        return self.thresholds.shape[-1] + 1

    def _take(self, rows: np.ndarray) -> Self:
        thresholds, reweight = self.thresholds, self.reweight
        if thresholds.ndim == 2:
            thresholds, reweight = thresholds[rows], reweight.take(rows)  # type: ignore[attr-defined]
        return type(self)(self.base._take(rows), thresholds, reweight, uniform=self.uniform)

    @classmethod
    def _joint(cls, parts: Sequence[Segmented], members: Members) -> Segmented | None:
        uniform = parts[0].uniform
        if any(part.uniform != uniform or part.thresholds.ndim > 1 for part in parts):
            return None
        base = joint([part.base for part in parts], members)
        if base is None:
            return None
        grids = [part.thresholds for part in parts]
        functions = [part.reweight for part in parts]
        # what a fit leaves behind is the same each time that it is applied
        learnt = [getattr(one, "maps", one) for one in functions]
        join = partial(joined_segments, grids, functions, members)
        kind = cls, members.n_each
        thresholds, reweight = members.joints.once(kind, [*grids, *learnt], join)
        return cls(base, thresholds, reweight, uniform=uniform)

    def log_masses(self) -> Array:
        """Return the calibrated log mass of each segment, (n_rows, n_segments)."""
        return self._log_new.copy()

    @cached_property
    def _base_masses(self) -> BaseMasses:
        return BaseMasses.of(self.base, self.thresholds)

    @cached_property
    def _log_base(self) -> Array:
        return self._base_masses.logs(self.base, self.thresholds)

    @cached_property
    def _log_new(self) -> Array:
        log_base, log_new = self._log_base, self.reweight(self.base, self._log_base)
        if not np.isfinite(log_base[:, _ENDS]).all():
            first, last = outermost(log_base > -np.inf)
            segments = np.arange(log_base.shape[1])
            log_new = np.where((segments >= first) & (segments <= last), log_new, -np.inf)
        # Section 4, prediction step 2: q_i = c_i(p_i) / sum_j c_j(p_j)
        total = log_sum(log_new, axis=1)[:, np.newaxis]
        return np.where(total == -np.inf, log_base, log_new - total)

    @cached_property
    def _lost(self) -> np.ndarray:
        """Rows that need logarithms: a segment that counts has next to nothing of the base."""
        short = self._base_masses.short
        if not np.count_nonzero(short):
            return np.zeros(len(self), dtype=bool)
        lost: np.ndarray = short & (self._log_new > -np.inf)
        # where masses are spread evenly, the base's do not matter
        return np.any(lost[:, [0, -1]] if self.uniform else lost, axis=1)

    @cached_property
    def _logs(self) -> SegmentLogs:
        return SegmentLogs.of(self.base, self.thresholds, self._log_new)

    @cached_property
    def _edges(self) -> Array:
        """Where segments start and end within the base's support, (n_rows, n_segments + 1)."""
        support = support_of(self.base)
        grid = with_open_ends(self.thresholds)
        return np.minimum(np.maximum(grid, support[:, :1]), support[:, 1:])

    @cached_property
    def _masses(self) -> SegmentMasses:
        """The masses of segments, the base's and calibrated ones."""
        return SegmentMasses(self._base_masses, np.exp(self._log_new))

    @cached_property
    def _table(self) -> SegmentTable:
        """What is asked of segments at points."""
        return SegmentTable(self._masses, self._edges)

    # ---------------------------------------------------------------------------------- evaluation

    def _segment(self, points: Array) -> np.ndarray:
        """Return the number of the segment (t_{i-1}, t_i] of each point."""
        if self.thresholds.ndim == 1:
            return self.thresholds.searchsorted(points, side="left")
        return count_reached(self.thresholds, points, strictly=True)

    def _places(self, segments: np.ndarray) -> np.ndarray:
        """Return where segments stand in tables that go row by row."""
        return segments + self._first_places

    @cached_property
    def _first_places(self) -> np.ndarray:
        """Where rows begin in these tables, (n_rows, 1)."""
        return np.arange(0, len(self) * self._n_segments, self._n_segments)[:, np.newaxis]

    def _at(self, table: Array, segments: np.ndarray) -> Array:
        return table.ravel().take(self._places(segments))

    @cached_property
    def _even_segments(self) -> np.ndarray:
        """Segments whose mass is spread evenly, (n_rows or 1, n_segments)."""
        if self.uniform:
            even = np.ones((1, self._n_segments), dtype=bool)
        else:
            even = np.isneginf(self._log_base)
        even[:, 0] = even[:, -1] = False
        return even

    def _even(self, segments: np.ndarray) -> np.ndarray:
        """Return where a segment's mass is spread evenly."""
        even = self._even_segments
        return even[0].take(segments) if len(even) == 1 else self._at(even, segments)

    def _sides(self, points: Array, segments: np.ndarray) -> Array:
        """Return the mass below points and above them, by logarithms where the base's underflows.

        These are slow. Which way a row goes does not depend on the rows beside it.
        """
        shaped = self._shaped(segments)
        near = points[:, shaped]
        here = self.base._signed_tail(near) if near.size else near
        sides = self._masses_beside(points, segments, shaped, here)
        if np.count_nonzero(self._lost):
            lost = np.flatnonzero(self._lost)
            own = points if len(points) == 1 else points[lost]
            sides[:, lost] = np.exp(self._take(lost)._log_tails(own))
        return sides

    def _shaped(self, segments: np.ndarray) -> np.ndarray | slice:
        """Return the columns in which the base is asked: all, unless some segments are even."""
        return np.flatnonzero(~self._even(segments).all(axis=0)) if self.uniform else slice(None)

    def _masses_beside(
        self, points: Array, segments: np.ndarray, shaped: np.ndarray | slice, here: Array
    ) -> Array:
        """Return the mass below points and above them; the base has tails `here` where shaped."""
        places = self._places(segments)
        if not self.uniform:
            return self._table.beside(places, here)
        shares = self._table.even_shares(places, points)
        if here.size:
            own = self._table.shares(places[:, shaped], here)
            even = self._even(segments[:, shaped])
            shares[:, :, shaped] = np.where(even, shares[:, :, shaped], own)
        return self._table.beside_shares(places, shares)

    def _cdf(self, points: Array) -> Array:
        return self._sides(points, self._segment(points))[0]

    def _sf(self, points: Array) -> Array:
        return self._sides(points, self._segment(points))[1]

    def _signed_tail(self, points: Array) -> Array:
        lower, upper = self._sides(points, self._segment(points))
        return np.where(upper < lower, -upper, lower)

    def _sides_and_density(self, points: Array) -> Array:
        segments, told = self._segment(points), np.zeros((3, len(self), points.shape[1]))
        shaped = self._shaped(segments)
        here = near = points[:, shaped]
        if near.size:
            lower, upper, told[2][:, shaped] = self.base._sides_and_density(near)
            here = np.copysign(np.minimum(lower, upper), upper - lower)
        told[:2] = self._masses_beside(points, segments, shaped, here)
        told[2] *= self._at(self._factors, segments)
        if np.count_nonzero(self._even_segments):
            low, high = self._ends_of(segments)
            inside = (points >= low) & (points <= high)
            told[2] += np.where(inside, self._at(self._even_densities, segments), 0.0)
        if np.count_nonzero(self._lost):
            lost = np.flatnonzero(self._lost)
            own = points if len(points) == 1 else points[lost]
            part = self._take(lost)
            told[:, lost] = np.exp([*part._log_tails(own), part._logpdf(own)])
        return told

    @cached_property
    def _factors(self) -> Array:
        """What the base's density is multiplied by: nothing where masses are spread evenly."""
        with np.errstate(over="ignore"):
            factors = self._masses.new / self._masses.divisors
        return np.where(self._even_segments, 0.0, factors)

    @cached_property
    def _even_densities(self) -> Array:
        """The densities where masses are spread evenly, else 0."""
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            densities = self._masses.new / (self._edges[:, 1:] - self._edges[:, :-1])
        return np.where(self._even_segments & (self._masses.new > 0), densities, 0.0)

    def _probit(self, points: Array) -> Array:
        lower, upper = self._sides(points, self._segment(points))
        tail = np.minimum(lower, upper)
        distance = ndtri(tail)
        z = np.where(lower < upper, distance, -distance)
        far = (tail < FAR_TAIL) & np.isfinite(points)
        if far.any():
            rows = np.flatnonzero(far.any(axis=1))
            logs = self._take(rows)._log_tails(points if len(points) == 1 else points[rows])
            z[rows] = np.where(logs[0] < logs[1], ndtri_exp(logs[0]), -ndtri_exp(logs[1]))
        return z

    def _new_tails(self, points: Array, here: Array) -> Array:
        """Return signed tails at points where the base has others, each on the base's side."""
        return self._table.new_tails(self._places(self._segment(points)), here)

    def _logcdf(self, points: Array) -> Array:
        return self._log_tails(points)[0]

    def _logsf(self, points: Array) -> Array:
        return self._log_tails(points)[1]

    def _log_tails(self, points: Array) -> tuple[Array, Array]:
        """Return the log mass below points and above them."""
        logs, segments = self._logs, self._segment(points)
        new, (below, above) = self._at(self._log_new, segments), self._log_shares(points, segments)
        lower = np.logaddexp(self._at(logs.below, segments), new + below) - logs.whole[0]
        upper = np.logaddexp(self._at(logs.above, segments), new + above) - logs.whole[1]
        return np.minimum(lower, 0.0), np.minimum(upper, 0.0)

    def _log_shares(self, points: Array, segments: np.ndarray) -> tuple[Array, Array]:
        """Return the log shares of a point's segment that lie below and above it."""
        below, above = self._log_masses_beside(points, segments)
        even = self._even(segments)
        share, _ = self._table.even_shares(self._places(segments), points)
        with np.errstate(divide="ignore", invalid="ignore"):
            # from their odds: far out, where last digits are large, shares still make a whole
            odds = below - above
            below = np.where(even, np.log(share), log_expit(odds))
            above = np.where(even, np.log1p(-share), log_expit(-odds))
        below, above = (np.where(np.isnan(a), -np.inf, a) for a in (below, above))
        return np.minimum(below, 0.0), np.minimum(above, 0.0)

    def _ends_of(self, segments: np.ndarray) -> tuple[Array, Array]:
        """Return where segments start and end."""
        return self._table.ends(self._places(segments))

    @cached_property
    def _deep(self) -> np.ndarray:
        """Segments in a valley: differences of the base's tails have lost their mass."""
        least = np.minimum(self._logs.end_cdf, self._logs.start_sf) + np.log(CANCELLED)
        return (self._log_base > -np.inf) & (self._log_base < least)

    def _log_masses_beside(self, points: Array, segments: np.ndarray) -> tuple[Array, Array]:
        """Return the base's log masses of a point's segment that lie below and above it."""
        logs = self._logs
        here = (self.base._logcdf(points), self.base._logsf(points))
        start = (self._at(logs.start_cdf, segments), self._at(logs.start_sf, segments))
        end = (self._at(logs.end_cdf, segments), self._at(logs.end_sf, segments))
        below, above = log_difference(start, here), log_difference(here, end)
        deep = self._at(self._deep, segments)
        if deep.any():
            part = self.base._take(np.nonzero(deep)[0])
            low, at, high = (
                np.broadcast_to(edge, deep.shape)[deep][:, np.newaxis]
                for edge in (*self._ends_of(segments)[:1], points, *self._ends_of(segments)[1:])
            )
            below[deep] = part._log_mass_between(low, at)[:, 0]
            above[deep] = part._log_mass_between(at, high)[:, 0]
        return below, above

    @cached_property
    def _log_heights(self) -> Array:
        """The log of what the base's density is multiplied by, or where it is even, the density."""
        log_new, (low, high) = self._log_new, (self._edges[:, :-1], self._edges[:, 1:])
        with np.errstate(divide="ignore", invalid="ignore"):
            heights = log_new - np.where(self._even_segments, np.log(high - low), self._log_base)
        return np.where(log_new > -np.inf, heights, -np.inf)

    def _logpdf(self, points: Array) -> Array:
        segments = self._segment(points)
        height, even = self._at(self._log_heights, segments), self._even(segments)
        low, high = self._ends_of(segments)
        inside = (points >= low) & (points <= high) & (height > -np.inf)
        with np.errstate(invalid="ignore"):
            shaped = height + self.base._logpdf(points)
        return np.where(inside, np.where(even, height, shaped), -np.inf)

    # ----------------------------------------------------------------------------------- inversion

    def _from_probit(self, probits: Array) -> Array:
        """Find the segment of a level, then the base's quantile inside it."""
        probits = for_rows(probits, len(self))
        points = self._quantiles(probits)
        far = (np.abs(probits) > _FAR_PROBIT) | self._lost[:, np.newaxis]
        if np.count_nonzero(far):
            rows = np.flatnonzero(far.any(axis=1))
            points[rows] = self._take(rows)._quantiles_by_logs(probits[rows])
        return points

    @cached_property
    def _first_odds(self) -> Array:
        """Where segments begin, without the first one: one to so many, below 0 in lower tails."""
        (below, above), whole = self._masses.sums, self._masses.whole
        below, above = below[:, :-1] / whole[0], above[:, 1:] / whole[1]
        with np.errstate(divide="ignore", over="ignore"):
            return np.copysign(1.0 / np.minimum(below, above), below - above)

    def _quantiles(self, probits: Array) -> Array:
        """Return quantiles of rows whose masses are not lost, at probits that are not far out."""
        tail = ndtr(-np.abs(probits))
        with np.errstate(divide="ignore"):
            odds = np.copysign(1.0 / tail, probits)
        segments = count_reached(self._first_odds, odds, strictly=True)
        if not self._masses.new[:, _ENDS].all():
            segments = np.clip(segments, *outermost(self._log_new > -np.inf))
        places = self._places(segments)
        start, _, end, mass, new, below, above, low, width, high = self._table.take(places)
        # of the two, the share on the side of the smaller tail has kept its digits
        lower = probits < 0
        tail *= np.where(lower, *self._masses.whole)
        share = (tail - np.where(lower, below, above)) / new
        share = np.minimum(np.maximum(share, 0.0), 1.0)
        behind, ahead = np.abs(share - ~lower), np.abs(share - lower)
        cdf = start + np.signbit(start) + behind * mass
        sf = ~np.signbit(end) - end + ahead * mass
        # the smaller one has the digits, and where it is 0, the probit is infinite
        shaped = self.base._from_probit(np.copysign(ndtri(np.minimum(cdf, sf)), cdf - sf))
        points = np.minimum(np.maximum(shaped, low), high)
        if not np.count_nonzero(self._even_segments):
            return points
        with np.errstate(invalid="ignore"):
            evenly = np.where(lower, low + behind * width, high - ahead * width)
        return np.where(self._even(segments), evenly, points)

    def _quantiles_by_logs(self, probits: Array) -> Array:
        lower, upper = log_ndtr(probits), log_ndtr(-probits)
        logs = self._logs
        segments = np.zeros(probits.shape, dtype=np.intp)
        for k in range(1, logs.below.shape[1]):
            start, rest = logs.below[:, k : k + 1], logs.above[:, k - 1 : k]
            segments += np.where(start <= LOG_HALF, lower > start, upper < rest)
        segments = np.clip(segments, *outermost(self._log_new > -np.inf))
        new = self._at(self._log_new, segments)
        below = np.minimum(log_minus(lower, self._at(logs.below, segments)) - new, 0.0)
        above = np.minimum(log_minus(upper, self._at(logs.above, segments)) - new, 0.0)
        # of the two, the one on the side of the smaller tail has kept its digits
        whole = np.zeros(below.shape)
        return self._inside(
            segments,
            np.where(probits < 0, below, log_minus(whole, above)),
            np.where(probits < 0, log_minus(whole, below), above),
        )

    def _inside(self, segments: np.ndarray, below: Array, above: Array) -> Array:
        """Return the points with the given log shares of their segment below and above them."""
        logs, (low, high) = self._logs, self._ends_of(segments)
        mass = self._at(self._log_base, segments)
        logcdf = np.logaddexp(self._at(logs.start_cdf, segments), mass + below)
        logsf = np.logaddexp(self._at(logs.end_sf, segments), mass + above)
        logcdf, logsf = np.minimum(logcdf, 0.0), np.minimum(logsf, 0.0)
        z = np.where(logcdf < logsf, ndtri_exp(logcdf), -ndtri_exp(logsf))
        shaped = np.clip(self.base._from_probit(np.where(np.isnan(z), 0.0, z)), low, high)
        even = self._even(segments)
        deep = self._at(self._deep, segments) & ~even
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
        low, high = self._ends_of(segments)

        def log_odds(rows: np.ndarray, points: Array) -> tuple[Array, Array]:
            lower, upper = self._take(rows)._log_masses_beside(points, segments[rows])
            return lower - upper, np.full(points.shape, np.nan)

        return np.clip(solve_increasing(log_odds, below - above, low, high), low, high)

    def _row_work(self, n_points: int) -> int:
        return self.base._row_work(n_points) + 2 * n_points + 4 * self._n_segments

    def _mean_and_var(self) -> tuple[Array, Array]:
        """Add up those of segments, if the base tells them; of lost rows, by integrals."""
        lost, edges = np.flatnonzero(self._lost), with_open_ends(self.thresholds)
        parts = self.base._partial_moments(edges) if len(lost) < len(self) else None
        if parts is None:
            return super()._mean_and_var()
        centre, *integrals = parts
        new = self._masses.new
        first, second = np.stack(integrals) * (new / self._masses.divisors)
        if self.uniform:
            low, high = edges[:, 1:-2], edges[:, 2:-1]
            middle = 0.5 * (low + high) - centre
            first[:, 1:-1] = new[:, 1:-1] * middle
            second[:, 1:-1] = new[:, 1:-1] * (middle**2 + (high - low) ** 2 / 12.0)
        shift = first.sum(axis=1)
        mean, var = centre[:, 0] + shift, second.sum(axis=1) - shift**2
        if len(lost):
            mean[lost], var[lost] = self._take(lost)._mean_and_var()
        return mean, var

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
        places = [np.atleast_2d(self.thresholds), self._finite_support(), cuts]
        nodes = self.base._nodes(columns_of(places), region, effort)
        return replace(nodes, tails=self._new_tails(nodes.points, nodes.tails))

    def _even_nodes(self, cuts: Array | None, region: Sequence[Array], effort: Effort) -> Nodes:
        """Return nodes in segments that are spread evenly, and the base's beyond them."""
        grid = np.atleast_2d(self.thresholds)
        edges = panels_between(grid, [self._finite_support(), cuts])
        edges = np.clip(edges, *region) if region else edges
        inner, outer = effort.split(edges.shape[1] - 1)
        base = self.base._nodes(columns_of([grid[:, [0, -1]], cuts]), region, outer)
        beyond = (base.points <= grid[:, :1]) | (base.points >= grid[:, -1:])
        own = self._even_values(inner.edges(edges), base.rule)
        beside = (
            base.points,
            np.where(beyond, base.lengths, 0.0),
            np.where(beyond, self._new_tails(base.points, base.tails), 0.0),
            base.slack,
        )
        sums, whole = self._masses.sums[0], self._masses.whole[0]
        middle = (sums <= 0.5 * whole).sum(axis=1, keepdims=True)
        points, lengths, tails, slack = map(joined_columns, zip(own, beside, strict=True))
        middle = np.minimum(middle, grid.shape[1] - 1)
        centre = np.take_along_axis(for_rows(grid, len(self)), middle, axis=1)
        first, last = grid[:, :1], grid[:, -1:]
        ends = [np.minimum(base.reach[:, :1], first), np.maximum(base.reach[:, 1:], last)]
        reach = np.concatenate(ends, axis=1)
        return Nodes(points, lengths, tails, centre, reach, base.rule, slack)

    def _even_values(self, edges: Array, rule: Rule) -> tuple[Array, Array, Array, Array]:
        """Return points, lengths, tails and slack of panels within segments."""
        starts, ends = (part.reshape(len(edges), -1) for part in (edges[..., :-1], edges[..., 1:]))
        points, lengths = rule.between(edges)
        places = self._places(self._segment(0.5 * (starts + ends)))
        new, below, above = self._table.take_new(places)[..., np.newaxis]
        low, width = self._table.take_spans(places)[:2, ..., np.newaxis]
        share = share_behind(rule.panels(points), low, width)
        whole = self._masses.whole[..., np.newaxis]
        below = (below + new * share) / whole[0]
        above = (above + new * (1.0 - share)) / whole[1]
        tails = np.where(above < below, -above, below).reshape(len(self), -1)
        return points, np.broadcast_to(lengths, tails.shape), tails, np.zeros((1, starts.shape[1]))

    def _first_edges(self) -> Array:
        return self.base._first_edges()

    def _jumps(self) -> Array | None:
        parts = [np.atleast_2d(self.thresholds), self._finite_support(), self.base._jumps()]
        return joined_kinks(parts, len(self))

    def _panel_edges(self, extra: Array | None = None) -> Array:
        # the base knows best where its density is narrow
        edges = [super()._panel_edges(extra), self.base._panel_edges()]
        return np.sort(np.concatenate(edges, axis=1), axis=1)

    def _kinks(self) -> Array | None:
        parts = [np.atleast_2d(self.thresholds), self._finite_support(), self.base._kinks()]
        return joined_kinks(parts, len(self))

    def _finite_support(self) -> Array | None:
        """Return those ends of the support that are ends in any row, (n_rows, n_ends)."""
        ends = support_of(self.base)
        ends = ends[:, np.isfinite(ends).any(axis=0)]
        return ends if ends.shape[1] else None


def keep_masses(base: Distribution, log_masses: Array) -> Array:
    """Leave masses as they are: with ``uniform=True``, difference quotients of the base's CDF."""
    return log_masses
