"""Rows mapped by a surface: closed forms, the repair of folds, few points and many."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from rows import flat_map, integral_of_density, map_value

from regcal import Normal
from regcal.distributions import Transformed
from regcal.maps import PiecewiseMap, Surface
from regcal.maps.surface import is_gentle, started
from regcal.maps.surface_curves import N_KNOTS, SMALLEST_SLOPE, Knots

# ------------------------------------------------------------------------- the warp


def test_start_is_applied_first():
    """Without a map, what is left is the start: the base's probit, mapped."""
    start = PiecewiseMap.with_slopes(np.array([-1.0, 0.2, 2.0]), np.array([0.8, 2.0, 0.6]), -1.5)
    warp = replace(flat_map(np.zeros_like), start=start)
    wanted = Transformed(BASE, start)

    warped = Transformed(BASE, warp)

    assert is_gentle(*started(start, 6.0))
    assert_allclose(warped.probit(POINTS), wanted.probit(POINTS), atol=2e-3)
    assert_allclose(warped.logslope(POINTS), wanted.logslope(POINTS), atol=0.05)


BASE = Normal([0.0, 1.5, -2.0], [1.0, 0.3, 4.0])
POINTS = np.linspace(-12.0, 12.0, 49)[np.newaxis, :]


@pytest.mark.parametrize("shift", [-0.8, 0.0, 1.7])
def test_constant_map_shifts_the_probit(shift):
    """With h = c, P(Y <= t) is Phi(u + c), inside and outside of the box."""
    warped = Transformed(BASE, flat_map(lambda u: np.full_like(u, shift)))

    wanted = Normal(BASE.loc - shift * BASE.scale, BASE.scale)
    assert_allclose(warped.cdf(POINTS), wanted.cdf(POINTS), rtol=1e-9)
    assert_allclose(warped.logpdf(POINTS), wanted.logpdf(POINTS), rtol=1e-9)
    assert_allclose(warped.ppf([[0.01, 0.6]]), wanted.ppf([[0.01, 0.6]]), rtol=1e-9)


def test_quantiles_do_not_depend_on_how_many_are_asked_for():
    """A few quantiles and thousands of them are found in two ways, with one result."""
    warped = Transformed(BASE, flat_map(lambda u: 0.5 * np.sin(u)))
    levels = np.linspace(0.0005, 0.9995, 1999)[np.newaxis, :]

    many = warped.ppf(levels)

    assert_allclose(many[:, ::400], warped.ppf(levels[:, ::400]), rtol=1e-12)
    assert_allclose(warped.cdf(many), np.broadcast_to(levels, many.shape), atol=1e-9)


@pytest.mark.parametrize("factor", [0.4, 1.0, 2.5])
def test_linear_map_scales_the_spread(factor):
    """With h = (a - 1) u, the result is the normal with its standard deviation divided by a."""
    warped = Transformed(BASE, flat_map(lambda u: (factor - 1) * u, factor))

    wanted = Normal(BASE.loc, BASE.scale / factor)
    assert_allclose(warped.logcdf(POINTS), wanted.logcdf(POINTS), rtol=1e-8, atol=1e-15)
    assert_allclose(warped.logpdf(POINTS), wanted.logpdf(POINTS), rtol=1e-8)
    assert_allclose(warped.mean(), wanted.mean(), atol=1e-6)
    assert_allclose(warped.std(), wanted.std(), rtol=1e-6)


def test_map_of_the_target_alone(rng):
    """With h = b t, a normal becomes another normal inside the box."""
    u, t = np.linspace(-6, 6, 25), np.linspace(-4, 4, 17)
    base = Normal([0.0, 0.5], [1.0, 0.5])
    warped = Transformed(base, Surface(u, t, np.tile(0.3 * t, (25, 1)), (1.0, 1.0)))
    slope = 1 / base.scale + 0.3
    wanted = Normal(base.loc / base.scale / slope, 1 / slope)
    points = rng.uniform(-2.0, 2.0, (2, 30))

    assert_allclose(warped.probit(points), wanted.probit(points), atol=1e-9)
    assert_allclose(warped.logpdf(points), wanted.logpdf(points), atol=1e-8)


def test_slopes_beyond_the_box():
    """Beyond the box, eta is a straight line in u with the slope of that side."""
    u, t = np.linspace(-6, 6, 25), np.linspace(-7, 7, 17)
    warped = Transformed(Normal([0.0], [1.0]), Surface(u, t, np.zeros((25, 17)), (0.5, 2.0)))

    found = warped.probit([[-10.0, -7.0, -6.0, 6.0, 7.0, 10.0]])

    assert_allclose(found, [[-8.0, -6.5, -6.0, 6.0, 8.0, 14.0]], rtol=1e-12)


# ------------------------------------------------------------------------- repair


def test_repair_is_halfway_between_running_extremes(wavy_map, rng):
    """``eta - share * u`` is the mean of its maximum to the left and minimum to the right."""
    u = wavy_map.table.u[0]
    h = np.cumsum(rng.normal(0.0, 0.2, (N_KNOTS, 5)), axis=0)

    repaired = Knots.increasing(wavy_map.table, h, np.zeros_like(h))

    for row in range(5):
        excess = list((1 - SMALLEST_SLOPE) * u + h[:, row])
        for k in range(N_KNOTS):
            wanted = 0.5 * (max(excess[: k + 1]) + min(excess[k:])) + SMALLEST_SLOPE * u[k]
            assert repaired.eta[k, row] == pytest.approx(wanted, abs=1e-12)
            assert repaired.kept[k, row] == (max(excess[: k + 1]) - min(excess[k:]) < 1e-12)
    assert 0.1 < repaired.kept.mean() < 0.9
    least = 0.99 * SMALLEST_SLOPE * np.diff(u)[:, np.newaxis]
    assert (np.diff(repaired.eta, axis=0) > least).all()


def test_repair_leaves_increasing_rows_alone(wavy_map, rng):
    """Rows that increase fast enough are kept as they are."""
    u = wavy_map.table.u.T
    eta = np.cumsum(rng.uniform(0.05, 0.3, (N_KNOTS, 4)), axis=0)

    repaired = Knots.increasing(wavy_map.table, eta - u, np.zeros_like(eta))

    assert repaired.kept.all()
    assert_allclose(repaired.eta, eta, atol=1e-14)


def test_knots_beyond_ends_yield(wavy_map, rng):
    """Knots between the ends are repaired as if there were no others, which give way to them."""
    u = wavy_map.table.u[0]
    h = np.cumsum(rng.normal(0.0, 0.2, (N_KNOTS, 6)), axis=0)
    t = np.linspace(-3.0, 3.0, N_KNOTS)[:, np.newaxis] + np.array([0.0, 2.5, -2.5, 0.4, 9.0, -9.0])
    table = replace(wavy_map, ends=(-1.0, 1.0)).table

    repaired = Knots.increasing(table, h, t)

    for row in range(6):
        excess = (1 - SMALLEST_SLOPE) * u + h[:, row]
        seen = np.flatnonzero((t[:, row] >= -1.0) & (t[:, row] <= 1.0))
        first, last = (seen[0], seen[-1]) if len(seen) else (0, N_KNOTS - 1)
        for k in range(N_KNOTS):
            left = excess[first : k + 1].max() if k >= first else None
            right = excess[k : last + 1].min() if k <= last else None
            both = [extreme for extreme in (left, right) if extreme is not None]
            wanted = np.mean(both) + SMALLEST_SLOPE * u[k]
            assert repaired.eta[k, row] == pytest.approx(wanted, abs=1e-12)
            assert repaired.kept[k, row] == (np.ptp([*both, excess[k]]) < 1e-12)
    least = 0.99 * SMALLEST_SLOPE * np.diff(u)[:, np.newaxis]
    assert (np.diff(repaired.eta, axis=0) > least).all()


def test_a_fold_below_an_end_leaves_its_mass_alone():
    """A map that falls only where nothing is seen is followed everywhere else, at the end too."""
    hill = flat_map(lambda u: 3.0 * np.exp(-2.0 * (u + 2.5) ** 2))
    base = Normal([1.3, 1.0, 0.4], [1.0, 1.0, 1.0])  # targets below 0 are where u < -loc
    points = np.linspace(0.0, 4.0, 9)[np.newaxis, :]
    u = base.probit(points)
    raw = u + map_value(hill, u, points)
    seen = Transformed(base, replace(hill, ends=(0.0, np.inf)))
    whole = Transformed(base, hill)

    assert (np.diff(raw) > 0).all()
    assert_allclose(seen.probit(points), raw, atol=0.02)
    assert (np.abs(whole.probit(0.0) - raw[:, 0])[:2] > 0.2).all()


@pytest.fixture
def folding():
    """Return a warp that folds the paths of wide rows back, and not those of narrow rows."""
    u, t = np.linspace(-6, 6, 49), np.linspace(-4, 4, 65)
    warp = Surface(u, t, np.tile(0.5 * np.sin(2 * t), (49, 1)), (1.0, 1.0))
    return Transformed(Normal([0.0, 0.3, 0.0, -0.5], [0.2, 0.3, 2.0, 4.0]), warp)


def test_folded_rows_become_valid(folding):
    """Where the map decreases along a row, the density is still positive and integrates to 1."""
    points = np.linspace(-9, 9, 1801)[np.newaxis, :]
    u = folding.base.probit(points)
    raw = u + map_value(folding.mapping, u, points)

    assert_array_equal((np.diff(raw) < 0).any(axis=1), [False, False, True, True])
    assert (np.diff(folding.probit(points)) > 0).all()
    assert np.isfinite(folding.logpdf(points)).all()
    smallest = folding.logslope(points) - folding.base.logslope(points)
    assert (smallest > np.log(0.2 * SMALLEST_SLOPE)).all()
    assert_allclose(integral_of_density(folding), 1.0, atol=1e-6)


def test_rows_that_increase_follow_the_map(folding):
    """Narrow rows follow the map itself between the knots that are inside the box."""
    points = np.linspace(-0.8, 0.8, 101)[np.newaxis, :]
    narrow = folding[:2]
    u = narrow.base.probit(points)
    raw = u + map_value(narrow.mapping, u, points)
    inner = np.abs(u) < 5

    assert_allclose(narrow.probit(points)[inner], raw[inner], atol=2e-4)


def test_few_points_get_the_answers_of_many(folding):
    """Points one at a time, which skip most knots, give the same as all of them together."""
    points = np.linspace(-9, 9, 40)
    together = {name: getattr(folding, name)(points[np.newaxis, :]) for name in ("cdf", "logpdf")}

    for name, wanted in together.items():
        for part in (folding, folding[:2]):
            alone = np.stack([getattr(part, name)(t) for t in points], axis=1)
            assert_allclose(alone, wanted[: len(part)], rtol=1e-9, atol=1e-14)


def test_few_quantiles_are_those_of_many(folding):
    """Levels one at a time, which skip most slopes, give the same as all of them together."""
    levels = np.linspace(0.001, 0.999, 40)
    together = folding.ppf(levels[np.newaxis, :])

    for part in (folding, folding[:2]):
        alone = np.stack([part.ppf(level) for level in levels], axis=1)
        assert_allclose(alone, together[: len(part)], rtol=1e-9, atol=1e-12)
