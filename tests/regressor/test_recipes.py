"""The paper's models fit in silence."""

import warnings

import numpy as np
import pytest

from regcal import paper_gpr, predict_dist
from regcal.datasets import load_diabetes, load_forest_fires


@pytest.mark.parametrize("load", [load_diabetes, load_forest_fires])
def test_paper_gpr_converges_in_silence(load):
    """The recipe warns neither about bounds nor about convergence, signal or not."""
    data = load()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = paper_gpr().fit(data.X[::2], data.y[::2])

    column = np.flatnonzero(model[0].get_support())
    assert column == np.argmax(data.X[::2].var(axis=0))
    assert (predict_dist(model, data.X).std() > 0).all()
