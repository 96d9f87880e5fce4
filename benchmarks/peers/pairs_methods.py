"""The paper's classifier of 1[y <= t] on pairs (q(t), t), by scikit-learn and by GPyTorch's SVGP.

Both are raw: nothing makes their P(Y <= t) increase, and the density is a difference quotient
between neighbours of 1024 thresholds, as in the paper.
"""

import numpy as np
from gaussian_process import Pairs, fit_sklearn, fit_svgp

from peers.method import Method, Rows, in_blocks, log_of

_THRESHOLDS = 32
_PREDICTION_THRESHOLDS = 1024


class PairClassifier(Method):
    """A classifier of pairs drawn from all rows and thresholds."""

    outputs = ("density", "cdf")

    def __init__(self, *, n_pairs: int, sparse: bool) -> None:
        self.n_pairs = n_pairs
        self.sparse = sparse

    def fit(self, rows: Rows, y: np.ndarray) -> None:
        """Draw the pairs and fit with a search of hyper-parameters."""
        rng = np.random.default_rng(0)
        margin = 0.5 * np.ptp(y)
        self.low, self.high = y.min() - margin, y.max() + margin
        thresholds = np.linspace(self.low, self.high, _THRESHOLDS)
        n_pairs = min(self.n_pairs, len(y) * _THRESHOLDS)
        numbers = rng.choice(len(y) * _THRESHOLDS, size=n_pairs, replace=False)
        row, column = np.divmod(numbers, _THRESHOLDS)
        t = thresholds[column]
        features = self._features(rows[row], t[:, np.newaxis])
        self.probability = self._fit_pairs(Pairs(features, (y[row] <= t).astype(float)))

    def _fit_pairs(self, pairs: Pairs):
        if self.sparse:
            return fit_svgp(pairs)
        model = fit_sklearn(pairs)
        return lambda features: model.predict_proba(features)[:, 1]

    def _features(self, rows: Rows, points: np.ndarray) -> np.ndarray:
        q = 2 * rows.base.cdf(points) - 1
        t = 2 * (points - self.low) / (self.high - self.low) - 1
        return np.column_stack([q.ravel(), t.ravel()])

    def cdf(self, rows: Rows, points: np.ndarray) -> np.ndarray:
        """Return the classifier's probabilities."""
        size = max(1, 4096 // points.shape[1])
        return in_blocks(self._cdf, rows, points, size)

    def _cdf(self, rows: Rows, points: np.ndarray) -> np.ndarray:
        inside = (points >= self.low) & (points <= self.high)
        cdf = np.where(points < self.low, 0.0, 1.0)  # nothing is trained outside the thresholds
        row, _ = np.nonzero(inside)
        if len(row):
            cdf[inside] = self.probability(self._features(rows[row], points[inside][:, np.newaxis]))
        return cdf

    def log_density(self, rows: Rows, y: np.ndarray) -> np.ndarray:
        """Return the log of the difference quotient around each outcome."""
        width = (self.high - self.low) / (_PREDICTION_THRESHOLDS - 1)
        left = self.low + width * np.floor((y - self.low) / width)
        cdf = self.cdf(rows, np.column_stack([left, left + width]))
        outside = (y < self.low) | (y > self.high)
        return log_of(np.where(outside, 0.0, np.diff(cdf, axis=1)[:, 0] / width))
