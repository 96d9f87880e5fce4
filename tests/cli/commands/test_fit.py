"""`regcal fit` learns what the library learns."""

import json
from functools import partial

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

import regcal
from regcal.cli import _estimators


@pytest.fixture
def small_forest(monkeypatch):
    """Let the forest be what it is by name, of a tenth of its trees."""
    forest = partial(_estimators.RandomForestRegressor, n_estimators=10)
    monkeypatch.setattr(_estimators, "RandomForestRegressor", forest)


@pytest.mark.parametrize("model", ["ols", "gpr", "forest", "boosting", "sklearn.svm:LinearSVR"])
def test_fit_and_predict_every_model(run, model, small_forest):
    """Each model learns from numbers and texts, and predicts rows it has not seen."""
    rng = np.random.default_rng(0)
    x, kind = rng.uniform(0, 4, 60), rng.choice(["röd", "blå"], 60)
    y = x + 3 * (kind == "röd") + 0.1 * rng.normal(size=60)
    table = pd.DataFrame({"längd": x, "färg": kind, "y": y})
    table.iloc[:50].to_csv(run.folder / "data.csv", index=False)
    table.iloc[50:].drop(columns="y").to_csv(run.folder / "unseen.csv", index=False)

    run.good(f"fit data.csv --target y --model {model} --calibrator scale --cv 2 --output m.regcal")
    run.good("predict m.regcal unseen.csv --output out.csv")

    assert np.abs(run.table("out.csv")["q50"] - y[50:]).mean() < 1.0


def test_fitted_model_is_that_of_the_library(run):
    """The command line adds nothing to the model but the names of its columns."""
    from sklearn.linear_model import BayesianRidge
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    data = run.table("concrete.csv")
    X, y = data.drop(columns="compressive_strength"), data["compressive_strength"]
    base = make_pipeline(StandardScaler(), BayesianRidge())
    model = regcal.CalibratedRegressorCV(base, "scale").fit(X, y)

    run.good("predict fit.regcal concrete.csv --quantiles 0.1,0.9 --keep age --output out.csv")

    out = run.table("out.csv")
    assert list(out) == ["age", "q10", "q90"]
    assert_allclose(out[["q10", "q90"]], model.predict_quantiles(X, [0.1, 0.9]))


@pytest.mark.parametrize("option", ["--time day", "--groups plant"])
def test_fit_holds_out_by_time_or_group(run, option):
    """Columns that order or group the rows are no features."""
    rng = np.random.default_rng(0)
    days = pd.date_range("2024-01-01", periods=120).strftime("%Y-%m-%d")
    x = rng.normal(size=120)
    table = pd.DataFrame({"x": x, "day": days, "plant": np.arange(120) % 6, "y": x})
    table["y"] += rng.normal(size=120)
    table.sample(frac=1, random_state=0).to_parquet(run.folder / "data.parquet", index=False)
    drop = "plant" if "day" in option else "day"

    answer = run.good(
        f"fit data.parquet --target y {option} --drop {drop} --calibrator scale --json -o m.regcal"
    )

    told = json.loads(answer.out)
    assert told["features"] == ["x"]
    assert [score["name"] for score in told["scores"]] == ["log score", "CRPS", "coverage 90 %"]
