"""What all calibrators share.

Depends on the distributions, `_state`, `_validation` and scikit-learn's base classes only.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Self

import numpy as np
from scipy.special import ndtr, ndtri
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from regcal._html import Curve, FittedCard, Summary
from regcal._state import Auditable
from regcal._validation import Array, check_targets, check_weights
from regcal.distributions import Distribution, as_distribution

# Predicted probabilities at which pictures of maps are drawn; 0 and 1 are added.
_LEVELS = np.linspace(0.0, 1.0, 61)[1:-1]


def curve_of(calibrated: Callable[[Array], Array], label: str = "") -> Curve:
    """Return the picture of a map of probabilities."""
    values = np.clip(calibrated(_LEVELS), 0.0, 1.0)
    return Curve(np.r_[0.0, _LEVELS, 1.0], np.r_[0.0, values, 1.0], label)


class Calibrator(FittedCard, Auditable, BaseEstimator, ABC):
    """Learns from held-out rows how predictive distributions are wrong, and corrects them.

    A subclass implements `_fit` and `_transform`. What `fit` takes may be anything that
    `as_distribution` understands.

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
        dist = as_distribution(dist)
        targets = check_targets(y, len(dist))
        weights = check_weights(sample_weight, len(dist))
        if not weights.all():
            used = np.flatnonzero(weights)
            dist, targets, weights = dist[used], targets[used], weights[used]
        self._check_possible(dist, targets)
        self.n_rows_seen_ = len(targets)
        self._fit(dist, targets, weights)
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

    def _summary(self) -> Summary | None:
        if not hasattr(self, "n_rows_seen_"):
            return None
        figures = [("calibration rows", str(self.n_rows_seen_)), *self._figures()]
        return Summary(f"{type(self).__name__}, fitted", figures, self._curves())

    def _figures(self) -> list[tuple[str, str]]:
        """Return what was learnt, as names and values in words."""
        return []

    def _curves(self) -> list[Curve]:
        """Return the learnt map of probabilities, if it can be drawn."""
        mapping = getattr(self, "map_", None)
        if not callable(mapping):
            return []
        return [curve_of(lambda q: ndtr(mapping(ndtri(q))))]

    @abstractmethod
    def _fit(self, dist: Distribution, y: Array, weights: Array) -> None: ...

    @abstractmethod
    def _transform(self, dist: Distribution) -> Distribution: ...

    def _check_possible(self, dist: Distribution, y: Array) -> None:
        """Refuse outcomes that the predictions call impossible."""
        with np.errstate(divide="ignore"):
            impossible = np.isneginf(dist.logpdf(y))
        if impossible.all():
            msg = (
                f"None of the {len(y)} outcomes is possible under its predictive distribution "
                f"(the first is y = {y[0]}). Check that predictions and outcomes belong together "
                "and are in the same units."
            )
            raise ValueError(msg)


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
