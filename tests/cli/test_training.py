"""Tables that no model can learn from."""

import pytest


def test_fit_refuses_features_it_cannot_use(run):
    """Numbers with a stray text, names of rows and missing values are not guessed at."""
    rows = [f"{k},n{k},{k % 7},{2 * k % 11}.5" for k in range(150)]
    run.write("t.csv", "\n".join(["x,name,z,y", *rows]) + "\n")
    fit = "fit t.csv --target y --calibrator scale --output m.regcal"

    run.refused(fit, "'name' holds 150 different texts", "--drop name")
    run.refused(fit + " --drop nam", "Did you mean 'name'?")
    run.refused(fit + " --features x,z --model boostig", "Did you mean 'boosting'?")
    run.refused(fit + " --features x --model nowhere:Model", "nowhere:Model")
    run.write("t.csv", "\n".join(["x,z,y", *(f"{k},{k % 7},{k % 5}" for k in range(40)), "x,1,2"]))
    run.refused(fit, "column 'x' must hold numbers", "row 41 holds 'x'")
    run.write("t.csv", "\n".join(["x,z,y", *(f"{k},{k % 7},{k % 5}" for k in range(40)), ",1,2"]))
    run.refused(fit, "column 'x' is missing in row 41", "--skip-missing")
    run.good(fit + " --model boosting")


@pytest.mark.parametrize(
    ("rows", "part"),
    [
        (["1,2"], "t.csv cannot be fitted"),
        ([f"{k},3" for k in range(30)], "t.csv cannot be fitted"),
    ],
    ids=["one row", "constant target"],
)
def test_fit_refuses_what_cannot_be_learnt(run, rows, part):
    """One row, or a target that never changes, is told."""
    run.write("t.csv", "\n".join(["x,y", *rows]) + "\n")

    run.refused("fit t.csv --target y --model ols --output m.regcal", part)
