"""Where displays find point masses, and where they look instead."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from regcal import Clipped, Normal, Rounded, concatenate, log_score
from regcal.distributions.masses import point_masses, points_beside


def test_masses_are_found_where_they_are():
    """At both ends, at all counts, and nowhere in a smooth distribution."""
    base = Normal([0.0, 1.0], [1.0, 2.0])
    ends, none, counts = (
        point_masses(dist)[1] for dist in (Clipped(base, -1.0, 2.0), base, Rounded(base))
    )

    assert_allclose(ends, [[-1.0, base.cdf(-1.0)[1]], [2.0, base.sf(2.0)[1]]])
    assert none.shape == (0, 2)
    assert_allclose(counts[:, 1], Rounded(base)[1].mass(counts[np.newaxis, :, 0])[0])
    assert counts[:, 1].sum() > 0.99
    mixed = point_masses(concatenate([Clipped(base, 0.0)[:1], base[1:]]))
    assert [len(table) for table in mixed] == [1, 0]


NESTED = {
    "ends one after the other": lambda base: Clipped(Clipped(base, low=0.0), high=3.0),
    "ends within wider ones": lambda base: Clipped(Clipped(base, 0.0, 3.0), -1.0, 9.0),
    "ends of a batch of parts": lambda base: Clipped(
        concatenate([Clipped(base[:1], 0.0), Clipped(base[1:], 0.0)]), high=3.0
    ),
    "counts that are cut": lambda base: Clipped(Rounded(base), 0.0, 3.0),
    "cut values that are counted": lambda base: Rounded(Clipped(base, 0.0, 3.0)),
}


@pytest.mark.parametrize("name", NESTED)
def test_masses_of_what_is_clipped_stay(name):
    """A mass is the jump of the CDF, wherever it comes from."""
    dist = NESTED[name](Normal([0.3, 2.0], [1.0, 1.5]))
    places, gap = np.array([[0.0, 1.0, 2.0, 3.0]]), 1e-6

    jumps = dist.cdf(places + gap) - dist.cdf(places - gap)

    assert_allclose(dist.mass(places), np.where(jumps > 1e-5, jumps, 0.0), atol=1e-5)
    assert (dist.mass(0.0) > 0.05).all() and (dist.mass(3.0) > 1e-3).all()
    assert_allclose(np.exp(dist.logprob(0.0, 0.0)), dist.mass(0.0))
    values = log_score([0.0, 3.0], dist)
    assert_allclose(values, np.log([dist.mass(0.0)[0], dist.mass(3.0)[1]]))


@pytest.mark.parametrize("kind", [Clipped, Rounded])
def test_only_distributions_are_seen_through_ends_and_steps(kind):
    """What else was passed is named, with the way out."""
    with pytest.raises(TypeError, match=r"must be a Distribution, got list.*as_distribution"):
        kind([1.0, 2.0])


def test_points_stand_beside_masses():
    """None is at a place, two are next to it, and the range is kept."""
    points = points_beside(np.zeros(2), np.ones(2), 11, [np.array([0.5]), np.empty(0)])

    assert points.shape == (2, 13)
    assert not (points[0] == 0.5).any()
    assert_allclose(np.sort(np.abs(points[0] - 0.5))[:2], 1e-6)
    assert_allclose(points[:, [0, -1]], [[0.0, 1.0], [0.0, 1.0]], atol=2e-6)
    assert (np.diff(points) >= 0).all()
