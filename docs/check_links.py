"""Check that every link inside a built site leads somewhere: to a file, and to a place in it.

python docs/check_links.py docs/_build/html
"""

import sys
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

# Attributes that name another file.
_REFERENCES = {"a": "href", "link": "href", "img": "src", "script": "src", "iframe": "src"}


class _Page(HTMLParser):
    """Collects what a page refers to, and the places in it that can be referred to."""

    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []
        self.places = {"", "top"}

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note a link or a place."""
        found = dict(attrs)
        if found.get("id"):
            self.places.add(found["id"] or "")
        link = found.get(_REFERENCES.get(tag, ""))
        if link:
            self.links.append(link)


@cache
def _read(path: Path) -> _Page:
    page = _Page()
    page.feed(path.read_text(encoding="utf-8"))
    return page


def broken_links(folder: Path) -> list[str]:
    """Return a line per link that leads nowhere; other sites are not asked."""
    folder = folder.resolve()
    problems = []
    for path in sorted(folder.rglob("*.html")):
        for link in _read(path).links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            where = f"{path.relative_to(folder)}: {link}"
            if not target.is_file() or not target.is_relative_to(folder):
                problems.append(f"{where}: no such file")
            elif target.suffix == ".html" and unquote(parts.fragment) not in _read(target).places:
                problems.append(f"{where}: no such place")
    return problems


def main() -> int:
    """Print broken links; return 1 if there are any."""
    folder = Path(sys.argv[1])
    if not (folder / "index.html").is_file():
        print(f"{folder} holds no site. Build it first: make docs")
        return 1
    problems = broken_links(folder)
    for problem in problems:
        print(problem)
    print(f"{len(list(folder.rglob('*.html')))} pages, {len(problems)} broken links")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
