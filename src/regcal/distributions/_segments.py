"""What segments of distributions hold: masses of the base, their logs, and who reweights them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from regcal._validation import Array
from regcal.distributions._quadrature import joined_columns
from regcal.distributions.base import Distribution
from regcal.distributions.primitives import CANCELLED, FAR_TAIL, mass_between
from regcal.maps.members import Members

Reweight = Callable[[Distribution, Array], Array]


@dataclass(frozen=True)
class BaseMasses:
    """Masses of the base, (n_rows, n_segments), as differences of its tails.

    Parameters
    ----------
    tails : ndarray of shape (n_rows, n_segments + 1)
        Signed tails at -inf, the thresholds and inf.
    masses : ndarray
    short : ndarray of bool
        Where the tails do not tell a mass: it has lost its digits, or is next to nothing.
    """

    tails: Array
    masses: Array
    short: np.ndarray

    @classmethod
    def of(cls, dist: Distribution, thresholds: Array) -> "BaseMasses":
        """Return the masses between thresholds."""
        tails = np.empty((len(dist), thresholds.shape[-1] + 2))
        tails[:, 0], tails[:, -1] = 0.0, -0.0
        tails[:, 1:-1] = dist._signed_tail(np.atleast_2d(thresholds))
        masses = mass_between(tails[:, :-1], tails[:, 1:])
        sizes = np.abs(tails)
        least = np.maximum(CANCELLED * np.maximum(sizes[:, :-1], sizes[:, 1:]), FAR_TAIL)
        short = masses < least
        if thresholds.ndim > 1 and np.count_nonzero(short):
            # a segment without width has no mass, and nothing more is to be known of it
            short[:, 1:-1] &= thresholds[:, 1:] > thresholds[:, :-1]
        return cls(tails, masses, short)

    def logs(self, dist: Distribution, thresholds: Array) -> Array:
        """Return the logs of masses, exact also of those that the tails do not tell."""
        with np.errstate(divide="ignore"):
            logs = np.log(self.masses)
        if np.count_nonzero(self.short):
            rows, segments = np.nonzero(self.short)
            grid = np.broadcast_to(with_open_ends(thresholds), self.tails.shape)
            ends = grid[rows, segments, np.newaxis], grid[rows, segments + 1, np.newaxis]
            logs[rows, segments] = dist._take(rows)._log_mass_between(*ends)[:, 0]
        return logs


def support_of(dist: Distribution) -> Array:
    """Return the ends of each row's support, (n_rows, 2)."""
    return dist._from_probit(np.array([[-np.inf, np.inf]]))


def columns_of(parts: Sequence[Array | None]) -> Array:
    """Return those parts that there are beside each other."""
    return joined_columns([part for part in parts if part is not None])


def with_open_ends(thresholds: Array) -> Array:
    """Return the ends of all segments, (n_rows or 1, n_segments + 1)."""
    grid = np.atleast_2d(thresholds)
    ends = np.empty((len(grid), grid.shape[1] + 2))
    ends[:, 0], ends[:, 1:-1], ends[:, -1] = -np.inf, grid, np.inf
    return ends


@dataclass(frozen=True)
class SegmentLogs:
    """What rows need of their segments where masses underflow; (n_rows, n_segments)."""

    start_cdf: Array  # base logcdf and logsf at the start and the end of each segment
    start_sf: Array
    end_cdf: Array
    end_sf: Array
    below: Array  # calibrated mass of all segments below, and above
    above: Array
    whole: tuple[Array, Array]  # of all segments, (n_rows, 1): 0 but for digits of either sum

    @classmethod
    def of(cls, base: Distribution, thresholds: Array, log_new: Array) -> "SegmentLogs":
        """Return the logs of a base's tails and of sums of new masses."""
        grid = with_open_ends(thresholds)
        shape = (len(base), grid.shape[1])
        logcdf, logsf = (np.broadcast_to(tail(grid), shape) for tail in (base._logcdf, base._logsf))
        empty = np.full((len(base), 1), -np.inf)
        below = np.logaddexp.accumulate(log_new, axis=1)
        above = np.logaddexp.accumulate(log_new[:, ::-1], axis=1)[:, ::-1]
        return cls(
            start_cdf=logcdf[:, :-1],
            start_sf=logsf[:, :-1],
            end_cdf=logcdf[:, 1:],
            end_sf=logsf[:, 1:],
            below=np.concatenate([empty, below[:, :-1]], axis=1),
            above=np.concatenate([above[:, 1:], empty], axis=1),
            whole=(below[:, -1:], above[:, :1]),
        )


@dataclass(frozen=True)
class JoinedReweighting:
    """Several functions that reweight segments, each for the rows that are its own."""

    functions: tuple[Reweight, ...]
    counts: tuple[int, ...]  # of the segments of each
    members: Members

    @staticmethod
    def of(functions: Sequence[Reweight], counts: Sequence[int], members: Members) -> Any:
        """Return one function for the rows of several, by which they may be asked at once."""
        kind: Any = type(functions[0])
        if hasattr(kind, "joined") and all(type(one) is kind for one in functions):
            whole = kind.joined(functions, counts, members)
            if whole is not None:
                return whole
        return JoinedReweighting(tuple(functions), tuple(counts), members)

    def take(self, rows: np.ndarray) -> "JoinedReweighting":
        """Return the functions of some rows."""
        return JoinedReweighting(self.functions, self.counts, self.members.take(rows))

    def __call__(self, base: Distribution, log_p: Array) -> Array:
        """Return log new masses, (n_rows, n_segments)."""
        new = np.full(log_p.shape, -np.inf)
        parts = tuple(zip(self.functions, self.counts, strict=True))
        for (function, count), rows in self.members.each(parts):
            part, said = log_p[rows], new[rows]
            # segments that make up the number stand before the last
            own = slice(None) if count == log_p.shape[1] else [*range(count - 1), -1]
            said[:, own] = function(base[rows], part[:, own])
            new[rows] = said
        return new


def joined_segments(
    grids: Sequence[Array], functions: Sequence[Reweight], members: Members
) -> tuple[Array, Any]:
    """Return the thresholds of all rows, (n_rows, n_thresholds), and what reweights them."""
    counts = [len(grid) + 1 for grid in grids]
    thresholds = members.stacked([padded(grid, max(counts) - 1) for grid in grids])
    return thresholds, JoinedReweighting.of(functions, counts, members)


def padded(thresholds: Array, count: int) -> Array:
    """Return so many thresholds, by repeating the last: the segments in between have no width."""
    missing = count - len(thresholds)
    return np.append(thresholds, np.full(missing, thresholds[-1])) if missing else thresholds


def share_behind(points: Array, low: Array, width: Array) -> Array:
    """Return how much of the width of a point's segment lies below it, nothing if it has none."""
    with np.errstate(divide="ignore", invalid="ignore"):
        share = points - low
        share /= width
    np.fmax(share, 0.0, out=share)
    return np.minimum(share, 1.0, out=share)


def log_minus(total: Array, part: Array) -> Array:
    """Return log(exp(total) - exp(part)), -inf where nothing is left."""
    with np.errstate(divide="ignore", invalid="ignore"):
        left = total + np.log(-np.expm1(np.minimum(part - total, 0.0)))
    return np.where(np.isnan(left), -np.inf, left)
