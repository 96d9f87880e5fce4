"""Tests of `regcal.reproduce`."""
