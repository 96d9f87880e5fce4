"""`regcal demo` shows what changed."""


def test_demo_shows_what_changed(run):
    """The demonstration runs from the command line, too."""
    assert "it happened" in run.good("demo").out
