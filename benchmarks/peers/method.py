"""What the benchmark asks of every method, whichever package it comes from."""

from dataclasses import dataclass

import numpy as np

import regcal


@dataclass(frozen=True)
class Rows:
    """Rows to calibrate on or to predict: features, and the base model's mean and spread."""

    X: np.ndarray
    loc: np.ndarray
    scale: np.ndarray

    def __len__(self) -> int:
        return len(self.loc)

    def __getitem__(self, key) -> "Rows":
        return Rows(self.X[key], self.loc[key], self.scale[key])

    @property
    def base(self) -> regcal.Normal:
        """The base model's distributions."""
        return regcal.Normal(self.loc, self.scale)

    def repeat(self, times: int) -> "Rows":
        """Return every row several times in a row."""
        return self[np.repeat(np.arange(len(self)), times)]


class Method:
    """A recalibrator. `outputs` names which of the three questions below it answers by itself.

    What a package does not offer is not built for it here; `scoring` only turns quantiles into
    CRPS, or a CDF at points into CRPS and quantiles.
    """

    outputs: tuple[str, ...] = ()

    def fit(self, rows: Rows, y: np.ndarray) -> None:
        """Learn from held-out rows and their outcomes."""
        raise NotImplementedError

    def log_density(self, rows: Rows, y: np.ndarray) -> np.ndarray:
        """Return the log density at one point per row; -inf or nan where it is not positive."""
        raise NotImplementedError

    def quantiles(self, rows: Rows, levels: np.ndarray) -> np.ndarray:
        """Return quantiles, rows × levels."""
        raise NotImplementedError

    def cdf(self, rows: Rows, points: np.ndarray) -> np.ndarray:
        """Return P(Y <= t) at points, rows × points, increasing along each row."""
        raise NotImplementedError


class DistributionMethod(Method):
    """A method whose answer is a `regcal.Distribution`: ours, and those that rescale a normal."""

    outputs = ("density", "quantiles", "cdf")

    def predict_dist(self, rows: Rows) -> regcal.Distribution:
        """Return the calibrated distributions."""
        raise NotImplementedError

    def log_density(self, rows: Rows, y: np.ndarray) -> np.ndarray:
        """Return the log density at one point per row."""
        return self.predict_dist(rows).logpdf(y)

    def quantiles(self, rows: Rows, levels: np.ndarray) -> np.ndarray:
        """Return quantiles, rows × levels."""
        return self.predict_dist(rows).ppf(levels[np.newaxis, :])

    def cdf(self, rows: Rows, points: np.ndarray) -> np.ndarray:
        """Return P(Y <= t) at points, rows × points."""
        return self.predict_dist(rows).cdf(points)

    def crps(self, rows: Rows, y: np.ndarray) -> np.ndarray:
        """Return the exact CRPS."""
        return self.predict_dist(rows).crps(y)


class Units:
    """Standard units of the outcomes, for methods whose settings assume them."""

    def __init__(self, y: np.ndarray) -> None:
        self.centre, self.spread = float(np.mean(y)), float(np.std(y))

    def moments(self, rows: Rows) -> tuple[np.ndarray, np.ndarray]:
        """Return mean and standard deviation of the base in these units."""
        return self.value(rows.loc), rows.scale / self.spread

    def value(self, y: np.ndarray) -> np.ndarray:
        """Return outcomes in these units."""
        return (y - self.centre) / self.spread


def in_blocks(function, rows: Rows, points: np.ndarray, size: int = 5000) -> np.ndarray:
    """Call a function of rows and their points for some rows at a time, to bound its memory."""
    starts = range(0, len(rows), size)
    parts = [function(rows[i : i + size], points[i : i + size]) for i in starts]
    return np.concatenate(parts)


def log_of(density: np.ndarray) -> np.ndarray:
    """Return the log; densities that are zero, negative or not a number become -inf."""
    density = np.asarray(density, dtype=float)
    positive = density > 0
    return np.where(positive, np.log(np.where(positive, density, 1.0)), -np.inf)


def at_points(grid: np.ndarray, values: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Interpolate each row's values on its grid, rows × points, at one point; 0 outside."""
    pairs = zip(y, grid, values, strict=True)
    return np.array([np.interp(t, row, v, left=0.0, right=0.0) for t, row, v in pairs])
