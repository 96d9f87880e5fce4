"""netcal: variance scaling, isotonic regression, GP-Normal and GP-Beta.

The two processes are given standard units of y: their inducing points and kernel start from
numbers that suit those. GP-Beta and isotonic regression are given explicit points.
"""

import numpy as np
import torch
from netcal.regression import IsotonicRegression, VarianceScaling
from netcal.regression.gp import GPBeta, GPNormal

import regcal
from peers.method import DistributionMethod, Method, Rows, Units, at_points, in_blocks, log_of

_GRID = 512  # the package's default number of points for a density


class VarianceScale(DistributionMethod):
    """One factor on the standard deviation."""

    def fit(self, rows: Rows, y: np.ndarray) -> None:
        """Fit in closed form."""
        self.model = VarianceScaling().fit((rows.loc, rows.scale), y)

    def predict_dist(self, rows: Rows) -> regcal.Distribution:
        """Return normal distributions with the new standard deviations."""
        return regcal.Normal(rows.loc, self.model.transform((rows.loc, rows.scale))[:, 0])


class ProcessNormal(DistributionMethod):
    """A factor on the standard deviation that a Gaussian process makes depend on the row."""

    def fit(self, rows: Rows, y: np.ndarray) -> None:
        """Fit with the default number of epochs."""
        torch.manual_seed(0)
        self.units = Units(y)
        self.model = GPNormal().fit(self.units.moments(rows), self.units.value(y))

    def predict_dist(self, rows: Rows) -> regcal.Distribution:
        """Return normal distributions with the new standard deviations."""
        scale = self.model.transform(self.units.moments(rows))[:, 0].astype(float)
        return regcal.Normal(rows.loc, scale * self.units.spread)


class Isotonic(Method):
    """An isotonic map of P(Y <= t); its density is a difference quotient on a grid."""

    outputs = ("density", "cdf")

    def fit(self, rows: Rows, y: np.ndarray) -> None:
        """Fit the map."""
        self.model = IsotonicRegression().fit((rows.loc, rows.scale), y)

    def log_density(self, rows: Rows, y: np.ndarray) -> np.ndarray:
        """Interpolate the density on the package's own grid."""
        return in_blocks(self._log_density, rows, y)

    def _log_density(self, rows: Rows, y: np.ndarray) -> np.ndarray:
        grid, pdf, _ = self.model.transform((rows.loc, rows.scale), t=_GRID)
        return log_of(at_points(grid[..., 0].T, pdf[..., 0].T, y))

    def cdf(self, rows: Rows, points: np.ndarray) -> np.ndarray:
        """Return the mapped probabilities."""
        return in_blocks(self._cdf, rows, points)

    def _cdf(self, rows: Rows, points: np.ndarray) -> np.ndarray:
        return self.model.transform((rows.loc, rows.scale), t=points.T)[2][..., 0].T


class ProcessBeta(Method):
    """A beta map of P(Y <= t) whose parameters a Gaussian process makes depend on the row."""

    outputs = ("density", "cdf")

    def fit(self, rows: Rows, y: np.ndarray) -> None:
        """Fit with the default number of epochs."""
        torch.manual_seed(0)
        self.units = Units(y)
        self.model = GPBeta().fit(self.units.moments(rows), self.units.value(y))

    def log_density(self, rows: Rows, y: np.ndarray) -> np.ndarray:
        """Ask for the density at one point per row."""
        _, pdf, _ = self._at(rows, y[:, np.newaxis])
        return log_of(pdf[0, :, 0]) - np.log(self.units.spread)

    def cdf(self, rows: Rows, points: np.ndarray) -> np.ndarray:
        """Return the mapped probabilities."""
        return self._at(rows, points)[2][..., 0].T.astype(float)

    def _at(self, rows: Rows, points: np.ndarray):
        torch.manual_seed(0)  # it averages over random draws
        return self.model.transform(self.units.moments(rows), t=self.units.value(points).T.copy())
