"""Metrics against scoringrules, scikit-learn, closed forms and brute force."""

import numpy as np
import pytest
import scoringrules
from numpy.testing import assert_allclose
from scipy import stats
from sklearn.isotonic import IsotonicRegression
from sklearn.metrics import brier_score_loss, mean_pinball_loss

from regcal import Mixture, Normal, Samples, metrics
from regcal.datasets import ToyMixture
from regcal.grids import QuantileGrid

# How improbable a sample has to be to fail a test of what is true.
RARE = 1e-4


@pytest.fixture
def normals(rng):
    """Return targets and the normal distributions they were drawn from."""
    loc = rng.normal(size=400)
    scale = rng.uniform(0.5, 2.0, size=400)
    return rng.normal(loc, scale), Normal(loc, scale)


@pytest.fixture
def weights(rng):
    return rng.integers(0, 4, size=400).astype(float)


def repeated(y, dist, counts):
    """Return the rows as often as their whole-number weights say."""
    rows = np.repeat(np.arange(len(y)), counts.astype(int))
    return y[rows], dist[rows]


def toy_truth(n, seed):
    """Return toy targets, their true distribution, and a normal that is wrong."""
    data = ToyMixture().sample(n, random_state=seed)
    x, ones = data.X[:, 0], np.ones(n)
    truth = Mixture([Normal(x, 0.1 * ones), Normal(-0.5 * ones, 0.1 * ones)])
    return data.y, truth, Normal(0.5 * x - 0.25, truth.std())


# ------------------------------------------------------------------------------------------ scores


def test_log_score_matches_scoringrules(normals):
    """The log score is the negative of the loss that scoringrules has."""
    y, dist = normals

    assert_allclose(metrics.log_score(y, dist), -scoringrules.logs_normal(y, dist.loc, dist.scale))


def test_crps_matches_scoringrules(normals):
    """CRPS agrees for normals in closed form and for mixtures by integration."""
    y, dist = normals
    ones = np.ones(len(y))
    mixture = Mixture([dist, Normal(dist.loc + 3, ones)], [0.3, 0.7])
    expected = scoringrules.crps_mixnorm(
        y,
        np.stack([dist.loc, dist.loc + 3], axis=1),
        np.stack([dist.scale, ones], axis=1),
        np.tile([0.3, 0.7], (len(y), 1)),
    )

    assert_allclose(metrics.crps(y, dist), scoringrules.crps_normal(y, dist.loc, dist.scale))
    assert_allclose(metrics.crps(y, mixture), expected, rtol=1e-6)


@pytest.mark.parametrize(("lower", "upper"), [(-0.3, 1.2), (0.5, np.inf), (-np.inf, 0.0)])
def test_threshold_weighted_crps_is_that_of_the_censored_normal(normals, lower, upper):
    """Weighting thresholds by an indicator is the CRPS after censoring at its ends."""
    y, dist = normals
    ends = [np.full(len(y), end) for end in (lower, upper)]
    expected = scoringrules.crps_cnormal(np.clip(y, lower, upper), dist.loc, dist.scale, *ends)

    scores = metrics.threshold_weighted_crps(y, dist, lower=lower, upper=upper)

    assert_allclose(scores, expected, atol=1e-9)


def test_threshold_weighted_crps_adds_up_to_crps(normals):
    """Regions that share an end add up, and the whole line is the plain score."""
    y, dist = normals
    below = metrics.threshold_weighted_crps(y, dist, upper=0.4)
    above = metrics.threshold_weighted_crps(y, dist, lower=0.4)

    assert_allclose(below + above, metrics.crps(y, dist), atol=1e-9)
    assert_allclose(metrics.threshold_weighted_crps(y, dist), metrics.crps(y, dist), atol=1e-9)


def test_pinball_loss_matches_scikit_learn(normals):
    """The mean of one level's column is scikit-learn's loss."""
    y, dist = normals
    losses = metrics.pinball_loss(y, dist, [0.1, 0.7])

    for column, level in zip(losses.T, (0.1, 0.7), strict=True):
        assert_allclose(column.mean(), mean_pinball_loss(y, dist.ppf(level), alpha=level))
    assert_allclose(metrics.pinball_loss(y, dist, 0.7), losses[:, 1])


def test_interval_score_matches_scoringrules(normals):
    """The interval score agrees with an independent implementation."""
    y, dist = normals
    low, high = dist.interval(0.8)

    expected = scoringrules.interval_score(y, low, high, 0.2)

    assert_allclose(metrics.interval_score(y, dist, 0.8), expected)
    assert_allclose(metrics.interval_width(dist, 0.8), high - low)


def test_brier_score_matches_scikit_learn(normals, weights):
    """Each threshold is a binary problem."""
    y, dist = normals
    scores = metrics.brier_score(y, dist, [-1.0, 0.5])

    for column, t in zip(scores.T, (-1.0, 0.5), strict=True):
        expected = brier_score_loss(y <= t, dist.cdf(t), sample_weight=weights)
        assert_allclose(metrics.mean_score(column, weights).mean, expected)


def test_sharpness_is_the_weighted_mean_spread(normals, weights):
    """Sharpness averages standard deviations."""
    _, dist = normals

    assert_allclose(metrics.sharpness(dist, weights), np.average(dist.scale, weights=weights))


def test_mean_score_has_the_textbook_standard_error(normals):
    """Without weights the standard error is that of a sample mean."""
    scores = metrics.log_score(*normals)
    mean = metrics.mean_score(scores)

    assert_allclose(mean.standard_error, stats.sem(scores))
    assert_allclose(mean.mean, scores.mean())


def test_mean_score_leaves_out_rows_of_weight_zero():
    """An infinite score of a row that does not count changes nothing."""
    mean = metrics.mean_score([1.0, -np.inf, 3.0, 2.0], [1.0, 0.0, 1.0, 1.0])

    assert mean == metrics.mean_score([1.0, 3.0, 2.0])


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


def brute_force_squared_gaps(y, dist, t, bins, weights):
    """Return the debiased mean squared gap at one threshold, bin by bin."""
    q, total = dist.cdf(t), 0.0
    for b in range(bins):
        inside = (q >= b / bins) & ((q < (b + 1) / bins) | (b == bins - 1))
        w = weights[inside]
        if not w.sum():
            continue
        gap = np.average(q[inside] - (y[inside] <= t), weights=w)
        noise = (w**2 * q[inside] * (1 - q[inside])).sum() / w.sum() ** 2
        total += w.sum() / weights.sum() * (gap**2 - noise)
    return total


def test_threshold_calibration_error_matches_brute_force(normals, weights):
    """Vectorised bins give what a loop over bins gives."""
    y, dist = normals
    dist = Normal(dist.loc + 0.7, dist.scale)
    thresholds = [-1.0, 0.2, 1.5]
    squared = [brute_force_squared_gaps(y, dist, t, 8, weights) for t in thresholds]

    error = metrics.threshold_calibration_error(y, dist, thresholds, sample_weight=weights)
    result = metrics.threshold_calibration_test(
        y, dist, thresholds, sample_weight=weights, n_simulations=9, random_state=0
    )

    assert_allclose(error, np.sqrt(np.mean(squared)))
    assert_allclose(result.error, error)
    assert_allclose(result.errors, np.sqrt(squared))


def test_threshold_test_finds_where_calibration_fails(rng):
    """A model that is wrong above 1 only is blamed there and nowhere else."""
    n = 3000
    loc = rng.normal(size=n)
    y = rng.normal(loc, 1.0)
    y = np.where(y > 1.0, 1.0 + 3.0 * (y - 1.0), y)
    result = metrics.threshold_calibration_test(
        y,
        Normal(loc, np.ones(n)),
        [-1.0, 0.0, 0.9, 2.0, 3.0],
        n_simulations=999,
        random_state=0,
    )

    smallest, noise = 1 / 1000, 4 * 0.5 / np.sqrt(n)  # four standard errors of a frequency
    assert (result.p_values[:3] > smallest).all()
    assert_allclose(result.p_values[3:], smallest)
    assert (np.abs(result.biases[:3]) < noise).all()
    assert (result.biases[3:] > noise).all()


def test_adjusted_p_values_keep_their_level(rng):
    """In about 5 % of calibrated data sets any threshold is blamed, not more."""
    blamed = 0
    for seed in range(100):
        loc = rng.normal(size=150)
        result = metrics.threshold_calibration_test(
            rng.normal(loc), Normal(loc, np.ones(150)), n_simulations=99, random_state=seed
        )
        blamed += (result.p_values < 0.05).any()

    assert blamed <= 13


# ------------------------------------------------------------------------------- reliability


def test_reliability_curve_matches_a_loop(normals, weights):
    """Means and frequencies per bin, and nan where a bin is empty."""
    y, dist = normals
    curve = metrics.reliability_curve(y, dist, [-6.0, 0.3], bins=4, sample_weight=weights)
    q = dist.cdf(0.3)
    for b in range(4):
        inside = (np.minimum((q * 4).astype(int), 3) == b) & (weights > 0)
        w = weights[inside]
        assert_allclose(curve.predicted[1, b], np.average(q[inside], weights=w))
        assert_allclose(curve.observed[1, b], np.average(y[inside] <= 0.3, weights=w))
        assert_allclose(curve.share[1, b], w.sum() / weights.sum())
    assert np.isnan(curve.observed[0, 3])
    assert np.isnan(curve.lower[0, 3])


def test_outcome_at_the_threshold_counts_as_below():
    """The event is y <= t, as the CDF says."""
    curve = metrics.reliability_curve([0.0, 1.0], Normal([0.0, 0.0], [1.0, 1.0]), [0.0], bins=1)

    assert_allclose(curve.observed, [[0.5]])


def test_isotonic_curve_matches_scikit_learn(normals):
    """The line is scikit-learn's isotonic regression of the event on the probability."""
    y, dist = normals
    curve = metrics.isotonic_reliability_curve(
        y, dist, [0.3], n_points=21, n_simulations=20, random_state=0
    )
    q = dist.cdf(0.3)
    reference = IsotonicRegression(y_min=0, y_max=1, out_of_bounds="clip").fit(q, y <= 0.3)
    used = ~np.isnan(curve.observed[0])

    assert_allclose(curve.observed[0, used], reference.predict(curve.predicted[0, used]))
    assert_allclose(curve.share.sum(), 1.0)


def test_isotonic_bands_hold_calibrated_points(rng):
    """About 95 % of the points of calibrated lines lie inside the pointwise band."""
    inside = []
    for seed in range(20):
        loc = rng.normal(size=300)
        curve = metrics.isotonic_reliability_curve(
            rng.normal(loc), Normal(loc, np.ones(300)), [0.0], n_points=21, random_state=seed
        )
        used = ~np.isnan(curve.observed)
        held = (curve.observed >= curve.lower) & (curve.observed <= curve.upper)
        inside.append(held[used].mean())

    assert 0.88 < np.mean(inside) <= 1.0


def test_brier_decomposition_adds_up(normals, weights):
    """The identity is exact, and the parts are those of scikit-learn's isotonic regression."""
    y, dist = normals
    parts = metrics.brier_decomposition(y, dist, [-0.5, 1.0], sample_weight=weights)
    used = weights > 0
    for k, t in enumerate([-0.5, 1.0]):
        q, event, w = dist.cdf(t)[used], (y <= t)[used], weights[used]
        best = IsotonicRegression().fit(q, event, w).predict(q)
        rate = np.average(event, weights=w)
        assert_allclose(parts.score[k], brier_score_loss(event, q, sample_weight=w))
        assert_allclose(parts.uncertainty[k], rate * (1 - rate))
        recalibrated = np.average((best - event) ** 2, weights=w)
        assert_allclose(parts.miscalibration[k], parts.score[k] - recalibrated)

    total = parts.miscalibration - parts.discrimination + parts.uncertainty
    assert_allclose(parts.score, total)
    assert (parts.miscalibration >= -1e-12).all()
    assert (parts.discrimination >= -1e-12).all()


@pytest.mark.parametrize(
    "result",
    [
        lambda y, d, w: metrics.reliability_curve(y, d, [0.0, 1.0], sample_weight=w).observed,
        lambda y, d, w: metrics.brier_decomposition(y, d, [0.0, 1.0], w).miscalibration,
        lambda y, d, w: metrics.pit_histogram(y, d, sample_weight=w).density,
        lambda y, d, w: metrics.coverage_curve(y, d, sample_weight=w).observed,
        lambda y, d, w: metrics.interval_coverage(y, d, sample_weight=w),
        lambda y, d, w: metrics.compare(y, {"a": d}, w)["CRPS"].values,
    ],
)
def test_whole_number_weights_are_repetitions(result, normals, weights):
    """A weight of 2 counts as two rows, and one of 0 as none."""
    y, dist = normals

    assert_allclose(result(y, dist, weights), result(*repeated(y, dist, weights), None))


# --------------------------------------------------------------------------------- bad input

FROM_PREDICTIONS = [
    metrics.log_score,
    metrics.crps,
    metrics.threshold_weighted_crps,
    metrics.interval_score,
    metrics.pit,
    metrics.pit_histogram,
    metrics.pit_test,
    metrics.quantile_calibration_error,
    metrics.quantile_calibration_test,
    metrics.threshold_calibration_error,
    metrics.threshold_calibration_test,
    metrics.reliability_curve,
    metrics.isotonic_reliability_curve,
    metrics.brier_decomposition,
    metrics.interval_coverage,
    metrics.coverage_curve,
    lambda y, dist: metrics.compare(y, {"model": dist}),
]


@pytest.mark.parametrize("metric", FROM_PREDICTIONS)
def test_missing_targets_are_an_error(metric):
    """A missing outcome is named, not averaged over."""
    with pytest.raises(ValueError, match="not finite"):
        metric([0.0, np.nan], Normal([0.0, 0.0], [1.0, 1.0]))


@pytest.mark.parametrize("metric", FROM_PREDICTIONS)
def test_unequal_lengths_are_an_error(metric):
    """Targets and distributions have to belong together."""
    with pytest.raises(ValueError, match="3 targets for 2"):
        metric([0.0, 1.0, 2.0], Normal([0.0, 0.0], [1.0, 1.0]))


@pytest.mark.parametrize("metric", FROM_PREDICTIONS)
def test_one_row_is_enough(metric):
    """A single row gives an answer without a warning."""
    metric([0.3], Normal([0.0], [1.0]))


@pytest.mark.parametrize("metric", FROM_PREDICTIONS)
def test_constant_target_is_harmless(metric):
    """A target that never varies gives one threshold and no warning."""
    metric(np.full(30, 2.0), Normal(np.linspace(0, 3, 30), np.ones(30)))


@pytest.mark.parametrize("metric", FROM_PREDICTIONS)
def test_anything_that_is_a_distribution_is_taken(metric, rng):
    """Draws in a plain matrix are understood as predictions."""
    draws = rng.normal(size=(12, 20))
    first, second = metric(draws[:, 0], draws), metric(draws[:, 0], Samples(draws))

    assert type(first) is type(second)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda y, d: metrics.interval_score(y, d, 90), "Write 90 % as 0.9"),
        (lambda y, d: metrics.pinball_loss(y, d, [0.5, 1.0]), "between 0 and 1"),
        (lambda y, d: metrics.pit_histogram(y, d, bins=0), "at least 1"),
        (lambda y, d: metrics.coverage_curve(y, d, [0.9, 0.5]), "increasing"),
        (lambda y, d: metrics.threshold_weighted_crps(y, d, lower=1, upper=1), "Swap"),
        (lambda y, d: metrics.mean_score(metrics.brier_score(y, d, [0.0])), "one column"),
        (lambda y, d: metrics.compare(y, {}), "dists is empty"),
    ],
)
def test_errors_say_the_way_out(call, message):
    """Wrong arguments are named with the rule."""
    with pytest.raises(ValueError, match=message):
        call([0.0, 1.0], Normal([0.0, 0.0], [1.0, 1.0]))


def test_random_state_makes_tests_repeatable(normals):
    """The same seed gives the same answer, whatever kind of seed it is."""
    y, dist = normals
    for make in (int, np.random.RandomState, np.random.default_rng):
        first, again = (
            metrics.threshold_calibration_test(
                y, dist, QuantileGrid(4), n_simulations=19, random_state=make(3)
            )
            for _ in range(2)
        )
        assert first.expected == again.expected
