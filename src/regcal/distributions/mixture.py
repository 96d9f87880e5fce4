"""Mixtures of distributions, such as the average of an ensemble's predictions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from operator import methodcaller
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import log_ndtr, ndtr, ndtri, ndtri_exp

from regcal._validation import Array, as_float_array, check_finite
from regcal.distributions._quadrature import (
    ALONG_BENDS,
    ALONG_PROBITS,
    SMALL_SHARE,
    WHOLE,
    Effort,
    Nodes,
    joined_columns,
    panels_between,
    thinned,
    without_repeats,
)
from regcal.distributions._roots import solve_between
from regcal.distributions.base import Distribution, SidedDistribution
from regcal.distributions.primitives import FAR_TAIL, joined_kinks
from regcal.distributions.stacked import joint
from regcal.maps.members import Joints, Members

# Panels of the first attempt at an integral, besides those at jumps of the density: of components
# that are alike every third edge does, and there are no more than so many.
_EVERY, _FIRST_PANELS = 3, 80

# Up to so many edges, jumps and outcomes included, panels are wide and have four nodes; else three.
# benchmarks/latency.py, averages of three: with three nodes in more panels, the CRPS of identity
# takes 6.7 instead of 3.3 times the CDF for Normal bases, that of e-logistic 6.8 instead of 4.7
# (measured without the rule's doubt).
_FEW_EDGES = 110

# Up to so many rows, components of one kind are asked at once. benchmarks/latency.py, one row of
# averaged gpc: P(Y > t) costs 12 times the base model if they are asked one by one, 8 at once.
_FEW_ROWS = 8


@dataclass(frozen=True)
class _Group:
    """Components that are asked at once.

    Parameters
    ----------
    dist : Distribution
        The rows of all of them, below each other.
    weights : ndarray of shape (n_components, n_rows or 1, 1)
    n_rows : int
        The rows of one.
    """

    dist: Distribution
    weights: Array
    n_rows: int

    def ask(self, method: str, *points: Array) -> Array:
        """Return what a method says of each component, (..., n_components, n_rows, n_points)."""
        values = np.asarray(getattr(self.dist, method)(*map(self._repeated, points)))
        *kinds, _, n_points = values.shape
        return values.reshape(*kinds, len(self.weights), self.n_rows, n_points)

    def total(self, method: str, points: Array) -> Array:
        """Return the weighted sum of what a method says, (..., n_rows, n_points)."""
        told = self.weights * self.ask(method, points)
        return told[..., 0, :, :] if len(self.weights) == 1 else np.add.reduce(told, axis=-3)

    def moments(self, n_threads: int) -> Array:
        """Return means and variances, (2, n_components, n_rows, 1)."""
        moments = np.stack(self.dist._with_threads(n_threads)._moments)
        return moments.reshape(2, len(self.weights), self.n_rows, 1)

    def _repeated(self, points: Array) -> Array:
        """Return the same points for each component."""
        if len(points) == 1 or len(self.weights) == 1:
            return points
        return np.tile(points, (len(self.weights), 1))


def _grouped(
    parts: Sequence[Distribution],
    weights: Array,
    kinds: Sequence[Callable[[Any], Any]],
    joints: Joints,
) -> list[_Group]:
    """Return groups of components: those of one kind, or else of the next kind, or each alone."""
    n_rows = len(parts[0])
    if not kinds:
        return [_Group(part, weights[k : k + 1], n_rows) for k, part in enumerate(parts)]
    numbers: dict[Any, list[int]] = {}
    for k, part in enumerate(parts):
        numbers.setdefault(kinds[0](part), []).append(k)
    groups = []
    for alike in numbers.values():
        own, members = [parts[k] for k in alike], Members(len(alike), n_rows, joints=joints)
        whole = joint(own, members) if len(alike) > 1 else None
        if whole is None:
            groups += _grouped(own, weights[alike], kinds[1:] if len(alike) > 1 else (), joints)
        else:
            groups.append(_Group(whole, weights[alike], n_rows))
    return groups


class Mixture(SidedDistribution):
    """Weighted averages of several predictive distributions, row by row.

    Parameters
    ----------
    components : sequence of Distribution
        Batches of equal length.
    weights : array-like of shape (n_components,) or (n_rows, n_components), optional
        Non-negative, summing to 1. Equal by default.

    Examples
    --------
    >>> from regcal import Mixture, Normal
    >>> dist = Mixture([Normal([0.0], [1.0]), Normal([4.0], [1.0])])
    >>> dist.median().round(6)
    array([2.])
    >>> dist.var()
    array([5.])
    """

    _row_fields = ("components", "weights")

    # What components with the same maps were joined to before, if anybody keeps that.
    _joints: Joints | None = None

    def __init__(self, components: Sequence[Distribution], weights: ArrayLike | None = None):
        self.components = list(components)
        if not self.components:
            msg = "A mixture needs at least one component, got none."
            raise ValueError(msg)
        lengths = [len(component) for component in self.components]
        if len(set(lengths)) != 1:
            msg = f"Components must have the same number of rows, got {lengths}."
            raise ValueError(msg)
        self.weights = self._checked_weights(weights)
        self._work_per_point = sum(c._work_per_point for c in self.components)

    def _checked_weights(self, weights: ArrayLike | None) -> Array:
        n_components = len(self.components)
        if weights is None:
            return np.full((1, n_components), 1.0 / n_components)
        array = np.atleast_2d(check_finite(as_float_array(weights, "weights"), "weights"))
        if array.shape not in ((1, n_components), (len(self), n_components)):
            msg = (
                f"Got weights of shape {array.shape} for {len(self)} rows of {n_components} "
                "components. Pass one per component, or one row of them per distribution."
            )
            raise ValueError(msg)
        totals = array.sum(axis=1, keepdims=True)
        if np.count_nonzero(array < 0) or np.count_nonzero(np.abs(totals - 1) > 1e-6):
            msg = "weights must be non-negative and sum to 1. Divide them by their sum."
            raise ValueError(msg)
        return array / totals

    def __len__(self) -> int:
        return len(self.components[0])

    def _details(self) -> list[str]:
        return [f"{len(self.components)} components"]

    def _take(self, rows: np.ndarray) -> Self:
        part = object.__new__(type(self))
        part.components = [component._take(rows) for component in self.components]
        part.weights = self.weights if len(self.weights) == 1 else self.weights[rows]
        part._work_per_point = self._work_per_point
        return part._with_joints(self._joints)

    def _row_work(self, n_points: int) -> int:
        # one component after the other
        return 2 * n_points + max(part._row_work(n_points) for part in self.components)

    @cached_property
    def _groups(self) -> list[_Group]:
        """The components, and those of mixtures among them, without any that has no weight."""
        parts, weights = self._flat()
        few = 0 < len(self) <= _FEW_ROWS
        kinds = (type, methodcaller("_kind")) if few else ()
        return _grouped(parts, weights.T[:, :, np.newaxis], kinds, self._joints or Joints())

    def _with_joints(self, joints: Joints | None) -> Self:
        """Return itself, to join its components as others with the same maps were before."""
        self._joints = joints
        return self

    def __getstate__(self) -> dict[str, Any]:
        state = super().__getstate__()
        state.pop("_joints", None)
        return state

    def _flat(self) -> tuple[list[Distribution], Array]:
        """Return components that are no mixtures and have weight, and their weights."""
        nested = any(isinstance(part, Mixture) for part in self.components)
        if not nested and self.weights.all():
            return self.components, self.weights
        used = self.weights.any(axis=0) | (len(self) == 0)
        parts: list[Distribution] = []
        weights: list[Array] = []
        for k in np.flatnonzero(used):
            part, weight = self.components[k], self.weights[:, k : k + 1]
            inner = part._flat() if isinstance(part, Mixture) else ([part], np.ones((1, 1)))
            parts += inner[0]
            weights.append(weight * inner[1])
        return parts, joined_columns(weights)

    def _ask(self, method: str, *points: Array) -> Array:
        """Return what a method says of each component, (..., n_components, n_rows, n_points)."""
        values = [group.ask(method, *points) for group in self._groups]
        return values[0] if len(values) == 1 else np.concatenate(values, axis=-3)

    def _signed_tail(self, points: Array) -> Array:
        # either tail of a component is had from the one that it says
        lower, upper = np.zeros((2, len(self), points.shape[1]))
        for group in self._groups:
            for weight, tail in zip(group.weights, group.ask("_signed_tail", points), strict=True):
                above = np.signbit(tail)
                low = np.add(tail, above)
                low *= weight
                lower += low
                high = np.subtract(~above, tail, out=low)
                high *= weight
                upper += high
        return np.where(upper < lower, -upper, lower)

    def _average(self, method: str, points: Array) -> Array:
        total = self._total(method, points)
        total /= self._whole
        return total

    def _total(self, method: str, points: Array) -> Array:
        """Return the weighted sum of what components say, which is (..., n_rows, n_points)."""
        parts = [group.total(method, points) for group in self._groups]
        return parts[0] if len(parts) == 1 else reduce(np.add, parts)

    @cached_property
    def _whole(self) -> Array:
        """The sum of weights, (n_rows or 1, 1).

        Added up in the same order as what they belong to, they do not leave a share of it out.
        """
        return np.add.reduce(self._weights)

    def _log_average(self, method: str, points: Array) -> Array:
        return self._log_sum(self._ask(method, points))

    def _log_sum(self, logs: Array) -> Array:
        """Return the log of an average whose parts have logs, (n_parts, n_rows, n_points)."""
        weights, whole = self._log_weights
        return np.logaddexp.reduce(logs + weights, axis=0) - whole

    @cached_property
    def _weights(self) -> Array:
        """Weights of the components as they are asked, (n_parts, n_rows or 1, 1)."""
        weights = [group.weights for group in self._groups]
        return weights[0] if len(weights) == 1 else np.concatenate(weights)

    @cached_property
    def _log_weights(self) -> tuple[Array, Array]:
        """Logs of weights, (n_parts, n_rows or 1, 1), and of their sum, added up in that order."""
        with np.errstate(divide="ignore"):
            logs = np.log(self._weights)
        return logs, np.logaddexp.reduce(logs, axis=0)

    def _cdf(self, points: Array) -> Array:
        return np.minimum(self._average("_cdf", points), 1.0)

    def _sf(self, points: Array) -> Array:
        return np.minimum(self._average("_sf", points), 1.0)

    def _pdf(self, points: Array) -> Array:
        density = self._average("_pdf", points)
        return self._where_masses(points, density, lambda: np.exp(self._logmass(points)))

    def _logcdf(self, points: Array) -> Array:
        return np.minimum(self._log_average("_logcdf", points), 0.0)

    def _logsf(self, points: Array) -> Array:
        return np.minimum(self._log_average("_logsf", points), 0.0)

    def _logpdf(self, points: Array) -> Array:
        density = self._log_average("_logpdf", points)
        return self._where_masses(points, density, lambda: self._logmass(points))

    def _where_masses(self, points: Array, density: Array, masses: Callable[[], Array]) -> Array:
        """Return masses at the places of any, where a density of other components is nothing."""
        if not np.isin(points, self._ends()).any():
            return density
        return np.where(self._logmass(points) > -np.inf, masses(), density)

    def _logmass(self, points: Array) -> Array:
        return self._log_average("_logmass", points)

    def _log_mass_between(self, low: Array, high: Array) -> Array:
        # a valley of the mixture is a far tail of each component
        return self._log_sum(self._ask("_log_mass_between", low, high))

    def _probit(self, points: Array) -> Array:
        # from the probits of the components, which are asked once and not for either tail
        return self._probit_of(self._ask("_probit", points))

    def _probit_of(self, z: Array) -> Array:
        """Return the mixture's probits where components have some, (n_parts, n_rows, n_points)."""
        lower, upper = self._sum(ndtr(z)), self._sum(ndtr(-z))
        tail = np.minimum(lower, upper)
        distance = ndtri(tail)
        far = tail < FAR_TAIL
        if far.any():
            logs = np.minimum(self._log_sum(log_ndtr(z)), self._log_sum(log_ndtr(-z)))
            distance = np.where(far, ndtri_exp(np.minimum(logs, 0.0)), distance)
        return np.where(lower < upper, distance, -distance)

    def _sum(self, values: Array) -> Array:
        """Return the weighted sum of what components say, (..., n_parts, n_rows, n_points)."""
        return np.add.reduce(self._weights * values, axis=-3)

    def _sides_and_density(self, points: Array) -> Array:
        return self._total("_sides_and_density", points)

    def _far_probit_and_logslope(self, points: Array) -> tuple[Array, Array]:
        # from the probits of the components
        z, logslope = self._ask("_probit_and_logslope", points)
        own = self._probit_of(z)
        with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
            # densities without the factor that they share
            slope = np.log(self._sum(np.exp(logslope + 0.5 * (own - z) * (own + z))))
        return own, np.where(np.isnan(slope), -np.inf, slope)

    def _ends(self) -> tuple[float, ...]:
        return tuple(sorted({end for part in self.components for end in part._ends()}))

    def _from_probit(self, probits: Array) -> Array:
        ends = self._ends()
        spans = [self._span(end) for end in ends]
        # the levels that a point mass spans are reached at its place: no search is needed
        held = [(probits > below) & (probits <= at) for below, at in spans]
        free = np.where(np.any(held, axis=0), np.inf, probits) if ends else probits
        points = self._solved(free)
        if np.count_nonzero(np.isinf(points)):
            points = np.clip(points, *self._support())
        for end, here in zip(ends, held, strict=True):
            points = np.where(here, end, points)
        return points

    def _span(self, end: float) -> tuple[Array, Array]:
        """Return the probits below and at a point mass."""
        here = np.full((1, 1), end)
        below = ndtri(np.maximum(self._cdf(here) - np.exp(self._logmass(here)), 0.0))
        return below, self._probit(here)

    def _support(self) -> tuple[Array, Array]:
        """Return the outermost ends of the components that have any weight."""
        infinite = np.array([[-np.inf, np.inf]])
        ends = np.stack([component._from_probit(infinite) for component in self.components], -1)
        used = self.weights[:, np.newaxis, :] > 0
        start, end = ends[:, :1], ends[:, 1:]
        start, end = np.where(used, start, np.inf), np.where(used, end, -np.inf)
        return start.min(axis=-1), end.max(axis=-1)

    def _solved(self, probits: Array) -> Array:
        """Return the points at which probits are reached, all rows and levels at once.

        Between the quantiles of the components, which enclose them, so that nothing is widened.
        """
        inside = np.isfinite(probits)
        known = np.count_nonzero(inside) == inside.size
        finite = probits if known else np.where(inside, probits, 0.0)
        quantiles = self._ask("_from_probit", finite)

        def function_of(rows: np.ndarray | None) -> Callable[[Array], tuple[Array, Array]]:
            return (self if rows is None else self._take(rows))._probit_and_logslope

        ends = np.minimum.reduce(quantiles), np.maximum.reduce(quantiles)
        points = solve_between(function_of, finite, *ends, self._sum(quantiles))
        return points if known else np.where(inside, points, probits)

    @cached_property
    def _moments(self) -> tuple[Array, Array]:
        return self._mean_and_var()  # each component goes by its own blocks of rows

    def _mean_and_var(self) -> tuple[Array, Array]:
        moments = [group.moments(self._n_threads) for group in self._groups]
        means, variances = np.concatenate(moments, axis=1)
        mean = (self._weights * means).sum(axis=0)
        var = (self._weights * (variances + (means - mean) ** 2)).sum(axis=0)
        return mean[:, 0], var[:, 0]

    def _nodes(
        self, cuts: Array | None = None, region: Sequence[Array] = (), effort: Effort = WHOLE
    ) -> Nodes:
        """Return nodes of which some panels hold bends; where these matter, of all panels."""
        if effort.careful:
            return super()._nodes(cuts, region, effort)
        edges = self._first_edges()
        step = max(min(len(self.components), _EVERY), -(-edges.shape[1] // _FIRST_PANELS))
        edges = thinned(edges, step)
        jumps = self._jumps()
        others = [part.shape[1] for part in (edges, jumps, cuts) if part is not None]
        rule = ALONG_BENDS if sum(others) <= _FEW_EDGES else ALONG_PROBITS
        if jumps is not None:  # components may have them in common
            jumps = without_repeats(jumps)
        inside = panels_between(edges, [jumps, cuts])
        inside = np.clip(inside, *region) if region else inside
        points, lengths = rule.between(effort.edges(inside))
        middle, reach = edges[:, edges.shape[1] // 2, np.newaxis], edges[:, [0, -1]]
        tails = self._signed_tail(np.concatenate([points, reach], axis=1))
        tails, outside = tails[:, :-2], np.abs(tails[:, -2:]).max(axis=1)
        tails[outside > SMALL_SHARE] = np.nan
        slack = np.zeros((1, points.shape[1] // len(rule.nodes)))
        return Nodes(points, lengths, tails, middle, reach, rule, slack, quick=True)

    def _n_panels(self) -> int:
        # of a first attempt, which few rows need more than. benchmarks/latency.py, averages of
        # three: with all kinks counted and blocks half as large, the CRPS of stack takes 5.7
        # instead of 3.9 times the CDF for Normal bases, 6.7 instead of 4.6 for Quantiles
        jumps = self[:1]._jumps()
        return _FIRST_PANELS + (0 if jumps is None else jumps.shape[1])

    def _first_edges(self) -> Array:
        edges = [part._first_edges() for part in self.components]
        return np.sort(np.concatenate(edges, axis=1), axis=1)

    def _jumps(self) -> Array | None:
        return joined_kinks([part._jumps() for part in self.components], len(self))

    def _panel_edges(self, extra: Array | None = None) -> Array:
        return panels_between(self._landmarks(), [extra])

    def _landmarks(self) -> Array:
        # a narrow component far from the others needs panels of its own
        edges = [part._panel_edges() for part in self.components]
        return np.sort(np.concatenate(edges, axis=1), axis=1)

    def _kinks(self) -> Array | None:
        return joined_kinks([component._kinks() for component in self.components], len(self))
