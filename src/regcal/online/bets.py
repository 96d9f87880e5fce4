"""Bets against calibration, whose money grows if PIT values are not uniform.

Under calibration every bet is fair: its factor has mean 1, given all that was seen before. Money of
1 that is shared among fair bets, whenever they begin, then ever passes 1 / alpha with probability
alpha at most (Ville, 1939).
"""

from dataclasses import dataclass

import numpy as np
from numpy.polynomial import Legendre
from scipy.special import ndtri

from regcal._validation import Array

# Ranks so close to 0 or 1 that their probits are further out do not occur.
_FARTHEST = 8.0

BIAS, SPREAD, SHAPE = "bias", "spread", "shape"

# Shifts and factors of the spread that are bet on, in standard deviations of what was predicted. A
# bet earns money from half its size on.
_SHIFTS = (1 / 3, 2 / 3, 4 / 3)
_FACTORS = (0.5, 2 / 3, 1.5, 2.0)

# Degrees of the polynomials of PIT values that are bet on, and their size.
_DEGREES, _SIZE = (3, 4), 0.8

# This share of the money bets from the first row on; of the rest, half begins within so many rows.
# benchmarks/streams.py --only alarm: the rows until a change is found hang on their logarithms.
_AT_ONCE, _TYPICAL_ROWS = 0.1, 1000.0


@dataclass(frozen=True)
class Bet:
    """One way in which PIT values may not be uniform.

    Parameters
    ----------
    kind : str
        Bias, spread or shape.
    words : str
        What is wrong with predictions if it earns money.
    shift, factor : float
        Probits are bet to be normal with this mean and standard deviation.
    degree, size : int, float
        PIT values are bet to have the density 1 + size * P(2 pit - 1), P the Legendre polynomial.
    """

    kind: str
    words: str
    shift: float = 0.0
    factor: float = 1.0
    degree: int = 0
    size: float = 0.0

    def log_factor(self, z: Array, pit: Array) -> Array:
        """Return the logarithm of what money is multiplied with at each row."""
        if self.degree:
            return np.log1p(self.size * Legendre.basis(self.degree)(2.0 * pit - 1.0))
        # the density of N(shift, factor^2) over that of N(0, 1)
        scaled = (z - self.shift) / self.factor
        return 0.5 * (z * z - scaled * scaled) - np.log(self.factor)


def _all_bets() -> tuple[Bet, ...]:
    biases = [
        Bet(BIAS, f"predictions are too {word}", shift=side * size)
        for side, word in ((1.0, "low"), (-1.0, "high"))
        for size in _SHIFTS
    ]
    spreads = [
        Bet(SPREAD, f"predictions are too {'narrow' if factor > 1 else 'wide'}", factor=factor)
        for factor in _FACTORS
    ]
    words = {
        (3, 1.0): "outcomes are skewed upwards more than predicted",
        (3, -1.0): "outcomes are skewed downwards more than predicted",
        (4, 1.0): "outcomes have heavier tails than predicted",
        (4, -1.0): "outcomes have lighter tails than predicted",
    }
    shapes = [
        Bet(SHAPE, words[degree, side], degree=degree, size=side * _SIZE)
        for degree in _DEGREES
        for side in (1.0, -1.0)
    ]
    return (*biases, *spreads, *shapes)


# A third of the money goes to each kind.
BETS = _all_bets()
_KINDS = [bet.kind for bet in BETS]
_LOG_SHARES = -np.log([3.0 * _KINDS.count(kind) for kind in _KINDS])


@dataclass
class Money:
    """What bets that begin at any row have made of 1.

    A part of the money bets from the first row on. The rest waits: at row k, the share
    c / ((k + c - 1) (k + c)) of it begins, which adds up to 1 over all time. Whenever it
    began, the money of a bet multiplies alike, so that its sum is all that is needed
    (Shiryaev, 1963).

    Parameters
    ----------
    n_rows : int
    log_money : ndarray of shape (n_bets,)
        Of all that has begun, by bet.
    log_best : ndarray of shape (n_bets,)
        Of the beginning that has made most, by bet.
    begins : ndarray of int, of shape (n_bets,)
        The first row of that.
    """

    n_rows: int
    log_money: Array
    log_best: Array
    begins: np.ndarray

    @classmethod
    def at_start(cls) -> "Money":
        """Return money before the first row."""
        nothing = np.full(len(BETS), -np.inf)
        return cls(0, nothing, nothing.copy(), np.zeros(len(BETS), dtype=np.int64))

    def bet(self, gains: Array, rows: np.ndarray) -> Array:
        """Bet on rows with these numbers; return the logarithm of all money after each.

        Parameters
        ----------
        gains : ndarray of shape (n_rows, n_bets)
            Logarithms of the factors.
        rows : ndarray of int, of shape (n_rows,)
        """
        if not len(gains):
            return np.empty(0)
        k, c = self.n_rows + 1 + np.arange(len(gains)), _TYPICAL_ROWS
        begun = (1.0 - _AT_ONCE) * c / ((k + c - 1.0) * (k + c)) + _AT_ONCE * (k == 1)
        total = np.cumsum(gains, axis=0)
        # what begins at row k has made exp(total[t] - total[k - 1]) by row t
        new = np.log(begun)[:, np.newaxis] + _LOG_SHARES - (total - gains)
        money = np.logaddexp.accumulate(np.vstack([self.log_money, new]))[1:] + total
        best = np.maximum.accumulate(np.vstack([self.log_best, new]))
        begins = np.where(new > best[:-1], rows[:, np.newaxis], self.begins)
        self.n_rows, self.log_money = int(k[-1]), money[-1]
        self.log_best, self.begins = best[-1] + total[-1], begins.max(axis=0)
        waits = np.log((1.0 - _AT_ONCE) * c / (k + c))
        return np.logaddexp(np.logaddexp.reduce(money, axis=1), waits)

    @property
    def log_total(self) -> float:
        """The logarithm of all money, what waits included."""
        waits = np.log((1.0 - _AT_ONCE) * _TYPICAL_ROWS / (self.n_rows + _TYPICAL_ROWS))
        begun = np.logaddexp.reduce(self.log_money)
        return float(np.logaddexp(begun, waits)) if self.n_rows else 0.0

    def shares(self) -> dict[str, float]:
        """Return the share that each kind of bet holds of all money that has begun to bet."""
        shares = np.exp(self.log_money - np.logaddexp.reduce(self.log_money))
        return {
            kind: float(shares[[own == kind for own in _KINDS]].sum())
            for kind in (BIAS, SPREAD, SHAPE)
        }


def log_factors(ranks: Array) -> Array:
    """Return the logarithms of the factors of all bets, (n_rows, n_bets)."""
    z = np.clip(ndtri(ranks), -_FARTHEST, _FARTHEST)
    return np.stack([bet.log_factor(z, ranks) for bet in BETS], axis=1)
