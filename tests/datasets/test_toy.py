"""The toy knows its own distribution."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.integrate import quad
from scipy.stats import kstest, norm

from regcal import datasets
from regcal.datasets import ToyMixture

INPUTS = np.array([-1.0, -0.5, -0.2, 0.3, 1.0])


@pytest.mark.parametrize("x", INPUTS)
@pytest.mark.parametrize("t", [-0.8, -0.5, 0.0, 0.25, 1.3])
def test_toy_density_integrates_to_its_cdf(x, t):
    """The area under the density up to t is the CDF at t."""
    toy = ToyMixture()
    centres = sorted({x, toy.flat} - {t})
    points = [centre for centre in centres if -3.0 < centre < t]

    area, _ = quad(lambda s: float(toy.pdf(x, s)), -3.0, t, points=points or None, epsabs=1e-11)

    assert_allclose(area, toy.cdf(x, t), atol=1e-9)


def test_toy_density_is_the_slope_of_the_cdf(rng):
    """A central difference of the CDF gives the density."""
    toy, step = ToyMixture(noise=0.3, flat=0.2), 1e-5
    x, t = rng.uniform(-1, 1, 500), rng.uniform(-2, 2, 500)

    slope = (toy.cdf(x, t + step) - toy.cdf(x, t - step)) / (2 * step)

    assert_allclose(slope, toy.pdf(x, t), rtol=1e-5, atol=1e-8)


def test_toy_matches_scipy_normals():
    """The mixture is half of each of two normals."""
    toy = ToyMixture(noise=0.2, flat=0.1)
    x, t = INPUTS[:, np.newaxis], np.linspace(-2, 2, 9)
    parts = norm(x, 0.2), norm(0.1, 0.2)

    assert_allclose(toy.pdf(x, t), sum(part.pdf(t) for part in parts) / 2)
    assert_allclose(toy.cdf(x, t), sum(part.cdf(t) for part in parts) / 2)
    assert_allclose(toy.sf(x, t), sum(part.sf(t) for part in parts) / 2)


def test_toy_tails_follow_the_nearest_normal():
    """Forty deviations out, the nearer component alone counts, by half."""
    toy = ToyMixture()
    x, right, left = 0.9, 0.9 + 4.0, -0.5 - 4.0

    assert_allclose(toy.logpdf(x, right), norm.logpdf(right, 0.9, 0.1) - np.log(2))
    assert_allclose(toy.logpdf(x, left), norm.logpdf(left, -0.5, 0.1) - np.log(2))
    assert_allclose(toy.logsf(x, right), norm.logsf(right, 0.9, 0.1) - np.log(2))
    assert_allclose(toy.logcdf(x, left), norm.logcdf(left, -0.5, 0.1) - np.log(2))


def test_toy_logs_agree_with_plain_values():
    """In the middle, logarithms and plain values say the same."""
    toy, t = ToyMixture(), np.linspace(-1, 1, 21)
    x = INPUTS[:, np.newaxis]

    assert_allclose(np.exp(toy.logcdf(x, t)), toy.cdf(x, t))
    assert_allclose(np.exp(toy.logsf(x, t)), toy.sf(x, t))
    assert_allclose(toy.cdf(x, t) + toy.sf(x, t), 1.0)


def test_toy_reaches_its_limits():
    """At infinity the CDF is 0 or 1 and the density is 0."""
    toy, ends = ToyMixture(), [-np.inf, np.inf]

    assert_array_equal(toy.cdf(0.3, ends), [0, 1])
    assert_array_equal(toy.sf(0.3, ends), [1, 0])
    assert_array_equal(toy.logpdf(0.3, ends), [-np.inf, -np.inf])


def test_toy_sample_follows_its_cdf(rng):
    """Under the truth, the CDF at the outcomes is uniform."""
    toy = ToyMixture()
    data = toy.sample(5000, rng)

    assert kstest(toy.cdf(data.X[:, 0], data.y), "uniform").pvalue > 1e-4
    assert kstest(data.X[:, 0], "uniform", args=(-1, 2)).pvalue > 1e-4


@pytest.mark.parametrize("x_range", [(-1.0, -0.6), (-0.2, 0.2), (0.6, 1.0)])
def test_toy_sample_frequencies_match_the_cdf(rng, x_range):
    """In a band of inputs, the share below t is the mean CDF there."""
    toy = ToyMixture()
    data = toy.sample(40_000, rng)
    band = (data.X[:, 0] >= x_range[0]) & (data.X[:, 0] < x_range[1])
    t = np.linspace(-1, 1, 9)

    share = (data.y[band, np.newaxis] <= t).mean(axis=0)

    noise = 5 * 0.5 / np.sqrt(band.sum())  # five standard errors of a frequency
    assert_allclose(share, toy.cdf(data.X[band], t).mean(axis=0), atol=noise)


def test_toy_sample_repeats_with_its_seed():
    """Equal seeds give equal rows; other seeds, other rows."""
    first, again, other = (datasets.make_toy_mixture(20, seed) for seed in (1, 1, 2))

    assert_array_equal(first.y, again.y)
    assert (first.y != other.y).any()


def test_toy_sample_takes_every_kind_of_random_state():
    """Generators and RandomStates are used and advanced, as in scikit-learn."""
    for make in (np.random.default_rng, np.random.RandomState):
        state = make(3)
        first, second = ToyMixture().sample(20, state), ToyMixture().sample(20, state)

        assert (first.y != second.y).any()
        assert_array_equal(first.y, ToyMixture().sample(20, make(3)).y)


@pytest.mark.parametrize("noise", [0.0, -0.1, np.nan])
def test_toy_refuses_a_noise_that_is_not_positive(noise):
    """The error shows the value and the rule."""
    with pytest.raises(ValueError, match=r"noise=.*positive"):
        ToyMixture(noise=noise)
