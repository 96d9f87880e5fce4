"""Columns become the same distributions from every kind of table, and models keep their names."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.linear_model import BayesianRidge

import regcal
from regcal.tables import (
    CensoredColumns,
    ExactColumn,
    IntervalColumns,
    NormalColumns,
    QuantileColumns,
    SampleColumns,
    TableCalibrator,
    TableRegressor,
    outcome_columns,
    read_column,
)

VALUES = np.array([[1.0, 2.0, 4.0], [0.5, 0.7, 0.9], [3.0, 1.0, 2.0]])
NAMES = ["a", "b", "c"]
TABLES = {
    "mapping": dict(zip(NAMES, VALUES.T.tolist(), strict=True)),
    "pandas": pd.DataFrame(VALUES, columns=NAMES),
    "polars": pl.DataFrame(VALUES, schema=NAMES),
}
KINDS = {
    "normal": (NormalColumns, lambda a, b, c: (a, c), regcal.Normal(VALUES[:, 0], VALUES[:, 2])),
    "quantiles": (
        QuantileColumns,
        lambda a, b, c: ({0.9: c, 0.1: a, 0.5: b},),
        regcal.Quantiles([0.1, 0.5, 0.9], np.sort(VALUES, axis=1)),
    ),
    "samples": (SampleColumns, lambda a, b, c: ([a, b, c],), regcal.Samples(VALUES)),
}


@pytest.fixture(params=KINDS)
def kind(request):
    """Return columns by name and by number, and the distributions that they hold."""
    make, arguments, dist = KINDS[request.param]
    return make(*arguments(*NAMES)), make(*arguments(0, 1, 2)), dist


@pytest.mark.filterwarnings("ignore::regcal.CrossingQuantilesWarning")
@pytest.mark.parametrize("table", [*TABLES, "array"])
def test_every_table_holds_the_same_distributions(kind, table):
    """A frame, a mapping and an array of the same numbers are the same predictions."""
    named, numbered, dist = kind

    found = numbered(VALUES) if table == "array" else named(TABLES[table])

    assert type(found) is type(dist)
    points = np.linspace(-1.0, 5.0, 7)[np.newaxis, :]
    assert_array_equal(found.cdf(points), dist.cdf(points))


@pytest.mark.parametrize(
    "columns", [SampleColumns(range(6)), QuantileColumns({q / 7: q - 1 for q in range(1, 7)})]
)
def test_rows_without_spread_are_refused_unless_they_lie_on_an_end(columns):
    """Numbers that all agree are point forecasts, but for those of a dry week."""
    dry, points = np.zeros((8, 6)), np.repeat(np.arange(1.5, 9.5)[:, np.newaxis], 6, axis=1)
    some = np.concatenate([points, points + np.arange(6)])

    assert not columns.refused(dry).rows.any()
    assert_array_equal(columns(dry).mass(0.0), 1.0)
    assert columns.refused(points).rows.all()
    assert columns.refused(np.concatenate([dry, points])).rows.sum() == 8
    assert not columns.refused(some).rows.any()
    assert len(columns(some)) == 16


@pytest.mark.parametrize("table", TABLES)
def test_a_column_that_is_not_there_is_named(table):
    """The message says what there is instead."""
    with pytest.raises(ValueError, match=r"no column 'mu'.*'a', 'b', 'c'"):
        NormalColumns("mu", "b")(TABLES[table])
    with pytest.raises(ValueError, match="number from 0 to 2"):
        NormalColumns(0, 3)(VALUES)


def test_a_column_of_text_is_named():
    """What is no number is not read as one."""
    with pytest.raises(ValueError, match=r"column 'id' must hold numbers.*text"):
        read_column({"id": ["x", "y"]}, "id")


def test_rows_that_are_no_distribution_are_found():
    """Spreads of zero are told apart from crossing quantiles, which can be sorted."""
    table = {"a": [1.0, 2.0, 3.0], "b": [0.0, 2.0, 4.0], "c": [2.0, 2.0, 5.0]}
    quantiles = QuantileColumns({0.1: "a", 0.5: "b", 0.9: "c"})

    assert NormalColumns("a", "b").refused(table).rows.tolist() == [True, False, False]
    agreeing = {name: [values[1]] * 2 for name, values in table.items()}
    for columns in (quantiles, SampleColumns(["a", "b", "c"])):
        # a row without spread takes that of others, if there are any
        assert columns.refused(table).rows.tolist() == [False, False, False]
        assert columns.refused(agreeing).rows.tolist() == [True, True]
    assert quantiles.crossing(table).tolist() == [True, False, False]
    assert not NormalColumns("a", "b").crossing(table).any()


def test_table_models_come_back_from_files(kind, tmp_path, rng):
    """A model file keeps where the predictions stand, whatever their kind."""
    named, _, _ = kind
    table = dict(zip(NAMES, np.sort(rng.uniform(1.0, 2.0, (3, 30)), axis=0), strict=True))
    table["y"] = rng.normal(1.5, 1.0, 30)
    model = TableCalibrator(named, regcal.get_calibrator("scale")).fit(table)

    regcal.save(model, tmp_path / "model.regcal")
    again = regcal.load(tmp_path / "model.regcal")

    assert again.inputs == model.inputs == named.names
    assert_array_equal(again.predict_dist(table).mean(), model.predict_dist(table).mean())


def test_a_table_regressor_takes_columns_in_any_order(rng):
    """Features are found by name."""
    table = {name: rng.normal(size=40) for name in ("x", "z", "y")}
    inner = regcal.CalibratedRegressorCV(BayesianRidge(), "scale")
    model = TableRegressor(inner, ("z", "x")).fit(table)

    turned = {name: table[name] for name in ("y", "z", "x")}
    assert_array_equal(model.predict_dist(turned).mean(), model.predict_dist(table).mean())
    assert_array_equal(model.predict_base(turned).mean(), model.predict_base(table).mean())


# ----------------------------------------------------------------------------------------- outcomes

TIMES, ALIVE = [5.0, 8.0, 0.0], [False, True, False]
ENDS = [5.0, np.inf, 0.0]
SURVIVAL = {
    "mapping": {"time": TIMES, "alive": ALIVE, "low": TIMES, "high": ENDS},
    "pandas": pd.DataFrame({"time": TIMES, "alive": ALIVE, "low": TIMES, "high": [5, None, 0]}),
    "polars": pl.DataFrame({"time": TIMES, "alive": [0, 1, 0], "low": TIMES, "high": ENDS}),
}
SEEN = regcal.Outcomes.right_censored(TIMES, observed=~np.array(ALIVE))


@pytest.mark.parametrize("table", SURVIVAL)
@pytest.mark.parametrize(
    "columns", [CensoredColumns("time", "alive"), IntervalColumns("low", "high")]
)
def test_every_table_tells_the_same_outcomes(table, columns):
    """Truth values and ends, missing or infinite, are the same intervals."""
    found = columns(SURVIVAL[table])

    assert_array_equal(found.lower, SEEN.lower)
    assert_array_equal(found.upper, SEEN.upper)


def test_columns_of_arrays_tell_outcomes():
    """Columns have numbers, and a name alone is a column of numbers."""
    table = np.column_stack([TIMES, ALIVE, ENDS])

    for columns in (CensoredColumns(0, 1), IntervalColumns(0, 2)):
        assert_array_equal(columns(table).upper, SEEN.upper)
        assert_array_equal(columns.of_columns(table[:, list(columns.names)].T).upper, SEEN.upper)
    assert outcome_columns(2) == ExactColumn(2)
    assert_array_equal(outcome_columns(0)(table), TIMES)


def test_outcomes_that_contradict_themselves_are_found():
    """Rows are told by number, and refused when they are read."""
    table = {"a": [1.0, 3.0, np.nan], "b": [2.0, 2.0, np.nan], "flag": [0.0, 2.0, np.nan]}
    ends, flagged = IntervalColumns("a", "b"), CensoredColumns("a", "flag")

    assert ends.refused(table).rows.tolist() == [False, True, False]
    assert ends.unknown(table).tolist() == [False, False, True]
    assert flagged.unknown(table).tolist() == [False, False, True]
    assert flagged.refused({"a": [1.0, 3.0], "flag": [0.0, 2.0]}).rows.tolist() == [False, True]
    with pytest.raises(ValueError, match=r"Row 1 has lower = 3.0 and upper = 2.0"):
        ends(table)
    with pytest.raises(ValueError, match=r"'flag' must hold True or 1.*row 1 holds 2"):
        flagged(table)
    with pytest.raises(ValueError, match="no column 'event'"):
        CensoredColumns("a", "event")(table)


def survival_table(rng, n=60):
    """Return predictions and features of times, a third of which are censored."""
    x = rng.uniform(1.0, 3.0, n)
    time, alive = np.maximum(x + rng.normal(size=n), 0.0), np.arange(n) % 3 == 0
    table = {"x": x, "spread": np.ones(n), "time": time, "alive": alive}
    return table, regcal.Outcomes.right_censored(time, observed=~alive)


def test_a_table_calibrator_learns_from_censored_rows(tmp_path, rng):
    """It is the calibrator of the Python API, and a file keeps where its outcomes stand."""
    table, seen = survival_table(rng)
    columns = CensoredColumns("time", "alive")
    pit = regcal.get_calibrator("pit", support=(0, None))
    model = TableCalibrator(NormalColumns("x", "spread"), pit, columns).fit(table)

    regcal.save(model, tmp_path / "model.regcal")
    again = regcal.load(tmp_path / "model.regcal")

    dist = regcal.Normal(table["x"], table["spread"])
    wanted = regcal.get_calibrator("pit", support=(0, None)).fit(dist, seen).transform(dist)
    assert_array_equal(model.predict_dist(table).mean(), wanted.mean())
    assert_array_equal(again.predict_dist(table).mean(), wanted.mean())
    assert again.target == columns
    assert again.support == regcal.calibrators.Support(low=0.0, bare_low=True)


def test_a_table_regressor_learns_from_censored_rows(rng):
    """It is the regressor of the Python API."""
    table, seen = survival_table(rng)
    inner = regcal.CalibratedRegressorCV(BayesianRidge(), "pit", support=(0, None))
    model = TableRegressor(inner, ("x",), target=CensoredColumns("time", "alive")).fit(table)

    wanted = inner.fit(pd.DataFrame({"x": table["x"]}), seen)
    found = model.predict_dist(table)
    assert_allclose(found.mean(), wanted.predict(pd.DataFrame({"x": table["x"]})))
    assert model.support == wanted.support_
    assert model.n_rows_seen_ == 60
