"""Calibrate predictive distributions.

A regression model says, for every row, how the target will be distributed. regcal learns from
held-out rows how those statements are wrong, and corrects them.
"""

from typing import TYPE_CHECKING, Any

from regcal import online
from regcal._version import __version__
from regcal.adapters import predict_dist, register_adapter
from regcal.audit import Audit, AuditedSegment, DecisionCost, audit
from regcal.binary import BetaCalibrator, LogisticCalibrator
from regcal.calibrators import (
    AutoCalibrator,
    Calibrator,
    ConditionalCalibrator,
    ConformalLevels,
    DensityCalibrator,
    DirichletCalibrator,
    DisagreementWarning,
    FewRowsWarning,
    GPCalibrator,
    IdentityCalibrator,
    ImpossibleOutcomesWarning,
    IsotonicCalibrator,
    OneVsRestCalibrator,
    PaperGPCalibrator,
    PITCalibrator,
    ScaleCalibrator,
    SinhArcsinhCalibrator,
    StackCalibrator,
    calibrator_names,
    get_calibrator,
)
from regcal.codes import DenseCode, LeastSquaresDecoder, ThresholdCode
from regcal.distributions import (
    Clipped,
    CrossingQuantilesWarning,
    CustomDistribution,
    Distribution,
    Histogram,
    Mixture,
    Normal,
    Quantiles,
    Rounded,
    Samples,
    ScipyDistribution,
    as_distribution,
    concatenate,
)
from regcal.explanation import CovariateEffect, ExplainedSegment, Explanation, explain
from regcal.grids import EqualGrid, QuantileGrid
from regcal.metrics import compare, crps, log_score, pit
from regcal.outcomes import Outcomes
from regcal.regressor import (
    CalibratedRegressorCV,
    CrossGuarantee,
    MultiQuantileRegressor,
    NormalResidualRegressor,
    SplitGuarantee,
    cross_val_predict_dist,
    paper_brr,
    paper_gpr,
    paper_ols,
)
from regcal.report import report

if TYPE_CHECKING:
    from regcal.persistence import FileError, file_info, load, save

__all__ = [
    "Audit",
    "AuditedSegment",
    "AutoCalibrator",
    "BetaCalibrator",
    "CalibratedRegressorCV",
    "Calibrator",
    "Clipped",
    "ConditionalCalibrator",
    "ConformalLevels",
    "CovariateEffect",
    "CrossGuarantee",
    "CrossingQuantilesWarning",
    "CustomDistribution",
    "DecisionCost",
    "DenseCode",
    "DensityCalibrator",
    "DirichletCalibrator",
    "DisagreementWarning",
    "Distribution",
    "EqualGrid",
    "ExplainedSegment",
    "Explanation",
    "FewRowsWarning",
    "FileError",
    "GPCalibrator",
    "Histogram",
    "IdentityCalibrator",
    "ImpossibleOutcomesWarning",
    "IsotonicCalibrator",
    "LeastSquaresDecoder",
    "LogisticCalibrator",
    "Mixture",
    "MultiQuantileRegressor",
    "Normal",
    "NormalResidualRegressor",
    "OneVsRestCalibrator",
    "Outcomes",
    "PITCalibrator",
    "PaperGPCalibrator",
    "QuantileGrid",
    "Quantiles",
    "Rounded",
    "Samples",
    "ScaleCalibrator",
    "ScipyDistribution",
    "SinhArcsinhCalibrator",
    "SplitGuarantee",
    "StackCalibrator",
    "ThresholdCode",
    "__version__",
    "as_distribution",
    "audit",
    "calibrator_names",
    "compare",
    "concatenate",
    "cross_val_predict_dist",
    "crps",
    "explain",
    "file_info",
    "get_calibrator",
    "load",
    "log_score",
    "online",
    "paper_brr",
    "paper_gpr",
    "paper_ols",
    "pit",
    "predict_dist",
    "register_adapter",
    "report",
    "save",
]

_OF_FILES = ("FileError", "file_info", "load", "save")


def __getattr__(name: str) -> Any:
    # imported when they are used: few programs write files, and all wait for imports
    if name in _OF_FILES:
        from regcal import persistence

        return getattr(persistence, name)
    msg = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(msg)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
