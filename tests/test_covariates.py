"""Tables of covariates: kinds, missing values, later rows, and what is refused."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_array_equal

from regcal.covariates import Covariates

AGES, REGIONS, FLAGS = [3.0, 28.0, None], ["south", None, "north"], [True, False, None]

TABLES = {
    "mapping": {"age": AGES, "region": REGIONS, "flag": FLAGS},
    "pandas": pd.DataFrame({"age": AGES, "region": REGIONS, "flag": FLAGS}),
    "nullable": pd.DataFrame(
        {
            "age": pd.array([3, 28, None], dtype="Int64"),
            "region": pd.array(REGIONS, dtype="string"),
            "flag": pd.array(FLAGS, dtype="boolean"),
        }
    ),
    "categories": pd.DataFrame(
        {
            "age": AGES,
            "region": pd.Categorical(REGIONS),
            "flag": pd.Categorical(FLAGS),
        }
    ),
    "polars": pl.DataFrame({"age": AGES, "region": REGIONS, "flag": FLAGS}),
    "polars categories": pl.DataFrame(
        {"age": AGES, "region": pl.Series(REGIONS, dtype=pl.Categorical), "flag": FLAGS}
    ),
}


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_every_table_gives_the_same_columns(table):
    """Numbers with nan, categories by the place of their level, -1 where there is none."""
    covariates = Covariates.of(table, 3)

    assert covariates.names == ("age", "region", "flag")
    assert covariates.kinds == ("number", "category", "category")
    assert_array_equal(covariates["age"].values, [3.0, 28.0, np.nan])
    assert covariates["region"].levels == ("north", "south")
    assert_array_equal(covariates["region"].values, [1, -1, 0])
    assert covariates["flag"].levels == (False, True)
    assert_array_equal(covariates["flag"].values, [1, 0, -1])
    assert_array_equal(covariates["region"].missing, [False, True, False])
    assert len(covariates) == 3


def test_arrays_have_numbered_columns():
    """Rows × columns, lists of mixed rows, and single columns."""
    assert Covariates.of(np.ones((4, 2))).names == ("x0", "x1")
    mixed = Covariates.of([["a", 2], ["b", 3.5]])
    assert mixed.kinds == ("category", "number")
    assert_array_equal(mixed["x1"].values, [2.0, 3.5])
    assert Covariates.of(["a", "b", "a"])["x0"].levels == ("a", "b")
    assert Covariates.of(pd.Series([1, 2], name="dose")).names == ("dose",)


def test_levels_of_several_types_are_told_apart():
    """1 and "1" are two levels."""
    column = Covariates.of({"x": ["1", 1, "a", None]})["x"]

    assert len(column.levels) == 3
    assert [column.levels[k] for k in column.values[:3]] == ["1", 1, "a"]


@pytest.mark.parametrize("rows", [slice(1, 3), [2, 0], np.array([True, False, True])])
def test_rows_are_taken_of_all_columns(rows):
    """Slices, numbers and truth values, as of arrays."""
    covariates = Covariates.of({"age": [1, 2, 3], "kind": ["b", "a", "b"]})
    some = covariates[rows]

    assert_array_equal(some["age"].values, np.array([1.0, 2.0, 3.0])[rows])
    assert_array_equal(some["kind"].values, np.array([1, 0, 1])[rows])
    assert some["kind"].levels == ("a", "b")


def test_later_rows_are_read_by_name():
    """Order of columns and of levels is that of the first table; unknown levels are missing."""
    first = Covariates.of({"age": [1, 2], "kind": ["b", "c"]})
    later = first.read(pd.DataFrame({"more": [0, 0, 0], "kind": ["c", "z", "b"], "age": [5, 6, 7]}))

    assert later.names == first.names
    assert later["kind"].levels == ("b", "c")
    assert_array_equal(later["kind"].values, [1, -1, 0])
    assert_array_equal(later["age"].values, [5.0, 6.0, 7.0])


def test_columns_without_any_value_stay_what_they_were():
    """A batch in which all values are missing fits both kinds."""
    first = Covariates.of({"age": [1, 2], "kind": ["b", "c"]})
    later = first.read({"age": [None], "kind": [None]})

    assert np.isnan(later["age"].values[0])
    assert later["kind"].values[0] == -1
    text = Covariates.of({"age": np.array(["x"])})[[]]
    assert np.isnan(Covariates.of({"age": [1.0]}).read(text)["age"].values).all()


BAD = {
    "none": (None, "are None. Pass a frame"),
    "no columns": ({}, "no columns"),
    "lengths": ({"a": [1, 2], "b": [1]}, "'b' has 1 values for 2 rows of column 'a'"),
    "infinite": ({"a": [1.0, np.inf]}, "'a' is inf in row 1; numbers must be finite"),
    "dates": ({"a": np.array(["2020-01-01"], dtype="M8[D]")}, "holds dates such as '2020-01-01'"),
    "complex": ({"a": [1 + 2j]}, "holds complex numbers"),
    "objects": ({"a": [{}, {}]}, "holds dict objects"),
    "matrix in a column": ({"a": [[1], [2]]}, r"shape \(2, 1\). Pass one value per row"),
    "cube": (np.zeros((2, 2, 2)), r"shape \(2, 2, 2\)"),
    "masked": (np.ma.masked_array([1.0, 2.0], [False, True]), "masked"),
    "same name": (pd.DataFrame([[1, 2]], columns=["a", "a"]), "Two columns are called 'a'"),
}


@pytest.mark.parametrize(("table", "message"), BAD.values(), ids=BAD)
def test_bad_tables_are_refused(table, message):
    """The message names the column, the value and the way out."""
    with pytest.raises(ValueError, match=message):
        Covariates.of(table)


def test_sparse_tables_are_refused():
    """They would be a million zeros, each a value."""
    from scipy.sparse import eye

    with pytest.raises(TypeError, match="sparse"):
        Covariates.of(eye(3).tocsr())


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"age": [1]}, "'kind' not found"),
        ({"age": ["x"], "kind": ["b"]}, "'age' holds categories such as 'x', but numbers before"),
        ({"age": [1], "kind": [2]}, "'kind' holds numbers, but categories such as 'b' before"),
        (np.ones((2, 3)), "were 'age', 'kind' before"),
    ],
)
def test_later_rows_with_other_columns_are_refused(table, message):
    """What was learnt of one column says nothing of another."""
    first = Covariates.of({"age": [1, 2], "kind": ["b", "c"]})
    with pytest.raises(ValueError, match=message):
        first.read(table)


def test_numbers_of_rows_have_to_agree():
    """Rows of covariates are those of the distributions."""
    with pytest.raises(ValueError, match="'x0' has 3 values for 4 rows"):
        Covariates.of(np.ones((3, 1)), 4)
    with pytest.raises(ValueError, match="'x0', 'x1', 'x2', but were 'x0', 'x1' before"):
        Covariates.of(np.ones((3, 2))).read(np.ones((3, 3)))
    with pytest.raises(KeyError, match="no column 'z'"):
        Covariates.of({"a": [1]})["z"]


def test_columns_are_chosen_by_names_or_numbers():
    """Lists, arrays and indexes of either; what is none of them is told."""
    frame = pd.DataFrame({"a": [1.0], "b": [2.0], "c": [3.0]})

    for which in (["a", "c"], [0, -1], np.array([0, 2]), frame.columns[[0, 2]]):
        assert Covariates.chosen(frame, which).names == ("a", "c")
    assert Covariates.chosen(frame, "b").names == Covariates.chosen(frame, 1).names == ("b",)
    assert Covariates.chosen(frame, "all").names == ("a", "b", "c")
    for which, error, text in [
        (["d"], ValueError, "no column 'd'"),
        ([3], ValueError, "no column 3"),
        ([True], ValueError, "no column True"),
        ([], ValueError, "No covariates are chosen"),
        (1.5, TypeError, "names or numbers of columns, got 1.5"),
    ]:
        with pytest.raises(error, match=text):
            Covariates.chosen(frame, which)


def test_text_is_no_truth_value_and_no_number():
    """What looks alike is not equal: all rows would count as never seen."""
    known = Covariates.of({"old": [True, False]})
    with pytest.raises(ValueError, match="holds categories such as 'False', but truth values"):
        known.read({"old": ["True", "False"]})
    with pytest.raises(ValueError, match="holds numbers, but truth values before"):
        known.read({"old": [0, 1]})


def test_dates_with_a_time_zone_are_refused():
    """As those without one are: each would be a category of its own."""
    dates = pd.date_range("2020-01-01", periods=3, tz="UTC")
    for column in (dates, pd.period_range("2020-01", periods=3, freq="M")):
        with pytest.raises(ValueError, match="holds dates"):
            Covariates.of({"when": column})


def test_names_in_place_of_columns_are_refused():
    """And tables that are not computed yet."""
    with pytest.raises(TypeError, match=r"the text 'all'.*CalibratedRegressorCV"):
        Covariates.of("all")
    with pytest.raises(TypeError, match=r"LazyFrame. Pass table.collect\(\)"):
        Covariates.of(pl.LazyFrame({"a": [1.0]}))


def test_a_column_of_unknown_categories_is_told_of():
    """It is answered as missing, which a typing error should not be in silence."""
    known = Covariates.of({"region": ["north", "south"]})
    with pytest.warns(UserWarning, match=r"'region', such as 'north ', was seen before"):
        assert known.read({"region": ["north ", None]})["region"].missing.all()
    assert_array_equal(known.read({"region": ["north", "mars"]})["region"].values, [0, -1])
    assert known.read({"region": [None, None]})["region"].missing.all()
