"""Calibrate predictive distributions."""

from regcal._version import __version__

__all__ = ["__version__"]
