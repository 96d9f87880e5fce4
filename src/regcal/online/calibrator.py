"""A calibrator of a stream."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from datetime import date
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, clone

from regcal._inspection import Auditable, check_has_learnt
from regcal._validation import Array, as_float_array, check_coverage, weights_of_rows
from regcal.calibrators import (
    Calibrator,
    IdentityCalibrator,
    ImpossibleOutcomesWarning,
    get_calibrator,
)
from regcal.calibrators.held_out import HeldOut
from regcal.calibrators.support import Support
from regcal.distributions import Distribution, as_distribution
from regcal.metrics.calibration import pit
from regcal.online.levels import AdaptiveLevels
from regcal.online.tracks import Track, begun, best, can_learn, learn, log_scores, shared

# Half-lives that are compared, in rows.
# benchmarks/streams.py (pit): under drift the comparison gives what 100 rows alone give; without,
# it loses 0.002 nats against one fit, and 100 rows alone lose 0.009.
HALF_LIVES = (np.inf, 3000.0, 1000.0, 300.0, 100.0)

# The rows of one call move levels by so many steps at most, and by one if nothing had been learnt.
# benchmarks/streams.py --only blocks --streams 6: 90 % intervals hold 0.881 under drift and 0.899
# once the spread has halved; 0.867 and 0.916 with one step, 0.890 and 0.863 with 50.
_MOST_STEPS = 20.0

# So many rows are kept, at most, before they are judged and taken in together.
_MOST_WAITING = 256


class OnlineCalibrator(Auditable, BaseEstimator):
    """Calibrate a stream, forgetting what is old.

    Rows count half after a half-life. Whatever the calibrator needs of rows are sums of weights, so
    that forgetting is a factor, and memory and cost per row do not grow. It is fitted anew whenever
    a fifth of what it counts is new.

    Parameters
    ----------
    calibrator : Calibrator or str
        What is learnt again and again; a name as `regcal.get_calibrator` knows it. Ends and
        steps of outcomes are told to it: ``get_calibrator("pit", support=(0, None))``.
    half_life : "auto", float or sequence of float, default="auto"
        In rows, 7 or more, or in the unit of `time` if that is passed to `update`; ``inf`` forgets
        nothing.
        Of several, the one that has predicted best of late is used: each predicts rows before
        it learns from them. "auto" compares 100, 300, 1000, 3000 and ``inf`` rows.
    random_state : int, default=0
        For PIT values of outcomes with point masses, which are drawn.

    Attributes
    ----------
    half_life_ : float
        The half-life in use; ``inf`` also if the predictions of the base model, which need no
        memory, do best as they are.
    calibrator_ : Calibrator
        Fitted, in use; the identity as long as that predicts best.
    n_rows_seen_ : int
        Number of rows so far, those of weight 0 included.

    Examples
    --------
    >>> import numpy as np
    >>> from regcal import Normal
    >>> from regcal.online import OnlineCalibrator
    >>> rng = np.random.default_rng(0)
    >>> stream = OnlineCalibrator("scale")
    >>> for day in range(100):
    ...     predicted = Normal(np.zeros(10), np.ones(10))
    ...     spread = 1.0 if day < 50 else 2.0  # the world changes
    ...     stream = stream.update(predicted, spread * rng.normal(size=10))
    >>> stream.half_life_, stream.transform(Normal([0.0], [1.0])).std().round(1)
    (100.0, array([1.9]))
    """

    waiting_: tuple[HeldOut, ...]
    waiting_times_: Array
    n_rows_seen_ = 0
    told_of_impossible_ = False

    def __init__(self, calibrator: Any, half_life: Any = "auto", *, random_state: int = 0) -> None:
        self.calibrator = calibrator
        self.half_life = half_life
        self.random_state = random_state

    # ------------------------------------------------------------------------------------- update

    def fit(
        self,
        dist: Any,
        y: Any,
        sample_weight: Any = None,
        covariates: Any = None,
        *,
        time: Any = None,
    ) -> Self:
        """Forget everything, then learn from rows as `update` does.

        Parameters
        ----------
        dist, y, sample_weight, covariates, time
            As for `update`.

        Returns
        -------
        self
        """
        if hasattr(self, "tracks_"):
            del self.tracks_
        return self.update(dist, y, sample_weight, covariates, time=time)

    def update(
        self,
        dist: Any,
        y: Any,
        sample_weight: Any = None,
        covariates: Any = None,
        *,
        time: Any = None,
    ) -> Self:
        """Learn from predictions whose outcomes have become known.

        Outcomes may come late and in any number. Rows of one call are in the order of time, and
        judged by what had been learnt before the call. Of the first rows, if they come in one call,
        the second half is judged by what the first teaches. `levels` move by at most twenty
        steps in one call, and hardly by rows that are late or come before anything was learnt.

        Parameters
        ----------
        dist : Distribution or anything `as_distribution` takes
            The predictions of the base model, as they were before calibration.
        y : array-like of shape (n_rows,), Outcomes, or a structured array of (event, time)
            Their outcomes, or what was seen of them.
        sample_weight : array-like of shape (n_rows,), optional
            A weight of 2 counts as two rows; nothing is learnt from a row of weight 0.
        covariates : frame, mapping or array-like of shape (n_rows, n_columns), optional
            What else is known of the rows, for calibrators that look at it.
        time : float or array-like of shape (n_rows,), optional
            When the outcomes happened, in the unit of `half_life`: a gap forgets what it lasts, and
            a row that comes late counts as old as it is. Without it, rows are counted as they
            come. Pass it with every update or with none.

        Returns
        -------
        self
        """
        n_rows = len(as_distribution(dist))
        times = None if time is None else _checked_times(time, n_rows)
        if not hasattr(self, "tracks_"):
            self._begin(timed=times is not None, weighted=sample_weight is not None)
        if (times is not None) != self.timed_:
            msg = "time was passed with some updates and not with others. Pass it always or never."
            raise ValueError(msg)
        if times is None:
            times = np.arange(1.0, n_rows + 1.0) + float(self.n_rows_seen_)
        if n_rows == 0:
            return self
        used = weights_of_rows(sample_weight, n_rows) > 0
        if not used.any():
            self.n_rows_seen_ += n_rows
            return self
        observed = self.tracks_[0].observed
        rows = observed.calibrator.checked_rows(dist, y, sample_weight, covariates)
        self._follow(rows, times[used])
        # copied, since the caller may use the arrays for the next batch
        self.waiting_ = (*self.waiting_, rows.take(np.arange(len(rows))))
        self.waiting_times_ = np.concatenate([self.waiting_times_, times[used]])
        self.n_rows_seen_ += n_rows
        if self._due or len(self.waiting_times_) >= _MOST_WAITING:
            self._learn()
        return self

    @property
    def _due(self) -> bool:
        """Whether what waits is much, beside what a gap in time has left of earlier rows."""
        weight = sum(part.weights.sum() for part in self.waiting_)
        gap = self._passed(float(self.waiting_times_.max())) if self.timed_ else 0.0
        return bool(weight >= min(track.wanted(gap) for track in self.tracks_))

    def _passed(self, time: float) -> float:
        """Return how much later than all that was learnt this is."""
        return max(time - self.clock_, 0.0) if np.isfinite(self.clock_) else 0.0

    def _follow(self, rows: HeldOut, times: Array) -> None:
        """Move the levels by how rows lie in what was predicted for them.

        What one call tells is learnt by the calibrator too: many rows share a few steps, so that
        the levels do not correct again what the calibrator will have corrected.
        """
        seed = [self.random_state, self.n_rows_seen_]
        values = pit(rows.seen, self._issued(rows.dist, rows.covariates), seed)
        most = 1.0 if self._best.fitted is None else _MOST_STEPS
        latest = max([self.clock_, *self.waiting_times_])
        share = min(1.0, most / len(rows))
        self.levels_.follow(values, share * self._timeliness(times, latest))

    def _timeliness(self, times: Array, latest: float) -> Array:
        """Return how much rows tell of now, in their order, that come after the time `latest`.

        A row that comes late tells as much as it counts in the shortest memory.
        """
        late = np.maximum(np.maximum.accumulate(times), latest) - times
        return min(self.tracks_, key=lambda track: track.half_life).factors(late)

    def _begin(self, *, timed: bool, weighted: bool) -> None:
        """Begin with nothing learnt."""
        calibrator, half_lives = self._checked_parameters()
        self._check_half_lives(half_lives, timed=timed, weighted=weighted)
        asked = calibrator.get_params(deep=False)
        ends = {name: asked[name] for name in ("support", "step") if name in asked}
        identity = IdentityCalibrator(**ends)
        self.tracks_ = [
            *(Track(one, clone(calibrator).new_observed()) for one in half_lives),
            Track(np.inf, identity.new_observed()),
        ]
        self.log_weights_ = np.zeros(len(self.tracks_))
        self.levels_ = AdaptiveLevels()
        self.timed_ = timed
        self.clock_ = -np.inf if timed else 0.0
        self.waiting_ = ()
        self.waiting_times_ = np.empty(0)
        self.n_rows_seen_ = 0
        self.n_rows_learnt_ = 0
        self.told_of_impossible_ = False

    def _checked_parameters(self) -> tuple[Calibrator, list[float]]:
        """Return the calibrator, and the half-lives to compare, from the longest."""
        calibrator = self.calibrator
        if isinstance(calibrator, str):
            calibrator = get_calibrator(calibrator)
        if not isinstance(calibrator, Calibrator):
            msg = (
                f"calibrator must be a Calibrator or its name, got {calibrator!r}. See "
                "regcal.calibrator_names()."
            )
            raise TypeError(msg)
        if self._counts_rows:
            return calibrator, list(HALF_LIVES)
        given = np.atleast_1d(np.asarray(self.half_life))
        numbers = given.ndim == 1 and given.dtype.kind in "iuf" and len(given) > 0
        if not numbers or not (given > 0).all():
            msg = (
                f'half_life must be "auto", or one or several numbers above 0, got '
                f"{self.half_life!r}. Pass a number of rows, or of units of time: half_life=100."
            )
            raise ValueError(msg)
        return calibrator, sorted(set(given.astype(float).tolist()), reverse=True)

    @property
    def _counts_rows(self) -> bool:
        return isinstance(self.half_life, str) and self.half_life == "auto"

    def _check_half_lives(self, half_lives: list[float], *, timed: bool, weighted: bool) -> None:
        """Refuse half-lives that are not in the unit in which rows pass, or too short for it."""
        if timed and self._counts_rows:
            msg = (
                'half_life="auto" counts rows, and time= was passed. Pass half-lives in the '
                "unit of time, one or several: half_life=[7, 30, 365, np.inf]."
            )
            raise ValueError(msg)
        # how much rows with weights count together is not known before they have come
        if not timed and not weighted and not can_learn(half_lives[-1]):
            msg = (
                f"A half-life of {half_lives[-1]:g} rows never remembers the ten rows' worth that "
                "it takes to learn. Pass 7 rows or more, or, if the unit is not rows, pass time= "
                "to update."
            )
            raise ValueError(msg)

    def _learn(self) -> None:
        """Judge what waits by what was learnt before, then learn from it."""
        rows, times = HeldOut.joined(self.waiting_), self.waiting_times_
        self._compare(rows, times)
        now = max(self.clock_, float(times.max()))
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            learn(self.tracks_, rows, now - times, self._passed(now))
        self.clock_, self.n_rows_learnt_ = now, self.n_rows_learnt_ + len(rows)
        self.waiting_, self.waiting_times_ = (), np.empty(0)
        self._tell([one.message for one in told])

    def _tell(self, messages: Iterable[Any]) -> None:
        """Pass warnings on, of impossible outcomes once in a stream: every fit repeats them."""
        for message in messages:
            impossible = isinstance(message, ImpossibleOutcomesWarning)
            if not (impossible and self.told_of_impossible_):
                self.told_of_impossible_ |= impossible
                warnings.warn(message, stacklevel=4)

    def _compare(self, rows: HeldOut, times: Array) -> None:
        """Weigh memories by how they predict rows that they have not seen.

        Of the first rows, the second half is predicted by what the first half teaches: otherwise
        any row that comes after them, were it one, could outvote a long history.
        """
        tracks, before, after = self.tracks_, self.n_rows_learnt_, self.n_rows_learnt_ + len(rows)
        timely = rows.reweighted(rows.weights * self._timeliness(times, self.clock_))
        if before == 0 and len(rows) > 1:
            before = len(rows) // 2
            tracks = begun(tracks, rows.take(np.arange(before)), times[:before])
            timely = timely.take(np.arange(before, len(rows)))
        fitted = best(tracks, self.log_weights_).fitted
        support = Support() if fitted is None else fitted.support_
        scores = log_scores(tracks, timely, support)
        self.log_weights_ = shared(self.log_weights_, scores, before, after)

    # ----------------------------------------------------------------------------------- transform

    @property
    def _best(self) -> Track:
        return best(self.tracks_, self.log_weights_)

    @property
    def half_life_(self) -> float:
        """The half-life in use; inf also if predictions do best as they are."""
        check_has_learnt(self, "tracks_")
        return self._best.half_life

    @property
    def calibrator_(self) -> Calibrator:
        """The calibrator in use."""
        check_has_learnt(self, "tracks_")
        fitted = self._best.fitted
        return self.tracks_[-1].observed.calibrator if fitted is None else fitted

    def transform(self, dist: Any, covariates: Any = None) -> Distribution:
        """Return the calibrated distributions of new predictions.

        Before ten rows have been seen, when no more than that is remembered after a gap in time,
        and as long as all outcomes are equal and teach the method nothing, which is warned of,
        these are the predictions themselves.

        Parameters
        ----------
        dist : Distribution or anything `as_distribution` takes
        covariates : frame, mapping or array-like of shape (n_rows, n_columns), optional
            The columns that `update` is given, if it is given any.

        Returns
        -------
        Distribution
        """
        dist = as_distribution(dist)
        if not hasattr(self, "tracks_"):
            self._checked_parameters()
            return dist
        return self._issued(dist, covariates)

    def _issued(self, dist: Distribution, covariates: Any) -> Distribution:
        fitted = self._best.fitted
        if fitted is None:
            return dist
        return fitted.support_.through(fitted.transform_rows(dist, covariates))

    def levels(self, levels: Any) -> Array:
        """Return the levels to ask calibrated distributions for, in order to get these.

        They follow the outcomes, so that in the long run the share of outcomes below the quantile
        is what it should be, however they come (Gibbs and Candès, 2021), as long as they lie
        within what the calibrated distribution can tell apart: about 8 standard deviations of a
        normal one, where probabilities are rounded to 1. The distributions stay as they are.

        Parameters
        ----------
        levels : array-like
            Between 0 and 1.

        Returns
        -------
        ndarray

        Examples
        --------
        >>> from regcal.online import OnlineCalibrator
        >>> OnlineCalibrator("scale").levels([0.05, 0.95])  # nothing has been seen
        array([0.05, 0.95])
        """
        asked = as_float_array(levels, "levels")
        if not ((asked >= 0) & (asked <= 1)).all():
            msg = f"levels must be between 0 and 1, got {levels}. Write 90 % as 0.9."
            raise ValueError(msg)
        if not hasattr(self, "tracks_"):
            self._checked_parameters()
            return asked
        return self.levels_.at(asked)

    def interval(
        self, dist: Any, coverage: float = 0.9, covariates: Any = None
    ) -> tuple[Array, Array]:
        """Return intervals of new predictions that hold a share of outcomes in the long run.

        `levels` says on what condition.

        Parameters
        ----------
        dist : Distribution or anything `as_distribution` takes
        coverage : float, default=0.9
        covariates : as in `transform`

        Returns
        -------
        lower, upper : ndarray of shape (n_rows,)
        """
        share = check_coverage(coverage)
        wanted = np.array([[0.5 - share / 2, 0.5 + share / 2]])
        ends = self.transform(dist, covariates).ppf(self.levels(wanted))
        return ends[:, 0], ends[:, 1]


def _checked_times(time: Any, n_rows: int) -> Array:
    """Return the time of each row."""
    given = np.asarray(time)
    if given.dtype.kind == "M" or any(isinstance(one, date) for one in given.flat[:1]):
        msg = (
            f"time must be a number, got the date {time!r}. Pass days since a date: "
            "(time - np.datetime64('2020-01-01')) / np.timedelta64(1, 'D')."
        )
        raise ValueError(msg)
    times = as_float_array(time, "time")
    if times.shape not in ((), (n_rows,)) or not np.isfinite(times).all():
        wrong = times[~np.isfinite(times)]
        found = f"{wrong[0]}" if wrong.size else f"shape {times.shape}"
        msg = (
            f"time must be one finite number, or one for each of the {n_rows} rows; got {found}. "
            "Pass the time that has passed since a fixed date."
        )
        raise ValueError(msg)
    return np.broadcast_to(times, (n_rows,))
