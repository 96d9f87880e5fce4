"""Scores against scoringrules, scikit-learn and closed forms."""

import numpy as np
import pytest
import scipy.optimize
import scipy.stats
import scoringrules
from numpy.testing import assert_allclose
from scipy import stats
from sklearn.metrics import brier_score_loss, mean_pinball_loss

import regcal
from regcal import Mixture, Normal, metrics


def test_crps_against_scoringrules(rng):
    """Closed forms of another package, for outcomes inside and outside of the bulk."""
    loc, y = rng.normal(size=30), np.linspace(-12, 15, 30)
    scale = rng.uniform(0.5, 2.0, 30)
    t = scipy.stats.t(6.0, loc, scale)
    pairs = [
        (regcal.Normal(loc, scale), scoringrules.crps_normal(y, loc, scale)),
        (t, scoringrules.crps_t(y, 6.0, loc, scale)),
        (scipy.stats.logistic(loc, scale), scoringrules.crps_logistic(y, loc, scale)),
        (scipy.stats.laplace(loc, scale), scoringrules.crps_laplace(y, loc, scale)),
        (scipy.stats.gamma(scale + 1), scoringrules.crps_gamma(y, scale + 1, 1.0)),
        (scipy.stats.expon(scale=scale), scoringrules.crps_exponential(y, 1 / scale)),
        (scipy.stats.uniform(loc, scale), scoringrules.crps_uniform(y, loc, loc + scale)),
    ]
    for dist, wanted in pairs:
        assert_allclose(regcal.crps(y, dist), wanted, rtol=1e-6, atol=1e-9, err_msg=str(dist))


def test_scores_are_methods_of_the_distribution():
    """The log score is the log density, PIT the probability below the outcome."""
    y, normal = np.array([0.3, -2.0]), scipy.stats.norm([0.0, 1.0], [1.0, 2.0])
    dist = regcal.Normal([0.0, 1.0], [1.0, 2.0])

    assert_allclose(regcal.log_score(y, dist), normal.logpdf(y))
    assert_allclose(regcal.pit(y, dist), normal.cdf(y))


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


@pytest.mark.parametrize(("low", "high"), [(-0.3, 1.2), (0.5, None), (None, 0.0)])
def test_crps_of_clipped_distributions_against_scoringrules(normals, low, high):
    """Closed forms of censored distributions (Jordan, Krueger and Lerch, 2019)."""
    y, dist = normals
    # no end is one far out, where the closed forms still work
    ends = [
        np.full(len(y), far if end is None else end) for end, far in ((low, -200.0), (high, 200.0))
    ]
    seen, loc, scale = np.clip(y, low, high), dist.loc, dist.scale
    pairs = [
        (dist, scoringrules.crps_cnormal(seen, loc, scale, *ends)),
        (scipy.stats.logistic(loc, scale), scoringrules.crps_clogistic(seen, loc, scale, *ends)),
        (scipy.stats.t(5.0, loc, scale), scoringrules.crps_ct(seen, 5.0, loc, scale, *ends)),
    ]
    for base, wanted in pairs:
        clipped = regcal.Clipped(regcal.as_distribution(base), low, high)
        assert_allclose(metrics.crps(seen, clipped), wanted, rtol=1e-6, atol=1e-8)


def test_crps_of_censored_outcomes_is_that_of_clipped_predictions(censored):
    """What is integrated below and above an interval are censored normals' scores at its ends."""
    outcomes, dist = censored
    wanted, far = np.zeros(len(outcomes)), np.full(len(outcomes), 1e3)
    for end, ends in (
        (outcomes.lower, lambda t: (-far[: len(t)], t)),
        (outcomes.upper, lambda t: (t, far[: len(t)])),
    ):
        rows = np.isfinite(end)
        normal = dist.loc[rows], dist.scale[rows]
        wanted[rows] += scoringrules.crps_cnormal(end[rows], *normal, *ends(end[rows]))

    assert_allclose(metrics.crps(outcomes, dist), wanted, atol=1e-9)
    mixture = Mixture([dist, dist])  # the same by integration
    assert_allclose(metrics.crps(outcomes, mixture), wanted, atol=1e-8)
    parts = [
        metrics.threshold_weighted_crps(outcomes, dist, **region)
        for region in ({"upper": 0.4}, {"lower": 0.4})
    ]
    assert_allclose(sum(parts), wanted, atol=1e-9)


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
