"""One map per segment against brute force, and merged rows against all."""

import itertools

import numpy as np
import pytest
import scipy.optimize
import scipy.stats
from numpy.testing import assert_allclose
from rows import minimum
from scipy.special import expit

import regcal
from regcal.calibrators import cells


def brute_force_masses(loc, scale, y, thresholds, new_loc, new_scale, ridge):
    """Return calibrated masses as Section 4 of the paper has them, segment by segment."""
    ends = np.concatenate([[-np.inf], thresholds, [np.inf]])
    result = []
    for low, high in itertools.pairwise(ends):
        p = scipy.stats.norm.cdf(high, loc, scale) - scipy.stats.norm.cdf(low, loc, scale)
        features = np.column_stack([np.log(p), -np.log1p(-p), np.ones(len(p))])
        labels = ((y > low) & (y <= high)).astype(float)
        bounds = [(0, None), (0, None), (None, None)]
        a, b, m = minimum(features, labels, np.array([1.0, 1.0, 0.0]), ridge, bounds)
        p = np.diff(scipy.stats.norm.cdf([low, high], new_loc, new_scale))[0]
        result.append(expit(a * np.log(p) - b * np.log1p(-p) + m))
    return np.array(result) / np.sum(result)


def test_masses_of_e_beta_against_brute_force(rng):
    """All segments at once give what one optimiser per segment gives."""
    loc, scale = rng.normal(size=150), rng.uniform(0.8, 1.5, 150)
    y = loc + scale * rng.normal(0.3, 0.6, 150)
    thresholds = np.array([-2.0, -0.5, 0.3, 1.0, 2.5])
    cal = regcal.OneVsRestCalibrator(regcal.BetaCalibrator(ridge=0.7), thresholds=thresholds)
    dist = cal.fit(regcal.Normal(loc, scale), y).transform(regcal.Normal([0.2], [1.1]))
    wanted = brute_force_masses(loc, scale, y, thresholds, 0.2, 1.1, 0.7)

    ends = np.concatenate([[-np.inf], thresholds, [np.inf]])[np.newaxis, :]
    assert_allclose(np.exp(dist.log_masses()[0]), wanted, atol=1e-5)
    assert_allclose(dist.prob(ends[:, :-1], ends[:, 1:])[0], wanted, atol=1e-5)


@pytest.mark.parametrize("binary", [regcal.BetaCalibrator(), regcal.LogisticCalibrator()])
def test_cells_agree_with_rows(rng, binary, monkeypatch):
    """Merging rows into fine cells, as large data need it, hardly moves the fit."""
    loc = rng.normal(size=16_000)
    dist = regcal.Normal(loc, 1.5)
    y = loc + rng.normal(size=len(loc))
    new = regcal.Normal([-1.0, 0.0, 2.0], [1.5, 1.0, 3.0])
    cal = regcal.OneVsRestCalibrator(binary, thresholds=12)
    by_rows = cal.fit(dist, y).transform(new).log_masses()
    monkeypatch.setattr(cells, "_MAX_POINTS", 999)
    by_cells = cal.fit(dist, y).transform(new).log_masses()

    assert not np.array_equal(by_cells, by_rows)
    assert_allclose(np.exp(by_cells), np.exp(by_rows), atol=1e-3)
    assert_allclose(by_cells, by_rows, atol=0.2)


def test_calibration_mends_a_wrong_spread(rng):
    """Predictions twice too wide become about right."""
    dist = regcal.Normal(np.zeros(2000), 2.0)
    y = rng.normal(size=2000)
    for name in ("e-logistic", "e-beta", "e-isotonic"):
        cal = regcal.get_calibrator(name, thresholds=32).fit(dist, y)
        assert regcal.log_score(y, cal.transform(dist)).mean() > -1.5  # -1.42 is the best there is
        assert regcal.log_score(y, dist).mean() < -1.7


def test_calibrated_moments_survive_an_infinite_density():
    """A gamma density that is infinite at 0 does not spoil the mean of its calibration."""
    base = regcal.ScipyDistribution(scipy.stats.gamma(np.full(50, 0.7), loc=40.0, scale=0.1))
    dist = regcal.get_calibrator("e-beta").fit(base, base.ppf(np.linspace(0.01, 0.8, 50)))
    draws = dist.transform(base[:1]).sample(20_000, random_state=0)

    noise = 4 * draws.std() / np.sqrt(draws.size)
    assert_allclose(dist.transform(base[:1]).mean(), draws.mean(), rtol=0.0, atol=noise)
    assert np.isfinite(dist.transform(base[:1]).var()).all()


def test_masses_of_a_threshold_code_against_brute_force(rng):
    """A map per threshold, isotonic regression, and one trial that the base says."""
    loc = rng.normal(size=120)
    y = loc + rng.normal(0.3, 0.6, 120)
    thresholds = np.array([-1.0, 0.0, 0.1, 0.2, 1.5])
    cal = regcal.get_calibrator("e-beta", thresholds=thresholds, code=regcal.ThresholdCode())
    found = cal.fit(regcal.Normal(loc, 1.0), y).transform(regcal.Normal([0.2], [1.0])).log_masses()

    below, new = [], scipy.stats.norm.cdf(thresholds, 0.2, 1.0)
    for t, p_new in zip(thresholds, new, strict=True):
        p = scipy.stats.norm.cdf(t, loc, 1.0)
        features = np.column_stack([np.log(p), -np.log1p(-p), np.ones(len(p))])
        bounds = [(0, None), (0, None), (None, None)]
        prior = np.array([1.0, 1.0, 0.0])
        a, b, m = minimum(features, (y <= t).astype(float), prior, 0.3, bounds)
        below.append(expit(a * np.log(p_new) - b * np.log1p(-p_new) + m))
    share = (120 * np.array(below) + 0.5) / 121
    nearest = scipy.optimize.isotonic_regression(below, weights=1 / (share * (1 - share))).x
    base = np.diff(new, prepend=0.0, append=1.0)
    wanted = (120 * np.diff(nearest, prepend=0.0, append=1.0) + base) / 121
    assert_allclose(np.exp(found[0]), wanted, atol=1e-5)


@pytest.mark.parametrize("code", [regcal.ThresholdCode(), regcal.DenseCode(), np.eye(7)])
@pytest.mark.parametrize("name", ["e-logistic", "e-beta", "e-isotonic"])
def test_codes_mend_a_wrong_spread(name, code, rng):
    """Predictions twice too wide become about right with any code and map."""
    dist = regcal.Normal(np.zeros(2000), 2.0)
    y = rng.normal(size=2000)
    thresholds = np.linspace(-2.5, 2.5, 6)
    cal = regcal.get_calibrator(name, thresholds=thresholds, code=code).fit(dist, y)

    assert regcal.log_score(y, cal.transform(dist)).mean() > -1.5


def test_censored_labels_of_unions(rng):
    """Of rows cut off at random, a code learns what it learns from whole ones."""
    loc, limit = rng.normal(size=(2, 4000))
    y = loc + 0.5 * rng.normal(size=4000)
    thresholds = np.linspace(-2.0, 2.0, 9)
    cal = regcal.get_calibrator("e-beta", thresholds=thresholds, code=regcal.ThresholdCode())
    dist, seen = regcal.Normal(loc, 1.0), np.minimum(y, limit + 1.0)
    whole = cal.fit(dist, y).transform(dist[:9]).cdf(thresholds[np.newaxis])
    censored = regcal.Outcomes.right_censored(seen, y <= limit + 1.0)
    part = cal.fit(dist, censored).transform(dist[:9]).cdf(thresholds[np.newaxis])

    assert np.abs(whole - dist[:9].cdf(thresholds[np.newaxis])).max() > 0.15
    assert_allclose(part, whole, atol=0.05)


def test_isotonic_maps_are_those_of_scikit_learn(rng):
    """Masses of new rows are what the fitted regressions predict, and one trial of the base."""
    loc = rng.normal(size=200)
    cal = regcal.get_calibrator("e-isotonic", thresholds=[-1.0, 0.0, 1.0])
    cal.fit(regcal.Normal(loc, 2.0), loc + rng.normal(size=200))
    new = regcal.Normal(rng.normal(size=9), rng.uniform(0.01, 5.0, 9))
    ends = np.array([[-np.inf, -1.0, 0.0, 1.0, np.inf]])
    p = new.prob(ends[:, :-1], ends[:, 1:])
    rates = [one.predict(column) for one, column in zip(cal.maps_.maps, p.T, strict=True)]
    wanted = 200 * np.column_stack(rates) + p

    masses = np.exp(cal.transform(new).log_masses())
    assert_allclose(masses, wanted / wanted.sum(axis=1, keepdims=True), rtol=1e-9, atol=1e-12)
