"""Tests of `regcal.cli.commands`."""
