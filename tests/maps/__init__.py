"""Tests of `regcal.maps`."""
