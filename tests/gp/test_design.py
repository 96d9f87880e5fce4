"""Designs of products against the same features written out."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from rows import BASIS, tensor_rows

from regcal.gp import DenseDesign, TensorDesign


@pytest.fixture(params=["values", "slopes", "scattered values", "scattered slopes"])
def designs(request, rng):
    """Return a tensor design and the same features written out."""
    n = 17
    x0, x1, extra = rng.uniform(-1, 1, n), rng.choice([-1.0, 0.1, 0.7], n), rng.normal(size=(n, 2))
    if "scattered" in request.param:
        x1 = rng.uniform(-1, 1, n)
    if "values" in request.param:
        rows = tensor_rows(BASIS, x0, x1)
        tensor = TensorDesign.values(BASIS, x0, x1, extra)
    else:
        along = rng.normal(size=(2, n, 1))
        rows = along[0] * tensor_rows(BASIS, x0, x1, (1, 0))
        rows += along[1] * tensor_rows(BASIS, x0, x1, (0, 1))
        tensor = TensorDesign.values(BASIS, x0, x1).slopes(along[..., 0], extra)
    return tensor, DenseDesign(np.column_stack([extra, rows]))


@pytest.mark.parametrize(
    "active", [np.arange(22), np.arange(14), np.array([0, 1, 2, 3, 4, 6, 7, 10, 11])]
)
def test_tensor_design_is_the_dense_one(rng, designs, active):
    """All products agree with the written-out features, in every subset of columns."""
    tensor, dense = (design.restrict(active) for design in designs)
    coefficients, weights = rng.normal(size=len(active)), rng.uniform(size=17)
    root = rng.normal(size=(len(active), len(active)))

    assert tensor.n_coefficients == dense.n_coefficients == len(active)
    assert_allclose(tensor.predict(coefficients), dense.predict(coefficients))
    assert_allclose(tensor.adjoint(weights), dense.adjoint(weights), atol=1e-12)
    assert_allclose(tensor.gram(weights), dense.gram(weights), atol=1e-12)
    assert_allclose(tensor.quadratic(root @ root.T), dense.quadratic(root @ root.T))


def test_restricting_twice(rng, designs):
    """A subset of a subset is the subset."""
    tensor, dense = designs
    first, second = np.array([0, 1, 2, 4, 7, 9, 15, 21]), np.array([0, 1, 3, 5])
    coefficients = rng.normal(size=4)

    assert_allclose(
        tensor.restrict(first).restrict(second).predict(coefficients),
        dense.restrict(first[second]).predict(coefficients),
    )


def test_coordinates_of_unequal_length_are_refused():
    """The message tells how many there were."""
    with pytest.raises(ValueError, match="3 first and 2 second"):
        TensorDesign.values(BASIS, np.zeros(3), np.zeros(2))
