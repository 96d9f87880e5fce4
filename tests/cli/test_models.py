"""Model files that are trusted, and others; what they know of a table."""

import json

import numpy as np
import pandas as pd
import pytest

import regcal


def test_model_files_that_cannot_be_trusted_are_refused(run):
    """Cut, foreign and missing files end in a message that says what to do."""
    whole = (run.folder / "fit.regcal").read_bytes()
    (run.folder / "cut.regcal").write_bytes(whole[: len(whole) // 2])
    (run.folder / "own_model.py").write_text(
        "from sklearn.linear_model import BayesianRidge\nclass Own(BayesianRidge):\n    pass\n"
    )
    run.good("fit concrete.csv --target compressive_strength --model own_model:Own "
             "--calibrator scale --output own.regcal")  # fmt: skip

    run.refused("predict cut.regcal concrete.csv", "cut.regcal")
    run.refused("info cut.regcal", "cut.regcal")
    run.refused("predict new.csv concrete.csv", "new.csv")
    run.refused("predict absent.regcal new.csv", "no model file absent.regcal")
    run.refused("predict own.regcal concrete.csv", "own_model.Own", "pass --trust NAME")
    assert "  needs --trust own_model.Own\n" in run.good("info own.regcal").out


def test_trusted_models_are_used(run):
    """A class of one's own is loaded when it is named."""
    (run.folder / "trusted_model.py").write_text(
        "from sklearn.linear_model import BayesianRidge\nclass Own(BayesianRidge):\n    pass\n"
    )
    run.good("fit concrete.csv --target compressive_strength --model trusted_model:Own "
             "--calibrator scale --output own.regcal")  # fmt: skip

    run.good("predict own.regcal concrete.csv --trust trusted_model.Own --output out.csv")


@pytest.fixture
def survival(run):
    """Write times, of which some are censored, and a model that has learnt from them."""
    rng = np.random.default_rng(0)
    time, end = rng.exponential(3.0, (2, 120))
    table = {"mu": 3.0 + rng.normal(size=120), "sigma": 2.0, "days": np.minimum(time, end)}
    table = pd.DataFrame(table | {"alive": end < time})
    table.to_csv(run.folder / "s.csv", index=False)
    table.drop(columns="alive").to_csv(run.folder / "known.csv", index=False)
    run.good(
        "calibrate s.csv --target days --censored alive --mean mu --std sigma --calibrator pit "
        "--save m.regcal"
    )
    return table


@pytest.mark.parametrize("options", ["", "--target days", "--target days --censored alive"])
def test_values_named_alone_keep_what_tells_of_censoring(run, survival, options):
    """Whether a value is the outcome is asked where the model has learnt to ask."""
    told = json.loads(run.good(f"evaluate s.csv --model m.regcal {options} --json").out)

    seen = regcal.Outcomes.right_censored(survival["days"], ~survival["alive"])
    before = regcal.log_score(seen, regcal.Normal(survival["mu"], survival["sigma"])).mean()
    assert told["metrics"]["log score"]["values"]["before"] == pytest.approx(before)


def test_tables_that_do_not_tell_of_censoring(run, survival):
    """They are refused with a way to say that all outcomes are known, which works."""
    line = "evaluate known.csv --model m.regcal"

    run.refused(f"{line} --target days", "'alive'", "--censored", "--lower days --upper days")

    told = json.loads(run.good(f"{line} --lower days --upper days --json").out)
    dist = regcal.Normal(survival["mu"], survival["sigma"])
    before = regcal.log_score(survival["days"], dist).mean()
    assert told["metrics"]["log score"]["values"]["before"] == pytest.approx(before)
