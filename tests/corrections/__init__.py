"""Tests of `regcal.corrections`."""
