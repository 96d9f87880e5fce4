"""Tables of a surface against splines of scipy, and the pieces of its start."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.interpolate import RectBivariateSpline

from regcal.maps import PiecewiseMap, ScaleMap
from regcal.maps.surface import is_gentle, started


def test_table_matches_the_spline_of_scipy(wavy_map, rng):
    """At its knots, the table has the interpolating bicubic spline and its derivatives."""
    table = wavy_map.table
    spline = RectBivariateSpline(wavy_map.u, wavy_map.t, wavy_map.h, s=0)
    knots, t = rng.integers(0, len(table.u[0]), (3, 50)), rng.uniform(-3, 5, (3, 50))
    u = table.u[0, knots]

    h, h_u, h_t = table.gradient(knots, t)

    assert_array_equal(table.value(knots, t), h)
    # linear between targets: the step squared, times the curvature, over eight
    assert_allclose(h, spline.ev(u, t), atol=3e-4)
    assert_allclose(h_u, spline.ev(u, t, dx=1), atol=3e-4)
    assert_allclose(h_t, spline.ev(u, t, dy=1), atol=4e-4)


def test_table_is_exact_at_its_own_targets(wavy_map, rng):
    """Nothing is interpolated there."""
    table = wavy_map.table
    spline = RectBivariateSpline(wavy_map.u, wavy_map.t, wavy_map.h, s=0)
    low, per_unit, count = table.targets
    knots, t = rng.integers(0, len(table.u[0]), 99), low + rng.integers(0, count, 99) / per_unit

    assert_allclose(table.value(knots, t), spline.ev(table.u[0, knots], t), atol=1e-9)


def test_table_is_constant_beyond_its_targets(wavy_map):
    """Targets outside the box take the value of its edge."""
    knots = np.array([3, 40, 3, 40])

    h, _, h_t = wavy_map.table.gradient(knots, np.array([99.0, 99.0, -4.0, -4.0]))

    assert_array_equal(h, wavy_map.table.value(knots, np.array([5.0, 5.0, -3.0, -3.0])))
    assert_array_equal(h_t, np.zeros(4))


STEEP = PiecewiseMap.with_slopes(
    np.array([-0.001, 0.0, 0.001, 2.0]), np.array([1.0, 1500.0, 800.0, 0.1]), -1.0
)


@pytest.mark.parametrize("start", [ScaleMap(1.0), ScaleMap(0.3), STEEP])
def test_pieces_are_found(wavy_map, start, rng):
    """The piece of a probit is found by a look-up or, where knots crowd, by a search."""
    table = replace(wavy_map, start=start).table
    z = np.concatenate([table.z[0], rng.uniform(-30, 30, 999), [-np.inf, np.inf]])
    z = np.concatenate([z, np.nextafter(table.z[0], -np.inf)])

    assert (np.diff(np.sort(table.z[0])).min() < 1e-4) == (start is STEEP)
    assert_array_equal(
        table.piece(z, slice(None)), np.searchsorted(table.z[0, 1:-1], z, side="right")
    )


def test_steep_starts_are_told():
    """Between two knots, a gentle start does not change its slope by much."""
    assert is_gentle(*started(ScaleMap(1e-9), 6.0))
    falling = PiecewiseMap.with_slopes(
        np.array([-1.0, 0.0, 1.0, 1e6]), np.array([1.0, 1.0, 1e-6, 1e-6]), -1.0
    )
    assert not is_gentle(*started(falling, 6.0))
