"""Isotonic distributional regression: against brute force, and what smoothing keeps."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

import regcal
from regcal.calibrators.cells import Points
from regcal.calibrators.isotonic import (
    IndexCoordinates,
    IsotonicCalibrator,
    isotonic_masses,
)
from regcal.maps import Axis


def coordinates(thresholds):
    return IndexCoordinates(np.asarray(thresholds, dtype=float), "median", Axis(), 0.0)


def brute_force(index, below, weights):
    """Return the antitonic regression of labels by its formula of largest and smallest means."""
    places = np.unique(index)
    fitted = []
    for k in range(len(places)):
        means = [
            [
                np.average(below[inside], weights=weights[inside])
                for j in range(k, len(places))
                if (inside := (index >= places[i]) & (index <= places[j])).any()
            ]
            for i in range(k + 1)
        ]
        fitted.append(min(max(row) for row in means))
    return np.array(fitted)


def test_masses_are_those_of_isotonic_regressions(rng):
    """One regression per threshold, by brute force, with ties and weights."""
    index = rng.integers(0, 6, 30).astype(float)
    y = 0.5 * index + rng.normal(size=30)
    weights = rng.integers(1, 4, 30).astype(float)
    thresholds = np.array([-0.5, 0.7, 1.9])
    points = Points(np.searchsorted(thresholds, y), weights, np.stack([index, np.ones(len(index))]))

    places, masses = isotonic_masses(points, coordinates(thresholds))

    wanted = [brute_force(index, (y <= t).astype(float), weights) for t in thresholds]
    assert_allclose(places, np.unique(index))
    assert_allclose(np.cumsum(masses, axis=1)[:, :-1].T, wanted, atol=1e-12)
    assert_allclose(masses.sum(axis=1), 1.0)


def test_medians_never_fall_as_the_index_rises(rng):
    """Whatever the outcomes, larger predictions get larger distributions."""
    x = rng.normal(size=200)
    base = regcal.Normal(x, np.ones(200))
    calibrator = regcal.get_calibrator("isotonic").fit(base, np.sin(3 * x) + rng.normal(size=200))

    places = np.linspace(-2.5, 2.5, 40)
    table = calibrator.table_
    below = np.cumsum(table.at(places), axis=1)

    assert (np.diff(below, axis=0) <= 1e-12).all()


def test_the_conditional_distribution_is_found(rng):
    """With many rows it tends to the truth, of which the base says nothing but the order."""
    n = 20_000
    x = rng.uniform(1.0, 3.0, n)
    y = x**2 * rng.gamma(4.0, 0.25, n)
    calibrator = regcal.get_calibrator("isotonic").fit(regcal.Normal(x, np.full(n, 9.0)), y)

    new = np.array([1.3, 2.0, 2.7])
    dist = calibrator.transform(regcal.Normal(new, np.full(3, 9.0)))

    levels = np.array([0.1, 0.5, 0.9])
    truth = new[:, np.newaxis] ** 2 * regcal_gamma(levels)
    assert_allclose(dist.ppf(levels[np.newaxis, :]), truth, rtol=0.12)


def regcal_gamma(levels):
    from scipy.stats import gamma

    return gamma.ppf(levels, 4.0, scale=0.25)


def test_tails_beyond_all_outcomes_are_those_of_the_recalibrated_base(rng):
    """A base that states a tenth of the spread does not say that nothing can lie further out."""
    x = rng.normal(size=400)
    base, y = regcal.Normal(x, np.full(400, 0.1)), x + rng.normal(size=400)
    far = y.max() + np.array([[0.5, 1.5]])
    new = base[x > 1.0]

    found = IsotonicCalibrator().fit(base, y).transform(new).logsf(far)
    known = regcal.get_calibrator("scale").fit(base, y).transform(new).logsf(far)

    assert_allclose(np.diff(found, axis=1), np.diff(known, axis=1), rtol=1e-6)


@pytest.mark.parametrize("error", [300.0, 1e4, 1e6])
@pytest.mark.filterwarnings("ignore::regcal.DisagreementWarning")
@pytest.mark.filterwarnings("ignore::regcal.GrossErrorsWarning")
def test_one_gross_error_does_not_blur_all_others(rng, error):
    """Bandwidths are those of the other rows."""
    x = rng.uniform(0.0, 10.0, 400)
    y = x + rng.normal(size=400)
    y[3] = error

    calibrated = IsotonicCalibrator().fit(regcal.Normal(x, np.ones(400)), y)

    found = calibrated.transform(regcal.Normal([5.0], [1.0])).ppf([[0.05, 0.5, 0.95]])
    assert_allclose(found, 5.0 + stats.norm.ppf([[0.05, 0.5, 0.95]]), atol=0.8)


def test_rows_are_ordered_as_the_base_was_given(rng):
    """Recalibration that moves medians by shares of the spread does not change who is larger."""
    loc, scale = rng.normal(size=(2, 500))
    base, y = regcal.Normal(loc, np.exp(scale)), loc + rng.gumbel(size=500)
    calibrator = IsotonicCalibrator(index="median").fit(base, y)
    narrow, wide = calibrator.transform(regcal.Normal([0.5, 0.5], [0.5, 2.0])).log_masses()[:, 1:-1]

    assert_allclose(np.exp(narrow), np.exp(wide), atol=0.01)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"index": "mode"}, 'index must be "auto", "median" or "mean", got \'mode\''),
        ({"thresholds": 3}, "at least 4 thresholds, got 3"),
        ({"bandwidth": 0.0}, "bandwidth must be a positive share .* got 0.0"),
        ({"bandwidth": np.nan}, "bandwidth must be a positive share .* got nan"),
        ({"bandwidth": "wide"}, "bandwidth must be a positive share .* got 'wide'"),
    ],
)
def test_bad_parameters_are_refused(parameters, message):
    """With the value and what would be right."""
    with pytest.raises(ValueError, match=message):
        IsotonicCalibrator(**parameters).fit(regcal.Normal(np.zeros(9), 1.0), np.arange(9.0))


def test_a_bandwidth_can_be_given(rng):
    """The wider it is, the smoother the density."""
    dist, y = regcal.Normal(np.zeros(100), np.ones(100)), rng.normal(size=100)
    grid = np.linspace(-2.0, 2.0, 200)[np.newaxis]

    rough, smooth = (
        IsotonicCalibrator(bandwidth=b).fit(dist, y).transform(dist[:1]).pdf(grid)
        for b in (0.005, 0.1)
    )

    assert np.abs(np.diff(smooth)).sum() < 0.5 * np.abs(np.diff(rough)).sum()


@pytest.mark.filterwarnings("ignore::regcal.DisagreementWarning")
def test_an_edge_of_the_outcomes_is_blurred_less_than_rows_are(rng):
    """However little each row tells, all rows together say that outcomes are above 1."""
    x = rng.normal(size=600)
    base, y = regcal.Normal(2.0 + 0.3 * x, 0.3), 1.0 + rng.exponential(np.exp(0.2 * x))
    chosen = IsotonicCalibrator().fit(base, y)
    one_width = IsotonicCalibrator(bandwidth=chosen.bandwidth_).fit(base, y)

    below, blurred = (one.transform(base).cdf(0.9).mean() for one in (chosen, one_width))

    assert chosen.marginal_bandwidth_ < chosen.bandwidth_
    assert below < 0.8 * blurred


@pytest.mark.parametrize("support", [(0, None), (None, 0)])
def test_a_given_end_takes_nothing_from_beside_it(rng, support):
    """Outcomes are spread evenly from an end on, and none is there."""
    side, widths = 1.0 if support[0] == 0 else -1.0, rng.uniform(1.0, 6.0, 4000)
    base = regcal.Normal(side * 0.5 * widths, widths / np.sqrt(12.0))
    y = side * rng.uniform(0.0, widths)
    points = side * np.array([0.02, 0.05, 0.1])

    calibrated = IsotonicCalibrator(support=support).fit(base, y).transform(base)

    near = calibrated.prob(np.minimum(points, 0.0)[np.newaxis], np.maximum(points, 0.0)[np.newaxis])
    shares = np.abs(points) / widths[:, np.newaxis]
    assert_allclose(near.mean(axis=0), shares.mean(axis=0), rtol=0.1)


def test_censored_rows_count_for_what_all_rows_have(rng):
    """Shares beyond a time are those of Kaplan and Meier, not of the events that were seen."""
    n = 2000
    x = rng.normal(size=n)
    event, look = 4.0 * rng.exponential(np.exp(0.5 * x)), 6.0 * rng.exponential(size=n)
    time, died = np.minimum(event, look), event <= look
    base = regcal.Normal(4.0 * np.exp(0.5 * x), 2.0)
    seen = regcal.Outcomes.right_censored(time, died)
    calibrator = IsotonicCalibrator(support=(0, None)).fit(base, seen)

    order = np.argsort(time)
    survival = np.cumprod(1.0 - died[order] / np.arange(n, 0, -1.0))
    for at in (2.0, 5.0, 10.0):
        known = survival[np.searchsorted(time[order], at) - 1]
        assert_allclose(calibrator.transform(base).sf(at).mean(), known, atol=0.03)


def test_counts_of_rows_that_all_differ_keep_their_shares(rng):
    """Long tails of counts do not spread small ones over their neighbours."""
    loc = rng.uniform(0.5, 3.0, 600)
    y = rng.poisson(loc * rng.gamma(1.0, 1.0, 600)).astype(float)
    dist = regcal.Normal(loc, np.full(600, 2.0))
    new = regcal.get_calibrator("isotonic", step=1).fit(dist, y).transform(dist)
    k = np.arange(6.0)

    shares = (y[:, np.newaxis] <= k).mean(axis=0)
    errors = np.sqrt(shares * (1 - shares) / 600)
    assert (np.abs(new.cdf(k[np.newaxis, :]).mean(axis=0) - shares) < errors).all()


def two_sided(rng, n):
    """Return draws whose median tells nothing of their mean, which outcomes follow."""
    mean = rng.uniform(-2.0, 2.0, n)
    draws = np.concatenate([rng.normal(0.0, 0.3, (n, 11)), np.tile(2.2 * mean, (10, 1)).T], axis=1)
    return regcal.Samples(draws), mean + 0.3 * rng.normal(size=n)


def test_rows_are_ordered_by_what_tells_more(rng):
    """By the mean where the median is noise; by the median where both have one order."""
    dist, y = two_sided(rng, 600)
    cal = IsotonicCalibrator().fit(dist, y)
    fixed = IsotonicCalibrator(index="mean").fit(dist, y)

    assert cal.index_ == "mean"
    assert_allclose(cal.transform(dist[:5]).cdf(0.3), fixed.transform(dist[:5]).cdf(0.3))
    normal = regcal.Normal(y, np.ones(600))
    assert IsotonicCalibrator().fit(normal, y + rng.normal(size=600)).index_ == "median"


def test_a_bandwidth_of_ones_own_leaves_the_index_to_be_chosen(rng):
    """The better one for this bandwidth."""
    dist, y = two_sided(rng, 600)

    assert IsotonicCalibrator(bandwidth=0.05).fit(dist, y).index_ == "mean"


def test_rows_without_a_mean_are_ordered_by_their_median(rng):
    """A Cauchy distribution has none."""
    place = rng.uniform(-2.0, 2.0, 300)
    dist, y = regcal.ScipyDistribution(stats.cauchy(loc=place)), place + 0.3 * rng.normal(size=300)
    by_mean, by_median = (
        IsotonicCalibrator(index=one).fit(dist, y).transform(dist[:5]).cdf(0.0)
        for one in ("mean", "median")
    )

    assert_allclose(by_mean, by_median)
