"""Mixtures by hand and against scoringrules."""

import numpy as np
import pytest
import scipy.integrate
import scipy.optimize
import scipy.stats
import scoringrules
from numpy.testing import assert_allclose
from rows import GRID
from sklearn.isotonic import IsotonicRegression

import regcal
from regcal.calibrators.isotonic import IndexCoordinates, IndexTable
from regcal.calibrators.one_vs_rest import ColumnMaps, Reweighting, SegmentCounts
from regcal.distributions import Segmented, Transformed
from regcal.distributions._quadrature import integrate
from regcal.maps import Axis, PiecewiseMap, RowLines, ScaleMap, Surface
from regcal.maps.axis import LINEAR


def test_mixture_of_normals_by_hand():
    """Densities and probabilities are weighted sums."""
    weights = np.array([0.3, 0.7])
    dist = regcal.Mixture([regcal.Normal([0.0], 1.0), regcal.Normal([4.0], 0.5)], weights)
    parts = [scipy.stats.norm(0.0, 1.0), scipy.stats.norm(4.0, 0.5)]

    for method in ("cdf", "sf", "pdf"):
        wanted = sum(w * getattr(p, method)(GRID) for w, p in zip(weights, parts, strict=True))
        assert_allclose(getattr(dist, method)(GRID), wanted, rtol=1e-12)
    assert_allclose(dist.logsf(60.0), np.log(0.3) + parts[0].logsf(60.0), rtol=1e-12)


def test_quantiles_of_equal_components_are_theirs():
    """A mixture of one thing is that thing, and takes no long search."""
    part = regcal.Normal([5.0, -3e7], [1.0, 2.0])

    assert_allclose(regcal.Mixture([part, part]).ppf(0.01), part.ppf(0.01))


def test_crps_of_a_mixture_against_scoringrules(rng):
    """Narrow and wide components, near and far."""
    loc, scale = np.array([0.0, 3.0, 30.0]), np.array([1.0, 0.01, 2.0])
    weights, y = np.array([0.2, 0.5, 0.3]), np.linspace(-5, 40, 10)
    parts = [regcal.Normal(np.full(10, m), s) for m, s in zip(loc, scale, strict=True)]
    wanted = [scoringrules.crps_mixnorm(one, loc, scale, weights) for one in y]

    assert_allclose(regcal.crps(y, regcal.Mixture(parts, weights)), wanted, rtol=1e-6)


def test_crps_of_mixtures_of_quantiles_by_many_points(rng):
    """Curves bend at each quantile, and no panel may hide that."""
    levels, y = np.linspace(0.03, 0.97, 9), rng.normal(size=60)
    z = scipy.stats.norm.ppf(levels)
    widths, bends = rng.uniform(0.7, 1.3, (3, 60, 1)), rng.uniform(0.0, 0.15, (3, 60, 1))
    values = rng.normal(scale=0.2, size=(3, 60, 1)) + z * (widths + bends * np.abs(z))
    parts = [regcal.Quantiles(levels, part) for part in values]
    probits = np.sort(np.concatenate([np.linspace(-9.0, 9.0, 601), z]))[np.newaxis, :]
    dist, column = regcal.Mixture(parts), y[:, np.newaxis]
    edges = np.concatenate([*(part.from_probit(probits) for part in parts), column], axis=1)

    wanted = integrate(
        lambda t: np.where(t < column, dist.cdf(t), dist.sf(t)) ** 2, np.sort(edges, axis=1)
    )

    assert_allclose(dist.crps(y), wanted, rtol=1e-6)


def test_crps_of_heavy_tails_beside_a_narrow_peak(rng):
    """Few panels do where components are alike, and more are found where tails are long."""
    loc, scale, y = rng.normal(size=(3, 2, 30))
    scale = np.exp(0.3 * scale)
    heavy = scipy.stats.t(df=3, loc=loc[0], scale=scale[0])
    narrow = scipy.stats.norm(loc[1], 0.3 * scale[1])
    dist = regcal.Mixture([regcal.as_distribution(heavy), regcal.Normal(loc[1], 0.3 * scale[1])])
    # t = sinh(x), where polynomial tails are exponential ones
    far, at = np.full(30, 18.0), np.arcsinh(y[0])
    x = np.stack([np.linspace(-far, at, 20_001), np.linspace(at, far, 20_001)])
    outer = [0.5 * (heavy.cdf(np.sinh(x[0])) + narrow.cdf(np.sinh(x[0])))]
    outer += [0.5 * (heavy.sf(np.sinh(x[1])) + narrow.sf(np.sinh(x[1])))]
    wanted = sum(
        scipy.integrate.simpson(tail**2 * np.cosh(own), x=own, axis=0)
        for tail, own in zip(outer, x, strict=True)
    )

    assert_allclose(dist.crps(y[0]), wanted, rtol=3e-6)


def test_quantiles_of_mixtures_of_mixtures(rng):
    """They are those of all components with the products of weights, of each row and level."""
    parts = [regcal.Normal(rng.normal(size=3), rng.uniform(0.5, 2.0, 3)) for _ in range(4)]
    inner = rng.dirichlet(np.ones(2), 3)
    nested = regcal.Mixture([regcal.Mixture(parts[:2], inner), parts[2], parts[3]], [0.6, 0.4, 0.0])
    flat = regcal.Mixture(parts[:3], np.column_stack([0.6 * inner, np.full(3, 0.4)]))
    levels = np.array([[0.0, 1e-12, 0.05, 0.5, 0.9, 1.0]])

    assert_allclose(nested.ppf(levels), flat.ppf(levels), rtol=1e-12)
    assert_allclose(nested.cdf(nested.ppf(levels)), np.repeat(levels, 3, axis=0), rtol=1e-12)


def _surface(shift, axis=LINEAR, ends=(-np.inf, np.inf), factor=1.0, height=0.4):
    u, t = np.linspace(-6, 6, 25), np.linspace(-3 - shift, 5, 17 + int(4 * shift))
    h = height * np.sin(u[:, np.newaxis] + shift) * np.cos(1.3 * t) + 0.1 * shift
    return Surface(u, t, h, (1.0, 0.5 + shift), ScaleMap(factor), axis, ends)


def _piecewise(shift, count):
    knots = np.linspace(-2.0, 2.0, count)
    return PiecewiseMap.with_slopes(knots, 1.0 + shift + 0.6 * np.sin(2.0 * knots), start=-2.0)


def _segmented(base, shift, uniform):
    thresholds = np.array([-1.0, 0.0, 0.5, 2.0]) + shift
    return Segmented(base, thresholds, lambda _, logs: (0.8 + shift) * logs, uniform=uniform)


def _unequal(base, count, uniform):
    thresholds = np.linspace(-2.0, 1.5, count)
    return Segmented(base, thresholds, lambda _, logs: 0.7 * logs, uniform=uniform)


def _binary(base, shift, uniform):
    maps = regcal.BetaCalibrator()
    maps.coefficients_ = np.array([[1.0 + shift, 0.8, 0.1 * k] for k in range(4)])
    thresholds = np.array([-1.0, 0.5 + shift, 2.0])
    return Segmented(base, thresholds, Reweighting(maps), uniform=uniform)


def _isotonic(base, shift):
    """Return segments with lines through knots, of other numbers in each part."""
    p, rate = np.linspace(0.0, 1.0, 8 + int(20 * shift)), np.array([0.0, 0.3, 0.25, 0.9])
    columns = [np.interp(p, np.linspace(0, 1, 4), rate * (1.0 - 0.1 * k) + shift) for k in range(4)]
    labels = np.clip(columns, 0.0, 1.0)
    counts = SegmentCounts(np.log(np.tile(p + 1e-3, (4, 1)) / 1.1), labels, np.ones((4, len(p))))
    maps = ColumnMaps(IsotonicRegression(out_of_bounds="clip"), counts)
    thresholds = np.array([-1.0, 0.5 + shift, 2.0])
    return Segmented(base, thresholds, Reweighting(maps))


def _index_table(base, k):
    """Return segments whose masses go by the median of the base that was recalibrated."""
    thresholds = np.linspace(-2.0, 1.5, 4 + k % 2)
    masses = np.random.default_rng(k).dirichlet(np.ones(len(thresholds) + 1), size=6 + k)
    masses[0, 1] = 0.0
    coordinates = IndexCoordinates(thresholds, "median", LINEAR, 0.0)
    start = ScaleMap(1.1 + 0.3 * k)
    table = IndexTable(coordinates, np.linspace(-1.0, 1.0, 6 + k), masses, 0.1 + 0.1 * k, start)
    return Segmented(Transformed(base, start), thresholds, table, uniform=True)


def _quantiles(base):
    levels = [0.1, 0.4, 0.9]
    # read as one batch is, so that there is one way to read all of them
    usual = regcal.Quantiles(levels, [[-1.0, 0.0, 1.0]]).reading
    return regcal.Quantiles(levels, base.ppf([levels])).read(usual)


PARTS = {
    "normal": lambda base, k: base,
    "quantiles": lambda base, k: _quantiles(base),
    "scale": lambda base, k: Transformed(base, ScaleMap(1.0 + 0.3 * k)),
    "lines": lambda base, k: Transformed(base, RowLines(np.full(3, 0.3 * k), np.full(3, 1.0 + k))),
    "pit": lambda base, k: Transformed(base, _piecewise(0.1 * k, 5)),
    "unequal pit": lambda base, k: Transformed(base, _piecewise(0.1 * k, 4 + k)),
    "surface": lambda base, k: Transformed(base, _surface(0.25 * k, factor=1.0 + 0.1 * k)),
    "axes": lambda base, k: Transformed(base, _surface(0.25 * k, [LINEAR, Axis(0.5, 2.0)][k % 2])),
    "ends": lambda base, k: Transformed(
        base, _surface(0.25 * k, ends=(-1.0 + k, np.inf), height=1.5)
    ),
    "surface of quantiles": lambda base, k: Transformed(_quantiles(base), _surface(0.25 * k)),
    "segments": lambda base, k: _segmented(base, 0.1 * k, uniform=False),
    "uniform": lambda base, k: _segmented(base, 0.1 * k, uniform=True),
    "binary": lambda base, k: _binary(base, 0.1 * k, uniform=False),
    "isotonic maps": lambda base, k: _isotonic(base, 0.1 * k),
    "index": _index_table,
    "unequal": lambda base, k: _unequal(base, 4 + k, uniform=False),
    "unequal and uniform": lambda base, k: _unequal(base, 6 - k, uniform=True),
    "twice": lambda base, k: Transformed(_binary(base, 0.1 * k, uniform=True), ScaleMap(2.0 + k)),
}


@pytest.mark.parametrize("kind", PARTS)
def test_components_that_are_asked_at_once_say_what_each_says(kind, rng):
    """Of few rows, components of one kind are asked together; what they say is their average."""
    bases = [regcal.Normal(rng.normal(size=3), rng.uniform(0.7, 1.5, 3)) for _ in range(3)]
    parts = [PARTS[kind](base, k) for k, base in enumerate(bases)]
    weights = rng.dirichlet(np.ones(3), 3)
    dist = regcal.Mixture(parts, weights)
    points, y = np.linspace(-9, 9, 7)[np.newaxis, :], rng.normal(size=3)

    assert len(dist._groups) == 1
    for method in ("cdf", "sf", "pdf"):
        said = np.stack([getattr(part, method)(points) for part in parts], axis=-1)
        wanted = (said * weights[:, np.newaxis, :]).sum(axis=-1)
        assert_allclose(getattr(dist, method)(points), wanted, rtol=1e-12)
    probits = np.array([[-4.0, -0.3, 0.7, 2.5]])
    quantiles = dist._groups[0].ask("_from_probit", probits)
    assert_allclose(quantiles, [part.from_probit(probits) for part in parts], rtol=1e-11)
    means, variances = (np.stack([getattr(p, m)() for p in parts], 1) for m in ("mean", "var"))
    mean = (weights * means).sum(axis=1)
    assert_allclose(dist.mean(), mean, rtol=1e-9, atol=1e-9)
    wanted = (weights * (variances + (means - mean[:, np.newaxis]) ** 2)).sum(axis=1)
    assert_allclose(dist.var(), wanted, rtol=1e-9)
    levels = np.array([[0.01, 0.3, 0.5, 0.99]])
    assert_allclose(dist.cdf(dist.ppf(levels)), np.repeat(levels, 3, axis=0), rtol=1e-9)
    # the same rows among many, of which components are asked one by one
    many = dist[np.tile([2, 0], 20)]
    assert len(many._groups) == 3
    for method in ("cdf", "logsf", "logpdf"):
        said = getattr(many, method)(points)[:2]
        assert_allclose(getattr(dist[[2, 0]], method)(points), said, rtol=1e-11)
    assert_allclose(dist[[2, 0]].crps(y[[2, 0]]), many.crps(np.tile(y[[2, 0]], 20))[:2], rtol=1e-6)


def test_components_of_several_kinds_are_asked_in_groups(rng):
    """A mixture of mixtures asks all components of one kind together, wherever they stand."""
    bases = [regcal.Normal([0.1 * k, 1.0], [1.0, 2.0]) for k in range(4)]
    surfaces = [Transformed(base, _surface(0.25 * k)) for k, base in enumerate(bases)]
    segments = [_segmented(base, 0.1 * k, uniform=False) for k, base in enumerate(bases)]
    pairs = zip(surfaces, segments, strict=True)
    inner = [regcal.Mixture([*pair, bases[0]], [0.5, 0.3, 0.2]) for pair in pairs]
    dist, points = regcal.Mixture(inner), np.linspace(-5, 5, 9)[np.newaxis, :]

    assert [len(group.weights) for group in dist._groups] == [4, 4, 4]
    wanted = np.mean([part.cdf(points) for part in inner], axis=0)
    assert_allclose(dist.cdf(points), wanted, rtol=1e-12)
    assert_allclose(dist.mean(), np.mean([part.mean() for part in inner], axis=0), rtol=1e-9)
