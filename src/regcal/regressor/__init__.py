"""Estimators with scikit-learn's contract that predict distributions."""

from regcal.regressor._calibrated import CalibratedModel, CalibratedRegressorCV
from regcal.regressor._guarantee import CrossGuarantee, Guarantee, SplitGuarantee
from regcal.regressor._out_of_fold import cross_val_predict_dist
from regcal.regressor._quantiles import MultiQuantileRegressor
from regcal.regressor._recipes import paper_brr, paper_gpr, paper_ols
from regcal.regressor._residuals import NormalResidualRegressor

__all__ = [
    "CalibratedModel",
    "CalibratedRegressorCV",
    "CrossGuarantee",
    "Guarantee",
    "MultiQuantileRegressor",
    "NormalResidualRegressor",
    "SplitGuarantee",
    "cross_val_predict_dist",
    "paper_brr",
    "paper_gpr",
    "paper_ols",
]
