"""Covariates that options name: what is read, and what is refused."""

import json

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from rows import known_rows
from shell import Commands

import regcal
from regcal.corrections import regressors

PREDICTIONS = "--target y --mean mu --std sigma"


@pytest.fixture(scope="module", autouse=True)
def few_trees():
    """Let trees be few: it is the path that is tested."""
    with pytest.MonkeyPatch.context() as patch:
        for options in (regressors._SHIFT_TREES, regressors._SQUARE_TREES):
            patch.setitem(options, "max_iter", 2)
        yield


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder with a table of predictions with covariates, and a calibrator of them."""
    folder = tmp_path_factory.mktemp("covariates")
    dist, y, known = known_rows(np.random.default_rng(0))
    table = pd.DataFrame({"mu": dist.loc, "sigma": dist.scale, **known, "y": y})
    table.loc[3, "age"], table.loc[4, "region"] = np.nan, None
    table = table.assign(when=pd.Timestamp("2020-01-01"), id=[f"row {k}" for k in range(120)])
    table.to_parquet(folder / "past.parquet")
    table.drop(columns="when").to_csv(folder / "past.csv", index=False)
    cal = regcal.ConditionalCalibrator("additive", regcal.PITCalibrator())
    cal.fit(dist, table["y"], covariates=table[["age", "region"]])
    regcal.save(cal, folder / "own.regcal")
    cal.fit(dist, table["y"], covariates=table[["age", "damp"]])
    regcal.save(cal, folder / "levels.regcal")
    return folder


@pytest.fixture(scope="module")
def saved(folder):
    """Return the file of a model by ``regcal calibrate``."""
    line = f"{PREDICTIONS} --calibrator conditional --covariates age,region --save table.regcal"
    Commands(folder).good(f"calibrate past.csv {line} --json")
    return "table.regcal"


def test_calibrate_learns_given_columns(saved, run):
    """Numbers and texts of a file, missing ones too, are what Python is given in a frame."""
    past = run.table("past.csv")
    dist = regcal.Normal(past["mu"], past["sigma"])
    cal = regcal.ConditionalCalibrator().fit(dist, past["y"], covariates=past[["age", "region"]])
    expected = cal.transform(dist, past[["age", "region"]]).ppf(0.95)

    run.good(f"predict {saved} past.csv --quantiles 0.95 --output out.csv")
    renamed = past.rename(columns={"age": "years", "region": "where"})
    renamed.to_csv(run.folder / "renamed.csv", index=False)
    run.good(f"predict {saved} renamed.csv --covariates years,where --quantiles 0.95 -o named.csv")

    for name in ("out.csv", "named.csv"):
        assert_allclose(run.table(name)["q95"], expected, rtol=1e-9)


def test_fit_looks_at_features(run):
    """What is learnt given features is what Python learns, and is told."""
    line = "fit past.csv --target y --features mu,age,region --skip-missing -o fit.regcal"
    told = run.good(f"{line} --calibrator conditional --covariates age,region --json").out
    assert json.loads(told)["covariates"] == ["age", "region"]
    run.good("predict fit.regcal past.csv --skip-missing --quantiles 0.9 --output out.csv")
    known = run.table("past.csv").dropna(subset="age").fillna({"region": ""})
    wanted = regcal.load(run.folder / "fit.regcal").predict_dist(known).ppf(0.9)
    assert_allclose(run.table("out.csv")["q90"].dropna(), wanted, rtol=1e-9)

    assert "calibrated by scale, on 119 rows" in run.good(f"{line} --calibrator scale").err


def test_files_tell_their_covariates(saved, run):
    """People and programs see which columns a model needs."""
    assert "covariates    age, region\n" in run.good(f"info {saved}").out
    assert "columns_: age, region (3 levels)" in run.good(f"info {saved} --full").out
    known = json.loads(run.good(f"info {saved} --json").out)
    assert known["training"]["covariates"] == ["age", "region"]


def test_calibrators_of_python_are_used(run):
    """A calibrator that was saved in Python knows the names of its covariates."""
    past = run.table("past.csv")
    cal = regcal.load(run.folder / "own.regcal")
    dist = cal.transform(regcal.Normal(past["mu"], past["sigma"]), past[["age", "region"]])

    run.good("predict own.regcal past.csv --mean mu --std sigma --quantiles 0.5 --output out.csv")
    told = run.good(f"evaluate past.csv --model own.regcal {PREDICTIONS} --json").out

    assert_allclose(run.table("out.csv")["q50"], dist.median(), rtol=1e-9)
    after = json.loads(told)["metrics"]["log score"]["values"]["after"]
    assert_allclose(after, regcal.log_score(past["y"], dist).mean(), rtol=1e-9)


def test_columns_that_cannot_be_covariates_are_refused(run):
    """The message names the option that was typed."""
    line = f"calibrate past.parquet {PREDICTIONS} --save new.regcal --covariates"

    run.refused(f"{line} age,y", "--covariates names 'y'", "beside predictions and outcomes")
    run.refused(f"{line} ages", "--covariates names 'ages'", "age, region")
    run.refused(f"{line} ,", "--covariates names no column")
    run.refused(f"{line} when", "'when' holds times", "Leave it out of --covariates")
    run.refused(f"{line} id", "'id' holds 120 different texts", "Leave it out of --covariates")
    run.refused(f"{line} age --calibrator scale", "--calibrator scale does not look at covariates")
    fit = "fit past.csv --target y --drop age,id -o new.regcal --covariates age"
    run.refused(fit, "--covariates names 'age'", "none of the columns to predict from")
    run.refused(f"{fit} --calibrator pit", "--calibrator pit does not look at covariates")


def test_covariates_that_a_model_cannot_use_are_refused(saved, run):
    """Other columns are as many as the model has learnt from, and of the same kind."""
    run.good(
        "fit past.csv --target y --drop id --calibrator scale --skip-missing --output fit.regcal"
    )
    run.good(f"calibrate past.csv {PREDICTIONS} --calibrator scale --save plain.regcal")

    run.refused(f"predict {saved} past.csv --covariates age", "names 1 column(s)", "age, region")
    run.refused(f"predict {saved} past.csv --covariates region,age", "'region' must hold numbers")
    run.refused(f"predict {saved} past.csv --covariates age,place", "no column 'place'")
    run.refused("predict plain.regcal past.csv --covariates age", "learnt from no covariates")
    run.refused("predict fit.regcal past.csv --covariates age", "covariates among its features")
    run.refused(f"evaluate past.csv {PREDICTIONS} --covariates age", "name its file by --model")
    run.refused("predict levels.regcal past.csv --mean mu --std sigma", "levels such as False")
