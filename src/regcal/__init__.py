"""Calibrate predictive distributions.

A regression model says, for every row, how the target will be distributed. regcal learns from
held-out rows how those statements are wrong, and corrects them.
"""

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

from regcal._version import __version__

if TYPE_CHECKING:
    from regcal import online
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
        GrossErrorsWarning,
        IdentityCalibrator,
        ImpossibleOutcomesWarning,
        IsotonicCalibrator,
        OneVsRestCalibrator,
        PaperGPCalibrator,
        PITCalibrator,
        RoundedOutcomesWarning,
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
    from regcal.metrics import crps, log_score, pit
    from regcal.metrics.compare import compare
    from regcal.outcomes import Outcomes
    from regcal.persistence import FileError, file_info, load, save
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
    "GrossErrorsWarning",
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
    "RoundedOutcomesWarning",
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

# The parts that hold the public names: each is imported when one of its names is asked for.
_NAMES = {
    "adapters": ("predict_dist", "register_adapter"),
    "audit": ("Audit", "AuditedSegment", "DecisionCost", "audit"),
    "binary": ("BetaCalibrator", "LogisticCalibrator"),
    "calibrators": (
        "AutoCalibrator",
        "Calibrator",
        "ConditionalCalibrator",
        "ConformalLevels",
        "DensityCalibrator",
        "DirichletCalibrator",
        "DisagreementWarning",
        "FewRowsWarning",
        "GPCalibrator",
        "GrossErrorsWarning",
        "IdentityCalibrator",
        "ImpossibleOutcomesWarning",
        "IsotonicCalibrator",
        "OneVsRestCalibrator",
        "PaperGPCalibrator",
        "PITCalibrator",
        "RoundedOutcomesWarning",
        "ScaleCalibrator",
        "SinhArcsinhCalibrator",
        "StackCalibrator",
        "calibrator_names",
        "get_calibrator",
    ),
    "codes": ("DenseCode", "LeastSquaresDecoder", "ThresholdCode"),
    "distributions": (
        "Clipped",
        "CrossingQuantilesWarning",
        "CustomDistribution",
        "Distribution",
        "Histogram",
        "Mixture",
        "Normal",
        "Quantiles",
        "Rounded",
        "Samples",
        "ScipyDistribution",
        "as_distribution",
        "concatenate",
    ),
    "explanation": ("CovariateEffect", "ExplainedSegment", "Explanation", "explain"),
    "grids": ("EqualGrid", "QuantileGrid"),
    "metrics": ("compare", "crps", "log_score", "pit"),
    "outcomes": ("Outcomes",),
    "persistence": ("FileError", "file_info", "load", "save"),
    "regressor": (
        "CalibratedRegressorCV",
        "CrossGuarantee",
        "MultiQuantileRegressor",
        "NormalResidualRegressor",
        "SplitGuarantee",
        "cross_val_predict_dist",
        "paper_brr",
        "paper_gpr",
        "paper_ols",
    ),
    "report": ("report",),
}
_PART_OF = {name: part for part, names in _NAMES.items() for name in names}
_PARTS = {*_NAMES, "corrections", "covariates", "ends", "gp", "maps", "online"}


def __getattr__(name: str) -> Any:
    if name in _PART_OF:
        value = getattr(import_module(f"regcal.{_PART_OF[name]}"), name)
    elif name in _PARTS:
        value = import_module(f"regcal.{name}")
    else:
        msg = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(msg)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_PARTS})


class _Package(ModuleType):
    """Keeps `regcal.audit` and `regcal.report` functions: to import a part sets its name to it."""

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in _PART_OF or not isinstance(value, ModuleType):
            super().__setattr__(name, value)

    def __reduce__(self) -> tuple[Any, ...]:
        # as cloudpickle does with plain modules: functions that name regcal travel to workers
        return import_module, (self.__name__,)


sys.modules[__name__].__class__ = _Package
