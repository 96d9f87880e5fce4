"""What an audit says: text, tables, order."""

import sys

import numpy as np
import pytest

import regcal
from regcal.audit.findings import AuditedSegment


@pytest.fixture(params=[(), 0.8], ids=["thresholds", "and intervals"])
def found(request, rng):
    age = rng.uniform(0.0, 10.0, 1500)
    y = rng.normal(np.where(age < 2, -0.8, 0.0))
    dist = regcal.Normal(np.zeros(1500), 1.0)
    return regcal.audit(y, dist, {"age": age}, None, [0.0, 1.0], (1.0, 5.0), coverage=request.param)


def test_text_says_what_a_reader_asks(found):
    """Who, at which threshold, what was said, what was seen."""
    worst = found.segments[0]
    lines = str(found).splitlines()

    assert lines[0].startswith("Not calibrated in ")
    said = f"P(Y <= 0) was 0.50, observed {worst.observed:.2f}"
    if len(found.coverage):
        said = f"{100 * worst.observed:.0f} % lie below the 10 % quantile"
    assert f"age < {worst.segment[6:]}: {said}" in lines[1]
    assert lines[1].endswith("rows), p < 0.001")
    assert "should have cost" in lines[-1]
    assert repr(found) == str(found)


def test_text_of_a_calibrated_model_names_the_largest_difference(rng):
    """No news is said, with what came nearest to it."""
    y = rng.normal(size=500)
    audit = regcal.audit(y, regcal.Normal(np.zeros(500), 1.0), {"x": rng.normal(size=500)})

    assert str(audit).startswith("No sign of miscalibration in any segment (6 segments at 9 thresh")
    assert "at 9 thresholds and 2 intervals, 500 rows" in str(audit)
    assert str(audit.segments[0]) in str(audit)
    assert audit.wrong == ()


@pytest.mark.parametrize(
    ("kind", "place", "observed", "clause", "event"),
    [
        ("threshold", 3.5, 0.41, "P(Y <= 3.5) was 0.90, observed 0.41", "y <= 3.5"),
        ("coverage", 0.9, 0.41, "90 % intervals hold 41 %", "y in its 90 % interval"),
        ("coverage", 0.9, 0.8962, "90 % intervals hold 89.6 %", "y in its 90 % interval"),
        ("below", 0.05, 0.286, "29 % lie below the 5 % quantile", "y below its 5 % quantile"),
        ("above", 0.025, 1.0, "100 % lie above the 97.5 % quantile", "y above its 97.5 % quantile"),
    ],
)
def test_each_kind_of_event_has_its_words(kind, place, observed, clause, event):
    """Intervals are spoken of as intervals, with digits that tell shares apart."""
    predicted = 0.9 if kind == "threshold" else place
    ends = (predicted, observed, -0.1, 0.1, -9.0, 0.0005)
    one = AuditedSegment("g", "g = D", 2500, 2500.0, kind, place, *ends)

    assert str(one) == f"g = D: {clause} (2,500 rows), p < 0.001"
    assert one.event("y") == event


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
        column = list(zip(found.kinds, found.places, strict=True)).index((one.kind, one.place))
        assert found.observed[k, column] == one.observed
        assert found.predicted[k, column] == one.predicted
        assert found.statistics[k, column] == one.statistic
        assert found.p_values[k].min() == found.p_values[k, column] == one.p_value
