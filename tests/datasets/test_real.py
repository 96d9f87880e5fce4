"""Loaders return the published values."""

import hashlib
import re
from importlib.resources import files

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from rows import PUBLISHED, load

from regcal import datasets

DATA = files("regcal.datasets") / "data"


@pytest.mark.parametrize(("name", "shape", "first_x", "first_y"), PUBLISHED)
def test_first_row_is_the_published_one(name, shape, first_x, first_y):
    """Every loader keeps the original order and values."""
    data = load(name)

    assert data.X.shape == shape
    assert_array_equal(data.X[0], first_x)
    assert data.y[0] == first_y


def test_shipped_files_have_their_checksums():
    """The files are those that the data README describes, byte for byte."""
    rows = re.findall(r"^\| `(\w+\.csv)` .* `(\w{64})` \|$", (DATA / "README.md").read_text(), re.M)
    shipped = {path.name: path for path in DATA.iterdir() if path.name.endswith(".csv")}

    assert dict(rows).keys() == shipped.keys()
    for name, checksum in rows:
        assert hashlib.sha256(shipped[name].read_bytes()).hexdigest() == checksum, name


def test_forest_fires_count_months_and_days_from_one():
    """The counts are those of the names in the file, in calendar order."""
    data = datasets.load_forest_fires()
    month, day = data.X[:, 2], data.X[:, 3]

    assert np.bincount(month.astype(int)).tolist() == [
        *(0, 2, 20, 54, 9, 2, 17),
        *(32, 184, 172, 15, 1, 9),
    ]
    assert np.bincount(day.astype(int)).tolist() == [0, 74, 64, 54, 61, 85, 84, 95]


def test_known_repetitions_are_kept():
    """No row of the originals was dropped as a duplicate."""
    for name, repeated in [("concrete", 25), ("forest_fires", 4)]:
        data = load(name)
        rows = np.column_stack([data.X, data.y])

        assert len(rows) - len(np.unique(rows, axis=0)) == repeated
