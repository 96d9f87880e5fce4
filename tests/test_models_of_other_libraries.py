"""Ordinary models come back from a file in another process, and predict the same bits there."""

import importlib.util
import json
import subprocess
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import (
    AdaBoostRegressor,
    BaggingRegressor,
    ExtraTreesRegressor,
    GradientBoostingRegressor,
    HistGradientBoostingRegressor,
    RandomForestRegressor,
    StackingRegressor,
)
from sklearn.exceptions import NotFittedError
from sklearn.impute import KNNImputer, SimpleImputer
from sklearn.linear_model import BayesianRidge, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    KBinsDiscretizer,
    OneHotEncoder,
    OrdinalEncoder,
    PowerTransformer,
    SplineTransformer,
    StandardScaler,
    TargetEncoder,
)

import regcal

pd = pytest.importorskip("pandas")


def installed(*packages: str) -> bool:
    return all(importlib.util.find_spec(package) for package in packages)


@dataclass(frozen=True)
class Case:
    """A model, the columns it takes, and what its file needs to be trusted with."""

    make: Callable[[], Any]
    columns: tuple[str, ...] = ("a", "b", "kind")
    trusted: tuple[str, ...] = ()
    library: str = "sklearn"


def encoded(*steps):
    return make_pipeline(
        make_column_transformer(
            *steps, remainder=make_pipeline(SimpleImputer(), StandardScaler()), sparse_threshold=0.0
        ),
        BayesianRidge(),
    )


def selected():
    """Return the pipeline of the tutorial."""
    columns = make_column_transformer(
        (SimpleImputer(), make_column_selector(dtype_include="number")),
        (OneHotEncoder(handle_unknown="ignore"), make_column_selector(dtype_exclude=np.number)),
        sparse_threshold=0.0,
    )
    return make_pipeline(columns, BayesianRidge())


def stacked():
    models = [("ridge", Ridge()), ("forest", RandomForestRegressor(3, random_state=0))]
    return regcal.NormalResidualRegressor(StackingRegressor(models, cv=2))


def spread(model):
    return regcal.NormalResidualRegressor(model, cv=2)


def lightgbm(**options):
    import lightgbm

    quiet = {"n_jobs": 1, "verbose": -1}
    return lightgbm.LGBMRegressor(n_estimators=8, min_child_samples=5, **quiet, **options)


def lightgbm_of_each_level():
    levels = {level: lightgbm(objective="quantile", alpha=level) for level in (0.1, 0.9)}
    return regcal.MultiQuantileRegressor(levels)


def xgboost(**options):
    import xgboost

    return xgboost.XGBRegressor(n_estimators=8, enable_categorical=True, **options)


def catboost(**options):
    import catboost

    quiet = {"verbose": 0, "allow_writing_files": False}
    return catboost.CatBoostRegressor(n_estimators=8, **quiet, **options)


def quantiles(model):
    return regcal.MultiQuantileRegressor(model, (0.1, 0.5, 0.9))


def ngboost():
    import ngboost

    return ngboost.NGBRegressor(n_estimators=5, verbose=False, random_state=0)


NUMBERS = ("a", "b")
FULL = ("x", "y")  # without missing values
TREES = {"random_state": 0, "max_depth": 4}
LIGHTGBM = ("lightgbm.sklearn.LGBMRegressor",)
XGBOOST = ("xgboost.sklearn.XGBRegressor",)
CATBOOST = ("catboost.core.CatBoostRegressor",)

CASES = {
    "column selectors": Case(selected),
    "one-hot": Case(partial(encoded, (OneHotEncoder(drop="first"), ["kind"]))),
    "one-hot, rare": Case(
        partial(encoded, (OneHotEncoder(max_categories=2, handle_unknown="ignore"), ["kind"]))
    ),
    "ordinal": Case(partial(encoded, (OrdinalEncoder(), ["kind"]))),
    "target encoder": Case(partial(encoded, (TargetEncoder(), ["kind"]))),
    "bins": Case(
        partial(encoded, (KBinsDiscretizer(3, quantile_method="averaged_inverted_cdf"), ["x"])),
        ("x", "a"),
    ),
    "powers": Case(partial(encoded, (PowerTransformer(), ["x"])), ("x", "a")),
    "splines": Case(
        partial(encoded, (SplineTransformer(3), ["x"])),
        ("x", "a"),
        ("scipy.interpolate._bsplines.BSpline",),
    ),
    "neighbours' imputer": Case(lambda: make_pipeline(KNNImputer(), BayesianRidge()), NUMBERS),
    "forest": Case(lambda: spread(RandomForestRegressor(4, **TREES)), NUMBERS),
    "extra trees": Case(lambda: spread(ExtraTreesRegressor(4, **TREES)), NUMBERS),
    "gradient boosting": Case(lambda: spread(GradientBoostingRegressor(n_estimators=4)), FULL),
    "adaptive boosting": Case(
        lambda: spread(AdaBoostRegressor(n_estimators=3, random_state=0)), FULL
    ),
    "stack": Case(stacked, FULL),
    "histogram boosting": Case(lambda: spread(HistGradientBoostingRegressor(max_iter=6)), NUMBERS),
    "histogram boosting, categories": Case(
        lambda: spread(
            HistGradientBoostingRegressor(
                max_iter=6, min_samples_leaf=5, categorical_features="from_dtype"
            )
        )
    ),
    "histogram boosting, numbered categories": Case(
        lambda: spread(
            HistGradientBoostingRegressor(
                max_iter=6, min_samples_leaf=5, categorical_features=["number"]
            )
        ),
        ("a", "number"),
    ),
    "LightGBM": Case(lambda: spread(lightgbm()), trusted=LIGHTGBM, library="lightgbm"),
    "LightGBM, linear": Case(
        lambda: spread(lightgbm(linear_tree=True)), FULL, LIGHTGBM, "lightgbm"
    ),
    "LightGBM, quantiles": Case(
        lambda: quantiles(lightgbm(objective="quantile")), trusted=LIGHTGBM, library="lightgbm"
    ),
    "LightGBM, a model a level": Case(lightgbm_of_each_level, trusted=LIGHTGBM, library="lightgbm"),
    "LightGBM, bagged": Case(
        lambda: spread(BaggingRegressor(lightgbm(), 2, random_state=0)),
        FULL,
        LIGHTGBM,
        "lightgbm",
    ),
    "XGBoost": Case(lambda: spread(xgboost()), trusted=XGBOOST, library="xgboost"),
    "XGBoost, quantiles": Case(
        lambda: quantiles(xgboost(objective="reg:quantileerror")),
        trusted=XGBOOST,
        library="xgboost",
    ),
    "CatBoost": Case(lambda: spread(catboost()), NUMBERS, CATBOOST, "catboost"),
    "CatBoost, quantiles": Case(
        lambda: quantiles(catboost(loss_function="Quantile")), NUMBERS, CATBOOST, "catboost"
    ),
    "NGBoost": Case(
        ngboost,
        FULL,
        ("ngboost.api.NGBRegressor", "ngboost.distns.normal.Normal", "ngboost.scores.LogScore"),
        "ngboost",
    ),
}
HERE = {name: case for name, case in CASES.items() if installed(case.library)}

LEVELS = [0.05, 0.5, 0.95]

ELSEWHERE = """
import json, sys
import numpy as np, pandas as pd
import regcal

folder, cases = sys.argv[1], json.loads(sys.argv[2])
frame = pd.read_pickle(f"{folder}/frame")
answers = {}
for k, case in enumerate(cases):
    model = regcal.load(f"{folder}/{k}.regcal", trusted=case["trusted"])
    answers[str(k)] = model.predict_quantiles(frame[case["columns"]], [0.05, 0.5, 0.95])
    assert model.fingerprint() == case["fingerprint"]
np.savez(f"{folder}/answers.npz", **answers)
"""


@pytest.fixture(scope="module")
def frame():
    """Return numbers with and without holes, categories as words and as numbers."""
    rng = np.random.default_rng(5)
    table = pd.DataFrame(rng.normal(size=(90, 4)), columns=["a", "b", "x", "y"])
    table.loc[::7, "a"] = np.nan
    table["number"] = rng.integers(0, 6, 90).astype(float)
    return table.assign(kind=pd.Categorical(rng.choice(["red", "green", "ölig"], 90)))


def fitted(case: Case, frame):
    rng = np.random.default_rng(6)
    rest = rng.normal(size=len(frame))
    y = frame[["b", "x", "number"]].sum(axis=1) + (frame["kind"] == "red") + rest
    model = regcal.CalibratedRegressorCV(case.make(), "scale", cv=2, ensemble=False)
    with warnings.catch_warnings():  # models of so little are poor ones
        warnings.simplefilter("ignore", regcal.DisagreementWarning)
        return model.fit(frame[list(case.columns)], y.to_numpy())


@pytest.fixture(scope="module")
def models(frame):
    return {name: fitted(case, frame) for name, case in HERE.items()}


@pytest.fixture(scope="module")
def folder(models, frame, tmp_path_factory):
    """Return a folder with a file of every model, and with what another process says of them."""
    folder = tmp_path_factory.mktemp("models")
    frame.to_pickle(folder / "frame")
    cases = []
    for k, (name, model) in enumerate(models.items()):
        regcal.save(model, folder / f"{k}.regcal")
        trusted = regcal.file_info(folder / f"{k}.regcal")["trusted"]
        print_ = model.fingerprint()
        cases.append(
            {"columns": list(HERE[name].columns), "trusted": trusted, "fingerprint": print_}
        )
    subprocess.run(
        [sys.executable, "-W", "ignore", "-c", ELSEWHERE, str(folder), json.dumps(cases)],
        check=True,
        timeout=300,
    )
    return folder


@pytest.mark.parametrize("name", CASES)
def test_models_predict_the_same_in_another_process(name, folder, models, frame):
    """Predictions are equal to the last bit, and only foreign code needs trust."""
    if name not in HERE:
        pytest.skip(f"{CASES[name].library} is not installed")
    k, case = list(HERE).index(name), HERE[name]

    with np.load(folder / "answers.npz") as answers:
        there = answers[str(k)]

    assert_array_equal(there, models[name].predict_quantiles(frame[list(case.columns)], LEVELS))
    assert set(case.trusted) <= set(regcal.file_info(folder / f"{k}.regcal")["trusted"])
    if not case.trusted:
        assert regcal.file_info(folder / f"{k}.regcal")["trusted"] == []


OTHERS = [name for name, case in CASES.items() if case.library != "sklearn"]


@pytest.mark.parametrize("name", OTHERS)
def test_models_of_other_libraries_need_trust(name, folder, models):
    """What their libraries read is their business, so that the refusal names them."""
    if name not in HERE:
        pytest.skip(f"{CASES[name].library} is not installed")
    path = folder / f"{list(HERE).index(name)}.regcal"

    with pytest.raises(regcal.FileError, match=CASES[name].trusted[0].replace(".", r"\.")):
        regcal.load(path)
    assert CASES[name].library in regcal.file_info(path)["versions"]


@pytest.mark.parametrize("name", [name for name in OTHERS if name != "NGBoost"])
def test_equal_training_gives_equal_fingerprints(name, models, frame):
    """Neither the time nor an identity of a run is kept; NGBoost breaks ties by chance."""
    if name not in HERE:
        pytest.skip(f"{CASES[name].library} is not installed")

    assert fitted(HERE[name], frame).fingerprint() == models[name].fingerprint()


def test_boosters_are_saved_by_themselves_too(frame, tmp_path):
    """Also those that do not inherit from scikit-learn's base class; unfitted ones are not."""
    catboost = pytest.importorskip("catboost")
    X, y = frame[["x", "kind"]], frame["x"].to_numpy()
    quiet = {"verbose": 0, "allow_writing_files": False}
    model = catboost.CatBoostRegressor(n_estimators=3, cat_features=["kind"], **quiet)

    with pytest.raises(NotFittedError):
        regcal.save(model, tmp_path / "model")
    regcal.save(model.fit(X, y), tmp_path / "model")
    again = regcal.load(tmp_path / "model", trusted=[catboost.CatBoostRegressor])

    assert_array_equal(again.predict(X), model.predict(X))


@pytest.mark.parametrize(
    "make", [lambda: quantiles(lightgbm(objective="quantile")), lightgbm_of_each_level]
)
def test_boosted_quantiles_are_saved_before_they_are_calibrated(make, frame, tmp_path):
    """A model a level, of arrays and without a calibrator around it."""
    pytest.importorskip("lightgbm")
    X, y = frame[["x", "y"]].to_numpy(), frame["x"].to_numpy()
    model = make().fit(X, y)

    regcal.save(model, tmp_path / "model")
    again = regcal.load(tmp_path / "model", trusted=LIGHTGBM)

    assert_array_equal(again.predict_dist(X).values, model.predict_dist(X).values)


def test_early_stopping_survives(frame, tmp_path):
    """Predictions use the best iteration, as before."""
    lightgbm = pytest.importorskip("lightgbm")
    rng = np.random.default_rng(0)
    X, y = frame[["x", "y"]], rng.normal(size=len(frame))
    model = lightgbm.LGBMRegressor(n_estimators=60, min_child_samples=2, verbose=-1)
    stop = lightgbm.early_stopping(2, verbose=False)
    with warnings.catch_warnings():
        # older versions know no other name for it
        warnings.simplefilter("ignore")
        model.fit(X[:60], y[:60], eval_set=[(X[60:], y[60:])], callbacks=[stop])

    regcal.save(model, tmp_path / "model")
    again = regcal.load(tmp_path / "model", trusted=[lightgbm.LGBMRegressor])

    assert model.best_iteration_ == again.best_iteration_ < 60
    assert_array_equal(again.predict(X), model.predict(X))
