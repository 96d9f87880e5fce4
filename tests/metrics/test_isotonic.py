"""Isotonic recalibration at thresholds against scikit-learn."""

import numpy as np
from numpy.testing import assert_allclose
from sklearn.isotonic import IsotonicRegression
from sklearn.metrics import brier_score_loss

from regcal import Normal, metrics


def test_isotonic_curve_matches_scikit_learn(normals):
    """The line is scikit-learn's isotonic regression of the event on the probability."""
    y, dist = normals
    curve = metrics.isotonic_reliability_curve(
        y, dist, [0.3], n_points=21, n_simulations=20, random_state=0
    )
    q = dist.cdf(0.3)
    reference = IsotonicRegression(y_min=0, y_max=1, out_of_bounds="clip").fit(q, y <= 0.3)
    used = ~np.isnan(curve.observed[0])

    assert_allclose(curve.observed[0, used], reference.predict(curve.predicted[0, used]))
    assert_allclose(curve.share.sum(), 1.0)


def test_isotonic_bands_hold_calibrated_points(rng):
    """About 95 % of the points of calibrated lines lie inside the pointwise band."""
    inside = []
    for seed in range(20):
        loc = rng.normal(size=300)
        curve = metrics.isotonic_reliability_curve(
            rng.normal(loc), Normal(loc, np.ones(300)), [0.0], n_points=21, random_state=seed
        )
        used = ~np.isnan(curve.observed)
        held = (curve.observed >= curve.lower) & (curve.observed <= curve.upper)
        inside.append(held[used].mean())

    assert 0.88 < np.mean(inside) <= 1.0


def test_brier_decomposition_adds_up(normals, weights):
    """The identity is exact, and the parts are those of scikit-learn's isotonic regression."""
    y, dist = normals
    parts = metrics.brier_decomposition(y, dist, [-0.5, 1.0], sample_weight=weights)
    used = weights > 0
    for k, t in enumerate([-0.5, 1.0]):
        q, event, w = dist.cdf(t)[used], (y <= t)[used], weights[used]
        best = IsotonicRegression().fit(q, event, w).predict(q)
        rate = np.average(event, weights=w)
        assert_allclose(parts.score[k], brier_score_loss(event, q, sample_weight=w))
        assert_allclose(parts.uncertainty[k], rate * (1 - rate))
        recalibrated = np.average((best - event) ** 2, weights=w)
        assert_allclose(parts.miscalibration[k], parts.score[k] - recalibrated)

    total = parts.miscalibration - parts.discrimination + parts.uncertainty
    assert_allclose(parts.score, total)
    assert (parts.miscalibration >= -1e-12).all()
    assert (parts.discrimination >= -1e-12).all()
