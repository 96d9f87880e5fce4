"""What decreasing transformations cost, and that light points do not stop the search."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from regcal.gp import (
    DenseDesign,
    HilbertBasis,
    LogSlope,
    TensorDesign,
    TransformationLikelihood,
    find_mode,
)


def test_decreasing_transformation_is_next_to_impossible():
    """A non-positive slope has next to no likelihood, unless it has no weight."""
    rows = DenseDesign(np.ones((1, 1)))

    assert TransformationLikelihood(rows, rows, [0.0]).value(np.array([-1.5])) < -4000.0
    assert TransformationLikelihood(rows, rows, [0.0], 0.0).value(np.array([-1.5])) == 0.0


def test_log_slope_is_the_logarithm_of_slopes_that_maps_have():
    """Slopes that are followed are not approximated."""
    slopes = np.geomspace(0.005, 50.0, 9)

    assert_allclose(LogSlope(np.ones(9)).value(slopes - 1.0), np.log(slopes).sum())


@pytest.mark.parametrize("slope", [-3.0, 0.0, 0.004, 0.006, 2.0])
def test_derivatives_of_the_log_slope(slope):
    """Each derivative is the difference quotient of the one before, on either side of the bend."""
    step, weights = 1e-6, np.array([2.0])
    low, high = (
        LogSlope(weights).derivatives(np.array([slope - 1.0 + side])) for side in (-step, step)
    )
    at = LogSlope(weights).derivatives(np.array([slope - 1.0]))

    for k, sign in ((0, 1.0), (1, -1.0), (2, -1.0)):
        quotient = (high[k] - low[k]) / (2 * step)
        assert_allclose(quotient, sign * at[k + 1], rtol=1e-4, atol=1e-3)


def test_points_that_weigh_next_to_nothing_do_not_stop_the_search(rng):
    """With weights over twelve orders of magnitude, Newton's method arrives."""
    u, s = rng.normal(size=100), rng.uniform(-1.0, 1.0, size=100)
    basis = HilbertBasis(sizes=(8, 8))
    columns = np.column_stack([np.ones(100), u])
    values = TensorDesign.values(basis, np.tanh(0.5 * u), s, columns)
    along = (0.5 * (1.0 - np.tanh(0.5 * u) ** 2), np.full(100, 0.3))
    slopes = values.slopes(along, np.tile([0.0, 1.0], (100, 1)))
    weights = 10.0 ** rng.uniform(-6.0, 6.0, size=100)

    mode = find_mode(
        TransformationLikelihood(values, slopes, u, weights), np.ones(values.n_coefficients)
    )

    assert mode.converged
    assert mode.n_iterations < 60
