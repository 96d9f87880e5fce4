"""Calibrators to save, and a place for them."""

from pathlib import Path

import pytest
from cases import CALIBRATORS, STANDARD, fitted_calibrator

import regcal


@pytest.fixture
def path(tmp_path) -> Path:
    return tmp_path / "model.regcal"


@pytest.fixture(params=CALIBRATORS)
def calibrator(request) -> regcal.Calibrator:
    """Return every calibrator, fitted; a new name joins by itself."""
    return fitted_calibrator(request.param, "normal", 0, STANDARD)
