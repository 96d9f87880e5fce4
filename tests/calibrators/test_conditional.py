"""Calibration given covariates: for whom the model was wrong, and what noise may cost."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats
from scipy.special import ndtr
from sklearn.linear_model import LinearRegression
from sklearn.tree import DecisionTreeRegressor

import regcal
from regcal import AutoCalibrator, ConditionalCalibrator, Normal, get_calibrator
from regcal.calibrators.held_out import HeldOut, deal
from regcal.outcomes import Outcomes


def world(rng, n=1500):
    """Return predictions that know nothing of age and kind, outcomes, and these covariates."""
    age = rng.uniform(0.0, 10.0, n)
    kind = rng.choice(["brick", "wood"], n)
    mean = rng.normal(size=n)
    spread = np.where(kind == "wood", 2.0, 0.7)
    y = mean + np.where(age < 3.0, 1.5, 0.0) + spread * rng.normal(size=n)
    return Normal(mean, np.ones(n)), y, {"age": age, "kind": kind}


def rows_of(columns, rows):
    return {name: np.asarray(values)[rows] for name, values in columns.items()}


@pytest.fixture(scope="module")
def fitted():
    """Return a calibrator and new rows."""
    dist, y, columns = world(np.random.default_rng(0), 3000)
    past, new = slice(0, 1500), slice(1500, None)
    calibrator = ConditionalCalibrator().fit(dist[past], y[past], covariates=rows_of(columns, past))
    return calibrator, dist[new], y[new], rows_of(columns, new)


def coverage(dist, y):
    low, high = dist.interval(0.9)
    return np.mean((low <= y) & (y <= high))


def test_intervals_hold_within_each_group(fitted):
    """They do not for the model, nor after calibration that looks at predictions alone."""
    calibrator, dist, y, columns = fitted
    calibrated = calibrator.transform(dist, covariates=columns)
    wood = columns["kind"] == "wood"

    assert coverage(dist[wood], y[wood]) < 0.7
    for group in (wood, ~wood, columns["age"] < 3.0):
        assert abs(coverage(calibrated[group], y[group]) - 0.9) < 0.05


def test_scores_are_near_those_of_the_truth(fitted):
    """New rows: most of what could be gained is."""
    calibrator, dist, y, columns = fitted
    loc = dist.loc + np.where(columns["age"] < 3.0, 1.5, 0.0)
    truth = Normal(loc, np.where(columns["kind"] == "wood", 2.0, 0.7)).logpdf(y).mean()
    before = dist.logpdf(y).mean()
    after = calibrator.transform(dist, covariates=columns).logpdf(y).mean()

    assert after - before > 0.9 * (truth - before)


def test_the_corrected_cdf_is_what_the_formula_says(fitted):
    """Phi((z - a(x)) / s(x)) before the calibrator on top, which then sees only that."""
    calibrator, dist, y, columns = fitted
    known = calibrator.columns_.read(columns)
    shift, factor = calibrator.correction_(calibrator._columns(dist, known))
    corrected = Normal(dist.loc + shift * dist.scale, factor * dist.scale)

    assert_allclose(corrected.cdf(y), ndtr((dist.probit(y) - shift) / factor), rtol=1e-9)
    assert_allclose(
        calibrator.transform(dist, covariates=columns).cdf(y),
        calibrator.calibrator_.transform(corrected).cdf(y),
        atol=1e-9,
    )


def test_noise_costs_next_to_nothing(rng):
    """Ten columns without any meaning, against the same method without them."""
    n = 3400
    mean = rng.normal(size=n)
    y = mean + 1.5 * rng.normal(size=n)
    dist, noise = Normal(mean, np.ones(n)), rng.normal(size=(n, 10))
    past, new = slice(0, 400), slice(400, None)
    calibrator = get_calibrator("conditional").fit(dist[past], y[past], covariates=noise[past])
    truth = Normal(mean[new], np.full(n - 400, 1.5)).logpdf(y[new]).mean()
    score = calibrator.transform(dist[new], covariates=noise[new]).logpdf(y[new]).mean()

    assert truth - score < 0.02


def test_a_pair_of_regressors_may_learn(rng):
    """A line for the location, a small tree for the spread."""
    x = rng.uniform(-2.0, 2.0, 1200)
    y = x + np.where(x > 0, 2.0, 0.5) * rng.normal(size=1200)
    pair = (LinearRegression(), DecisionTreeRegressor(max_leaf_nodes=2, random_state=0))
    calibrator = ConditionalCalibrator(pair).fit(
        Normal(np.zeros(1200), 1.0), y, covariates={"x": x}
    )
    dist = calibrator.transform(Normal([0.0, 0.0], 1.0), covariates={"x": [-1.0, 1.0]})

    assert calibrator.learner_ == "regressors"
    assert_allclose(dist.median(), [-1.0, 1.0], atol=0.2)
    assert_allclose(dist.std(), [0.5, 2.0], rtol=0.2)


def test_without_covariates_it_looks_at_the_prediction(rng):
    """Wide predictions are right and narrow ones too sure: distribution calibration."""
    spread = rng.choice([0.5, 2.0], 2000)
    y = np.where(spread < 1.0, 1.5, 2.0) * rng.normal(size=2000)
    calibrator = ConditionalCalibrator("additive").fit(Normal(np.zeros(2000), spread), y)
    new = calibrator.transform(Normal([0.0, 0.0], [0.5, 2.0]))

    assert_allclose(new.std(), [1.5, 2.0], rtol=0.1)


def test_censored_rows_teach_where_they_end(rng):
    """The location given a group is that of uncensored rows, not of what was seen."""
    n = 2000
    group = rng.integers(0, 2, n)
    time = 1.5 * group + rng.normal(size=n)
    end = rng.normal(1.0, 1.0, size=n)
    seen = Outcomes.right_censored(np.minimum(time, end), time <= end)
    calibrator = ConditionalCalibrator("additive", support=None)
    calibrator.fit(Normal(np.zeros(n), 1.0), seen, covariates={"group": group.astype(str)})
    medians = calibrator.transform(
        Normal([0.0, 0.0], 1.0), covariates={"group": ["0", "1"]}
    ).median()
    naive = [np.median(np.minimum(time, end)[group == k]) for k in (0, 1)]

    assert abs(medians[1] - medians[0] - 1.5) < 0.2
    assert naive[1] - naive[0] < 1.2


def test_no_row_is_judged_by_its_group(rng):
    """Folds inside take whole groups, so that what a group shares is no use to judge it."""
    n = 400
    groups = np.arange(n) // 20
    rows = HeldOut(
        Normal(np.zeros(n), 1.0), Outcomes.exact(rng.normal(size=n)), np.ones(n), groups=groups
    )
    _, folds = deal(rows, 4, 0)

    for group in range(20):
        assert len(set(folds[groups == group])) == 1
    assert len(set(folds)) == 4


def test_a_few_rows_leave_covariates_alone(rng):
    """Fewer than 30 rows say nothing of them."""
    dist, y, columns = world(rng, 20)
    calibrator = ConditionalCalibrator().fit(dist, y, covariates=columns)

    assert calibrator.learner_ == "none"
    assert calibrator.transform(dist, covariates=columns).cdf(0.0).shape == (20,)


def test_unknown_and_missing_values_are_answered(fitted):
    """A category that was never seen, and gaps, are like missing ones."""
    calibrator, dist, _, _ = fitted
    odd = {"age": [np.nan, 5.0, 1e9], "kind": ["brick", None, "straw"]}

    assert np.isfinite(calibrator.transform(dist[:3], covariates=odd).median()).all()


def test_covariates_that_were_learnt_from_are_asked_for(fitted):
    """The message names them."""
    calibrator, dist, _, _ = fitted
    with pytest.raises(ValueError, match=r"learnt from the covariates age, kind.*covariates="):
        calibrator.transform(dist)


def test_other_columns_are_refused(fitted):
    """A column that is gone, or is no longer of numbers."""
    calibrator, dist, _, columns = fitted
    with pytest.raises(ValueError, match="'kind' not found"):
        calibrator.transform(dist, covariates={"age": columns["age"]})
    with pytest.raises(ValueError, match="holds numbers, but categories"):
        calibrator.transform(dist, covariates={**columns, "kind": columns["age"]})


def test_covariates_are_refused_where_nothing_looks_at_them(rng):
    """Silence would leave the user in the belief that they count."""
    dist, y, columns = world(rng, 50)
    with pytest.raises(ValueError, match="GPCalibrator does not look at covariates"):
        get_calibrator("gpc").fit(dist, y, covariates=columns)
    calibrator = get_calibrator("conditional").fit(dist, y)
    with pytest.raises(ValueError, match="fitted without covariates"):
        calibrator.transform(dist, covariates=columns)


def test_other_learners_are_refused(rng):
    """The message names those that are known."""
    dist, y, columns = world(rng, 50)
    with pytest.raises(ValueError, match="learner must be one of auto, additive, trees"):
        ConditionalCalibrator("forest").fit(dist, y, covariates=columns)


def test_auto_takes_covariates_where_they_help(fitted):
    """And says so."""
    _, dist, y, columns = fitted
    past, new = slice(0, 300), slice(300, None)
    candidates = [(name, get_calibrator(name)) for name in ("identity", "scale")]
    candidates.append(("conditional", ConditionalCalibrator("additive")))
    calibrator = AutoCalibrator(candidates)
    calibrator.fit(dist[past], y[past], covariates=rows_of(columns, past))
    calibrated = calibrator.transform(dist[new], covariates=rows_of(columns, new))

    assert "conditional" in str(calibrator)
    assert regcal.log_score(y[new], calibrated).mean() > dist[new].logpdf(y[new]).mean() + 0.3


@pytest.mark.parametrize("jitter", [0.0, 1e-3])
def test_counts_are_told_apart_by_groups(rng, jitter):
    """A step, or a base that says the same of all rows, does not hide what a group does."""
    n = 500
    old = rng.random(n) < 0.3
    counts = rng.poisson(np.where(old, 8.0, 3.0))
    dist = Normal(4.5 + jitter * rng.normal(size=n), 2.5)
    calibrator = ConditionalCalibrator("additive", regcal.ScaleCalibrator(), step=1)
    calibrator.fit(dist, counts, covariates={"old": old})
    new = calibrator.transform(dist, covariates={"old": old})

    assert abs(new[old].mean().mean() - 8.0) < 1.0
    assert abs(new[~old].mean().mean() - 3.0) < 0.5
    truth = stats.poisson(np.where(old, 8.0, 3.0)).logpmf(counts).mean()
    assert regcal.log_score(counts, new).mean() > truth - 0.15


def test_parts_that_are_none_are_refused(rng):
    """Names and numbers in place of calibrators and regressors."""
    dist, y, columns = world(rng, 50)
    with pytest.raises(TypeError, match=r"calibrator must be a calibrator, got 'scale'"):
        ConditionalCalibrator(calibrator="scale").fit(dist, y, covariates=columns)
    with pytest.raises(ValueError, match=r"pair of regressors, got \(1, 2\)"):
        ConditionalCalibrator((1, 2)).fit(dist, y, covariates=columns)


def test_covariates_in_the_place_of_weights_are_refused(rng):
    """A table has more than one number per row."""
    dist, y, columns = world(rng, 50)
    with pytest.raises(ValueError, match=r"Pass covariates fourth"):
        ConditionalCalibrator().fit_batches([(dist, y, columns["age"][:, np.newaxis])])
