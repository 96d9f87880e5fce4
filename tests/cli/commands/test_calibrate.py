"""`regcal calibrate` writes what the library computes."""

import json

import pandas as pd
from numpy.testing import assert_allclose
from shell import CALIBRATE, PREDICTIONS, SMALL

import regcal
from regcal.cli._held_out import hold_out


def test_calibrate_writes_what_the_library_computes(run):
    """Columns are passed on as they are, and the new ones are those of the Python API."""
    run.good(
        f"{CALIBRATE} --apply new.csv --levels 0.05,0.975 --interval 0.8 --below 40 --above 40,-1.5"
        " --moments --output out.csv"
    )
    past, new, out = (run.table(name) for name in ("held_out.csv", "new.csv", "out.csv"))
    calibrator = regcal.get_calibrator("scale")
    calibrator.fit(regcal.Normal(past["mean"], past["std"]), past["strength"])
    dist = calibrator.transform(regcal.Normal(new["mean"], new["std"]))

    pd.testing.assert_frame_equal(out[list(new)], new)
    expected = {
        "q05": dist.ppf(0.05),
        "q97.5": dist.ppf(0.975),
        "lower_80": dist.interval(0.8)[0],
        "upper_80": dist.interval(0.8)[1],
        "below_40": dist.cdf(40.0),
        "above_40": dist.sf(40.0),
        "above_-1.5": dist.sf(-1.5),
        "calibrated_mean": dist.mean(),
        "calibrated_std": dist.std(),
    }
    assert list(out) == [*new, *expected]
    for name, values in expected.items():
        assert_allclose(out[name], values, rtol=1e-12, err_msg=name)


def test_calibrate_judges_the_method_that_it_keeps(run):
    """A choice among fewer rows would often be another: here, to change nothing."""
    told = json.loads(run.good(f"calibrate held_out.csv {PREDICTIONS} --save m --json").out)
    past = run.table("held_out.csv")
    dist, y = regcal.Normal(past["mean"], past["std"]), past["strength"].to_numpy()
    auto = regcal.get_calibrator("auto").fit(dist, y)
    judged = hold_out(len(y))
    weights = [(score.name, score.weight) for score in auto.scores_ if score.chosen]
    parts = [
        regcal.get_calibrator(name, **({"thresholds": int(number)} if number else {}))
        .fit(dist[~judged], y[~judged])
        .transform(dist[judged])
        for name, _, number in (name.partition(" ") for name, _ in weights)
    ]
    after = regcal.Mixture(parts, [weight for _, weight in weights])

    assert told["calibrator"] == auto.chosen_ != "identity"
    scores = {score["name"]: score for score in told["scores"]}
    for name, metric in {"log score": regcal.log_score, "CRPS": regcal.crps}.items():
        assert_allclose(scores[name]["before"], metric(y[judged], dist[judged]).mean())
        assert_allclose(scores[name]["after"], metric(y[judged], after).mean(), rtol=1e-5)
    assert regcal.file_info(run.folder / "m")["scores"] == told["scores"]


def test_calibrate_tells_what_to_expect_of_few_rows(run):
    """Four rows cannot tell whether 90 % intervals hold half or all outcomes."""
    run.write("t.csv", SMALL)

    told = run.good("calibrate t.csv --target y --mean mu --std sigma --calibrator scale").err

    assert "4, few: what 90 % intervals hold is known to ± 30 % only" in told
