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
