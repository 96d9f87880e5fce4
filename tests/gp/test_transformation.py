"""The domain of the transformation likelihood."""

import numpy as np

from regcal.gp import DenseDesign, TransformationLikelihood


def test_decreasing_transformation_is_outside_the_domain():
    """A non-positive slope has no likelihood, unless it has no weight."""
    rows = DenseDesign(np.ones((1, 1)))

    assert TransformationLikelihood(rows, rows, [0.0]).value(np.array([-1.5])) == -np.inf
    assert TransformationLikelihood(rows, rows, [0.0], 0.0).value(np.array([-1.5])) == 0.0
