"""The demonstration writes what it says, and what it says is true."""

import re

import numpy as np
import pytest

import regcal
from regcal.demo import _predictions, run_demo


@pytest.fixture(scope="module")
def shown(tmp_path_factory):
    """Return what was printed, and the page."""
    folder = tmp_path_factory.mktemp("demo") / "new" / "folder"
    said = run_demo(folder)
    return said, folder / "report.html"


def test_demo_writes_the_report_and_says_where(shown):
    """`make demo` ends with a page to open."""
    said, page = shown

    assert str(page) in said
    assert "Concrete strength" in page.read_text(encoding="utf-8")


def test_demo_and_its_report_agree(shown):
    """The model is not calibrated, what it ends with is, on the page as in the table."""
    said, page = shown
    text = page.read_text(encoding="utf-8")
    verdicts = dict(re.findall(r"^([\w-]+) .* (yes|no)$", said, re.MULTILINE))

    assert verdicts["identity"] == "no" and verdicts["gp-density"] == "yes"
    assert "“after” is calibrated, as far as 309 rows can tell; “before” is not" in text


def test_demo_counts_rows_as_they_are(shown):
    """The first range of answers, counted by hand."""
    _, _, (model, y) = _predictions()
    rows = 1.0 - model.cdf(30.0) < 0.2
    n_rows, _, _, happened = re.search(
        r"0 to 20 % +(\d+) +(\d+) % +(\d+) % +(\d+) %", shown[0]
    ).groups()

    assert isinstance(model, regcal.Normal)
    assert int(n_rows) == rows.sum()
    assert int(happened) == round(100 * np.mean(y[rows] > 30.0))
