"""Smooth maps h(u, t) of probit and target on a box, tabulated for speed.

With u the probit of the base at t, the calibrated probit is eta = u + h(u, t). It is valid exactly
when eta increases along each row's own path t -> (u(t), t); `regcal.maps.surface_curves` makes
sure of it row by row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, Self

import numpy as np
from scipy.interpolate import RectBivariateSpline

from regcal._caching import WithoutCaches
from regcal._validation import Array
from regcal.maps.axis import LINEAR, Axis
from regcal.maps.base import Chain, Curve, MappedPath, Path, ProbitMap
from regcal.maps.members import Members
from regcal.maps.scale import IDENTITY
from regcal.maps.spline import count_reached
from regcal.maps.surface_curves import LARGEST_BEND, N_KNOTS, SMALLEST_SLOPE, Ends, SurfaceCurves

# Beyond this share of the box the distance of the knots grows.
_DENSE_SHARE = 2 / 3

# The table has at least this many targets, and so many between two of the map's own.
_MIN_TARGETS, _TARGETS_PER_STEP = 128, 6

# Cells in which the knot before a probit is looked up; with more knots than this in one cell,
# they are searched instead.
_N_CELLS, _LARGEST_CROWD = 2**11, 2


@dataclass(frozen=True)
class Surface(WithoutCaches):
    """A smooth map h(u, t) on a box, continued linearly in u beyond it.

    Along a row's path the map is followed while the path is inside the box; where the path
    leaves it, eta = u + h goes on as a straight line in u with the slope of that side.

    Parameters
    ----------
    u : ndarray of shape (n_u,)
        Equally spaced probits.
    t : ndarray of shape (n_t,)
        Equally spaced places of targets on the axis.
    h : ndarray of shape (n_u, n_t)
        The map at those; a bicubic spline in between.
    slopes : tuple of float
        d eta / d u below and above the box.
    start : ProbitMap
        An increasing map that is applied to the base's probit first: u is its image.
    axis : Axis
        From targets to their places; by default the places are the targets.
    ends : tuple of float
        Targets beyond which nothing is seen, so that no curve has to follow the map there.

    Examples
    --------
    >>> import numpy as np
    >>> from regcal import Normal
    >>> from regcal.distributions import Transformed
    >>> from regcal.maps import Surface
    >>> u, t = np.linspace(-6.0, 6.0, 25), np.linspace(-9.0, 9.0, 17)
    >>> shifted = Surface(u, t, np.full((25, 17), 0.5), (1.0, 1.0))
    >>> Transformed(Normal([0.0], [1.0]), shifted).median().round(6)
    array([-0.5])
    """

    u: Array
    t: Array
    h: Array
    slopes: tuple[float, float]
    start: ProbitMap = IDENTITY
    axis: Axis = LINEAR
    ends: tuple[float, float] = (-np.inf, np.inf)

    @cached_property
    def table(self) -> SurfaceTable:
        """The map at the nodes, computed when it is first used."""
        return SurfaceTable.of(self)

    def take(self, rows: np.ndarray) -> Self:
        """Return itself: it holds nothing of single rows."""
        return self

    @classmethod
    def joined(cls, maps: Sequence[Surface], members: Members) -> JoinedSurfaces | None:
        """Return one map whose rows follow several surfaces, if all of them start gently."""
        if not all(one._starts_gently for one in maps):
            return None
        return JoinedSurfaces(tuple(one.table for one in maps), members)

    def along(self, path: Path) -> Curve:
        """Return the curves that rows follow, increasing by construction.

        A gentle start is part of the table, which is faster; any other is applied before.
        """
        if self._starts_gently:
            return SurfaceCurves(self.table, path)
        alone = replace(self, start=IDENTITY)
        return Chain(self.start, alone.along(MappedPath(path, self.start)))

    @cached_property
    def _starts_gently(self) -> bool:
        return is_gentle(*self._started)

    @cached_property
    def _started(self) -> tuple[Array, Array, Array]:
        """The knots of a table along u; the base's probit z there, and du / dz."""
        return started(self.start, float(np.abs(self.u).max()))


@dataclass(frozen=True)
class SurfaceTable(WithoutCaches):
    """A map at fixed knots along u, and linear between many targets along t."""

    z: Array  # probit of the base at each knot, (1, n_knots)
    u: Array
    start_slope: Array  # du / dz
    h: Array  # h, dh/du and dh/dt, each at knots × targets, one after the other
    targets: tuple[float, float, int]  # the first place, the number per unit, how many
    axis: Axis
    ends: tuple[float, float]
    slopes: tuple[float, float]

    @classmethod
    def of(cls, surface: Surface) -> SurfaceTable:
        """Tabulate a map."""
        u, z, slope = surface._started
        n_targets = max(_MIN_TARGETS, _TARGETS_PER_STEP * (len(surface.t) - 1)) + 1
        t = np.linspace(surface.t[0], surface.t[-1], n_targets)
        spline = RectBivariateSpline(surface.u, surface.t, surface.h, s=0)
        inside = np.clip(u, surface.u[0], surface.u[-1])
        # one more target, so that the last has a neighbour
        h = np.stack(
            [
                np.pad(spline(inside, t, **orders), ((0, 0), (0, 1)), mode="edge").ravel()
                for orders in ({}, {"dx": 1}, {"dy": 1})
            ]
        )
        per_unit = (n_targets - 1) / float(surface.t[-1] - surface.t[0])
        places = (float(surface.t[0]), per_unit, n_targets)
        z, u, slope = (values[np.newaxis, :] for values in (z, u, slope))
        return cls(z, u, slope, h, places, surface.axis, surface.ends, surface.slopes)

    @cached_property
    def end_slopes(self) -> Array:
        """The slope d eta / dz below and above the box, (1, 2)."""
        return np.array([self.slopes]) * self.start_slope[:, [0, -1]]

    @cached_property
    def outermost(self) -> tuple[float, float]:
        """The largest image of the first knot and the smallest of the last, over all targets."""
        h = self.h[0].reshape(N_KNOTS, -1)
        return float(self.u[0, 0] + h[0].max()), float(self.u[0, -1] + h[-1].min())

    @cached_property
    def numbers(self) -> Array:
        """Knots, their places and slopes, end slopes and targets, in one row."""
        parts = self.z, self.u, self.start_slope, self.end_slopes, np.array([self.targets])
        return np.concatenate(parts, axis=1)

    @cached_property
    def _guide(self) -> tuple[np.ndarray, int]:
        """The number of inner knots before each cell of probits, and the most in one cell."""
        cells = self._cells(self.z[0, 1:-1])
        return np.searchsorted(cells, np.arange(_N_CELLS)), int(np.bincount(cells).max())

    def _cells(self, z: Array) -> np.ndarray:
        """Return equally wide cells between the first and the last inner knot."""
        low, high = float(self.z[0, 1]), float(self.z[0, -2])
        place = np.minimum(np.maximum(z, low), high)
        place -= low
        place *= (_N_CELLS - 1) / (high - low)
        return place.astype(np.intp)

    def piece(self, z: Array, rows: slice) -> np.ndarray:
        """Return the number of the knot at which the piece of each probit of some rows starts.

        What is before the first knot belongs to the first piece, and so at the end.
        """
        before, crowd = self._guide
        if crowd > _LARGEST_CROWD:
            return np.searchsorted(self.z[0, 1:-1], z, side="right")
        number = before.take(self._cells(z))
        for _ in range(crowd):
            number += self._ends.take(number) <= z
        return number

    @cached_property
    def _ends(self) -> Array:
        """Where pieces end; the last one never does."""
        return np.append(self.z[0, 1:-1], np.nan)

    def _cell(self, knots: np.ndarray, t: Array) -> tuple[np.ndarray, Array, Array]:
        """Return the table's cell of each point, the place in it, and the place in the table."""
        return _cells_at(self.axis(t), knots, *self.targets)

    def value(self, knots: np.ndarray, t: Array) -> Array:
        """Return h at knots and targets; targets outside the box are moved onto its edge."""
        cell, share, _ = self._cell(knots, t)
        return _between(self.h[:1], cell, share)[0]

    def gradient(self, knots: np.ndarray, t: Array) -> tuple[Array, Array, Array]:
        """Return h, dh/du and dh/dt; the last is 0 outside the box."""
        cell, share, place = self._cell(knots, t)
        h, h_u, h_t = _between(self.h, cell, share)
        h_t[(place < 0.0) | (place > self.targets[2] - 1.0)] = 0.0
        return h, h_u, h_t if self.axis.linear else h_t * self.axis.slope(t)

    @cached_property
    def widest_safe_spread(self) -> float:
        """The largest dt/dz for which eta increases along every path in the box."""
        _, h_u, h_t = self.h
        room = 1.0 + h_u - 2 * SMALLEST_SLOPE
        if (room <= 0).any():
            return 0.0
        first, per_unit, count = self.targets
        targets = self.axis.inverse(first + np.append(np.arange(count), count - 1) / per_unit)
        steepest = np.tile(self.axis.slope(targets), N_KNOTS)
        fall = -h_t * steepest / np.repeat(self.start_slope[0], count + 1)
        falling = fall > 0
        return float(np.min(room[falling] / fall[falling])) if falling.any() else np.inf


@dataclass(frozen=True)
class JoinedTables:
    """Tables of several maps, each for the rows that are its own."""

    tables: tuple[SurfaceTable, ...]
    members: Members

    @cached_property
    def _rows(self) -> Array:
        """The numbers of each row's table, (n_rows, n_numbers)."""
        rows = np.concatenate([table.numbers for table in self.tables])
        return self.members.repeated(rows)

    @property
    def z(self) -> Array:
        """The probit of the base at each knot, (n_rows, n_knots)."""
        return self._rows[:, :N_KNOTS]

    @property
    def u(self) -> Array:
        """The place of each knot, (n_rows, n_knots)."""
        return self._rows[:, N_KNOTS : 2 * N_KNOTS]

    @property
    def start_slope(self) -> Array:
        """The slope du / dz at each knot, (n_rows, n_knots)."""
        return self._rows[:, 2 * N_KNOTS : 3 * N_KNOTS]

    @property
    def end_slopes(self) -> Array:
        """The slope d eta / dz below and above the box, (n_rows, 2)."""
        return self._rows[:, -5:-3]

    @property
    def outermost(self) -> tuple[float, float]:
        """The largest image of a first knot and the smallest of a last one, over all targets."""
        first, last = zip(*(table.outermost for table in self.tables), strict=True)
        return max(first), min(last)

    @cached_property
    def _targets(self) -> tuple[Array, Array, np.ndarray]:
        """The first place, the number per unit and how many there are, each (n_rows, 1)."""
        first, per_unit, count = self._rows.T[-3:, :, np.newaxis]
        return first, per_unit, count.astype(np.intp)

    @cached_property
    def _h(self) -> Array:
        """What is tabulated, of one map after the other."""
        tables = [table.h for table in self.tables]
        return self.members.joints.once("h", tables, partial(np.concatenate, tables, axis=1))

    @cached_property
    def _starts(self) -> np.ndarray:
        """Where each row's map begins in that, (n_rows, 1)."""
        ends = np.cumsum([table.h.shape[1] for table in self.tables])
        starts = self.members.repeated([[0], *ends[:-1, np.newaxis]])
        return starts.astype(np.intp)

    @property
    def ends(self) -> Ends:
        """Targets beyond which nothing is seen, of all rows or each: (n_rows,)."""
        ends = [table.ends for table in self.tables]
        if all(one == ends[0] for one in ends):
            return ends[0]
        low, high = self.members.repeated(ends).T
        return low, high

    @property
    def widest_safe_spread(self) -> Array:
        """The largest dt/dz for which eta increases along every path in the box, (n_rows,)."""
        return self.members.repeated([table.widest_safe_spread for table in self.tables])

    def piece(self, z: Array, rows: slice) -> np.ndarray:
        """Return the number of the knot at which the piece of each probit of some rows starts."""
        return count_reached(self.z[rows, 1:-1], z)

    def value(self, knots: np.ndarray, t: Array) -> Array:
        """Return h at knots and targets, knots × rows."""
        h = np.empty(t.shape)
        for table, rows in self.members.each(self.tables):
            h[:, rows] = table.value(knots, t[:, rows])
        return h

    def gradient(self, knots: np.ndarray, t: Array) -> tuple[Array, Array, Array]:
        """Return h, dh/du and dh/dt, rows × knots."""
        places, slopes = self._on_axes(t)
        cell, share, place = _cells_at(places, knots, *self._targets)
        cell += self._starts
        h, h_u, h_t = _between(self._h, cell, share)
        outside = (place < 0.0) | (place > self._targets[2] - 1.0)
        if np.count_nonzero(outside):
            h_t[outside] = 0.0
        return h, h_u, h_t if slopes is None else h_t * slopes

    def _on_axes(self, t: Array) -> tuple[Array, Array | None]:
        """Return the places of targets, rows × knots, and the slopes there unless all are 1."""
        if all(table.axis.linear for table in self.tables):
            return t, None
        places, slopes = np.empty((2, *t.shape))
        for table, rows in self.members.each(self.tables):
            places[rows], slopes[rows] = table.axis(t[rows]), table.axis.slope(t[rows])
        return places, slopes


@dataclass(frozen=True)
class JoinedSurfaces:
    """Several surfaces, each for the rows that are its own."""

    tables: tuple[SurfaceTable, ...]
    members: Members

    def take(self, rows: np.ndarray) -> JoinedSurfaces:
        """Return the map of some rows."""
        return JoinedSurfaces(self.tables, self.members.take(rows))

    def along(self, path: Path) -> Curve:
        """Return the curves that rows follow, increasing by construction."""
        return SurfaceCurves(self._table, path)

    @cached_property
    def _table(self) -> JoinedTables:
        return JoinedTables(self.tables, self.members)


def _cells_at(
    places: Array, knots: np.ndarray, first: Any, per_unit: Any, count: Any
) -> tuple[np.ndarray, Array, Array]:
    """Return the cell of each place at a knot, the place in it, and the place in the table."""
    place = places - first
    place *= per_unit
    inside = np.minimum(np.maximum(place, 0.0), count - 1.0)
    cell = inside.astype(np.intp)
    inside -= cell
    cell += knots * (count + 1)
    return cell, inside, place


def _between(tables: Array, cell: np.ndarray, share: Array) -> Array:
    """Return values of tables, (n_tables, ...), linear between a cell and the next."""
    left, right = tables.take(cell, axis=1), tables.take(cell + 1, axis=1)
    right -= left
    right *= share
    right += left
    return right


def _bent_grid(limit: float) -> Array:
    """Return knots up to a limit on both sides, dense in the middle."""
    dense = _DENSE_SHARE * limit
    bent = np.linspace(-1.0, 1.0, N_KNOTS) * limit / np.hypot(1.0, limit / dense)
    knots = bent / np.sqrt(1.0 - (bent / dense) ** 2)
    knots[[0, -1]] = -limit, limit
    return knots


def started(start: ProbitMap, limit: float) -> tuple[Array, Array, Array]:
    """Return knots u up to a limit, the base's probits z that a start maps to them, and du / dz."""
    u = _bent_grid(limit)
    z = start.inverse(u)
    return u, z, start.image_and_slope(z)[1]


def is_gentle(u: Array, z: Array, slope: Array) -> bool:
    """Tell whether a start is well described by its knots in a table."""
    mean = np.diff(u) / np.diff(z)
    return bool((np.maximum(slope[1:], slope[:-1]) <= LARGEST_BEND * mean).all())
