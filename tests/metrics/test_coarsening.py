"""What simulated outcomes look like: by brute force over many PIT values."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from regcal import Clipped, Normal, Outcomes, Rounded
from regcal.metrics.calibration import pit_intervals
from regcal.metrics.coarsening import Coarsening, SeenLevels

LEVELS = np.array([0.05, 0.2, 0.5, 0.55, 0.9])


def coarsening(outcomes, dist):
    rng = np.random.default_rng(0)
    return Coarsening.of(outcomes, dist, pit_intervals(outcomes, dist), rng)


def test_masses_are_what_draws_are_spread_over():
    """An outcome whose PIT value is a level has the interval that is seen around the level."""
    dist = Rounded(Clipped(Normal([0.3, 2.0], [1.0, 2.0]), low=0.0), step=1.0)
    numbers = coarsening(Outcomes.exact([0.0, 1.0]), dist)
    seen = numbers.around_quantiles(LEVELS, dist)

    for k, y in enumerate(dist.ppf(LEVELS[np.newaxis]).T):
        wanted = pit_intervals(y, dist)
        assert_allclose(seen.low[:, k], wanted.below, atol=1e-12)
        assert_allclose(seen.high[:, k], wanted.upto, atol=1e-12)


def test_numbers_are_seen_as_they_are():
    """Without masses and censoring no level lies in an interval."""
    dist = Normal([0.0, 1.0], [1.0, 1.0])
    seen = coarsening(Outcomes.exact([0.0, 1.0]), dist).around_quantiles(LEVELS, dist)

    assert not seen.spread.any()
    assert_allclose(seen.covariances(1, 3), 0.2 - 0.2 * 0.55)


@pytest.mark.parametrize("width", [0.8, 1.0, 3.0])
def test_common_visits_are_found(width, rng):
    """Rows that share the times of visits would all have been seen between two of them."""
    loc = rng.normal(size=200)
    start = width * np.floor(rng.normal(loc) / width)
    dist = Normal(loc, np.ones(200))
    seen = coarsening(Outcomes(start, start + width), dist).around(np.tile(LEVELS, (200, 1)))
    visit = width * np.floor(dist.ppf(LEVELS[np.newaxis]) / width)

    assert_allclose(seen.low, dist.cdf(visit), atol=1e-9)
    assert_allclose(seen.high, dist.cdf(visit + width), atol=1e-9)


def test_bands_of_different_widths_are_found(rng):
    """As in a questionnaire: up to 1, from 1 to 3, from 3 to 10, more."""
    edges = np.array([-np.inf, 1.0, 3.0, 10.0, np.inf])
    y = rng.uniform(0.0, 14.0, size=100)
    dist = Normal(np.full(100, 5.0), np.full(100, 4.0))
    band = np.searchsorted(edges, y) - 1
    seen = coarsening(Outcomes(edges[band], edges[band + 1]), dist)
    levels = np.tile(LEVELS, (100, 1))
    wanted = np.searchsorted(edges, dist.ppf(LEVELS[np.newaxis])) - 1

    assert_allclose(seen.around(levels).low, dist.cdf(edges[wanted]), atol=1e-9)
    assert_allclose(seen.around(levels).high, dist.cdf(edges[wanted + 1]), atol=1e-9)


@pytest.mark.parametrize("side", ["right", "left"])
def test_one_sided_censoring_hides_one_side(side, rng):
    """Among numbers, what is not beyond a row's own limit would have been a number."""
    y, observed = rng.normal(size=60), np.arange(60) % 2 == 0
    make = Outcomes.right_censored if side == "right" else Outcomes.left_censored
    dist = Normal(np.zeros(60), np.ones(60))
    seen = coarsening(make(y, observed), dist).around(np.tile(LEVELS, (60, 1)))
    own = dist.cdf(y)[:, np.newaxis]
    beyond = (own < LEVELS) if side == "right" else (own > LEVELS)

    assert_allclose(seen.spread, beyond & ~observed[:, np.newaxis])
    limit = np.broadcast_to(own, beyond.shape)[seen.spread]
    low, high = (limit, 1.0) if side == "right" else (0.0, limit)
    assert_allclose(seen.low[seen.spread], low)
    assert_allclose(seen.high[seen.spread], high)


def test_both_limits_of_an_instrument_leave_numbers_between(rng):
    """Rows above the upper limit would not have been below the lower one whatever they are."""
    y = rng.normal(size=80)
    outcomes = Outcomes(
        np.where(y < -1, -np.inf, np.minimum(y, 1)), np.where(y > 1, np.inf, np.maximum(y, -1))
    )
    dist = Normal(np.zeros(80), np.ones(80))

    assert not coarsening(outcomes, dist).around(np.full((80, 1), 0.5)).spread.any()


def test_counts_and_covariances_are_those_of_many_values():
    """Over an even grid of PIT values: its means are integrals."""
    low = np.array([[0.1, 0.1, 0.5, 0.8]])
    high = np.array([[0.4, 0.4, 0.5, 1.0]])
    seen = SeenLevels(np.array([[0.2, 0.3, 0.5, 0.85]]), low, high)
    values = ((np.arange(20_000) + 0.5) / 20_000)[:, np.newaxis]
    labels = np.hstack([seen.counts(values, k, np.ones((1, 1))) for k in range(4)])
    wanted = np.cov(labels.T, bias=True)

    assert_allclose(labels.mean(axis=0), seen.levels[0], atol=1e-4)
    found = [[seen.covariances(j, k)[0] for k in range(4)] for j in range(4)]
    assert_allclose(found, wanted, atol=1e-4)
    widths = np.array([0.7, 1.3, 0.4, 2.0])
    assert_allclose(seen.sum_variances(widths)[0], widths @ wanted @ widths, atol=1e-3)
