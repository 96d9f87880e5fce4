"""Rows that tests of metrics share."""

import numpy as np
import pytest

from regcal import Normal, Outcomes


@pytest.fixture
def normals(rng):
    """Return targets and the normal distributions they were drawn from."""
    loc = rng.normal(size=400)
    scale = rng.uniform(0.5, 2.0, size=400)
    return rng.normal(loc, scale), Normal(loc, scale)


@pytest.fixture
def weights(rng):
    return rng.integers(0, 4, size=400).astype(float)


def right_censored(rng, y):
    limit = rng.normal(0.7, 1.5, len(y))
    return Outcomes.right_censored(np.minimum(y, limit), y <= limit)


def left_censored(rng, y):
    limit = rng.normal(-0.7, 1.5, len(y))
    return Outcomes.left_censored(np.maximum(y, limit), y >= limit)


def between_visits(rng, y):
    """Return outcomes of which three in four are known to lie between visits."""
    first = rng.uniform(size=len(y))
    lower = np.floor(y - first) + first
    seen = rng.uniform(size=len(y)) < 0.25
    return Outcomes(np.where(seen, y, lower), np.where(seen, y, lower + 1.0))


def doubly_censored(rng, y):
    low, high = rng.normal(-1.5, 1.0, len(y)), rng.normal(1.5, 1.0, len(y))
    low, high = np.minimum(low, high), np.maximum(low, high)
    lower = np.where(y < low, -np.inf, np.minimum(y, high))
    return Outcomes(lower, np.where(y > high, np.inf, np.maximum(y, low)))


CENSORINGS = [right_censored, left_censored, between_visits, doubly_censored]


@pytest.fixture(params=CENSORINGS, ids=lambda make: make.__name__)
def censored(request, normals, rng):
    """Return what was seen of targets, and the distributions that they were drawn from."""
    y, dist = normals
    return request.param(rng, y), dist


@pytest.fixture(params=CENSORINGS, ids=lambda make: make.__name__)
def censoring(request):
    """Return a way to see less of targets."""
    return request.param
