"""Data and rows that tests of the study share."""

import pytest
from studies import EXPERIMENTS

from regcal.datasets import Dataset
from regcal.reproduce import Cell, Row, load_datasets, read_results


@pytest.fixture(scope="session")
def data() -> dict[str, Dataset]:
    return load_datasets(("diabetes",))


@pytest.fixture(scope="session")
def stored() -> dict[Cell, Row]:
    path = EXPERIMENTS / "uci.csv.gz"
    if not path.exists():
        pytest.skip("not a checkout of the repository")
    return read_results(path)
