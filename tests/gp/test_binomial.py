"""What the binomial likelihood refuses."""

import numpy as np
import pytest

from regcal.gp import BinomialLikelihood, DenseDesign


def test_more_successes_than_trials_are_refused():
    """The message gives the rule."""
    with pytest.raises(ValueError, match="successes <= trials"):
        BinomialLikelihood(DenseDesign(np.ones((1, 1))), [2.0], 1.0)
