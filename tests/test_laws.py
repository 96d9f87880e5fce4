"""Laws that every distribution and every calibrator's output obeys.

The cases are those of `cases.py`; a law skips a case only where the case says so.
"""

import pickle
import warnings
import zlib
from dataclasses import replace

import numpy as np
import pytest
import scipy.stats
from cases import (
    CALIBRATED,
    CALIBRATORS,
    CASES,
    DISTRIBUTIONS,
    FEW_BASES,
    STANDARD,
    UNITS,
    CalibratedCase,
    Unit,
)
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import ndtr

import regcal
from regcal.distributions import base as distributions_base

LEVELS = ndtr(np.linspace(-6.0, 5.0, 23))[np.newaxis, :]
INNER_LEVELS = ndtr(np.linspace(-3.0, 3.0, 13))[np.newaxis, :]
METHODS = ["cdf", "sf", "logcdf", "logsf", "pdf", "logpdf", "probit", "logslope"]
NODES, WEIGHTS = np.polynomial.legendre.leggauss(12)


def over(cases):
    """Run a test for each of the cases."""
    return pytest.mark.parametrize("case", cases, ids=[case.name for case in cases])


# Calibrators are fitted on one seed in two units besides the standard one, which all laws share,
# since a fit takes time. Which two goes round among the cases.
FIT_SEED = 1


def fits_of(case):
    """Return the seed and the units in which a calibrated case is fitted."""
    left_out = zlib.crc32(case.name.encode()) % len(UNITS[1:])
    return [(FIT_SEED, unit) for k, unit in enumerate(UNITS[1:]) if k != left_out]


# Where units do not matter, calibrators need but one draw; the rest has two.
DRAWN = [*CASES, *(replace(case, name=f"{case.name}, again") for case in DISTRIBUTIONS)]

# What rows do beside each other is the same for every base of a calibrator.
ONE_BASE_EACH = [case for case in CASES if getattr(case, "base", "normal") in ("", "normal")]


@pytest.fixture
def drawn(case, request):
    """Return a seed and a unit of y: each law draws its own for each case.

    Units go from pico to tera, with a shift of up to a hundred of them.
    """
    number = zlib.crc32(f"{request.function.__name__} of {case.name}".encode())
    if isinstance(case, CalibratedCase):
        fits = fits_of(case)
        return fits[number % len(fits)]
    rng = np.random.default_rng(number)
    scale = 10.0 ** rng.uniform(-12, 12)
    return int(rng.integers(10**6)), Unit(scale, scale * rng.uniform(-100, 100))


@pytest.fixture
def dist(case, drawn):
    """Return distributions of a case."""
    return case.make(*drawn)


def grid_of(dist):
    """Return points from far below to far above each row, through its quantiles."""
    middle, spread = dist.ppf([[0.5]]), spread_of(dist)
    far = spread * np.array([30.0, 10.0, 3.0])
    inner = dist.ppf(LEVELS)
    return np.sort(np.concatenate([middle - far, inner, middle + far], axis=1), axis=1)


def spread_of(dist):
    """Return the interquartile range of each row as a column."""
    return np.diff(dist.ppf([[0.25, 0.75]]))


def rounding_of(points):
    """Return a few spacings of floating-point numbers as large as a row's points."""
    return 16 * np.spacing(np.abs(points).max(axis=1, keepdims=True))


def panels_of(dist):
    """Return fine panels of each row: its quantiles and the points where the density jumps."""
    edges = dist.from_probit(np.linspace(-9.0, 9.0, 37)[np.newaxis, :])
    edges = np.concatenate([edges, dist._panel_edges()], axis=1)
    kinks = dist._kinks()
    if kinks is not None:
        kinks = np.broadcast_to(kinks, (len(dist), kinks.shape[1]))
        kinks = np.clip(kinks, edges.min(axis=1)[:, None], edges.max(axis=1)[:, None])
        edges = np.concatenate([edges, kinks], axis=1)
    return np.sort(edges, axis=1)


def integral(function, edges):
    """Integrate over the panels of each row."""
    half = 0.5 * np.diff(edges)[:, :, np.newaxis]
    points = edges[:, :-1, np.newaxis] + half * (1 + NODES)
    values = function(points.reshape(len(edges), -1)).reshape(points.shape)
    return (half * values * WEIGHTS).sum(axis=(1, 2))


# ------------------------------------------------------------------------------- probabilities


@over(DRAWN)
def test_cdf_never_decreases(dist):
    """A larger threshold never has a smaller probability below it."""
    grid = grid_of(dist)

    for method, direction in (("cdf", 1), ("logcdf", 1), ("sf", -1), ("logsf", -1)):
        values = getattr(dist, method)(grid)
        with np.errstate(invalid="ignore"):  # -inf - -inf, where a tail is empty
            steps = direction * np.diff(values)
        assert (steps[~np.isnan(steps)] >= -1e-13).all(), method
        assert (values <= (1 if "log" not in method else 0)).all(), method


@over(DRAWN)
def test_limits_at_infinity(dist):
    """All of the probability lies between minus and plus infinity."""
    ends = np.array([[-np.inf, np.inf]])
    wanted = {"cdf": [0, 1], "sf": [1, 0], "logcdf": [-np.inf, 0], "logsf": [0, -np.inf]}
    wanted |= {"pdf": [0, 0], "logpdf": [-np.inf, -np.inf], "probit": [-np.inf, np.inf]}

    for method, values in wanted.items():
        assert_allclose(
            getattr(dist, method)(ends), np.tile(values, (len(dist), 1)), atol=1e-15, err_msg=method
        )


@over(DRAWN)
def test_tails_are_complementary(dist):
    """P(Y > t) = 1 - P(Y <= t), and the logs are their logs."""
    grid = dist.ppf(LEVELS)
    cdf, sf = dist.cdf(grid), dist.sf(grid)

    assert_allclose(cdf + sf, 1.0, rtol=1e-13)
    assert_allclose(dist.logcdf(grid), np.log(cdf), rtol=1e-9, atol=1e-14)
    assert_allclose(dist.logsf(grid), np.log(sf), rtol=1e-9, atol=1e-14)
    assert_allclose(ndtr(dist.probit(grid)), cdf, rtol=1e-9)


@over(DRAWN)
def test_sides_and_density_at_once_are_those_asked_one_by_one(dist):
    """What averages search with is what they answer with, at kinks and near the ends too."""
    grid = np.concatenate([dist.ppf(LEVELS), grid_of(dist)], axis=1)
    told = dist._sides_and_density(grid)

    for values, method in zip(told, ("cdf", "sf", "pdf"), strict=True):
        assert_allclose(values, getattr(dist, method)(grid), rtol=1e-9, err_msg=method)
    z, logslope = dist._probit_and_logslope(grid)
    assert_allclose(z, dist.probit(grid), rtol=1e-9, atol=1e-12)
    assert_allclose(logslope, dist.logslope(grid), rtol=1e-9, atol=1e-12)


@over([case for case in DRAWN if case.everywhere and case.exact_tails])
def test_tails_thirty_deviations_out(case, dist):
    """Far out, log tails are finite and fall at the rate that the density says."""
    far = case.reach * spread_of(dist)
    low, high = dist.ppf([[1e-3]]), dist.ppf([[0.999]])
    points, step = np.concatenate([low - far, high + far], axis=1), 1e-4 * spread_of(dist)

    logpdf = dist.logpdf(points)
    assert np.isfinite(logpdf).all()
    assert np.isfinite(dist.logslope(points)).all()
    for method, side, sign in (("logcdf", 0, 1), ("logsf", 1, -1)):
        tail = getattr(dist, method)
        rate = sign * (tail(points + step) - tail(points - step)) / (2 * step)
        assert_allclose(
            np.log(rate[:, side]),
            logpdf[:, side] - tail(points)[:, side],
            atol=2e-3,
            err_msg=method,
        )


@over(DRAWN)
def test_prob_is_a_difference_of_cdf(dist):
    """P(a < Y <= b) adds up to one and is not lost in the upper tail."""
    grid = np.concatenate([[[-np.inf]] * len(dist), grid_of(dist), [[np.inf]] * len(dist)], axis=1)
    masses = dist.prob(grid[:, :-1], grid[:, 1:])

    assert (masses >= 0).all()
    assert_allclose(masses.sum(axis=1), 1.0, rtol=1e-12)
    assert_allclose(masses, np.diff(dist.cdf(grid)), atol=1e-13)
    assert_allclose(masses, -np.diff(dist.sf(grid)), atol=1e-13)


# -------------------------------------------------------------------------------------- density


@over(DRAWN)
def test_density_is_the_derivative_of_the_cdf(case, dist):
    """The probability of a short interval is its length times the density."""
    levels = np.array([[0.0113, 0.1234, 0.3456, 0.5678, 0.7891, 0.9123, 0.9987]])
    points, step = dist.ppf(levels), 2e-6 * spread_of(dist)
    low, high = points - step, points + step
    slope = dist.prob(low, high) / (high - low)

    assert_allclose(dist.pdf(points), slope, rtol=case.precision)
    assert_allclose(dist.logpdf(points), np.log(dist.pdf(points)), rtol=1e-9, atol=1e-12)


@over(DRAWN)
def test_density_integrates_to_one(dist):
    """The density holds all of the probability."""
    assert_allclose(integral(dist.pdf, panels_of(dist)), 1.0, atol=1e-6)


@over(CALIBRATED)
def test_calibration_leaves_no_hole(case, drawn):
    """Where the base density is positive, the calibrated one is."""
    seed, unit = drawn
    base, dist = case.make_base(seed, unit, 12), case.make(seed, unit, 12)
    reach = unit.scale * np.concatenate([np.linspace(-12, 15, 217), [-40, -25, 25, 40]])
    grid = base.ppf([[0.5]]) + reach
    possible = np.isfinite(base.logpdf(grid))

    assert np.isfinite(dist.logpdf(grid)[possible]).all()


# ------------------------------------------------------------------------- quantiles and moments


@over(DRAWN)
def test_ppf_inverts_cdf(dist):
    """The quantile of a probability has that probability below it, and quantiles never cross."""
    quantiles = dist.ppf(LEVELS)
    gap = rounding_of(quantiles)

    assert (dist.cdf(quantiles - gap) <= LEVELS * (1 + 1e-9)).all()
    assert (dist.cdf(quantiles + gap) >= LEVELS * (1 - 1e-9)).all()
    assert (np.diff(quantiles) > -gap).all()
    inner = dist.ppf(INNER_LEVELS)
    assert_allclose(dist.cdf(inner), np.broadcast_to(INNER_LEVELS, inner.shape), rtol=1e-8)
    assert (np.diff(inner) > 0).all()
    low, high = dist.interval(0.8)
    assert_array_equal(low, dist.ppf(0.5 - 0.8 / 2))
    assert_array_equal(high, dist.ppf(0.5 + 0.8 / 2))
    assert_array_equal(dist.median(), dist.ppf(0.5))


@over(DRAWN)
def test_extreme_quantiles_enclose_everything(dist):
    """The quantiles at 0 and 1 are the ends of the support."""
    ends = dist.ppf([[0.0, 1.0]])

    assert not np.isnan(ends).any()
    assert_allclose(dist.cdf(ends), np.tile([0.0, 1.0], (len(dist), 1)), atol=1e-13)


@over([case for case in DRAWN if case.exact_tails])
def test_from_probit_inverts_probit(dist):
    """Quantiles are exact in both tails when asked on the probit scale."""
    wanted = np.array([[-11.0, -7.5, -2.0, -0.3, 0.0, 1.2, 4.0, 8.5, 11.0]])
    points = dist.from_probit(wanted)
    gap = rounding_of(points)

    assert (np.diff(points) > -gap).all()
    assert (dist.probit(points - gap) <= wanted + 1e-8).all()
    assert (dist.probit(points + gap) >= wanted - 1e-8).all()
    inner = dist.from_probit(wanted[:, 2:7])
    assert_allclose(dist.probit(inner), np.tile(wanted[:, 2:7], (len(dist), 1)), atol=1e-8)


@over([case for case in DISTRIBUTIONS if case.exact_tails])
def test_isf_inverts_sf(dist):
    """The point of a probability has it above, also where 1 - probability is rounded to 1."""
    shares = np.array([[1e-25, 1e-9, 0.02, 0.5, 0.9]])
    points = dist.isf(shares)
    gap = rounding_of(points)

    assert (dist.logsf(points - gap) >= np.log(shares) - 1e-8).all()
    assert (dist.logsf(points + gap) <= np.log(shares) + 1e-8).all()
    assert_array_equal(dist.isf(0.02), points[:, 2])
    assert_array_equal(dist.isf([[0.0, 1.0]]), dist.from_probit([[np.inf, -np.inf]]))


@over(DRAWN)
def test_moments_agree_with_the_density(dist):
    """Mean and variance are the integrals of y and y^2 under the density."""
    middle, edges = dist.ppf([[0.5]]), panels_of(dist)

    shift = integral(lambda points: (points - middle) * dist.pdf(points), edges)
    square = integral(lambda points: (points - middle) ** 2 * dist.pdf(points), edges)
    spread = spread_of(dist)[:, 0]
    assert_allclose((dist.mean() - middle[:, 0] - shift) / spread, 0.0, atol=1e-5)
    assert_allclose(dist.var() / spread**2, (square - shift**2) / spread**2, rtol=1e-4)
    assert_allclose(dist.std() ** 2, dist.var())


@over(CASES)
def test_samples_follow_the_cdf(case):
    """Draws have uniform probabilities below them, and the same seed gives the same draws."""
    dist = case.make(seed=1)
    draws = dist.sample(500, random_state=3)

    assert draws.shape == (len(dist), 500)
    for row in dist.cdf(draws):
        assert scipy.stats.kstest(row, "uniform").pvalue > 1e-4
    assert_array_equal(draws, dist.sample(500, random_state=np.random.default_rng(3)))


@over(DRAWN)
def test_crps_is_the_squared_distance_to_the_outcome(dist):
    """The score is the integral of (cdf - step)^2, for outcomes inside and far outside."""
    spread, middle = spread_of(dist), dist.ppf([[0.5]])
    panels = panels_of(dist)
    for shift in (-40.0, 0.3, 25.0):
        y = middle + shift * spread
        edges = np.sort(np.concatenate([panels, y], axis=1), axis=1)

        def squared(points, y=y):
            return np.where(points < y, dist.cdf(points), dist.sf(points)) ** 2

        wanted = integral(squared, edges) / spread[:, 0]
        assert_allclose(regcal.crps(y[:, 0], dist) / spread[:, 0], wanted, rtol=1e-5)


# ---------------------------------------------------------------------------- shapes and slices


def assert_same(found, wanted, message=""):
    """Check numbers up to rounding, which may differ between arrays of different shapes.

    Processors work on several elements at once, and on those that are left over in another way.
    """
    assert_allclose(found, wanted, rtol=1e-10, atol=1e-13, err_msg=message)


@over(ONE_BASE_EACH)
def test_points_follow_one_rule(case):
    """A scalar, a column, a matrix and a shared grid give the same numbers."""
    dist = case.make(seed=1)
    grid = np.array([-0.5, 1.1])
    everywhere = np.tile(grid, (len(dist), 1))

    for method in METHODS:
        evaluate = getattr(dist, method)
        values = evaluate(everywhere)
        assert values.shape == (len(dist), 2)
        assert values.flags.writeable
        assert_same(evaluate(grid[np.newaxis, :]), values)
        for k, point in enumerate(grid):
            assert_same(evaluate(point), values[:, k])
            assert_same(evaluate(np.full(len(dist), point)), values[:, k])
            assert_same(evaluate([point] * len(dist)), values[:, k])


SLICES = [2, -1, slice(1, 3), slice(None, None, -1), [3, 0, 0], np.array([True, False, True, True])]


@over(ONE_BASE_EACH)
def test_slicing_commutes_with_every_method(case):
    """A slice of the answers is the answer of the slice."""
    dist = case.make(seed=1)
    grid = dist.ppf(LEVELS[:, ::4])
    y = grid[:, 3]
    wanted = {method: getattr(dist, method)(grid) for method in METHODS}
    levels = np.tile(LEVELS, (len(dist), 1))
    wanted |= {"ppf": dist.ppf(levels), "median": dist.median(), "prob": dist.prob(y - 1, y)}
    wanted |= {"mean": dist.mean(), "var": dist.var(), "crps": dist.crps(y)}

    for key in SLICES:
        rows = np.atleast_1d(np.arange(len(dist))[key])
        part = dist[key]
        assert len(part) == len(rows)
        found = {method: getattr(part, method)(grid[rows]) for method in METHODS}
        found |= {"ppf": part.ppf(levels[rows]), "median": part.median()}
        found["prob"] = part.prob(y[rows] - 1, y[rows])
        if len(rows) == 3:
            found |= {"mean": part.mean(), "var": part.var(), "crps": part.crps(y[rows])}
        for method, values in found.items():
            assert_same(values, wanted[method][rows], f"{method}, {key}")


@over(CASES)
def test_an_empty_slice_gives_empty_answers(case):
    """No rows are no error: a filter may leave none."""
    dist = case.make(seed=1)[[]]

    assert len(dist) == 0
    for method in METHODS:
        assert getattr(dist, method)(0.3).shape == (0,)
        assert getattr(dist, method)([[0.3, 0.4]]).shape == (0, 2)
    for method in ("mean", "var", "median"):
        assert getattr(dist, method)().shape == (0,)
    assert dist.crps(np.zeros(0)).shape == (0,)
    assert dist.sample(3, random_state=0).shape == (0, 3)


@over(ONE_BASE_EACH)
def test_blocks_do_not_change_the_numbers(case, monkeypatch):
    """Evaluation row by row, as a small memory budget has it, gives the same."""
    dist, same = case.make(seed=1), case.make(seed=1)
    grid = dist.ppf(LEVELS[:, ::5])
    y = grid[:, 1]

    def answers(dist):
        values = [getattr(dist, method)(grid) for method in METHODS]
        return [*values, dist.ppf(LEVELS), dist.mean(), dist.var(), dist.crps(y)]

    whole = answers(dist)
    monkeypatch.setattr(distributions_base, "BLOCK_ELEMENTS", 1)

    for in_blocks, at_once in zip(answers(same), whole, strict=True):
        assert_same(in_blocks, at_once)


@over([case for case in CASES if not case.name.endswith(("custom", "without sf", "cdf only"))])
def test_distributions_can_be_pickled(case):
    """A batch comes back from another process as it was; functions of the user need not."""
    dist = case.make(seed=1)
    grid = dist.ppf(LEVELS)

    assert_array_equal(pickle.loads(pickle.dumps(dist)).logpdf(grid), dist.logpdf(grid))


# ---------------------------------------------------------------------------------------- units


@over(DRAWN)
def test_units_do_not_matter(case, drawn):
    """The same rows in another unit have the same probabilities and the transformed quantiles."""
    for seed, unit in fits_of(case) if isinstance(case, CalibratedCase) else [drawn]:
        assert_same_in_units(case, case.make(seed), case.make(seed, unit), unit)


def assert_same_in_units(case, dist, other, unit):
    """Check that distributions are the same but for the unit."""
    levels = LEVELS if case.everywhere else INNER_LEVELS
    points = dist.ppf(levels)
    spread = spread_of(dist)
    rtol = 1e-6 if case.exact_tails else 1e-3

    quantiles = (other.ppf(levels) - unit.shift) / unit.scale
    assert_allclose(quantiles / spread, points / spread, rtol=1e-5, atol=1e-5)
    assert_allclose(other.cdf(unit(points)), dist.cdf(points), rtol=1e-6)
    assert_allclose(other.sf(unit(points)), dist.sf(points), rtol=rtol)
    interior = dist.ppf([[0.0113, 0.1234, 0.3456, 0.5678, 0.7891, 0.9123]])
    assert_allclose(
        other.logpdf(unit(interior)) + np.log(unit.scale), dist.logpdf(interior), atol=1e-5
    )
    assert_allclose((other.mean() - unit.shift) / unit.scale, dist.mean(), rtol=1e-5, atol=1e-5)
    assert_allclose(other.std() / unit.scale, dist.std(), rtol=1e-5)


# ---------------------------------------------------------------------------------- side effects


@over([case for case in CALIBRATED if case.base in FEW_BASES])
def test_fit_and_transform_leave_the_process_alone(case):
    """Random state, error state and warning filters are as before, and results repeat."""
    dist = case.make_base(0, STANDARD, 30)
    y = dist.ppf(np.linspace(0.05, 0.7, 30))
    np.random.seed(5)  # noqa: NPY002
    before = (np.random.get_state()[1].tolist(), np.geterr(), list(warnings.filters))  # noqa: NPY002

    first = CALIBRATORS[case.calibrator]().fit(dist, y).transform(dist).logpdf(y)
    second = CALIBRATORS[case.calibrator]().fit(dist, y).transform(dist).logpdf(y)

    after = (np.random.get_state()[1].tolist(), np.geterr(), list(warnings.filters))  # noqa: NPY002
    assert before == after
    assert_array_equal(first, second)
