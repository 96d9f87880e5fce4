"""Fixtures and settings that every test shares."""

import os

# Tests share the cores already: threads of linear algebra and of trees would wait for each other,
# and small problems take ten times as long. Processes that tests start inherit this; it has to be
# said before NumPy is imported. Boosters start a thread a core unless there is a limit.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OMP_THREAD_LIMIT", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import pytest


@pytest.fixture
def rng() -> np.random.Generator:
    """Return a fresh generator with the same seed for every test."""
    return np.random.default_rng(0)


@pytest.fixture
def few_trees(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let corrections of covariates grow a tenth of their trees.

    Files of hundreds of trees take seconds to write and to read. For tests that are not about how
    well trees learn.
    """
    from regcal.corrections import regressors

    for name in ("_SHIFT_TREES", "_SQUARE_TREES"):
        own = getattr(regressors, name)
        monkeypatch.setattr(regressors, name, own | {"max_iter": own["max_iter"] // 10})


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run the laws of a case one after the other.

    Cases keep what they fitted, so that processes which share the tests need not fit it twice.
    """
    places: dict[tuple[str, str], int] = {}
    for place, item in enumerate(items):
        places.setdefault(_group(item) or (item.nodeid, ""), place)
    items.sort(key=lambda item: places[_group(item) or (item.nodeid, "")])


def _group(item: pytest.Item) -> tuple[str, str] | None:
    """Return the file and the case of a law, and None for other tests."""
    case = getattr(item, "callspec", None) and item.callspec.params.get("case")
    name = getattr(case, "name", None)
    return None if name is None else (item.nodeid.partition("::")[0], name)
