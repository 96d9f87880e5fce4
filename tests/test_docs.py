"""Every code block of the README and of the documentation runs, and every figure is measured."""

import doctest
import importlib
import importlib.util
import inspect
import re
import shlex
import subprocess
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest
from shell import Answer, run_regcal

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
README = ROOT / "README.md"
PAGES = sorted([README, *DOCS.glob("*.md"), *DOCS.glob("api/*.md")])
SECTIONED = DOCS / "coming_from.md"
FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


@dataclass(frozen=True)
class Block:
    """A code block: its language, its text, and the line it begins at."""

    language: str
    text: str
    line: int


def blocks_of(text: str) -> list[Block]:
    """Return the code blocks of a page that can be run."""
    found = re.finditer(r"^```(python|pycon|console)\n(.*?)^```", text, re.S | re.M)
    return [Block(m[1], m[2], text[: m.start()].count("\n") + 2) for m in found]


def run_python(block: Block, page: Path, names: dict) -> None:
    code = "\n" * (block.line - 1) + block.text  # errors name the page's own lines
    exec(compile(code, str(page), "exec"), names)


def run_doctest(block: Block, page: Path, names: dict) -> None:
    test = doctest.DocTestParser().get_doctest(block.text, names, page.name, str(page), block.line)
    runner = doctest.DebugRunner(optionflags=FLAGS)
    runner.run(test, clear_globs=False)
    names.update(test.globs)


def run_console(block: Block, page: Path, names: dict) -> None:
    """Run each command after a `$`; lines below it are what it prints, if there are any."""
    for part in re.split(r"^\$ ", block.text, flags=re.M)[1:]:
        command, _, expected = part.replace("\\\n", " ").partition("\n")
        program, *arguments = shlex.split(command, comments=True)
        run = run_regcal if program == "regcal" else partial(run_program, program)
        answer = run(arguments, Path.cwd())
        assert answer.code == 0, f"{page.name}: {command}\n{answer.err}"
        if expected.strip():
            same = doctest.OutputChecker().check_output(expected, answer.out, FLAGS)
            assert same, f"{page.name}: {command}\n{answer.out}"


def run_program(program: str, arguments: list[str], folder: Path) -> Answer:
    line = [program, *arguments]
    done = subprocess.run(line, cwd=folder, capture_output=True, text=True, check=False)
    return Answer(done.returncode, done.stdout, done.stderr)


RUN = {"python": run_python, "pycon": run_doctest, "console": run_console}


def run_blocks(blocks: list[Block], page: Path) -> dict:
    names: dict = {"__name__": page.stem}
    for block in blocks:
        RUN[block.language](block, page, names)
    return names


@pytest.fixture
def empty_folder(tmp_path, monkeypatch):
    """Run in a folder of its own, and draw without a screen."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "agg")
    return tmp_path


def runnable(pages: list[Path]) -> list[Path]:
    return [page for page in pages if page != SECTIONED and blocks_of(page.read_text("utf-8"))]


@pytest.mark.parametrize("page", runnable(PAGES), ids=lambda page: page.stem)
def test_code_blocks_run_in_order(page, empty_folder, few_trees):
    """A reader who types a page's code from top to bottom gets no error."""
    run_blocks(blocks_of(page.read_text(encoding="utf-8")), page)


def sections_of(text: str) -> dict[str, list[Block]]:
    """Return the blocks under each heading of the second level, and those before it as ``""``."""
    blocks = blocks_of(text)
    starts = [
        (text[: m.start()].count("\n") + 1, m[1]) for m in re.finditer(r"^## (.*)", text, re.M)
    ]
    sections: dict[str, list[Block]] = {"": []} | {title: [] for _, title in starts}
    for block in blocks:
        titles = [title for line, title in starts if line < block.line]
        sections[titles[-1] if titles else ""].append(block)
    return sections


OTHERS = {
    "netcal": "netcal",
    "uncertainty-toolbox": "uncertainty_toolbox",
    "crepes": "crepes",
    "MAPIE": "mapie",
    "calpit": "calpit",
    "scikit-learn's CalibratedClassifierCV": "sklearn",
}


def test_other_packages_have_a_section_each():
    """No section of the page is left out below."""
    titles = set(sections_of(SECTIONED.read_text(encoding="utf-8")))

    assert titles - {""} == set(OTHERS)


@pytest.mark.filterwarnings("default")  # what other packages warn of is theirs
@pytest.mark.parametrize("title", OTHERS)
def test_snippets_of_other_packages_run(title, empty_folder):
    """The same task runs in the other package and in regcal."""
    if importlib.util.find_spec(OTHERS[title]) is None:
        pytest.skip(f"{OTHERS[title]} is not installed: pip install {title} to run its snippet")
    sections = sections_of(SECTIONED.read_text(encoding="utf-8"))

    assert len(sections[title]) == 2
    run_blocks(sections[""] + sections[title], SECTIONED)


def test_blocks_are_found_with_their_lines():
    """The collector itself: languages, lines, and blocks that are not code."""
    text = "# A\n\n```python\nx = 1\n```\n\n```\nmake\n```\n\n```console\n$ ls\n```\n"

    assert blocks_of(text) == [Block("python", "x = 1\n", 4), Block("console", "$ ls\n", 12)]


def test_broken_blocks_fail(tmp_path):
    """The runner itself: each kind of block can fail."""
    page = tmp_path / "page.md"
    with pytest.raises(ZeroDivisionError):
        run_blocks([Block("python", "1 / 0\n", 1)], page)
    with pytest.raises(doctest.DocTestFailure):
        run_blocks([Block("pycon", ">>> 1 + 1\n3\n", 1)], page)
    with pytest.raises(AssertionError):
        run_blocks([Block("console", "$ false\n", 1)], page)
    with pytest.raises(AssertionError, match="nonsense"):
        run_blocks([Block("console", "$ regcal nonsense\n", 1)], page)
    with pytest.raises(AssertionError, match=r"regcal \d"):
        run_blocks([Block("console", "$ regcal --version\nregcal none\n", 1)], page)
    with pytest.raises(AssertionError):
        run_blocks([Block("console", "$ echo a\nb\n", 1)], page)


# API reference

PUBLIC = (
    "regcal",
    "regcal.metrics",
    "regcal.plots",
    "regcal.online",
    "regcal.datasets",
    "regcal.gp",
)


def public_names() -> list[tuple[str, str]]:
    """Return module and name of everything public, each object once."""
    seen, names = set(), []
    for module in PUBLIC:
        for name in importlib.import_module(module).__all__:
            value = getattr(importlib.import_module(module), name)
            is_part = inspect.isclass(value) or inspect.isfunction(value)
            if not is_part or value in seen:
                continue
            seen.add(value)
            names.append((module, name))
    return names


@pytest.mark.parametrize(("module", "name"), public_names())
def test_public_names_have_an_example_and_a_place(module, name):
    """Everything public stands in the reference, with an example that the doctests run."""
    pages = "".join(page.read_text(encoding="utf-8") for page in (DOCS / "api").glob("*.md"))
    part = re.findall(rf"currentmodule:: {re.escape(module)}\n(.*?)```", pages, re.S)
    documentation = inspect.getdoc(getattr(importlib.import_module(module), name)) or ""

    assert re.search(rf"^   {name}$", "".join(part), re.M)
    assert ">>> " in documentation


# Tables


def load_script(name: str):
    spec = importlib.util.spec_from_file_location(name, DOCS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_tables_are_those_of_the_stored_results():
    """Pages show what was measured; `python docs/tables.py` writes them anew."""
    tables = load_script("tables")
    blocks = tables.tables()
    pages = {name: (ROOT / name).read_text(encoding="utf-8") for name in tables.PAGES}
    shown = re.findall(r"<!-- begin (\w+) -->", "".join(pages.values()))

    assert sorted(shown) == sorted(blocks)
    assert {name: tables.filled(text, blocks) for name, text in pages.items()} == pages


def test_advice_on_few_rows_is_what_was_measured():
    """What `docs/small_sets.md` concludes holds in the stored results."""
    tables = load_script("tables")
    defects = tables.Defects(ROOT / "benchmarks" / "defects.csv")

    def gains(rows, method):
        return [defects.gain(name, rows, method) for name in defects.names]

    fewest = defects.rows[0]
    best = max(tables.METHODS, key=lambda method: sum(gains(fewest, method)))
    changing = [method for method in tables.METHODS if method != "auto"]
    safest = max(changing, key=lambda method: min(gains(fewest, method)))
    assert best == safest == "gp-density"
    assert min(gains(fewest, "auto")) > -0.01
    assert all(min(gains(rows, "auto")) > -0.01 for rows in defects.rows if rows >= 300)


# Links


def test_link_checker_finds_what_is_missing(tmp_path):
    """Missing files and places are found, other sites and good links are not."""
    good = '<a href="b.html#here"></a><a href="https://example.org/x"></a><img src="c.png">'
    (tmp_path / "index.html").write_text(good, encoding="utf-8")
    (tmp_path / "b.html").write_text('<p id="here"></p><a href="#no"></a>', encoding="utf-8")

    problems = load_script("check_links").broken_links(tmp_path)

    assert problems == ["b.html: #no: no such place", "index.html: c.png: no such file"]


def test_links_between_documents_lead_somewhere():
    """Relative links in Markdown name files that exist."""
    missing = [
        f"{page.name}: {link}"
        for page in (README, ROOT / "CONTRIBUTING.md", *DOCS.glob("*.md"))
        for link in re.findall(r"\]\(([^)#\s]+)", page.read_text(encoding="utf-8"))
        if not link.startswith(("http", "auto_examples/")) and not (page.parent / link).exists()
    ]

    assert missing == []


def test_gallery_is_linked_by_names_that_exist():
    """Links to gallery pages name examples."""
    text = "".join(page.read_text(encoding="utf-8") for page in DOCS.glob("*.md"))
    linked = set(re.findall(r"\(auto_examples/(plot_\w+)\.rst", text))

    assert linked
    assert all((ROOT / "examples" / f"{name}.py").is_file() for name in linked)
