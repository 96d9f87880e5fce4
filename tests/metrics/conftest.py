"""Rows that tests of metrics share."""

import pytest

from regcal import Normal


@pytest.fixture
def normals(rng):
    """Return targets and the normal distributions they were drawn from."""
    loc = rng.normal(size=400)
    scale = rng.uniform(0.5, 2.0, size=400)
    return rng.normal(loc, scale), Normal(loc, scale)


@pytest.fixture
def weights(rng):
    return rng.integers(0, 4, size=400).astype(float)
