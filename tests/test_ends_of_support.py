"""Ends of the support are ordinary places, in every bounded family and through every calibrator."""

import cases
import numpy as np
import pytest
import scipy.stats
from numpy.testing import assert_allclose, assert_array_equal

import regcal


def scipy_family(family, *shapes):
    """Return a builder of rows of a family, all of which start at the unit's 0."""

    def build(n_rows, unit):
        scale = unit.scale * np.linspace(0.5, 2.0, n_rows)
        return regcal.ScipyDistribution(family(*shapes, loc=unit(np.zeros(n_rows)), scale=scale))

    return build


def uniform_histogram(n_rows, unit):
    masses = np.tile([0.25, 0.5, 0.25], (n_rows, 1))
    return regcal.Histogram(unit(np.array([0.0, 0.5, 1.5, 2.0])), masses)


def bounded_mixture(n_rows, unit):
    parts = [scipy_family(scipy.stats.uniform), scipy_family(scipy.stats.triang, 0.3)]
    return regcal.Mixture([part(n_rows, unit) for part in parts])


FAMILIES = {
    "uniform": scipy_family(scipy.stats.uniform),
    "beta": scipy_family(scipy.stats.beta, 2.0, 3.0),
    "beta with poles": scipy_family(scipy.stats.beta, 0.5, 0.7),
    "triangular": scipy_family(scipy.stats.triang, 0.3),
    "exponential": scipy_family(scipy.stats.expon),
    "gamma": scipy_family(scipy.stats.gamma, 2.0),
    "truncated normal": scipy_family(scipy.stats.truncnorm, -1.0, 2.0),
    "half truncated normal": scipy_family(scipy.stats.truncnorm, -1.0, np.inf),
    "histogram": uniform_histogram,
}
BUILDERS = FAMILIES | {"mixture": bounded_mixture}


def fitted(name, family, n_rows, unit=cases.STANDARD):
    """Return some rows of a bounded base, and the same calibrated."""
    base = BUILDERS[family](n_rows, unit)
    y = base.ppf(np.random.default_rng(n_rows).beta(2.0, 3.0, size=n_rows))
    some = base[:3]
    return some, cases.CALIBRATORS[name]().fit(base, y).transform(some)


def assert_ends_are_exact(dist, start, end, gap):
    """Check that nothing is below the start or above the end, at them and beyond them."""
    below = {"cdf": 0.0, "sf": 1.0, "logcdf": -np.inf, "logsf": 0.0, "probit": -np.inf}
    above = {"cdf": 1.0, "sf": 0.0, "logcdf": 0.0, "logsf": -np.inf, "probit": np.inf}
    for wanted, places in (below, (start, start - gap)), (above, (end, end + gap)):
        for points in places:
            for method, value in wanted.items():
                assert_array_equal(getattr(dist, method)(points), value, err_msg=method)


# Two outcomes are the fewest that thresholds can be put between.
FROM_ONE_ROW = {"identity", "scale", "pit", "auto"}

# What takes a while, and needs outcomes that differ, meets some of the families.
SLOW = {
    "gpc": [("uniform", 30), ("triangular", 30), ("exponential", 5), ("histogram", 2)],
    "gp-density": [("uniform", 2), ("beta with poles", 5), ("gamma", 30), ("histogram", 30)],
    "gpc-paper": [("truncated normal", 5), ("histogram", 2), ("exponential", 30)],
}
FITS = [(name, *pair) for name, pairs in SLOW.items() for pair in pairs]
FITS += [(name, "mixture", 30) for name in ("identity", "scale", "e-beta", "e-beta uniform")]
FITS += [
    (name, family, n_rows)
    for name in regcal.calibrator_names()
    if name not in SLOW
    for family in FAMILIES
    for n_rows in ((1, 30) if name in FROM_ONE_ROW else (2, 30))
]
# A variant differs from its calibrator in one respect.
FITS += [
    (name, family, 30)
    for name in cases.VARIANTS
    for family in ("beta with poles", "exponential", "histogram")
]


@pytest.mark.parametrize(("name", "family", "n_rows"), FITS)
def test_ends_stay_ends(name, family, n_rows):
    """Through every calibrator, nothing is beyond the ends, and all answers are numbers."""
    base, dist = fitted(name, family, n_rows)
    start, end = base.ppf(0.0), base.ppf(1.0)

    assert_ends_are_exact(dist, start, end, 1.0)
    assert_array_equal(dist.ppf(0.0), start)
    assert_array_equal(dist.ppf(1.0), end)
    levels = np.array([[1e-9, 0.001, 0.01, 0.5, 0.99, 0.999]])
    quantiles = dist.ppf(levels)
    assert_allclose(dist.cdf(quantiles), np.tile(levels, (len(dist), 1)), rtol=1e-6)
    assert_allclose(dist.sf(quantiles), np.tile(1 - levels, (len(dist), 1)), rtol=1e-6)
    mean = dist.mean()
    assert ((start < mean) & (mean < end)).all()
    assert np.isfinite(dist.crps(start)).all()


def test_sums_of_masses_are_a_whole(rng):
    """Masses and weights that sum to 1 but for a digit leave nothing out at the ends."""
    masses = rng.dirichlet(np.ones(9), 20)
    histogram = regcal.Histogram(np.arange(10.0), masses)
    mixture = regcal.Mixture([histogram] * 7, rng.dirichlet(np.ones(7), 20))

    for dist in (histogram, mixture):
        assert_ends_are_exact(dist, np.zeros(20), np.full(20, 9.0), 1.0)


UNITS = [cases.Unit(1e-12), cases.Unit(1e12), cases.Unit(1.0, 1e9)]


@pytest.mark.parametrize("unit", UNITS, ids=str)
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("name", ["identity", "scale", "pit", "e-beta", "e-beta uniform"])
def test_ends_stay_ends_in_any_unit(name, family, unit):
    """From pico to tera, and a thousand million away from 0."""
    base, dist = fitted(name, family, 5, unit)
    _, standard = fitted(name, family, 5)
    levels = np.array([[0.01, 0.3, 0.7, 0.99]])

    assert_ends_are_exact(dist, base.ppf(0.0), base.ppf(1.0), unit.scale)
    found = (dist.ppf(levels) - unit.shift) / unit.scale
    assert_allclose(found, standard.ppf(levels), rtol=1e-4, atol=2e-6)


@pytest.mark.parametrize("name", ["scale", "pit", "gpc", "gp-density", "e-beta", "e-isotonic"])
@pytest.mark.parametrize("family", ["exponential", "histogram"])
def test_outcomes_at_an_end_do_not_rule_the_score(name, family):
    """Two per cent of outcomes exactly at the end change a mean log score by little."""
    base = FAMILIES[family](100, cases.STANDARD)
    y = base.ppf(np.random.default_rng(4).beta(2.0, 3.0, size=100))
    dist = cases.CALIBRATORS[name]().fit(base, y).transform(base)
    inside = regcal.log_score(y, dist).mean()
    y[[20, 70]] = 0.0

    assert abs(regcal.log_score(y, dist).mean() - inside) < 0.3


def test_density_at_an_end_follows_the_stated_rule():
    """It is changed as where a normal distribution of the row's spread has that density."""
    base = regcal.ScipyDistribution(scipy.stats.uniform([0.0], [1.0]))
    dist = regcal.distributions.Transformed(base, regcal.maps.ScaleMap(2.0))
    spread = 0.5 * (scipy.stats.norm.cdf(1.0) - scipy.stats.norm.cdf(-1.0))
    z = np.sqrt(-2.0 * np.log(spread * np.sqrt(2 * np.pi)))
    wanted = scipy.stats.norm.pdf(z / 2) / 2 / scipy.stats.norm.pdf(z)

    assert_allclose(dist.pdf([[0.0, 1.0]]), wanted)
    assert_array_equal(dist.pdf([[-0.1, 1.1]]), 0.0)


def test_a_lost_tail_is_changed_far_out():
    """A CDF that is 0 by rounding, where the density is not, still is a far tail."""
    base = regcal.CustomDistribution(
        lambda t, rows: scipy.stats.norm.cdf(t), 1, pdf=lambda t, rows: scipy.stats.norm.pdf(t)
    )
    dist = regcal.distributions.Transformed(base, regcal.maps.ScaleMap(2.0))
    point = -38.45  # the CDF is 0 there, the density 1e-321

    assert base.cdf(point) == 0
    assert_allclose(dist.logpdf(point), scipy.stats.norm(0, 2).logpdf(point), atol=1.0)


def test_an_infinite_end_is_an_end():
    """A family that is truncated on one side only is taken."""
    dist = regcal.ScipyDistribution(scipy.stats.truncnorm(-1.0, np.inf, loc=[0.0], scale=[2.0]))

    assert_array_equal(dist.ppf([[0.0, 1.0]]), [[-2.0, np.inf]])
    with pytest.raises(ValueError, match="loc and scale finite"):
        regcal.ScipyDistribution(scipy.stats.norm(np.inf, 1.0))


def test_quantiles_next_to_an_end_take_no_search(monkeypatch):
    """What a float cannot tell from the end of the support is the end."""
    base = regcal.ScipyDistribution(scipy.stats.expon(0.0, [1.0, 3.0]))
    calls = []
    own = regcal.ScipyDistribution._logcdf
    monkeypatch.setattr(
        regcal.ScipyDistribution, "_logcdf", lambda *args: calls.append(1) or own(*args)
    )

    assert_array_equal(base.from_probit([[-60.0, -45.0]]), 0.0)
    assert len(calls) <= 2


# --------------------------------------------------------------------------------------- valleys


def two_modes(n_rows, kind):
    if kind == "mixture":
        parts = [regcal.Normal(np.full(n_rows, m), np.full(n_rows, 0.05)) for m in (0.0, 2.0)]
        return regcal.Mixture(parts)
    if kind == "samples":
        return regcal.Samples(np.tile([-0.05, 0.0, 0.05, 1.95, 2.0, 2.05], (n_rows, 1)), 0.05)
    half = scipy.stats.norm

    def cdf(t, rows):
        return 0.5 * (half.cdf(t / 0.05) + half.cdf((t - 2.0) / 0.05))

    def pdf(t, rows):
        return 10.0 * (half.pdf(t / 0.05) + half.pdf((t - 2.0) / 0.05))

    return regcal.CustomDistribution(cdf, n_rows, pdf=pdf)


@pytest.mark.parametrize("kind", ["mixture", "samples", "custom"])
@pytest.mark.parametrize("name", ["e-beta", "e-isotonic", "e-logistic"])
def test_a_valley_keeps_its_mass(name, kind):
    """Between two modes the calibrated density is as deep as the base's, not a hole."""
    base = two_modes(40, kind)
    rng = np.random.default_rng(0)
    y = np.where(rng.random(40) < 0.5, 0.0, 2.0) + 0.05 * rng.normal(size=40)
    dist = regcal.get_calibrator(name).fit(base, y).transform(base[:2])
    grid = np.linspace(0.3, 1.7, 15)[np.newaxis, :]

    assert (dist.logpdf(grid) > base[:2].logpdf(grid) - 10.0).all()


@pytest.mark.parametrize("kind", ["mixture", "samples", "custom"])
def test_mass_moved_into_a_valley_is_consistent(kind):
    """Where outcomes are in the valley, CDF, density and quantiles there agree."""
    base = two_modes(1, kind)
    inner = np.array([0.5, 1.5])
    dist = regcal.distributions.Segmented(base, inner, lambda _, log_p: np.log([[0.3, 0.4, 0.3]]))
    levels = np.array([[0.31, 0.4, 0.5, 0.6, 0.69]])
    points = dist.ppf(levels)
    low, high = points[:, :-1], points[:, 1:]

    assert ((points > 0.5) & (points < 1.5)).all()
    assert_allclose(dist.cdf(points), levels, rtol=1e-6)
    assert_allclose(dist.cdf(points) + dist.sf(points), 1.0, rtol=1e-12)
    assert (dist.prob(low, high) > 0.08).all()


def test_a_mixture_knows_the_mass_between_its_components():
    """The mass of a valley agrees with the closed form, where differences of CDFs are 0."""
    dist = two_modes(1, "mixture")
    normal = scipy.stats.norm
    wanted = np.log(normal.sf(15.0) - normal.sf(22.0))  # of either component

    found = dist._log_mass_between(np.array([[0.75]]), np.array([[1.1]]))

    other = np.log(0.5) + np.log(normal.sf(18.0))
    assert_allclose(found, np.logaddexp(wanted + np.log(0.5), other), rtol=1e-9)


# ----------------------------------------------------------------------------------- far numbers


def test_far_out_a_segment_is_a_whole():
    """Thresholds up to 1e8 leave P(Y <= t) + P(Y > t) = 1, down to the last float."""
    base = regcal.Normal(np.linspace(-1.0, 1.0, 10), np.ones(10))
    y = np.linspace(-1.5, 1.5, 10)
    thresholds = np.linspace(-1.4, 1e8, 16)
    fitted_one = regcal.get_calibrator("e-beta", thresholds=thresholds).fit(base, y)
    dist = fitted_one.transform(base)
    near = np.concatenate([fitted_one.thresholds_ * (1 + k * 2.0**-52) for k in range(-5, 6)])

    assert_allclose(dist.cdf(near[np.newaxis]) + dist.sf(near[np.newaxis]), 1.0, rtol=1e-12)


@pytest.mark.parametrize("size", [1e7, 1e9])
def test_log_density_keeps_its_digits_far_out(size):
    """A base that is far too narrow, scaled, has the closed form's density."""
    base = regcal.Normal(np.zeros(20), np.ones(20))
    y = size * np.linspace(-1.7, 1.3, 20)
    scale = regcal.get_calibrator("scale").fit(base, y)
    wanted = scipy.stats.norm(0.0, scale.factor_).logpdf(y)

    assert_allclose(scale.transform(base).logpdf(y), wanted, atol=1e-9)


@pytest.mark.parametrize("spread", [1.0, 1e-3])
def test_custom_density_at_an_offset(spread):
    """Differences of a CDF at 1e9 are over floats that differ."""
    dist = regcal.CustomDistribution(lambda t, rows: scipy.stats.norm.cdf((t - 1e9) / spread), 1)

    wanted = scipy.stats.norm(0.0, spread).pdf([[0.0, spread]])
    assert_allclose(dist.pdf(1e9 + np.array([[0.0, spread]])), wanted, rtol=1e-3)


@pytest.mark.parametrize("name", ["pit", "isotonic", "e-beta", "gpc", "gp-density", "auto"])
@pytest.mark.parametrize("share", [0.92, 0.5])
@pytest.mark.parametrize("step", [1, None])
def test_two_values_that_are_both_ends_have_their_shares(name, share, step, rng, tmp_path):
    """Of zeros and ones nothing is seen but on which side they are, told of a step or not.

    And so from a file.
    """
    y = (rng.random(400) < share).astype(float)
    dist = regcal.Normal(np.full(400, share) + 0.05 * rng.normal(size=400), 0.4)

    fitted = regcal.get_calibrator(name, support=(0, 1), step=step).fit(dist, y)
    regcal.save(fitted, tmp_path / "fitted.regcal")
    new = regcal.load(tmp_path / "fitted.regcal").transform(dist)

    assert_allclose(new.mass(0.0).mean(), 1.0 - y.mean(), atol=0.05)
    assert_allclose(new.mass(1.0).mean(), y.mean(), atol=0.05)


@pytest.mark.filterwarnings("ignore::regcal.RoundedOutcomesWarning")
@pytest.mark.parametrize("step", [1, None])
def test_parts_see_counts_as_they_do_alone(step, rng):
    """A method says the same inside of others; rounded outcomes at an end are that end to both."""
    dist = regcal.Normal(0.4 + 0.1 * rng.normal(size=300), 0.6)
    y = rng.poisson(dist.loc).astype(float)
    points = np.array([[0.0, 0.5, 1.5, 2.5]])
    alone = regcal.get_calibrator("pit", step=step).fit(dist, y).transform(dist).cdf(points)

    pit = regcal.PITCalibrator()
    around = {
        "auto": regcal.AutoCalibrator(candidates=[("pit", pit)], step=step),
        "stack": regcal.StackCalibrator([("one", pit), ("two", pit)], [0.5, 0.5], step=step),
        "conditional": regcal.ConditionalCalibrator(
            calibrator=pit, with_prediction=False, step=step
        ),
    }
    for name, cal in around.items():
        found = cal.fit(dist, y).transform(dist).cdf(points)
        assert_allclose(found, alone, atol=1e-6, err_msg=name)
