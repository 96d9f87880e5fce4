"""What the README has to begin with; its code runs with the other pages, in `test_docs`."""

import re
from pathlib import Path

README = Path(__file__).parents[1] / "README.md"


def test_commands_and_picture_come_first():
    """The commands that need nothing else, and the picture, stand before all further headings."""
    start = README.read_text(encoding="utf-8").split("\n## ")[0]
    picture = README.parent / re.findall(r"!\[[^]]+\]\((\S+)\)", start)[0]

    assert "make demo" in start
    assert "make test" in start
    assert picture.stat().st_size < 200_000


def test_first_example_is_short():
    """A model is calibrated and asked in a few lines."""
    block = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.S)[0]
    after_imports = [
        line for line in block.splitlines() if line and not re.match(r"(from|import) ", line)
    ]

    assert len(after_imports) <= 8
    assert "predict_above" in block
    assert "predict_dist" in block
