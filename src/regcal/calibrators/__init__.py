"""Calibrators: Distribution in, Distribution out."""

from regcal.calibrators.agreement import (
    DisagreementWarning,
    GrossErrorsWarning,
    RoundedOutcomesWarning,
)
from regcal.calibrators.auto import AutoCalibrator, CandidateScore
from regcal.calibrators.base import (
    Calibrator,
    IdentityCalibrator,
    ImpossibleOutcomesWarning,
)
from regcal.calibrators.conditional import ConditionalCalibrator, LearnerScore
from regcal.calibrators.conformal import ConformalLevels
from regcal.calibrators.dirichlet import DirichletCalibrator
from regcal.calibrators.few_rows import FewRowsWarning
from regcal.calibrators.gp_density import DensityCalibrator
from regcal.calibrators.gp_paper import PaperGPCalibrator
from regcal.calibrators.gp_threshold import GPCalibrator
from regcal.calibrators.isotonic import IsotonicCalibrator
from regcal.calibrators.observed import Observed
from regcal.calibrators.one_vs_rest import OneVsRestCalibrator
from regcal.calibrators.pit import PITCalibrator
from regcal.calibrators.registry import calibrator_names, get_calibrator
from regcal.calibrators.scale import ScaleCalibrator
from regcal.calibrators.sinh_arcsinh import SinhArcsinhCalibrator
from regcal.calibrators.stack import StackCalibrator
from regcal.calibrators.support import Support
from regcal.calibrators.targets import Targets

__all__ = [
    "AutoCalibrator",
    "Calibrator",
    "CandidateScore",
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
    "LearnerScore",
    "Observed",
    "OneVsRestCalibrator",
    "PITCalibrator",
    "PaperGPCalibrator",
    "RoundedOutcomesWarning",
    "ScaleCalibrator",
    "SinhArcsinhCalibrator",
    "StackCalibrator",
    "Support",
    "Targets",
    "calibrator_names",
    "get_calibrator",
]
