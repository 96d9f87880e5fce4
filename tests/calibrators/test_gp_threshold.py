"""The threshold map: the exact classifier, counts by loops, its options."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from rows import normal_rows
from scipy.special import ndtr
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process import kernels as exact_kernels

from regcal import DensityCalibrator, GPCalibrator, Normal, Outcomes
from regcal.calibrators.gp_threshold import _PRIORS, PairCoordinates, started_pairs
from regcal.calibrators.held_out import HeldOut
from regcal.datasets import ToyMixture
from regcal.gp import Logit, Matern32, Matern52
from regcal.maps import ScaleMap


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


def test_counts_against_loops(rng):
    """Each pair adds its weight, its label and its probit to the cell it belongs to."""
    dist, y = normal_rows(rng, 25, scale=0.5)
    weights, thresholds = rng.uniform(0.1, 3.0, 25), np.linspace(-4, 4, 6)
    trials, successes, sums = np.zeros((3, 6, 96))
    for i in range(25):
        for j, t in enumerate(thresholds):
            u = min(max((t - dist.loc[i]) / 0.5, -37.0), 37.0)
            below = float(y[i] <= t)
            for cell in range(96):
                low, high = -1 + cell / 48, -1 + (cell + 1) / 48
                if low <= np.tanh(u / 2) < high or (cell == 95 and np.tanh(u / 2) == 1):
                    trials[j, cell] += weights[i]
                    successes[j, cell] += weights[i] * below
                    sums[j, cell] += weights[i] * u

    points = PairCoordinates(thresholds).observe(HeldOut(dist, Outcomes.exact(y), weights))
    merged = started_pairs(points, ScaleMap(1.0))

    found = np.zeros((3, 6, 96))
    u, rate = merged.values
    cells = np.minimum((np.tanh(u / 2) + 1) * 48, 95).astype(int)
    np.add.at(found, (slice(None), merged.levels, cells), merged.weights * [u**0, rate, u])
    assert_allclose(found, [trials, successes, sums], atol=1e-10)


def test_zero_prior_fades_into_the_base(rng):
    """The paper's prior has no linear terms: inside it learns, far out the base is kept."""
    dist, y = normal_rows(rng, 300, scale=0.5)
    calibrated = GPCalibrator(16, prior="zero").fit(dist, y).transform(dist[:5])
    far = dist.loc[:5, np.newaxis] + 0.5 * np.array([-30.0, -7.0, 7.0, 30.0])

    assert_allclose(calibrated.std(), 1.0, rtol=0.15)
    assert_allclose(calibrated.logpdf(far), dist[:5].logpdf(far), rtol=1e-9)


def test_the_axis_adapts_to_skewed_targets_but_for_the_zero_prior(rng):
    """The paper's process sees targets as they are."""
    dist, y = normal_rows(rng, 200)

    linear = [GPCalibrator(prior=p).fit(dist, np.exp(2 * y)).axes_.axis.linear for p in _PRIORS]

    assert linear == [p == "zero" for p in _PRIORS]


def test_the_probability_of_an_end_is_the_one_that_was_learnt():
    """What the map says beyond an end, where nothing is seen, does not change P(Y = end)."""
    rng = np.random.default_rng(4)
    y = np.where(rng.random(400) < 0.5, 0.0, np.exp(rng.normal(1.0, 1.5, 400)))
    # three models that differ much in their spread, as those of folds do with heavy tails
    dist = Normal(np.resize([10.0, 12.0, 15.0], 400), np.resize([30.0, 50.0, 80.0], 400))
    calibrator = GPCalibrator().fit(dist, y)

    learnt = calibrator.calibration_map(0.0, dist.cdf(0.0))

    assert_allclose(calibrator.transform(dist).mass(0.0), learnt, atol=0.03)


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


@pytest.mark.parametrize("weight", [40.0, 300.0])
def test_rows_that_are_repeated_do_not_spoil_the_map(rng, weight):
    """They are separable everywhere, and a process without bounds would say one half between."""
    dist = Normal(rng.normal(size=500), 1.0)
    y = dist.loc + 1.5 * rng.gumbel(size=500)
    found = GPCalibrator().fit(dist, y, np.full(500, weight)).transform(dist)
    high = np.quantile(y, 0.9)

    assert_allclose(found.mean().mean(), y.mean(), atol=0.08 * y.std())
    assert_allclose(found.cdf(high).mean(), 0.9, atol=0.03)
