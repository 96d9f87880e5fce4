"""Tests of `regcal.audit`."""
