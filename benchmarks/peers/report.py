"""Write benchmarks/RESULTS.md and its figures from the rows that `run` left."""

import argparse
import os
import platform
from collections.abc import Iterable
from datetime import date
from pathlib import Path

import matplotlib as mpl

from peers.catalogue import METHODS, PEERS
from peers.figures import full_name, save_figures
from peers.run import FULL, GROUPS, QUICK
from peers.tables import BASE, OUR_NAMES, Results

HERE = Path(__file__).parents[1]
IMPORT_LIMIT = 1.2
# One row's quantiles over the base model's prediction: of one distribution, of an average.
LATENCY_LIMIT, AVERAGE_LIMIT = 5.0, 8.0
HEADS = (10_000, 100_000)
SHOWN = ["scale", "pit", "isotonic", "e-beta", "gpc", "gp-density", "auto"]
SHOWN += ["conditional, features", "auto, features"]
CELLS = GROUPS["paper"]
TITLES = {
    "paper": "Quality on the paper's data sets",
    "models": "Quality with other base models",
    "development": "Quality on development sets",
}
INTRODUCTIONS = {
    "paper": """\
Five data sets and three base models. Differences are to the base model on the same rows, averaged
over the cells that the method finished; CRPS and pinball in percent of the base's: less is better.
"Best or tied": no method is better by more than two standard errors in that cell. "-": no density.
Methods named "features" see the features of the base model as well.""",
    "models": """\
The same five data sets with NGBoost, and with a small neural network that predicts mean and
spread.""",
    "development": """\
Fifteen other sets (`devsets.py`) with Bayesian ridge regression, one outer fold. Where outcomes are
zeros, counts or steps, log scores of densities say little; look at CRPS.""",
}


def table(header: list[str], rows: Iterable[list[str]]) -> str:
    """Return a Markdown table; all but the first column are numbers."""
    rule = ["---"] + ["---:"] * (len(header) - 1)
    lines = [header, rule, *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines) + "\n"


def seconds(value: float | None) -> str:
    """Return a time with three digits and a unit."""
    if value is None:
        return "-"
    for unit, factor in (("s", 1.0), ("ms", 1e3)):
        if value * factor >= 1.0:
            return f"{value * factor:.3g} {unit}"
    return f"{value * 1e6:.3g} µs"


def gap(difference, factor: float = 1.0, digits: int = 3) -> str:
    """Return a difference with its standard error."""
    if difference is None:
        return "-"
    return f"{factor * difference.mean:+.{digits}f} ± {factor * difference.error:.{digits}f}"


def mean_of(results: Results, method: str, key: str, group: str = "paper") -> float | None:
    """Return the mean of a cell's means over all finished cells of a group."""
    rows = [results.cells.get((method, *cell), {}) for cell in GROUPS[group]]
    values = [row.get("means", {}).get(key) for row in rows]
    values = [value for value in values if value is not None]
    return sum(values) / len(values) if values else None


def percent(value: float | None, digits: int = 1) -> str:
    return "-" if value is None else f"{100 * value:.{digits}f} %"


# ----------------------------------------------------------------------------------------- sections


def opening(results: Results) -> str:
    plan = results.plan
    state = (
        "**This is the quick run** (`make bench QUICK=1`): the first outer fold, fewer rows "
        "and short limits. It shows that everything works; the numbers are rough."
        if plan.name == "quick"
        else "This is the full run (`make bench`)."
    )
    versions = results.environment["versions"]
    listed = ", ".join(f"{name} {version}" for name, version in versions.items() if version)
    return f"""# regcal and its peers

Written by `make bench` on {date.today()}; do not edit. {state}
How it was measured, and how the peers were treated, is in [README.md](README.md).

{os.cpu_count()} cores, one used; Python {platform.python_version()}; {listed}.
Times are CPU times in one thread. ± is one standard error of a paired difference.
"""


def verdict(results: Results) -> str:
    """Say in a few lines what is won and what is lost."""
    lines = [*_quality_verdict(results), *_speed_verdict(results), *_limit_verdict(results)]
    return "## In short\n\n" + "\n".join(f"- {line}" for line in lines) + "\n"


def _quality_verdict(results: Results) -> list[str]:
    lines = []
    for score, name in (("log_score", "log score"), ("crps", "CRPS")):
        sign = 1 if score == "log_score" else -1
        gaps = {m: results.difference(m, BASE, score) for m in results.scored if m != BASE}
        complete = {m: d for m, d in gaps.items() if d is not None and d.n_cells == len(CELLS)}
        if not complete:
            continue
        order = sorted(complete, key=lambda m: sign * complete[m].mean, reverse=True)
        places = ", ".join(f"{n + 1}. {full_name(m)}" for n, m in enumerate(order[:5]))
        lines.append(
            f"Mean {name} over {len(CELLS)} cells, of {len(order)} methods that finished them all: "
            f"{places}."
        )
        for features in (False, True):
            same = [m for m in order if m.endswith("features") == features]
            best = next((m for m in same if m not in OUR_NAMES), None)
            if best is not None:
                gaps = {m: results.difference(m, best, score) for m in SHOWN if m in same}
                found = [f"{m} {_compared(difference, sign)}" for m, difference in gaps.items()]
                which = "sees features" if features else "sees predictions alone"
                lines.append(f"The best peer there that {which} is {best}: {', '.join(found)}.")
    return lines


def _compared(difference, sign: int) -> str:
    words = {1: "clearly better", -1: "clearly worse", 0: "tied"}
    return f"{words[sign * difference.clear]} ({gap(difference)})"


def _speed_verdict(results: Results) -> list[str]:
    lines = []
    for n in HEADS:
        won, lost, missing = [], [], []
        for peer, output, theirs, ours in head_to_head(results, n):
            if ours is None:
                continue
            group = missing if theirs is None else (won if ours < theirs else lost)
            group.append(f"{peer} ({output})")
        lines.append(
            f"Fit + output at {n:,} rows, against regcal's method of the same kind: ahead of "
            f"{len(won)}, behind {len(lost)}{': ' + ', '.join(lost) if lost else ''}"
            f"{'; not finished by the peer: ' + str(len(missing)) if missing else ''}."
        )
    return lines


def _limit_verdict(results: Results) -> list[str]:
    lines = []
    ratio = import_ratio(results)
    if ratio is not None:
        state = "met" if ratio <= IMPORT_LIMIT else "MISSED"
        lines.append(
            f"`import regcal` takes {ratio:.2f} times `import sklearn.linear_model, scipy.stats` "
            f"(limit {IMPORT_LIMIT}: {state})."
        )
    found = latencies(results)
    slow = [f"{name} {ratio:.1f}" for name, ratio, limit in found if ratio > limit]
    if found:
        lines.append(
            f"One row's `predict_quantiles`, limit {LATENCY_LIMIT:.0f} times the base model, of "
            f"averages {AVERAGE_LIMIT:.0f}: "
            + (f"MISSED by {', '.join(slow)}." if slow else "met by all.")
        )
    return lines


def quality_section(results: Results) -> str:
    return "\n".join(_quality_of(results, group) for group in results.plan.groups)


def _quality_of(results: Results, group: str) -> str:
    header = ["method", "log score, gain over base", "CRPS, % of base", "pinball, % of base"]
    header += ["90 % interval holds", "best or tied, log score", "CRPS", "cells"]
    rows = []
    for name in results.scored:
        log_gain, crps, loss = (
            results.difference(name, BASE, score, group)
            for score in ("log_score", "crps", "pinball")
        )
        tied = [
            "{} of {}".format(*results.best_or_tied(name, score, group))
            for score in ("log_score", "crps")
        ]
        rows.append(
            [
                full_name(name),
                gap(log_gain),
                gap(crps, 100, 2),
                gap(loss, 100, 2),
                percent(mean_of(results, name, "covered", group)),
                tied[0] if log_gain else "-",
                tied[1],
                str(crps.n_cells if crps else 0),
            ]
        )
    return f"## {TITLES[group]}\n\n{INTRODUCTIONS[group]}\n\n{table(header, rows)}"


def validity_section(results: Results) -> str:
    header = ["method", "rows without positive density", "rows whose density has no unit mass"]
    header += ["rows with a decreasing CDF", "mass missing", "rows with crossing quantiles"]
    keys = ("no_density", "decreasing", "mass_missing", "crossing")
    rows = []
    for name in results.scored:
        none, decreasing, missing, crossing = (mean_of(results, name, key) for key in keys)
        cells = [row for key, row in results.cells.items() if key[0] == name]
        off = [r["unnormalised"] for r in cells if r.get("unnormalised") is not None]
        share = sum(off) / len(off) if off else None
        numbers = (none, share, decreasing, missing, crossing)
        if any(value and value > 5e-4 for value in numbers):
            rows.append([full_name(name), *(percent(value) for value in numbers)])
    return f"""## What is not valid

Only methods with something to show. Where a method gave no positive density, its log score counts
as exp(-20) per interquartile range of the outcomes, which is kind. Unit mass is checked within 2 %
on eight rows per cell.

{table(header, rows)}"""


def cell_section(results: Results) -> str:
    """Print, cell by cell, the best peer and regcal's difference to it."""
    text = "## Cell by cell\n\nEach of ours less the best peer of the cell.\n\n"
    for score, title, factor in (
        ("log_score", "Log score, nats; positive is ours", 1.0),
        ("crps", "CRPS, % of the base's; negative is ours", 100.0),
    ):
        rows = []
        for cell in CELLS:
            ranking = results.ranking(cell, score)
            peers = [name for name, _ in ranking if name not in OUR_NAMES]
            if peers:
                ours = [
                    gap(results.in_cell(m, peers[0], cell, score), factor)
                    if m in dict(ranking)
                    else "-"
                    for m in SHOWN
                ]
                rows.append([" ".join(cell), peers[0], *ours])
        text += f"### {title}\n\n{table(['cell', 'best peer', *SHOWN], rows)}\n"
    return text


def simulated_section(results: Results) -> str:
    sizes = [n for n in (10_000, 100_000) if any(key[1] == n for key in results.simulated)]
    parts = []
    for n in sizes:
        rows = []
        for name in METHODS:
            row = results.simulated.get((name, n))
            if row is None or (BASE, n) not in results.simulated:
                continue
            means, base = row["means"], results.simulated[(BASE, n)]["means"]
            log_cells = ["-", "-"]
            if "log_score" in means:
                error = results.simulated_error(name, n, "log_score")
                log_cells = [f"{means['log_score'] - base['log_score']:+.4f} ± {error:.4f}"]
                log_cells += [f"{means['truth'] - means['log_score']:.4f}"]
            error = results.simulated_error(name, n, "crps")
            crps = f"{means['crps'] - base['crps']:+.4f} ± {error:.4f}"
            rows.append([full_name(name), *log_cells, crps, percent(means["covered"])])
        header = ["method", "log score, gain", "short of the truth", "CRPS, change", "90 % holds"]
        parts.append(f"### {n:,} calibration rows\n\n{table(header, rows)}")
    text = "\n".join(parts)
    return f"""## Quality on a large simulated set

The outcomes are skewed and their spread depends on the predicted mean. Scored on 10 000 new rows.

{text}"""


def cost_section(results: Results) -> str:
    sizes = sorted({n for _, n, _ in results.seconds})
    rows = []
    for name in METHODS:
        for output in ("density", "quantiles", "cdf"):
            totals = [results.total(name, n, output) for n in sizes]
            if not any(value is not None for value in totals):
                continue
            slope = results.slope(name, output)
            cells = [
                f"{seconds(results.seconds[(name, n, 'fit')])} + "
                f"{seconds(results.seconds[(name, n, output)])}"
                if value is not None
                else "-"
                for n, value in zip(sizes, totals, strict=True)
            ]
            rows.append([full_name(name), output, *cells, "-" if slope is None else f"{slope:.2f}"])
    header = ["method", "output", *(f"{n:,}" for n in sizes), "slope"]
    memory = [
        [full_name(name)]
        + [
            f"{results.ends[(name, n)]['peak_mb']:,.0f}"
            if results.ends.get((name, n), {}).get("status") == "done"
            else "-"
            for n in sizes
        ]
        for name in METHODS
        if any(key[0] == name for key in results.ends)
    ]
    return f"""## Cost

Fit on N rows + output for N new rows. An output is one log density, 9 quantiles, or 9 probabilities
P(Y <= t) per row; only what the package offers itself. The slope is the exponent of N in fit +
output from 10 000 rows on. scikit-learn's and GPyTorch's classifiers are fitted on a fixed number
of pairs, so their fit does not grow. "-": failed, stopped, or not reached.

![cost](figures/cost.png)

{table(header, rows)}
Peak memory of the process in MB, with interpreter, package, data and scoring:

{table(["method", *(f"{n:,}" for n in sizes)], memory)}"""


def head_to_head(results: Results, n: int) -> list[tuple]:
    """Return peer, output, the peer's time and that of regcal's counterpart."""
    outputs = ("density", "quantiles", "cdf")
    found = []
    for entry in PEERS:
        offered = [
            o for o in outputs if any(k[0] == entry.name and k[2] == o for k in results.seconds)
        ]
        for output in offered or ["?"]:
            ours = results.total(entry.counterpart, n, output) if offered else None
            found.append((entry.name, output, results.total(entry.name, n, output), ours))
    return found


def head_section(results: Results) -> str:
    text = "## Who is ahead\n\nFit + output, against regcal's method of the same kind.\n\n"
    for n in HEADS:
        rows = []
        for peer, output, theirs, ours in head_to_head(results, n):
            if ours is None and theirs is None:
                continue
            counterpart = METHODS[peer].counterpart
            ratio = "-" if ours is None or theirs is None else f"{theirs / ours:.2g}"
            ahead = "-" if ratio == "-" else ("regcal" if ours < theirs else "**peer**")
            rows.append([peer, output, seconds(theirs), counterpart, seconds(ours), ratio, ahead])
        header = ["peer", "output", "peer takes", "regcal's", "takes", "peer / regcal", "ahead"]
        text += f"### {n:,} rows\n\n{table(header, rows)}\n"
    return text


def import_times(results: Results) -> dict[str, dict]:
    return {row["package"]: row for row in results.of("import")}


def import_ratio(results: Results) -> float | None:
    times = import_times(results)
    if "regcal" not in times:
        return None
    return times["regcal"]["seconds"] / times["limit"]["seconds"]


def latencies(results: Results) -> list[tuple[str, float, float]]:
    """Return the time of one row's quantiles over the base model's, by method, and its limit.

    "auto" may have chosen an average.
    """
    rows = {
        (row["what"], row.get("ensemble")): row for row in results.of("latency") if "what" in row
    }
    if ("base", None) not in rows:
        return []
    base = rows.pop(("base", None))["seconds"]
    return [
        (
            f"{what}{' averaged over 3 folds' if ensemble else ''}",
            row["seconds"] / base,
            AVERAGE_LIMIT if ensemble or what == "auto" else LATENCY_LIMIT,
        )
        for (what, ensemble), row in rows.items()
        if "seconds" in row
    ]


def small_section(results: Results) -> str:
    times = import_times(results).values()
    imports = [[f"`{row['code']}`", seconds(row["seconds"])] for row in times]
    single = [[name, f"{ratio:.1f}", f"{limit:.0f}"] for name, ratio, limit in latencies(results)]
    return f"""## Import and single rows

CPU time of a fresh interpreter, least of a few:

{table(["statement", "CPU time"], imports)}
`predict_quantiles` of three levels for one row, over the base model's `predict(X,
return_std=True)`, for a `CalibratedRegressorCV(BayesianRidge())`, least of
200:

{table(["calibrator", "times the base", "limit"], single)}"""


def failure_section(results: Results) -> str:
    if not results.failures:
        return "## What failed\n\nNothing.\n"
    rows = [[name, where, text.replace("|", "/")[:160]] for name, where, text in results.failures]
    return f"## What failed or was stopped\n\n{table(['method', 'where', 'error'], rows)}"


SECTIONS = [
    opening,
    verdict,
    quality_section,
    validity_section,
    cell_section,
    simulated_section,
    head_section,
    cost_section,
    small_section,
    failure_section,
]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--output", type=Path, default=HERE)
    options = parser.parse_args()
    mpl.use("agg")
    results = Results(QUICK if options.quick else FULL)
    saved = save_figures(results, options.output / "figures")
    text = "\n".join(section(results) for section in SECTIONS)
    if "quality.png" in saved:
        place = "## What is not valid"
        text = text.replace(place, f"![quality](figures/quality.png)\n\n{place}", 1)
    path = options.output / "RESULTS.md"
    path.write_text(text, encoding="utf-8")
    print(f"Wrote {path.relative_to(HERE.parent) if path.is_relative_to(HERE.parent) else path}")


if __name__ == "__main__":
    main()
