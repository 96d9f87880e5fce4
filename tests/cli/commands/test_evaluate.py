"""`regcal evaluate` prints the table of `compare`."""

import json

import numpy as np
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


def test_evaluate_tells_what_the_table_tells_of_censored_outcomes(run):
    """Scores and remarks are those of `compare`, for people and as JSON."""
    new = run.table("new.csv")
    new["open"] = np.arange(len(new)) % 3 == 0
    new.to_csv(run.folder / "open.csv", index=False)
    seen = regcal.Outcomes.right_censored(new["strength"], ~new["open"])
    table = regcal.compare(seen, {"predictions": regcal.Normal(new["mean"], new["std"])})
    line = f"evaluate open.csv {PREDICTIONS} --censored open"

    told, shown = json.loads(run.good(line + " --json").out), run.good(line).out

    assert "are right-censored: their log score is that of the interval" in table.notes[0]
    assert told["notes"] == list(table.notes)
    assert all(remark in shown.splitlines() for remark in table.notes)
    for metric in table.metrics:
        value = told["metrics"][metric.name]["values"]["predictions"]
        assert value == pytest.approx(metric.values[0])
