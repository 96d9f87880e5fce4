"""Tests of `regcal.plots`."""
