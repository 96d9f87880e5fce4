"""`regcal evaluate` prints the table of `compare`."""

import json

import pytest
from shell import PREDICTIONS

import regcal


def test_evaluate_prints_the_table_of_compare(run):
    """Scores are those of the library, for people and as JSON."""
    line = f"evaluate new.csv {PREDICTIONS}"
    new = run.table("new.csv")
    score = regcal.log_score(new["strength"], regcal.Normal(new["mean"], new["std"])).mean()

    told = json.loads(run.good(line + " --json").out)

    assert told["metrics"]["log score"]["values"]["predictions"] == pytest.approx(score)
    assert "threshold calibration error" in run.good(line).out
    assert "after - before" in run.good("evaluate new.csv --model scale.regcal").out
