"""Model files that are trusted, and others."""


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
    assert "needs --trust: own_model.Own" in run.good("info own.regcal").out


def test_trusted_models_are_used(run):
    """A class of one's own is loaded when it is named."""
    (run.folder / "trusted_model.py").write_text(
        "from sklearn.linear_model import BayesianRidge\nclass Own(BayesianRidge):\n    pass\n"
    )
    run.good("fit concrete.csv --target compressive_strength --model trusted_model:Own "
             "--calibrator scale --output own.regcal")  # fmt: skip

    run.good("predict own.regcal concrete.csv --trust trusted_model.Own --output out.csv")
