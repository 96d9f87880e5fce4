"""`regcal report` writes a page."""


def test_report_writes_a_page(run):
    """The page compares predictions before and after."""
    run.good("report new.csv --model scale.regcal --title Betong --output page.html")

    assert "Betong" in (run.folder / "page.html").read_text(encoding="utf-8")
