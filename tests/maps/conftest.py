"""A surface that tests of maps share."""

import numpy as np
import pytest

from regcal.maps import Surface


@pytest.fixture
def wavy_map():
    """Return a map with waves along both axes."""
    u, t = np.linspace(-6, 6, 41), np.linspace(-3, 5, 27)
    h = 0.4 * np.sin(u[:, np.newaxis]) * np.cos(1.3 * t) + 0.1 * t
    return Surface(u, t, h, (1.0, 1.0))
