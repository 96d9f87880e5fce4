"""What was seen of outcomes and through what, from options: as the Python API has it."""

import json
import warnings

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

import regcal
from regcal.calibrators import Support

NOT_BARE = {"bare_low": False, "bare_high": False}
PREDICTED = "--mean mu --std sigma --calibrator pit"
SURVIVAL = "--target days --censored alive"


def survival_table(n=120):
    """Return times of which a third are only known to be at least what is written down."""
    rng = np.random.default_rng(0)
    mean = rng.uniform(1.0, 4.0, n)
    time, end = rng.exponential(mean), rng.exponential(6.0, n)
    alive = end < time
    days = np.minimum(time, end)
    table = {"mu": mean, "sigma": 1.0, "days": days, "alive": alive, "from": days}
    return pd.DataFrame(table | {"to": np.where(alive, np.nan, days)})


def rain_table(n=120):
    """Return amounts of rain, many of which are 0, and the best of predictions that are too low."""
    rng = np.random.default_rng(0)
    mean = rng.uniform(0.0, 4.0, n)
    mm = np.maximum(mean + 2.0 * rng.normal(size=n) - 1.0, 0.0).round(3)
    return pd.DataFrame({"mu": mean, "sigma": 1.0, "mm": mm})


@pytest.fixture
def tables(run):
    """Write tables with outcomes that are not numbers alone."""
    survival_table().to_csv(run.folder / "s.csv", index=False)
    survival_table().to_parquet(run.folder / "s.parquet", index=False)
    rain_table().to_csv(run.folder / "rain.csv", index=False)
    return run


def fitted_in_python(y, table, **parameters):
    """Return predictions and a calibrator of the Python API, whether or not its support suits."""
    dist = regcal.Normal(table["mu"], table["sigma"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", regcal.DisagreementWarning)
        return dist, regcal.get_calibrator("pit", **parameters).fit(dist, y)


def in_python(y, table, **parameters):
    """Return the calibrated probabilities of the Python API."""
    dist, calibrator = fitted_in_python(y, table, **parameters)
    return calibrator.transform(dist)


@pytest.mark.parametrize(
    "line", [f"s.csv {SURVIVAL}", f"s.parquet {SURVIVAL}", "s.csv --lower from --upper to"]
)
def test_censored_rows_teach_what_they_teach_in_python(tables, line):
    """Truth values as texts and as such, and ends that are empty, are the same outcomes."""
    table = survival_table()
    seen = regcal.Outcomes.right_censored(table["days"], observed=~table["alive"])

    tables.good(
        f"calibrate {line} {PREDICTED} --support 0, --apply s.csv --below 0,2,5 --output out.csv"
    )

    out, dist = tables.table("out.csv"), in_python(seen, table, support=(0, None))
    assert_allclose(out[["below_0", "below_2", "below_5"]], dist.cdf([[0.0, 2.0, 5.0]]))
    as_if_known = in_python(table["days"], table, support=(0, None))
    assert np.abs(dist.cdf(2.0) - as_if_known.cdf(2.0)).mean() > 0.03


def test_truth_values_may_be_written_in_many_ways(tables):
    """True and 1, in any letters, are the same; so are False and 0."""
    table = survival_table()
    learn = f"calibrate t.csv {SURVIVAL} {PREDICTED} --json"
    answers = []
    for true, false in (("TRUE", "FALSE"), ("1", "0"), ("1.0", "0.0"), (" true ", "false")):
        table.assign(alive=np.where(table["alive"], true, false)).to_csv(
            tables.folder / "t.csv", index=False
        )
        answers.append(tables.good(learn).out)

    assert len(set(answers)) == 1
    assert answers[0] == tables.good(learn.replace("t.csv", "s.csv")).out


def test_ends_that_were_found_are_told(tables):
    """People read a sentence, programs get numbers, and the model file keeps both."""
    table = rain_table()
    learn = f"calibrate rain.csv --target mm {PREDICTED}"

    told = tables.good(f"{learn} --save m.regcal --apply rain.csv --below 0 --output out.csv").err
    answer = json.loads(tables.good(f"{learn} --json").out)

    assert "Outcomes: values at or below 0 are seen at 0. If not, pass --support none." in told
    assert answer["support"] == {"low": 0.0, "high": None, "step": 0.0, "smooth": False} | NOT_BARE
    dist = in_python(table["mm"], table)
    assert_allclose(tables.table("out.csv")["below_0"], dist.mass(0.0))
    assert np.mean(dist.mass(0.0)) > 0.2
    assert "support       values at or below 0 are seen at 0" in tables.good("info m.regcal").out
    known = json.loads(tables.good("info m.regcal --json").out)
    assert known["training"]["support"] == "values at or below 0 are seen at 0"
    assert "seen at 0" not in tables.good(f"{learn} --support none").err


@pytest.mark.parametrize(
    ("options", "parameters"),
    [
        ("", {}),
        ("--support auto", {}),
        ("--support none", {"support": None}),
        ("--support 0,", {"support": (0, None)}),
        ("--support ,20", {"support": (None, 20)}),
        ("--support -1.5,20", {"support": (-1.5, 20)}),
        ("--support 0, --step 0.001", {"support": (0, None), "step": 0.001}),
        ("--step auto", {"step": "auto"}),
    ],
)
def test_ends_and_steps_are_those_of_the_library(tables, options, parameters):
    """What is typed is what a calibrator is given."""
    table = rain_table()

    line = f"calibrate rain.csv --target mm {PREDICTED} {options}"
    answer = json.loads(tables.good(f"{line} --apply rain.csv --below 1 -o out.csv --json").out)

    dist, calibrator = fitted_in_python(table["mm"], table, **parameters)
    found = vars(calibrator.support_).items()
    assert answer["support"] == {name: None if np.isinf(end) else end for name, end in found}
    assert_allclose(tables.table("out.csv")["below_1"], calibrator.transform(dist).cdf(1.0))


def test_scores_before_and_after_are_of_one_kind(tables):
    """Probabilities of no rain are compared with such, not with densities."""
    table = rain_table()
    rows = np.random.default_rng(0).permutation(len(table)) % 5 == 0
    dist, y = regcal.Normal(table["mu"], table["sigma"]), table["mm"].to_numpy()

    answer = json.loads(tables.good(f"calibrate rain.csv --target mm {PREDICTED} --json").out)

    before = regcal.log_score(y[rows], regcal.Clipped(dist[rows], low=0.0)).mean()
    learnt = regcal.PITCalibrator().fit(dist[~rows], y[~rows])
    after = regcal.log_score(y[rows], learnt.transform(dist[rows])).mean()
    assert answer["scores"][0]["before"] == pytest.approx(before)
    assert answer["scores"][0]["after"] == pytest.approx(after)


def test_models_are_fitted_on_what_was_seen(tables):
    """Columns of outcomes are no features, and the model is that of the library."""
    from sklearn.linear_model import BayesianRidge
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    table = survival_table()
    seen = regcal.Outcomes.right_censored(table["days"], observed=~table["alive"])
    fit = "fit s.csv --calibrator pit --support 0, --output m.regcal --json"

    told = json.loads(tables.good(f"{fit} {SURVIVAL} --drop from,to,sigma").out)
    tables.good("predict m.regcal s.csv --above 2 --output out.csv")

    assert told["features"] == ["mu"]
    assert told["support"] == {
        "low": 0.0,
        "high": None,
        "step": 0.0,
        "smooth": False,
    } | NOT_BARE | {"bare_low": True}
    assert [score["name"] for score in told["scores"]] == ["log score"]
    base = make_pipeline(StandardScaler(), BayesianRidge())
    model = regcal.CalibratedRegressorCV(base, "pit", support=(0, None)).fit(table[["mu"]], seen)
    assert_allclose(tables.table("out.csv")["above_2"], model.predict_above(table[["mu"]], 2.0))
    ends = json.loads(tables.good(f"{fit} --lower from --upper to --drop days,alive,sigma").out)
    assert ends["features"] == ["mu"]
    assert ends["scores"] == told["scores"]


def test_ends_are_told_after_a_fit(tables):
    """The sentence is that of calibrate."""
    answer = tables.good("fit rain.csv --target mm --calibrator scale --step auto -o m.regcal")

    assert "values at or below 0 are seen at 0" in answer.err


def test_predictions_are_judged_through_ends_that_are_asked_for(tables):
    """As they are by default; with a support, what lies beyond counts at its end."""
    table = rain_table()
    dist, line = regcal.Normal(table["mu"], table["sigma"]), "evaluate rain.csv --target mm"

    def score(options):
        told = json.loads(tables.good(f"{line} --mean mu --std sigma --json {options}").out)
        return told["metrics"]["log score"]["values"]["predictions"], told["support"]["low"]

    clipped = regcal.log_score(table["mm"], regcal.Clipped(dist, low=0.0)).mean()
    assert score("") == (pytest.approx(regcal.log_score(table["mm"], dist).mean()), None)
    for options in ("--support 0,", "--support auto"):
        assert score(options) == (pytest.approx(clipped), 0.0)
    told = tables.good(f"{line} --mean mu --std sigma --support auto").out
    assert "Outcomes: values at or below 0 are seen at 0." in told


def test_a_model_file_is_judged_through_its_own_ends(tables):
    """Before and after calibration alike, and the page is written."""
    table = rain_table()
    tables.good(f"calibrate rain.csv --target mm {PREDICTED} --save m.regcal")

    told = json.loads(tables.good("evaluate rain.csv --model m.regcal --json").out)

    dist = regcal.Clipped(regcal.Normal(table["mu"], table["sigma"]), low=0.0)
    before = told["metrics"]["log score"]["values"]["before"]
    assert before == pytest.approx(regcal.log_score(table["mm"], dist).mean())
    assert told["support"] == {"low": 0.0, "high": None, "step": 0.0, "smooth": False} | NOT_BARE
    page = tables.good("report rain.csv --model m.regcal --output page.html")
    assert "values at or below 0 are seen at 0" in page.err
    tables.refused("evaluate rain.csv --model m.regcal --support 0,", "Leave out --support")


# ------------------------------------------------------------------------------------------ errors


@pytest.mark.parametrize(
    ("options", "parts"),
    [
        ("", ("--target y", "--lower a --upper b")),
        ("--target dayz", ("--target: s.csv has no column 'dayz'", "Did you mean 'days'?")),
        ("--target days --censored aliv", ("--censored: s.csv has no column", "'alive'")),
        ("--lower from --upper too", ("--upper: s.csv has no column 'too'", "'to'")),
        ("--censored alive", ("--censored", "--target y")),
        ("--lower from", ("--lower and --upper belong together",)),
        ("--lower from --upper to --target days", ("Leave out --target",)),
        ("--target days --censored mu", ("'mu' (--censored) must hold True or 1", "row 1")),
        ("--lower to --upper mu", ("'to' is", "exceed", "'mu'", "swap --lower and --upper")),
        (
            "--target days --support 1,",
            ("'days' is", "--support goes from 1 to inf", "leave out that option"),
        ),
        ("--target days --support ,2", ("'days' is", "--support goes from -inf to 2")),
        (
            "--target days --step 1",
            ("'days' is", "--step says multiples of 1", "leave out that option"),
        ),
        ("--target days --support 0", ("--support takes auto, none, or two ends", "'0'")),
        ("--target days --support ,", ("--support takes auto, none",)),
        ("--target days --support low,", ("--support takes numbers", "low")),
        ("--target days --support 2,1", ("--support 2,1", "low must be smaller than high")),
        ("--target days --step 0", ("--step takes auto or a positive number",)),
        ("--target days --step one", ("--step takes numbers", "one")),
    ],
)
@pytest.mark.parametrize(
    "command", ["calibrate s.csv --mean mu --std sigma", "fit s.csv --features mu,sigma -o m"]
)
def test_options_that_do_not_fit_are_refused(tables, command, options, parts):
    """The message names the option that was typed and the way out."""
    tables.refused(f"{command} --calibrator scale {options}", *parts)


@pytest.mark.parametrize(
    ("row", "options", "parts"),
    [
        ("-3,0,1,2", SURVIVAL, ("'days' is -3 in row 4", "--censored", "begin at 0", "--lower")),
        ("3,maybe,1,2", SURVIVAL, ("(--censored)", "True or 1", "row 4 holds 'maybe'")),
        ("3,2,1,2", SURVIVAL, ("(--censored)", "row 4 holds '2'")),
        ("3,,1,2", SURVIVAL, ("'alive' is missing in row 4", "--skip-missing")),
        (",1,1,2", SURVIVAL, ("'days' is missing in row 4", "--skip-missing")),
        ("3,1,5,2", "--lower from --upper to", ("'from' is 5 in row 4", "in column 'to'")),
        ("3,1,,", "--lower from --upper to", ("'from' is missing, and so is column 'to', in row")),
    ],
)
def test_rows_that_are_no_outcomes_are_refused(run, row, options, parts):
    """The message names the row, the value and the option."""
    good = ["1,1,2,0,2,", "2,1,3,0,3,3", "1,2,2,1,0,1"]
    run.write("t.csv", "\n".join(["mu,sigma,days,alive,from,to", *good, f"1,1,{row}"]) + "\n")
    line = f"calibrate t.csv {options} --mean mu --std sigma --calibrator scale --json"

    run.refused(line, *((parts,) if isinstance(parts, str) else parts))
    if "missing" in "".join(parts):
        assert json.loads(run.good(f"{line} --skip-missing").out)["rows"] == 3


def test_each_part_that_was_found_has_a_way_out(run):
    """Ends by --support, steps by --step; what was given has none."""
    rng = np.random.default_rng(0)
    counts = rng.poisson(1.0, 120)
    pd.DataFrame({"mu": 1.0, "sigma": 1.0, "n": counts, "m": counts - 20}).to_csv(
        run.folder / "n.csv", index=False
    )
    line = "calibrate n.csv --mean mu --std sigma --calibrator scale --target"

    both = run.good(f"{line} n --step auto").err
    assert "multiples of 1. If not, pass --support none, or leave out --step." in both
    only_step = run.good(f"{line} m --support none --step auto").err
    assert "Outcomes: multiples of 1. If not, leave out --step." in only_step
    assert "leave out --step" not in run.good(f"{line} n --step 1").err
    smooth = run.good(f"{line} n").err
    assert "rounded to multiples of 1." in smooth and "pass --step 1." in smooth
    assert "simplefilter" not in smooth


def test_the_words_of_a_support_are_short():
    """What the notes quote says nothing of the whole line."""
    assert Support().described() == ""
    assert Support(low=0.0, high=50.0).described().count("seen at") == 2
