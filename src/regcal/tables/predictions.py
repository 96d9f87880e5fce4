"""Columns that hold predictions, or the features of a model that makes them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from regcal._validation import Array
from regcal.adapters import predict_dist
from regcal.distributions import Distribution, Normal, Quantiles, Samples
from regcal.ends import Ends, find_ends_of_draws, find_ends_of_quantiles
from regcal.tables.reading import RefusedRows, read_column


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
