"""Quantile regressors joined to a distribution."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.ensemble import GradientBoostingRegressor, HistGradientBoostingRegressor
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import QuantileRegressor, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import regcal
from regcal import CalibratedRegressorCV, MultiQuantileRegressor


@pytest.mark.parametrize(
    ("estimator", "name"),
    [
        (QuantileRegressor(alpha=0.0), "quantile"),
        (HistGradientBoostingRegressor(loss="quantile", max_iter=5), "quantile"),
        (GradientBoostingRegressor(loss="quantile", n_estimators=5, random_state=0), "alpha"),
        (
            make_pipeline(StandardScaler(), QuantileRegressor(alpha=0.0)),
            "quantileregressor__quantile",
        ),
    ],
    ids=["linear", "histogram boosting", "boosting", "pipeline"],
)
def test_quantile_regressors_are_joined(data, estimator, name):
    """The quantiles are those of the regressor fitted once for each level, sorted."""
    X, y = data
    levels = (0.1, 0.5, 0.9)
    model = MultiQuantileRegressor(estimator, levels).fit(X, y)

    alone = [clone(estimator).set_params(**{name: q}).fit(X, y).predict(X) for q in levels]
    wanted = np.sort(np.column_stack(alone), axis=1)
    assert_allclose(model.predict_dist(X).ppf([levels]), wanted, atol=1e-9)
    assert_allclose(model.predict(X), wanted[:, 1], atol=1e-9)
    without = MultiQuantileRegressor(estimator, levels[::2]).fit(X, y)
    assert_allclose(without.predict(X), without.predict_dist(X).median())


def test_quantile_regressors_are_calibrated(data):
    """Levels that were missed are put right by a wrapper around all levels together."""
    X, y = data
    narrow = MultiQuantileRegressor(QuantileRegressor(alpha=0.0), (0.3, 0.5, 0.7))
    model = CalibratedRegressorCV(narrow, "pit", ensemble=False).fit(X, y)

    low, high = model.predict_interval(X, 0.8).T
    assert 0.7 < np.mean((low <= y) & (y <= high)) < 0.9


@pytest.mark.parametrize("estimator", [Ridge(), HistGradientBoostingRegressor()])
def test_what_is_no_quantile_regressor_is_refused(data, estimator):
    """Also in a pipeline, by a message of two lines at most."""
    for model in (estimator, make_pipeline(StandardScaler(), estimator)):
        with pytest.raises(
            ValueError, match=r'does not predict a quantile.*loss="quantile"'
        ) as told:
            MultiQuantileRegressor(model).fit(*data)
        assert str(told.value).startswith(type(estimator).__name__)
        assert len(str(told.value)) < 160


# Told to predict a quantile, but not yet which.
BOOSTERS = {
    "lightgbm": ("LGBMRegressor", {"objective": "quantile", "n_jobs": 1, "verbose": -1}),
    "xgboost": ("XGBRegressor", {"objective": "reg:quantileerror", "n_jobs": 1}),
    "catboost": (
        "CatBoostRegressor",
        {"loss_function": "Quantile", "verbose": 0, "allow_writing_files": False},
    ),
}


@pytest.mark.parametrize("library", BOOSTERS)
def test_boosters_are_told_their_levels(data, library):
    """More of the outcomes lie below the higher quantile, about as many as it says."""
    X, y = data
    name, options = BOOSTERS[library]
    booster = getattr(pytest.importorskip(library), name)(n_estimators=5, **options)
    for one in (booster, make_pipeline(StandardScaler(), booster)):
        model = MultiQuantileRegressor(one, (0.1, 0.9)).fit(X, y)

        low, high = (np.mean(y <= quantile.predict(X)) for quantile in model.estimators_)
        assert low < 0.35 < 0.65 < high


def test_list_of_models_is_refused_with_a_way_out(data):
    """A list does not tell levels before it is fitted."""
    with pytest.raises(TypeError, match=r"is a list.*dict from their levels"):
        CalibratedRegressorCV([QuantileRegressor(quantile=0.1)]).fit(*data)


@pytest.mark.parametrize("levels", [(0.5,), (0.9, 0.1), (5, 95), (0.0, 0.5), ((0.1, 0.9),)])
def test_levels_are_checked(data, levels):
    with pytest.raises(ValueError, match="two increasing probabilities"):
        MultiQuantileRegressor(QuantileRegressor(), levels).fit(*data)


@pytest.fixture
def by_level():
    """Return a dict of models, in an order of its own, of which the median is another kind."""
    low, high = (
        GradientBoostingRegressor(loss="quantile", alpha=level, n_estimators=5, random_state=0)
        for level in (0.1, 0.9)
    )
    return {0.9: high, 0.1: low, 0.5: QuantileRegressor(quantile=0.5, alpha=0.0)}


@pytest.mark.parametrize("weights", [None, np.linspace(0.5, 1.5, 150)])
def test_a_model_for_each_level(data, by_level, weights):
    """Models of a dict are fitted as they are, each to its own level, and stay unfitted outside."""
    X, y = data
    model = MultiQuantileRegressor(by_level).fit(X, y, sample_weight=weights)
    alone = [clone(by_level[level]).fit(X, y, sample_weight=weights) for level in (0.1, 0.5, 0.9)]

    wanted = np.sort(np.column_stack([m.predict(X) for m in alone]), axis=1)

    assert_allclose(model.predict_dist(X).ppf([[0.1, 0.5, 0.9]]), wanted, rtol=1e-6)
    assert not hasattr(by_level[0.5], "coef_")


def test_dicts_are_calibrated(data, by_level, tmp_path):
    """A dict of quantile models is calibrated like a regressor of them all, and can be kept."""
    X, y = data
    model, same = (
        CalibratedRegressorCV(estimator, "scale", cv=2).fit(X, y)
        for estimator in (by_level, MultiQuantileRegressor(by_level))
    )
    regcal.save(model, tmp_path / "model.regcal")

    assert model.estimator is by_level
    assert_allclose(model.predict_quantiles(X, [0.3]), same.predict_quantiles(X, [0.3]))
    again = regcal.load(tmp_path / "model.regcal")
    assert_allclose(again.predict_quantiles(X, [0.3]), same.predict_quantiles(X, [0.3]))


def test_fitted_dicts_are_calibrated_as_they_are(data):
    """Frozen, models of a dict are not fitted again."""
    X, y = data
    fitted = {q: QuantileRegressor(quantile=q).fit(X[:75], y[:75]) for q in (0.1, 0.9)}
    model = CalibratedRegressorCV(FrozenEstimator(fitted), "identity").fit(X[75:], y[75:])

    found = model.predict_quantiles(X, [0.1, 0.9])

    assert_allclose(found, regcal.predict_dist(fitted, X).ppf([[0.1, 0.9]]))


def made_for(kind, level):
    """Return a model that is told a level, the way each library wants to be told."""
    if kind == "lightgbm":
        library = pytest.importorskip("lightgbm")
        return library.LGBMRegressor(objective="quantile", alpha=level, n_estimators=3, verbose=-1)
    if kind == "catboost":
        library = pytest.importorskip("catboost")
        return library.CatBoostRegressor(loss_function=f"Quantile:alpha={level}", verbose=0)
    model = QuantileRegressor(quantile=level, alpha=0.0)
    return make_pipeline(StandardScaler(), model) if kind == "pipeline" else model


@pytest.mark.parametrize("kind", ["scikit-learn", "pipeline", "lightgbm", "catboost"])
def test_models_under_levels_that_are_not_theirs_are_refused(data, kind):
    """A model of the 0.3 quantile under 0.1 would be taken for that of 0.1."""
    models = {0.1: made_for(kind, 0.3), 0.9: made_for(kind, 0.9)}
    wanted = r"Under the level 0\.1 stands .* of the quantile 0\.3\. Set its own level to 0\.1"

    with pytest.raises(ValueError, match=wanted):
        CalibratedRegressorCV(models, "scale").fit(*data)
    with pytest.raises(ValueError, match=wanted):
        regcal.predict_dist(models, data[0])
