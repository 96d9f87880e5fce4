"""The Gaussian-process calibrators: independent answers, behaviour, ties, hostile data, errors.

Laws over every calibrator are in `test_laws.py`; the engine is tested in `test_gp*.py`.
"""

from dataclasses import replace

import numpy as np
import pytest
import scipy.stats
from numpy.testing import assert_allclose, assert_array_equal
from scipy.interpolate import RectBivariateSpline
from scipy.special import ndtr, ndtri
from sklearn.exceptions import NotFittedError
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process import kernels as exact_kernels
from sklearn.linear_model import BayesianRidge

from regcal import (
    DensityCalibrator,
    GPCalibrator,
    Mixture,
    Normal,
    PaperGPCalibrator,
    Quantiles,
    Samples,
    ScipyDistribution,
)
from regcal.calibrators import gp_density
from regcal.calibrators.cells import Points
from regcal.calibrators.gp_density import PathPoints
from regcal.calibrators.gp_steps import with_bounded_tails
from regcal.calibrators.gp_threshold import PairCoordinates, started_pairs
from regcal.calibrators.held_out import HeldOut
from regcal.datasets import ToyMixture
from regcal.distributions import Transformed
from regcal.gp import Logit, Matern32, Matern52
from regcal.maps import PiecewiseMap, ScaleMap, Surface
from regcal.maps.surface import is_gentle
from regcal.maps.surface_curves import N_KNOTS, SMALLEST_SLOPE, Knots

# Both maps that are trained on all rows; their cost hardly depends on the number of rows.
MAPS = {"gpc": GPCalibrator, "gp-density": DensityCalibrator}
over_maps = pytest.mark.parametrize("make", MAPS.values(), ids=MAPS)


def small_paper(**changes):
    """Return the paper's calibrator in a size that takes a fraction of a second."""
    settings = {"thresholds": 12, "n_pairs": 150, "prediction_thresholds": 24, "random_state": 0}
    return PaperGPCalibrator(**(settings | changes))


def normal_rows(rng, n, scale=1.0):
    """Return predictions N(loc, scale^2) and outcomes that follow N(loc, 1)."""
    loc = rng.uniform(-2.0, 2.0, n)
    return Normal(loc, np.full(n, scale)), loc + rng.normal(size=n)


def mean_log_score(dist, y):
    return dist.logpdf(y).mean()


# ------------------------------------------------------------- the paper's method, by hand


@pytest.fixture
def paper(rng):
    """Return a small fit of the paper's method, with its data and new predictions."""
    dist, y = normal_rows(rng, 60, scale=2.0)
    new = Normal([-1.0, 0.2, 1.5, 0.0], [2.0, 2.0, 2.0, 0.2])
    return small_paper().fit(dist, y), y, new


def classifier_by_hand(cal, y, q, t):
    """Return the classifier's probability for base probabilities `q` at targets `t`."""
    low, high = 1.5 * y.min() - 0.5 * y.max(), 1.5 * y.max() - 0.5 * y.min()
    features = [[qi, 2 * (ti - low) / (high - low) - 1] for qi, ti in zip(q, t, strict=True)]
    return cal.classifier_.predict_proba(features)[:, 1]


def test_raw_cdf_is_the_classifier(paper):
    """The raw CDF is scikit-learn's probability at (q(t), standardised t)."""
    cal, y, new = paper
    grid = np.linspace(1.5 * y.min() - 0.5 * y.max(), 1.5 * y.max() - 0.5 * y.min(), 24)

    raw = cal.raw_cdf(new)

    assert raw.shape == (4, 24)
    for row, loc, scale in zip(raw, [-1.0, 0.2, 1.5, 0.0], [2.0, 2.0, 2.0, 0.2], strict=True):
        q = scipy.stats.norm.cdf(grid, loc, scale)
        assert_allclose(row, classifier_by_hand(cal, y, q, grid), rtol=1e-8)


def test_raw_pdf_is_a_difference_quotient(paper):
    """The raw density is the rise of the raw CDF over its segment, and 0 beyond the grid."""
    cal, _, new = paper
    grid, raw = cal.prediction_thresholds_, cal.raw_cdf(new)
    width = grid[1] - grid[0]

    for row in range(len(new)):
        for k in (0, 3, 10, 11, 12, 22):
            inside = np.full(len(new), grid[k] + 0.3 * width)
            wanted = (raw[row, k + 1] - raw[row, k]) / width
            assert_allclose(cal.raw_pdf(new, inside)[row], wanted, rtol=1e-6, atol=1e-12)
    assert_array_equal(cal.raw_pdf(new, np.full(4, grid[0] - 0.1)), 0.0)
    assert_array_equal(cal.raw_pdf(new, np.full(4, grid[-1] + 0.1)), 0.0)


def test_repair_report_against_loops(paper):
    """The report counts what a loop over rows and steps counts."""
    cal, _, new = paper
    raw, grid = cal.raw_cdf(new), cal.prediction_thresholds_
    n_rows, n_steps = len(raw), len(grid) - 1
    falls = [[raw[i, k + 1] < raw[i, k] for k in range(n_steps)] for i in range(n_rows)]
    changes = [
        abs(float(cal.transform(new[i]).cdf(t)[0]) - raw[i, k])
        for i in range(n_rows)
        for k, t in enumerate(grid)
    ]

    report = cal.repair_report(new)

    assert 0 < report.decreasing_rows == sum(any(row) for row in falls) / n_rows
    assert_allclose(report.decreasing_steps, sum(map(sum, falls)) / (n_rows * n_steps))
    assert_allclose(report.mass_below, sum(raw[:, 0]) / n_rows)
    assert_allclose(report.mass_above, sum(1 - raw[:, -1]) / n_rows)
    assert_allclose(report.mean_change, sum(changes) / len(changes), rtol=1e-6)


def test_pairs_are_drawn_from_rows_with_weight(rng):
    """Pairs are distinct, and a row of nearly all weight gives nearly all of them."""
    dist, y = normal_rows(rng, 50)
    weights = np.full(50, 1e-6)
    weights[7] = 1.0
    cal = small_paper().fit(dist, y)

    rows, columns = cal._drawn_pairs(50, weights)

    assert len(set(zip(rows, columns, strict=True))) == 150
    assert np.sum(rows == 7) == 12
    assert cal.classifier_.base_estimator_.X_train_.shape == (150, 2)


# ---------------------------------------------------------------- the exact classifier


@pytest.mark.parametrize("seed", [0, 2])
def test_threshold_map_matches_the_exact_classifier(rng, seed):
    """With the paper's prior, the map is scikit-learn's classifier on all pairs."""
    data = ToyMixture(noise=0.3).sample(40, seed)
    y, loc = data.y, 0.5 * data.X[:, 0] - 0.25
    cal = GPCalibrator(12, prior="zero", link=Logit()).fit(Normal(loc, np.full(40, 0.5)), y)
    low, high = 1.5 * y.min() - 0.5 * y.max(), 1.5 * y.max() - 0.5 * y.min()

    def features(t, centre):
        u = np.clip((t - centre) / 0.5, -6, 6)
        return np.column_stack([np.tanh(u / 2), 2 * (t - low) / (high - low) - 1])

    thresholds = np.tile(np.linspace(low, high, 12), 40)
    kernel = exact_kernels.ConstantKernel(cal.sigma_**2) * exact_kernels.RBF(cal.lengthscales_)
    exact = GaussianProcessClassifier(kernel, optimizer=None)
    exact.fit(features(thresholds, np.repeat(loc, 12)), np.repeat(y, 12) <= thresholds)
    t, centre = rng.uniform(y.min(), y.max(), 200), rng.choice(loc, 200)

    found, std = cal.calibration_map(t, ndtr((t - centre) / 0.5), return_std=True)

    wanted = exact.predict_proba(features(t, centre))[:, 1]
    assert np.ptp(wanted) > 0.9
    assert_allclose(found, wanted, atol=0.01)
    # Rasmussen and Williams (2006), Algorithm 3.2
    inside = exact.base_estimator_
    cross = inside.kernel_(inside.X_train_, features(t, centre))
    solved = np.linalg.solve(inside.L_, inside.W_sr_[:, np.newaxis] * cross)
    assert_allclose(std, np.sqrt(cal.sigma_**2 - (solved**2).sum(axis=0)), rtol=0.05)
    assert_allclose(cal.log_evidence_, inside.log_marginal_likelihood_value_, rtol=0.01)


# ------------------------------------------------------------------------- the warp


@pytest.fixture
def wavy_map():
    """Return a map with waves along both axes."""
    u, t = np.linspace(-6, 6, 41), np.linspace(-3, 5, 27)
    h = 0.4 * np.sin(u[:, np.newaxis]) * np.cos(1.3 * t) + 0.1 * t
    return Surface(u, t, h, (1.0, 1.0))


def map_value(warp, u, t):
    """Return the spline of scipy through a map's values, constant beyond the box."""
    spline = RectBivariateSpline(warp.u, warp.t, warp.h, s=0)
    return spline.ev(np.clip(u, warp.u[0], warp.u[-1]), np.clip(t, warp.t[0], warp.t[-1]))


def test_table_matches_the_spline_of_scipy(wavy_map, rng):
    """At its knots, the table has the interpolating bicubic spline and its derivatives."""
    table = wavy_map.table
    spline = RectBivariateSpline(wavy_map.u, wavy_map.t, wavy_map.h, s=0)
    knots, t = rng.integers(0, len(table.u), (3, 50)), rng.uniform(-3, 5, (3, 50))
    u = table.u[knots]

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
    knots, t = rng.integers(0, len(table.u), 99), low + rng.integers(0, count, 99) / per_unit

    assert_allclose(table.value(knots, t), spline.ev(table.u[knots], t), atol=1e-9)


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
    z = np.concatenate([table.z, rng.uniform(-30, 30, 999), [-np.inf, np.inf]])
    z = np.concatenate([z, np.nextafter(table.z, -np.inf)])

    assert (np.diff(np.sort(table.z)).min() < 1e-4) == (start is STEEP)
    assert_array_equal(table.piece(z), np.searchsorted(table.z[1:-1], z, side="right"))


def test_start_is_applied_first():
    """Without a map, what is left is the start: the base's probit, mapped."""
    start = PiecewiseMap.with_slopes(np.array([-1.0, 0.2, 2.0]), np.array([0.8, 2.0, 0.6]), -1.5)
    warp = replace(flat_map(np.zeros_like), start=start)
    wanted = Transformed(BASE, start)

    warped = Transformed(BASE, warp)

    assert is_gentle(start, 6.0)
    assert_allclose(warped.probit(POINTS), wanted.probit(POINTS), atol=2e-3)
    assert_allclose(warped.logslope(POINTS), wanted.logslope(POINTS), atol=0.05)


def test_steep_starts_are_told():
    """Between two knots, a gentle start does not change its slope by much."""
    assert is_gentle(ScaleMap(1e-9), 6.0)
    falling = PiecewiseMap.with_slopes(
        np.array([-1.0, 0.0, 1.0, 1e6]), np.array([1.0, 1.0, 1e-6, 1e-6]), -1.0
    )
    assert not is_gentle(falling, 6.0)


def flat_map(h_of_u, slope=1.0):
    """Return a map that depends on u alone."""
    u, t = np.linspace(-6, 6, 25), np.linspace(-4, 4, 17)
    return Surface(u, t, np.repeat(h_of_u(u)[:, np.newaxis], 17, axis=1), (slope, slope))


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


def outcome_points(z):
    return Points.without_levels(np.ones(len(z)), z, z * z)


@pytest.mark.parametrize("last", [3.0, 15.0])
def test_tails_beyond_all_outcomes_are_bounded(rng, last):
    """There, the mean excess is at most a third of the probit, as for a Pareto tail of index 4."""
    outcomes = np.append(rng.uniform(-last, last, 500), [-last, last])
    warp = with_bounded_tails(flat_map(lambda u: -0.99 * u, slope=0.02), outcome_points(outcomes))
    eta = Transformed(Normal([0.0], [1.0]), warp).probit([[-3 * last, -last, last, 3 * last]])[0]
    slope = np.diff(eta)[[0, 2]] / (2 * last)

    assert_allclose(1.0 / (-ndtri(0.5 / 503) * slope), last / 3, rtol=0.2)


def test_light_tails_and_what_is_between_outcomes_stay_as_they_are():
    """Tails are made lighter, never heavier, and only where there is nothing to learn from."""
    wavy = flat_map(lambda u: 0.5 * np.sin(u))
    flat = flat_map(lambda u: -0.99 * u, slope=0.02)

    ends = np.repeat([-4.0, 4.0], 50)
    assert_allclose(with_bounded_tails(wavy, outcome_points(ends)).h, wavy.h)
    middle = np.abs(flat.u) <= 3.0
    bounded = with_bounded_tails(flat, outcome_points(0.75 * ends))
    assert_allclose(bounded.h[middle], flat.h[middle])


@over_maps
def test_an_outlier_leaves_the_bulk_alone(rng, make):
    """One outcome thirty deviations out stretches the last few percent at most."""
    dist, y = normal_rows(rng, 400)
    y[0] = 30.0
    calibrated = make().fit(dist, y).transform(dist)
    levels = np.array([[0.02, 0.5, 0.95]])

    assert_allclose(calibrated.ppf(levels), dist.ppf(levels), atol=0.6)


def test_repair_is_halfway_between_running_extremes(wavy_map, rng):
    """``eta - share * u`` is the mean of its maximum to the left and minimum to the right."""
    u = wavy_map.table.u
    h = np.cumsum(rng.normal(0.0, 0.2, (N_KNOTS, 5)), axis=0)

    repaired = Knots.increasing(wavy_map.table, h)

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
    u = wavy_map.table.u[:, np.newaxis]
    eta = np.cumsum(rng.uniform(0.05, 0.3, (N_KNOTS, 4)), axis=0)

    repaired = Knots.increasing(wavy_map.table, eta - u)

    assert repaired.kept.all()
    assert_allclose(repaired.eta, eta, atol=1e-14)


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


# -------------------------------------------------------------------- counts and cells


@pytest.mark.parametrize("resolution", [0.0, 0.7])
def test_counts_against_loops(rng, resolution):
    """Each pair adds its weight, its label and its probit to the cell it belongs to."""
    dist, y = normal_rows(rng, 25, scale=0.5)
    weights, thresholds = rng.uniform(0.1, 3.0, 25), np.linspace(-4, 4, 6)
    trials, successes, sums = np.zeros((3, 6, 96))
    for i in range(25):
        for j, t in enumerate(thresholds):
            u = min(max((t - dist.loc[i]) / 0.5, -37.0), 37.0)
            if resolution:  # the share of [y - step / 2, y + step / 2] that is below t
                below = min(max(t - (y[i] - resolution / 2), 0.0), resolution) / resolution
            else:
                below = float(y[i] <= t)
            for cell in range(96):
                low, high = -1 + cell / 48, -1 + (cell + 1) / 48
                if low <= np.tanh(u / 2) < high or (cell == 95 and np.tanh(u / 2) == 1):
                    trials[j, cell] += weights[i]
                    successes[j, cell] += weights[i] * below
                    sums[j, cell] += weights[i] * u

    points = PairCoordinates(thresholds, resolution).observe(HeldOut(dist, y, weights))
    merged = started_pairs(points, ScaleMap(1.0))

    found = np.zeros((3, 6, 96))
    u, rate = merged.values
    cells = np.minimum((np.tanh(u / 2) + 1) * 48, 95).astype(int)
    np.add.at(found, (slice(None), merged.levels, cells), merged.weights * [u**0, rate, u])
    assert_allclose(found, [trials, successes, sums], atol=1e-10)


def test_merging_keeps_weights_and_means(rng):
    """Merged points have the same total weight and means, and stay near their own points."""
    points = PathPoints(
        rng.normal(0, 0.3, 5000),
        rng.uniform(-1, 1, 5000),
        np.exp(rng.normal(0, 0.1, 5000)),
        rng.uniform(0.1, 2.0, 5000),
    )

    merged = points.merged()

    assert len(merged.u) < 4500
    assert_allclose(merged.weights.sum(), points.weights.sum())
    for name in ("u", "s", "spread"):
        wanted = np.average(getattr(points, name), weights=points.weights)
        found = np.average(getattr(merged, name), weights=merged.weights)
        assert_allclose(found, wanted, atol=1e-12, err_msg=name)
    # each merged point is the mean of points of one cell: all within a cell's width
    place = np.stack([np.tanh(merged.u / 2), merged.s, np.log(merged.spread) / 8])
    original = np.stack([np.tanh(points.u / 2), points.s, np.log(points.spread) / 8])
    width = np.array([2 / 128, 2 / 128, 1 / 64])
    for row in rng.integers(0, len(merged.u), 50):
        near = np.abs(original - place[:, row : row + 1]) <= width[:, np.newaxis]
        assert near.all(axis=0).any()


def test_merged_points_give_the_same_fit(rng, monkeypatch):
    """A density map fitted on merged cells scores as the one fitted on all points."""
    dist, y = normal_rows(rng, 400, scale=1.7)
    new, new_y = normal_rows(rng, 400, scale=1.7)
    exact = DensityCalibrator().fit(dist, y).transform(new)

    monkeypatch.setattr(gp_density, "_MAX_POINTS", 50)
    merged = DensityCalibrator().fit(dist, y).transform(new)

    assert_allclose(mean_log_score(merged, new_y), mean_log_score(exact, new_y), atol=0.01)
    assert_allclose(merged.std(), exact.std(), rtol=0.02)


# ------------------------------------------------------------------------ behaviour


@over_maps
def test_a_true_model_is_left_alone(rng, make):
    """Calibrating predictions that are right costs less than 0.02 nats on new rows."""
    cal = make().fit(*normal_rows(rng, 500))
    new, new_y = normal_rows(rng, 4000)

    loss = mean_log_score(new, new_y) - mean_log_score(cal.transform(new), new_y)

    assert loss < 0.02


@over_maps
@pytest.mark.parametrize("scale", [0.5, 2.0])
def test_a_wrong_scale_is_undone(rng, make, scale):
    """Rows whose standard deviation is half or twice the truth get the true one."""
    cal = make().fit(*normal_rows(rng, 600, scale))
    new = Normal([-1.5, 0.0, 1.5], [scale] * 3)

    assert_allclose(cal.transform(new).std(), 1.0, rtol=0.1)


@pytest.mark.parametrize("seed", range(3))
def test_ordinary_rows_give_no_warning(seed):
    """Normal predictions that are twice too wide are no reason for a warning."""
    cal = GPCalibrator().fit(*normal_rows(np.random.default_rng(seed), 500, scale=2.0))

    assert_allclose(cal.transform(Normal([0.0], [2.0])).std(), 1.0, rtol=0.15)


@over_maps
def test_a_bias_is_undone(rng, make):
    """Predictions that are 0.8 too high are moved back."""
    dist, y = normal_rows(rng, 500)
    cal = make().fit(dist, y - 0.8)
    new = cal.transform(Normal([-1.5, 0.0, 1.5], np.ones(3)))

    assert_allclose(new.mean(), [-2.3, -0.8, 0.7], atol=0.15)
    assert_allclose(new.std(), 1.0, rtol=0.1)


@over_maps
def test_weights_choose_the_rows(rng, make):
    """With next to no weight on wrong rows, the rows that count are calibrated."""
    dist, y = normal_rows(rng, 600, scale=2.0)
    y[:300] += 5.0
    weights = np.repeat([1e-6, 1.0], 300)
    new = Normal([-1.0, 1.0], [2.0, 2.0])

    weighted = make().fit(dist, y, sample_weight=weights).transform(new)

    assert_allclose(weighted.mean(), [-1.0, 1.0], atol=0.2)
    assert_allclose(weighted.std(), 1.0, rtol=0.15)


@pytest.fixture(scope="module")
def toy():
    """Return the paper's toy problem: calibration rows, new rows, and the truth on a grid."""
    mixture = ToyMixture()
    train, held_out, new = (mixture.sample(n, seed) for n, seed in ((600, 1), (600, 2), (600, 3)))
    model = BayesianRidge().fit(train.X, train.y)
    predictions = [Normal(*model.predict(part.X, return_std=True)) for part in (held_out, new)]
    grid = np.linspace(-1.2, 1.2, 61)
    return predictions[0], held_out.y, predictions[1], new.y, mixture.cdf(new.X, grid), grid


@pytest.fixture(scope="module")
def toy_fits(toy):
    """Return both maps fitted on the toy problem."""
    return {name: make().fit(toy[0], toy[1]) for name, make in MAPS.items()}


@pytest.mark.parametrize("name", MAPS)
def test_a_wrong_shape_is_found(toy, toy_fits, name):
    """Two modes per row are learnt from normals: a better score, and nearer to the truth."""
    _, _, base, y, truth, grid = toy
    calibrated = toy_fits[name].transform(base)

    gain = mean_log_score(calibrated, y) - mean_log_score(base, y)

    before, after = (np.abs(d.cdf(grid[np.newaxis, :]) - truth).mean() for d in (base, calibrated))
    assert gain > 0.4
    assert after < 0.5 * before


def test_the_paper_and_its_fast_version_agree(toy, toy_fits):
    """On the toy problem the reference on a sample of pairs finds nearly the same CDFs."""
    dist, y, base, _, truth, grid = toy
    cal = small_paper(thresholds=24, n_pairs=600, prediction_thresholds=200).fit(dist, y)
    rows = slice(0, 100)

    reference = cal.transform(base[rows]).cdf(grid[np.newaxis, :])

    fast = toy_fits["gpc"].transform(base[rows]).cdf(grid[np.newaxis, :])
    # 600 pairs leave the reference further from the truth than all of them
    assert np.abs(reference - fast).mean() < 0.06
    assert np.abs(reference - truth[rows]).mean() < 0.07
    assert np.abs(fast - truth[rows]).mean() < 0.03


@pytest.mark.parametrize("name", MAPS)
def test_hyperparameters_are_reported(toy_fits, name):
    """Length-scales, variance and evidence are finite, and the process has found structure."""
    cal = toy_fits[name]

    assert cal.lengthscales_.shape == (2,)
    assert (np.isfinite(cal.lengthscales_) & (cal.lengthscales_ > 0)).all()
    assert np.isfinite(cal.log_evidence_)
    assert 0.05 < cal.sigma_ < 100


@pytest.mark.parametrize("name", MAPS)
def test_distributions_follow_the_calibration_map(toy, toy_fits, name):
    """Along the path of a row, P(Y <= t) is the map at (t, q(t)) up to the repair."""
    cal, base, grid = toy_fits[name], toy[2][:50], toy[5]
    q = base.cdf(grid[np.newaxis, :])

    along = cal.calibration_map(grid, q)

    found = cal.transform(base).cdf(grid[np.newaxis, :])
    drop = np.max(np.maximum.accumulate(along, axis=1) - along, axis=1, keepdims=True)
    assert (drop < 0.002).mean() > 0.4
    assert (np.abs(found - along) < 0.02 + drop).all()
    assert np.abs(found - along).mean() < 0.006


@pytest.mark.parametrize("name", MAPS)
def test_calibration_map_shapes_and_limits(toy_fits, name):
    """Thresholds and probabilities broadcast; certain predictions stay nearly certain."""
    cal = toy_fits[name]
    t, q = np.array([-0.5, 0.0, 0.5]), np.array([[0.2], [0.8]])

    probability, std = cal.calibration_map(t, q, return_std=True)

    assert probability.shape == std.shape == (2, 3)
    assert_array_equal(cal.calibration_map(t, q), probability)
    assert np.shape(cal.calibration_map(0.0, 0.5)) == ()
    assert_allclose(cal.calibration_map(0.5, 0.8), probability[1, 2], rtol=1e-10)
    assert ((probability > 0) & (probability < 1) & (std > 0)).all()
    assert (cal.calibration_map(t, 0.0) < 0.05).all()
    assert (cal.calibration_map(t, 1.0) > 0.95).all()


@over_maps
def test_the_map_is_unsure_where_there_are_no_data(rng, make):
    """The standard deviation is larger off the only path that the rows take."""
    cal = make().fit(Normal(np.zeros(300), np.full(300, 2.0)), rng.normal(size=300))

    _, on_path = cal.calibration_map([-1.0, 0.0, 1.0], ndtr([-0.5, 0.0, 0.5]), return_std=True)
    _, off_path = cal.calibration_map([-3.5, 0.0, 3.5], ndtr([2.0, 3.0, -2.0]), return_std=True)

    assert off_path.min() > 1.5 * on_path.max()


def test_zero_prior_fades_into_the_base(rng):
    """The paper's prior has no linear terms: inside it learns, far out the base is kept."""
    dist, y = normal_rows(rng, 300, scale=0.5)
    calibrated = GPCalibrator(16, prior="zero").fit(dist, y).transform(dist[:5])
    far = dist.loc[:5, np.newaxis] + 0.5 * np.array([-30.0, -7.0, 7.0, 30.0])

    assert_allclose(calibrated.std(), 1.0, rtol=0.15)
    assert_allclose(calibrated.logpdf(far), dist[:5].logpdf(far), rtol=1e-9)


@over_maps
def test_a_bent_pit_is_the_starting_point(rng, make):
    """Where PIT recalibration is clearly better, it is the prior mean, in the map as well."""
    loc = rng.uniform(-2, 2, 400)
    bent = make().fit(Normal(loc, np.ones(400)), loc + rng.exponential(size=400))
    straight = make().fit(Normal(loc, np.ones(400)), loc + rng.normal(size=400))
    new = Normal([-1.0, 1.0], [1.0, 1.0])
    points = np.array([[-0.8, -0.5, 0.0, 1.0], [1.2, 1.5, 2.0, 3.0]])

    assert isinstance(bent.start_, PiecewiseMap)
    assert straight.start_ == ScaleMap(1.0)
    wanted = bent.calibration_map(points, new.cdf(points))
    assert_allclose(bent.transform(new).cdf(points), wanted, atol=0.01)
    truth = scipy.stats.expon.cdf(points - new.loc[:, np.newaxis])
    assert_allclose(wanted, truth, atol=0.08)


def test_prediction_thresholds_give_steps(rng):
    """The density is constant between the thresholds, where the CDF is the smooth one's."""
    dist, y = normal_rows(rng, 200, scale=2.0)
    grid = np.linspace(-5, 5, 11)
    smooth = GPCalibrator(16).fit(dist, y).transform(dist[:5])
    stepped = GPCalibrator(16, prediction_thresholds=grid).fit(dist, y).transform(dist[:5])

    at_grid = smooth.cdf(grid[np.newaxis, :])
    assert_allclose(stepped.cdf(grid[np.newaxis, :]), at_grid, rtol=1e-8)
    for share in (0.1, 0.5, 0.9):
        inside = grid[:-1] + share * np.diff(grid)
        assert_allclose(stepped.pdf(inside[np.newaxis, :]), np.diff(at_grid), rtol=1e-6)


def test_kernels_and_links_agree(rng):
    """Rougher kernels and the logistic link find nearly the same distributions."""
    dist, y = normal_rows(rng, 300, scale=2.0)
    grid = np.linspace(-3, 3, 25)[np.newaxis, :]
    options = [{}, {"kernel": Matern52()}, {"kernel": Matern32()}, {"link": Logit()}]
    first, *others = [
        GPCalibrator(16, **option).fit(dist, y).transform(dist[:20]) for option in options
    ]
    density = [
        DensityCalibrator(kernel=kernel).fit(dist, y).transform(dist[:20])
        for kernel in (None, Matern52())
    ]

    for other in [*others, *density]:
        assert_allclose(other.cdf(grid), first.cdf(grid), atol=0.04)
        assert_allclose(other.std(), first.std(), rtol=0.1)


# ----------------------------------------------------------------------------- ties

TIED = {"gpc 16": lambda: GPCalibrator(16), "gpc 64": GPCalibrator, "gp-density": DensityCalibrator}


@pytest.mark.parametrize("make", TIED.values(), ids=TIED)
@pytest.mark.parametrize("step", [1.0, 0.5])
def test_rounded_targets_leave_no_holes(rng, make, step):
    """Rounded outcomes neither raise the density at their values nor empty it between them."""
    reach = 1.0 if step == 1.0 else 3.0
    loc, new_loc = rng.uniform(-reach, reach, (2, 500))
    base, new = Normal(loc, np.ones(500)), Normal(new_loc, np.ones(500))
    y, new_y = (np.round(rng.normal(centre) / step) * step for centre in (loc, new_loc))

    calibrated = make().fit(base, y).transform(new)

    assert mean_log_score(calibrated, new_y) >= mean_log_score(new, new_y) - 0.05
    points = new.ppf(np.linspace(0.02, 0.98, 97)[np.newaxis, :])[:100]
    ratio = calibrated[:100].pdf(points) / new[:100].pdf(points)
    assert ratio.min() > 0.05
    assert ratio.max() < 20


@over_maps
def test_zero_inflated_targets(rng, make):
    """Half zeros and a long tail, as in the forest fires data: finite, and better than before."""
    n = 400
    fires = np.where(rng.random((2, n)) < 0.5, 0.0, rng.lognormal(0.0, 1.5, (2, n)))
    base = Normal(rng.normal(fires[0].mean(), 0.3, n), np.full(n, fires[0].std()))

    calibrated = make().fit(base, fires[0]).transform(base)

    scores = calibrated.logpdf(fires[1])
    assert np.isfinite(scores).all()
    assert scores.mean() > mean_log_score(base, fires[1]) + 0.3


# --------------------------------------------------------------------- hostile data


def _few(n):
    def build(rng):
        return *normal_rows(rng, n), None

    return build


def _all_below(rng):
    dist, _ = normal_rows(rng, 100)
    return dist, dist.loc - 3 - rng.exponential(size=100), None


def _constant_predictions(rng):
    return Normal(np.zeros(100), np.ones(100)), rng.gamma(2.0, size=100), None


def _outlier(rng):
    dist, y = normal_rows(rng, 100)
    y[0] = 1e6
    return dist, y, None


def _scales(rng):
    loc, scale = rng.normal(size=100), 10 ** rng.uniform(-3, 3, 100)
    return Normal(loc, scale), loc + 1.5 * scale * rng.normal(size=100), None


def _unequal_weights(rng):
    return *normal_rows(rng, 100), 10 ** rng.uniform(-8, 4, 100)


def _gamma(rng):
    loc = rng.normal(size=100)
    base = ScipyDistribution(scipy.stats.gamma(np.full(100, 2.0), loc=loc))
    return base, loc + rng.gamma(1.5, size=100), None


def _heavy_tails(rng):
    loc = rng.normal(size=100)
    base = ScipyDistribution(scipy.stats.t(np.full(100, 2.0), loc=loc))
    return base, loc + 1.5 * rng.standard_t(2, size=100), None


def _quantiles(rng):
    loc, levels = rng.normal(size=100), np.array([0.05, 0.25, 0.5, 0.75, 0.95])
    base = Quantiles(levels, loc[:, np.newaxis] + 0.6 * ndtri(levels))
    return base, loc + rng.normal(size=100), None


def _samples(rng):
    loc = rng.normal(size=100)
    base = Samples(loc[:, np.newaxis] + rng.normal(size=(100, 20)))
    return base, loc + rng.gumbel(size=100), None


def _mixture(rng):
    loc = rng.normal(size=100)
    second = rng.random(100) < 0.3
    y = np.where(second, rng.normal(loc + 5, 0.5), rng.normal(loc, 1.0))
    return Mixture([Normal(loc, np.ones(100)), Normal(loc + 5, np.full(100, 0.3))]), y, None


HOSTILE = {
    "2 rows": _few(2),
    "3 rows": _few(3),
    "all below": _all_below,
    "constant predictions": _constant_predictions,
    "outlier": _outlier,
    "scales": _scales,
    "unequal weights": _unequal_weights,
    "gamma": _gamma,
    "heavy tails": _heavy_tails,
    "quantiles": _quantiles,
    "samples": _samples,
    "mixture": _mixture,
}
NODES, NODE_WEIGHTS = np.polynomial.legendre.leggauss(8)


def integral_of_density(dist):
    """Integrate each row's density between fine quantiles and the points where it jumps."""
    edges = dist.from_probit(np.linspace(-8.0, 8.0, 257)[np.newaxis, :])
    middle = np.linspace(edges[:, 64], edges[:, 192], 129, axis=1)  # finer where there is little
    edges = np.concatenate([edges, middle], axis=1)
    kinks = dist._kinks()
    if kinks is not None:
        kinks = np.broadcast_to(kinks, (len(dist), kinks.shape[1]))
        low, high = edges.min(axis=1, keepdims=True), edges.max(axis=1, keepdims=True)
        edges = np.concatenate([edges, np.clip(kinks, low, high)], axis=1)
    edges = np.sort(edges, axis=1)
    half = 0.5 * np.diff(edges)[:, :, np.newaxis]
    points = edges[:, :-1, np.newaxis] + half * (1 + NODES)
    values = dist.pdf(points.reshape(len(dist), -1)).reshape(points.shape)
    return (half * values * NODE_WEIGHTS).sum(axis=(1, 2))


def assert_valid(dist, base, y):
    """Check that calibrated rows are distributions, as wide as their bases."""
    middle, spread = base.ppf([[0.5]]), np.diff(base.ppf([[0.16, 0.84]])) / 2
    points = middle + spread * np.concatenate([np.linspace(-6, 6, 121), [-30, -15, 15, 30]])
    points = np.sort(np.concatenate([points, y[:, np.newaxis]], axis=1), axis=1)
    levels = np.array([[1e-3, 0.02, 0.2, 0.5, 0.8, 0.98, 0.999]])

    cdf = dist.cdf(points)
    assert ((cdf >= 0) & (cdf <= 1)).all()
    assert (np.diff(cdf) >= -1e-13).all()
    logpdf = dist.logpdf(points)
    assert np.isfinite(logpdf[np.isfinite(base.logpdf(points))]).all()
    assert (logpdf < np.inf).all()
    quantiles = dist.ppf(levels)
    assert (np.diff(quantiles) > 0).all()
    assert_allclose(dist.cdf(quantiles), np.broadcast_to(levels, quantiles.shape), atol=1e-8)
    assert_allclose(integral_of_density(dist), 1.0, atol=1e-4)


@pytest.mark.parametrize("data", HOSTILE.values(), ids=HOSTILE)
@over_maps
def test_hostile_data_give_valid_distributions(rng, make, data):
    """Whatever the rows, the fit is silent, does no harm to them, and gives distributions."""
    dist, y, weights = data(rng)
    cal = make().fit(dist, y, sample_weight=weights)

    assert np.isfinite([cal.sigma_, cal.log_evidence_, *cal.lengthscales_]).all()
    gain = cal.transform(dist).logpdf(y) - dist.logpdf(y)
    assert np.average(gain, weights=weights) > -0.2
    rows = slice(0, 8)
    assert_valid(cal.transform(dist[rows]), dist[rows], y[rows])


@pytest.mark.parametrize("data", HOSTILE.values(), ids=HOSTILE)
def test_hostile_data_in_the_paper_version(rng, data):
    """The repaired result of the classifier is a distribution, whatever the rows."""
    dist, y, weights = data(rng)
    cal = small_paper(n_pairs=80).fit(dist, y, sample_weight=weights)

    rows = slice(0, 4)
    assert_valid(cal.transform(dist[rows]), dist[rows], y[rows])


# --------------------------------------------------------------------------- errors


def test_unknown_prior_is_refused(rng):
    """The message names the value and the two choices."""
    with pytest.raises(ValueError, match=r'"identity" or "zero", got \'nonsense\''):
        GPCalibrator(prior="nonsense").fit(*normal_rows(rng, 20))


@pytest.mark.parametrize("make", [*MAPS.values(), small_paper], ids=[*MAPS, "gpc-paper"])
def test_constant_targets_are_refused(make):
    """Without a range of targets there is no map to learn."""
    with pytest.raises(ValueError, match=r"All targets equal 1\.5"):
        make().fit(Normal(np.zeros(20), np.ones(20)), np.full(20, 1.5))


@pytest.mark.parametrize("q", [-0.1, 1.2])
def test_calibration_map_refuses_what_is_no_probability(rng, q):
    """A base probability outside [0, 1] is named in the message."""
    cal = GPCalibrator(4).fit(*normal_rows(rng, 20))

    with pytest.raises(ValueError, match=f"between 0 and 1, got {q}"):
        cal.calibration_map([0.0, 0.0], [0.5, q])


@over_maps
def test_unfitted_calibration_map_is_refused(make):
    """A map is asked for only after `fit`."""
    with pytest.raises(NotFittedError):
        make().calibration_map(0.0, 0.5)


def test_unfitted_raw_cdf_is_refused():
    """The classifier is asked only after `fit`."""
    with pytest.raises(NotFittedError):
        small_paper().raw_cdf(Normal([0.0], [1.0]))


@pytest.mark.parametrize("thresholds", [[50.0, 60.0], [-60.0, -50.0]])
def test_pairs_of_one_class_are_refused(rng, thresholds):
    """Thresholds beyond all targets give a classifier nothing to learn."""
    with pytest.raises(ValueError, match="have the same label"):
        small_paper(thresholds=thresholds).fit(*normal_rows(rng, 20))
