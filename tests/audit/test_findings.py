"""What an audit says: text, tables, order."""

import sys

import numpy as np
import pytest

import regcal


@pytest.fixture
def found(rng):
    age = rng.uniform(0.0, 10.0, 1500)
    y = rng.normal(np.where(age < 2, -0.8, 0.0))
    dist = regcal.Normal(np.zeros(1500), 1.0)
    return regcal.audit(y, dist, {"age": age}, thresholds=[0.0, 1.0], costs=(1.0, 5.0))


def test_text_says_what_a_reader_asks(found):
    """Who, at which threshold, what was said, what was seen."""
    worst = found.segments[0]
    lines = str(found).splitlines()

    assert lines[0].startswith("Not calibrated in ")
    assert (
        f"age < {worst.segment[6:]}: P(Y <= 0) was 0.50, observed {worst.observed:.2f}" in lines[1]
    )
    assert lines[1].endswith("rows), p < 0.001")
    assert "should have cost" in lines[-1]
    assert repr(found) == str(found)


def test_text_of_a_calibrated_model_names_the_largest_difference(rng):
    """No news is said, with what came nearest to it."""
    y = rng.normal(size=500)
    audit = regcal.audit(y, regcal.Normal(np.zeros(500), 1.0), {"x": rng.normal(size=500)})

    assert str(audit).startswith("No sign of miscalibration in any segment (6 segments at 9 thresh")
    assert str(audit.segments[0]) in str(audit)
    assert audit.wrong == ()


def test_tables_have_a_row_per_segment(found, monkeypatch):
    """A frame with pandas, dicts without it, the same numbers."""
    frame = found.table()
    monkeypatch.setitem(sys.modules, "pandas", None)
    records = found.table()

    assert list(frame.columns) == list(records[0])
    assert frame.to_dict("records") == records
    assert [row["p_value"] for row in records] == sorted(row["p_value"] for row in records)
    assert np.allclose(frame.difference, frame.observed - frame.predicted)
    assert len(found.cost_table()) == 2 * len(records)


def test_arrays_are_in_the_order_of_segments(found):
    """Rows of the tables by threshold belong to the segments beside them."""
    for k, one in enumerate(found.segments):
        column = list(found.thresholds).index(one.threshold)
        assert found.observed[k, column] == one.observed
        assert found.predicted[k, column] == one.predicted
        assert found.statistics[k, column] == one.statistic
        assert found.p_values[k].min() == found.p_values[k, column] == one.p_value
