"""PIT, coverage and calibration errors against scipy, loops and repeated sampling."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from regcal import Clipped, Mixture, Normal, Rounded, metrics
from regcal.datasets import ToyMixture
from regcal.metrics.calibration import pit_intervals, quantile_gaps

# How improbable a sample has to be to fail a test of what is true.
RARE = 1e-4


def toy_truth(n, seed):
    """Return toy targets, their true distribution, and a normal that is wrong."""
    data = ToyMixture().sample(n, random_state=seed)
    x, ones = data.X[:, 0], np.ones(n)
    truth = Mixture([Normal(x, 0.1 * ones), Normal(-0.5 * ones, 0.1 * ones)])
    return data.y, truth, Normal(0.5 * x - 0.25, truth.std())


# --------------------------------------------------------------------------- PIT and coverage


def test_pit_histogram_counts_rows(normals):
    """Bars are counts relative to the uniform expectation, and the band is binomial."""
    y, dist = normals
    histogram = metrics.pit_histogram(y, dist, bins=5)
    counts = np.histogram(stats.norm.cdf(y, dist.loc, dist.scale), np.linspace(0, 1, 6))[0]

    assert_allclose(histogram.density, counts / 80)
    assert_allclose(histogram.lower * 80, stats.binom(400, 0.2).ppf(0.005))
    assert_allclose(histogram.upper * 80, stats.binom(400, 0.2).isf(0.005))


def test_bands_hold_calibrated_models(rng):
    """At least 95 % of calibrated models stay inside the whole band."""
    inside = {"histogram": 0, "coverage": 0}
    dist = Normal(np.zeros(200), np.ones(200))
    for _ in range(400):
        y = rng.normal(size=200)
        histogram, curve = metrics.pit_histogram(y, dist), metrics.coverage_curve(y, dist)
        bars = histogram.density
        inside["histogram"] += ((bars >= histogram.lower) & (bars <= histogram.upper)).all()
        held = (curve.observed >= curve.lower) & (curve.observed <= curve.upper)
        inside["coverage"] += held.all()

    fewest = stats.binom(400, 0.95).ppf(RARE)
    assert inside["histogram"] >= fewest
    assert inside["coverage"] >= fewest


def test_pit_test_matches_scipy(normals):
    """Both uniformity tests agree with SciPy's."""
    y, dist = normals
    result = metrics.pit_test(y, dist, bins=10)
    values = metrics.pit(y, dist)
    ks = stats.kstest(values, "uniform", mode="exact")
    chi2 = stats.chisquare(np.histogram(values, 10, (0, 1))[0])

    assert_allclose([result.ks_statistic, result.ks_p_value], [ks.statistic, ks.pvalue])
    assert_allclose([result.chi2_statistic, result.chi2_p_value], [chi2.statistic, chi2.pvalue])


def test_weighted_pit_test_keeps_its_level(rng):
    """With weights, calibrated models are rejected as often as the level says, or less."""
    weights = rng.exponential(size=300)
    dist = Normal(np.zeros(300), np.ones(300))
    results = [
        metrics.pit_test(rng.normal(size=300), dist, sample_weight=weights) for _ in range(300)
    ]

    for name in ("ks_p_value", "chi2_p_value"):
        p_values = np.array([getattr(result, name) for result in results])
        for level in (0.05, 0.2, 0.5):
            rejected = (p_values <= level).sum()
            assert rejected <= stats.binom(300, level).isf(RARE)
            assert rejected >= stats.binom(300, level / 2).ppf(RARE)


def test_interval_coverage_counts_outcomes_inside(normals, weights):
    """Coverage is the weighted share of outcomes between the interval's ends."""
    y, dist = normals
    low, high = dist.interval(0.7)
    expected = np.average((low <= y) & (y <= high), weights=weights)

    assert_allclose(metrics.interval_coverage(y, dist, 0.7, weights), expected)
    assert_allclose(metrics.coverage_curve(y, dist, [0.7], weights).observed, [expected])


def calibrated_with_masses(rng, n):
    """Return outcomes and predictions that are right, with point masses of many kinds."""
    latent = Normal(rng.normal(size=n), rng.uniform(0.5, 2.0, n))
    y = rng.normal(latent.loc, latent.scale)
    return {
        "one end": (np.maximum(y, 0.0), Clipped(latent, low=0.0)),
        "two ends": (np.clip(y, -0.5, 0.8), Clipped(latent, -0.5, 0.8)),
        "counts": (np.round(y), Rounded(latent)),
    }


@pytest.mark.parametrize("kind", ["one end", "two ends", "counts"])
def test_masses_leave_coverage_nominal(kind, rng):
    """Intervals that end in a mass cover as much as they should, of the mass's part."""
    n = 4000
    y, dist = calibrated_with_masses(rng, n)[kind]
    curve = metrics.coverage_curve(y, dist)
    noise = np.sqrt(curve.nominal * (1 - curve.nominal) / n)

    assert (np.abs(curve.observed - curve.nominal) < 4 * noise).all()
    assert metrics.quantile_calibration_error(y, dist) < 4 * 0.5 / np.sqrt(n)
    bars = metrics.pit_histogram(y, dist)
    assert (bars.density >= bars.lower).all() and (bars.density <= bars.upper).all()
    assert "lie on point masses" in bars.note and bars.note == curve.note
    # without the mass's part, the interval of the latent model holds too much
    low, high = dist.interval(0.5)
    assert ((low <= y) & (y <= high)).mean() > 0.55


def test_spread_values_are_the_mean_of_draws(censored):
    """Histogram and coverage are those of many random PIT values on average."""
    outcomes, dist = censored
    draws = np.stack([metrics.pit(outcomes, dist, random_state=k) for k in range(500)])
    inside = np.abs(draws - 0.5) <= 0.4
    bars = np.stack([np.histogram(row, 5, (0, 1))[0] for row in draws]) / 80

    noise = 5 * inside.mean(axis=1).std() / np.sqrt(500)
    assert abs(metrics.interval_coverage(outcomes, dist, 0.8) - inside.mean()) < noise
    found = metrics.pit_histogram(outcomes, dist, bins=5).density
    assert_allclose(found, bars.mean(axis=0), atol=5 * bars.std() / np.sqrt(500))


def test_censored_pit_tests_keep_their_level(censoring, rng):
    """Calibrated models whose outcomes are censored are rejected as often as the level says."""
    results = []
    for seed in range(120):
        loc = rng.normal(size=100)
        outcomes = censoring(rng, rng.normal(loc))
        dist = Normal(loc, np.ones(100))
        test = metrics.quantile_calibration_test(
            outcomes, dist, n_simulations=99, random_state=seed
        )
        drawn = metrics.pit_test(outcomes, dist, random_state=seed)
        results.append((drawn.chi2_p_value, test.p_value))

    for p_values in np.array(results).T:
        assert stats.kstest(p_values, "uniform").pvalue > RARE


def test_quantile_noise_is_that_of_what_was_seen(censoring, rng):
    """The square of the error is about 0 on average, however much is spread over intervals."""
    loc, squares = rng.normal(size=100), []
    for _ in range(300):
        values = pit_intervals(censoring(rng, rng.normal(loc)), Normal(loc, np.ones(100)))
        gaps, noise = quantile_gaps(values, np.arange(1, 20) / 20, np.ones(100))
        squares.append((np.mean(gaps**2), np.mean(noise)))
    gaps, noise = np.array(squares).T

    assert abs((gaps - noise).mean()) < stats.t(299).isf(RARE / 2) * stats.sem(gaps - noise)
    assert noise.mean() < 0.95 * np.mean(np.arange(1, 20) * np.arange(19, 0, -1)) / 400 / 100


# ------------------------------------------------------------------------- calibration errors


ERRORS = [metrics.quantile_calibration_error, metrics.threshold_calibration_error]
TESTS = [metrics.quantile_calibration_test, metrics.threshold_calibration_test]


@pytest.mark.parametrize("test", TESTS)
def test_true_distribution_of_the_toy_is_within_noise(test):
    """Over 40 data sets, p-values of the truth are uniform and errors average to nothing."""
    results = []
    for seed in range(40):
        y, truth, _ = toy_truth(500, seed)
        results.append(test(y, truth, n_simulations=99, random_state=seed))
    p_values = np.array([result.p_value for result in results])
    excess = np.array([result.raw_error - result.expected for result in results])

    assert stats.kstest(p_values, "uniform").pvalue > RARE
    assert np.median([result.error for result in results]) < 0.01
    assert abs(excess.mean()) < stats.t(39).isf(RARE / 2) * stats.sem(excess)


@pytest.mark.parametrize("test", TESTS)
def test_wrong_distribution_of_the_toy_is_found(test):
    """The best single normal is found out, also with the seed that drew the data."""
    y, truth, wrong = toy_truth(500, 0)
    result = test(y, wrong, n_simulations=199, random_state=0)

    assert result.p_value < 0.01
    assert result.error > 3 * test(y, truth, n_simulations=9, random_state=0).error
    assert result.raw_error > 2 * result.expected


@pytest.mark.parametrize("test", [metrics.pit_test])
def test_pit_tests_tell_the_toy_truth_from_the_wrong_normal(test):
    """PIT values of the truth are uniform and those of the normal are not."""
    y, truth, wrong = toy_truth(2000, 1)

    assert min(test(y, truth).ks_p_value, test(y, truth).chi2_p_value) > RARE
    assert test(y, wrong).chi2_p_value < 1e-9


@pytest.mark.parametrize("error", ERRORS)
def test_errors_do_not_grow_as_rows_get_fewer(error, rng):
    """A plug-in error would be inflated by noise at 60 rows; the debiased square is not."""
    squares = {}
    for n in (60, 3000):
        values = []
        for _ in range(60 if n == 60 else 4):
            loc = rng.normal(size=n)
            dist = Normal(loc, np.ones(n))
            values.append(error(rng.normal(loc + 0.5), dist) ** 2)
        squares[n] = np.mean(values)

    # The mean over 60 sets is known to a tenth; noise of 60 rows would double the square.
    assert 0.5 < squares[60] / squares[3000] < 1.5


@pytest.mark.parametrize("error", ERRORS)
def test_errors_treat_equal_weights_as_none(error, normals):
    """Multiplying all weights by a number changes nothing."""
    y, dist = normals
    dist = Normal(dist.loc + 0.5, dist.scale)

    assert_allclose(error(y, dist, sample_weight=np.full(len(y), 7.0)), error(y, dist))
