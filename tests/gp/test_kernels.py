"""Spectral densities of kernels against differences."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from rows import BASIS, central

from regcal.gp import RBF, Matern32, Matern52


@pytest.mark.parametrize("kernel", [RBF(), Matern32(), Matern52()])
def test_spectral_density_gradient(kernel):
    """The gradient in the log length-scales agrees with differences."""
    log_lengthscales = np.array([-0.4, 0.3])

    _, gradient = kernel.log_spectral_density(BASIS.squared_frequencies, log_lengthscales)
    numeric = central(
        lambda t: kernel.log_spectral_density(BASIS.squared_frequencies, t)[0], log_lengthscales
    )

    assert_allclose(gradient, numeric, rtol=1e-6, atol=1e-8)
