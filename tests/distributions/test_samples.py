"""Draws against scipy's kernel density and scoringrules."""

import numpy as np
import pytest
import scipy.optimize
import scipy.stats
import scoringrules
from numpy.testing import assert_allclose, assert_array_equal
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


def test_point_forecasts_need_a_bandwidth():
    """Without any spread there is none to borrow, and the message says what to do."""
    with pytest.raises(ValueError, match=r"agree in all 2 rows.*point forecast.*NormalResidual"):
        regcal.Samples([[1.0, 1.0], [2.0, 2.0]])
    with pytest.raises(ValueError, match="agree in all 9 rows"):  # though five agree on an end
        regcal.Samples(np.repeat([[0.0]] * 5 + [[3.0], [4.0], [5.0], [7.0]], 4, axis=1))
    assert_allclose(regcal.Samples([[1.0, 1.0]], bandwidth=0.5).mean(), 1.0)


# ----------------------------------------------------------------------------- masses at ends


def rain(rng, n_rows=40, n_draws=12):
    """Return draws of rain; the first row is dry, and the last is far from it."""
    middle = rng.normal(size=(n_rows, 1))
    draws = np.maximum(rng.normal(2.0 * middle, 1.0, (n_rows, n_draws)), 0.0)
    draws[0], draws[-1] = 0.0, 30.0 + rng.normal(size=n_draws)
    return draws


def test_a_mass_is_the_share_of_draws(rng):
    """P(Y = 0) counts zeros; where all or none are, it leaves at most half of one more draw."""
    draws = rain(rng)
    mass, share = regcal.Samples(draws).mass(0.0), (draws == 0).mean(axis=1)
    some, none = (share > 0) & (share < 1), share == 0

    assert some.sum() > 10 and none.sum() >= 5
    assert_allclose(mass[some], share[some])
    assert_allclose(mass[share == 1], 1 - 0.5 / 13)
    assert ((mass[none] > 0) | (draws[none].min(axis=1) > 10)).all()
    assert (mass[none] < 0.5 / 13).all()
    assert -1e4 < regcal.Samples(draws).logpdf(0.0)[-1] < -100


def test_the_rest_is_kernels_cut_off_at_the_ends(rng):
    """Between the ends it is a mixture of scipy's truncated normal distributions."""
    draws = np.clip(rng.normal(0.5, 0.5, (6, 15)), 0.0, 1.0)
    draws[:, 0], draws[:, 1] = 0.0, 1.0
    dist = regcal.Samples(draws, bandwidth=0.2)
    grid = np.linspace(0.02, 0.98, 9)
    for k, row in enumerate(draws):
        inside = row[(row > 0) & (row < 1), np.newaxis]
        parts = scipy.stats.truncnorm(-inside / 0.2, (1 - inside) / 0.2, loc=inside, scale=0.2)
        share = len(inside) / 15

        assert_allclose(dist.pdf(grid[np.newaxis])[k], share * parts.pdf(grid).mean(axis=0))
        below = (row == 0).mean() + share * parts.cdf(grid).mean(axis=0)
        assert_allclose(dist.cdf(grid[np.newaxis])[k], below)
        mean = (row == 1).mean() + share * parts.mean().mean()
        square = (row == 1).mean() + share * (parts.var() + parts.mean() ** 2).mean()
        assert_allclose([dist.mean()[k], dist.var()[k]], [mean, square - mean**2])


def test_crps_with_masses_against_scoringrules(rng):
    """With a tiny kernel it is the score of the ensemble, zeros included."""
    draws = rain(rng)[1:-1]
    draws = draws[((draws == 0).any(axis=1)) & ((draws > 0).any(axis=1))]
    y = np.where(rng.uniform(size=len(draws)) < 0.5, 0.0, 1.3)

    found = regcal.crps(y, regcal.Samples(draws, bandwidth=1e-7))

    assert_allclose(found, scoringrules.crps_ensemble(y, draws), rtol=1e-4)


def test_rows_at_an_end_take_the_usual_bandwidth(rng):
    """The more draws lie on an end, the less the others tell of the spread."""
    draws = rain(rng)
    dist = regcal.Samples(draws)
    inner = [np.unique(row) for row in draws]  # zeros count once
    own = np.array([regcal.Samples([row]).bandwidth[0] if len(row) > 1 else 0.0 for row in inner])
    usual, share = np.median(own[own > 0]), (draws == 0).mean(axis=1)

    assert_allclose(dist.bandwidth, (1 - share) * own + share * usual)
    assert_allclose(dist.bandwidth[0], usual)


def test_a_row_is_the_same_alone_when_it_is_told_the_ends(rng):
    """Ends that were given make of a row what its batch makes of it."""
    draws = rain(rng)
    dist = regcal.Samples(draws)
    grid = np.array([[0.0, 0.5, 3.0]])

    for k in (0, 5, 39):
        alone = regcal.Samples(draws[k], dist.bandwidth[k], support=(0.0, None))
        assert_allclose(alone.cdf(grid), dist.cdf(grid)[[k]])
        assert_allclose(alone.mass(0.0), dist.mass(0.0)[[k]])


def test_draws_that_are_all_on_an_end_are_certain():
    """A dry week has no spread to borrow, and no need of it."""
    dist = regcal.Samples(np.zeros((7, 10)))

    assert_array_equal(dist.mass(0.0), 1.0)
    assert_array_equal(dist.cdf([[-1e-9, 0.0, 5.0]]), np.tile([0.0, 1.0, 1.0], (7, 1)))
    assert_array_equal(dist.ppf([[0.001, 0.999]]), 0.0)
    assert_array_equal(dist.mean(), 0.0)
    assert_array_equal(dist.std(), 0.0)
    assert_allclose(dist.crps(np.full(7, 2.0)), 2.0)
    told = regcal.Samples([[3.0, 3.0]], support=(None, 3.0))
    assert_array_equal(told.mass(3.0), 1.0)


def test_draws_beyond_given_ends_lie_on_them(rng):
    """They are read as clipped; without ends they are smoothed as they are."""
    draws = rng.normal(size=(4, 20))

    dist = regcal.Samples(draws, support=(-0.5, 1.0))

    assert_allclose(dist.mass(-0.5), (draws <= -0.5).mean(axis=1))
    assert_allclose(dist.mass(1.0), (draws >= 1.0).mean(axis=1))
    assert_array_equal(regcal.Samples(rain(rng), support=None).mass(0.0), 0.0)
    with pytest.raises(ValueError, match="support must be 'auto'"):
        regcal.Samples(draws, support="none")
    with pytest.raises(ValueError, match="low must be smaller"):
        regcal.Samples(draws, support=(1.0, 0.0))


@pytest.mark.parametrize("low", [0.0, 7.0])
def test_no_mass_leaks_beyond_an_end(low, rng):
    """What is drawn again is never beyond, and at the end as often as the draws were."""
    draws = rain(rng) + low
    again = regcal.Samples(draws).sample(1000, random_state=1)

    assert again.min() == low
    share = np.clip((draws == low).mean(axis=1), 0.0, 1 - 0.5 / 13)
    assert_allclose((again == low).mean(axis=1), share, atol=0.5 / 13 + 5 * 0.5 / np.sqrt(1000))
