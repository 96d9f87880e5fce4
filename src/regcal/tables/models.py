"""Models that know columns by name: what the command line fits, and files hold."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted

from regcal.adapters import predict_dist
from regcal.calibrators import Calibrator, Support
from regcal.covariates import Covariates
from regcal.distributions import Distribution, Mixture
from regcal.regressor import CalibratedRegressorCV
from regcal.tables.covariates import CovariateColumns
from regcal.tables.outcomes import (
    OutcomeColumns,
    outcome_columns,
)
from regcal.tables.predictions import (
    PredictionColumns,
)
from regcal.tables.reading import read_column


@dataclass(frozen=True)
class HeldOutScore:
    """A metric on rows that neither the model nor the calibrator had seen.

    Attributes
    ----------
    name : str
    before, after : float
        Without and with calibration.
    better : str
        ``"larger"``, ``"smaller"``, or the value to come close to.
    rows : int
    """

    name: str
    before: float
    after: float
    better: str
    rows: int


class TableModel(BaseEstimator, ABC):
    """A model that knows columns of a table by their names.

    Attributes
    ----------
    target : str or OutcomeColumns
        Name of the column of outcomes, or columns that tell what was seen of them.
    numbers, texts : sequence of str
        Names of the columns that `predict_dist` needs, by what they hold.
    may_be_missing : sequence of str
        Names of columns of numbers that may be missing.
    covariates_read : tuple of str
        Names of the covariates that it has learnt from.
    n_rows_seen_ : int
        Number of rows it was fitted on.
    source_, scores_ : str, list of HeldOutScore
        Where the rows came from and how it did, if the command line fitted it.
    """

    target: str | OutcomeColumns
    numbers: Sequence[str]
    texts: Sequence[str] = ()
    n_rows_seen_: int

    @property
    @abstractmethod
    def may_be_missing(self) -> tuple[str, ...]:
        """Names of columns of numbers that may be missing."""

    @property
    @abstractmethod
    def covariates_read(self) -> tuple[str, ...]:
        """Names of the covariates that it has learnt from."""

    @property
    def inputs(self) -> tuple[str, ...]:
        """Names of the columns that `predict_dist` needs."""
        return (*self.numbers, *self.texts)

    @abstractmethod
    def predict_base(self, table: Any) -> Distribution:
        """Return the predictions before they are calibrated."""

    @property
    @abstractmethod
    def support(self) -> Support:
        """Through what outcomes are seen, as far as it has been learnt."""

    @abstractmethod
    def predict_dist(self, table: Any) -> Distribution:
        """Return the calibrated predictions."""


class TableCalibrator(TableModel):
    """A calibrator of predictions that stand in columns of a table.

    Parameters
    ----------
    columns : PredictionColumns
        Where the predictions are.
    calibrator : Calibrator
        The method.
    target : str or OutcomeColumns, default="y"
        Name of the column of outcomes, or columns that tell what was seen of them.
    covariates : CovariateColumns, optional
        Where covariates are, for a method that looks at them.

    Attributes
    ----------
    calibrator_ : Calibrator
        The fitted method.

    Examples
    --------
    >>> from regcal import get_calibrator
    >>> from regcal.tables import NormalColumns, TableCalibrator
    >>> table = {"mu": [1.0, 2.0, 3.0], "sigma": [1.0, 1.0, 1.0], "y": [3.0, 0.0, 3.0]}
    >>> model = TableCalibrator(NormalColumns("mu", "sigma"), get_calibrator("scale")).fit(table)
    >>> model.predict_dist({"mu": [5.0], "sigma": [1.0]}).std().round(1)
    array([1.5])
    """

    # What files from before there were covariates have.
    covariates: CovariateColumns | None = None

    def __init__(
        self,
        columns: PredictionColumns,
        calibrator: Calibrator,
        target: str | OutcomeColumns = "y",
        covariates: CovariateColumns | None = None,
    ) -> None:
        self.columns = columns
        self.calibrator = calibrator
        self.target = target
        self.covariates = covariates

    @property
    def numbers(self) -> tuple[str, ...]:  # type: ignore[override]
        """Names of the columns of predictions, and of covariates that are numbers."""
        return (*self.columns.names, *self.may_be_missing)

    @property
    def texts(self) -> tuple[str, ...]:  # type: ignore[override]
        """Names of the columns of covariates that are categories."""
        return () if self.covariates is None else self.covariates.categories

    @property
    def may_be_missing(self) -> tuple[str, ...]:
        """Names of columns of covariates that are numbers and no predictions."""
        known = () if self.covariates is None else self.covariates.numbers
        return tuple(name for name in known if name not in self.columns.names)

    @property
    def covariates_read(self) -> tuple[str, ...]:
        """Names of the covariates that it has learnt from."""
        return () if self.covariates is None else tuple(self.covariates.columns)

    def fit(self, table: Any) -> Self:
        """Learn from a table with predictions and outcomes of held-out rows."""
        self.calibrator_ = clone(self.calibrator).fit(
            self.predict_base(table),
            outcome_columns(self.target)(table),
            covariates=self._known(table),
        )
        self.n_rows_seen_ = self.calibrator_.n_rows_seen_
        return self

    def predict_base(self, table: Any) -> Distribution:
        """Return the predictions as they are in the table."""
        return self.columns(table)

    @property
    def support(self) -> Support:
        """Through what outcomes are seen, as far as it has been learnt."""
        check_is_fitted(self, "calibrator_")
        return self.calibrator_.support_

    def predict_dist(self, table: Any) -> Distribution:
        """Return the calibrated predictions."""
        check_is_fitted(self, "calibrator_")
        return self.calibrator_.transform(self.predict_base(table), self._known(table))

    def _known(self, table: Any) -> Covariates | None:
        return None if self.covariates is None else self.covariates(table)


class TableRegressor(TableModel):
    """A calibrated regressor whose features stand in columns of a table.

    Parameters
    ----------
    model : CalibratedRegressorCV
        The model, which is given a frame.
    numbers : sequence of str
        Names of the features that are numbers.
    texts : sequence of str, default=()
        Names of the features that are texts.
    target : str or OutcomeColumns, default="y"
        Name of the column of outcomes, or columns that tell what was seen of them.
    takes_missing : bool, default=False
        Whether features may be missing.

    Attributes
    ----------
    model_ : CalibratedRegressorCV
        The fitted model.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import BayesianRidge
    >>> from regcal import CalibratedRegressorCV
    >>> from regcal.tables import TableRegressor
    >>> x = np.arange(40.0)
    >>> table = {"x": x, "y": x + np.sin(9.0 * x)}
    >>> inner = CalibratedRegressorCV(BayesianRidge(), "scale")
    >>> TableRegressor(inner, ("x",)).fit(table).predict_dist({"x": [20.0]}).mean().round()
    array([20.])
    """

    def __init__(
        self,
        model: CalibratedRegressorCV,
        numbers: Sequence[str],
        texts: Sequence[str] = (),
        target: str | OutcomeColumns = "y",
        *,
        takes_missing: bool = False,
    ) -> None:
        self.model = model
        self.numbers = numbers
        self.texts = texts
        self.target = target
        self.takes_missing = takes_missing

    @property
    def may_be_missing(self) -> tuple[str, ...]:
        """Names of the features that are numbers, if the model takes missing ones."""
        return tuple(self.numbers) if self.takes_missing else ()

    @property
    def covariates_read(self) -> tuple[str, ...]:
        """Names of the features that the calibrator has learnt from."""
        check_is_fitted(self, "model_")
        known = self.model_.members_[0].calibrator.columns_
        return () if known is None else known.names

    def fit(self, table: Any, groups: Any = None) -> Self:
        """Fit the model on a table with features and outcomes."""
        y = outcome_columns(self.target)(table)
        self.model_ = clone(self.model).fit(self._frame(table), y, groups=groups)
        self.n_rows_seen_ = len(y)
        return self

    def _frame(self, table: Any) -> Any:
        import pandas as pd

        parts: Mapping[str, Any] = {
            **{name: read_column(table, name) for name in self.numbers},
            **{name: np.asarray(table[name], dtype=object) for name in self.texts},
        }
        return pd.DataFrame(parts, columns=list(self.inputs))

    def predict_base(self, table: Any) -> Distribution:
        """Return the predictions of the model before they are calibrated."""
        check_is_fitted(self, "model_")
        frame = self._frame(table)
        dists = [predict_dist(member.estimator, frame) for member in self.model_.members_]
        return dists[0] if len(dists) == 1 else Mixture(dists)

    @property
    def support(self) -> Support:
        """Through what outcomes are seen, as far as it has been learnt."""
        check_is_fitted(self, "model_")
        return self.model_.support_

    def predict_dist(self, table: Any) -> Distribution:
        """Return the calibrated predictions."""
        check_is_fitted(self, "model_")
        return self.model_.predict_dist(self._frame(table))
