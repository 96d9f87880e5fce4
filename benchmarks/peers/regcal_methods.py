"""regcal's own calibrators, by name."""

import numpy as np

import regcal
from peers.method import DistributionMethod, Rows


class Ours(DistributionMethod):
    """A calibrator of regcal with its defaults, but without point masses, which no peer has."""

    def __init__(self, name: str, *, features: bool) -> None:
        self.calibrator = regcal.get_calibrator(name, support=None)
        self.features = features

    def _covariates(self, rows: Rows) -> np.ndarray | None:
        return rows.X if self.features else None

    def fit(self, rows: Rows, y: np.ndarray) -> None:
        """Fit on the base model's distributions."""
        self.calibrator.fit(rows.base, y, covariates=self._covariates(rows))

    def predict_dist(self, rows: Rows) -> regcal.Distribution:
        """Return the calibrated distributions."""
        return self.calibrator.transform(rows.base, self._covariates(rows))
