"""Tests of `regcal.online`."""
