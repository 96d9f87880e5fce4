"""What all calibrators share: the one path from held-out rows to a map.

``fit`` is observe, then solve. Rows become points in the coordinates that a calibrator names
(`regcal.calibrators.cells`); what was observed merges (`regcal.calibrators.observed`); and the
calibrator solves for its map. Batches and partitions go the same way.
"""

import inspect
import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, clone
from threadpoolctl import ThreadpoolController

from regcal._inspection import Auditable, FittedCard, check_has_learnt
from regcal.calibrators.agreement import (
    warn_of_disagreement,
    warn_of_gross_errors,
    warn_of_rounding,
)
from regcal.calibrators.cells import Coordinates
from regcal.calibrators.few_rows import warn_of_odd_weights
from regcal.calibrators.held_out import HeldOut
from regcal.calibrators.observed import Observed, check_observed
from regcal.calibrators.support import Support
from regcal.calibrators.targets import Targets
from regcal.covariates import Covariates
from regcal.distributions import Distribution, as_distribution
from regcal.distributions.alike import Readings, read
from regcal.outcomes import Outcomes


class ImpossibleOutcomesWarning(UserWarning):
    """Some outcomes have no density under their predictions, and a fit leaves them out.

    Examples
    --------
    >>> import warnings
    >>> from regcal import Histogram, ImpossibleOutcomesWarning, ScaleCalibrator
    >>> dist = Histogram([0.0, 1.0], [[1.0], [1.0], [1.0]])
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", ImpossibleOutcomesWarning)
    ...     calibrator = ScaleCalibrator().fit(dist, [0.2, 0.7, 1.5])
    >>> calibrator.n_rows_seen_
    3
    """


# How docstrings of calibrators name two parameters that all have, and what is told in its place.
_NAMED = "support, step : as in every calibrator"
_TOLD = inspect.cleandoc(
    """
    support : {"auto", None} or (low, high), default="auto"
        Ends at which outcomes beyond are seen, such as 0 for rain: found where outcomes pile up,
        none, or given; write an end that there is none of as None.
    step : float or "auto", optional
        Distance of the values that outcomes are rounded to: 1 for counts. The result then is a
        distribution of these values.
    """
)


class Calibrator(FittedCard, Auditable, BaseEstimator, ABC):
    """Learns from held-out rows how predictive distributions are wrong, and corrects them.

    What `fit` takes may be anything that `as_distribution` understands. A subclass implements
    ``_solve(observed)``, which learns from what was observed of the rows, and
    ``_transform(dist, covariates)``. It names the coordinates in which rows are looked at by
    ``_coordinates``; without any, it learns from ``observed.rows``, at most 16 384 of them. Of
    the parameters `support` and `step` its docstring says "as in every calibrator", and they are
    described in that place.

    Examples
    --------
    >>> from regcal import Calibrator, Normal, get_calibrator
    >>> calibrator = get_calibrator("scale").fit(Normal([0.0, 0.0], [1.0, 1.0]), [2.0, -2.0])
    >>> isinstance(calibrator, Calibrator), calibrator.transform(Normal([1.0], [1.0]))[0].median()
    (True, array([1.]))
    """

    # Whether outcomes without a density, which have no probit or no slope, teach it nothing.
    _needs_density = False

    # Whether it looks at covariates.
    uses_covariates = False

    # The covariates it has learnt from, without their rows.
    columns_: Covariates | None = None

    # How draws and quantiles of the rows it has learnt from were read.
    readings_: Readings = ()

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if cls.__doc__ is not None:
            cls.__doc__ = inspect.cleandoc(cls.__doc__).replace(_NAMED, _TOLD)

    def fit(self, dist: Any, y: Any, sample_weight: Any = None, covariates: Any = None) -> Self:
        """Learn from predictions and outcomes of rows the model has not been trained on.

        Parameters
        ----------
        dist : Distribution or anything `as_distribution` takes
            Predictions for the calibration rows.
        y : array-like of shape (n_rows,), Outcomes, or a structured array of (event, time)
            Their outcomes, or what was seen of them.
        sample_weight : array-like of shape (n_rows,), optional
            A weight of 2 counts as two rows.
        covariates : frame, mapping or array-like of shape (n_rows, n_columns), optional
            What else is known of the rows, for calibrators that look at it; see
            `ConditionalCalibrator`.

        Returns
        -------
        self
        """
        rows = self.checked_rows(dist, y, sample_weight, covariates)
        observed = Observed.all_of(self, rows)
        self._forget()
        return self._learn_and_tell(observed, observed.n_possible)

    def fit_rows(self, rows: HeldOut) -> Self:
        """Learn from rows that have been checked.

        Parameters
        ----------
        rows : HeldOut

        Returns
        -------
        self
        """
        self._forget()
        return self._learn(Observed.all_of(self, rows))

    def checked_rows(
        self, dist: Any, y: Any, sample_weight: Any = None, covariates: Any = None
    ) -> HeldOut:
        """Return held-out rows after checking them.

        Parameters
        ----------
        dist, y, sample_weight, covariates
            As for `fit`.

        Returns
        -------
        HeldOut
        """
        if covariates is not None:
            self._check_looks_at_covariates()
        given = Support.given(*self.asked_support)
        return HeldOut.checked(dist, y, sample_weight, covariates, given)

    @property
    def asked_support(self) -> tuple[Any, Any]:
        """The parameters `support` and `step`, None where it has none."""
        return getattr(self, "support", None), getattr(self, "step", None)

    def _check_looks_at_covariates(self) -> None:
        if not self.uses_covariates:
            msg = (
                f"{type(self).__name__} does not look at covariates. Use "
                f'"conditional" (ConditionalCalibrator, which puts another calibrator on top) or '
                f'"auto" with the candidates that it has by default, or pass no covariates.'
            )
            raise ValueError(msg)

    def partial_fit(
        self, dist: Any, y: Any, sample_weight: Any = None, covariates: Any = None
    ) -> Self:
        """Learn from more rows, in addition to those of earlier calls.

        The rows go into `observed_`, whose size is bounded, and the calibrator is fitted anew
        from it. With many small batches `fit_batches` is faster, which fits once at the end. Rows
        that nothing can be learnt from yet, as where all outcomes are equal, are an error, and are
        kept: go on with the next ones.

        Parameters
        ----------
        dist, y, sample_weight, covariates
            As for `fit`.

        Returns
        -------
        self
        """
        if not hasattr(self, "observed_"):
            if hasattr(self, "n_rows_seen_"):
                msg = (
                    f"This {type(self).__name__} was not fitted by partial_fit and has kept "
                    "nothing of its rows, so none can be added. Use partial_fit from the first "
                    "rows on, or clone it to begin anew."
                )
                raise ValueError(msg)
            self.observed_ = self.new_observed()
        before = self.observed_.n_rows - self.observed_.n_possible
        observed = self.observed_.add(dist, y, sample_weight, covariates)
        return self._learn_and_tell(observed, observed.n_possible + before)

    def fit_batches(self, batches: Iterable[Sequence[Any]]) -> Self:
        """Learn from rows that come in batches, which are read once and not kept.

        Up to 8 MB of rows, 170 000 normal ones, this is the same as `fit` on all of them. Beyond,
        calibrators without thresholds (scale, pit, gp-density) still learn the same. Thresholds of
        the others follow the range of the outcomes up to there. Of 400 000 rows, single
        probabilities then differed by up to 0.01 for gpc, 0.1 for isotonic and 0.2 for e-logistic,
        e-beta and e-isotonic, by a tenth of that in the mean; of rows sorted by outcome by up to
        0.2 for gpc as well. With the outcomes of all, which `new_observed` takes, they are those
        of `fit`.

        Parameters
        ----------
        batches : iterable of (dist, y), (dist, y, sample_weight) or \
                (dist, y, sample_weight, covariates)

        Returns
        -------
        self

        Examples
        --------
        >>> import numpy as np
        >>> from regcal import Normal, ScaleCalibrator
        >>> rng = np.random.default_rng(0)
        >>> batches = ((Normal(np.zeros(100), 1.0), 2 * rng.normal(size=100)) for _ in range(300))
        >>> round(ScaleCalibrator().fit_batches(batches).factor_, 1)
        2.0
        """
        observed = self.new_observed()
        for batch in batches:
            if not (isinstance(batch, tuple | list) and len(batch) in (2, 3, 4)):
                msg = (
                    "Every batch must be (dist, y), (dist, y, sample_weight) or (dist, y, "
                    f"sample_weight, covariates), got a {type(batch).__name__}. Pass a list of "
                    "batches, also for a single one."
                )
                raise TypeError(msg)
            if len(batch) > 2 and np.ndim(batch[2]) > 1:
                msg = (
                    f"The third part of a batch has shape {np.shape(batch[2])}; it is "
                    "sample_weight, one per row. Pass covariates fourth: (dist, y, None, "
                    "covariates)."
                )
                raise ValueError(msg)
            observed.add(*batch)
        self._forget()
        return self._learn_and_tell(observed, observed.n_possible)

    def new_observed(self, targets: Targets | None = None) -> Observed:
        """Return what is to be filled with rows, by `Observed.add` and `Observed.merge`.

        Parameters
        ----------
        targets : Targets, optional
            All outcomes, if they can be read beforehand. Thresholds then are where `fit` puts
            them, and no cell has to be moved when an outcome leaves the range of earlier ones.

        Returns
        -------
        Observed
        """
        return Observed(clone(self), targets)

    def solve(self, observed: Observed) -> Self:
        """Learn from what was observed of rows.

        Parameters
        ----------
        observed : Observed
            From `new_observed` of a calibrator with the same parameters.

        Returns
        -------
        self
        """
        check_observed(observed)
        if repr(observed.calibrator) != repr(clone(self)):
            msg = (
                f"The rows were observed for {observed.calibrator!r}, not for {clone(self)!r}. "
                "Fit a calibrator with the same parameters. Objects of your own among them need a "
                "__repr__ that tells what they are, as that of a dataclass."
            )
            raise ValueError(msg)
        self._forget()
        return self._learn_and_tell(observed, observed.n_possible)

    def _learn_and_tell(self, observed: Observed, n_possible: int) -> Self:
        """Learn from what was observed, and tell the caller's caller what is odd about it."""
        if observed.n_rows == 0:
            msg = "There are no rows to learn from. Pass at least one batch."
            raise ValueError(msg)
        rows = observed.rows_at_hand
        refuse_censoring_beyond(rows)
        self.warn_of_impossible(n_possible, observed.n_rows, stacklevel=4)
        self._learn(observed)
        warn_of_odd_weights(observed.n_rows, observed.targets.weights, stacklevel=3)
        warn_of_gross_errors(observed.outcomes_at_hand, observed.targets, stacklevel=3)
        warn_of_rounding(observed.targets, self.support_, stacklevel=3)
        self.warn_of_disagreement(rows, observed.targets, stacklevel=4)
        return self

    def warn_of_impossible(self, n_possible: int, n_rows: int, stacklevel: int = 3) -> None:
        """Tell how many outcomes have no density, if any and if it needs one.

        Parameters
        ----------
        n_possible, n_rows : int
            Number of outcomes with a density, and of all.
        stacklevel : int, default=3
            As for ``warnings.warn``.
        """
        if self._needs_density and 0 < n_possible < n_rows:
            msg = (
                f"{n_rows - n_possible} of {n_rows} outcomes have no density under their "
                "predictions: they lie at an end of what is predicted, beyond it, or in a hole. "
                f"{type(self).__name__} leaves them out where it needs a density. Widen the "
                "predictions; at an end or in a hole, though not beyond, a calibrator of segments "
                "such as e-beta does without."
            )
            warnings.warn(msg, ImpossibleOutcomesWarning, stacklevel=stacklevel)

    def warn_of_lost(self, rows: HeldOut, stacklevel: int = 3) -> None:
        """Tell how many outcomes have no probability after it either, if any.

        Of calibrators that need a density, `warn_of_impossible` has told.

        Parameters
        ----------
        rows : HeldOut
            Those that it was learnt from, as they were given.
        stacklevel : int, default=3
            As for ``warnings.warn``.
        """
        if self._needs_density:
            return
        rows = rows.through(self.support_)
        if rows.possible.all():
            return
        some = rows.take(np.flatnonzero(~rows.possible))
        scores = some.log_scores(self.transform_rows(some.dist, some.covariates))
        n_lost = np.count_nonzero(np.isneginf(scores))
        if n_lost:
            msg = (
                f"{n_lost} of {len(rows)} outcomes looked at lie where their predictions have no "
                f"probability at all, and {type(self).__name__} can give them none: they still "
                "count as impossible. Widen the predictions."
            )
            warnings.warn(msg, ImpossibleOutcomesWarning, stacklevel=stacklevel)

    def warn_of_disagreement(self, rows: HeldOut, targets: Targets, stacklevel: int = 3) -> None:
        """Tell when rows that it was learnt from have no probability, or wrong means or tails.

        Parameters
        ----------
        rows : HeldOut
            Those that are kept, as they were given.
        targets : Targets
            The outcomes of all.
        stacklevel : int, default=3
            As for ``warnings.warn``.
        """

        def calibrated(some: HeldOut) -> Distribution:
            return self.support_.through(self.transform_rows(some.dist, some.covariates))

        self.warn_of_lost(rows, stacklevel + 1)
        warn_of_disagreement(calibrated, rows, targets, self.support_, stacklevel)

    def transform(self, dist: Any, covariates: Any = None) -> Distribution:
        """Return the calibrated distributions of new predictions.

        Parameters
        ----------
        dist : Distribution or anything `as_distribution` takes
        covariates : frame, mapping or array-like of shape (n_rows, n_columns), optional
            The columns that `fit` was given, if it was given any.

        Returns
        -------
        Distribution
        """
        latent = self.transform_latent(dist, covariates)
        return self.support_.through(latent)

    def transform_latent(self, dist: Any, covariates: Any = None) -> Distribution:
        """Return calibrated distributions of the variable behind what is seen.

        It is what `transform` returns before ends of the support and rounding are applied.

        Parameters
        ----------
        dist : Distribution or anything `as_distribution` takes
        covariates : as in `transform`

        Returns
        -------
        Distribution
        """
        check_has_learnt(self, "n_rows_seen_")
        dist = read(as_distribution(dist), self.readings_)
        return self._transform(dist, self._read(covariates, len(dist)))

    def transform_rows(self, dist: Distribution, covariates: Covariates | None) -> Distribution:
        """Return what `transform_latent` does, of rows whose covariates it may not look at.

        Parameters
        ----------
        dist : Distribution
        covariates : Covariates, optional

        Returns
        -------
        Distribution
        """
        looks = covariates is not None and self.uses_covariates
        return self.transform_latent(dist, covariates if looks else None)

    def _read(self, covariates: Any, n_rows: int) -> Covariates | None:
        """Return the covariates of new rows as those of earlier ones were."""
        if covariates is None and self.columns_ is None:
            return None
        if covariates is None:
            assert self.columns_ is not None
            msg = (
                f"This {type(self).__name__} has learnt from the covariates "
                f"{', '.join(self.columns_.names)}. Pass those of the new rows: covariates=."
            )
            raise ValueError(msg)
        self._check_looks_at_covariates()
        if self.columns_ is None:
            msg = (
                f"This {type(self).__name__} was fitted without covariates, so it has no use for "
                "them. Pass covariates to fit as well."
            )
            raise ValueError(msg)
        return self.columns_.read(covariates, n_rows)

    def _learn(self, observed: Observed) -> Self:
        if not observed.n_possible:
            msg = (
                f"None of the {observed.n_rows} outcomes is possible under its predictive "
                f"distribution (the first is y = {observed.rows.y[0]}). Check that predictions "
                "and outcomes belong together and are in the same units."
            )
            raise ValueError(msg)
        rows = observed.rows_at_hand
        _refuse_censored(rows.seen, kept=hasattr(self, "observed_"))
        if hasattr(self, "observed_"):
            self._warn_of_lost_support(observed.targets.support)
        self.support_ = observed.targets.support
        self.readings_ = observed.readings
        self.n_rows_seen_ = observed.n_rows
        self._remember_columns(rows.covariates)
        with _libraries().limit(limits=1):
            self._solve(observed)
        return self

    def _remember_columns(self, covariates: Covariates | None) -> None:
        """Keep how covariates are to be read, if it looks at them."""
        if self.uses_covariates and covariates is not None:
            self.columns_ = covariates[:0]
        elif "columns_" in vars(self):
            del self.columns_  # of an earlier fit

    def _warn_of_lost_support(self, support: Support) -> None:
        """Tell when outcomes are not what earlier ones seemed to be: ended, or rounded."""
        before = getattr(self, "support_", support)
        lost = [
            f"{end:g}"
            for end, now in ((before.low, support.low), (before.high, support.high))
            if np.isfinite(end) and end != now
        ]
        if lost:
            msg = (
                f"Outcomes were seen beyond {' and '.join(lost)}, which looked like an end of the "
                "support. It is none any more. Pass support= if you know better."
            )
            warnings.warn(msg, UserWarning, stacklevel=5)
        if before.step > 0 and not before.smooth and support.step != before.step:
            now = f"multiples of {support.step:g}" if support.step > 0 else "continuous"
            msg = (
                f"Outcomes no longer look rounded to multiples of {before.step:g}, as earlier ones "
                f"did. Predictions are {now} from here on. Pass step= if you know better."
            )
            warnings.warn(msg, UserWarning, stacklevel=5)

    def _forget(self) -> None:
        """Drop what `partial_fit` has kept."""
        if hasattr(self, "observed_"):
            del self.observed_

    def _coordinates(self, targets: Targets) -> tuple[Coordinates, ...]:
        """Return the coordinates in which rows are looked at, laid out for these outcomes."""
        return ()

    @abstractmethod
    def _solve(self, observed: Observed) -> None: ...

    @abstractmethod
    def _transform(self, dist: Distribution, covariates: Covariates | None) -> Distribution: ...


@cache
def _libraries() -> ThreadpoolController:
    """Return the libraries of linear algebra and of loops, to be held to one thread.

    Matrices and trees of a fit are small. Threads that wait for each other make it slower, on a
    machine that has other work by a factor of a hundred.
    """
    return ThreadpoolController()


def _refuse_censored(seen: Outcomes, *, kept: bool) -> None:
    """Refuse rows none of which tells on which side its outcome ends."""
    if not (np.isfinite(seen.lower) & np.isfinite(seen.upper)).any():
        way_out = (
            "These rows are kept: go on with partial_fit, and they count as soon as an outcome was "
            "seen."
            if kept
            else "Calibrate with some rows whose outcome was seen."
        )
        msg = (
            f"All {len(seen)} outcomes are censored: of none is more known than that it is at most "
            f"or at least some value. {way_out}"
        )
        raise ValueError(msg)


def refuse_censoring_beyond(rows: HeldOut) -> None:
    """Refuse censored rows none of which is possible, beside others.

    To leave all of them out is to learn from those alone whose outcome came early enough.
    """
    possible = rows.possible_intervals
    if 0 < len(possible) < len(rows) and not possible.any():
        first = int(np.flatnonzero(~rows.seen.exact_rows)[0])
        lower, upper = rows.seen.lower[first], rows.seen.upper[first]
        msg = (
            f"All {len(possible)} intervals and censored outcomes lie where their predictions have "
            f"no probability; the first is from {lower:g} to {upper:g}. Nothing can be learnt from "
            "them, and the others alone would mislead. Widen the predictions, check that both "
            "have the same units, or drop those rows knowingly."
        )
        raise ValueError(msg)


class IdentityCalibrator(Calibrator):
    """Leaves distributions as they are: the baseline that any calibrator has to beat.

    Parameters
    ----------
    support, step : as in every calibrator

    Examples
    --------
    >>> from regcal import IdentityCalibrator, Normal
    >>> dist = Normal([0.0, 1.0], [1.0, 1.0])
    >>> IdentityCalibrator().fit(dist, [0.3, 0.8]).transform(dist) is dist
    True
    """

    def __init__(self, *, support: Any = "auto", step: Any = None) -> None:
        self.support = support
        self.step = step

    def _solve(self, observed: Observed) -> None:
        pass

    def _transform(self, dist: Distribution, covariates: Covariates | None) -> Distribution:
        return dist


def fitted_copy(calibrator: Calibrator, rows: HeldOut, support: Support) -> Calibrator:
    """Return a copy of a calibrator, fitted; the identity if equal outcomes teach no map."""
    own = IdentityCalibrator() if rows.constant else clone(calibrator)
    return given_support(own, support).fit_rows(rows)


def given_support(calibrator: Calibrator, support: Support) -> Calibrator:
    """Return a calibrator that is told the support, if it asks for one."""
    if "support" in calibrator.get_params(deep=False):
        calibrator.set_params(support=support, step=None)
    return calibrator
