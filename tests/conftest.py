"""Fixtures and settings that every test shares."""

import numpy as np
import pytest
from hypothesis import settings

settings.register_profile("regcal", derandomize=True, deadline=None, database=None)
settings.load_profile("regcal")


@pytest.fixture
def rng() -> np.random.Generator:
    """Return a fresh generator with the same seed for every test."""
    return np.random.default_rng(0)
