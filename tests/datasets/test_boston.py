"""Boston, which is not shipped: its sources, its warning, its checksum."""

import sys
from types import ModuleType, SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import sklearn.datasets
from numpy.testing import assert_array_equal

from regcal import datasets
from regcal.datasets import _boston


@pytest.fixture
def values(rng):
    """Return made-up values of the right shape."""
    return rng.normal(size=(506, 13)), rng.normal(size=506)


@pytest.fixture
def no_sources(monkeypatch):
    """Make mlxtend missing and OpenML unreachable."""

    def unreachable(**kwargs):
        raise OSError("no network")

    monkeypatch.setitem(sys.modules, "mlxtend", None)
    monkeypatch.setitem(sys.modules, "mlxtend.data", None)
    monkeypatch.setattr(sklearn.datasets, "fetch_openml", unreachable)


@pytest.fixture
def fake_mlxtend(monkeypatch, no_sources, values):
    module = ModuleType("mlxtend.data")
    module.boston_housing_data = lambda: values
    monkeypatch.setitem(sys.modules, "mlxtend", ModuleType("mlxtend"))
    monkeypatch.setitem(sys.modules, "mlxtend.data", module)


@pytest.fixture
def accept(monkeypatch, values):
    """Let the made-up values pass for the original ones."""
    monkeypatch.setattr(_boston, "_SHA256", _boston._checksum(*values))


def test_boston_comes_from_mlxtend(fake_mlxtend, accept, values):
    """An installed mlxtend is the first source."""
    with pytest.warns(UserWarning, match="ethical"):
        data = datasets.load_boston()

    assert_array_equal(data.X, values[0])
    assert_array_equal(data.y, values[1])
    assert data.feature_names[-2:] == ("B", "LSTAT")
    assert set(data.units) <= {*data.feature_names, data.target_name}


def test_boston_comes_from_openml_without_mlxtend(monkeypatch, no_sources, values):
    """OpenML is the second source; its categories become the numbers they name."""
    X, y = values
    X[:, 8] = np.where(X[:, 8] > 0, 24, 4)
    frame = pd.DataFrame(X)
    frame[8] = frame[8].astype(int).astype(str).astype("category")
    bunch = SimpleNamespace(data=frame, target=pd.Series(y))
    monkeypatch.setattr(sklearn.datasets, "fetch_openml", lambda **kwargs: bunch)
    monkeypatch.setattr(_boston, "_SHA256", _boston._checksum(X, y))

    with pytest.warns(UserWarning, match="ethical"):
        data = datasets.load_boston()

    assert_array_equal(data.X, X)


def test_boston_warns_once_at_every_call(fake_mlxtend, accept):
    """The warning is not lost after the first call."""
    for _ in range(2):
        with pytest.warns(UserWarning) as caught:
            datasets.load_boston()

        assert len(caught) == 1
        assert caught[0].filename == __file__


def test_boston_without_a_source_says_how_to_get_it(no_sources):
    """The error names both sources and what to install."""
    with (
        pytest.warns(UserWarning, match="ethical"),
        pytest.raises(OSError, match=r"no network.*pip install mlxtend"),
    ):
        datasets.load_boston()


def test_boston_refuses_other_values(fake_mlxtend):
    """Values that are not the original ones are not returned."""
    with (
        pytest.warns(UserWarning, match="ethical"),
        pytest.raises(ValueError, match="checksum"),
    ):
        datasets.load_boston()


def test_checksum_sees_a_single_changed_value(values):
    """One cell is enough to change the checksum; the memory layout is not."""
    X, y = values
    before = _boston._checksum(X, y)

    assert _boston._checksum(np.asfortranarray(X), y) == before

    X[445, 0] += 1e-4

    assert _boston._checksum(X, y) != before
