"""A single factor against the likelihood of others."""

import numpy as np
from numpy.testing import assert_allclose

from regcal import Normal, ScaleCalibrator, log_score


def test_scale_finds_the_maximum_of_the_likelihood(rng):
    """No other factor has a higher likelihood, up to the single prior row."""
    dist, y = Normal(np.zeros(400), np.ones(400)), rng.normal(0.3, 2.0, 400)
    cal = ScaleCalibrator(prior_rows=1e-9).fit(dist, y)

    def score(factor):
        return log_score(y, Normal(np.zeros(400), np.full(400, factor))).sum()

    assert score(cal.factor_) > max(score(cal.factor_ * 1.001), score(cal.factor_ / 1.001))
    assert_allclose(log_score(y, cal.transform(dist)).sum(), score(cal.factor_))
