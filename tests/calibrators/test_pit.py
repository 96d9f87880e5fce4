"""PIT calibration against known maps, and what it shares with a single factor."""

import warnings

import numpy as np
import pytest
import scipy.stats
from numpy.testing import assert_allclose
from scipy.special import ndtri

from regcal import Normal, Outcomes, PITCalibrator, ScaleCalibrator, get_calibrator, log_score
from regcal.calibrators.agreement import DisagreementWarning

BASELINES = {
    "scale": ScaleCalibrator(),
    "pit": PITCalibrator(),
    "pit-steps": PITCalibrator(smooth=False),
}


@pytest.fixture(params=list(BASELINES))
def calibrator(request):
    return BASELINES[request.param]


def test_pit_recovers_a_known_map(rng):
    """With many rows, a normal model of gamma outcomes gets the gamma CDF at all thresholds."""
    truth = scipy.stats.gamma(a=3.0)
    dist = Normal(np.full(20000, 3.0), np.full(20000, 2.0))
    grid = np.linspace(0.2, 9, 40)[np.newaxis, :]

    # Dvoretzky, Kiefer and Wolfowitz: one sample in ten thousand is further from its CDF.
    noise = np.sqrt(np.log(2 / 1e-4) / (2 * 20000))
    for cal in (PITCalibrator(), PITCalibrator(smooth=False)):
        cal.fit(dist, truth.rvs(20000, random_state=rng))
        assert_allclose(cal.transform(dist[:1]).cdf(grid), truth.cdf(grid), atol=noise)


@pytest.mark.parametrize("name", ["pit", "gpc", "gp-density"])
def test_a_far_cluster_is_no_gross_error(name, rng):
    """A tenth of the outcomes, far from the tight cluster of the others, keep their probability."""
    y = np.where(np.arange(1500) % 10 == 0, 100.0, 0.0) + 0.5 * rng.normal(size=1500)
    dist = Normal(np.full(1500, y.mean()), np.full(1500, y.std()))

    one = get_calibrator(name).fit(dist, y).transform(dist[:1])

    assert_allclose(one.cdf([[10.0, 50.0, 90.0]]), 0.9, atol=0.08)
    assert_allclose(one.mean(), y.mean(), atol=2.0)


@pytest.mark.parametrize("name", ["pit", "gpc", "gp-density"])
@pytest.mark.parametrize("error", [50.0, -1e6])
@pytest.mark.filterwarnings("ignore::regcal.GrossErrorsWarning")
def test_one_gross_error_leaves_the_tails_to_all_others(name, error):
    """One of 600 outcomes does not make the tail on its side wide."""
    y = ndtri((np.arange(600) + 0.5) / 600)
    y[300] = error
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DisagreementWarning)  # the mean of the outcomes is wrong
        calibrated = get_calibrator(name).fit(Normal(np.zeros(600), np.ones(600)), y)
    one = calibrated.transform(Normal([0.0], [1.0]))

    assert_allclose(one.ppf([[0.01, 0.99]]), [[-2.33, 2.33]], atol=0.5)
    assert_allclose(one.cdf([[-4.0, 4.0]]), [[0.0, 1.0]], atol=0.004)


@pytest.mark.parametrize("name", ["scale", "pit"])
@pytest.mark.parametrize("n_rows", [60, 600])
@pytest.mark.filterwarnings("ignore::regcal.GrossErrorsWarning")
def test_one_gross_error_leaves_counts_alone(name, n_rows):
    """Counts are intervals, and none of them counts for more than a density would."""
    rng = np.random.default_rng(0)
    rate = np.exp(1.0 + 0.5 * rng.normal(size=n_rows))
    y = rng.poisson(rate).astype(float)
    dist = Normal(rate, np.sqrt(rate))

    def upper(y):
        calibrator = get_calibrator(name, step=1, support=(0, None))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DisagreementWarning)
            return np.median(calibrator.fit(dist, y).transform(dist).ppf(0.99))

    before = upper(y)
    y[7] = 1e4
    assert before <= upper(y) < 2.0 * before


@pytest.mark.parametrize("name", ["pit", "gpc", "gp-density"])
def test_outcomes_that_are_far_out_again_and_again_are_not_ruinous(name):
    """Where new rows are as far out as old ones were, their densities are small, but no smaller."""
    rng = np.random.default_rng(0)
    y, new = (np.where(rng.random(n) < 0.01, 100.0, 1.0) * rng.normal(size=n) for n in (600, 3000))
    calibrated = get_calibrator(name).fit(Normal(np.zeros(600), np.ones(600)), y)
    scores = log_score(new, calibrated.transform(Normal(np.zeros(3000), np.ones(3000))))

    assert scores.mean() > -2.5
    assert log_score(new, Normal(np.zeros(3000), np.ones(3000))).mean() < -20.0


@pytest.mark.parametrize("wide", [30.0, 1e4])
@pytest.mark.parametrize("n_rows", [60, 600])
def test_pit_finds_the_spread_of_bases_that_are_far_too_wide(wide, n_rows):
    """Prior rows are as wide as the base, and yield to the others."""
    y = ndtri((np.arange(n_rows) + 0.5) / n_rows)
    dist = Normal(np.zeros(n_rows), np.full(n_rows, wide))
    found = PITCalibrator().fit(dist, y).transform(dist[:1]).ppf([[0.05, 0.95]])

    assert_allclose(found, [[-1.645, 1.645]], rtol=0.15)


@pytest.mark.parametrize("side", [1.0, -1.0])
@pytest.mark.parametrize("name", ["pit", "gpc"])
def test_a_tail_that_next_to_nobody_was_followed_to_is_no_thinner_than_the_base(name, side):
    """Four of five rows are censored, those that last longest first."""
    rng = np.random.default_rng(2)
    middle = rng.uniform(2.0, 6.0, 800)
    time, until = middle * rng.weibull(1.5, 800), rng.exponential(1.5, 800)
    censored = Outcomes.right_censored if side > 0 else Outcomes.left_censored
    seen = censored(side * np.minimum(time, until), observed=time <= until)
    dist = Normal(side * middle, np.full(800, 3.0))

    calibrated = get_calibrator(name).fit(dist, seen).transform(dist)

    assert log_score(side * time, calibrated).mean() > log_score(side * time, dist).mean()
    beyond = calibrated.sf(7.5) if side > 0 else calibrated.cdf(-7.5)
    assert_allclose(beyond.mean(), (time > 7.5).mean(), atol=0.06)


def test_rows_that_are_all_censored_at_one_time_leave_the_tail_to_the_base():
    """After an hour nobody is looked at, and six of seven go on."""
    rng = np.random.default_rng(6)
    middle = rng.uniform(2.0, 6.0, 800)
    time = middle * rng.weibull(1.5, 800)
    seen = Outcomes.right_censored(np.minimum(time, 1.2), observed=time <= 1.2)
    dist = Normal(middle, np.full(800, 3.0))

    calibrated = PITCalibrator().fit(dist, seen).transform(dist)

    assert log_score(time, calibrated).mean() > log_score(time, dist).mean() - 0.05


def test_smooth_pit_gains_on_new_rows_and_keeps_what_is_right(rng):
    """It gains most of what there is to gain, and costs next to nothing where nothing is wrong."""
    train, test = Normal(np.zeros(300), 1.0 + np.zeros(300)), Normal(np.zeros(4000), np.ones(4000))
    skewed = scipy.stats.gumbel_r(-0.577, 1.0)
    y, y_test = skewed.rvs(300, random_state=rng), skewed.rvs(4000, random_state=rng)
    gap = skewed.logpdf(y_test).mean() - log_score(y_test, test).mean()

    gain = log_score(y_test, PITCalibrator().fit(train, y).transform(test)) - log_score(
        y_test, test
    )
    right = rng.normal(size=4000)
    fitted = PITCalibrator().fit(train, rng.normal(size=300))
    loss = log_score(right, test) - log_score(right, fitted.transform(test))

    assert gain.mean() > 0.75 * gap
    assert loss.mean() < 0.02


def test_few_rows_stay_near_the_identity(calibrator):
    """Two rows are not enough to say much."""
    dist = Normal([0.0, 0.0], [1.0, 1.0])

    new = calibrator.fit(dist, [0.5, -0.4]).transform(dist)

    assert np.isfinite(new.logpdf([0.0, 3.0])).all()
    assert 0.4 < new.std()[0] < 2.5


def test_baselines_reach_thirty_standard_deviations(calibrator, rng):
    """Log densities far out are finite and decrease."""
    dist = Normal(np.zeros(200), np.ones(200))
    new = calibrator.fit(dist, rng.normal(0.2, 1.3, 200)).transform(dist[:1])

    far = new.logpdf([[3.0, 10.0, 30.0, 60.0]])[0]

    assert np.isfinite(far).all()
    assert (np.diff(far) < 0).all()
    assert np.isfinite(new.logsf([[60.0]])).all()


def test_baseline_weights_count_as_repetitions(calibrator, rng):
    """Integer weights give the same map as repeated rows, zero weights as absent ones."""
    y, weights = rng.normal(0.3, 2.0, 40), rng.integers(0, 4, 40)
    dist = Normal(np.zeros(40), rng.uniform(0.5, 2, 40))
    rows = np.repeat(np.arange(40), weights)
    points = np.linspace(-6, 6, 13)[np.newaxis, :]

    weighted = type(calibrator)(**calibrator.get_params()).fit(dist, y, sample_weight=weights)
    repeated = type(calibrator)(**calibrator.get_params()).fit(dist[rows], y[rows])

    expected = repeated.transform(dist).logpdf(points)
    assert_allclose(weighted.transform(dist).logpdf(points), expected, rtol=1e-6)


def test_units_do_not_matter(calibrator, rng):
    """Fitting on a * y + b gives the transformed answer."""
    loc, scale, y = rng.normal(size=60), rng.uniform(0.5, 2, 60), rng.normal(0.2, 2, 60)
    points = np.linspace(-4, 4, 9)[np.newaxis, :]

    plain = calibrator.fit(Normal(loc, scale), y).transform(Normal(loc, scale)).cdf(points)
    other = Normal(1e3 * loc - 7, 1e3 * scale)
    moved = calibrator.fit(other, 1e3 * y - 7).transform(other).cdf(1e3 * points - 7)

    assert_allclose(moved, plain, rtol=1e-6)


@pytest.mark.filterwarnings("ignore::regcal.RoundedOutcomesWarning")
def test_tied_outcomes_are_no_obstacle(calibrator):
    """Many equal outcomes, as in counts with zeros, still give a finite density."""
    dist = Normal(np.zeros(50), np.ones(50))

    calibrator.set_params(support=None)
    new = calibrator.fit(dist, np.repeat([0.0, 1.0], 25)).transform(dist)

    assert np.isfinite(new.logpdf([[-1.0, 0.0, 0.5, 1.0, 8.0]])).all()


@pytest.mark.parametrize("name", ["scale", "pit"])
def test_prior_rows_must_be_positive(name):
    """Nothing to hold on to is refused."""
    with pytest.raises(ValueError, match="prior_rows must be positive, got 0"):
        get_calibrator(name, prior_rows=0).fit(Normal([0.0], [1.0]), [0.5])
