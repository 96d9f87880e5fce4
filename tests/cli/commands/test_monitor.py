"""`regcal monitor` watches a table that grows."""

import json

import numpy as np
import pandas as pd
import pytest

import regcal
from regcal.online import CalibrationMonitor

NAMES = "--target y --mean mu --std sigma"


@pytest.fixture
def log(rng):
    """Return rows whose outcomes spread twice as much from row 200 on."""
    mu = rng.normal(size=300)
    error = rng.normal(size=300) * np.where(np.arange(300) < 200, 1.0, 2.0)
    return pd.DataFrame({"mu": mu, "sigma": 1.0, "y": mu + error})


def test_a_growing_table_is_read_on_from_where_it_was(run, log):
    """In pieces it finds what the library finds in one; exit codes tell the alarm."""
    pit = regcal.pit(log["y"], regcal.Normal(log["mu"], np.ones(300)))
    alarm = CalibrationMonitor().update(pit).alarm_
    line = f"monitor log.csv {NAMES} --state watch.regcal"

    for rows in (120, 200):
        log[:rows].to_csv(run.folder / "log.csv", index=False)
        told = run.good(line).out
    log.to_csv(run.folder / "log.csv", index=False)
    last = run(line + " --json")

    assert "200 rows, 80 of them new" in told
    assert "No alarm" in told
    assert last.code == 3
    assert json.loads(last.out)["new_rows"] == 100
    assert json.loads(last.out)["alarm"]["row"] == alarm.row
    assert str(alarm) in run(line).out


def test_outcomes_that_are_missing_are_waited_for(run, log):
    """Rows are looked at up to the first without an outcome, or passed over for good."""
    early = log[:50].copy()
    early.loc[40:45, "y"] = np.nan
    early.to_csv(run.folder / "log.csv", index=False)
    line = f"monitor log.csv {NAMES} --state watch.regcal --json"

    first, skipped = run.good(line), run.good(f"monitor log.csv {NAMES} --skip-missing --json")
    log[:60].to_csv(run.folder / "log.csv", index=False)
    second = run.good(line)

    assert json.loads(first.out)["rows"] == 40
    assert "row 41 has missing values" in first.err
    assert json.loads(skipped.out)["rows"] == 50
    assert json.loads(second.out)["new_rows"] == 20


def test_a_model_is_watched_against_a_reference(run):
    """Calibrated predictions of a model file, compared with rows held out."""
    pit = [
        regcal.pit(
            run.table(name)["strength"],
            regcal.load(run.folder / "scale.regcal").predict_dist(run.table(name)),
        )
        for name in ("held_out.csv", "new.csv")
    ]
    expected = CalibrationMonitor(alpha=0.01, reference=pit[0]).update(pit[1])

    line = "monitor new.csv --model scale.regcal --reference held_out.csv --alpha 0.01 --json"

    assert json.loads(run.good(line).out)["money"] == pytest.approx(expected.money_)


def test_what_does_not_fit_is_refused(run, log):
    """Another table, another alpha, another kind of file."""
    log[:50].to_csv(run.folder / "log.csv", index=False)
    line = f"monitor log.csv {NAMES} --state"
    run.good(f"{line} watch.regcal")
    log[:20].to_csv(run.folder / "log.csv", index=False)

    run.refused(f"{line} watch.regcal", "has 20 rows, and 50 have been looked at")
    run.refused(f"{line} watch.regcal --alpha 0.2", "cannot be changed to 0.2")
    run.refused(f"{line} scale.regcal", "no state of regcal monitor")
    run.refused("monitor log.csv --mean mu --std sigma", "--target y")
