"""Tests of `regcal.explanation`."""
