"""Scale and PIT calibration, mapped and stacked distributions."""

import numpy as np
import pytest
import scipy.stats
from numpy.testing import assert_allclose
from scipy.integrate import quad

from regcal import (
    Normal,
    PITCalibrator,
    Quantiles,
    Samples,
    ScaleCalibrator,
    ScipyDistribution,
    concatenate,
    get_calibrator,
    log_score,
)
from regcal.distributions import Transformed
from regcal.maps import PiecewiseMap, ScaleMap

BASELINES = {
    "scale": ScaleCalibrator(),
    "pit": PITCalibrator(),
    "pit-steps": PITCalibrator(smooth=False),
}
MAPS = {
    "scale": ScaleMap(2.5),
    "smooth": PiecewiseMap.with_slopes(np.array([-1.0, 0.2, 2.0]), np.array([0.8, 3.0, 0.6]), -2.0),
    "straight pieces": PiecewiseMap.through(np.array([-1.0, 0.0, 0.1]), np.array([-2.0, 0.5, 1.0])),
}


@pytest.fixture(params=list(BASELINES))
def calibrator(request):
    return BASELINES[request.param]


@pytest.fixture(params=list(MAPS))
def probit_map(request):
    return MAPS[request.param]


def bases(rng, n_rows):
    gamma = scipy.stats.gamma(a=rng.uniform(1.5, 4, n_rows), scale=2.0)
    return {
        "normal": Normal(rng.normal(size=n_rows), rng.uniform(0.5, 2, n_rows)),
        "gamma": ScipyDistribution(gamma),
        "samples": Samples(rng.normal(size=(n_rows, 9))),
        "stacked": concatenate(
            [
                Normal(rng.normal(size=n_rows - 3), 1.0),
                Quantiles([0.1, 0.5, 0.9], np.sort(rng.normal(size=(3, 3)), axis=1)),
            ]
        ),
    }


@pytest.fixture(params=["normal", "gamma", "samples", "stacked"])
def base(request, rng):
    return bases(rng, 8)[request.param]


# -------------------------------------------------------------------------------------------- maps


def test_inverse_of_a_map(probit_map):
    """Inverting a map gives back the values, far outside of its knots too."""
    z = np.array([[-500.0, -30.0, -1.0, -0.4, 0.0, 0.05, 0.1, 1.3, 2.0, 40.0, 500.0]])

    assert_allclose(probit_map.inverse(probit_map(z)), z, rtol=1e-12, atol=1e-12)


def test_slope_of_a_map(probit_map):
    """The log derivative is that of the map."""
    z = np.linspace(-5, 5, 41)[np.newaxis, :] + 0.03

    slope = (probit_map(z + 1e-6) - probit_map(z - 1e-6)) / 2e-6

    assert_allclose(probit_map.image_and_slope(z)[1], slope, rtol=1e-4)


def test_infinite_values_stay_infinite(probit_map):
    """The limits of a CDF remain exact."""
    ends = np.array([[-np.inf, np.inf]])

    assert_allclose(probit_map(ends), ends)
    assert_allclose(probit_map.inverse(ends), ends)


# --------------------------------------------------------------------------- laws of distributions


def test_mapped_distributions_obey_the_laws(base, probit_map):
    """CDF and survival add up, ppf inverts cdf, the density integrates to the mass between."""
    dist = Transformed(base, probit_map)
    levels = np.array([[1e-6, 0.05, 0.3, 0.5, 0.9, 0.999]])
    points = dist.ppf(levels)

    assert_allclose(dist.cdf(points), np.broadcast_to(levels, points.shape), rtol=1e-7)
    assert_allclose(dist.cdf(points) + dist.sf(points), 1.0)
    assert_allclose(dist.cdf([[-np.inf, np.inf]]), np.tile([0.0, 1.0], (len(dist), 1)))
    for row in (0, len(dist) - 1):
        one = dist[row]
        kinks = (
            base[row].from_probit(probit_map.knots[np.newaxis, :])[0]
            if len(probit_map.knots)
            else []
        )
        low, high = points[row, 1], points[row, 4]
        inner = [k for k in kinks if low < k < high]
        mass = quad(lambda t, one=one: one.pdf(t)[0], low, high, points=inner or None, limit=200)[0]
        assert_allclose(mass, 0.85, atol=1e-5)


def test_mapped_moments_match_quantile_averages(base, probit_map):
    """Mean and variance agree with those of a fine grid of quantiles."""
    dist = Transformed(base, probit_map)
    quantiles = dist.ppf(((np.arange(1000) + 0.5) / 1000)[np.newaxis, :])

    assert_allclose(dist.mean(), quantiles.mean(axis=1), rtol=5e-3, atol=5e-3)
    assert_allclose(dist.var(), quantiles.var(axis=1), rtol=5e-2)


def test_mapped_rows_commute_with_slicing(base, probit_map):
    """A row alone gives what it gives in the batch."""
    dist = Transformed(base, probit_map)
    y = dist.median() + 0.1

    assert_allclose(dist[[5, 2]].logpdf(y[[5, 2]]), dist.logpdf(y)[[5, 2]])
    assert_allclose(dist[2:4].crps(y[2:4]), dist.crps(y)[2:4])


def test_support_is_kept():
    """Outside of the base's support the density stays zero."""
    base = ScipyDistribution(scipy.stats.uniform([0.0], [1.0]))

    dist = Transformed(base, MAPS["smooth"])

    assert_allclose(dist.logpdf([[-0.5, 1.5]]), [[-np.inf, -np.inf]])
    assert np.isfinite(dist.logpdf(0.5)).all()


def test_scaled_normal_is_normal():
    """Scaling a normal distribution by 3 gives the normal with three times the spread."""
    dist = Transformed(Normal([1.0], [2.0]), ScaleMap(3.0))
    points = np.array([[-200.0, 0.0, 1.0, 150.0]])

    assert_allclose(dist.logpdf(points), Normal([1.0], [6.0]).logpdf(points), rtol=1e-10)
    assert_allclose(dist.logsf(points), Normal([1.0], [6.0]).logsf(points), rtol=1e-10)
    assert_allclose(dist.crps([4.0]), Normal([1.0], [6.0]).crps([4.0]), rtol=1e-6)


# ----------------------------------------------------------------------------------- concatenation


def test_concatenated_rows_answer_as_before(rng):
    """Each row gives what its own batch gives, in every method."""
    parts = list(bases(rng, 5).values())
    dist = concatenate(parts)
    points = np.array([[0.3, 1.1]])

    for method in ("cdf", "sf", "logcdf", "logsf", "pdf", "logpdf", "probit", "logslope"):
        expected = np.concatenate([getattr(part, method)(points) for part in parts])
        assert_allclose(getattr(dist, method)(points), expected, err_msg=method)
    assert_allclose(dist.mean(), np.concatenate([part.mean() for part in parts]))
    assert_allclose(dist.ppf(0.2), np.concatenate([part.ppf(0.2) for part in parts]))
    y = np.linspace(0.5, 2, len(dist))
    expected = np.concatenate([p.crps(v) for p, v in zip(parts, np.split(y, 4), strict=True)])
    assert_allclose(dist.crps(y), expected)


def test_concatenated_rows_can_be_reordered(rng):
    """Rows of different batches can be mixed by indexing."""
    dist = concatenate([Normal([0.0, 1.0], 1.0), Normal([10.0, 11.0, 12.0], 2.0)])

    assert_allclose(dist[[4, 0, 2]].mean(), [12.0, 0.0, 10.0])
    assert_allclose(dist[[4, 0, 2]][1:].cdf([1.0, 10.0]), [Normal(0.0, 1.0).cdf(1.0)[0], 0.5])


def test_nothing_to_concatenate_is_an_error():
    """An empty list has no rows to speak of."""
    with pytest.raises(ValueError, match="nothing to concatenate"):
        concatenate([])


# ------------------------------------------------------------------------------------- calibrators


def test_scale_finds_the_maximum_of_the_likelihood(rng):
    """No other factor has a higher likelihood, up to the single prior row."""
    dist, y = Normal(np.zeros(400), np.ones(400)), rng.normal(0.3, 2.0, 400)
    cal = ScaleCalibrator(prior_rows=1e-9).fit(dist, y)

    def score(factor):
        return log_score(y, Normal(np.zeros(400), np.full(400, factor))).sum()

    assert score(cal.factor_) > max(score(cal.factor_ * 1.001), score(cal.factor_ / 1.001))
    assert_allclose(log_score(y, cal.transform(dist)).sum(), score(cal.factor_))


def test_pit_recovers_a_known_map(rng):
    """With many rows, a normal model of gamma outcomes gets the gamma CDF at all thresholds."""
    truth = scipy.stats.gamma(a=3.0)
    dist = Normal(np.full(20000, 3.0), np.full(20000, 2.0))
    grid = np.linspace(0.2, 9, 40)[np.newaxis, :]

    # Dvoretzky, Kiefer and Wolfowitz: one sample in ten thousand is further from its CDF.
    noise = np.sqrt(np.log(2 / 1e-4) / (2 * 20000))
    for cal in (PITCalibrator(), PITCalibrator(smooth=False)):
        cal.fit(dist, truth.rvs(20000, random_state=rng))
        assert_allclose(cal.transform(dist[:1]).cdf(grid), truth.cdf(grid), atol=noise)


def test_smooth_pit_gains_on_new_rows_and_keeps_what_is_right(rng):
    """It gains most of what there is to gain, and costs next to nothing where nothing is wrong."""
    train, test = Normal(np.zeros(300), 1.0 + np.zeros(300)), Normal(np.zeros(4000), np.ones(4000))
    skewed = scipy.stats.gumbel_r(-0.577, 1.0)
    y, y_test = skewed.rvs(300, random_state=rng), skewed.rvs(4000, random_state=rng)
    gap = skewed.logpdf(y_test).mean() - log_score(y_test, test).mean()

    gain = log_score(y_test, PITCalibrator().fit(train, y).transform(test)) - log_score(
        y_test, test
    )
    right = rng.normal(size=4000)
    fitted = PITCalibrator().fit(train, rng.normal(size=300))
    loss = log_score(right, test) - log_score(right, fitted.transform(test))

    assert gain.mean() > 0.75 * gap
    assert loss.mean() < 0.02


def test_few_rows_stay_near_the_identity(calibrator):
    """Two rows are not enough to say much."""
    dist = Normal([0.0, 0.0], [1.0, 1.0])

    new = calibrator.fit(dist, [0.5, -0.4]).transform(dist)

    assert np.isfinite(new.logpdf([0.0, 3.0])).all()
    assert 0.4 < new.std()[0] < 2.5


def test_baselines_reach_thirty_standard_deviations(calibrator, rng):
    """Log densities far out are finite and decrease."""
    dist = Normal(np.zeros(200), np.ones(200))
    new = calibrator.fit(dist, rng.normal(0.2, 1.3, 200)).transform(dist[:1])

    far = new.logpdf([[3.0, 10.0, 30.0, 60.0]])[0]

    assert np.isfinite(far).all()
    assert (np.diff(far) < 0).all()
    assert np.isfinite(new.logsf([[60.0]])).all()


def test_baseline_weights_count_as_repetitions(calibrator, rng):
    """Integer weights give the same map as repeated rows, zero weights as absent ones."""
    y, weights = rng.normal(0.3, 2.0, 40), rng.integers(0, 4, 40)
    dist = Normal(np.zeros(40), rng.uniform(0.5, 2, 40))
    rows = np.repeat(np.arange(40), weights)
    points = np.linspace(-6, 6, 13)[np.newaxis, :]

    weighted = type(calibrator)(**calibrator.get_params()).fit(dist, y, sample_weight=weights)
    repeated = type(calibrator)(**calibrator.get_params()).fit(dist[rows], y[rows])

    expected = repeated.transform(dist).logpdf(points)
    assert_allclose(weighted.transform(dist).logpdf(points), expected, rtol=1e-6)


def test_units_do_not_matter(calibrator, rng):
    """Fitting on a * y + b gives the transformed answer."""
    loc, scale, y = rng.normal(size=60), rng.uniform(0.5, 2, 60), rng.normal(0.2, 2, 60)
    points = np.linspace(-4, 4, 9)[np.newaxis, :]

    plain = calibrator.fit(Normal(loc, scale), y).transform(Normal(loc, scale)).cdf(points)
    other = Normal(1e3 * loc - 7, 1e3 * scale)
    moved = calibrator.fit(other, 1e3 * y - 7).transform(other).cdf(1e3 * points - 7)

    assert_allclose(moved, plain, rtol=1e-6)


def test_tied_outcomes_are_no_obstacle(calibrator):
    """Many equal outcomes, as in counts with zeros, still give a finite density."""
    dist = Normal(np.zeros(50), np.ones(50))

    new = calibrator.fit(dist, np.repeat([0.0, 1.0], 25)).transform(dist)

    assert np.isfinite(new.logpdf([[-1.0, 0.0, 0.5, 1.0, 8.0]])).all()


@pytest.mark.parametrize("name", ["scale", "pit"])
def test_prior_rows_must_be_positive(name):
    """Nothing to hold on to is refused."""
    with pytest.raises(ValueError, match="prior_rows must be positive, got 0"):
        get_calibrator(name, prior_rows=0).fit(Normal([0.0], [1.0]), [0.5])
