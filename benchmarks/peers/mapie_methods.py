"""MAPIE: split conformal intervals around the mean, by the held-out residuals.

It has intervals of chosen coverage and neither densities nor a CDF; quantiles are their ends.
"""

import numpy as np
from mapie.regression import SplitConformalRegressor
from sklearn.base import BaseEstimator, RegressorMixin

from peers.method import Method, Rows


class PredictedMean(RegressorMixin, BaseEstimator):
    """Predicts its only feature, which is the base model's mean."""

    def fit(self, X: np.ndarray, y: np.ndarray) -> "PredictedMean":
        """Learn nothing."""
        self.n_features_in_ = X.shape[1]
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Return the feature."""
        return X[:, 0]


class Split(Method):
    """Intervals as wide as an order statistic of the residuals, the same for all rows."""

    outputs = ("quantiles",)

    def fit(self, rows: Rows, y: np.ndarray) -> None:
        """Keep the held-out rows: the package asks for coverages before it sees them."""
        self.means, self.y = rows.loc[:, np.newaxis], y

    def quantiles(self, rows: Rows, levels: np.ndarray) -> np.ndarray:
        """Ask for the intervals that end at the levels; at 1/2 it is the mean."""
        coverages = np.abs(2 * levels - 1)
        # the package wants the coverage and its complement above 1 / n
        least = 1.001 / len(self.y)
        asked = np.unique(np.clip(coverages[coverages > 0], least, 1 - least))
        system = SplitConformalRegressor(PredictedMean().fit(self.means, self.y), list(asked))
        system.conformalize(self.means, self.y)
        _, intervals = system.predict_interval(rows.loc[:, np.newaxis])
        places = np.searchsorted(asked, np.clip(coverages, asked[0], asked[-1]) - 1e-12)
        ends = np.where(levels < 0.5, intervals[:, 0, places], intervals[:, 1, places])
        return np.where(coverages > 0, ends, rows.loc[:, np.newaxis])
