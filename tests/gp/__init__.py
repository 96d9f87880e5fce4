"""Tests of `regcal.gp`."""
