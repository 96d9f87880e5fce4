"""Where displays find point masses, and where they look instead."""

import numpy as np
from numpy.testing import assert_allclose

from regcal import Clipped, Normal, Rounded, concatenate
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


def test_points_stand_beside_masses():
    """None is at a place, two are next to it, and the range is kept."""
    points = points_beside(np.zeros(2), np.ones(2), 11, [np.array([0.5]), np.empty(0)])

    assert points.shape == (2, 13)
    assert not (points[0] == 0.5).any()
    assert_allclose(np.sort(np.abs(points[0] - 0.5))[:2], 1e-6)
    assert_allclose(points[:, [0, -1]], [[0.0, 1.0], [0.0, 1.0]], atol=2e-6)
    assert (np.diff(points) >= 0).all()
