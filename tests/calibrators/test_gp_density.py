"""Points of the density map may be merged."""

import numpy as np
from numpy.testing import assert_allclose
from rows import mean_log_score, normal_rows

from regcal import DensityCalibrator
from regcal.calibrators import gp_density
from regcal.calibrators.gp_density import PathPoints


def test_merging_keeps_weights_and_means(rng):
    """Merged points have the same total weight and means, and stay near their own points."""
    points = PathPoints(
        rng.normal(0, 0.3, 5000),
        rng.uniform(-1, 1, 5000),
        np.exp(rng.normal(0, 0.1, 5000)),
        rng.uniform(0.1, 2.0, 5000),
    )

    merged = points.merged()

    assert len(merged.u) < 4500
    assert_allclose(merged.weights.sum(), points.weights.sum())
    for name in ("u", "s", "spread"):
        wanted = np.average(getattr(points, name), weights=points.weights)
        found = np.average(getattr(merged, name), weights=merged.weights)
        assert_allclose(found, wanted, atol=1e-12, err_msg=name)
    # each merged point is the mean of points of one cell: all within a cell's width
    place = np.stack([np.tanh(merged.u / 2), merged.s, np.log(merged.spread) / 8])
    original = np.stack([np.tanh(points.u / 2), points.s, np.log(points.spread) / 8])
    width = np.array([2 / 128, 2 / 128, 1 / 64])
    for row in rng.integers(0, len(merged.u), 50):
        near = np.abs(original - place[:, row : row + 1]) <= width[:, np.newaxis]
        assert near.all(axis=0).any()


def test_merged_points_give_the_same_fit(rng, monkeypatch):
    """A density map fitted on merged cells scores as the one fitted on all points."""
    dist, y = normal_rows(rng, 400, scale=1.7)
    new, new_y = normal_rows(rng, 400, scale=1.7)
    exact = DensityCalibrator().fit(dist, y).transform(new)

    monkeypatch.setattr(gp_density, "_MAX_POINTS", 50)
    merged = DensityCalibrator().fit(dist, y).transform(new)

    assert_allclose(mean_log_score(merged, new_y), mean_log_score(exact, new_y), atol=0.01)
    assert_allclose(merged.std(), exact.std(), rtol=0.02)
