"""Tests of `regcal.calibrators`."""
