"""Tests of `regcal.regressor`."""
