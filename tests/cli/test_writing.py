"""Output is written whole or not at all."""


def test_output_that_cannot_be_written_is_refused(run):
    """A folder, or a place that does not exist, is told before anything is computed."""
    (run.folder / "taken.csv").mkdir()

    run.refused("predict scale.regcal new.csv --output taken.csv", "taken.csv", "name a file")
    run.refused("predict scale.regcal new.csv --output no/where.csv", "no/where.csv")
    run.refused("fit concrete.csv --target age --output no/model.regcal", "no/model.regcal")


def test_failure_keeps_the_old_output(run):
    """An existing file is replaced only by a complete one."""
    run.write("out.csv", "precious")
    run.write("t.csv", "mean,std\n1,2\n1,-2\n")

    run.refused("predict scale.regcal t.csv --output out.csv", "must be positive")

    assert (run.folder / "out.csv").read_text() == "precious"


def test_output_may_replace_its_input(run):
    """A table can be extended in place."""
    run.write("t.csv", "mean,std\n1,2\n")

    run.good("predict scale.regcal t.csv --levels 0.5 --output t.csv")

    assert (run.folder / "t.csv").read_text() == "mean,std,q50\n1,2,1\n"
