"""Write measured tables into README.md and the pages of this folder.

Each table stands between two markers, `<!-- begin name -->` and `<!-- end name -->`, and is made
from stored results: `experiments/uci.csv.gz` (`regcal reproduce tables` writes it), and
`benchmarks/defects.csv` and `outlook.csv` (the scripts of the same name write them). A test
compares the pages with the results.

    python docs/tables.py
"""

import csv
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import numpy as np

from regcal.reproduce import Scores, read_results

ROOT = Path(__file__).resolve().parents[1]
PAGES = ("README.md", "docs/which_method.md", "docs/small_sets.md", "docs/theory.md")

# From simple to complex. Methods this close to the best count as equally good.
METHODS = ("scale", "pit", "e-beta", "gpc", "gp-density", "auto")
AS_GOOD = 0.01
SHOWN_ROWS = 300


def markdown(header: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """Return a table; all columns but the first are numbers."""
    align = ["---", *["---:"] * (len(header) - 1)]
    return "\n".join("| " + " | ".join(line) + " |" for line in (header, align, *lines))


# Simulated defects


class Defects:
    """Mean gains in log score by defect, number of calibration rows and method."""

    def __init__(self, path: Path) -> None:
        with path.open(encoding="utf-8", newline="") as stream:
            lines = list(csv.DictReader(stream))
        self.names = list(dict.fromkeys(line["defect"] for line in lines))
        self.rows = sorted({int(line["rows"]) for line in lines})
        self._gains: dict[tuple[str, int, str], list[float]] = {}
        self._attainable: dict[str, list[float]] = {}
        for line in lines:
            key = (line["defect"], int(line["rows"]), line["method"])
            self._gains.setdefault(key, []).append(float(line["gain"]))
            self._attainable.setdefault(line["defect"], []).append(float(line["attainable"]))

    def gain(self, defect: str, rows: int, method: str) -> float:
        """Return the mean gain over draws."""
        return float(np.mean(self._gains[defect, rows, method]))

    def attainable(self, defect: str) -> float:
        """Return the mean gain of knowing the truth."""
        return float(np.mean(self._attainable[defect]))


def decision_table(defects: Defects) -> str:
    """Tabulate the simplest method that is about as good as the best, doing nothing included."""

    def choice(defect: str, rows: int) -> str:
        gains = {method: defects.gain(defect, rows, method) for method in METHODS[:-1]}
        best = max(0.0, *gains.values())
        good = [method for method, gain in gains.items() if gain > best - AS_GOOD]
        if best < AS_GOOD:
            return "nothing"
        return f"`{good[0]}` {gains[good[0]]:.2f}"

    header = ["what is wrong", *(f"{rows} rows" for rows in defects.rows), "truth"]
    lines = [
        [name, *(choice(name, rows) for rows in defects.rows), f"({defects.attainable(name):.2f})"]
        for name in defects.names
    ]
    return markdown(header, lines)


def defects_table(defects: Defects) -> str:
    """Tabulate the gain of every method at one number of calibration rows."""
    lines = [
        [
            name,
            *(f"{defects.gain(name, SHOWN_ROWS, method):.2f}" for method in METHODS),
            f"({defects.attainable(name):.2f})",
        ]
        for name in defects.names
    ]
    return markdown(["what is wrong", *(f"`{m}`" for m in METHODS), "truth"], lines)


def small_table(defects: Defects) -> str:
    """Tabulate mean and worst gain over all defects, by number of calibration rows."""

    def cell(rows: int, method: str) -> str:
        gains = [defects.gain(name, rows, method) for name in defects.names]
        return f"{np.mean(gains):.2f} ({min(gains):.2f})"

    lines = [[str(rows), *(cell(rows, method) for method in METHODS)] for rows in defects.rows]
    return markdown(["rows", *(f"`{m}`" for m in METHODS)], lines)


# The paper's outlook


def codes_table(path: Path) -> str:
    """Tabulate gains over e-beta in log score, changes of CRPS in brackets, and time."""
    with path.open(encoding="utf-8", newline="") as stream:
        lines = list(csv.DictReader(stream))
    sets = list(dict.fromkeys(line["dataset"] for line in lines))
    methods = list(dict.fromkeys(line["method"] for line in lines))[1:]

    def row(method: str) -> list[str]:
        own = [line for line in lines if line["method"] == method]
        cells = [f"{float(x['gain']):+.3f} ({100 * float(x['crps_change']):+.1f} %)" for x in own]
        times = [float(line["time"]) for line in own]
        return [method, *cells, f"{min(times):.1f} to {max(times):.1f}"]

    return markdown(["", *map(told, sets), "time"], map(row, methods))


# The study on real data

VARIANTS = {
    "`e-beta`, 32": ("e-beta", 32),
    "`gpc`, 64": ("gpc", 64),
    "`gp-density`": ("gp-density", 0),
    "`auto`": ("auto", 0),
}


def real_table(scores: Scores) -> str:
    """Tabulate gains over the uncalibrated model for every data set and base model."""
    shown = {
        name: variant
        for name, variant in VARIANTS.items()
        if all(scores.has(setting, variant) for setting in scores.settings())
    }

    def cell(setting: tuple[str, str], variant: tuple[str, int]) -> str:
        gain = scores.gain(setting, variant, ("uncalibrated", 0))
        return f"{gain.value:+.3f} ± {gain.error:.3f}"

    lines = [
        [f"{told(setting[0])}, {setting[1]}", *(cell(setting, v) for v in shown.values())]
        for setting in scores.settings()
    ]
    return markdown(["", *shown], lines)


def results_table(scores: Scores) -> str:
    """Tabulate mean log scores with Bayesian ridge regression; the best of each line is bold."""
    columns = {
        "uncalibrated": "uncalibrated",
        "e-beta (paper)": "e-beta-uniform",
        "GPC (paper)": "gpc-zero",
        "`gpc`": "gpc",
        "`gp-density`": "gp-density",
    }

    def line(setting: tuple[str, str]) -> list[str]:
        best = {
            method: (method, 64 if method == "gpc" else scores.best(setting, method))
            for method in columns.values()
        }
        values = {method: scores.mean(setting, best[method]).value for method in columns.values()}
        cells = [f"{value:.3f}" for value in values.values()]
        top = int(np.argmax(list(values.values())))
        cells[top] = f"**{cells[top]}**"
        return [told(setting[0]), *cells]

    settings = [setting for setting in scores.settings() if setting[1] == "BRR"]
    return markdown(["mean log score", *columns], map(line, settings))


def told(dataset: str) -> str:
    return dataset.replace("_", " ")


# Pages


def tables() -> dict[str, str]:
    """Return all tables by the names of their markers."""
    defects = Defects(ROOT / "benchmarks" / "defects.csv")
    scores = Scores(read_results(ROOT / "experiments" / "uci.csv.gz"))
    makers: dict[str, Callable[[], str]] = {
        "codes": lambda: codes_table(ROOT / "benchmarks" / "outlook.csv"),
        "decision": lambda: decision_table(defects),
        "defects": lambda: defects_table(defects),
        "small": lambda: small_table(defects),
        "real": lambda: real_table(scores),
        "results": lambda: results_table(scores),
    }
    return {name: make() for name, make in makers.items()}


def filled(page: str, blocks: dict[str, str]) -> str:
    """Return a page with its tables written anew."""

    def block(match: re.Match[str]) -> str:
        name = match["name"]
        return f"<!-- begin {name} -->\n{blocks[name]}\n<!-- end {name} -->"

    return re.sub(
        r"<!-- begin (?P<name>\w+) -->\n.*?<!-- end (?P=name) -->", block, page, flags=re.DOTALL
    )


def main() -> None:
    """Write the pages."""
    blocks = tables()
    for name in PAGES:
        path = ROOT / name
        text = path.read_text(encoding="utf-8")
        path.write_text(filled(text, blocks), encoding="utf-8")
        print(name)


if __name__ == "__main__":
    main()
