"""Inverses, slopes and limits of maps of the probit."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from rows import PROBIT_MAPS


@pytest.fixture(params=list(PROBIT_MAPS))
def probit_map(request):
    return PROBIT_MAPS[request.param]


def test_inverse_of_a_map(probit_map):
    """Inverting a map gives back the values, far outside of its knots too."""
    z = np.array([[-500.0, -30.0, -1.0, -0.4, 0.0, 0.05, 0.1, 1.3, 2.0, 40.0, 500.0]])

    assert_allclose(probit_map.inverse(probit_map(z)), z, rtol=1e-12, atol=1e-12)


def test_slope_of_a_map(probit_map):
    """The log derivative is that of the map."""
    z = np.linspace(-5, 5, 41)[np.newaxis, :] + 0.03

    slope = (probit_map(z + 1e-6) - probit_map(z - 1e-6)) / 2e-6

    assert_allclose(probit_map.image_and_slope(z)[1], slope, rtol=1e-4)


def test_infinite_values_stay_infinite(probit_map):
    """The limits of a CDF remain exact."""
    ends = np.array([[-np.inf, np.inf]])

    assert_allclose(probit_map(ends), ends)
    assert_allclose(probit_map.inverse(ends), ends)
