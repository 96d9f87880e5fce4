"""An alarm that may be looked at after every row."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from scipy.special import ndtri
from sklearn.base import BaseEstimator

from regcal._inspection import Auditable, check_has_learnt
from regcal._random import child_generator
from regcal._validation import Array, as_float_array
from regcal.online.bets import BETS, Money, log_factors

# PIT values are told apart in so many cells between these probits.
CELLS, _FARTHEST = 4096, 8.0

# So many rows are ranked together, each among all before it.
_BLOCK = 64

# Money beyond this logarithm is told as if it were this.
_LARGEST_LOG = 700.0

# So many rows of money are kept for a picture; beyond, every second one, and so on.
_MAX_KEPT = 2048


@dataclass(frozen=True)
class CalibrationAlarm:
    """When and how calibration broke.

    Parameters
    ----------
    row : int
        The row, counted from 1, at which there was enough evidence.
    since : int
        The row from which on predictions seem to have been wrong.
    kind : str
        "bias", "spread" or "shape".
    words : str
        What is wrong.

    Examples
    --------
    >>> from regcal.online import CalibrationMonitor
    >>> print(CalibrationMonitor().update([0.999] * 10).alarm_)
    Calibration broke: predictions are too low (bias), since about row 1; found at row 4.
    """

    row: int
    since: int
    kind: str
    words: str

    def __str__(self) -> str:
        return (
            f"Calibration broke: {self.words} ({self.kind}), since about row {self.since}; found "
            f"at row {self.row}."
        )


@dataclass(frozen=True)
class MonitorHistory:
    """Money of the bets against calibration over time.

    Parameters
    ----------
    rows : ndarray of int
        Numbers of rows, from 1; every one, or every so many of a long stream.
    log_money : ndarray
        After each of them, the natural logarithm of what the bets have made of 1.
    alpha : float
        There is an alarm where money passes ``1 / alpha``.
    alarm : CalibrationAlarm or None

    Examples
    --------
    >>> from regcal.online import CalibrationMonitor
    >>> CalibrationMonitor().update([0.2, 0.7, 0.5]).history().rows
    array([1, 2, 3])
    """

    rows: np.ndarray
    log_money: Array
    alpha: float
    alarm: CalibrationAlarm | None


class CalibrationMonitor(Auditable, BaseEstimator):
    """Tell when predictions stop being calibrated, with few false alarms however long one looks.

    Money is bet against calibration, on the rank of each PIT value among the reference and all
    earlier ones: on a bias, a wrong spread and a wrong shape, beginning at any row. As long as the
    PIT values are exchangeable with the reference, all bets are fair, and the money of 1
    passes ``1 / alpha`` ever with probability `alpha` at most.

    Parameters
    ----------
    alpha : float, default=0.05
        Probability of a false alarm, over all time.
    reference : int or array-like, default=400
        PIT values of rows that neither model nor calibrator has seen: the promise then
        holds for any calibrator, and what is tested is whether later rows are as those. Without
        such rows, those that the calibrator has learnt from, and the model has not, serve nearly
        as well for a simple one. Or a number: so many draws from the uniform distribution. The
        promise then holds for predictions that are calibrated, and nearly for those of a calibrator
        that has learnt from 500 rows or more. With 0, rows are compared with earlier rows alone.
    random_state : int, default=0
        For those draws, and where PIT values are equal.

    Attributes
    ----------
    alarm_ : CalibrationAlarm or None
        The first alarm, if there was one; None before the first row.
    n_rows_seen_ : int
        0 before the first row.
    money_ : float
        What the bets have made of 1 by now.

    Examples
    --------
    >>> import numpy as np
    >>> from regcal import Normal, pit
    >>> from regcal.online import CalibrationMonitor
    >>> rng = np.random.default_rng(0)
    >>> monitor = CalibrationMonitor()
    >>> y = np.concatenate([rng.normal(size=500), 2.0 * rng.normal(size=100)])
    >>> print(monitor.update(pit(y, Normal(np.zeros(600), 1.0))).alarm_)
    Calibration broke: predictions are too narrow (spread), since about row ...; found at row ....

    Row by row, one generator draws where outcomes lie on a point mass: the same draw for every dry
    day would not be uniform, and ring.

    >>> from regcal import Clipped
    >>> monitor, rain = CalibrationMonitor(), Clipped(Normal([-1.0], 1.0), low=0.0)
    >>> for _ in range(300):
    ...     y = np.maximum(rng.normal(-1.0, size=1), 0.0)
    ...     _ = monitor.update(pit(y, rain, random_state=rng))
    >>> print(monitor.alarm_)
    None
    """

    alarm_: CalibrationAlarm | None = None
    n_rows_seen_ = 0
    # What `regcal monitor` has to recognise when it looks at a table again.
    log_: dict[str, Any]

    def __init__(self, alpha: float = 0.05, reference: Any = 400, *, random_state: int = 0) -> None:
        self.alpha = alpha
        self.reference = reference
        self.random_state = random_state

    def fit(self, pit: Any, *, skip_missing: bool = False) -> Self:
        """Forget everything, then look at rows as `update` does.

        Parameters
        ----------
        pit, skip_missing
            As for `update`.

        Returns
        -------
        self
        """
        if hasattr(self, "bets_"):
            del self.bets_
        return self.update(pit, skip_missing=skip_missing)

    def update(self, pit: Any, *, skip_missing: bool = False) -> Self:
        """Look at more rows, in the order of time.

        Parameters
        ----------
        pit : float or array-like of shape (n_rows,)
            PIT values, from `regcal.pit`; with one Generator as its ``random_state`` for all
            updates where outcomes lie on point masses or are censored.
        skip_missing : bool, default=False
            Take NaN for an outcome that is not known, which counts as a row and tells nothing,
            instead of refusing it.

        Returns
        -------
        self
        """
        values = _probabilities(pit, "pit")
        if not skip_missing:
            _refuse_missing(values, "pit", ", or pass skip_missing=True: they count, unused")
        if not hasattr(self, "bets_"):
            self._begin()
        known = np.flatnonzero(~np.isnan(values))
        gains, before = log_factors(self._ranks(values[known])), replace(self.bets_)
        rows = self.n_rows_seen_ + 1 + known
        log_money = self.bets_.bet(gains, rows)
        self.n_rows_seen_ += len(values)
        self._keep(rows, log_money)
        enough = np.flatnonzero(log_money >= -np.log(self.alpha))
        if self.alarm_ is None and len(enough):
            end = enough[0] + 1
            before.bet(gains[:end], rows[:end])
            self.alarm_ = _alarm(before, rows[enough[0]])
        return self

    def _begin(self) -> None:
        """Begin with the reference alone."""
        if np.ndim(self.alpha) or not 0 < as_float_array(self.alpha, "alpha") < 1:
            msg = f"alpha must be a number between 0 and 1, got {self.alpha}. Write 5 % as 0.05."
            raise ValueError(msg)
        self.generator_ = child_generator(self.random_state)
        self.counts_ = np.bincount(_cells(self._reference_values()), minlength=CELLS)
        self.bets_ = Money.at_start()
        self.n_rows_seen_ = 0
        self.alarm_ = None
        self.kept_rows_, self.kept_log_money_ = np.empty(0, dtype=np.int64), np.empty(0)
        self.stride_ = 1

    def _reference_values(self) -> Array:
        """Return the PIT values to begin with, drawn if only their number is given."""
        given = self.reference
        if isinstance(given, int | np.integer) and not isinstance(given, bool) and given >= 0:
            return self.generator_.random(given)
        values = _probabilities(given, "reference")
        if given is None or isinstance(given, bool) or not len(values):
            msg = (
                f"reference must be PIT values of held-out rows, or a number of uniform draws, got "
                f"{given!r}. Pass values, or leave it out, which draws 400."
            )
            raise ValueError(msg)
        return _refuse_missing(values, "reference")

    def _ranks(self, values: Array) -> Array:
        """Return the share of the reference and all earlier rows below each value.

        Its own place among equal ones is drawn, so that ranks of exchangeable values are
        independent and uniform, exactly (Vovk, Gammerman and Shafer, 2005). Values in one cell are
        equal.
        """
        cells, draws = _cells(values), self.generator_.random(len(values))
        ranks = np.empty(len(values))
        for start in range(0, len(values), _BLOCK):
            rows = slice(start, start + _BLOCK)
            ranks[rows] = self._ranks_of_block(cells[rows], draws[rows])
        return ranks

    def _ranks_of_block(self, cells: np.ndarray, draws: Array) -> Array:
        """Return ranks of some rows, in the order of time, and count them."""
        upto = np.cumsum(self.counts_)
        earlier = np.tri(len(cells), k=-1, dtype=bool)
        lower = np.count_nonzero(earlier & (cells < cells[:, np.newaxis]), axis=1)
        equal = np.count_nonzero(earlier & (cells == cells[:, np.newaxis]), axis=1)
        equal += self.counts_[cells]
        below = upto[cells] - self.counts_[cells] + lower
        np.add.at(self.counts_, cells, 1)
        total = upto[-1] + np.arange(len(cells))
        return (below + (1.0 - draws) * (equal + 1.0)) / (total + 1.0)

    def _keep(self, rows: np.ndarray, log_money: Array) -> None:
        """Keep money after rows for a picture, of every so many rows."""
        rows = np.concatenate([self.kept_rows_, rows])
        log_money = np.concatenate([self.kept_log_money_, log_money])
        while (chosen := rows % self.stride_ == 0).sum() > _MAX_KEPT:
            self.stride_ *= 2
        self.kept_rows_, self.kept_log_money_ = rows[chosen], log_money[chosen]

    def history(self) -> MonitorHistory:
        """Return the money over time, for `regcal.plots.MonitorDisplay`.

        Returns
        -------
        MonitorHistory
        """
        check_has_learnt(self, "bets_")
        return MonitorHistory(self.kept_rows_, self.kept_log_money_, self.alpha, self.alarm_)

    @property
    def money_(self) -> float:
        """What the bets have made of 1 by now."""
        check_has_learnt(self, "bets_")
        return float(np.exp(min(self.bets_.log_total, _LARGEST_LOG)))


def _probabilities(pit: Any, name: str) -> Array:
    """Return PIT values; NaN where there is none."""
    values = np.atleast_1d(as_float_array(pit, name))
    wrong = (values < 0) | (values > 1)
    if values.ndim != 1 or wrong.any():
        found = f"shape {values.shape}" if values.ndim != 1 else f"{values[wrong][0]}"
        msg = (
            f"{name} must be probabilities between 0 and 1, one a row, got {found}. See regcal.pit."
        )
        raise ValueError(msg)
    return values


def _refuse_missing(values: Array, name: str, way_out: str = "") -> Array:
    """Return PIT values if there is one for each row."""
    missing = np.flatnonzero(np.isnan(values))
    if len(missing):
        msg = (
            f"{name} is nan in {len(missing)} of {len(values)} row(s), the first at index "
            f"{missing[0]}; a PIT value is a probability. Leave such rows out{way_out}."
        )
        raise ValueError(msg)
    return values


def _cells(pit: Array) -> np.ndarray:
    """Return the number of each PIT value's cell, of equal width in the probit."""
    places = (np.clip(ndtri(pit), -_FARTHEST, _FARTHEST) / _FARTHEST + 1.0) * (0.5 * CELLS)
    return np.minimum(places.astype(np.intp), CELLS - 1)


def _alarm(bets: Money, row: int) -> CalibrationAlarm:
    """Return what the kind of bets that has made most tells."""
    kinds = bets.shares()
    kind = max(kinds, key=lambda one: kinds[one])
    own = [number for number, bet in enumerate(BETS) if bet.kind == kind]
    best = max(own, key=lambda number: bets.log_best[number])
    return CalibrationAlarm(int(row), int(bets.begins[best]), kind, BETS[best].words)
