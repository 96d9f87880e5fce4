"""Tests of `regcal.report`."""
