"""EasyUQ: isotonic distributional regression on the predicted mean (Walz et al., 2024).

A plain version of its own: every distinct outcome is a threshold, every row a place. The smooth one
has Student kernels around the outcomes, whose degrees of freedom and bandwidth are those with the
best leave-one-out log score on the rows that were learnt from, as the authors' one-fit grid search.
"""

import numpy as np
from scipy.optimize import isotonic_regression
from scipy.stats import norm
from scipy.stats import t as student

from peers.method import Method, Rows, in_blocks

BANDWIDTHS = np.geomspace(0.005, 1.0, 16)  # in standard deviations of y
DEGREES = (3.0, 5.0, 10.0, 20.0, np.inf)

MOST_ROWS, BLOCK = 20_000, 500


class EasyUQ:
    """Discrete distributions on the outcomes, and their smooth version."""

    def fit(self, index: np.ndarray, y: np.ndarray) -> "EasyUQ":
        """Fit one isotonic regression per distinct outcome."""
        self.values = np.unique(y)
        self.places, group = np.unique(index, return_inverse=True)
        totals = np.bincount(group)
        cdf = np.ones((len(self.places), len(self.values)))
        for k, value in enumerate(self.values[:-1]):
            share = np.bincount(group, y <= value) / totals
            cdf[:, k] = isotonic_regression(share, weights=totals, increasing=False).x
        self.masses = np.maximum(np.diff(cdf, axis=1, prepend=0.0), 0.0)
        self._choose(group, np.searchsorted(self.values, y), y)
        return self

    def _choose(self, group: np.ndarray, own: np.ndarray, y: np.ndarray) -> None:
        rows = np.random.default_rng(0).permutation(len(y))[:1000]
        masses = self.masses[group[rows]].copy()
        masses[np.arange(len(rows)), own[rows]] = 0.0
        left = masses.sum(axis=1, keepdims=True)
        masses /= np.where(left > 0, left, 1.0)
        gaps = y[rows][:, np.newaxis] - self.values
        best = -np.inf
        for degrees in DEGREES:
            for bandwidth in BANDWIDTHS * y.std():
                density = (masses * _kernel(degrees).pdf(gaps / bandwidth)).sum(axis=1) / bandwidth
                score = np.log(np.maximum(density, 1e-300)).mean()
                if score > best:
                    best, self.degrees, self.bandwidth = score, degrees, bandwidth

    def _at(self, index: np.ndarray) -> np.ndarray:
        place = np.interp(index, self.places, np.arange(len(self.places), dtype=float))
        first = np.minimum(place.astype(int), max(len(self.places) - 2, 0))
        share = (place - first)[:, np.newaxis]
        second = np.minimum(first + 1, len(self.places) - 1)
        return (1 - share) * self.masses[first] + share * self.masses[second]

    def crps(self, index: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Return the exact CRPS of the discrete distributions."""
        cdf = np.cumsum(self._at(index), axis=1)[:, :-1]
        steps = np.diff(self.values)
        low, high = self.values[:-1], self.values[1:]
        # of each step between neighbouring values, the parts below and above the outcome
        above = np.clip(high - np.maximum(low, y[:, np.newaxis]), 0.0, None)
        below = steps - above
        inside = (cdf**2 * below + (1 - cdf) ** 2 * above).sum(axis=1)
        return inside + np.clip(self.values[0] - y, 0, None) + np.clip(y - self.values[-1], 0, None)

    def log_score(self, index: np.ndarray, y: np.ndarray, step: float = 0.0) -> np.ndarray:
        """Return the log density of the smooth version; or of the mean density over a step."""
        kernel, masses = _kernel(self.degrees), self._at(index)
        gaps = (y[:, np.newaxis] - self.values) / self.bandwidth
        if step == 0:
            density = (masses * kernel.pdf(gaps)).sum(axis=1) / self.bandwidth
        else:
            half = 0.5 * step / self.bandwidth
            density = (masses * (kernel.cdf(gaps + half) - kernel.cdf(gaps - half))).sum(1) / step
        return np.log(np.maximum(density, 1e-300))

    def pit(self, index: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Return the smooth version's CDF at outcomes."""
        gaps = (y[:, np.newaxis] - self.values) / self.bandwidth
        return (self._at(index) * _kernel(self.degrees).cdf(gaps)).sum(axis=1)

    def quantiles(self, index: np.ndarray, levels: np.ndarray) -> np.ndarray:
        """Return the discrete version's quantiles, rows by levels."""
        cdf = np.cumsum(self._at(index), axis=1)
        places = [np.searchsorted(row, levels - 1e-12) for row in cdf]
        return self.values[np.minimum(places, len(self.values) - 1)]


def _kernel(degrees: float):
    return norm() if np.isinf(degrees) else student(degrees)


class PlainEasyUQ(Method):
    """It on the base model's mean: densities of the smooth version, the rest of the discrete."""

    outputs = ("density", "quantiles")

    def fit(self, rows: Rows, y: np.ndarray) -> None:
        """Fit it, if the matrix of rows by outcomes is not too large."""
        if len(y) > MOST_ROWS:
            msg = f"{len(y)} rows: it holds a number for each pair of a row and an outcome"
            raise MemoryError(msg)
        self.fitted = EasyUQ().fit(rows.loc, y)

    def log_density(self, rows: Rows, y: np.ndarray) -> np.ndarray:
        """Return the smooth version's log density."""
        return in_blocks(lambda some, at: self.fitted.log_score(some.loc, at), rows, y, BLOCK)

    def quantiles(self, rows: Rows, levels: np.ndarray) -> np.ndarray:
        """Return the discrete version's quantiles."""
        same = np.broadcast_to(levels, (len(rows), len(levels)))
        return in_blocks(lambda some, _: self.fitted.quantiles(some.loc, levels), rows, same, BLOCK)

    def crps(self, rows: Rows, y: np.ndarray) -> np.ndarray:
        """Return the discrete version's CRPS."""
        return in_blocks(lambda some, at: self.fitted.crps(some.loc, at), rows, y, BLOCK)
