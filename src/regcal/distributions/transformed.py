"""A map applied to a base distribution."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Protocol, Self

import numpy as np
from scipy.special import ndtri

from regcal._validation import Array
from regcal.distributions._quadrature import (
    SMALL_SHARE,
    WHOLE,
    Effort,
    Nodes,
    joined_columns,
    panels_between,
)
from regcal.distributions.base import Distribution, ProbitDistribution
from regcal.distributions.primitives import (
    LOG_SQRT_2PI,
    joined_kinks,
    log_normal_density,
    signed_tails,
)
from regcal.distributions.stacked import joint
from regcal.maps import Curve, Path, log_change
from regcal.maps.members import Members


class Map(Protocol):
    """What can be applied to a base: a `ProbitMap`, `RowLines` or a `Surface`."""

    def along(self, path: Path) -> Curve:
        """Return the increasing curves that rows follow."""
        ...

    def take(self, rows: np.ndarray) -> Map:
        """Return the map of some rows."""
        ...


@dataclass(frozen=True)
class _BasePath:
    """A base as maps see it."""

    base: Distribution

    def __len__(self) -> int:
        return len(self.base)

    @property
    def work_per_point(self) -> int:
        return self.base._work_per_point

    def targets(self, z: Array) -> Array:
        return self.base._from_probit(z)

    def trace(self, z: Array) -> tuple[Array, Array]:
        return self.base._trace(z)

    def largest_spread(self) -> Array | None:
        return self.base._largest_spread()


def joined_maps(maps: Sequence[Map], members: Members) -> Map | None:
    """Return one map for the rows of several, or None if there is none."""
    kind = type(maps[0])
    if not hasattr(kind, "joined") or any(type(one) is not kind for one in maps):
        return None
    join = partial(kind.joined, maps, members)
    mapping: Map | None = members.joints.once((kind, members.n_each), maps, join)
    return mapping


class Transformed(ProbitDistribution):
    """A base distribution whose probit ``z(t)`` is replaced by an increasing function of it.

    The CDF is ``Phi(map(z(t)))``. The limits are exact, and the density is positive wherever the
    base's is.

    At an end of the support the base's probit is infinite, and so is the change of density there,
    or it is 0, unless the map is the identity: no limit from inside is of any use. The density at
    such a point is changed as it is at the probit where a normal distribution with the row's
    spread has the base's density: near the middle for a base that starts with an ordinary density,
    and far out for one whose probabilities have become 0 or 1 by rounding in a far tail.

    Parameters
    ----------
    base : Distribution
        The distributions to change.
    mapping : ProbitMap, RowLines or Surface
        See `regcal.maps`.

    Examples
    --------
    >>> from regcal import Normal
    >>> from regcal.distributions import Transformed
    >>> from regcal.maps import ScaleMap
    >>> Transformed(Normal([5.0], [1.0]), ScaleMap(2.0)).std().round(6)
    array([2.])
    """

    def __init__(self, base: Distribution, mapping: Map) -> None:
        self.base = base
        self.mapping = mapping
        self._work_per_point = base._work_per_point + 2

    def __len__(self) -> int:
        return len(self.base)

    def _details(self) -> list[str]:
        return [self.base._kind(), type(self.mapping).__name__]

    def _take(self, rows: np.ndarray) -> Self:
        return type(self)(self.base._take(rows), self.mapping.take(rows))

    @classmethod
    def _joint(cls, parts: Sequence[Transformed], members: Members) -> Transformed | None:
        mapping = joined_maps([part.mapping for part in parts], members)
        base = joint([part.base for part in parts], members)
        return None if base is None or mapping is None else cls(base, mapping)

    def _row_work(self, n_points: int) -> int:
        return self.base._row_work(n_points) + self._curve.row_work(n_points)

    @cached_property
    def _curve(self) -> Curve:
        return self.mapping.along(_BasePath(self.base))

    def log_change(self, probits: Array) -> Array:
        """Return the log of the density over the base's, at the base's probit of each row."""
        return self._evaluate("_log_change", probits[:, np.newaxis], True)

    def _log_change(self, z: Array) -> Array:
        return log_change(self._curve, z)

    def _probit(self, points: Array) -> Array:
        return self._curve(self.base._probit(points))

    def _probit_and_logslope(self, points: Array) -> tuple[Array, Array]:
        z, logslope = self.base._probit_and_logslope(points)
        eta, slope = self._curve.image_and_slope(z)
        return eta, logslope + np.log(slope)

    def _logpdf(self, points: Array) -> Array:
        z, logslope = self.base._probit_and_logslope(points)
        eta, slope = self._curve.image_and_slope(z)
        with np.errstate(invalid="ignore"):
            logpdf = log_normal_density(eta) + (logslope + np.log(slope))
        ends = np.isinf(z)
        if ends.any():
            rows, columns = np.nonzero(ends)
            at = np.broadcast_to(points, z.shape)[ends][:, np.newaxis]
            signs = np.sign(z[ends])[:, np.newaxis]
            logpdf[rows, columns] = self._take(rows)._logpdf_at_ends(at, signs)[:, 0]
        return logpdf

    def _logpdf_at_ends(self, points: Array, signs: Array) -> Array:
        """Return the log density where the base's probit is infinite, of the given sign."""
        logpdf = self.base._logpdf(points)
        ends = self.base._from_probit(np.array([[-1.0, 1.0]]))
        spread = 0.5 * (ends[:, 1:] - ends[:, :1])
        # log phi(z) = log(density * spread), of no spread where the base is a point
        with np.errstate(divide="ignore"):
            log_phi = logpdf + np.log(spread)
        z = signs * np.sqrt(np.maximum(-2.0 * (log_phi + LOG_SQRT_2PI), 0.0))
        return np.where(np.isneginf(logpdf), -np.inf, logpdf + self._log_change(z))

    def _from_probit(self, probits: Array) -> Array:
        return self.base._from_probit(self._curve.inverse(probits))

    def _trace(self, probits: Array) -> tuple[Array, Array]:
        z = self._curve.inverse(probits)
        points, spread = self.base._trace(z)
        return points, spread / self._curve.image_and_slope(z)[1]

    @property
    def _explicit(self) -> bool:  # type: ignore[override]
        return self.base._explicit

    def _nodes(
        self, cuts: Array | None = None, region: Sequence[Array] = (), effort: Effort = WHOLE
    ) -> Nodes:
        if self._explicit:
            return self.base._nodes_along(self._curve, cuts, region, effort)
        if not effort.careful and not self._curve.knots.size:
            nodes = self.base._nodes(cuts, region, effort)
            if nodes.quick:
                return self._with_changed_tails(nodes)
        return super()._nodes(cuts, region, effort)

    def _with_changed_tails(self, nodes: Nodes) -> Nodes:
        """Return nodes of the base as this one's; not numbers where it reaches further out."""
        tails = signed_tails(self._curve(np.copysign(ndtri(np.abs(nodes.tails)), -nodes.tails)))
        tails[np.abs(self._signed_tail(nodes.reach)).max(axis=1) > SMALL_SHARE] = np.nan
        return replace(nodes, tails=tails)

    def _panel_edges(self, extra: Array | None = None) -> Array:
        if not self._explicit:
            return super()._panel_edges(extra)
        edges = self.base._from_probit(self.base._probit_panels(self._curve))
        return panels_between(edges, [extra])

    def _largest_spread(self) -> Array | None:
        spread, slope = self.base._largest_spread(), self._curve.smallest_slope
        return None if spread is None or slope is None else spread / slope

    def _landmarks(self) -> Array | None:
        return self.base._landmarks()

    def _jumps(self) -> Array | None:
        return self.base._jumps()

    def _probit_kinks(self) -> Array | None:
        knots, kinks = np.atleast_2d(self._curve.knots), self.base._probit_kinks()
        places = [knots] if knots.shape[1] else []
        places += [] if kinks is None else [kinks]
        if not places:
            return None
        z = joined_columns(places)
        return self._curve(np.broadcast_to(z, (len(self), z.shape[1])))

    def _kinks(self) -> Array | None:
        knots = np.atleast_2d(self._curve.knots)
        if not knots.shape[1]:
            return self.base._kinks()
        own = self.base._from_probit(np.broadcast_to(knots, (len(self), knots.shape[1])))
        return joined_kinks([own, self.base._kinks()], len(self))
