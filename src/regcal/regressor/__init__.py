"""Estimators with scikit-learn's contract that predict distributions."""

from regcal.regressor._calibrated import CalibratedModel, CalibratedRegressorCV
from regcal.regressor._quantiles import MultiQuantileRegressor
from regcal.regressor._recipes import paper_brr, paper_gpr, paper_ols
from regcal.regressor._residuals import NormalResidualRegressor
from regcal.regressor._tables import (
    HeldOutScore,
    PredictionColumns,
    TableCalibrator,
    TableRegressor,
)

__all__ = [
    "CalibratedModel",
    "CalibratedRegressorCV",
    "HeldOutScore",
    "MultiQuantileRegressor",
    "NormalResidualRegressor",
    "PredictionColumns",
    "TableCalibrator",
    "TableRegressor",
    "paper_brr",
    "paper_gpr",
    "paper_ols",
]
