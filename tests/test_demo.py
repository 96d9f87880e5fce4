"""The demonstration writes what it says."""

from regcal.demo import run_demo


def test_demo_writes_the_report_and_says_where(tmp_path):
    """`make demo` ends with a page to open."""
    said = run_demo(tmp_path / "new" / "folder")

    assert str(tmp_path / "new" / "folder" / "report.html") in said
    assert "Concrete strength" in (tmp_path / "new/folder/report.html").read_text(encoding="utf-8")
