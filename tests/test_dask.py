"""Calibration of Dask collections, on a real cluster of two worker processes."""

import multiprocessing
import os
import signal
import sys
from functools import partial
from pathlib import Path

import joblib
import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from sklearn.linear_model import BayesianRidge

import regcal
from regcal import dask as regcal_dask
from regcal.dask import (
    CensoredColumns,
    IntervalColumns,
    ModelPredictions,
    NormalColumns,
    QuantileColumns,
    SampleColumns,
)

dask = pytest.importorskip("dask")
distributed = pytest.importorskip("distributed")
da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")

N_ROWS = 20_000
NORMAL = NormalColumns("mean", "std")


@pytest.fixture(scope="module")
def cluster():
    """Start two worker processes, each with one thread.

    They are forked from a process that has imported Dask, where the system can do that.
    """
    ways = multiprocessing.get_all_start_methods()
    start = "forkserver" if "forkserver" in ways else "spawn"
    settings = {"profile.enabled": False, "multiprocessing-method": start}
    with (
        dask.config.set({f"distributed.worker.{name}": value for name, value in settings.items()}),
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def table(n=N_ROWS):
    """Return predictions that are too narrow and biased in parts, with outcomes and weights."""
    rng = np.random.default_rng(0)
    mean, std = rng.normal(size=n), np.exp(0.2 * rng.normal(size=n))
    y = mean + std * (1.5 * rng.normal(size=n) + 0.3 * np.sin(3 * mean))
    weight = rng.integers(1, 4, n).astype(float)
    return pd.DataFrame({"mean": mean, "std": std, "y": y, "weight": weight})


def in_memory(name, frame, weight=None):
    dist = regcal.Normal(frame["mean"], frame["std"])
    return regcal.get_calibrator(name).fit(dist, frame["y"], weight)


def answers(calibrator, frame):
    """Return calibrated probabilities of a few rows."""
    dist = regcal.Normal(frame["mean"][:50], frame["std"][:50])
    return calibrator.transform(dist).cdf(np.linspace(-3, 3, 7)[np.newaxis, :])


# ---------------------------------------------------------------------------------------------- fit


@pytest.mark.parametrize(("name", "close"), [("e-beta", 1e-9), ("gp-density", 2e-3)])
def test_cluster_fits_what_one_process_fits(cluster, name, close):
    """Partitions summarised by two processes give the calibrator of all rows in memory."""
    # Few means and one spread leave the process of gp-density few cells to fit.
    frame = table().round({"mean": 0}).assign(std=1.0)
    data = dd.from_pandas(frame, npartitions=7)

    fitted = regcal_dask.fit(regcal.get_calibrator(name), data, NORMAL, "y", "weight")

    wanted = in_memory(name, frame, frame["weight"])
    assert fitted.n_rows_seen_ == N_ROWS
    assert_allclose(answers(fitted, frame), answers(wanted, frame), atol=close)


def killing(marker, part):
    """Kill the process that first sees the partition with row 1500, then predict as usual."""
    if 1500 in part.index and not Path(marker).exists():
        Path(marker).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return NORMAL(part)


def test_a_killed_worker_changes_nothing(cluster, tmp_path):
    """What a lost worker had summarised is summarised again, with the same result."""
    frame = table(3000)
    data = dd.from_pandas(frame, npartitions=6)
    marker = tmp_path / "killed"

    fitted = regcal_dask.fit(regcal.get_calibrator("pit"), data, partial(killing, marker), "y")

    assert marker.exists()
    undisturbed = regcal_dask.fit(regcal.get_calibrator("pit"), data, NORMAL, "y")
    np.testing.assert_array_equal(answers(fitted, frame), answers(undisturbed, frame))
    assert_allclose(answers(fitted, frame), answers(in_memory("pit", frame), frame), atol=1e-12)


def test_a_model_is_calibrated_on_the_cluster(cluster):
    """`CalibratedRegressorCV` runs its folds on the workers through joblib."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 2))
    y = X[:, 0] + rng.normal(size=120)
    model = regcal.CalibratedRegressorCV(BayesianRidge(), calibrator="pit", n_jobs=2)

    with joblib.parallel_config("dask"):
        fitted = model.fit(X, y).predict_quantiles(X[:5], [0.1, 0.9])

    np.testing.assert_array_equal(fitted, model.fit(X, y).predict_quantiles(X[:5], [0.1, 0.9]))


# ----------------------------------------------------- without a cluster: everything but processes


@pytest.fixture
def one_thread():
    with dask.config.set(scheduler="synchronous"):
        yield


def given(frame, columns):
    """Return a calibrator that has learnt from columns of a frame in memory, and what it says."""
    cal = regcal.ConditionalCalibrator("additive", regcal.PITCalibrator())
    dist = regcal.Normal(frame["mean"], frame["std"])
    cal.fit(dist, frame["y"], frame["weight"], frame[columns])
    assert cal.correction_ is not None
    return cal, cal.transform(dist, frame[columns])


def test_covariates_are_columns_of_the_data(one_thread):
    """Partitions that have seen other levels, or none, are merged to what all rows teach."""
    frame = table(120).assign(age=np.arange(120) % 40, kind=np.repeat(["a", "b", "c"], 40))
    frame["y"] += np.where(frame["age"] < 15, 3.0, 0.0) + np.where(frame["kind"] == "c", -2.0, 0.0)
    frame.loc[:9, "kind"], frame.loc[20:25, "age"] = None, np.nan
    data = dd.from_pandas(frame.astype({"kind": object}), npartitions=12)
    columns = ["age", "kind"]

    cal = regcal.ConditionalCalibrator("additive", regcal.PITCalibrator())
    fitted = regcal_dask.fit(cal, data, NORMAL, "y", "weight", columns)

    wanted, dist = given(frame, columns)
    assert fitted.columns_["kind"].levels == wanted.columns_["kind"].levels == ("a", "b", "c")
    lazy = regcal_dask.predict_quantiles(
        fitted, data[["kind", "mean", "std", "age"]], NORMAL, [0.9]
    )
    assert_allclose(lazy.compute()[0.9], dist.ppf(0.9), rtol=1e-7)
    scores = regcal_dask.log_score(fitted, data, NORMAL, "y").compute()
    assert_allclose(scores, dist.logpdf(frame["y"].to_numpy()), rtol=1e-7)


def test_covariates_of_arrays_have_numbers(one_thread):
    """A column of an array is found by its number again."""
    frame = table(90).assign(age=np.arange(90) % 30)
    frame["y"] += np.where(frame["age"] < 15, 3.0, 0.0)
    data = da.from_array(frame.to_numpy(), chunks=(20, 2))
    cal = regcal.ConditionalCalibrator("additive", regcal.PITCalibrator())

    fitted = regcal_dask.fit(cal, data, NormalColumns(0, 1), 2, 3, covariates=4)

    lazy = regcal_dask.predict_cdf(fitted, data, NormalColumns(0, 1), 0.5)
    assert fitted.columns_.names == ("x4",)
    assert_allclose(lazy.compute()[:, 0], given(frame, ["age"])[1].cdf(0.5), rtol=1e-7)


def test_covariates_that_are_not_there_are_refused(one_thread):
    """Neither a calibrator that looks at none nor a table that lacks them takes covariates."""
    data = dd.from_pandas(table(40).assign(age=np.arange(40.0)), npartitions=2)
    cal = regcal.ConditionalCalibrator("additive", regcal.PITCalibrator())

    with pytest.raises(ValueError, match="no column 'ages'"):
        regcal_dask.fit(cal, data, NORMAL, "y", covariates=["ages"])
    with pytest.raises(ValueError, match="ScaleCalibrator does not look at covariates"):
        regcal_dask.fit(regcal.get_calibrator("scale"), data, NORMAL, "y", covariates="age")
    fitted = regcal_dask.fit(cal, data, NORMAL, "y", covariates="age")
    with pytest.raises(ValueError, match="no column 'age'"):
        regcal_dask.predict_cdf(fitted, data[["mean", "std"]], NORMAL, 0.0).compute()


@pytest.mark.parametrize("kind", ["frame", "array"])
def test_predictions_are_lazy_and_right(one_thread, kind):
    """Quantiles, probabilities and scores equal those of the rows in memory, index included."""
    frame = table(400).set_index(pd.Index(np.arange(400) * 10, name="id"))
    cal = in_memory("e-beta", frame)
    dist = cal.transform(regcal.Normal(frame["mean"], frame["std"]))
    data, to_dist, y = dd.from_pandas(frame, npartitions=3), NORMAL, "y"
    if kind == "array":
        data = da.from_array(frame.to_numpy(), chunks=(150, 2))
        to_dist, y = NormalColumns(0, 1), 2

    quantiles = regcal_dask.predict_quantiles(cal, data, to_dist, [0.1, 0.9])
    below = regcal_dask.predict_cdf(cal, data, to_dist, 0.5)
    scores = regcal_dask.log_score(cal, data, to_dist, y)

    assert all(dask.is_dask_collection(lazy) for lazy in (quantiles, below, scores))
    quantiles, below, scores = dask.compute(quantiles, below, scores)
    if kind == "frame":
        assert list(quantiles.columns) == [0.1, 0.9]
        assert list(below.columns) == [0.5]
        for result in (quantiles, below, scores):
            pd.testing.assert_index_equal(result.index, frame.index)
    assert_allclose(np.asarray(quantiles), dist.ppf([[0.1, 0.9]]))
    assert_allclose(np.asarray(below), dist.cdf([[0.5]]))
    assert_allclose(np.asarray(scores), dist.logpdf(frame["y"]))


def builders():
    """Return ways to read predictions of columns a, b and c, with what they should be."""
    model = BayesianRidge().fit(np.arange(12.0).reshape(4, 3), [1.0, 2.0, 4.0, 3.0])
    return {
        "normal": (NormalColumns("a", "c"), lambda v: regcal.Normal(v[:, 0], v[:, 2])),
        "quantiles": (
            QuantileColumns({0.9: "c", 0.1: "a", 0.5: "b"}),
            lambda v: regcal.Quantiles([0.1, 0.5, 0.9], v),
        ),
        "samples": (SampleColumns(["a", "b", "c"]), regcal.Samples),
        "model": (
            ModelPredictions(model, ["a", "b", "c"]),
            lambda v: regcal.predict_dist(model, v),
        ),
    }


@pytest.mark.filterwarnings("ignore:X has feature names")
@pytest.mark.parametrize("name", ["normal", "quantiles", "samples", "model"])
def test_predictions_are_read_from_columns(name):
    """Each builder reads its columns of a frame, and numbers of columns of an array."""
    values = np.array([[1.0, 2.5, 4.0], [0.5, 0.7, 2.0]])
    to_dist, wanted = builders()[name]
    frame = pd.DataFrame(values, columns=["a", "b", "c"]).assign(other=1.0)

    assert_allclose(to_dist(frame).cdf(1.3), wanted(values).cdf(1.3))
    if name == "model":
        numbered = ModelPredictions(to_dist.model, [0, 1, 2])
        assert_allclose(numbered(frame.to_numpy()).cdf(1.3), wanted(values).cdf(1.3))


def test_separate_collections_and_empty_partitions(one_thread):
    """Outcomes may be a collection of their own, and a partition may hold no row."""
    frame = table(300)
    data = dd.from_pandas(frame, npartitions=3)
    some = data[data["mean"] > frame["mean"][:100].max()]

    fitted = regcal_dask.fit(regcal.get_calibrator("scale"), some, NORMAL, some["y"])

    rows = frame[frame["mean"] > frame["mean"][:100].max()]
    assert len(some.partitions[0].compute()) == 0
    assert_allclose(fitted.factor_, in_memory("scale", rows).factor_)
    scores = regcal_dask.log_score(fitted, some, NORMAL, "y").compute()
    assert len(scores) == len(rows)


def censored_table():
    """Return rows of which half are only known to be at least a value, told in both ways."""
    frame = table(300)
    limit = np.random.default_rng(1).permutation(frame["y"])
    alive = limit < frame["y"]
    time = np.minimum(limit, frame["y"])
    ends = {"time": time, "alive": alive, "lower": time, "upper": time.where(~alive, np.nan)}
    return frame.assign(**ends), regcal.Outcomes.right_censored(time, observed=~alive)


SEEN = {
    "truth values": lambda data: CensoredColumns("time", "alive"),
    "ends": lambda data: IntervalColumns("lower", "upper"),
    "a collection of ends": lambda data: data[["lower", "upper"]],
}


@pytest.mark.parametrize("told", [*SEEN, "numbers of columns", "an array of ends"])
def test_what_was_seen_of_outcomes_is_read_from_columns(one_thread, told):
    """Censored rows teach what they teach in memory, however columns tell of them."""
    frame, seen = censored_table()
    dist = regcal.Normal(frame["mean"], frame["std"])
    wanted = regcal.get_calibrator("pit").fit(dist, seen)
    data, to_dist = dd.from_pandas(frame, npartitions=3), NORMAL
    y = SEEN[told](data) if told in SEEN else IntervalColumns(6, 7)
    if told not in SEEN:
        data = da.from_array(frame.astype(float).to_numpy(), chunks=(90, 4))
        to_dist = NormalColumns(0, 1)
    if told == "an array of ends":
        y = data[:, 6:]

    fitted = regcal_dask.fit(regcal.get_calibrator("pit"), data, to_dist, y)

    assert not np.allclose(answers(wanted, frame), answers(in_memory("pit", frame), frame))
    assert_allclose(answers(fitted, frame), answers(wanted, frame), atol=1e-12)
    scores = regcal_dask.log_score(fitted, data, to_dist, y).compute()
    assert_allclose(scores, regcal.log_score(seen, wanted.transform(dist)), rtol=1e-9)


def test_ends_are_found_in_all_partitions_together(one_thread):
    """Zeros that are too few in each partition are a point mass of the whole."""
    frame = table(240)
    frame["y"] = np.where(np.arange(240) % 30 == 0, 0.0, 1.0 + frame["y"] - frame["y"].min())
    data = dd.from_pandas(frame, npartitions=4)

    for part in (frame[k : k + 60] for k in range(0, 240, 60)):
        assert not in_memory("pit", part).support_
    fitted = regcal_dask.fit(regcal.get_calibrator("pit"), data, NORMAL, "y")

    assert fitted.support_ == regcal.calibrators.Support(low=0.0)
    below = regcal_dask.predict_cdf(fitted, data, NORMAL, [-1e-9, 0.0]).compute()
    assert (below[-1e-9] == 0).all()
    assert_allclose(below[0.0], in_memory("pit", frame).transform(NORMAL(frame)).mass(0.0))


def test_outcomes_that_contradict_themselves_are_named(one_thread):
    """The message tells the partition, the column and the value."""
    frame, _ = censored_table()
    frame = frame.assign(alive=frame["alive"].astype(int))
    frame.loc[250, "upper"] = frame.loc[250, "lower"] - 1.0
    frame.loc[20, "alive"] = 2
    data, scale = dd.from_pandas(frame, npartitions=3), regcal.get_calibrator("scale")

    with pytest.raises(ValueError, match=r"Partition 2.*from 200 to 299: .*exceed upper"):
        regcal_dask.fit(scale, data, NORMAL, IntervalColumns("lower", "upper"))
    with pytest.raises(ValueError, match=r"Partition 0.*'alive' must hold True or 1.*holds 2"):
        regcal_dask.fit(scale, data, NORMAL, CensoredColumns("time", "alive"))
    with pytest.raises(ValueError, match="no column 'event'"):
        regcal_dask.fit(scale, data, NORMAL, CensoredColumns("time", "event"))


def test_errors_say_what_to_do(one_thread):
    """Data in memory and partitions that do not match are refused."""
    frame = table(30)
    data = dd.from_pandas(frame, npartitions=3)
    scale = regcal.get_calibrator("scale")

    with pytest.raises(TypeError, match="DataFrame"):
        regcal_dask.fit(scale, frame, NORMAL, "y")
    with pytest.raises(ValueError, match="3, 2 and 3 partitions"):
        regcal_dask.fit(scale, data, NORMAL, data["y"].repartition(npartitions=2))


def test_columns_and_rows_that_do_not_fit_are_named(one_thread):
    """Unknown columns, other rows and bad values are told with their place."""
    frame = table(40)
    data, pit = dd.from_pandas(frame, npartitions=2), regcal.get_calibrator("pit")
    shuffled = dd.from_pandas(frame["y"][::-1], npartitions=2, sort=False)
    array = data.to_dask_array(lengths=True)

    with pytest.raises(ValueError, match="no column 'target'"):
        regcal_dask.fit(pit, data, NORMAL, y="target")
    with pytest.raises(ValueError, match="no column 'mu'"):
        regcal_dask.fit(pit, data, NormalColumns("mu", "std"), y="y")
    with pytest.raises(ValueError, match="Pass a number from 0 to 3"):
        regcal_dask.fit(pit, array, NormalColumns(0, 1), y="y")
    with pytest.raises(ValueError, match="another index than the data"):
        regcal_dask.fit(pit, data, NORMAL, y=shuffled)
    with pytest.raises(TypeError, match="Pass a calibrator"):
        regcal_dask.fit("pit", data, NORMAL, y="y")
    frame.loc[25, "std"] = -1.0
    bad = dd.from_pandas(frame, npartitions=2)
    with pytest.raises(ValueError, match="Partition 1, whose index goes from 20 to 39"):
        regcal_dask.fit(pit, bad, NORMAL, y="y")


def test_dask_is_asked_for_by_name(monkeypatch):
    """Without Dask, the message tells which extra to install."""
    monkeypatch.setitem(sys.modules, "dask", None)

    with pytest.raises(ImportError, match=r"regcal\[dask\]"):
        regcal_dask.fit(regcal.get_calibrator("scale"), None, NORMAL, "y")
