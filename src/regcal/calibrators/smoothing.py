"""Kernels that spread the masses of segments over their neighbours."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import ndtr

from regcal._caching import WithoutCaches
from regcal._validation import Array
from regcal.ends import WHOLE_LINE

# Bandwidths to choose from, in parts of the range of outcomes on their axis.
BANDWIDTHS = 2.0 ** np.arange(-9.0, -1.0, 0.5)

# Times that rows and columns of a kernel are multiplied, until they change by less than so much.
_SCALINGS, _SETTLED = 100, 1e-4

# A mass that is none.
_NOTHING = 1e-200

# What more than one row weighs.
_SEEN_TWICE = 1.5


@dataclass(frozen=True)
class Bandwidths:
    """How far masses are spread, in parts of the range of outcomes on their axis.

    Parameters
    ----------
    row : float
        Of the masses of one row.
    all_rows : float
        Of the masses of all rows together, which are known better.
    """

    row: float
    all_rows: float


@dataclass(frozen=True)
class Smoothing(WithoutCaches):
    """Spreads masses over neighbouring segments by a Gaussian kernel on the axis.

    Segments that are open-ended keep what they have: beyond an end of the support, or nothing. What
    would be spread beyond an end comes back as from a mirror, by which even masses stay even.

    Parameters
    ----------
    edges : ndarray
        Places of the thresholds on the axis.
    rounded : bool
        Whether segments hold values rather than parts of a density.
    ends : tuple of float
        Places of the ends of the support; infinite where there is none.
    far : tuple of int
        How many edges at either side are far from all others; nothing is spread into the gap.
    """

    edges: Array
    rounded: bool = False
    ends: tuple[float, float] = WHOLE_LINE
    far: tuple[int, int] = (0, 0)

    def kernel_for(self, counts: Array, widths: Bandwidths) -> Array:
        """Return what part of the mass of each segment (rows) goes to each segment (columns).

        A kernel that suits one row blurs what all rows together tell of the outcomes: edges, peaks
        and the outermost outcomes. So it is balanced, and leaves all rows together as a narrower
        one does.

        Parameters
        ----------
        counts : ndarray of shape (n_segments,)
            Weights of the outcomes in each segment.
        widths : Bandwidths
        """
        kernel = self.kernel(widths.row)
        if self.rounded:
            return balanced(kernel, counts, as_often_as_seen(kernel, counts))
        return balanced(kernel, counts, counts @ self.kernel(widths.all_rows))

    def kernel(self, bandwidth: float) -> Array:
        """Return the kernel of a bandwidth, which spreads the masses of all segments alike."""
        if bandwidth not in self._kernels:
            self._kernels[bandwidth] = self._kernel(bandwidth)
        return self._kernels[bandwidth]

    @cached_property
    def _kernels(self) -> dict[float, Array]:
        return {}

    def _kernel(self, bandwidth: float) -> Array:
        kernel, first = np.eye(len(self.edges) + 1), self.far[0]
        edges = self.edges[first : len(self.edges) - self.far[1]]
        if len(edges) < 3:
            return kernel
        centres = 0.5 * (edges[1:] + edges[:-1])
        width = bandwidth * (edges[-1] - edges[0])
        inner = np.zeros((len(centres),) * 2)
        for image in self._images(centres):
            below = ndtr((edges[np.newaxis, :] - image[:, np.newaxis]) / width)
            inner += np.diff(below, axis=1)
        segments = slice(first + 1, first + 1 + len(centres))
        kernel[segments, segments] = inner / inner.sum(axis=1, keepdims=True)
        return kernel

    def _images(self, places: Array) -> tuple[Array, ...]:
        """Return places and their images in mirrors at the ends, and in both, one after the other.

        Without mirrors, a density that is level up to an end would be 0.69 of itself there.
        """
        low, high = self.ends
        shift = 2.0 * (high - low)
        mirrored = (2.0 * low - places, 2.0 * high - places)
        return places, *mirrored, places - shift, places + shift

    def best(self, log_score: Callable[[Bandwidths], float], choices: Array) -> Bandwidths:
        """Return bandwidths with a large log score: one for both, then either given the other.

        Parameters
        ----------
        log_score : callable
        choices : ndarray
            Bandwidths to choose from.
        """
        # benchmarks/quality.py, isotonic in 35 cells of "choose" and "paper": the second bandwidth
        # is worth 0.017 nats and 0.2 % of CRPS, up to 0.09 nats where outcomes have an edge (wages)
        best = max((Bandwidths(one, one) for one in choices), key=log_score)
        if self.rounded:
            return best
        narrower = [Bandwidths(best.row, one) for one in choices if one <= best.row]
        best = max(narrower, key=log_score)
        wider = [Bandwidths(one, best.all_rows) for one in choices if one >= best.all_rows]
        return max(wider, key=log_score)


def as_often_as_seen(kernel: Array, counts: Array) -> Array:
    """Return the masses of values in all rows together: as often as each was seen.

    As large a share as the values that were seen once have is spread by the kernel, since so much
    of what comes was not seen at all (Good, 1953).
    """
    unseen = counts[counts < _SEEN_TWICE].sum() / max(counts.sum(), 1.0)
    return (1.0 - unseen) * counts + unseen * (counts @ kernel)


def balanced(kernel: Array, counts: Array, wanted: Array) -> Array:
    """Return a kernel that makes of counts what is wanted.

    Rows and columns are multiplied until they sum to what they should (Sinkhorn, 1967), by which a
    kernel that keeps distributions in their order goes on to do so.

    Parameters
    ----------
    kernel : ndarray of shape (n_segments, n_segments)
        Whose rows sum to 1.
    counts, wanted : ndarray of shape (n_segments,)
        Of equal sums.

    Examples
    --------
    >>> import numpy as np
    >>> from regcal.calibrators.smoothing import balanced
    >>> even = np.full((2, 2), 0.5)
    >>> balanced(even, np.array([1.0, 3.0]), np.array([1.0, 3.0])).round(6)
    array([[0.25, 0.75],
           [0.25, 0.75]])
    """
    columns = np.ones(len(kernel))
    for _ in range(_SCALINGS):
        before, rows = columns, _inverse(kernel @ columns)
        given = (counts * rows) @ kernel
        columns = np.where(given > _NOTHING, wanted * _inverse(given), 1.0)
        if np.abs(columns - before).max() < _SETTLED:
            break
    whole = (kernel @ columns)[:, np.newaxis]
    return np.where(whole > _NOTHING, _inverse(whole) * kernel * columns, kernel)


def _inverse(values: Array) -> Array:
    """Return 1 over values, and 0 of nothing."""
    return np.divide(1.0, values, out=np.zeros_like(values), where=values > _NOTHING)
