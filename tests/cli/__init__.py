"""Tests of `regcal.cli`."""
