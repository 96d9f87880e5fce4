"""Tests of `regcal.datasets`."""
