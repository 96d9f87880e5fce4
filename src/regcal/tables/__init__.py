"""Columns of tables become distributions and outcomes: for Dask, the command line and model files.

A table is a frame, a mapping from names to columns, or an array whose columns have numbers.
"""

from regcal.tables.covariates import CovariateColumns
from regcal.tables.models import HeldOutScore, TableCalibrator, TableModel, TableRegressor
from regcal.tables.outcomes import (
    CensoredColumns,
    ExactColumn,
    IntervalColumns,
    OutcomeColumns,
    outcome_columns,
)
from regcal.tables.predictions import (
    ModelPredictions,
    NormalColumns,
    PredictionColumns,
    QuantileColumns,
    SampleColumns,
)
from regcal.tables.reading import RefusedRows, check_has_column, read_column

__all__ = [
    "CensoredColumns",
    "CovariateColumns",
    "ExactColumn",
    "HeldOutScore",
    "IntervalColumns",
    "ModelPredictions",
    "NormalColumns",
    "OutcomeColumns",
    "PredictionColumns",
    "QuantileColumns",
    "RefusedRows",
    "SampleColumns",
    "TableCalibrator",
    "TableModel",
    "TableRegressor",
    "check_has_column",
    "outcome_columns",
    "read_column",
]
