"""Segments: every row is in one of each source, and labels say which."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from regcal.audit.segments import make_segments
from regcal.covariates import Covariates


def segments_of(weights=None, **columns):
    covariates = Covariates.of(columns)
    weights = np.ones(len(covariates)) if weights is None else weights
    return make_segments(len(covariates), covariates, None, weights)


def rows_of(segments, label):
    return np.flatnonzero((segments.codes == segments.labels.index(label)).any(axis=1))


def test_labels_tell_the_rows(rng):
    """Evaluating a label on the values gives the rows of its segment."""
    age = np.round(rng.gamma(2.0, 10.0, 500), 1)
    segments = segments_of(age=age)

    assert len(segments) == 6
    for label in segments.labels[1:]:
        low, _, rest = label.rpartition(" <= ") if label.count("<") > 1 else ("-inf", "", label)
        inside = eval(rest, {"age": age}) & (age >= float(low))
        assert_array_equal(rows_of(segments, label), np.flatnonzero(inside))
        assert 80 <= inside.sum() <= 120


def test_every_row_is_in_one_segment_of_each_source(rng):
    """Sources divide the rows."""
    age = np.where(rng.random(300) < 0.1, np.nan, rng.normal(size=300))
    kind = rng.choice(["a", "b", None], 300)
    segments = segments_of(age=age, kind=kind)

    assert segments.codes.shape == (300, 3)
    for column, source in enumerate(("", "age", "kind")):
        assert {segments.sources[k] for k in np.unique(segments.codes[:, column])} == {source}
    assert_array_equal(rows_of(segments, "age is missing"), np.flatnonzero(np.isnan(age)))
    assert_array_equal(rows_of(segments, "kind is missing"), np.flatnonzero(kind == None))  # noqa: E711
    assert_array_equal(rows_of(segments, "kind = b"), np.flatnonzero(kind == "b"))
    assert_array_equal(rows_of(segments, "all rows"), np.arange(300))


def test_few_numbers_are_levels_and_shared_ones_a_range():
    """0, 1, 2 are counted one by one; half of the rows at 0 are not mixed with what follows."""
    few = segments_of(children=np.tile([0, 1, 2], 20))
    assert few.labels[1:] == ("children = 0", "children = 1", "children = 2")
    rain = np.r_[np.zeros(50), np.arange(1.0, 51.0)]
    segments = segments_of(rain=rain)
    assert_array_equal(rows_of(segments, "rain < 1"), np.arange(50))


def test_weights_move_cuts():
    """A weight of 2 is two rows."""
    x, weights = np.arange(40.0), np.tile([1.0, 3.0], 20)
    twice = np.repeat(x, weights.astype(int))

    assert segments_of(weights, x=x).labels == segments_of(x=twice).labels


def test_rare_levels_are_put_together():
    """The most frequent levels stay, the others are one segment."""
    ids = np.r_[np.repeat(np.arange(19), 10), np.arange(100, 140)].astype(str)
    segments = segments_of(id=ids)

    assert len(segments) == 1 + 20
    assert_array_equal(rows_of(segments, "id is one of 40 rare levels"), np.arange(190, 230))


def test_numbers_of_groups_are_labels():
    """Groups are taken level by level, up to a thousand."""
    segments = make_segments(60, None, Covariates.of({"site": np.arange(60) % 30}), np.ones(60))
    assert len(segments) == 31
    assert_array_equal(rows_of(segments, "site = 7"), [7, 37])
    with pytest.raises(ValueError, match="'g' has 2000 levels; 1000 are the most"):
        make_segments(2000, None, Covariates.of({"g": np.arange(2000)}), np.ones(2000))


def test_close_numbers_have_different_labels():
    """Cuts that agree in four digits are shown with more."""
    segments = segments_of(x=1e6 + np.arange(100.0))

    assert len(set(segments.labels)) == 6
