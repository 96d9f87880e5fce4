"""The same scores for every method, and what is not valid in what it returned."""

import numpy as np

from peers.method import Method, Rows

COVERAGE = 0.9
PINBALL_LEVELS = np.arange(1, 10) / 10
_CRPS_LEVELS = (np.arange(400) + 0.5) / 400
# In units of the base's spread; wide, because real outcomes lie 30 of them out.
_CDF_POINTS = np.sinh(np.linspace(-5.0, 5.0, 301)) * 40 / np.sinh(5.0)

# Log density per interquartile range of the outcomes, where a method gave none that is positive.
FLOOR = -20.0

# Rows on which the integral of the density is checked, and its tolerance.
_CHECKED_ROWS, _CHECK_TOLERANCE = 8, 0.02
# Intervals that hold more than this are cut in _CUTS, so many times; a density may have spikes.
_LARGE_MASS, _CUTS, _PASSES = 0.002, 6, 6


def score(method: Method, rows: Rows, y: np.ndarray, spread: float) -> dict[str, np.ndarray]:
    """Return scores per row; `spread` is the interquartile range of the calibration outcomes."""
    scores = {}
    if "density" in method.outputs:
        density = np.asarray(method.log_density(rows, y), dtype=float)
        valid = np.isfinite(density)
        scores["log_score"] = np.where(valid, density, FLOOR - np.log(spread))
        scores["no_density"] = ~valid
    ends = np.array([0.5 - COVERAGE / 2, 0.5 + COVERAGE / 2])
    levels = np.concatenate([ends, PINBALL_LEVELS])
    if "quantiles" in method.outputs:
        quantiles = method.quantiles(rows, levels)
        crps = method.crps(rows, y) if hasattr(method, "crps") else _crps(method, rows, y)
    else:
        points = rows.loc[:, np.newaxis] + rows.scale[:, np.newaxis] * _CDF_POINTS
        cdf = method.cdf(rows, points)
        scores["decreasing"] = (np.diff(cdf, axis=1) < -1e-9).any(axis=1)
        scores["mass_missing"] = np.maximum(cdf[:, 0], 0) + np.maximum(1 - cdf[:, -1], 0)
        quantiles = quantiles_from_cdf(points, cdf, levels)
        crps = crps_from_cdf(points, cdf, y)
    scores["crps"] = crps
    scores["pinball"] = pinball(quantiles[:, 2:], PINBALL_LEVELS, y).mean(axis=1)
    scores["covered"] = (y >= quantiles[:, 0]) & (y <= quantiles[:, 1])
    scores["crossing"] = (np.diff(quantiles[:, 2:], axis=1) < 0).any(axis=1)
    return {name: np.asarray(values, dtype=float) for name, values in scores.items()}


def pinball(quantiles: np.ndarray, levels: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return the pinball loss, rows × levels."""
    gaps = y[:, np.newaxis] - quantiles
    return np.maximum(levels * gaps, (levels - 1) * gaps)


def _crps(method: Method, rows: Rows, y: np.ndarray) -> np.ndarray:
    """Return twice the pinball loss, averaged over levels."""
    return 2 * pinball(method.quantiles(rows, _CRPS_LEVELS), _CRPS_LEVELS, y).mean(axis=1)


def crps_from_cdf(points: np.ndarray, cdf: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Integrate (F(t) - 1[y <= t])^2 exactly for F linear between points and constant outside."""
    total = np.empty(len(y))
    for i, (t, values, outcome) in enumerate(zip(points, cdf, y, strict=True)):
        place = np.searchsorted(t, outcome)
        knots = np.insert(t, place, outcome)
        heights = np.insert(values, place, np.interp(outcome, t, values))
        below = np.arange(len(knots) - 1) < place  # pieces that end at the outcome or before it
        left, right = (part - ~below for part in (heights[:-1], heights[1:]))
        total[i] = np.sum(np.diff(knots) * (left**2 + left * right + right**2)) / 3
    return total


def empirical_crps(draws: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return E |X - y| - E |X - X'| / 2 for X uniform on sorted draws, the same for all y."""
    n = len(draws)
    below = np.searchsorted(draws, y)
    sums = np.concatenate([[0.0], np.cumsum(draws)])
    distance = (2 * below - n) * y + sums[-1] - 2 * sums[below]
    spread = (2 * np.arange(1, n + 1) - n - 1) @ draws
    return distance / n - spread / n**2


def quantiles_from_cdf(points: np.ndarray, cdf: np.ndarray, levels: np.ndarray) -> np.ndarray:
    """Return where the running maximum of a CDF first reaches each level."""
    rising = np.maximum.accumulate(cdf, axis=1)
    ties = np.arange(cdf.shape[1]) * 1e-13
    rows = zip(rising + ties, points, strict=True)
    return np.array([np.interp(levels, values, t) for values, t in rows])


def unnormalised_rows(method: Method, rows: Rows, y: np.ndarray) -> float:
    """Return the share of some rows whose density does not integrate to one within 2 %."""
    some = np.linspace(0, len(rows) - 1, _CHECKED_ROWS).astype(int)
    outcomes = np.unique(y)[:: max(1, len(np.unique(y)) // 200)]  # spikes are where these repeat
    totals = [_total_mass(method, rows[[row]], outcomes) for row in some]
    return float(np.mean(np.abs(np.array(totals) - 1) > _CHECK_TOLERANCE))


def _total_mass(method: Method, row: Rows, outcomes: np.ndarray) -> float:
    """Integrate the density of one row, with more points where there is more mass."""

    def density(points: np.ndarray) -> np.ndarray:
        return np.nan_to_num(np.exp(method.log_density(row.repeat(len(points)), points)))

    points = np.unique(np.concatenate([row.loc + row.scale * _CDF_POINTS, outcomes]))
    values = density(points)
    for _ in range(_PASSES):
        width = np.diff(points)
        large = np.maximum(values[:-1], values[1:]) * width > _LARGE_MASS
        if not large.any():
            break
        shares = np.arange(1, _CUTS) / _CUTS
        new = (points[:-1][large, np.newaxis] + width[large, np.newaxis] * shares).ravel()
        order = np.argsort(np.concatenate([points, new]))
        values = np.concatenate([values, density(new)])[order]
        points = np.concatenate([points, new])[order]
    return float(np.trapezoid(values, points))
