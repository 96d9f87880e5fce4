"""Scorers for scikit-learn's model selection, for estimators with ``predict_dist``."""

import inspect
from collections.abc import Callable
from typing import Any, Self

from sklearn.utils.metadata_routing import MetadataRequest

from regcal._validation import check_weights
from regcal.metrics._inputs import weighted_mean
from regcal.metrics.calibration import quantile_calibration_error
from regcal.metrics.scores import crps, interval_score, log_score
from regcal.metrics.thresholds import threshold_calibration_error


class DistributionScorer:
    """Score an estimator by its ``predict_dist``; larger is always better.

    Parameters
    ----------
    metric : callable
        ``metric(y, dist)`` with one value per row, whose weighted mean is taken, or
        ``metric(y, dist, sample_weight=)`` with a single number.
    greater_is_better : bool, default=True
        False for losses and errors, whose sign is then changed.
    **parameters
        Passed on to the metric, for example ``coverage=0.8``.

    Examples
    --------
    >>> from regcal.metrics import DistributionScorer, interval_score
    >>> DistributionScorer(interval_score, greater_is_better=False, coverage=0.8)
    DistributionScorer(interval_score, greater_is_better=False, coverage=0.8)
    """

    def __init__(
        self, metric: Callable[..., Any], *, greater_is_better: bool = True, **parameters: Any
    ) -> None:
        self.metric = metric
        self.greater_is_better = greater_is_better
        self.parameters = parameters
        self._requests_weight: Any = None

    def __call__(self, estimator: Any, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the score of a fitted estimator on rows it has not seen."""
        if not hasattr(estimator, "predict_dist"):
            msg = (
                f"{type(estimator).__name__} has no predict_dist(X). Wrap it in "
                "regcal.CalibratedRegressorCV, or give it that method."
            )
            raise TypeError(msg)
        dist = estimator.predict_dist(X)
        if "sample_weight" in inspect.signature(self.metric).parameters:
            value = self.metric(y, dist, sample_weight=sample_weight, **self.parameters)
        else:
            rows = self.metric(y, dist, **self.parameters)
            value = weighted_mean(rows, check_weights(sample_weight, len(rows)))
        return float(value) if self.greater_is_better else -float(value)

    def set_score_request(self, *, sample_weight: bool | str | None) -> Self:
        """Ask scikit-learn's metadata routing for sample weights.

        Parameters
        ----------
        sample_weight : bool, str or None
            True to ask for it, or the name under which it is passed.

        Returns
        -------
        DistributionScorer
            A copy that asks for it; the scorer itself stays as it is.
        """
        scorer = type(self)(
            self.metric, greater_is_better=self.greater_is_better, **self.parameters
        )
        scorer._requests_weight = sample_weight
        return scorer

    def get_metadata_routing(self) -> MetadataRequest:
        """Return what this scorer asks of scikit-learn's metadata routing."""
        request = MetadataRequest(owner=self)
        request.score.add_request(param="sample_weight", alias=self._requests_weight)
        return request

    def __repr__(self) -> str:
        name = getattr(self.metric, "__name__", repr(self.metric))
        extra = "".join(f", {key}={value!r}" for key, value in self.parameters.items())
        sign = "" if self.greater_is_better else ", greater_is_better=False"
        return f"DistributionScorer({name}{sign}{extra})"


log_score_scorer = DistributionScorer(log_score)
crps_scorer = DistributionScorer(crps, greater_is_better=False)
interval_score_scorer = DistributionScorer(interval_score, greater_is_better=False)
quantile_calibration_scorer = DistributionScorer(
    quantile_calibration_error, greater_is_better=False
)
threshold_calibration_scorer = DistributionScorer(
    threshold_calibration_error, greater_is_better=False
)
