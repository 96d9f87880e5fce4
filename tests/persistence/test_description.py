"""Summaries tell what an auditor asks."""

import numpy as np
import pytest
from cases import STANDARD, fitted_calibrator
from sklearn.exceptions import NotFittedError

import regcal


def test_summary_tells_what_an_auditor_asks(calibrator):
    """Method, every parameter, rows and fingerprint are in it."""
    text = calibrator.summary()

    assert text.splitlines()[0] == type(calibrator).__name__
    assert f"n_rows_seen_: {calibrator.n_rows_seen_}" in text
    assert all(f"  {name}:" in text for name in calibrator.get_params(deep=False))
    assert text.endswith(calibrator.fingerprint())


def test_summary_shows_learnt_numbers_and_choices():
    """Hyper-parameters of the process and scores of candidates can be read off."""
    process = fitted_calibrator("gpc", "normal", 0, STANDARD)
    auto = fitted_calibrator("auto", "normal", 0, STANDARD)

    assert f"sigma_: {process.sigma_:.6g}" in process.summary()
    assert f"log_evidence_: {process.log_evidence_:.6g}" in process.summary()
    assert f"chosen_: {auto.chosen_!r}" in auto.summary()
    assert all(f"log_score: {s.log_score:.6g}" in auto.summary() for s in auto.scores_)


def test_summary_tells_through_what_outcomes_are_seen():
    """An end that was found and a step are a line in words; the whole line is none."""
    y = np.maximum(np.arange(60.0) - 20.0, 0.0)
    dist = regcal.Normal(y, np.ones(60))

    text = regcal.ScaleCalibrator(step=1.0).fit(dist, y).summary()
    line = regcal.ScaleCalibrator().fit(dist[20:], y[20:]).summary()

    words = "values at or below 0 are seen at 0; multiples of 1"
    assert f"  support_: {words}\n" in text
    assert "support_" not in line
    assert "support: 'auto'" in line


@pytest.mark.parametrize("method", ["fingerprint", "summary"])
def test_unfitted_calibrators_have_no_identity(method):
    """There is nothing to identify or describe before fit."""
    with pytest.raises(NotFittedError):
        getattr(regcal.ScaleCalibrator(), method)()
