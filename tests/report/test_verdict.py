"""The verdict tells truth from error."""

import re

from rows import toy

import regcal


def test_verdict_tells_truth_from_error(tmp_path):
    """The truth shows no sign of miscalibration; the normal is told off, with the place."""
    y, truth, wrong = toy(800)
    good = regcal.report(y, truth, path=tmp_path / "good.html").read_text(encoding="utf-8")
    bad = regcal.report(y, wrong, path=tmp_path / "bad.html").read_text(encoding="utf-8")

    assert "No sign of miscalibration in “model”" in good
    assert "“model” is not calibrated" in bad
    assert "probabilities are off by up to" in bad
    assert "log score changed" not in bad


def test_verdict_says_what_calibration_changed(tmp_path):
    """With `before`, improvements are named with their uncertainty."""
    y, truth, wrong = toy(800)
    file = regcal.report(y, truth, before=wrong, path=str(tmp_path / "report.html"))
    text = file.read_text(encoding="utf-8")

    assert re.search(r"log score changed by \+[\d.]+ ± [\d.]+ \(better\)", text)
    assert re.search(r"CRPS by -[\d.]+ ± [\d.]+ \(better\)", text)
