"""calpit: the PIT's distribution given features, by its default network or by boosted trees.

It conditions on features, so it is run on those of the data set and on (mean, std) of the base.
Features are standardised, which a network needs. Quantiles come from its quantile representation,
densities from its grid.
"""

import logging
import warnings

import numpy as np
from calpit import CalPIT, GridCDE, QuantileCDE
from scipy.special import ndtr
from sklearn.ensemble import HistGradientBoostingClassifier

from peers.method import Method, Rows, in_blocks, log_of

_LEVELS = ndtr(np.linspace(-4.75, 4.75, 201))
_GRID = 512


class Calpit(Method):
    """Cal-PIT with the default network (`trees=False`) or gradient boosting."""

    outputs = ("density", "quantiles")

    def __init__(self, *, trees: bool, moments: bool) -> None:
        self.trees = trees
        self.moments = moments

    def fit(self, rows: Rows, y: np.ndarray) -> None:
        """Fit on the PIT of the base model."""
        features = self._raw_features(rows)
        self.centre, self.spread = features.mean(axis=0), features.std(axis=0)
        self.spread = np.where(self.spread > 0, self.spread, 1.0)
        margin = 0.5 * np.ptp(y)
        self.grid = np.linspace(y.min() - margin, y.max() + margin, _GRID)
        logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
        model = HistGradientBoostingClassifier(random_state=0) if self.trees else None
        self.model = CalPIT(model)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the trainer's advice about workers and logging
            self.model.fit(self._features(rows), pit=rows.base.cdf(y))

    def _raw_features(self, rows: Rows) -> np.ndarray:
        return np.column_stack([rows.loc, rows.scale]) if self.moments else rows.X

    def _features(self, rows: Rows) -> np.ndarray:
        return (self._raw_features(rows) - self.centre) / self.spread

    def log_density(self, rows: Rows, y: np.ndarray) -> np.ndarray:
        """Interpolate the recalibrated density on a common grid."""
        return in_blocks(self._log_density, rows, y)

    def _log_density(self, rows: Rows, y: np.ndarray) -> np.ndarray:
        base = GridCDE(rows.base.pdf(self.grid[np.newaxis, :]), self.grid)
        pdf = self.model.transform(self._features(rows), base).pdf
        place = (y - self.grid[0]) / (self.grid[1] - self.grid[0])
        left = np.clip(place.astype(int), 0, _GRID - 2)
        share, row = place - left, np.arange(len(rows))
        density = (1 - share) * pdf[row, left] + share * pdf[row, left + 1]
        return log_of(np.where((share < 0) | (share > 1), 0.0, density))

    def quantiles(self, rows: Rows, levels: np.ndarray) -> np.ndarray:
        """Interpolate the recalibrated quantiles."""
        wanted = np.broadcast_to(levels, (len(rows), len(levels)))
        return in_blocks(self._quantiles, rows, wanted)

    def _quantiles(self, rows: Rows, levels: np.ndarray) -> np.ndarray:
        base = QuantileCDE(_LEVELS, rows.base.ppf(_LEVELS[np.newaxis, :]))
        new = self.model.transform(self._features(rows), base).locations
        return np.array([np.interp(levels[0], _LEVELS, row) for row in new])
