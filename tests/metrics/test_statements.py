"""Statistics of PIT values: closed forms, and the same rows as numbers and as PIT values."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from regcal import Clipped, Normal, Outcomes
from regcal.metrics.calibration import pit_intervals
from regcal.metrics.statements import (
    Extremes,
    JudgedRows,
    Masses,
    Shares,
    Thresholds,
    share_scores,
)

GRID = np.array([-2.0, -0.7, 0.0, 0.4, 1.1, 2.5])


def judged(y, dist):
    outcomes = Outcomes.exact(y)
    return JudgedRows(outcomes, pit_intervals(outcomes, dist), np.ones(len(y)))


def sorts_of(y, dist):
    rows, grid = judged(y, dist), GRID[np.newaxis, :]
    places = np.array([0.0])
    return [
        Shares(rows),
        Thresholds(rows, GRID, np.arange(1, 5), dist.cdf(grid)),
        Extremes(rows),
        Masses(rows, places, dist.cdf(places[np.newaxis]), dist.mass(places[np.newaxis])),
    ]


@pytest.fixture
def drawn(rng):
    """Return predictions, uniform PIT values, and the outcomes that have them."""
    loc = rng.normal(size=150)
    uniforms = rng.random(150)
    dist = Normal(loc, np.full(150, 0.8))
    return dist, uniforms, dist.ppf(uniforms)


def test_simulated_rows_score_as_the_same_outcomes(drawn):
    """What was seen and what is simulated are one statistic; this makes p-values exact."""
    dist, uniforms, y = drawn
    for sort in sorts_of(y, dist)[:3]:
        assert_allclose(sort.simulated(uniforms[np.newaxis])[0], sort.scores(), atol=1e-6)


def test_simulated_masses_score_as_the_same_outcomes(drawn):
    """At thresholds and point masses; shares of PIT values there are known in part."""
    dist, uniforms, _ = drawn
    clipped = Clipped(dist, low=0.0)
    sorts = sorts_of(clipped.ppf(uniforms), clipped)

    for sort in (sorts[1], sorts[3]):
        assert_allclose(sort.simulated(uniforms[np.newaxis])[0], sort.scores(), atol=1e-6)


def test_share_scores_are_those_of_binomial_counts():
    """The middle of the step of scipy's binomial distribution, far out too."""
    n = 40
    counts = np.arange(n + 1.0)
    middle = stats.binom.cdf(counts - 1, n, 0.1) + 0.5 * stats.binom.pmf(counts, n, 0.1)
    upper = stats.binom.sf(counts, n, 0.1) + 0.5 * stats.binom.pmf(counts, n, 0.1)
    wanted = np.where(middle < 0.5, stats.norm.ppf(middle), stats.norm.isf(upper))

    assert_allclose(
        share_scores(counts / n, np.array(float(n)), np.array(0.1)), wanted, rtol=1e-6, atol=1e-9
    )


def test_ends_of_bands_have_the_limit_as_their_score(drawn):
    """Of shares and of probabilities at thresholds."""
    dist, _, y = drawn
    shares, thresholds, *_ = sorts_of(y, dist)
    bands = shares.bands(2.5)
    inner = slice(8, 19)  # coverages whose ends can be left
    for end, sign in ((bands.lower, -1.0), (bands.upper, 1.0)):
        scores = share_scores(end[inner], np.array(150.0), bands.expected[inner])
        reached = (end[inner] > 0) & (end[inner] < 1)
        assert_allclose(scores[reached], sign * 2.5, rtol=1e-6)
    bands, scores = thresholds.bands(2.5), thresholds.scores()
    outside = (bands.observed < bands.lower) | (bands.observed > bands.upper)

    assert outside.tolist() == (scores > 2.5).tolist()


def test_mean_is_the_difference_of_means(rng):
    """The integral over many thresholds is the mean outcome less the mean prediction."""
    loc = rng.normal(size=200)
    y, dist = rng.normal(loc + 0.3), Normal(loc, np.ones(200))
    grid = np.linspace(-9.0, 9.0, 1001)
    sort = Thresholds(judged(y, dist), grid, np.arange(2), dist.cdf(grid[np.newaxis]))
    bands = sort.bands(1.0)

    assert_allclose(bands.observed[-1], y.mean() - loc.mean(), atol=0.01)
    # a sum of 200 numbers of variance one
    assert_allclose(bands.upper[-1], np.sqrt(200) / 200, rtol=1e-3)


def test_noticed_shares_have_the_power(drawn):
    """By scipy's binomial distribution: so often such a share leaves the band."""
    dist, _, y = drawn
    shares = Shares(judged(y, dist))
    low, high = shares.noticed(0.8, 3.0, 0.7)
    bands = shares.bands(3.0)
    k = shares.places.tolist().index(0.8)
    counts = np.arange(151)
    outside = (counts / 150 < bands.lower[k] - 1e-9) | (counts / 150 > bands.upper[k] + 1e-9)

    for share in (low, high):
        assert_allclose(stats.binom.pmf(counts, 150, share)[outside].sum(), 0.7, rtol=1e-6)


def test_few_rows_notice_no_intervals_that_are_too_wide():
    """Ten of ten outcomes inside are no news."""
    shares = Shares(judged(np.zeros(10), Normal(np.zeros(10), np.ones(10))))

    assert np.isnan(shares.noticed(0.9, 3.0, 0.8)[1])


def test_what_is_not_known_says_nothing(rng):
    """Outcomes of which nothing was seen are no evidence, whatever was predicted."""
    dist = Normal(rng.normal(size=50), np.ones(50))
    outcomes = Outcomes(np.full(50, -1e9), np.full(50, 1e9))
    rows = JudgedRows(outcomes, pit_intervals(outcomes, dist), np.ones(50))
    sorts = [Shares(rows), Thresholds(rows, GRID, np.arange(6), dist.cdf(GRID[np.newaxis]))]

    for sort in (*sorts, Extremes(rows)):
        assert sort.scores().max() < 1.0
    assert np.isnan(sorts[1].noticed(3.0, 0.8))


def test_rare_surprises_among_sure_predictions_are_no_sign():
    """One event where a hundredth was expected does not outweigh all else."""
    dist = Normal(np.full(100, 10.0), np.full(100, 2.69))  # P(Y <= 0) is 1e-4
    y = np.full(100, 10.0)
    y[0] = -0.1
    grid = np.array([0.0, 10.0])
    sort = Thresholds(judged(y, dist), grid, np.arange(1), dist.cdf(grid[np.newaxis]))

    assert sort.scores()[0] < 1.0
