"""Tests of `regcal.distributions`."""
