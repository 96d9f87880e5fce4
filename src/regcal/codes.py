"""Codes: which unions of segments are calibrated, and how masses follow from their probabilities.

One-vs-rest calibrates every segment alone. An error-correcting output code (Dietterich and Bakiri,
1995) calibrates unions of segments, one for each row of a matrix of zeros and ones. The masses
whose unions come nearest to the calibrated probabilities are the result (Kong and Dietterich,
1997).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from regcal._random import as_generator
from regcal._validation import Array, as_float_array

# Logs of masses are cut here: beyond, a map has long reached its limit.
LOG_LIMITS = (-700.0, -1e-300)

# Interior-point steps: how near to the boundary they go, by how much they shrink the gap, what gap
# is none, and how many there are at most. A dozen suffice.
_NEARLY_ALL, _SHRINK, _NO_GAP, _MAX_STEPS = 0.99, 0.1, 1e-13, 60

# Matrices that are held at once, in numbers.
_BLOCK = 2**20


class Code(Protocol):
    """Tells which segments make up the unions whose probabilities are calibrated."""

    def matrix(self, n_segments: int) -> Array:
        """Return zeros and ones of shape (n_unions, n_segments)."""
        ...


@dataclass(frozen=True)
class OneVsRestCode:
    """Each segment alone."""

    def matrix(self, n_segments: int) -> Array:
        """Return the identity."""
        return np.eye(n_segments)


@dataclass(frozen=True)
class ThresholdCode:
    """All segments below each threshold: what is calibrated is P(Y <= t).

    Examples
    --------
    >>> from regcal import ThresholdCode
    >>> ThresholdCode().matrix(4)
    array([[1., 0., 0., 0.],
           [1., 1., 0., 0.],
           [1., 1., 1., 0.]])
    """

    def matrix(self, n_segments: int) -> Array:
        """Return a row per threshold, with ones for the segments below it."""
        _check_segments(n_segments)
        return np.tri(n_segments - 1, n_segments)


@dataclass(frozen=True)
class DenseCode:
    """Random halves of the segments.

    Parameters
    ----------
    n_unions : int, optional
        Number of unions. By default 10 log2 K, rounded up, for K segments (Allwein, Schapire and
        Singer, 2000), or K if that is more.
    random_state : int, default=0
        Seed of the draw.

    Examples
    --------
    >>> from regcal import DenseCode
    >>> DenseCode().matrix(16).shape
    (40, 16)
    """

    n_unions: int | None = None
    random_state: int = 0

    def matrix(self, n_segments: int) -> Array:
        """Return the first draw that tells all segments apart."""
        _check_segments(n_segments)
        if not isinstance(self.n_unions, int | np.integer | None):
            msg = f"n_unions must be a whole number, or None, got {self.n_unions!r}."
            raise TypeError(msg)
        if not isinstance(self.random_state, int | np.integer):
            msg = (
                f"random_state must be a whole number, got {self.random_state!r}: the code is "
                "drawn more than once, and has to be the same."
            )
            raise TypeError(msg)
        usual = max(math.ceil(10 * math.log2(n_segments)), n_segments)
        n_unions = usual if self.n_unions is None else self.n_unions
        if n_unions < n_segments - 1:
            msg = (
                f"n_unions={n_unions} unions cannot tell {n_segments} segments apart. Pass at "
                f"least {n_segments - 1}, or None."
            )
            raise ValueError(msg)
        rng = as_generator(self.random_state)
        while True:
            rows = [_random_half(rng, n_segments) for _ in range(n_unions)]
            if tells_apart(matrix := np.array(rows)):
                return matrix


def _check_segments(n_segments: int) -> None:
    """Refuse a number of segments that leaves nothing to tell apart."""
    if not isinstance(n_segments, int | np.integer) or n_segments < 2:
        msg = f"n_segments must be a whole number of at least 2, got {n_segments!r}."
        raise ValueError(msg)


def _random_half(rng: np.random.Generator, n_segments: int) -> Array:
    """Return zeros and ones at random, but not all equal."""
    while True:
        row = rng.integers(0, 2, n_segments).astype(float)
        if 0 < row.sum() < n_segments:
            return row


def tells_apart(matrix: Array) -> bool:
    """Return whether probabilities of the unions and a sum of 1 determine all masses."""
    known = np.vstack([matrix, np.ones(matrix.shape[1])])
    return bool(np.linalg.matrix_rank(known) == matrix.shape[1])


def code_matrix(code: Any, n_segments: int) -> Array:
    """Return the matrix of a code, or one that is given as an array, after checking it."""
    if isinstance(code, OneVsRestCode | ThresholdCode | DenseCode):
        return code.matrix(n_segments)
    if isinstance(code, str | type):
        name = repr(code) if isinstance(code, str) else f"the class {code.__name__}"
        msg = (
            f"code must be an object or an array of zeros and ones, got {name}. Pass "
            "regcal.ThresholdCode() or regcal.DenseCode()."
        )
        raise TypeError(msg)
    own = code.matrix(n_segments) if hasattr(code, "matrix") else code
    matrix = as_float_array(own, "code")
    if matrix.ndim != 2 or matrix.shape[1] != n_segments:
        msg = (
            f"code has shape {matrix.shape} for {n_segments} segments. Pass a row per union and a "
            "column per segment, of which there is one more than thresholds. Of a number of them "
            "some may fall together, as between values of a step=: pass an array of thresholds."
        )
        raise ValueError(msg)
    if not np.isin(matrix, (0.0, 1.0)).all():
        first = matrix[~np.isin(matrix, (0.0, 1.0))][0]
        msg = f"code must hold 0 and 1, got {first}. Write 1 for segments that belong to a union."
        raise ValueError(msg)
    if (alike := np.ptp(matrix, axis=1) == 0).any():
        msg = (
            f"code has unions of no segments or of all, in row {int(np.argmax(alike))}, whose "
            "probabilities are known. Leave them out."
        )
        raise ValueError(msg)
    if not tells_apart(matrix):
        msg = (
            f"code with {len(matrix)} unions does not tell its {n_segments} segments apart. Add "
            "others until its rank, with a row of ones, is the number of segments."
        )
        raise ValueError(msg)
    return matrix


def log_unions(log_p: Array, matrix: Array) -> Array:
    """Return log masses of unions, (n_rows, n_unions), accurate near 0 and near 1."""
    p = np.exp(np.clip(log_p, *LOG_LIMITS))
    inside, outside = _sums(p, matrix), _sums(p, 1.0 - matrix)
    return np.clip(-np.log1p(outside / inside), *LOG_LIMITS)


def _sums(values: Array, matrix: Array) -> Array:
    """Return values @ matrix.T, so that a row's digits do not depend on the rows beside it."""
    total = np.zeros((len(values), len(matrix)))
    for column, members in zip(values.T, matrix.T, strict=True):
        total += column[:, np.newaxis] * members
    return total


def union_labels(known: Array, matrix: Array) -> Array:
    """Return 1 and 0 where it is known whether unions hold outcomes, else NaN.

    Parameters
    ----------
    known : ndarray of shape (n_rows, n_segments)
        The same for segments.
    matrix : ndarray of shape (n_unions, n_segments)
    """
    possible = (known != 0).astype(float)  # NaN included
    inside = possible @ matrix.T
    labels = np.where(inside == possible.sum(axis=1, keepdims=True), 1.0, np.nan)
    return np.where(inside == 0, 0.0, labels)


class Decoder(Protocol):
    """Turns probabilities of unions into masses of segments."""

    def masses(self, matrix: Array, log_rates: Array, n_trials: float) -> Array:
        """Return masses, (n_rows, n_segments), none negative, that sum to 1 in each row."""
        ...


# By how much masses of a decoder may miss being a distribution.
_SLIP = 1e-6


def check_decoder(decoder: Any) -> None:
    """Refuse what has no masses to give, and options of ours that are none."""
    if isinstance(decoder, type) or not hasattr(decoder, "masses"):
        msg = (
            f"decoder must be an object with a method masses, got {decoder!r}. Pass "
            "regcal.LeastSquaresDecoder(), or none."
        )
        raise TypeError(msg)
    if isinstance(decoder, LeastSquaresDecoder) and not isinstance(
        decoder.weighted, bool | np.bool
    ):
        msg = f"weighted must be True or False, got {decoder.weighted!r}."
        raise TypeError(msg)


def decoded(decoder: Any, matrix: Array, log_rates: Array, n_trials: float) -> Array:
    """Return the masses of a decoder, (n_rows, n_segments), checked unless it is ours."""
    masses = decoder.masses(matrix, log_rates, n_trials)
    if isinstance(decoder, LeastSquaresDecoder):
        return masses
    masses, shape = as_float_array(masses, "masses"), (len(log_rates), matrix.shape[1])
    name = type(decoder).__name__
    if masses.shape != shape:
        msg = f"{name}.masses returned an array of shape {masses.shape}. Return one of {shape}."
        raise ValueError(msg)
    wrong = ~(masses >= -_SLIP).all(axis=1) | ~(np.abs(masses.sum(axis=1) - 1.0) <= _SLIP)
    if wrong.any():
        msg = (
            f"{name}.masses returned {masses[wrong][0].tolist()} for a row. Masses are not "
            "negative and sum to 1 in each row: clip them at 0 and divide them by their sum."
        )
        raise ValueError(msg)
    return np.maximum(masses, 0.0)


@dataclass(frozen=True)
class LeastSquaresDecoder:
    """The masses whose unions are nearest to the calibrated probabilities.

    Least squares on the simplex (LS-ECOC; Kong and Dietterich, 1997). For `ThresholdCode` it is
    isotonic regression of the probabilities that Y <= t.

    Parameters
    ----------
    weighted : bool, default=True
        Whether squares are divided by the variance of a share among as many labels as were learnt
        from (Kull and Flach, 2014), so that a probability near 0 or 1 counts for what it is worth.

    Examples
    --------
    >>> import numpy as np
    >>> from regcal import LeastSquaresDecoder, ThresholdCode
    >>> rates = np.log([[0.4, 0.2, 0.9]])  # of Y <= t at three thresholds
    >>> LeastSquaresDecoder(weighted=False).masses(ThresholdCode().matrix(4), rates, 100.0).round(9)
    array([[0.3, 0. , 0.6, 0.1]])
    """

    weighted: bool = True

    def masses(self, matrix: Array, log_rates: Array, n_trials: float) -> Array:
        """Return the nearest masses.

        Parameters
        ----------
        matrix : ndarray of shape (n_unions, n_segments)
        log_rates : ndarray of shape (n_rows, n_unions)
            Logs of calibrated probabilities of the unions.
        n_trials : float
            The weight of the labels that each was learnt from.

        Returns
        -------
        ndarray of shape (n_rows, n_segments)
        """
        rates = np.exp(np.minimum(log_rates, 0.0))  # last digits above 1 are left out
        weights = np.ones_like(rates)
        if self.weighted:
            # of two more labels, one each, a half: no share of n is known better than to 1 / n
            share = (n_trials * rates + 0.5) / (n_trials + 1.0)
            weights = 0.25 / (share * (1.0 - share))
        if np.array_equal(matrix, np.tri(*matrix.shape)):
            return np.diff(isotonic_rows(rates, weights), axis=1, prepend=0.0, append=1.0)
        block = max(1, _BLOCK // matrix.shape[1] ** 2)
        starts = range(0, len(rates), block)
        parts = [
            _nearest_on_simplex(matrix, rates[k : k + block], weights[k : k + block])
            for k in starts
        ]
        return np.concatenate(parts) if parts else np.empty((0, matrix.shape[1]))


def isotonic_rows(values: Array, weights: Array) -> Array:
    """Return the non-decreasing rows nearest to given ones, by weighted squares.

    Pool adjacent violators in all rows at once; K columns take O(K) steps a row.

    Parameters
    ----------
    values, weights : ndarray of shape (n_rows, n_columns)

    Returns
    -------
    ndarray of shape (n_rows, n_columns)
    """
    n_rows, n_columns = values.shape
    rows = np.arange(n_rows)
    means, totals = np.empty((2, n_rows, n_columns))
    starts = np.zeros((n_rows, n_columns), dtype=np.intp)  # the first column of each pool
    last = np.full(n_rows, -1)  # the number of each row's last pool
    for k in range(n_columns):
        last += 1
        means[rows, last], totals[rows, last] = values[:, k], weights[:, k]
        starts[rows, last] = k
        falling = rows[last > 0]
        while len(falling):
            here = last[falling]
            falling = falling[means[falling, here - 1] > means[falling, here]]
            here = last[falling]
            one, two = totals[falling, here - 1], totals[falling, here]
            joint = one * means[falling, here - 1] + two * means[falling, here]
            means[falling, here - 1] = joint / (one + two)
            totals[falling, here - 1] = one + two
            last[falling] -= 1
            falling = falling[last[falling] > 0]
    used = np.arange(n_columns) <= last[:, np.newaxis]
    begins = np.zeros((n_rows, n_columns), dtype=bool)
    begins[np.nonzero(used)[0], starts[used]] = True
    return np.take_along_axis(means, np.cumsum(begins, axis=1) - 1, axis=1)


def _nearest_on_simplex(matrix: Array, rates: Array, weights: Array) -> Array:
    """Return masses q that minimise the weighted squares of matrix @ q - rates.

    A primal-dual interior-point method, which stays feasible: with the gradient g of half the
    squares, it follows g - level - slack = 0 and q * slack = gap to a gap of 0. Rows that have
    arrived stay as they are, so that their digits do not depend on the rows beside them.
    """
    n_segments = matrix.shape[1]
    weighted = weights[:, :, np.newaxis] * matrix
    hessian = np.swapaxes(weighted, 1, 2) @ matrix
    size = np.einsum("nkk->n", hessian)[:, np.newaxis] / n_segments
    hessian /= size[:, :, np.newaxis]
    pull = (np.swapaxes(weighted, 1, 2) @ rates[:, :, np.newaxis])[:, :, 0] / size
    q = np.full(pull.shape, 1.0 / n_segments)
    gradient = hessian.mean(axis=2) - pull
    slack = gradient - gradient.min(axis=1, keepdims=True) + 1.0
    ones = np.ones(n_segments)
    going = np.arange(len(q))
    for _ in range(_MAX_STEPS):
        going = going[(q[going] * slack[going]).sum(axis=1) > _NO_GAP]
        if not len(going):
            break
        x, s = q[going], slack[going]
        wanted = _SHRINK * (x * s).mean(axis=1, keepdims=True) / x - s
        curved = hessian[going] + (s / x)[:, :, np.newaxis] * np.eye(n_segments)
        sides = np.stack([wanted, np.broadcast_to(ones, x.shape)], axis=2)
        free, level = np.moveaxis(np.linalg.solve(curved, sides), 2, 0)
        step = free - level * (free.sum(axis=1) / level.sum(axis=1))[:, np.newaxis]
        slack_step = wanted - s / x * step
        length = np.minimum(_longest(x, step), _longest(s, slack_step))
        q[going], slack[going] = x + length * step, s + length * slack_step
    return q / q.sum(axis=1, keepdims=True)


def _longest(values: Array, step: Array) -> Array:
    """Return how far each row can go without losing a sign, at most 1; (n_rows, 1)."""
    with np.errstate(divide="ignore", invalid="ignore"):
        reach = np.where(step < 0, -values / step, np.inf)
    return np.minimum(1.0, _NEARLY_ALL * reach.min(axis=1, keepdims=True))
