"""uncertainty-toolbox: recalibrated standard deviations, quantiles and intervals.

Its quantile recalibrator compares the mirrored residual, mean - y, with the quantiles of y. It is
scored as it is, and with the sign put right by mirroring the outcomes handed to it.
"""

import contextlib
import io

import numpy as np
import uncertainty_toolbox.recalibration as recalibration

import regcal
from peers.method import DistributionMethod, Method, Rows


class Deviation(DistributionMethod):
    """One factor on the standard deviation, by its default criterion."""

    def fit(self, rows: Rows, y: np.ndarray) -> None:
        """Search the factor."""
        self.rescale = recalibration.get_std_recalibrator(rows.loc, rows.scale, y)

    def predict_dist(self, rows: Rows) -> regcal.Distribution:
        """Return normal distributions with the new standard deviations."""
        return regcal.Normal(rows.loc, self.rescale(rows.scale))


class Quantile(Method):
    """An isotonic map of the quantile levels."""

    outputs = ("quantiles",)

    def __init__(self, *, mirrored: bool) -> None:
        self.mirrored = mirrored

    def fit(self, rows: Rows, y: np.ndarray) -> None:
        """Fit the map."""
        given = 2 * rows.loc - y if self.mirrored else y
        with contextlib.redirect_stdout(io.StringIO()):  # it prints remarks
            self.quantile = recalibration.get_quantile_recalibrator(rows.loc, rows.scale, given)

    def quantiles(self, rows: Rows, levels: np.ndarray) -> np.ndarray:
        """Ask for one level at a time, as the package has it."""
        columns = [self.quantile(rows.loc, rows.scale, float(level)) for level in levels]
        return np.column_stack(columns)


class Interval(Method):
    """An isotonic map of the coverage of central intervals; quantiles are their ends."""

    outputs = ("quantiles",)

    def fit(self, rows: Rows, y: np.ndarray) -> None:
        """Fit the map."""
        with contextlib.redirect_stdout(io.StringIO()):
            self.interval = recalibration.get_interval_recalibrator(rows.loc, rows.scale, y)

    def quantiles(self, rows: Rows, levels: np.ndarray) -> np.ndarray:
        """Ask for one interval per level and take the end that belongs to it."""
        columns = []
        for level in levels:
            coverage = float(np.clip(abs(2 * level - 1), 1e-9, 1 - 1e-9))
            bounds = self.interval(rows.loc, rows.scale, coverage)
            columns.append(bounds.lower if level < 0.5 else bounds.upper)
        return np.column_stack(columns)
