"""`regcal info` tells what is in a file."""

import json

import regcal


def test_info_tells_what_is_in_a_file(run):
    """Class, source, scores and versions, without building the model."""
    told = json.loads(run.good("info fit.regcal --json").out)
    text = run.good("info fit.regcal").out

    assert told["class"].endswith("TableRegressor")
    assert {score["name"] for score in told["scores"]} >= {"log score", "CRPS"}
    assert "concrete.csv" in text
    assert f"regcal {regcal.__version__}" in text
