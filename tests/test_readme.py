"""The README's code runs as it stands."""

import re
from pathlib import Path

README = Path(__file__).parents[1] / "README.md"


def test_code_blocks_run_in_order(tmp_path, monkeypatch, capsys):
    """A reader who types the README's code from top to bottom gets no error."""
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.S)
    names: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, str(README), "exec"), names)

    assert len(blocks) == 3
    assert "log score" in capsys.readouterr().out
    assert (tmp_path / "report.html").stat().st_size > 100_000


def test_both_commands_come_first():
    """The two commands that need nothing else stand before all headings but the title."""
    start = README.read_text(encoding="utf-8").split("\n## ")[0]

    assert "make demo" in start
    assert "make test" in start
