"""Statistics of PIT values: closed forms, and the same rows as numbers and as PIT values."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from regcal import Clipped, Normal, Outcomes, Rounded
from regcal.metrics.calibration import pit_intervals
from regcal.metrics.coarsening import Coarsening
from regcal.metrics.statements import (
    LEVELS,
    Extremes,
    JudgedRows,
    Masses,
    Shares,
    Thresholds,
    share_scores,
)

GRID = np.array([-2.0, -0.7, 0.0, 0.4, 1.1, 2.5])


def judged(y, dist):
    outcomes = Outcomes.of(y)
    return JudgedRows(outcomes, pit_intervals(outcomes, dist), np.ones(len(outcomes)))


def coarsening(y, dist):
    outcomes = Outcomes.of(y)
    rng = np.random.default_rng(0)
    return Coarsening.of(outcomes, dist, pit_intervals(outcomes, dist), rng)


def shares_of(y, dist):
    return Shares(judged(y, dist), coarsening(y, dist).around_quantiles(LEVELS, dist))


def thresholds_of(y, dist, grid=GRID, which=slice(1, 5)):
    seen = coarsening(y, dist).around(dist.cdf(grid[np.newaxis, :]))
    return Thresholds(judged(y, dist), grid, np.arange(len(grid))[which], seen)


def masses_of(y, dist):
    place = np.array([[0.0]])
    middle = dist.cdf(place) - 0.5 * dist.mass(place)
    return Masses(judged(y, dist), place[0], dist.mass(place), coarsening(y, dist).around(middle))


@pytest.fixture
def drawn(rng):
    """Return predictions, uniform PIT values, and the outcomes that have them."""
    loc = rng.normal(size=150)
    uniforms = rng.random(150)
    dist = Normal(loc, np.full(150, 0.8))
    return dist, uniforms, dist.ppf(uniforms)


def lattice(y):
    return Outcomes(np.floor(y / 0.75) * 0.75, np.floor(y / 0.75) * 0.75 + 0.75)


SEEN = {
    "numbers": lambda dist: (dist, np.asarray),
    "clipped": lambda dist: (Clipped(dist, low=0.0, high=1.0), np.asarray),
    "counts": lambda dist: (Rounded(dist, step=0.5), np.asarray),
    "visits": lambda dist: (dist, lattice),
    "visits to the clipped": lambda dist: (Clipped(dist, low=0.0), lattice),
}


@pytest.mark.parametrize("kind", SEEN)
def test_simulated_rows_score_as_the_same_outcomes(kind, drawn):
    """What was seen and what is simulated are one statistic; this makes p-values exact."""
    base, uniforms, _ = drawn
    dist, seen_of = SEEN[kind](base)
    y = seen_of(dist.ppf(uniforms))

    for sort in (shares_of(y, dist), thresholds_of(y, dist), masses_of(y, dist)):
        assert_allclose(sort.simulated(uniforms[np.newaxis])[0], sort.scores(), atol=1e-6)


def test_simulated_ends_score_as_the_same_outcomes(drawn):
    """The smallest and the largest of numbers; of intervals the nearer end counts, to be safe."""
    dist, uniforms, y = drawn
    ends = Extremes(judged(y, dist))

    assert_allclose(ends.simulated(uniforms[np.newaxis])[0], ends.scores(), atol=1e-6)


@pytest.mark.parametrize("kind", SEEN)
def test_variances_are_those_of_simulated_rows(kind, drawn):
    """So scores of shapes and means are about standard normal."""
    base, uniforms, _ = drawn
    dist, seen_of = SEEN[kind](base)
    y = seen_of(dist.ppf(uniforms))
    many = np.random.default_rng(0).random((2000, len(base)))
    shape = shares_of(y, dist).simulated(many)[:, -1]
    means = thresholds_of(y, dist).simulated(many)[:, -2:]  # absolute values

    assert_allclose([shape.mean(), shape.std()], [0.0, 1.0], atol=0.15)
    assert_allclose(np.mean(means**2, axis=0), 1.0, atol=0.15)


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
    shares, thresholds = shares_of(y, dist), thresholds_of(y, dist)
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
    sort = thresholds_of(y, dist, grid, slice(2))
    bands = sort.bands(1.0)

    assert_allclose(bands.observed[-2], y.mean() - loc.mean(), atol=0.01)
    # a sum of 200 numbers of variance one
    assert_allclose(bands.upper[-2], np.sqrt(200) / 200, rtol=1e-3)


def test_slope_is_that_of_outcomes_on_predicted_means(rng):
    """By numpy's least squares, with the error of a slope at a known variance of one."""
    loc = rng.normal(size=200)
    y, dist = rng.normal(1.4 * loc), Normal(loc, np.ones(200))
    bands = thresholds_of(y, dist, np.linspace(-9.0, 9.0, 1001), slice(2)).bands(1.0)

    assert_allclose(bands.observed[-1], np.polyfit(loc, y, 1)[0], atol=0.01)
    error = 1.0 / np.sqrt(((loc - loc.mean()) ** 2).sum())
    assert_allclose([bands.lower[-1], bands.upper[-1]], [1 - error, 1 + error], rtol=1e-3)


def test_equal_predictions_have_no_slope(rng):
    """Where no mean is higher than another nothing can rise with it, rounding or not."""
    dist = Normal(np.full(50, 0.1), np.ones(50))

    assert thresholds_of(rng.normal(size=50), dist).scores()[-1] == 0.0


def test_noticed_shares_have_the_power(drawn):
    """By scipy's binomial distribution: so often such a share leaves the band."""
    dist, _, y = drawn
    shares = shares_of(y, dist)
    low, high = shares.noticed(0.8, 3.0, 0.7)
    bands = shares.bands(3.0)
    k = shares.places.tolist().index(0.8)
    counts = np.arange(151)
    outside = (counts / 150 < bands.lower[k] - 1e-9) | (counts / 150 > bands.upper[k] + 1e-9)

    for share in (low, high):
        assert_allclose(stats.binom.pmf(counts, 150, share)[outside].sum(), 0.7, rtol=1e-6)


def test_few_rows_notice_no_intervals_that_are_too_wide():
    """Ten of ten outcomes inside are no news."""
    shares = shares_of(np.zeros(10), Normal(np.zeros(10), np.ones(10)))

    assert np.isnan(shares.noticed(0.9, 3.0, 0.8)[1])


def test_what_is_not_known_says_nothing(rng):
    """Outcomes of which nothing was seen are no evidence, whatever was predicted."""
    dist = Normal(rng.normal(size=50), np.ones(50))
    outcomes = Outcomes(np.full(50, -1e9), np.full(50, 1e9))
    sorts = [shares_of(outcomes, dist), thresholds_of(outcomes, dist)]

    for sort in (*sorts, Extremes(judged(outcomes, dist))):
        assert sort.scores().max() < 1.0
    assert np.isnan(sorts[1].noticed(3.0, 0.8))


def test_rare_surprises_among_sure_predictions_are_no_sign():
    """One event where a hundredth was expected does not outweigh all else."""
    dist = Normal(np.full(100, 10.0), np.full(100, 2.69))  # P(Y <= 0) is 1e-4
    y = np.full(100, 10.0)
    y[0] = -0.1
    grid = np.array([0.0, 10.0])
    sort = thresholds_of(y, dist, grid, slice(1))

    assert sort.scores()[0] < 1.0
