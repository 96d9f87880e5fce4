"""What a calibrator learnt from covariates, in the units of y."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.inspection import partial_dependence
from sklearn.linear_model import LinearRegression
from sklearn.tree import DecisionTreeRegressor

import regcal
from regcal import CalibratedRegressorCV, ConditionalCalibrator, Normal, NormalResidualRegressor

SHALLOW = DecisionTreeRegressor(max_depth=3, min_samples_leaf=40, random_state=0)
LEARNERS = ("additive", (SHALLOW, SHALLOW))


@pytest.fixture(scope="module")
def planted():
    """Return rows of three kinds: right, 3 units too high, and twice too sure; and a number."""
    rng = np.random.default_rng(0)
    n = 1800
    kind = rng.choice(["plain", "high", "wild"], n)
    loc = rng.uniform(20.0, 40.0, n)
    y = loc + 2.0 * rng.normal(-1.5 * (kind == "high"), np.where(kind == "wild", 2.0, 1.0))
    return Normal(loc, 2.0), y, {"kind": kind, "noise": rng.normal(size=n)}


def some_of(rows, planted):
    """Return some of the planted rows."""
    dist, y, covariates = planted
    return dist[rows], y[rows], {name: values[rows] for name, values in covariates.items()}


@pytest.fixture(scope="module", params=LEARNERS, ids=("additive", "regressors"))
def explained(request, planted):
    """Return an explanation of new rows."""
    dist, y, covariates = some_of(slice(0, 900), planted)
    calibrator = ConditionalCalibrator(request.param).fit(dist, y, covariates=covariates)
    return regcal.explain(calibrator, *some_of(slice(900, None), planted), unit="days")


def segment_of(explanation, label):
    (found,) = [one for one in explanation.segments if one.segment == label]
    return found


def test_segments_have_the_mean_error_and_the_spread_of_their_rows(explained, planted):
    """Compared with means and deviations of the residuals of each kind."""
    dist, y, covariates = some_of(slice(900, None), planted)
    residuals = y - dist.median()
    for kind in ("plain", "high", "wild"):
        own = residuals[covariates["kind"] == kind]
        segment = segment_of(explained, f"kind = {kind}")

        assert segment.n_rows == len(own)
        assert_allclose(segment.shift, own.mean(), atol=0.3)
        assert_allclose(segment.factor, own.std() / 2.0, rtol=0.2)
        assert segment.shift_lower < own.mean() < segment.shift_upper
        assert segment.factor_lower < segment.factor < segment.factor_upper


def test_sentences_tell_what_was_planted_and_nothing_of_noise(explained):
    """Largest first, in the units of y."""
    said = explained.sentences()

    (high,) = [one for one in said if one.startswith("for kind = high the model predicted")]
    assert 2.5 < float(high.split()[7]) < 3.5
    assert any(one.startswith("for kind = wild the model was") for one in said)
    assert "days too much (" in " ".join(said)
    assert not any("noise" in one or "predicted spread" in one for one in said)
    assert all(one in str(explained) for one in said[:5])


def test_importance_is_the_loss_of_log_score(explained):
    """The planted covariate is worth nats, the others next to nothing."""
    found = {one.name: one for one in explained.covariates}

    assert explained.covariates[0].name == "kind"
    assert found["kind"].importance > 5.0 * found["kind"].standard_error > 0.0
    assert abs(found["noise"].importance) < 0.2 * found["kind"].importance
    assert explained.n_scored == 900
    worth = f"is worth {explained.gain:.2g} nats a row"
    cost = f"would cost, in nats a row, on 900 given rows: kind {found['kind'].importance:.2g}"
    assert worth in explained.headline() and cost in explained.importances()


def test_units_of_y_do_not_matter(planted):
    """Shifts are in the units of y, factors and importances have none."""
    dist, y, covariates = some_of(slice(0, 300), planted)
    answers = []
    for unit in (1.0, 1000.0):
        own = Normal(unit * dist.loc, unit * 2.0)
        calibrator = ConditionalCalibrator("additive").fit(own, unit * y, covariates=covariates)
        answers.append(regcal.explain(calibrator, own, unit * y, covariates))
    small, large = answers
    for one, other in zip(small.segments, large.segments, strict=True):
        assert_allclose(1000.0 * one.shift, other.shift, rtol=1e-3, atol=1e-2)
        assert_allclose(one.factor, other.factor, rtol=1e-3)
    others = {one.name: one for one in large.covariates}
    for one in small.covariates:
        assert_allclose(one.importance, others[one.name].importance, rtol=0.02, atol=1e-4)


def test_an_effect_along_a_covariate_is_the_partial_dependence_of_scikit_learn(rng):
    """For a pair of regressors, with normal predictions whose spread is 2."""
    x = rng.normal(size=(200, 2))
    y = 2.0 * (x[:, 0] + x[:, 0] * x[:, 1] + rng.normal(size=200))
    dist = Normal(np.zeros(200), 2.0)
    pair = (DecisionTreeRegressor(max_depth=4, random_state=0), LinearRegression())
    calibrator = ConditionalCalibrator(pair, with_prediction=False).fit(dist, y, covariates=x)
    explanation = regcal.explain(calibrator, dist, covariates=x)
    (effect,) = [one for one in explanation.covariates if one.name == "x0"]
    correction = calibrator.correction_
    ((of_folds,), (share,)) = correction.shift.parts, correction.shift.shares
    found = [
        partial_dependence(one.regressor, x, [0], custom_values={0: effect.values}, method="brute")[
            "average"
        ][0]
        for one in of_folds.parts
    ]
    shift = correction.origin + correction.unit * share * np.mean(found, axis=0)

    assert_allclose(effect.shift[1], 2.0 * shift)


def test_an_effect_along_a_covariate_is_the_term(planted):
    """For an additive correction, up to a constant; its band is the posterior of the term."""
    dist, y, covariates = some_of(slice(0, 600), planted)
    calibrator = ConditionalCalibrator("additive").fit(dist, y, covariates=covariates)
    explanation = regcal.explain(calibrator, dist, covariates=covariates)
    (effect,) = [one for one in explanation.covariates if one.name == "kind"]
    correction = calibrator.correction_
    ((of_folds,), (share,)) = correction.shift.parts, correction.shift.shares
    levels = effect.values.astype(int)
    term = np.mean([one.coefficients[0][levels] for one in of_folds.parts], axis=0)
    expected = 2.0 * correction.unit * share * term

    assert effect.labels == ("high", "plain", "wild")
    assert_allclose(effect.shift[1] - effect.shift[1, 0], expected - expected[0], atol=1e-9)
    assert (effect.shift[0] < effect.shift[1]).all() and (effect.shift[1] < effect.shift[2]).all()


@pytest.mark.parametrize("learner", LEARNERS, ids=("additive", "regressors"))
def test_calibrated_models_are_rarely_blamed(learner):
    """Bands hold in all segments at once: one explanation in twenty says something."""
    blamed = 0
    for seed in range(6):
        rng = np.random.default_rng(seed)
        x, dist = (
            {"a": rng.normal(size=300), "b": rng.integers(0, 4, 300)},
            Normal(np.zeros(300), 1.0),
        )
        calibrator = ConditionalCalibrator(learner, with_prediction=False)
        calibrator.fit(dist, rng.normal(size=300), covariates=x)
        said = regcal.explain(calibrator, dist, covariates=x).sentences()
        blamed += bool(said)

    assert blamed <= 1


def test_chance_among_the_given_rows_blames_no_column(rng):
    """Rows of a segment of noise differ a little in the column that matters: not its fault."""
    x = rng.normal(size=(600, 9))
    dist, y = Normal(np.zeros(600), 1.0), rng.normal(2.0 * x[:, 0])
    calibrator = ConditionalCalibrator("additive", with_prediction=False)
    calibrator.fit(dist[:300], y[:300], covariates=x[:300])
    said = regcal.explain(calibrator, dist[300:], covariates=x[300:]).sentences()

    assert said and all("x0" in one or "all rows" in one for one in said)


# ------------------------------------------------------------------------------------------ models


@pytest.mark.parametrize("ensemble", [True, False])
def test_a_model_is_explained_along_columns_of_x(ensemble, rng):
    """A straight line through a bend: too low in the middle, too high at both ends."""
    X = rng.uniform(-1.0, 1.0, size=(400, 2))
    y = -3.0 * X[:, 0] ** 2 + 0.3 * rng.normal(size=400)
    base = NormalResidualRegressor(LinearRegression())
    calibrator = ConditionalCalibrator("additive")
    model = CalibratedRegressorCV(base, calibrator, ensemble=ensemble, covariates=[0]).fit(X, y)
    explanation = regcal.explain(model, X)
    shifts = [one.shift for one in explanation.segments if one.covariate == "x0"]

    assert np.isnan(explanation.covariates[0].importance) and explanation.n_scored == 0
    assert len(shifts) == 5
    assert shifts[0] < -0.5 and shifts[4] < -0.5 and shifts[2] > 0.5
    with pytest.raises(ValueError, match="takes covariates from X"):
        regcal.explain(model, X, covariates=X)


def test_a_choice_without_covariates_has_nothing_to_tell(rng):
    """Auto may find that covariates are worth nothing."""
    dist, y, x = Normal(np.zeros(60), 1.0), rng.normal(size=60), {"x": rng.normal(size=60)}
    candidates = [
        ("identity", regcal.IdentityCalibrator()),
        ("conditional", ConditionalCalibrator("additive")),
    ]
    auto = regcal.AutoCalibrator(candidates).fit(dist, y, covariates=x)
    explanation = regcal.explain(auto, dist, covariates=x)

    assert auto.chosen_ == "identity"
    assert explanation.segments == () and explanation.sentences() == []
    assert "No covariate tells" in str(explanation)


def test_an_average_is_explained_by_what_looks_at_covariates(planted):
    """The other members of a stack have nothing to say."""
    dist, y, covariates = some_of(slice(0, 600), planted)
    conditional = ConditionalCalibrator("additive")
    parts = [("scale", regcal.ScaleCalibrator()), ("conditional", conditional)]
    stack = regcal.StackCalibrator(parts, [0.5, 0.5]).fit(dist, y, covariates=covariates)
    alone = regcal.ConditionalCalibrator("additive").fit(dist, y, covariates=covariates)

    assert (
        regcal.explain(stack, dist, covariates=covariates).segments
        == regcal.explain(alone, dist, covariates=covariates).segments
    )


def test_weights_count_rows(planted):
    """A weight of 0 leaves a row out."""
    dist, y, covariates = some_of(slice(0, 600), planted)
    calibrator = ConditionalCalibrator("additive").fit(dist, y, covariates=covariates)
    weights = (np.arange(600) < 400).astype(float)
    weighted = regcal.explain(calibrator, dist, covariates=covariates, sample_weight=weights)
    some = {name: values[:400] for name, values in covariates.items()}
    part = regcal.explain(calibrator, dist[:400], covariates=some)

    assert weighted.segments == part.segments


def test_what_cannot_be_explained_is_refused():
    """The message says what to do instead."""
    dist = Normal([0.0, 0.0, 0.0], 1.0)
    scale = regcal.ScaleCalibrator().fit(dist, [1.0, 2.0, 0.5])

    with pytest.raises(ValueError, match=r"ScaleCalibrator does not look at covariates.*audit"):
        regcal.explain(scale, dist)
    with pytest.raises(TypeError, match="Cannot explain a LinearRegression"):
        regcal.explain(LinearRegression(), [[0.0]])
