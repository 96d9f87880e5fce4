"""The version of regcal, kept in one place."""

__version__ = "0.2.0"
