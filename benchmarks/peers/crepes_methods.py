"""crepes: conformal predictive systems. They have quantiles and no density.

The package's own CRPS depends on the units of y, so the exact CRPS of its empirical
distributions is computed here.
"""

import warnings

import numpy as np
from crepes import ConformalPredictiveSystem
from crepes.extras import binning

from peers.method import Method, Rows
from peers.scoring import empirical_crps


class Conformal(Method):
    """Residuals around the mean; in units of the base's spread, and by predicted mean, if asked."""

    outputs = ("quantiles",)

    def __init__(self, *, normalized: bool = True, bins: int | None = None) -> None:
        self.normalized = normalized
        self.bins = bins

    def fit(self, rows: Rows, y: np.ndarray) -> None:
        """Sort the residuals."""
        bins = None
        if self.bins is not None:
            bins, self.bins = binning(rows.loc, bins=self.bins)
        self.system = ConformalPredictiveSystem()
        self.system.fit(y - rows.loc, sigmas=self._sigmas(rows), bins=bins, seed=0)

    def _sigmas(self, rows: Rows) -> np.ndarray | None:
        return rows.scale if self.normalized else None

    def _categories(self, rows: Rows) -> np.ndarray | None:
        return None if self.bins is None else np.asarray(binning(rows.loc, bins=self.bins))

    def quantiles(self, rows: Rows, levels: np.ndarray) -> np.ndarray:
        """Return percentiles, rounded outwards as in the package's intervals."""
        low = levels < 0.5
        with warnings.catch_warnings():
            # too few residuals for the outermost percentiles: those come out infinite
            warnings.simplefilter("ignore")
            found = self.system.predict_percentiles(
                rows.loc,
                sigmas=self._sigmas(rows),
                bins=self._categories(rows),
                lower_percentiles=list(100 * levels[low]),
                higher_percentiles=list(100 * levels[~low]),
            )
        columns = np.concatenate([np.flatnonzero(low), np.flatnonzero(~low)])
        return found.reshape(len(rows), -1)[:, np.argsort(columns)]

    def crps(self, rows: Rows, y: np.ndarray) -> np.ndarray:
        """Return the exact CRPS of the empirical distributions."""
        scale = rows.scale if self.normalized else np.ones(len(rows))
        residual = (y - rows.loc) / scale
        if self.bins is None:
            return scale * empirical_crps(self.system.alphas, residual)
        crps, categories = np.empty(len(rows)), self._categories(rows)
        for category, alphas in zip(*self.system.binned_alphas, strict=True):
            own = categories == category
            crps[own] = scale[own] * empirical_crps(alphas, residual[own])
        return crps
