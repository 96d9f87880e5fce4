"""Stored arrays hold nothing of the memory they lay in."""

import io

import numpy as np
from numpy.testing import assert_array_equal

from regcal.persistence import _schema


def test_gaps_between_the_fields_of_records_are_cleared():
    """Trees hold records with gaps, where anything from the memory may be."""
    records = np.zeros(3, dtype=np.dtype([("a", "<i8"), ("b", "u1")], align=True))
    records["a"], records["b"] = [1, 2, 3], [4, 5, 6]
    stored = []
    for filler in (0, 255):
        raw = records.view(np.uint8).reshape(3, 16).copy()
        raw[:, 9:] = filler
        buffer = io.BytesIO()
        np.save(buffer, raw.view(records.dtype).ravel())
        stored.append(_schema._without_padding(buffer.getvalue()))

    assert stored[0] == stored[1]
    assert_array_equal(np.load(io.BytesIO(stored[1]))["a"], [1, 2, 3])
