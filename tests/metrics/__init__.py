"""Tests of `regcal.metrics`."""
