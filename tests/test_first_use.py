"""What a new user ran into once: mistakes get a clear message, odd data a sane answer."""

from pathlib import Path

import numpy as np
import pytest
import scipy.stats
from numpy.testing import assert_allclose
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.ensemble import BaggingRegressor, RandomForestRegressor, VotingRegressor
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import BayesianRidge, LinearRegression
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import regcal


def test_one_row_of_tied_outer_quantiles_does_not_spoil_the_others(rng):
    """Outer quantiles that are equal by chance do not claim that the tail has no width."""
    levels = [0.05, 0.25, 0.5, 0.75, 0.95]
    values = np.tile(scipy.stats.norm.ppf(levels), (500, 1))
    y = rng.normal(size=500)
    values[0, 4], y[0] = values[0, 3], 3.0

    factor = regcal.ScaleCalibrator().fit(regcal.Quantiles(levels, values), y).factor_

    assert factor < 1.5


def test_tails_of_quantiles_are_limited_relative_to_the_row():
    """A tail is at most five times narrower than the row's own normal distribution."""
    dist = regcal.Quantiles([0.1, 0.5, 0.9], [[0.0, 1e-12, 2.0]])
    overall = 2 * scipy.stats.norm.ppf(0.9) / 2.0

    assert_allclose(dist.probit(-1.0) - dist.probit(-2.0), 5 * overall)


def test_levels_with_their_columns_are_quantiles():
    """A dictionary from levels to predictions becomes quantiles."""
    dist = regcal.as_distribution({0.1: [1.0, 2.0], 0.9: [3.0, 4.0]})

    assert_allclose(dist.ppf(0.9), [3.0, 4.0])


def test_models_without_scikit_learn_tags_can_be_wrapped(rng):
    """Regressors of skpro are no scikit-learn estimators, yet they predict distributions."""
    residual = pytest.importorskip("skpro.regression.residual", reason="pip install skpro")
    X = rng.normal(size=(120, 2))
    y = X[:, 0] + rng.normal(size=120)

    model = regcal.CalibratedRegressorCV(residual.ResidualDouble(LinearRegression()), "scale")

    assert np.corrcoef(model.fit(X, y).predict(X), y)[0, 1] > 0.5


def calibrated(estimator=None, y=None, **options):
    """Fit a regressor with a mistake in it."""
    X = np.arange(40.0)[:, np.newaxis]
    model = BayesianRidge() if estimator is None else estimator
    return regcal.CalibratedRegressorCV(model, **options).fit(
        X, np.sin(X[:, 0]) if y is None else y
    )


def refusals(tmp_path):
    """Return calls that must be refused, with words of their messages."""
    dist = regcal.Normal([0.0, 1.0, 2.0], 1.0)
    X = np.arange(40.0)[:, np.newaxis]
    return {
        "cdf too large": (
            lambda: regcal.CustomDistribution(lambda t, rows: 2 * scipy.stats.norm.cdf(t), 3),
            "1 at inf",
        ),
        "no outcomes": (lambda: regcal.ScaleCalibrator().fit(dist, None), "y is None"),
        "option": (lambda: regcal.get_calibrator("scale", foo=1), "does not take foo"),
        "swapped": (lambda: regcal.compare({"a": dist}, [0.0, 1.0, 2.0]), "must map names"),
        "one fold": (
            lambda: regcal.CalibratedRegressorCV(regcal.paper_ols(), "scale", cv=1).fit(
                X, np.sin(X[:, 0])
            ),
            "at least 2 folds",
        ),
        "no residuals": (lambda: regcal.paper_ols().fit(X, np.full(40, 3.0)), "residuals are 0"),
        "no calibrator": (lambda: calibrated(calibrator=None), 'got None.*"identity" calibrates'),
        "class of calibrator": (
            lambda: calibrated(calibrator=regcal.ScaleCalibrator),
            r"the class ScaleCalibrator. Pass ScaleCalibrator\(\)",
        ),
        "class of model": (lambda: calibrated(BayesianRidge), "the class BayesianRidge"),
        "unknown calibrator": (lambda: calibrated(calibrator="magic"), "no calibrator 'magic'"),
        "prefit": (lambda: calibrated(cv="prefit"), "got 'prefit'.*FrozenEstimator"),
        "complex outcomes": (
            lambda: calibrated(y=np.arange(40) + 1j),
            "y must hold numbers, got complex ones such as",
        ),
        "text outcomes": (
            lambda: calibrated(y=np.arange(40).astype(str)),
            r"y must hold numbers, got text such as '0'.*astype\(float\)",
        ),
        "text among outcomes": (
            lambda: regcal.log_score(np.array([0.0, "1.5", 2.0], dtype=object), dist),
            "y must hold numbers, got text such as '1.5'",
        ),
        "complex predictions": (lambda: regcal.Normal([1j], [1.0]), "loc must hold numbers"),
        "dates": (
            lambda: regcal.log_score(np.array(["2020-01-01"] * 3, dtype="datetime64[D]"), dist),
            "got dates such as '2020-01-01'",
        ),
        "levels out of order": (
            lambda: regcal.Quantiles([0.9, 0.1, 0.5], [[3.0, 1.0, 2.0]]),
            r"order = np.argsort\(levels\)",
        ),
        "no folder": (
            lambda: regcal.report([0.0, 1.0, 2.0], dist, path=tmp_path / "no" / "page.html"),
            "folder that exists",
        ),
    }


@pytest.mark.parametrize("case", refusals(Path()))
def test_mistakes_get_a_clear_message(case, tmp_path):
    """The message names the rule."""
    call, words = refusals(tmp_path)[case]

    with pytest.raises((ValueError, TypeError, FileNotFoundError), match=words):
        call()


def test_the_way_to_sort_levels_works():
    """What the message says can be typed."""
    levels, values = [0.9, 0.1, 0.5], [[3.0, 1.0, 2.0]]
    order = np.argsort(levels)

    dist = regcal.Quantiles(np.asarray(levels)[order], np.asarray(values)[:, order])

    assert_allclose(dist.ppf([[0.1, 0.5, 0.9]]), [[1.0, 2.0, 3.0]])


class Unfittable(RegressorMixin, BaseEstimator):
    """A point model that must not be fitted."""

    def fit(self, X, y):
        pytest.fail("a model that predicts no distribution was fitted")

    def predict(self, X):
        return np.zeros(len(X))


@pytest.mark.parametrize(
    "model",
    [
        Unfittable(),
        make_pipeline(StandardScaler(), Unfittable()),
        FrozenEstimator(Unfittable()),
        BaggingRegressor(Unfittable()),
        GridSearchCV(Unfittable(), {}),
        KNeighborsRegressor(),
        RandomForestRegressor(),
    ],
    ids=lambda model: type(model).__name__,
)
def test_point_models_are_refused_before_they_are_fitted(model):
    """A user does not wait for folds to hear of the wrapper that is needed."""
    with pytest.raises(TypeError, match="NormalResidualRegressor"):
        calibrated(model, calibrator="scale")


@pytest.mark.parametrize(
    "model",
    [
        BaggingRegressor(BayesianRidge(), 3, random_state=0),
        VotingRegressor([("one", BayesianRidge()), ("two", BayesianRidge(max_iter=10))]),
        GridSearchCV(BayesianRidge(), {"max_iter": [10]}, cv=2),
    ],
    ids=lambda model: type(model).__name__,
)
def test_wrappers_of_probabilistic_models_are_let_through(model):
    """What cannot be known before a fit is not refused before it."""
    assert calibrated(model, calibrator="scale").members_


@pytest.mark.parametrize(
    "model",
    [
        regcal.CalibratedRegressorCV(BayesianRidge(), "scale", ensemble=True),
        regcal.CalibratedRegressorCV(regcal.paper_ols(), "scale"),
        regcal.paper_ols(),
    ],
    ids=["ensemble", "nested", "residuals"],
)
def test_missing_names_of_columns_are_mentioned_once(model, rng):
    """A model fitted on a frame warns once about an array, whatever it holds inside."""
    pandas = pytest.importorskip("pandas")
    X = pandas.DataFrame(rng.normal(size=(60, 2)), columns=["a", "b"])
    model.fit(X, X["a"] + rng.normal(size=60))

    with pytest.warns(UserWarning, match="feature names") as caught:
        model.predict_dist(X.to_numpy())

    assert len(caught) == 1
