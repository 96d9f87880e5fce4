"""Columns become the same distributions from every kind of table, and models keep their names."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_array_equal
from sklearn.linear_model import BayesianRidge

import regcal
from regcal.tables import (
    NormalColumns,
    QuantileColumns,
    SampleColumns,
    TableCalibrator,
    TableRegressor,
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
