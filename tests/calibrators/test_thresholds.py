"""Where thresholds are placed."""

import numpy as np

from regcal.calibrators import Targets
from regcal.calibrators.thresholds import dense_thresholds


def test_thresholds_are_where_outcomes_are():
    """Half of them between neighbouring values, none nearer than can be told apart."""
    y = np.concatenate([np.linspace(0.0, 1.0, 500), [100.0]])
    thresholds = dense_thresholds(Targets.of(y).seen_through(None, None), 64)

    assert np.count_nonzero((thresholds > 0) & (thresholds < 1)) >= 32
    assert thresholds[0] < 0 < 100 < thresholds[-1]
    assert (np.diff(thresholds) > 0).all()
