"""predict_dist understands what fitted models offer, and says what it looked for."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.base import BaseEstimator
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import (
    BaggingRegressor,
    GradientBoostingRegressor,
    HistGradientBoostingRegressor,
    RandomForestRegressor,
)
from sklearn.frozen import FrozenEstimator
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import WhiteKernel
from sklearn.linear_model import ARDRegression, BayesianRidge, LinearRegression, QuantileRegressor
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, PowerTransformer, StandardScaler

import regcal
from regcal import Mixture, Normal, Quantiles, predict_dist


@pytest.fixture
def data(rng):
    X = rng.normal(size=(120, 3))
    return X, X @ [1.0, -2.0, 0.5] + rng.normal(size=120)


@pytest.mark.parametrize(
    "model",
    [BayesianRidge(), ARDRegression(), GaussianProcessRegressor(WhiteKernel(), normalize_y=True)],
    ids=lambda model: type(model).__name__,
)
def test_return_std_gives_a_normal(data, model):
    """Mean and standard deviation of scikit-learn's models are passed on."""
    X, y = data
    mean, std = model.fit(X, y).predict(X, return_std=True)

    dist = predict_dist(model, X)

    assert isinstance(dist, Normal)
    assert_allclose(dist.loc, mean)
    assert_allclose(dist.scale, std)


def test_wrappers_are_looked_through(data):
    """Pipelines, frozen estimators and searches give what their model gives."""
    X, y = data
    plain = make_pipeline(StandardScaler(), BayesianRidge()).fit(X, y)
    mean, std = plain.predict(X, return_std=True)
    search = GridSearchCV(BayesianRidge(), {"max_iter": [100, 300]}).fit(X, y)

    assert_allclose(predict_dist(plain, X).loc, mean)
    assert_allclose(predict_dist(plain, X).scale, std)
    assert_allclose(predict_dist(FrozenEstimator(plain), X).scale, std)
    assert_allclose(predict_dist(search, X).loc, search.predict(X))


def crossing_allowed(test):
    return pytest.mark.filterwarnings("ignore::regcal.CrossingQuantilesWarning")(test)


@crossing_allowed
def test_dict_of_quantile_regressors_is_sorted_by_level(data):
    """Levels are the keys, in whatever order they come."""
    X, y = data
    models = {
        level: HistGradientBoostingRegressor(loss="quantile", quantile=level, max_iter=20).fit(X, y)
        for level in (0.9, 0.1, 0.5)
    }

    dist = predict_dist(models, X)

    assert isinstance(dist, Quantiles)
    expected = np.sort(np.column_stack([models[k].predict(X) for k in (0.1, 0.5, 0.9)]), axis=1)
    assert_allclose(dist.ppf([[0.1, 0.5, 0.9]]), expected, atol=2e-3)


@crossing_allowed
def test_list_of_quantile_regressors_tells_its_own_levels(data):
    """Levels are read from the models."""
    X, y = data
    models = [
        QuantileRegressor(quantile=0.8, alpha=0.0).fit(X, y),
        GradientBoostingRegressor(loss="quantile", alpha=0.2, n_estimators=5).fit(X, y),
    ]

    dist = predict_dist(models, X)

    expected = np.sort(np.column_stack([model.predict(X) for model in models]), axis=1)
    assert_allclose(dist.ppf([[0.2, 0.8]]), expected)


def test_list_of_probabilistic_models_is_their_average(data):
    """Members that know their uncertainty form a mixture."""
    X, y = data
    models = [BayesianRidge().fit(X[:60], y[:60]), BayesianRidge().fit(X[60:], y[60:])]

    dist = predict_dist(models, X)

    assert isinstance(dist, Mixture)
    expected = np.mean([predict_dist(model, X).cdf(0.0) for model in models], axis=0)
    assert_allclose(dist.cdf(0.0), expected)


def test_bagging_of_probabilistic_models_uses_each_members_columns(data):
    """Members that saw some columns are given those columns."""
    X, y = data
    model = BaggingRegressor(BayesianRidge(), 4, max_features=2, random_state=0).fit(X, y)

    assert_allclose(predict_dist(model, X).mean(), model.predict(X))


def test_registered_adapter_comes_first_and_holds_for_subclasses(data):
    """A user's adapter beats what the class itself offers."""

    class Own(BayesianRidge):
        pass

    class Child(Own):
        pass

    @regcal.register_adapter(Own)
    def adapt(model, X):
        return np.zeros(len(X)), np.full(len(X), 7.0)

    X, y = data

    assert_allclose(predict_dist(Child().fit(X, y), X).scale, 7.0)
    assert predict_dist(BayesianRidge().fit(X, y), X).scale[0] != 7.0


@pytest.mark.parametrize("model", [LinearRegression(), RandomForestRegressor(5)])
def test_point_models_are_refused_with_a_way_out(data, model):
    """The message names the model, what was looked for and the wrapper."""
    with pytest.raises(TypeError, match=type(model).__name__) as caught:
        predict_dist(model.fit(*data), data[0])

    for part in ("return_std", "pred_dist", "quantiles", "NormalResidualRegressor"):
        assert part in str(caught.value)


class Hazards(LinearRegression):
    """A model of survival times: `predict` gives a risk, as in scikit-survival."""

    def predict_survival_function(self, X):
        return np.exp(-np.outer(np.exp(self.predict(X)), np.arange(3)))


def test_models_of_survival_are_not_sent_to_residuals(data):
    """A risk has no residuals; the message says how curves are read."""
    for ask in (
        lambda: predict_dist(Hazards().fit(*data), data[0]),
        lambda: regcal.CalibratedRegressorCV(Hazards(), "scale").fit(*data),
    ):
        with pytest.raises(
            TypeError, match=r"Hazards predicts survival curves.*register_adapter"
        ) as caught:
            ask()

        assert "Residual" not in str(caught.value)


def test_object_without_predict_is_refused():
    """What is no model is not sent to the residual wrapper."""
    with pytest.raises(TypeError, match="Pass a fitted model"):
        predict_dist(object(), np.zeros((2, 1)))


class Broken(BaseEstimator):
    def __init__(self, spread):
        self.spread = spread

    def predict(self, X, return_std=False):
        return np.zeros(len(X)), np.full(len(X), self.spread)


@pytest.mark.parametrize("spread", [0.0, -1.0, np.nan])
def test_invalid_spread_names_the_model(spread):
    """A spread that is no spread is an error that says whose it is."""
    with pytest.raises(ValueError, match=r"What Broken predicted is not a distribution\. scale"):
        predict_dist(Broken(spread), np.zeros((3, 1)))


# ------------------------------------------------------------------------ models of other packages


def test_ngboost(data):
    """NGBoost's normal distributions keep their parameters."""
    ngboost = pytest.importorskip("ngboost")
    X, y = data
    model = ngboost.NGBRegressor(n_estimators=10, verbose=False).fit(X, y)

    dist = predict_dist(model, X)

    assert_allclose(dist.mean(), model.pred_dist(X).params["loc"])
    assert_allclose(dist.std(), model.pred_dist(X).params["scale"])


def test_ngboost_family_that_is_not_normal(data):
    """Other families of NGBoost give their own density."""
    ngboost = pytest.importorskip("ngboost")
    X, y = data
    y = np.exp(y / 4)
    model = ngboost.NGBRegressor(ngboost.distns.LogNormal, n_estimators=10, verbose=False)
    model.fit(X, y)

    assert_allclose(predict_dist(model, X).logpdf(y), model.pred_dist(X).logpdf(y))


def test_quantile_forest(data):
    """Quantiles that the forest predicts are quantiles of the distribution."""
    quantile_forest = pytest.importorskip("quantile_forest")
    X, y = data
    model = quantile_forest.RandomForestQuantileRegressor(30, random_state=0, min_samples_leaf=5)
    model.fit(X, y)

    dist = predict_dist(model, X[:20])

    expected = model.predict(X[:20], quantiles=[0.1, 0.5, 0.9])
    assert_allclose(dist.ppf([[0.1, 0.5, 0.9]]), expected, atol=2e-3)


@pytest.mark.filterwarnings("ignore")
def test_skpro(data):
    """Skpro's distributions keep mean and spread."""
    pytest.importorskip("skpro")
    import pandas as pd
    from skpro.regression.residual import ResidualDouble

    X, y = data
    X, y = pd.DataFrame(X, columns=list("abc")), pd.DataFrame({"y": y})
    model = ResidualDouble(LinearRegression()).fit(X, y)

    dist = predict_dist(model, X)

    assert_allclose(dist.mean(), model.predict(X)["y"], rtol=1e-5)
    assert_allclose(dist.var(), model.predict_var(X)["y"], rtol=1e-4)


def xgboost_of(levels):
    xgboost = pytest.importorskip("xgboost")
    return xgboost.XGBRegressor(
        objective="reg:quantileerror", quantile_alpha=levels, n_estimators=5, n_jobs=1
    )


def catboost_of(loss):
    catboost = pytest.importorskip("catboost")
    return catboost.CatBoostRegressor(
        n_estimators=5, loss_function=loss, verbose=0, allow_writing_files=False, thread_count=1
    )


BOOSTERS = {
    "xgboost": lambda: xgboost_of([0.9, 0.1, 0.5]),
    "catboost": lambda: catboost_of("MultiQuantile:alpha=0.9,0.1,0.5"),
}


@pytest.mark.parametrize("name", BOOSTERS)
@pytest.mark.filterwarnings("ignore:.*cross")
def test_boosters_of_several_quantiles(data, name):
    """The columns of the prediction are the quantiles of the loss, in the order of its levels."""
    X, y = data
    model = BOOSTERS[name]().fit(X, y)
    columns = model.predict(X)[:, [1, 2, 0]]

    dist = predict_dist(model, X)

    assert isinstance(dist, Quantiles)
    rows = np.flatnonzero((np.diff(columns) > 0).all(axis=1))
    assert len(rows) > 60
    assert_allclose(dist[rows].ppf([[0.1, 0.5, 0.9]]), columns[rows], rtol=1e-5)


@pytest.mark.parametrize("make", [xgboost_of, lambda q: catboost_of(f"Quantile:alpha={q}")])
@pytest.mark.filterwarnings("ignore:.*cross")
def test_list_of_boosters_tells_its_own_levels(data, make):
    """Boosters of one quantile each are a distribution together, and none alone."""
    X, y = data
    models = [make(level).fit(X, y) for level in (0.8, 0.2)]

    assert_allclose(predict_dist(models, X).levels, [0.2, 0.8])
    with pytest.raises(TypeError, match="predicts no distribution"):
        predict_dist(models[0], X)


def lightgbm_of(level):
    lightgbm = pytest.importorskip("lightgbm")
    return lightgbm.LGBMRegressor(
        objective="quantile", alpha=level, n_estimators=5, n_jobs=1, verbose=-1
    )


@pytest.mark.parametrize(
    "make", [xgboost_of, lightgbm_of, lambda q: catboost_of(f"Quantile:alpha={q}")]
)
@pytest.mark.filterwarnings("ignore:.*cross")
def test_dict_of_boosters_is_calibrated(data, make):
    """A model per level is fitted and calibrated with the others; one alone names the way out."""
    X, y = data
    models = {level: make(level) for level in (0.1, 0.5, 0.9)}
    model = regcal.CalibratedRegressorCV(models, "identity", cv=2, ensemble=False).fit(X, y)
    alone = np.sort(np.column_stack([m.fit(X, y).predict(X) for m in models.values()]), axis=1)

    rows = np.flatnonzero((np.diff(alone) > 1e-6).all(axis=1))
    assert len(rows) > 60
    found = model.predict_quantiles(X, [0.1, 0.5, 0.9])
    assert_allclose(np.asarray(found)[rows], alone[rows], rtol=1e-4)
    with pytest.raises(TypeError, match=r"quantile of level 0\.5.*MultiQuantileRegressor"):
        regcal.CalibratedRegressorCV(models[0.5]).fit(X, y)


@pytest.mark.filterwarnings("ignore:.*cross")
def test_boosters_of_lightgbm_itself(data):
    """Its own Booster keeps the level in its parameters."""
    lightgbm = pytest.importorskip("lightgbm")
    X, y = data
    quiet = {"objective": "quantile", "verbose": -1, "num_threads": 1}
    models = [
        lightgbm.train({**quiet, "alpha": level}, lightgbm.Dataset(X, y), 5) for level in (0.8, 0.2)
    ]

    assert_allclose(predict_dist(models, X).levels, [0.2, 0.8])


def test_xgboost_without_a_level(data):
    """It predicts nothing yet, which the message says instead of a KeyError."""
    xgboost = pytest.importorskip("xgboost")
    model = xgboost.XGBRegressor(objective="reg:quantileerror")

    with pytest.raises(TypeError, match="predicts no distribution"):
        regcal.CalibratedRegressorCV(model).fit(*data)


class TabPFNLike(BaseEstimator):
    """As much of TabPFN's regressor as is used."""

    def predict(self, X, *, output_type="mean", quantiles=None):
        assert output_type == "full", "quantiles alone give a mean"
        return np.zeros(len(X)), np.ones(len(X))


def test_tabpfn_is_asked_for_its_full_output(data):
    """It has a parameter of quantiles, too, which is not heeded without another."""
    assert isinstance(predict_dist(TabPFNLike(), data[0]), Normal)


def test_catboost_with_uncertainty(data):
    """Its second column is a variance."""
    X, y = data
    model = catboost_of("RMSEWithUncertainty").fit(X, y)
    mean, log_std = model.predict(X, prediction_type="RawFormulaVal").T

    dist = predict_dist(model, X)

    assert_allclose(dist.mean(), mean)
    assert_allclose(dist.std(), np.exp(log_std))


@pytest.mark.parametrize("name", [*BOOSTERS, "uncertainty"])
@pytest.mark.filterwarnings("ignore:.*cross")
def test_boosters_are_calibrated_as_they_are(data, name):
    """No wrapper is needed: they are known to predict distributions before they are fitted."""
    make = BOOSTERS.get(name, lambda: catboost_of("RMSEWithUncertainty"))
    model = regcal.CalibratedRegressorCV(make(), "scale", cv=2, ensemble=False).fit(*data)

    assert len(model.predict_dist(data[0][:3])) == 3


@pytest.mark.parametrize(
    "options",
    [
        {"func": np.log1p, "inverse_func": np.expm1},
        {"transformer": FunctionTransformer(np.log1p, np.expm1)},
        {"transformer": PowerTransformer()},
        {"transformer": StandardScaler()},
        {},
    ],
    ids=["functions", "function", "power", "standard", "nothing"],
)
def test_transformed_targets(data, options):
    """Quantiles of the target are the inner model's quantiles, carried back by scikit-learn."""
    X, y = data
    y = np.exp(y / 3.0)
    model = TransformedTargetRegressor(BayesianRidge(), **options).fit(X, y)
    inner = predict_dist(model.regressor_, X)
    wanted = [
        model.transformer_.inverse_transform(inner.ppf(level)[:, np.newaxis])[:, 0]
        for level in (0.05, 0.5, 0.95)
    ]

    dist = predict_dist(model, X)

    assert_allclose(dist.ppf([[0.05, 0.5, 0.95]]), np.column_stack(wanted), rtol=1e-6)
    assert isinstance(dist, Normal) == (options == {} or "StandardScaler" in str(options))


def test_transformed_targets_are_calibrated(data):
    """The wrapper is looked through before it is fitted, and nothing is below the support."""
    X, y = data
    model = TransformedTargetRegressor(BayesianRidge(), func=np.log, inverse_func=np.exp)
    fitted = regcal.CalibratedRegressorCV(model, "scale", cv=2).fit(X, np.exp(y / 3.0))

    assert_allclose(fitted.predict_below(X[:4], 0.0), 0.0)
    with pytest.raises(TypeError, match="LinearRegression predicts no distribution"):
        regcal.CalibratedRegressorCV(TransformedTargetRegressor(LinearRegression())).fit(X, y)
