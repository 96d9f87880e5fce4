"""Both maps: behaviour, ties, hostile data, errors.

Laws over every calibrator are in `test_laws.py`; the engine is tested in `gp`.
"""

import numpy as np
import pytest
import scipy.stats
from hostile_rows import HOSTILE, assert_valid
from numpy.testing import assert_allclose, assert_array_equal
from rows import mean_log_score, normal_rows, small_paper
from scipy.special import ndtr
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import BayesianRidge

from regcal import DensityCalibrator, GPCalibrator, Normal
from regcal.datasets import ToyMixture
from regcal.maps import PiecewiseMap, ScaleMap

# Both maps that are trained on all rows; their cost hardly depends on the number of rows.
MAPS = {"gpc": GPCalibrator, "gp-density": DensityCalibrator}
over_maps = pytest.mark.parametrize("make", MAPS.values(), ids=MAPS)


@over_maps
def test_an_outlier_leaves_the_bulk_alone(rng, make):
    """One outcome thirty deviations out stretches the last few percent at most."""
    dist, y = normal_rows(rng, 400)
    y[0] = 30.0
    calibrated = make().fit(dist, y).transform(dist)
    levels = np.array([[0.02, 0.5, 0.95]])

    assert_allclose(calibrated.ppf(levels), dist.ppf(levels), atol=0.6)


# ------------------------------------------------------------------------ behaviour


@over_maps
def test_a_true_model_is_left_alone(rng, make):
    """Calibrating predictions that are right costs less than 0.02 nats on new rows."""
    cal = make().fit(*normal_rows(rng, 500))
    new, new_y = normal_rows(rng, 4000)

    loss = mean_log_score(new, new_y) - mean_log_score(cal.transform(new), new_y)

    assert loss < 0.02


@over_maps
@pytest.mark.parametrize("scale", [0.5, 2.0])
def test_a_wrong_scale_is_undone(rng, make, scale):
    """Rows whose standard deviation is half or twice the truth get the true one."""
    cal = make().fit(*normal_rows(rng, 600, scale))
    new = Normal([-1.5, 0.0, 1.5], [scale] * 3)

    assert_allclose(cal.transform(new).std(), 1.0, rtol=0.1)


@pytest.mark.parametrize("seed", range(3))
def test_ordinary_rows_give_no_warning(seed):
    """Normal predictions that are twice too wide are no reason for a warning."""
    cal = GPCalibrator().fit(*normal_rows(np.random.default_rng(seed), 500, scale=2.0))

    assert_allclose(cal.transform(Normal([0.0], [2.0])).std(), 1.0, rtol=0.15)


@over_maps
def test_a_bias_is_undone(rng, make):
    """Predictions that are 0.8 too high are moved back."""
    dist, y = normal_rows(rng, 500)
    cal = make().fit(dist, y - 0.8)
    new = cal.transform(Normal([-1.5, 0.0, 1.5], np.ones(3)))

    assert_allclose(new.mean(), [-2.3, -0.8, 0.7], atol=0.15)
    assert_allclose(new.std(), 1.0, rtol=0.1)


@over_maps
def test_weights_choose_the_rows(rng, make):
    """With next to no weight on wrong rows, the rows that count are calibrated."""
    dist, y = normal_rows(rng, 600, scale=2.0)
    y[:300] += 5.0
    weights = np.repeat([1e-6, 1.0], 300)
    new = Normal([-1.0, 1.0], [2.0, 2.0])

    weighted = make().fit(dist, y, sample_weight=weights).transform(new)

    assert_allclose(weighted.mean(), [-1.0, 1.0], atol=0.2)
    assert_allclose(weighted.std(), 1.0, rtol=0.15)


@pytest.fixture(scope="module")
def toy():
    """Return the paper's toy problem: calibration rows, new rows, and the truth on a grid."""
    mixture = ToyMixture()
    train, held_out, new = (mixture.sample(n, seed) for n, seed in ((600, 1), (600, 2), (600, 3)))
    model = BayesianRidge().fit(train.X, train.y)
    predictions = [Normal(*model.predict(part.X, return_std=True)) for part in (held_out, new)]
    grid = np.linspace(-1.2, 1.2, 61)
    return predictions[0], held_out.y, predictions[1], new.y, mixture.cdf(new.X, grid), grid


@pytest.fixture(scope="module")
def toy_fits(toy):
    """Return both maps fitted on the toy problem."""
    return {name: make().fit(toy[0], toy[1]) for name, make in MAPS.items()}


@pytest.mark.parametrize("name", MAPS)
def test_a_wrong_shape_is_found(toy, toy_fits, name):
    """Two modes per row are learnt from normals: a better score, and nearer to the truth."""
    _, _, base, y, truth, grid = toy
    calibrated = toy_fits[name].transform(base)

    gain = mean_log_score(calibrated, y) - mean_log_score(base, y)

    before, after = (np.abs(d.cdf(grid[np.newaxis, :]) - truth).mean() for d in (base, calibrated))
    assert gain > 0.4
    assert after < 0.5 * before


def test_the_paper_and_its_fast_version_agree(toy, toy_fits):
    """On the toy problem the reference on a sample of pairs finds nearly the same CDFs."""
    dist, y, base, _, truth, grid = toy
    cal = small_paper(thresholds=24, n_pairs=600, prediction_thresholds=200).fit(dist, y)
    rows = slice(0, 100)

    reference = cal.transform(base[rows]).cdf(grid[np.newaxis, :])

    fast = toy_fits["gpc"].transform(base[rows]).cdf(grid[np.newaxis, :])
    # 600 pairs leave the reference further from the truth than all of them
    assert np.abs(reference - fast).mean() < 0.06
    assert np.abs(reference - truth[rows]).mean() < 0.07
    assert np.abs(fast - truth[rows]).mean() < 0.03


@pytest.mark.parametrize("name", MAPS)
def test_hyperparameters_are_reported(toy_fits, name):
    """Length-scales, variance and evidence are finite, and the process has found structure."""
    cal = toy_fits[name]

    assert cal.lengthscales_.shape == (2,)
    assert (np.isfinite(cal.lengthscales_) & (cal.lengthscales_ > 0)).all()
    assert np.isfinite(cal.log_evidence_)
    assert 0.05 < cal.sigma_ < 100


@pytest.mark.parametrize("name", MAPS)
def test_distributions_follow_the_calibration_map(toy, toy_fits, name):
    """Along the path of a row, P(Y <= t) is the map at (t, q(t)) up to the repair."""
    cal, base, grid = toy_fits[name], toy[2][:50], toy[5]
    q = base.cdf(grid[np.newaxis, :])

    along = cal.calibration_map(grid, q)

    found = cal.transform(base).cdf(grid[np.newaxis, :])
    drop = np.max(np.maximum.accumulate(along, axis=1) - along, axis=1, keepdims=True)
    assert (drop < 0.002).mean() > 0.4
    assert (np.abs(found - along) < 0.02 + drop).all()
    assert np.abs(found - along).mean() < 0.006


@pytest.mark.parametrize("name", MAPS)
def test_calibration_map_shapes_and_limits(toy_fits, name):
    """Thresholds and probabilities broadcast; certain predictions stay nearly certain."""
    cal = toy_fits[name]
    t, q = np.array([-0.5, 0.0, 0.5]), np.array([[0.2], [0.8]])

    probability, std = cal.calibration_map(t, q, return_std=True)

    assert probability.shape == std.shape == (2, 3)
    assert_array_equal(cal.calibration_map(t, q), probability)
    assert np.shape(cal.calibration_map(0.0, 0.5)) == ()
    assert_allclose(cal.calibration_map(0.5, 0.8), probability[1, 2], rtol=1e-10)
    assert ((probability > 0) & (probability < 1) & (std > 0)).all()
    assert (cal.calibration_map(t, 0.0) < 0.1).all()
    assert (cal.calibration_map(t, 1.0) > 0.9).all()


@over_maps
def test_the_map_is_unsure_where_there_are_no_data(rng, make):
    """The standard deviation is larger off the only path that the rows take."""
    cal = make().fit(Normal(np.zeros(300), np.full(300, 2.0)), rng.normal(size=300))

    _, on_path = cal.calibration_map([-1.0, 0.0, 1.0], ndtr([-0.5, 0.0, 0.5]), return_std=True)
    _, off_path = cal.calibration_map([-3.5, 0.0, 3.5], ndtr([2.0, 3.0, -2.0]), return_std=True)

    assert off_path.min() > 1.5 * on_path.max()


@over_maps
def test_a_bent_pit_is_the_starting_point(rng, make):
    """Where PIT recalibration is clearly better, it is the prior mean, in the map as well."""
    loc = rng.uniform(-2, 2, 400)
    bent = make().fit(Normal(loc, np.ones(400)), loc + rng.exponential(size=400))
    straight = make().fit(Normal(loc, np.ones(400)), loc + rng.normal(size=400))
    new = Normal([-1.0, 1.0], [1.0, 1.0])
    points = np.array([[-0.8, -0.5, 0.0, 1.0], [1.2, 1.5, 2.0, 3.0]])

    assert isinstance(bent.start_, PiecewiseMap)
    assert straight.start_ == ScaleMap(1.0)
    wanted = bent.calibration_map(points, new.cdf(points))
    assert_allclose(bent.transform(new).cdf(points), wanted, atol=0.01)
    truth = scipy.stats.expon.cdf(points - new.loc[:, np.newaxis])
    assert_allclose(wanted, truth, atol=0.08)


# ----------------------------------------------------------------------------- ties


TIED = {"gpc 16": lambda: GPCalibrator(16), "gpc 64": GPCalibrator, "gp-density": DensityCalibrator}


@pytest.mark.parametrize("make", TIED.values(), ids=TIED)
@pytest.mark.parametrize("step", [1.0, 0.5])
@pytest.mark.filterwarnings("ignore::regcal.RoundedOutcomesWarning")
def test_rounded_targets_leave_no_holes(rng, make, step):
    """Rounded outcomes neither raise the density at their values nor empty it between them."""
    reach = 1.0 if step == 1.0 else 3.0
    loc, new_loc = rng.uniform(-reach, reach, (2, 500))
    base, new = Normal(loc, np.ones(500)), Normal(new_loc, np.ones(500))
    y, new_y = (np.round(rng.normal(centre) / step) * step for centre in (loc, new_loc))

    calibrated = make().fit(base, y).transform(new)

    assert mean_log_score(calibrated, new_y) >= mean_log_score(new, new_y) - 0.05
    points = new.ppf(np.linspace(0.02, 0.98, 97)[np.newaxis, :])[:100]
    ratio = calibrated[:100].pdf(points) / new[:100].pdf(points)
    assert ratio.min() > 0.05
    assert ratio.max() < 20


@over_maps
def test_zero_inflated_targets(rng, make):
    """Half zeros and a long tail, as in the forest fires data: finite, and better than before."""
    n = 400
    fires = np.where(rng.random((2, n)) < 0.5, 0.0, rng.lognormal(0.0, 1.5, (2, n)))
    base = Normal(rng.normal(fires[0].mean(), 0.3, n), np.full(n, fires[0].std()))

    calibrated = make().fit(base, fires[0]).transform(base)

    scores = calibrated.logpdf(fires[1])
    assert np.isfinite(scores).all()
    assert scores.mean() > mean_log_score(base, fires[1]) + 0.3


# --------------------------------------------------------------------- hostile data


@pytest.mark.filterwarnings("ignore::regcal.FewRowsWarning")  # of odd weights
@pytest.mark.parametrize("data", HOSTILE.values(), ids=HOSTILE)
@pytest.mark.filterwarnings("ignore::regcal.GrossErrorsWarning")
@over_maps
def test_hostile_data_give_valid_distributions(rng, make, data):
    """Whatever the rows, the fit does no harm to them and gives distributions.

    It is silent but for odd weights and gross errors.
    """
    dist, y, weights = data(rng)
    cal = make().fit(dist, y, sample_weight=weights)

    assert np.isfinite([cal.sigma_, cal.log_evidence_, *cal.lengthscales_]).all()
    gain = cal.transform(dist).logpdf(y) - dist.logpdf(y)
    assert np.average(gain, weights=weights) > -0.2
    rows = slice(0, 8)
    assert_valid(cal.transform(dist[rows]), dist[rows], y[rows])


# --------------------------------------------------------------------------- errors


@pytest.mark.parametrize("make", [*MAPS.values(), small_paper], ids=[*MAPS, "gpc-paper"])
def test_constant_targets_are_refused(make):
    """Without a range of targets there is no map to learn."""
    with pytest.raises(ValueError, match=r"All targets equal 1\.5"):
        make().fit(Normal(np.zeros(20), np.ones(20)), np.full(20, 1.5))


@pytest.mark.parametrize("q", [-0.1, 1.2])
def test_calibration_map_refuses_what_is_no_probability(rng, q):
    """A base probability outside [0, 1] is named in the message."""
    cal = GPCalibrator(4).fit(*normal_rows(rng, 20))

    with pytest.raises(ValueError, match=f"between 0 and 1, got {q}"):
        cal.calibration_map([0.0, 0.0], [0.5, q])


@over_maps
def test_unfitted_calibration_map_is_refused(make):
    """A map is asked for only after `fit`."""
    with pytest.raises(NotFittedError):
        make().calibration_map(0.0, 0.5)


@over_maps
def test_a_search_that_begins_where_another_ended_is_short(make, rng):
    """With a tenth of new rows it needs fewer steps, and finds the same map."""
    dist = Normal(rng.normal(size=330), np.ones(330))
    y = dist.loc + 0.3 + np.where(dist.loc > 0, 2.0, 0.7) * rng.normal(size=330)
    observed = make().new_observed().add(dist, y)
    cold, warm = (
        make().solve(observed.after(one)) for one in (None, make().fit(dist[:300], y[:300]))
    )
    points = np.linspace(-3, 4, 15)[np.newaxis, :]

    steps = [one.process_.posterior.n_evaluations for one in (cold, warm)]
    assert steps[1] < steps[0]
    assert_allclose(
        warm.transform(dist[:20]).cdf(points), cold.transform(dist[:20]).cdf(points), atol=0.02
    )
