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
    words = run.good(f"monitor log.csv {NAMES} --skip-missing").out
    log[:60].to_csv(run.folder / "log.csv", index=False)
    second = run.good(line)

    assert json.loads(first.out)["rows"] == 40
    assert "row 41 has no outcome yet" in first.err
    assert json.loads(skipped.out)["rows"] == 50
    assert json.loads(skipped.out)["rows_used"] == 44
    assert "44 rows were used, 6 passed over" in words
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
    regcal.save(CalibrationMonitor().update([0.5]), run.folder / "library.regcal")
    run.refused(f"{line} library.regcal", "no state of regcal monitor")


def test_a_missing_prediction_is_refused_or_passed_over(run, log):
    """It never comes, so that nobody waits for it; once passed over, it stays so."""
    log.loc[40, "mu"] = np.nan
    log[:50].to_csv(run.folder / "log.csv", index=False)
    line = f"monitor log.csv {NAMES} --state watch.regcal"

    run.refused(line, "column 'mu' is missing in row 41")
    run.good(f"{line} --skip-missing")
    log[:60].fillna(0.3).to_csv(run.folder / "log.csv", index=False)

    assert "60 rows, 10 of them new. 59 rows were used, 1 passed over." in run.good(line).out


@pytest.mark.parametrize("change", ["edited", "replaced"])
def test_rows_that_were_looked_at_have_to_be_as_they_were(run, log, change):
    """Another table of as many rows, or an edited row, is no continuation."""
    log[:50].to_csv(run.folder / "log.csv", index=False)
    line = f"monitor log.csv {NAMES} --state watch.regcal"
    run.good(line)
    if change == "edited":
        log.loc[20, "y"] += 0.5
    else:
        log = log[50:]
    log[:100].to_csv(run.folder / "log.csv", index=False)

    run.refused(line, "the first 50 rows are not those that were looked at")


def test_a_state_keeps_its_columns_and_its_reference(run, log):
    """Other columns or another reference begin another watch."""
    log["other"] = log["sigma"]
    log[:50].to_csv(run.folder / "log.csv", index=False)
    for name, rows in (("reference.csv", slice(50, 100)), ("later.csv", slice(100, 150))):
        log[rows].to_csv(run.folder / name, index=False)
    line = f"monitor log.csv {NAMES}"
    run.good(f"{line} --state watch.regcal --reference reference.csv")
    run.good(f"{line} --state bare.regcal")

    run.good(f"{line} --state watch.regcal --reference reference.csv")
    run.good(f"{line} --state watch.regcal")
    run.refused(
        "monitor log.csv --target y --mean mu --std other --state watch.regcal",
        "watches the columns mu, sigma, y",
    )
    run.refused(f"{line} --state watch.regcal --reference later.csv", "began with other rows")
    run.refused(f"{line} --state bare.regcal --reference later.csv", "began with none")
