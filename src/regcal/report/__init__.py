"""The report: one HTML file that shows whether predictions are calibrated, and where not."""

from regcal.report.build import report

__all__ = ["report"]
