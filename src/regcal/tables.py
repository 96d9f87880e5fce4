"""Columns of tables become distributions and outcomes: for Dask, the command line and model files.

A table is a frame, a mapping from names to columns, or an array whose columns have numbers.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted

from regcal._validation import Array, as_float_array
from regcal.adapters import predict_dist
from regcal.calibrators import Calibrator, Support
from regcal.covariates import Covariates
from regcal.distributions import Distribution, Mixture, Normal, Quantiles, Samples
from regcal.outcomes import Outcomes
from regcal.regressor import CalibratedRegressorCV
from regcal.support import Ends, find_ends_of_draws, find_ends_of_quantiles


def check_has_column(table: Any, name: Any) -> None:
    """Refuse a name that a table does not have, or a number that an array does not have."""
    if isinstance(table, Mapping) or hasattr(table, "columns"):
        known = list(table) if isinstance(table, Mapping) else list(table.columns)
        if name not in known:
            msg = f"There is no column {name!r}. The columns are {known}."
            raise ValueError(msg)
    elif not isinstance(name, int | np.integer) or not 0 <= name < table.shape[1]:
        msg = (
            f"There is no column {name!r} in an array of {table.shape[1]} columns. "
            f"Pass a number from 0 to {table.shape[1] - 1}."
        )
        raise ValueError(msg)


def read_column(table: Any, name: Any) -> Array:
    """Return a column of a table as numbers.

    Examples
    --------
    >>> from regcal.tables import read_column
    >>> read_column({"mu": [1, 2], "id": ["a", "b"]}, "mu")
    array([1., 2.])
    """
    check_has_column(table, name)
    named = isinstance(table, Mapping) or hasattr(table, "columns")
    return as_float_array(table[name] if named else table[:, name], f"column {name!r}")


# -------------------------------------------------------------------- predictions that stand there


@dataclass(frozen=True)
class RefusedRows:
    """Rows of a table whose columns are no distribution, or no outcome.

    Attributes
    ----------
    rows : ndarray of bool
        Which they are.
    found, values : str, ndarray
        What such a row has, in words before its value.
    rule : str
        What it should have.
    """

    rows: np.ndarray
    found: str
    values: Array
    rule: str


class PredictionColumns(ABC):
    """Columns of a table that hold predictions: called with a table, it returns distributions."""

    @property
    @abstractmethod
    def names(self) -> tuple[Any, ...]:
        """Names or numbers of the columns."""

    @abstractmethod
    def _made_of(self, columns: list[Array]) -> Distribution:
        """Return the distributions that the columns hold."""

    @abstractmethod
    def refused(self, table: Any) -> RefusedRows:
        """Return the rows that are no distribution."""

    def crossing(self, table: Any) -> np.ndarray:
        """Return which rows have quantiles that do not increase with the level."""
        return np.zeros(len(read_column(table, self.names[0])), dtype=bool)

    def read(self, table: Any) -> list[Array]:
        """Return the columns as numbers."""
        return [read_column(table, name) for name in self.names]

    def __call__(self, table: Any) -> Distribution:
        """Return the predictions for all rows of a table."""
        return self._made_of(self.read(table))


def _without_spread(
    columns: list[Array], what: str, find_ends: Callable[[Array], Ends]
) -> RefusedRows:
    """Return all rows between ends if none has any spread; else, they take that of the others."""
    table = np.column_stack(columns)
    low, high = find_ends(table)
    inside = (table[:, 0] > low) & (table[:, 0] < high)
    refused = inside & (np.ptp(table, axis=1) == 0).all()
    return RefusedRows(refused, f"all {what} are", columns[0], "equal ones leave no spread")


@dataclass(frozen=True)
class NormalColumns(PredictionColumns):
    """Reads normal predictions from two columns of a table.

    Parameters
    ----------
    mean, std : column names of a frame, or column numbers of an array

    Examples
    --------
    >>> import numpy as np
    >>> from regcal.tables import NormalColumns
    >>> NormalColumns(mean=0, std=1)(np.array([[5.0, 2.0], [6.0, 1.0]]))
    Normal(rows=2)
    """

    mean: Any
    std: Any

    @property
    def names(self) -> tuple[Any, ...]:
        """Mean and standard deviation."""
        return self.mean, self.std

    def _made_of(self, columns: list[Array]) -> Distribution:
        return Normal(*columns)

    def refused(self, table: Any) -> RefusedRows:
        """Return the rows whose standard deviation is not positive."""
        std = read_column(table, self.std)
        return RefusedRows(
            std <= 0, f"column {self.std!r} is", std, "a standard deviation must be positive"
        )


@dataclass(frozen=True)
class QuantileColumns(PredictionColumns):
    """Reads predicted quantiles from columns of a table.

    Parameters
    ----------
    columns : mapping from level to column
        For example ``{0.1: "q10", 0.5: "median", 0.9: "q90"}``.

    Examples
    --------
    >>> import pandas as pd
    >>> from regcal.tables import QuantileColumns
    >>> table = pd.DataFrame({"q10": [1.0], "median": [2.0], "q90": [4.0]})
    >>> QuantileColumns({0.1: "q10", 0.5: "median", 0.9: "q90"})(table).median()
    array([2.])
    """

    columns: Mapping[float, Any]

    @property
    def names(self) -> tuple[Any, ...]:
        """The columns in the order of their levels."""
        return tuple(self.columns[level] for level in sorted(self.columns))

    def _made_of(self, columns: list[Array]) -> Distribution:
        return Quantiles(sorted(self.columns), np.column_stack(columns))

    def refused(self, table: Any) -> RefusedRows:
        """Return the rows whose quantiles are all equal."""
        find = partial(find_ends_of_quantiles, np.array(sorted(self.columns)))
        return _without_spread(self.read(table), "quantiles", find)

    def crossing(self, table: Any) -> np.ndarray:
        """Return which rows have quantiles that do not increase with the level."""
        return np.any(np.diff(np.column_stack(self.read(table))) < 0, axis=1)


@dataclass(frozen=True)
class SampleColumns(PredictionColumns):
    """Reads draws from the predictive distribution, one per column of a table.

    Parameters
    ----------
    columns : sequence of column names or numbers

    Examples
    --------
    >>> import numpy as np
    >>> from regcal.tables import SampleColumns
    >>> SampleColumns([0, 1, 2])(np.array([[1.0, 2.0, 6.0]])).mean()
    array([3.])
    """

    columns: Sequence[Any]

    @property
    def names(self) -> tuple[Any, ...]:
        """The columns as they were given."""
        return tuple(self.columns)

    def _made_of(self, columns: list[Array]) -> Distribution:
        return Samples(np.column_stack(columns))

    def refused(self, table: Any) -> RefusedRows:
        """Return the rows whose draws are all equal."""
        return _without_spread(self.read(table), "samples", find_ends_of_draws)


@dataclass(frozen=True)
class ModelPredictions:
    """Predicts with a fitted model from the features in a table.

    Parameters
    ----------
    model : object
        Any model that `regcal.predict_dist` understands.
    features : sequence of column names or numbers, optional
        All columns by default.

    Examples
    --------
    >>> import pandas as pd
    >>> from sklearn.linear_model import BayesianRidge
    >>> from regcal.tables import ModelPredictions
    >>> table = pd.DataFrame({"id": [7, 8, 9], "x": [0.0, 1.0, 2.0]})
    >>> model = BayesianRidge().fit(table[["x"]], [0.1, 0.9, 2.1])
    >>> ModelPredictions(model, ["x"])(table)
    Normal(rows=3)
    """

    model: Any
    features: Sequence[Any] | None = None

    def __call__(self, table: Any) -> Distribution:
        """Return the predictions for all rows of a frame or an array."""
        if self.features is not None:
            names = list(self.features)
            table = table[names] if hasattr(table, "columns") else table[:, names]
        return predict_dist(self.model, table)


# ---------------------------------------------------------------------- covariates that stand there


@dataclass(frozen=True)
class CovariateColumns:
    """Reads covariates from columns of a table.

    Parameters
    ----------
    columns : mapping from str to column names of a frame, or column numbers of an array
        Where each covariate stands.
    texts : sequence of str, default=()
        Which of the covariates are categories. An empty text is a missing one.

    Examples
    --------
    >>> from regcal.tables import CovariateColumns
    >>> known = CovariateColumns({"age": "age", "kind": "type"}, texts=("kind",))
    >>> known({"age": [3, 28], "type": ["a", ""], "y": [1, 2]})["kind"].values
    array([ 0, -1])
    """

    columns: Mapping[str, Any]
    texts: Sequence[str] = ()

    @classmethod
    def like(cls, known: Covariates) -> Self:
        """Return columns of the same names and kinds as those of earlier rows."""
        texts = (one.name for one in known.columns if one.kind == "category")
        return cls({name: name for name in known.names}, tuple(texts))

    @property
    def numbers(self) -> tuple[Any, ...]:
        """Columns of numbers."""
        return tuple(place for name, place in self.columns.items() if name not in self.texts)

    @property
    def categories(self) -> tuple[Any, ...]:
        """Columns of categories."""
        return tuple(place for name, place in self.columns.items() if name in self.texts)

    def __call__(self, table: Any) -> Covariates:
        """Return the covariates of all rows of a table."""
        return Covariates.of(
            {
                name: _read_texts(table, place) if name in self.texts else read_column(table, place)
                for name, place in self.columns.items()
            }
        )


def _read_texts(table: Any, name: Any) -> np.ndarray:
    """Return a column of a table as texts, None where one is missing."""
    check_has_column(table, name)
    texts = np.array(table[name], dtype=object)
    texts[texts == ""] = None
    return texts


# ------------------------------------------------------------------------ outcomes that stand there


class OutcomeColumns(ABC):
    """Columns of a table that tell what was seen of Y: called with a table, it returns that."""

    @property
    @abstractmethod
    def names(self) -> tuple[Any, ...]:
        """Names or numbers of the columns."""

    @property
    @abstractmethod
    def label(self) -> str:
        """What the outcome is called."""

    @abstractmethod
    def _made_of(self, columns: list[Array]) -> Any:
        """Return what the columns tell, as all of regcal takes it for y."""

    @abstractmethod
    def unknown(self, table: Any) -> np.ndarray:
        """Return which rows tell nothing."""

    @abstractmethod
    def refused(self, table: Any) -> RefusedRows:
        """Return the rows that are no outcome."""

    def of_columns(self, columns: Sequence[Any]) -> Any:
        """Return what the columns tell, given in the order of their names."""
        named = zip(columns, self.names, strict=True)
        return self._made_of([as_float_array(one, f"column {name!r}") for one, name in named])

    def __call__(self, table: Any) -> Any:
        """Return what was seen of all rows' outcomes."""
        return self._made_of([read_column(table, name) for name in self.names])


@dataclass(frozen=True)
class ExactColumn(OutcomeColumns):
    """Reads outcomes from a column of numbers.

    Parameters
    ----------
    value : column name of a frame, or column number of an array

    Examples
    --------
    >>> from regcal.tables import ExactColumn
    >>> ExactColumn("y")({"y": [3, 5], "mu": [2, 2]})
    array([3., 5.])
    """

    value: Any

    @property
    def names(self) -> tuple[Any, ...]:
        """The one column."""
        return (self.value,)

    @property
    def label(self) -> str:
        """The name of the column."""
        return str(self.value)

    def _made_of(self, columns: list[Array]) -> Array:
        return columns[0]

    def unknown(self, table: Any) -> np.ndarray:
        """Return the rows without a finite number."""
        return ~np.isfinite(read_column(table, self.value))

    def refused(self, table: Any) -> RefusedRows:
        """Return no rows: any number is an outcome."""
        values = read_column(table, self.value)
        return RefusedRows(np.zeros(len(values), dtype=bool), "", values, "")


@dataclass(frozen=True)
class CensoredColumns(OutcomeColumns):
    """Reads outcomes of which some are only known to be at least a value.

    Parameters
    ----------
    value : column name of a frame, or column number of an array
        The outcome, or the value that it is at least.
    censored : column name or number
        Truth values: True or 1 where only that is known (right-censored), False or 0 where the
        value is the outcome. It is the opposite of survival analysis' event.

    Examples
    --------
    >>> from regcal.tables import CensoredColumns
    >>> table = {"days": [5, 8, 2], "alive": [False, True, False]}
    >>> CensoredColumns("days", "alive")(table).upper
    array([ 5., inf,  2.])
    """

    value: Any
    censored: Any

    @property
    def names(self) -> tuple[Any, ...]:
        """Value and truth value."""
        return self.value, self.censored

    @property
    def label(self) -> str:
        """The name of the column of values."""
        return str(self.value)

    def _made_of(self, columns: list[Array]) -> Outcomes:
        values, flags = columns
        odd = ~np.isin(flags, (0.0, 1.0))
        if odd.any():
            row = int(np.flatnonzero(odd)[0])
            msg = (
                f"Column {self.censored!r} must hold True or 1 where an outcome is censored and "
                f"False or 0 where it is not, but row {row} holds {flags[row]:g}."
            )
            raise ValueError(msg)
        return Outcomes.right_censored(values, observed=flags == 0)

    def unknown(self, table: Any) -> np.ndarray:
        """Return the rows that lack the value or the truth value."""
        values, flags = (read_column(table, name) for name in self.names)
        return ~(np.isfinite(values) & np.isfinite(flags))

    def refused(self, table: Any) -> RefusedRows:
        """Return the rows whose truth value is none."""
        flags = read_column(table, self.censored)
        rule = "it must be True or 1 where the outcome is censored, and False or 0 where it is not"
        return RefusedRows(~np.isin(flags, (0, 1)), f"column {self.censored!r} is", flags, rule)


@dataclass(frozen=True)
class IntervalColumns(OutcomeColumns):
    """Reads intervals that hold the outcome.

    Parameters
    ----------
    lower, upper : column names of a frame, or column numbers of an array
        Ends of the intervals, equal where the outcome is known. An end that is missing or
        infinite is not known.

    Examples
    --------
    >>> import numpy as np
    >>> from regcal.tables import IntervalColumns
    >>> seen = IntervalColumns(lower=0, upper=1)(np.array([[2.0, 2.0], [3.0, np.nan]]))
    >>> seen.lower, seen.upper
    (array([2., 3.]), array([ 2., inf]))
    """

    lower: Any
    upper: Any

    @property
    def names(self) -> tuple[Any, ...]:
        """Lower and upper ends."""
        return self.lower, self.upper

    @property
    def label(self) -> str:
        """The names of both columns."""
        return f"{self.lower} to {self.upper}"

    def _made_of(self, columns: list[Array]) -> Outcomes:
        lower, upper = columns
        return Outcomes(
            np.where(np.isnan(lower), -np.inf, lower), np.where(np.isnan(upper), np.inf, upper)
        )

    def unknown(self, table: Any) -> np.ndarray:
        """Return the rows that lack both ends."""
        lower, upper = (read_column(table, name) for name in self.names)
        return ~(np.isfinite(lower) | np.isfinite(upper))

    def refused(self, table: Any) -> RefusedRows:
        """Return the rows whose lower end exceeds the upper one."""
        lower, upper = (read_column(table, name) for name in self.names)
        rule = f"a lower end must not exceed the upper one, in column {self.upper!r}"
        return RefusedRows(lower > upper, f"column {self.lower!r} is", lower, rule)


def outcome_columns(target: Any) -> OutcomeColumns:
    """Return where outcomes stand: a name or a number is a column of numbers.

    Examples
    --------
    >>> from regcal.tables import outcome_columns
    >>> outcome_columns("y")
    ExactColumn(value='y')
    """
    return target if isinstance(target, OutcomeColumns) else ExactColumn(target)


# --------------------------------------------------------------- models that know columns by name


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
