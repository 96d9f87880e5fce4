"""Draws against scipy's kernel density and scoringrules."""

import numpy as np
import pytest
import scipy.optimize
import scipy.stats
import scoringrules
from numpy.testing import assert_allclose
from rows import GRID

import regcal


def test_samples_are_a_kernel_density(rng):
    """The density is scipy's kernel estimate with the same bandwidth."""
    draws = rng.normal(size=(1, 40))
    kernel = scipy.stats.gaussian_kde(draws[0], bw_method=0.3)
    dist = regcal.Samples(draws, bandwidth=float(np.sqrt(kernel.covariance[0, 0])))

    assert_allclose(dist.pdf(GRID)[0], kernel(GRID[0]), rtol=1e-10)
    assert_allclose(dist.prob(-1.0, 0.5), kernel.integrate_box_1d(-1.0, 0.5))


def test_default_bandwidth_is_silverman(rng):
    """0.9 min(std, IQR / 1.34) n^(-1/5)."""
    draws = rng.normal(size=40)
    spread = min(draws.std(ddof=1), np.subtract(*np.quantile(draws, [0.75, 0.25])) / 1.34)

    assert_allclose(regcal.Samples([draws]).bandwidth, 0.9 * spread * 40**-0.2)


def test_crps_of_samples_against_scoringrules(rng):
    """Draws with a kernel are a mixture of normals; with a tiny one, the ensemble itself."""
    draws, y = rng.normal(size=(8, 25)), rng.normal(size=8)
    dist = regcal.Samples(draws)
    spreads = np.repeat(dist.bandwidth[:, np.newaxis], 25, axis=1)

    assert_allclose(regcal.crps(y, dist), scoringrules.crps_mixnorm(y, draws, spreads), rtol=1e-7)
    wanted = scoringrules.crps_ensemble(y, draws)
    assert_allclose(regcal.crps(y, regcal.Samples(draws, bandwidth=1e-6)), wanted, rtol=1e-4)


def test_rows_whose_draws_agree_take_the_usual_bandwidth(rng):
    """An ensemble that agrees is no reason to refuse the batch."""
    draws = rng.normal(size=(5, 20))
    draws[2] = 0.0

    dist = regcal.Samples(draws)

    others = regcal.Samples(draws[[0, 1, 3, 4]]).bandwidth
    assert_allclose(dist.bandwidth[[0, 1, 3, 4]], others)
    assert others.min() < dist.bandwidth[2] < others.max()
    assert_allclose(dist.cdf(0.0)[2], 0.5)


def test_draws_that_agree_everywhere_need_a_bandwidth():
    """Without any spread there is none to borrow."""
    with pytest.raises(ValueError, match="agree in all 2 rows"):
        regcal.Samples([[1.0, 1.0], [2.0, 2.0]])
    assert_allclose(regcal.Samples([[1.0, 1.0]], bandwidth=0.5).mean(), 1.0)
