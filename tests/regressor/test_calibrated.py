"""CalibratedRegressorCV keeps scikit-learn's contract and its own."""

import pickle

import joblib
import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from rows import QUICK_AUTO, Recorder, checked_by_scikit_learn
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import BayesianRidge, LinearRegression, QuantileRegressor, Ridge
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from regcal import (
    CalibratedRegressorCV,
    Histogram,
    IdentityCalibrator,
    Mixture,
    MultiQuantileRegressor,
    NormalResidualRegressor,
    OneVsRestCalibrator,
    Outcomes,
    PITCalibrator,
    ScaleCalibrator,
    StackCalibrator,
    get_calibrator,
    log_score,
    predict_dist,
)
from regcal.datasets import load_forest_fires


@checked_by_scikit_learn(
    {
        "calibrated": CalibratedRegressorCV(BayesianRidge(), "scale", ensemble=False),
        "residuals": NormalResidualRegressor(LinearRegression()),
        "held-out residuals": NormalResidualRegressor(Ridge(), cv=3),
        "quantiles": MultiQuantileRegressor(QuantileRegressor(alpha=0.0)),
    },
)
@pytest.mark.filterwarnings("ignore")
def test_scikit_learn_contract(estimator, check):
    """All of scikit-learn's own checks pass."""
    check(estimator)


@pytest.fixture
def frame(data):
    index = [f"row {k}" for k in range(150)]
    return pd.DataFrame(data[0], columns=["a", "b"], index=index), data[1]


# ------------------------------------------------------------------------------------- how it fits


def test_ensemble_averages_the_folds_own_calibrated_models(data):
    """With ensemble=True the result is the one built by hand, fold by fold."""
    X, y = data
    cv = KFold(3)
    model = CalibratedRegressorCV(BayesianRidge(), "scale", cv=cv, ensemble=True).fit(X, y)

    parts = []
    for train, test in cv.split(X):
        base = BayesianRidge().fit(X[train], y[train])
        cal = ScaleCalibrator().fit(predict_dist(base, X[test]), y[test])
        parts.append(cal.transform(predict_dist(base, X)))

    assert len(model.members_) == 3
    assert_allclose(model.predict_dist(X).logpdf(y), Mixture(parts).logpdf(y))


def test_pooling_fits_one_calibrator_and_the_base_on_all_rows(data):
    """With ensemble=False held-out predictions are pooled and the base is refitted."""
    X, y = data
    cv = KFold(3)
    model = CalibratedRegressorCV(BayesianRidge(), "scale", cv=cv, ensemble=False).fit(X, y)

    z = np.empty(len(y))
    for train, test in cv.split(X):
        base = BayesianRidge().fit(X[train], y[train])
        z[test] = predict_dist(base, X[test]).probit(y[test])
    factor = np.sqrt((1 + z @ z) / (1 + len(y)))

    (member,) = model.members_
    assert_allclose(member.calibrator.factor_, factor)
    assert_allclose(member.estimator.coef_, BayesianRidge().fit(X, y).coef_)


def test_constant_targets_are_refused(data):
    """There is nothing to learn from them, and a column was probably mistaken for the target."""
    X, y = data

    with pytest.raises(ValueError, match=r"values of y are 2\.0"):
        CalibratedRegressorCV(BayesianRidge(), "scale").fit(X, np.full(len(y), 2.0))


@pytest.mark.parametrize("name", ["scale", "e-beta", "auto"])
def test_a_fold_with_equal_targets_stays_as_it_is(data, name):
    """It teaches no map: that fold's model stays uncalibrated, and users are told."""
    X, y = data
    order = np.argsort(y)
    y = np.where(np.isin(np.arange(150), order[:50]), -7.5, y)
    folds = [(np.setdiff1d(order, part), part) for part in np.array_split(order, 3)]
    calibrator = QUICK_AUTO if name == "auto" else name
    model = CalibratedRegressorCV(BayesianRidge(), calibrator, cv=folds, ensemble=True)

    with pytest.warns(UserWarning, match=r"all equal in fold 0 \(y = -7\.5\)\. They teach"):
        model.fit(X, y)

    kinds = [type(member.calibrator) for member in model.members_]
    assert [kind is IdentityCalibrator for kind in kinds] == [True, False, False]


def test_equal_targets_in_all_folds_leave_the_model_as_it_is(data):
    """Folds need not hold all rows; what they hold may teach nothing, not even which method."""
    X, y = data
    y = np.where(np.arange(150) < 100, y, 3.0)
    folds = [(np.arange(100), np.arange(100, 150))]
    model = CalibratedRegressorCV(BayesianRidge(), QUICK_AUTO, cv=folds, ensemble=False)

    with pytest.warns(UserWarning, match=r"all equal in all folds \(y = 3\)"):
        model.fit(X, y)

    assert isinstance(model.members_[0].calibrator, IdentityCalibrator)
    assert not hasattr(model, "selection_")


def test_frozen_estimator_is_not_fitted_again(data):
    """All rows given calibrate a frozen model, whatever cv is."""
    X, y = data
    base = BayesianRidge().fit(X[:50], y[:50])
    coefficients = base.coef_.copy()

    model = CalibratedRegressorCV(FrozenEstimator(base), "scale").fit(X[50:], y[50:])

    expected = ScaleCalibrator().fit(predict_dist(base, X[50:]), y[50:]).factor_
    assert_allclose(model.members_[0].calibrator.factor_, expected)
    assert_allclose(base.coef_, coefficients)


@pytest.mark.parametrize("ensemble", [True, False])
def test_members_are_calibrated_again_without_training(data, ensemble):
    """Their models, frozen, are what an uncalibrated model of the same folds predicts."""
    X, y = data
    old = CalibratedRegressorCV(BayesianRidge(), "pit", ensemble=ensemble).fit(X[:90], y[:90])
    bare = CalibratedRegressorCV(BayesianRidge(), "identity", ensemble=ensemble)
    frozen = FrozenEstimator([member.estimator for member in old.members_])

    fresh = clone(old).set_params(estimator=frozen).fit(X[90:], y[90:])

    said = bare.fit(X[:90], y[:90]).predict_dist(X)
    by_hand = PITCalibrator().fit(said[90:], y[90:]).transform(said)
    assert_allclose(fresh.predict_dist(X).cdf(1.0), by_hand.cdf(1.0), atol=1e-12)


def test_auto_chooses_once_on_all_held_out_rows(data):
    """One choice, explained, for all folds."""
    model = CalibratedRegressorCV(BayesianRidge(), QUICK_AUTO, ensemble=True).fit(*data)

    kinds = {type(member.calibrator) for member in model.members_}
    assert len(kinds) == 1
    chosen = model.selection_.chosen_.split(" + ")
    assert set(chosen) <= {row.name for row in model.selection_.scores_}
    assert all(name in repr(model.selection_) for name in chosen)


@pytest.mark.parametrize("ensemble", [True, False])
def test_parallel_fits_give_the_same(data, ensemble):
    """n_jobs changes the time and nothing else, with whatever backend of joblib is set."""
    X, y = data
    model = CalibratedRegressorCV(BayesianRidge(), "scale", ensemble=ensemble)

    alone = clone(model).fit(X, y)
    with joblib.parallel_config(backend="threading"):
        together = model.set_params(n_jobs=2).fit(X, y)

    assert_allclose(alone.predict_dist(X).logpdf(y), together.predict_dist(X).logpdf(y))


@pytest.mark.parametrize("name", ["pit", "isotonic", "e-beta", "gpc", "stack"])
def test_averages_forget_what_they_have_learnt_before(data, name):
    """Answers of one row do not depend on those before, nor on an earlier fit."""
    X, y = data
    calibrator = get_calibrator(name) if name != "stack" else of_two()
    model = CalibratedRegressorCV(BayesianRidge(), calibrator, ensemble=True).fit(X, y)
    levels = [0.1, 0.5, 0.8]
    before = model.predict_quantiles(X[:3], levels)
    row = model.predict_quantiles(X[1:2], levels)

    assert_allclose(row, before[1:2], rtol=1e-12)
    assert_array_equal(model.predict_quantiles(X[1:2], levels), row)
    again = model.fit(X, 2.0 * y).predict_quantiles(X[1:2], levels)
    assert_array_equal(clone(model).fit(X, 2.0 * y).predict_quantiles(X[1:2], levels), again)
    assert_allclose(again, 2.0 * row, rtol=0.2, atol=0.5)


def of_two():
    """Return an average of two calibrators."""
    parts = [(name, get_calibrator(name)) for name in ("gp-density", "e-beta")]
    return StackCalibrator(parts, [0.5, 0.5])


def test_calibration_helps_on_real_data():
    """On forest fires, with their many zeros, calibration gains a lot on held-out rows."""
    data = load_forest_fires()
    order = np.random.default_rng(0).permutation(len(data))
    train, test = order[:350], order[350:]
    model = CalibratedRegressorCV(BayesianRidge(), QUICK_AUTO)
    model.fit(data.X[train], data.y[train])
    plain = BayesianRidge().fit(data.X[train], data.y[train])

    gain = log_score(data.y[test], model.predict_dist(data.X[test])) - log_score(
        data.y[test], predict_dist(plain, data.X[test])
    )

    assert gain.mean() > 0.5


# ------------------------------------------------------------------------------- inside other tools


def test_grid_search_reaches_into_the_calibrator(data):
    """Parameters of estimator and calibrator can be searched."""
    model = CalibratedRegressorCV(BayesianRidge(), OneVsRestCalibrator())
    grid = {"calibrator__thresholds": [4, 12], "estimator__max_iter": [50]}

    search = GridSearchCV(model, grid, cv=2, scoring=_mean_log_score).fit(*data)

    assert len(set(search.cv_results_["mean_test_score"])) == 2
    chosen = search.best_params_["calibrator__thresholds"]
    assert len(search.best_estimator_.members_[0].calibrator.thresholds_) == chosen


def _mean_log_score(model, X, y):
    return log_score(y, model.predict_dist(X)).mean()


def test_pipelines_inside_and_outside(data):
    """It calibrates a pipeline, and is the last step of one."""
    X, y = data
    inside = CalibratedRegressorCV(make_pipeline(StandardScaler(), BayesianRidge()), "scale")
    outside = make_pipeline(StandardScaler(), CalibratedRegressorCV(BayesianRidge(), "scale"))

    inner, outer = inside.fit(X, y).predict(X), outside.fit(X, y).predict(X)

    assert_allclose(inner, outer, rtol=1e-2)
    assert_allclose(predict_dist(outside, X).mean(), outer)


def test_pickle_keeps_predictions(data):
    """A fitted model survives pickling."""
    X, y = data
    model = CalibratedRegressorCV(BayesianRidge(), QUICK_AUTO).fit(X, y)

    again = pickle.loads(pickle.dumps(model))

    assert_allclose(again.predict_dist(X).logpdf(y), model.predict_dist(X).logpdf(y))


# ----------------------------------------------------------------------------------------- answers


def test_answers_agree_with_the_distribution(data):
    """Every predict method asks the same distribution."""
    X, y = data
    model = CalibratedRegressorCV(BayesianRidge(), "pit").fit(X, y)
    dist = model.predict_dist(X)

    assert_allclose(model.predict(X), dist.mean())
    assert_allclose(model.set_params(point="median").predict(X), dist.median())
    assert_allclose(model.predict_quantiles(X, [0.1, 0.6]), dist.ppf([[0.1, 0.6]]))
    assert_allclose(model.predict_interval(X, 0.8).T, dist.interval(0.8))
    assert_allclose(model.predict_below(X, 0.5), dist.cdf(0.5))
    assert_allclose(model.predict_above(X, y), dist.sf(y))
    assert model.predict_below(X, [[0.0, 1.0, 2.0]]).shape == (150, 3)


def test_polars_frames_give_what_arrays_give(data):
    """A polars frame is a table like any other."""
    polars = pytest.importorskip("polars")
    X, y = data
    table = polars.DataFrame(X, schema=["a", "b"])

    from_frame = CalibratedRegressorCV(BayesianRidge(), "scale").fit(table, y)
    from_array = CalibratedRegressorCV(BayesianRidge(), "scale").fit(X, y)

    assert list(from_frame.feature_names_in_) == ["a", "b"]
    assert_allclose(from_frame.predict_quantiles(table, 0.3), from_array.predict_quantiles(X, 0.3))


# ------------------------------------------------------------------------------------------ errors


@pytest.mark.parametrize("spread", [0.0, np.nan])
def test_base_without_a_spread(data, spread):
    """A base model that claims certainty, or does not know, is named."""

    class Certain(Recorder):
        def predict(self, X, return_std=False):
            return np.zeros(len(X)), np.full(len(X), spread)

    with pytest.raises(ValueError, match="What Certain predicted is not a distribution"):
        CalibratedRegressorCV(Certain(), "scale").fit(*data)


def test_point_model_is_refused_with_a_way_out(data):
    """A model that predicts a number only is pointed to the wrapper."""
    with pytest.raises(TypeError, match=r"LinearRegression predicts no distribution.*NormalResid"):
        CalibratedRegressorCV(LinearRegression()).fit(*data)


def test_plain_arrays_are_not_checked_twice(data, monkeypatch):
    """For a single row scikit-learn's checks take as long as a linear model; its model has them."""
    model = CalibratedRegressorCV(BayesianRidge(), "scale", ensemble=False).fit(*data)
    row = data[0][:1]
    expected = model.predict_quantiles(row.tolist(), [0.1, 0.9])

    def refuse(*args, **kwargs):
        raise AssertionError

    monkeypatch.setattr("regcal.regressor._folds.validate_data", refuse)

    assert_allclose(model.predict_quantiles(row, [0.1, 0.9]), expected)


@pytest.mark.parametrize("X", [np.ones((1, 3)), np.ones(2), np.ones((0, 2))])
def test_arrays_of_the_wrong_shape_are_refused(data, X):
    """What is no table of the columns seen in fit never reaches the model."""
    model = CalibratedRegressorCV(BayesianRidge(), "scale", ensemble=False).fit(*data)

    with pytest.raises(ValueError, match=r"features|2D array|minimum of 1"):
        model.predict_dist(X)


def test_arrays_after_frames_are_warned_about(frame):
    """A model that knows its columns by name says so when it gets none."""
    X, y = frame
    model = CalibratedRegressorCV(BayesianRidge(), "scale", ensemble=False).fit(X, y)

    with pytest.warns(UserWarning, match="valid feature names"):
        model.predict_dist(X.to_numpy())


def test_other_columns_at_prediction(frame):
    """Columns that were not there in fit are named."""
    X, y = frame
    model = CalibratedRegressorCV(BayesianRidge(), "scale").fit(X, y)

    with pytest.raises(ValueError, match=r"Feature names unseen at fit time:\n- c"):
        model.predict(X.rename(columns={"b": "c"}))
    with pytest.raises(ValueError, match="X has 1 features, but CalibratedRegressorCV"):
        model.fit(X.to_numpy(), y).predict(X.to_numpy()[:, :1])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"ensemble": "yes"}, "ensemble must be True, False or \"auto\", got 'yes'"),
        ({"point": "mode"}, 'point must be "mean" or "median", got \'mode\''),
        ({"guarantee": "sure"}, 'guarantee must be None, "split", "cross".*got \'sure\''),
        ({"calibrator": "magic"}, "There is no calibrator 'magic'"),
    ],
)
def test_unknown_options(data, options, message):
    """Options outside of their choices are refused."""
    with pytest.raises(ValueError, match=message):
        CalibratedRegressorCV(BayesianRidge(), **options).fit(*data)


def test_predicting_before_fitting(data):
    """Nothing is predicted by a model that was not fitted."""
    with pytest.raises(NotFittedError):
        CalibratedRegressorCV(BayesianRidge()).predict_dist(data[0])


def test_random_state_decides_how_rows_are_dealt(rng):
    """The same number deals the same folds, another one others; 0 is the default."""
    X = rng.normal(size=(50, 2))
    y = X[:, 0] + rng.normal(size=50)

    def factors(**options):
        model = CalibratedRegressorCV(BayesianRidge(), "scale", ensemble=True, **options)
        return [member.calibrator.factor_ for member in model.fit(X, y).members_]

    assert factors() == factors(random_state=0)
    assert factors(random_state=7) == factors(random_state=7) != factors()


class Bins(RegressorMixin, BaseEstimator):
    """Predicts bins from 0 to 2 whatever it was fitted to."""

    def fit(self, X, y):
        self.n_features_in_ = X.shape[1]
        return self

    def predict_dist(self, X):
        return Histogram([0.0, 1.0, 2.0], np.full((len(X), 2), 0.5))


def test_censoring_beyond_every_prediction_is_refused(data):
    """As calibrators refuse it, before a method is chosen."""
    X, y = data
    observed = np.arange(len(y)) % 2 == 0
    seen = Outcomes.right_censored(np.where(observed, np.clip(y, 0.1, 1.9), 5.0), observed)

    with pytest.raises(ValueError, match=f"All {(~observed).sum()} intervals .* from 5 to inf"):
        CalibratedRegressorCV(Bins()).fit(X, seen)
