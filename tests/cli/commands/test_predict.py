"""`regcal predict` applies what was saved."""

import json

from numpy.testing import assert_allclose
from shell import CALIBRATE

import regcal


def test_predict_applies_a_saved_calibrator(run):
    """What is kept in a file gives what was written at once."""
    run.good(f"{CALIBRATE} --apply new.csv --output once.csv")
    answer = run.good("predict scale.regcal new.csv --output later.csv --json")

    assert (run.folder / "once.csv").read_bytes() == (run.folder / "later.csv").read_bytes()
    assert json.loads(answer.out)["rows"] == len(run.table("new.csv"))


def test_predict_applies_a_calibrator_that_python_saved(run):
    """A calibrator without column names takes them from the options."""
    past = run.table("held_out.csv")
    calibrator = regcal.get_calibrator("pit")
    calibrator.fit(regcal.Normal(past["mean"], past["std"]), past["strength"])
    regcal.save(calibrator, run.folder / "python.regcal")

    run.refused("predict python.regcal new.csv", "--mean and --std")
    run.good("predict python.regcal new.csv --mean mean --std std --output out.csv")

    dist = calibrator.transform(regcal.Normal(*run.table("new.csv")[["mean", "std"]].T.to_numpy()))
    assert_allclose(run.table("out.csv")["q50"], dist.median())


def test_one_row_can_be_predicted(run):
    """The shortest table works."""
    out = run.good("predict scale.regcal -", given=b"mean,std\n10,2\n").out

    assert out.startswith("mean,std,q05,q50,q95\n10,2,")
