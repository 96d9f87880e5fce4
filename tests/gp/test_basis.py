"""Basis functions against kernels, differences and integrals."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from rows import BASIS, tensor_rows
from sklearn.gaussian_process import kernels as exact_kernels

from regcal.gp import RBF, HilbertBasis, Matern32, Matern52, ProcessPrior


@pytest.mark.parametrize(
    ("kernel", "exact", "sizes"),
    [
        (RBF(), exact_kernels.RBF([0.3, 0.5]), (30, 30)),
        (Matern52(), exact_kernels.Matern([0.3, 0.5], nu=2.5), (70, 50)),
        (Matern32(), exact_kernels.Matern([0.3, 0.5], nu=1.5), (110, 80)),
    ],
)
def test_basis_covariance_is_the_kernel(rng, kernel, exact, sizes):
    """With enough functions, the prior covariance inside the box is the kernel."""
    x = rng.uniform(-1, 1, (40, 2))
    basis = HilbertBasis(sizes, boundary=2.5)
    log_variances, _ = ProcessPrior(basis, kernel).log_variances(np.log([1.0, 0.3, 0.5]))

    rows = tensor_rows(basis, x[:, 0], x[:, 1]) * np.exp(0.5 * log_variances)

    assert_allclose(rows @ rows.T, exact(x), atol=1e-3)


def test_axis_derivative():
    """Derivatives of the functions agree with differences."""
    x = np.linspace(-1, 1, 7)

    numeric = (BASIS.axis(1, x + 1e-6) - BASIS.axis(1, x - 1e-6)) / 2e-6

    assert_allclose(BASIS.axis_derivative(1, x), numeric, atol=1e-8)


def test_axis_functions_are_orthonormal():
    """The functions are orthonormal on the box, which fixes their scale."""
    x = np.linspace(-3.2, 3.2, 20001)
    values = BASIS.axis(1, x)

    assert_allclose(values.T @ values * (x[1] - x[0]), np.eye(4), atol=1e-6)
