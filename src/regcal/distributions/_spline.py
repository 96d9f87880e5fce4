"""Monotone rational-quadratic splines, one per row, linear beyond the outer knots.

Depends on NumPy only. The formulas are those of Gregory and Delbourgo (1982): the spline is
strictly increasing, has a continuous positive derivative and a closed-form inverse.
"""

from dataclasses import dataclass

import numpy as np

from regcal._validation import Array


@dataclass(frozen=True)
class RationalQuadraticSpline:
    """Increasing curves through ``(x[i, k], z[i, k])`` with slopes ``d[i, k]`` at the knots."""

    x: Array
    z: Array
    d: Array

    @classmethod
    def through(cls, x: Array, z: Array, *, steepest_tail: float) -> "RationalQuadraticSpline":
        """Choose slopes as the weighted harmonic mean of the secants at both sides of a knot.

        The straight lines beyond the outer knots have the slope of the outer secants, but at most
        `steepest_tail` times that of the curve as a whole.
        """
        widths = np.diff(x)
        secants = np.diff(z) / widths
        # Fritsch and Butland (1984)
        left, right = widths[:, :-1], widths[:, 1:]
        w_left, w_right = left + 2 * right, 2 * left + right
        inner = (w_left + w_right) / (w_left / secants[:, :-1] + w_right / secants[:, 1:])
        steepest = steepest_tail * (z[:, -1:] - z[:, :1]) / (x[:, -1:] - x[:, :1])
        ends = np.minimum(secants[:, :1], steepest), np.minimum(secants[:, -1:], steepest)
        return cls(x, z, np.concatenate([ends[0], inner, ends[1]], axis=1))

    def take(self, rows: np.ndarray) -> "RationalQuadraticSpline":
        """Return the curves of some rows."""
        return RationalQuadraticSpline(self.x[rows], self.z[rows], self.d[rows])

    def _locate(self, knots: Array, values: Array) -> np.ndarray:
        """Return the number of the interval of each value; those outside get the end ones."""
        shape = (len(knots), values.shape[1])
        interval = np.zeros(shape, dtype=np.intp)
        for k in range(1, knots.shape[1] - 1):
            interval += values >= knots[:, k : k + 1]
        return interval

    def _pieces(self, interval: np.ndarray) -> tuple[Array, ...]:
        def left(a: Array) -> Array:
            return np.take_along_axis(a, interval, axis=1)

        def right(a: Array) -> Array:
            return np.take_along_axis(a, interval + 1, axis=1)

        return left(self.x), right(self.x), left(self.z), right(self.z), left(self.d), right(self.d)

    def __call__(self, points: Array) -> Array:
        """Return the heights at `points` of shape (n_rows or 1, n_points)."""
        x0, x1, z0, z1, d0, d1 = self._pieces(self._locate(self.x, points))
        secant = (z1 - z0) / (x1 - x0)
        s = np.clip((points - x0) / (x1 - x0), 0.0, 1.0)
        bend = s * (1 - s)
        height = z0 + (z1 - z0) * (secant * s * s + d0 * bend) / (
            secant + (d0 + d1 - 2 * secant) * bend
        )
        below, above = np.minimum(points - x0, 0.0), np.maximum(points - x1, 0.0)
        return height + d0 * below + d1 * above

    def log_derivative(self, points: Array) -> Array:
        """Return the log of the slope at `points`."""
        x0, x1, z0, z1, d0, d1 = self._pieces(self._locate(self.x, points))
        secant = (z1 - z0) / (x1 - x0)
        s = np.clip((points - x0) / (x1 - x0), 0.0, 1.0)
        bend = s * (1 - s)
        numerator = d1 * s * s + 2 * secant * bend + d0 * (1 - s) ** 2
        denominator = secant + (d0 + d1 - 2 * secant) * bend
        return np.log(numerator) + 2 * np.log(secant / denominator)

    def inverse(self, heights: Array) -> Array:
        """Return the points at which the curves reach `heights`."""
        x0, x1, z0, z1, d0, d1 = self._pieces(self._locate(self.z, heights))
        secant = (z1 - z0) / (x1 - x0)
        inside = np.clip(heights, z0, z1)
        rise, bend = inside - z0, d0 + d1 - 2 * secant
        a = (z1 - z0) * (secant - d0) + rise * bend
        b = (z1 - z0) * d0 - rise * bend
        c = -secant * rise
        s = 2 * c / (-b - np.sqrt(np.maximum(b * b - 4 * a * c, 0.0)))
        below, above = np.minimum(heights - z0, 0.0), np.maximum(heights - z1, 0.0)
        return x0 + s * (x1 - x0) + below / d0 + above / d1
