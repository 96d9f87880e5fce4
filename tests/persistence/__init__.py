"""Tests of `regcal.persistence`."""
