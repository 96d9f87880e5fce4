"""Tables of the study as Markdown, kept up to date inside a page that people write."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np

from regcal.reproduce.cells import (
    BASES,
    CHECK_METHOD,
    DATASETS,
    N_FOLDS,
    OUR_METHODS,
    OUTLOOK_METHODS,
    PAPER_METHODS,
    Cell,
)
from regcal.reproduce.figure import LABELS, draw_study
from regcal.reproduce.means import Mean, Scores, Setting
from regcal.reproduce.paper_claims import Count, claims
from regcal.reproduce.results import write_results
from regcal.reproduce.scores import CHECK_PAIRS, FLOOR, N_INNER_FOLDS, PREDICTION_THRESHOLDS, Row

RESULTS, FIGURE, PAGE = "uci.csv.gz", "uci.png", "README.md"

_ORDER = (
    *("uncalibrated", "averaged"),
    *PAPER_METHODS,
    *OUR_METHODS,
    *OUTLOOK_METHODS,
    *("isotonic", "gp-density", "auto"),
)


def _table(header: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    rows = [header, ["---"] * len(header), *lines]
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def _size(scores: Scores) -> str:
    missing = [name for name in DATASETS if name not in scores.datasets]
    left_out = f" Left out here: {', '.join(missing)}." if missing else ""
    units = len({cell.unit for cell in scores.rows})
    wanted = len(scores.datasets) * len(BASES) * scores.repetitions * N_FOLDS
    if units < wanted:
        left_out += (
            f" **Incomplete**: {units} of {wanted} folds of data sets with base models are there, "
            "so that verdicts may change. Go on with regcal reproduce uci."
        )
    seconds = sum(row.seconds for row in scores.rows.values())
    counts = ", ".join(map(str, scores.thresholds))
    return (
        f"{len(scores.rows)} cells: {len(scores.datasets)} data sets, {len(BASES)} base models, "
        f"{counts} target values, {scores.repetitions} × {N_FOLDS} folds with {N_INNER_FOLDS} "
        f"inner folds, {PREDICTION_THRESHOLDS} prediction thresholds; {seconds / 60:.0f} minutes "
        f"of computing.{left_out}"
    )


_EMPHASISED = {"not held": "**not held**", "partly held": "*partly held*"}


def _claims(scores: Scores) -> str:
    lines = [
        [
            str(number),
            claim.statement,
            claim.measured,
            _EMPHASISED.get(claim.verdict, claim.verdict),
        ]
        for number, claim in enumerate(claims(scores), start=1)
    ]
    return _table(["", "the paper says", "measured", ""], lines)


def _means(scores: Scores) -> str:
    """Tabulate mean log-likelihoods; methods with thresholds at their best number of them."""
    known = {cell.method for cell in scores.rows}
    methods = [method for method in _ORDER if method in known]
    lines = [
        [_told(*setting), *(_mean(scores, setting, method) for method in methods)]
        for setting in scores.settings()
    ]
    return _table(["", *(LABELS.get(method, method) for method in methods)], lines)


def _mean(scores: Scores, setting: Setting, method: str) -> str:
    best = (method, scores.best(setting, method))
    if not scores.has(setting, best):
        return ""
    value = f"{scores.mean(setting, best).value:.3f}"
    if method == "uncalibrated":
        return value
    error = scores.gain(setting, best, ("uncalibrated", 0)).error
    return f"{value} ± {error:.3f}" + (f" at {best[1]}" if best[1] else "")


def _told(dataset: str, base: str) -> str:
    return f"{dataset.replace('_', ' ')}, {base}"


def _floored(scores: Scores) -> str:
    """Tabulate, per method, the rows whose density was not positive."""
    lines = []
    for method in (*_ORDER, CHECK_METHOD):
        rows = [row for cell, row in scores.rows.items() if cell.method == method]
        if not rows:
            continue
        judged, valid = sum(row.n_test for row in rows), sum(row.n_floored for row in rows)
        raw = [row for row in rows if row.raw_n_floored is not None]
        count, difference = "", ""
        if raw:
            count = str(sum(row.raw_n_floored or 0 for row in raw))
            gaps = [(row.raw_log_score or 0.0) - row.log_score for row in raw]
            difference = f"{np.mean(gaps):+.3f}"
        lines.append([LABELS.get(method, method), str(judged), str(valid), count, difference])
    header = ["method", "rows judged", "density 0", "raw density at the floor", "raw minus valid"]
    return _table(header, lines)


def _outlook(scores: Scores) -> str:
    """Compare what the paper's outlook names with e-beta: gains at their best, and time."""
    seconds = _seconds(scores)
    if not seconds.keys() >= {"e-beta", *OUTLOOK_METHODS}:
        return "Not part of this run."
    lines = []
    for method in (*OUTLOOK_METHODS, "gpc"):
        if method not in seconds:
            continue
        gains = _gains_at_best(scores, method, "e-beta")
        count = Count.of(gains)
        median = np.median([gain.value for gain in gains])
        time = seconds[method] / seconds["e-beta"]
        better = [f"{count.larger} of {count.total}", str(count.clearly_larger)]
        worse = str(count.clearly_smaller)
        lines.append([LABELS[method], f"{median:+.3f}", *better, worse, f"{time:.1f}"])
    header = ["", "median gain", "better in", "clearly", "clearly worse in", "time"]
    return _table(header, lines)


def _gains_at_best(scores: Scores, method: str, other: str) -> list[Mean]:
    """Return gains of a method over another, each with its best number of thresholds."""
    gains = []
    for setting in scores.settings():
        better, worse = ((name, scores.best(setting, name)) for name in (method, other))
        if scores.has(setting, better) and scores.has(setting, worse):
            gains.append(scores.gain(setting, better, worse))
    return gains


def _seconds(scores: Scores) -> dict[str, float]:
    """Return the computing time of each method."""
    seconds: dict[str, float] = {}
    for cell, row in scores.rows.items():
        seconds[cell.method] = seconds.get(cell.method, 0.0) + row.seconds
    return seconds


def _check(scores: Scores) -> str:
    """Compare the paper's own classifier with GPC on all pairs, cell by cell."""
    lines = []
    for row in scores.checked():
        unit = row.cell.unit
        fast = scores.rows.get(Cell(unit, "gpc-zero", row.cell.thresholds))
        if fast is None:
            continue
        numbers = [row.log_score, row.raw_log_score, fast.log_score, fast.raw_log_score]
        told = ["" if number is None else f"{number:.3f}" for number in numbers]
        lines.append([_told(unit.dataset, unit.base), *told])
    if not lines:
        return "Not part of this run."
    pairs = f"scikit-learn's classifier, {CHECK_PAIRS} pairs"
    header = ["", pairs, "the same, raw", "GPC (paper), all pairs", "the same, raw"]
    return _table(header, lines)


def _choices(scores: Scores) -> str:
    """Tabulate how often "auto" chose a method alone, and as a part of an average."""
    chosen = [
        (cell.unit.dataset, row.chosen.split(" + "))
        for cell, row in scores.rows.items()
        if row.chosen
    ]
    if not chosen:
        return "Not part of this run."
    counts = Counter((data, len(parts) == 1, name) for data, parts in chosen for name in parts)
    names = [
        name for name, _ in Counter(name for _, parts in chosen for name in parts).most_common()
    ]
    lines = [
        [
            dataset.replace("_", " "),
            *(f"{counts[dataset, True, name]} + {counts[dataset, False, name]}" for name in names),
        ]
        for dataset in scores.datasets
    ]
    return _table(["folds: alone + in an average", *names], lines)


def _deviations(scores: Scores) -> str:
    return (
        f"- A density of 0, or a raw one that is not above {FLOOR:g} of an even spread over the "
        "thresholds' range, counts as that much. The paper does not say what it did."
    )


_BLOCKS = {
    "size": _size,
    "claims": _claims,
    "means": _means,
    "outlook": _outlook,
    "floored": _floored,
    "check": _check,
    "choices": _choices,
    "floor": _deviations,
}


def filled_in(page: str, scores: Scores) -> str:
    """Return a page with its generated blocks written anew from the scores.

    Parameters
    ----------
    page : str
        Markdown with pairs of lines ``<!-- begin claims -->`` and ``<!-- end claims -->``.
    scores : Scores

    Returns
    -------
    str
    """

    def block(match: re.Match[str]) -> str:
        name = match["name"]
        return f"<!-- begin {name} -->\n{_BLOCKS[name](scores)}\n<!-- end {name} -->"

    pattern = rf"<!-- begin (?P<name>{'|'.join(_BLOCKS)}) -->\n.*?<!-- end (?P=name) -->"
    return re.sub(pattern, block, page, flags=re.DOTALL)


def blank_page() -> str:
    """Return a page with all generated blocks, for folders that have none yet."""
    parts = ["# The study on five data sets", f"![log-likelihoods]({FIGURE})"]
    parts += [f"<!-- begin {name} -->\n<!-- end {name} -->" for name in _BLOCKS]
    return "\n\n".join(parts) + "\n"


def write_study(rows: Mapping[Cell, Row], folder: str | Path) -> list[Path]:
    """Write the rows, the figure and the tables of a study into a folder.

    An existing page keeps its prose; only the blocks between markers are written anew.

    Parameters
    ----------
    rows : mapping from Cell to Row
        As `run_study` and `read_results` return them.
    folder : str or Path
        Made if it does not exist.

    Returns
    -------
    list of Path
        ``uci.csv.gz``, ``uci.png`` and ``README.md``.
    """
    folder = Path(folder)
    scores = Scores(rows)
    figure = draw_study(scores)
    folder.mkdir(parents=True, exist_ok=True)
    write_results(folder / RESULTS, rows.values())
    figure.savefig(folder / FIGURE, dpi=80)
    page = folder / PAGE
    text = page.read_text(encoding="utf-8") if page.exists() else blank_page()
    page.write_text(filled_in(text, scores), encoding="utf-8")
    return [folder / RESULTS, folder / FIGURE, page]
