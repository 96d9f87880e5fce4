"""Columns that hold predictions: quantiles, draws, and options that do not fit."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from shell import SMALL


def test_quantile_columns_tell_their_levels(run):
    """Names, a pattern and explicit levels are the same, and crossing ones are sorted."""
    run.write("q.csv", "y,q05,q50,q95\n1,0,1,3\n2,1,2,4\n5,4,3,9\n0,-1,1,2\n")
    learn = "calibrate q.csv --target y --calibrator identity --levels 0.05,0.5,0.95 --apply q.csv"
    answers = [
        run.good(f"{learn} --quantiles '{option}'")
        for option in ("q05,q50,q95", "q*", "q95=0.95,q05=0.05,q50=0.5", "q")
    ]

    assert len({answer.out for answer in answers}) == 1
    assert "1 row(s) have crossing quantiles, the first is row 3" in answers[0].err
    rows = [line.split(",")[-3:] for line in answers[0].out.splitlines()[1:]]
    expected = [[0, 1, 3], [1, 2, 4], [3, 4, 9], [-1, 1, 2]]
    assert_allclose(np.array(rows, float), expected)
    assert answers[0].out.startswith("y,q05,q50,q95,calibrated_q05,calibrated_q50,calibrated_q95\n")


def test_samples_are_named_by_their_common_start(run):
    """Draws may be in any number of columns."""
    draws = np.random.default_rng(0).normal(5.0, 1.0, (20, 30))
    table = pd.DataFrame(draws, columns=[f"draw_{k}" for k in range(30)]).assign(y=draws[:, 0])
    table.to_csv(run.folder / "s.csv", index=False)
    learn = "calibrate s.csv --target y --calibrator identity --apply s.csv --keep y --moments"

    run.good(f"{learn} --samples draw_ --output a.csv")
    run.good(f"{learn} --samples 'draw*' --output b.csv")

    assert (run.folder / "a.csv").read_bytes() == (run.folder / "b.csv").read_bytes()
    assert_allclose(run.table("a.csv")["mean"], draws.mean(axis=1))


@pytest.mark.parametrize(
    ("options", "parts"),
    [
        ("--mean mu", ("--mean and --std belong together",)),
        ("", ("one of --mean and --std, --quantiles, or --samples",)),
        ("--mean mu --std sigma --samples mu", ("one of --mean and --std",)),
        ("--mean mu --std sigma --quantiles 0.1,0.9", ("use --levels",)),
        ("--quantiles mu,sigma", ("'mu' does not tell a level", "mu=0.05")),
        ("--quantiles mu=0.01,sigma=0.05", ("levels 0.01, 0.05", "one side of the median")),
        ("--samples mu", ("at least two draws",)),
        ("--mean y --std sigma", ("'y' is named both as outcome and as prediction",)),
        ("--samples y,mu,sigma", ("'y' is named both as outcome and as prediction",)),
        ("--mean mu --std sigma --calibrator gcp", ("no calibrator 'gcp'", "gpc")),
        ("--mean mu --std sigma --interval 90", ("--interval", "Write 90 % as 0.9")),
        ("--mean mu --std sigma --below many", ("--below takes numbers", "many")),
        ("--mean mu --std sigma --output out.csv", ("--apply",)),
        ("--mean mu --std sigma --apply t.csv --output out.xlsx", (".csv or .parquet",)),
        ("--mean mu --std sigma --apply t.csv --json", ("Pass --output FILE",)),
    ],
)
def test_options_that_do_not_fit_are_refused(run, options, parts):
    """The message names the option and the way out."""
    run.write("t.csv", SMALL)

    run.refused(f"calibrate t.csv --target y {options}", *parts)


@pytest.mark.parametrize(
    ("learnt", "named", "header", "parts"),
    [
        (
            "q10,q50,q90",
            "--mean q10 --std q90",
            "region,centre,spread",
            ("no column 'q10'", "--mean NAME --std NAME"),
        ),
        (
            "prediction,middle,spread",
            "--mean prediction --std spread",
            "region,pred,sigma",
            ("no column 'prediction'", "--mean pred --std NAME. It has: 'region', 'pred', 'sigma'"),
        ),
        (
            "q10,q50,q90",
            "--quantiles q10,q50,q90",
            "q10,q50_new,top",
            ("no column 'q50'", "--quantile-columns q10=0.1,q50_new=0.5,NAME=0.9"),
        ),
        ("a1,a2,a3", "--samples a1,a2,a3", "b1,b2,b3", ("no column 'a1'", "--samples")),
    ],
    ids=["no like name", "mean", "quantiles", "samples"],
)
def test_columns_that_were_renamed(run, learnt, named, header, parts):
    """A model that does not find its predictions tells the options that name them."""
    run.write("old.csv", f"{learnt},y\n1,2,3,1\n2,3,4,5\n3,4,5,2\n2,3,5,4\n")
    run.write("renamed.csv", f"{header}\n1,2,3\n2,3,4\n")
    run.good(f"calibrate old.csv --target y {named} --calibrator scale --save m.regcal")

    run.refused("predict m.regcal renamed.csv", *parts)
