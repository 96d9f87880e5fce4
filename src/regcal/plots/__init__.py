"""Figures in scikit-learn's manner: displays that draw what metrics computed."""

from regcal.plots.audit import AuditDisplay
from regcal.plots.calibration_map import CalibrationMapDisplay
from regcal.plots.density import DensityDisplay
from regcal.plots.explanation import ExplanationDisplay
from regcal.plots.marginal import CoverageDisplay, PitHistogramDisplay
from regcal.plots.monitor import MonitorDisplay
from regcal.plots.reliability import ReliabilityDisplay
from regcal.plots.row import RowDisplay

__all__ = [
    "AuditDisplay",
    "CalibrationMapDisplay",
    "CoverageDisplay",
    "DensityDisplay",
    "ExplanationDisplay",
    "MonitorDisplay",
    "PitHistogramDisplay",
    "ReliabilityDisplay",
    "RowDisplay",
]
