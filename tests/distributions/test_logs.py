"""Sums of exponentials are scipy's."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import logsumexp

from regcal.distributions._logs import log_sum


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_log_sum_is_scipys(rng, axis):
    """Also of logs that are far apart, minus infinity or infinity."""
    logs = 400.0 * rng.normal(size=(4, 5, 3))
    logs[0], logs[1:, 0], logs[:, 1, 2], logs[2, 4] = -np.inf, -np.inf, -np.inf, np.inf

    assert_allclose(log_sum(logs, axis), logsumexp(logs, axis=axis), rtol=1e-14)
