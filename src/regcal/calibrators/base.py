"""What all calibrators share.

Depends on the distributions, `_state`, `_validation` and scikit-learn's base classes only.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted

from regcal._inspection import Auditable, FittedCard
from regcal._validation import Array
from regcal.calibrators._rows import MAX_ROWS, Rows
from regcal.calibrators._targets import TargetSummary
from regcal.calibrators.summary import (
    Summary,
    Tally,
    check_summary,
    checked_rows,
    sampled_rows,
)
from regcal.distributions import Distribution, as_distribution


class Calibrator(FittedCard, Auditable, BaseEstimator, ABC):
    """Learns from held-out rows how predictive distributions are wrong, and corrects them.

    A subclass implements `_fit` and `_transform`. What `fit` takes may be anything that
    `as_distribution` understands. To learn from more rows than a summary keeps, a subclass
    implements ``_tallies`` and ``_fit_cells``; otherwise it learns from a sample of them.

    Examples
    --------
    >>> from regcal import Calibrator, Normal, get_calibrator
    >>> calibrator = get_calibrator("scale").fit(Normal([0.0, 0.0], [1.0, 1.0]), [2.0, -2.0])
    >>> isinstance(calibrator, Calibrator), calibrator.transform(Normal([1.0], [1.0]))[0].median()
    (True, array([1.]))
    """

    def fit(self, dist: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn from predictions and outcomes of rows the model has not been trained on.

        Parameters
        ----------
        dist : Distribution or anything `as_distribution` takes
            Predictions for the calibration rows.
        y : array-like of shape (n_rows,)
            Their outcomes.
        sample_weight : array-like of shape (n_rows,), optional
            A weight of 2 counts as two rows.

        Returns
        -------
        self
        """
        rows = checked_rows(dist, y, sample_weight)
        self._check_possible(rows.dist, rows.y)
        self._forget()
        self.n_rows_seen_ = len(rows.y)
        if len(rows.y) <= MAX_ROWS:
            self._fit(*rows)
        else:
            self._fit_many(rows)
        return self

    def partial_fit(self, dist: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn from more rows, in addition to those of earlier calls.

        The rows go into a summary of bounded size, `summary_`, and the calibrator is fitted anew
        from it. With many small batches `fit_batches` is faster, which fits once at the end.

        Parameters
        ----------
        dist, y, sample_weight
            As for `fit`.

        Returns
        -------
        self
        """
        if not hasattr(self, "summary_"):
            if hasattr(self, "n_rows_seen_"):
                msg = (
                    f"This {type(self).__name__} was not fitted by partial_fit and has kept no "
                    "summary, so rows cannot be added to it. Use partial_fit from the first rows "
                    "on, or clone it to begin anew."
                )
                raise ValueError(msg)
            self.summary_ = self.new_summary()
        self.summary_.add(dist, y, sample_weight)
        return self._fit_from(self.summary_)

    def fit_batches(self, batches: Iterable[Sequence[Any]]) -> Self:
        """Learn from rows that come in batches, which are read once and not kept.

        Up to 16 384 rows this is the same as `fit` on all of them. Beyond, the order and the
        size of the batches change log scores by about 0.001 at most.

        Parameters
        ----------
        batches : iterable of (dist, y) or (dist, y, sample_weight)

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
        summary = self.new_summary()
        for batch in batches:
            if not (isinstance(batch, tuple | list) and len(batch) in (2, 3)):
                msg = (
                    "Every batch must be (dist, y) or (dist, y, sample_weight), got a "
                    f"{type(batch).__name__}. Pass a list of batches, also for a single one."
                )
                raise TypeError(msg)
            summary.add(*batch)
        return self.fit_summary(summary)

    def new_summary(self, targets: TargetSummary | None = None) -> Summary:
        """Return an empty summary that collects what this calibrator needs of its rows.

        Parameters
        ----------
        targets : TargetSummary, optional
            All outcomes, if they can be read beforehand. Thresholds then are where `fit` puts
            them, and no cell has to be moved when an outcome leaves the range of earlier ones.

        Returns
        -------
        Summary
        """
        return Summary(clone(self), targets)

    def fit_summary(self, summary: Summary) -> Self:
        """Learn from a summary of rows.

        Parameters
        ----------
        summary : Summary
            From `new_summary` of a calibrator with the same parameters.

        Returns
        -------
        self
        """
        check_summary(summary)
        if repr(summary.calibrator) != repr(clone(self)):
            msg = (
                f"The summary was made for {summary.calibrator!r}, not for {clone(self)!r}. "
                "Fit a calibrator with the same parameters."
            )
            raise ValueError(msg)
        self._forget()
        return self._fit_from(summary)

    def _forget(self) -> None:
        if hasattr(self, "summary_"):
            del self.summary_

    def _fit_from(self, summary: Summary) -> Self:
        if not summary.any_possible:
            if summary.n_rows == 0:
                msg = "There are no rows to learn from. Pass at least one batch."
                raise ValueError(msg)
            raise _impossible(summary.rows.y)
        self.n_rows_seen_ = summary.n_rows
        if summary.counting:
            self._fit_cells(summary.settled())
        else:
            self._fit(*summary.rows)
        return self

    def transform(self, dist: Any) -> Distribution:
        """Return the calibrated distributions of new predictions.

        Parameters
        ----------
        dist : Distribution or anything `as_distribution` takes

        Returns
        -------
        Distribution
        """
        check_is_fitted(self, "n_rows_seen_")
        return self._transform(as_distribution(dist))

    @abstractmethod
    def _fit(self, dist: Distribution, y: Array, weights: Array) -> None: ...

    def _fit_many(self, rows: Rows) -> None:
        """Fit from more rows than a summary keeps as they are."""
        targets = TargetSummary.of(rows.y, rows.weights)
        if self._tallies(targets):
            self._fit_cells(self.new_summary(targets).add(*rows))
        else:
            self._fit(*rows)

    def _tallies(self, targets: TargetSummary) -> tuple[Tally, ...]:
        """Return what is to be counted of rows, empty, laid out for these outcomes.

        Without any, the calibrator learns from the rows that a summary keeps.
        """
        return ()

    def _fit_cells(self, summary: Summary) -> None:
        """Fit from the tallies of a summary."""
        self._fit(*sampled_rows(summary))

    @abstractmethod
    def _transform(self, dist: Distribution) -> Distribution: ...

    def _check_possible(self, dist: Distribution, y: Array) -> None:
        """Refuse outcomes that the predictions call impossible."""
        with np.errstate(divide="ignore"):
            impossible = np.isneginf(dist.logpdf(y))
        if impossible.all():
            raise _impossible(y)


def _impossible(y: Array) -> ValueError:
    return ValueError(
        f"None of the {len(y)} outcomes is possible under its predictive distribution "
        f"(the first is y = {y[0]}). Check that predictions and outcomes belong together "
        "and are in the same units."
    )


class IdentityCalibrator(Calibrator):
    """Leaves distributions as they are: the baseline that any calibrator has to beat.

    Examples
    --------
    >>> from regcal import IdentityCalibrator, Normal
    >>> dist = Normal([0.0, 1.0], [1.0, 1.0])
    >>> IdentityCalibrator().fit(dist, [0.3, 0.8]).transform(dist) is dist
    True
    """

    def _fit(self, dist: Distribution, y: Array, weights: Array) -> None:
        pass

    def _transform(self, dist: Distribution) -> Distribution:
        return dist
