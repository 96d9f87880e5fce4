"""Models that take tables by column names: what the command line keeps in files.

Depends on the calibrators, the distributions, the adapters and `_calibrated`; pandas is imported
where a frame is made.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted

from regcal._validation import Array
from regcal.adapters import predict_dist
from regcal.calibrators import Calibrator
from regcal.distributions import Distribution, Mixture, Normal, Quantiles, Samples
from regcal.regressor._calibrated import CalibratedRegressorCV


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


@dataclass(frozen=True)
class PredictionColumns:
    """Columns of a table that hold predictions.

    Parameters
    ----------
    kind : {"normal", "quantiles", "samples"}
        Mean and standard deviation; one column for each level; one column for each draw.
    names : tuple of str
        Their names, in this order.
    levels : tuple of float
        Levels of quantiles, increasing; empty for the other kinds.

    Examples
    --------
    >>> from regcal.regressor import PredictionColumns
    >>> columns = PredictionColumns("normal", ("mu", "sigma"))
    >>> columns.distribution({"mu": [1.0, 2.0], "sigma": [0.5, 0.5], "id": [7, 8]})
    Normal(rows=2)
    """

    kind: str
    names: tuple[str, ...]
    levels: tuple[float, ...] = ()

    def distribution(self, table: Any) -> Distribution:
        """Return the distributions in a table, a frame or a mapping from names to columns."""
        columns = [np.asarray(table[name], dtype=np.float64) for name in self.names]
        if self.kind == "normal":
            return Normal(*columns)
        matrix = np.column_stack(columns)
        return Quantiles(self.levels, matrix) if self.kind == "quantiles" else Samples(matrix)


class TableCalibrator(BaseEstimator):
    """A calibrator of predictions that stand in columns of a table.

    Parameters
    ----------
    columns : PredictionColumns
        Where the predictions are.
    calibrator : Calibrator
        The method.
    target : str, default="y"
        Name of the column of outcomes.

    Attributes
    ----------
    calibrator_ : Calibrator
        The fitted method.
    n_rows_seen_ : int
        Number of rows it was fitted on.
    source_, scores_ : str, list of HeldOutScore
        Where the rows came from and how it did, if the command line fitted it.

    Examples
    --------
    >>> from regcal import get_calibrator
    >>> from regcal.regressor import PredictionColumns, TableCalibrator
    >>> table = {"mu": [1.0, 2.0, 3.0], "sigma": [1.0, 1.0, 1.0], "y": [3.0, 0.0, 3.0]}
    >>> columns = PredictionColumns("normal", ("mu", "sigma"))
    >>> model = TableCalibrator(columns, get_calibrator("scale")).fit(table)
    >>> model.predict_dist({"mu": [5.0], "sigma": [1.0]}).std().round(1)
    array([1.5])
    """

    def __init__(
        self, columns: PredictionColumns, calibrator: Calibrator, target: str = "y"
    ) -> None:
        self.columns = columns
        self.calibrator = calibrator
        self.target = target

    @property
    def inputs(self) -> tuple[str, ...]:
        """Names of the columns that `predict_dist` needs."""
        return self.columns.names

    @property
    def texts(self) -> tuple[str, ...]:
        """Names of those that hold texts: none."""
        return ()

    def fit(self, table: Any) -> Self:
        """Learn from a table with predictions and outcomes of held-out rows."""
        self.calibrator_ = clone(self.calibrator).fit(
            self.columns.distribution(table), np.asarray(table[self.target], dtype=np.float64)
        )
        self.n_rows_seen_ = self.calibrator_.n_rows_seen_
        return self

    def predict_base(self, table: Any) -> Distribution:
        """Return the predictions as they are in the table."""
        return self.columns.distribution(table)

    def predict_dist(self, table: Any) -> Distribution:
        """Return the calibrated predictions."""
        check_is_fitted(self, "calibrator_")
        return self.calibrator_.transform(self.predict_base(table))


class TableRegressor(BaseEstimator):
    """A calibrated regressor whose features stand in columns of a table.

    Parameters
    ----------
    model : CalibratedRegressorCV
        The model, which is given a frame.
    numbers : sequence of str
        Names of the features that are numbers.
    texts : sequence of str, default=()
        Names of the features that are texts.
    target : str, default="y"
        Name of the column of outcomes.
    takes_missing : bool, default=False
        Whether features may be missing.

    Attributes
    ----------
    model_ : CalibratedRegressorCV
        The fitted model.
    n_rows_seen_ : int
        Number of rows it was fitted on.
    source_, scores_ : str, list of HeldOutScore
        Where the rows came from and how it did, if the command line fitted it.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import BayesianRidge
    >>> from regcal import CalibratedRegressorCV
    >>> from regcal.regressor import TableRegressor
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
        target: str = "y",
        *,
        takes_missing: bool = False,
    ) -> None:
        self.model = model
        self.numbers = numbers
        self.texts = texts
        self.target = target
        self.takes_missing = takes_missing

    @property
    def inputs(self) -> tuple[str, ...]:
        """Names of the columns that `predict_dist` needs."""
        return (*self.numbers, *self.texts)

    def fit(self, table: Any, groups: Any = None) -> Self:
        """Fit the model on a table with features and outcomes."""
        y: Array = np.asarray(table[self.target], dtype=np.float64)
        self.model_ = clone(self.model).fit(self._frame(table), y, groups=groups)
        self.n_rows_seen_ = len(y)
        return self

    def _frame(self, table: Any) -> Any:
        import pandas as pd

        parts: Mapping[str, Any] = {
            **{name: np.asarray(table[name], dtype=np.float64) for name in self.numbers},
            **{name: np.asarray(table[name], dtype=object) for name in self.texts},
        }
        return pd.DataFrame(parts, columns=list(self.inputs))

    def predict_base(self, table: Any) -> Distribution:
        """Return the predictions of the model before they are calibrated."""
        check_is_fitted(self, "model_")
        frame = self._frame(table)
        dists = [predict_dist(member.estimator, frame) for member in self.model_.members_]
        return dists[0] if len(dists) == 1 else Mixture(dists)

    def predict_dist(self, table: Any) -> Distribution:
        """Return the calibrated predictions."""
        check_is_fitted(self, "model_")
        return self.model_.predict_dist(self._frame(table))
