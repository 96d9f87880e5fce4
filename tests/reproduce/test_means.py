"""Standard errors of means over folds."""

import numpy as np
import pytest

from regcal.reproduce.means import Mean


def test_standard_errors_allow_for_overlap():
    """Nadeau and Bengio's correction, by hand: variance 1, 4 folds, a quarter added."""
    mean = Mean.of(np.array([1.0, 2.0, 2.0, 3.0]) * np.sqrt(1.5))

    assert mean.value == pytest.approx(2 * np.sqrt(1.5))
    assert mean.error == pytest.approx(np.sqrt(1 / 4 + 1 / 4))
