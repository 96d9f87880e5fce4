"""regcal's own calibrators, by name."""

import numpy as np

import regcal
from peers.method import DistributionMethod, Rows


class Ours(DistributionMethod):
    """A calibrator of regcal with its defaults."""

    def __init__(self, name: str) -> None:
        self.calibrator = regcal.get_calibrator(name)

    def fit(self, rows: Rows, y: np.ndarray) -> None:
        """Fit on the base model's distributions."""
        self.calibrator.fit(rows.base, y)

    def predict_dist(self, rows: Rows) -> regcal.Distribution:
        """Return the calibrated distributions."""
        return self.calibrator.transform(rows.base)
