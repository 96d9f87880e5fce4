"""Tables between markers follow from rows."""

import re
from dataclasses import replace

import numpy as np
from studies import EXPERIMENTS, a_row, as_the_paper_says, made_up

from regcal.reproduce import Scores, claims, write_study
from regcal.reproduce.report import filled_in

SIZE = "<!-- begin size -->\n<!-- end size -->"


def test_a_part_of_a_study_can_be_summed_up(tmp_path):
    """A run that was stopped early, or one without some methods, has its tables too."""
    rows = made_up(as_the_paper_says)
    some = {cell: row for cell, row in rows.items() if cell.unit.base != "GPR"}
    some = {cell: row for cell, row in some.items() if cell.method != "gpc-zero"}
    files = write_study(some, tmp_path)

    assert claims(Scores(some)) == []
    assert "| airfoil, BRR |" in files[-1].read_text()
    assert "**Incomplete**: 10 of 15 folds" in filled_in(SIZE, Scores(some))
    assert "Incomplete" not in filled_in(SIZE, Scores(rows))


def test_tables_leave_the_prose(tmp_path):
    """Only what stands between markers is written anew."""
    page = tmp_path / "README.md"
    page.write_text("Mine.\n<!-- begin claims -->\nold\n<!-- end claims -->\nAlso mine.\n")
    files = write_study(made_up(as_the_paper_says), tmp_path)
    text = page.read_text()

    assert [path.name for path in files] == ["uci.csv.gz", "uci.png", "README.md"]
    assert text.startswith("Mine.\n<!-- begin claims -->\n|")
    assert text.endswith("\nAlso mine.\n")
    assert "old" not in text


def test_the_page_follows_from_the_stored_rows(stored):
    """Tables are those that the rows give, and figures stand nowhere else."""
    page = (EXPERIMENTS / "README.md").read_text(encoding="utf-8")
    prose = re.sub(r"<!-- begin (\w+) -->.*?<!-- end \1 -->", "", page, flags=re.DOTALL)

    assert filled_in(page, Scores(stored)) == page
    assert re.findall(r"-?\d+\.\d+", prose) == []


def test_the_outlook_is_compared_with_e_beta():
    """Gains, clear ones and times, of methods whose scores differ by what is known."""
    rows = {}
    for fold in range(5):
        unit, noise = f"airfoil/OLS/0/{fold}", 1e-3 * np.sin(fold)
        better = {"e-beta-thresholds": 0.25, "e-beta-dense": -0.5, "dirichlet": 0.0, "e-beta": 0.0}
        for method, gain in {**better, "gpc-zero": 0.0}.items():
            row = a_row(f"{unit}/{method}/16", gain + noise * (method != "e-beta"))
            rows[row.cell] = replace(row, seconds=2.0 if method == "dirichlet" else 0.5)
        row = a_row(f"{unit}/uncalibrated/0")
        rows[row.cell] = row
    page = "<!-- begin outlook -->\n<!-- end outlook -->"
    lines = filled_in(page, Scores(rows)).splitlines()

    assert lines[3] == "| e-beta, threshold code | +0.250 | 1 of 1 | 1 | 0 | 1.0 |"
    assert lines[4] == "| e-beta, dense code | -0.500 | 0 of 1 | 0 | 1 | 1.0 |"
    assert lines[5].endswith("| 4.0 |")


def test_studies_without_the_outlook_say_so():
    """Rows of the paper's methods alone have nothing to compare."""
    page = "<!-- begin outlook -->\n<!-- end outlook -->"

    assert "Not part of this run." in filled_in(page, Scores(made_up(as_the_paper_says)))


def test_choices_are_told_alone_and_in_averages():
    """An average counts for each of its parts."""
    chosen = ("gpc", "gpc", "pit + gpc", "pit + isotonic + gpc")
    rows = [replace(a_row(f"boston/OLS/0/{k}/auto/0"), chosen=x) for k, x in enumerate(chosen)]
    page = "<!-- begin choices -->\n<!-- end choices -->"
    lines = filled_in(page, Scores({row.cell: row for row in rows})).splitlines()

    assert lines[1] == "| folds: alone + in an average | gpc | pit | isotonic |"
    assert lines[3] == "| boston | 2 + 2 | 0 + 2 | 0 + 1 |"
