"""What the rows say: paired differences, ranks and slopes, as plain numbers."""

import json
import sys
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from peers.catalogue import METHODS, OURS
from peers.run import GROUPS, Plan, Runner, digest

BASE = "identity"
OUR_NAMES = [entry.name for entry in OURS]
# Scores of which more is better; of the others less is.
LARGER_IS_BETTER = {"log_score"}


@dataclass(frozen=True)
class Difference:
    """A mean paired difference, its standard error, and over how many cells it was taken."""

    mean: float
    error: float
    n_cells: int

    @property
    def clear(self) -> int:
        """Return 1 or -1 if it is more than two standard errors from zero, else 0."""
        return int(np.sign(self.mean)) * int(abs(self.mean) > 2 * self.error)


@dataclass
class Results:
    """The rows of one plan that belong to the code as it is now."""

    plan: Plan

    def __post_init__(self) -> None:
        self.runner = Runner(self.plan)
        digests = {name: digest(entry) for name, entry in METHODS.items()}
        self.rows = [
            row
            for row in self.runner.rows
            if "method" not in row or row["job"].endswith(digests[row["method"]])
        ]

    def of(self, table: str) -> list[dict]:
        """Return the rows of a table."""
        return [row for row in self.rows if row.get("table") == table]

    # ------------------------------------------------------------------------------------ quality

    @cached_property
    def cells(self) -> dict[tuple[str, str, str], dict]:
        """Rows of means by (method, data, base)."""
        rows = [row for row in self.of("quality") if "means" in row]
        return {(row["method"], row["data"], row["base"]): row for row in rows}

    @cached_property
    def scored(self) -> list[str]:
        """Methods with at least one finished cell, in the order of the catalogue."""
        seen = {key[0] for key in self.cells}
        return [name for name in METHODS if name in seen]

    def per_row(self, row: dict, score: str) -> np.ndarray | None:
        """Return a score of every row."""
        with np.load(self.runner.cache / "scores" / row["scores"]) as parts:
            return parts.get(score)

    def cell_scores(self, method: str, cell: tuple[str, str], score: str) -> np.ndarray | None:
        """Return a score of every row of a cell, or None."""
        row = self.cells.get((method, *cell))
        return None if row is None else self.per_row(row, score)

    def cell_difference(self, method, other, cell, score) -> np.ndarray | None:
        """Return method less other, row by row; CRPS and pinball relative to the base's mean."""
        own, theirs, base = (self.cell_scores(m, cell, score) for m in (method, other, BASE))
        if own is None or theirs is None or base is None:
            return None
        return (own - theirs) / (1.0 if score in LARGER_IS_BETTER else base.mean())

    def difference(
        self, method: str, other: str, score: str, group: str = "paper"
    ) -> Difference | None:
        """Average the differences over finished cells of a group, every set counting the same.

        The base models of a data set share its rows, so they are averaged row by row first.
        """
        means, variances, n_cells = [], [], 0
        cells = GROUPS[group]
        for data in dict.fromkeys(data for data, _ in cells):
            own = [self.cell_difference(method, other, c, score) for c in cells if c[0] == data]
            own = [part for part in own if part is not None]
            if own:
                average = np.mean(own, axis=0)
                means.append(average.mean())
                variances.append(average.var(ddof=1) / len(average))
                n_cells += len(own)
        if not means:
            return None
        return Difference(
            float(np.mean(means)), float(np.sqrt(sum(variances)) / len(means)), n_cells
        )

    def in_cell(self, method: str, other: str, cell: tuple[str, str], score: str) -> Difference:
        """Compare two methods in one cell."""
        gap = self.cell_difference(method, other, cell, score)
        return Difference(float(gap.mean()), float(gap.std(ddof=1) / np.sqrt(len(gap))), 1)

    def ranking(self, cell: tuple[str, str], score: str) -> list[tuple[str, float]]:
        """Return methods with their mean score in a cell, best first."""
        found = [
            (method, self.cells[(method, *cell)]["means"][score])
            for method in self.scored
            if score in self.cells.get((method, *cell), {}).get("means", {})
        ]
        return sorted(found, key=lambda pair: pair[1], reverse=score in LARGER_IS_BETTER)

    def best_or_tied(self, method: str, score: str, group: str = "paper") -> tuple[int, int]:
        """Count cells in which no method is clearly better, and cells that were scored."""
        good = total = 0
        for cell in GROUPS[group]:
            ranking = self.ranking(cell, score)
            if method not in dict(ranking):
                continue
            total += 1
            best = ranking[0][0]
            good += best == method or self.in_cell(method, best, cell, score).clear == 0
        return good, total

    # --------------------------------------------------------------------------------------- cost

    @cached_property
    def seconds(self) -> dict[tuple[str, int, str], float]:
        """CPU seconds by (method, n, fit or output)."""
        rows = [row for row in self.of("cost") if "seconds" in row]
        return {(row["method"], row["n"], row["what"]): row["seconds"] for row in rows}

    @cached_property
    def ends(self) -> dict[tuple[str, int], dict]:
        """How the job of each method and size ended."""
        rows = [row for row in self.of("cost") if row.get("what") == "end"]
        return {(row["method"], row["n"]): row for row in rows}

    def total(self, method: str, n: int, output: str) -> float | None:
        """Return the CPU seconds of fitting n rows and asking for an output of n rows."""
        fit, ask = (self.seconds.get((method, n, what)) for what in ("fit", output))
        return None if fit is None or ask is None else fit + ask

    def slope(self, method: str, output: str) -> float | None:
        """Return the exponent of fit + output against the number of rows, from 10 000 on."""
        sizes = sorted({n for name, n, _ in self.seconds if name == method and n >= 10_000})
        pairs = [(n, self.total(method, n, output)) for n in sizes]
        pairs = [(n, seconds) for n, seconds in pairs if seconds]
        if len(pairs) < 2:
            return None
        return float(np.polyfit(*np.log10(np.array(pairs, dtype=float)).T, 1)[0])

    @cached_property
    def simulated(self) -> dict[tuple[str, int], dict]:
        """Rows of mean scores on the simulated set by (method, n)."""
        rows = [row for row in self.of("cost") if row.get("what") == "scores"]
        return {(row["method"], row["n"]): row for row in rows}

    def simulated_error(self, method: str, n: int, score: str) -> float:
        """Return the standard error of the difference to the base on the simulated set."""
        own, base = (self.per_row(self.simulated[(m, n)], score) for m in (method, BASE))
        return float((own - base).std(ddof=1) / np.sqrt(len(own)))

    # ------------------------------------------------------------------------------------- errors

    @cached_property
    def failures(self) -> list[tuple[str, str, str]]:
        """Method or package, where, and what went wrong."""
        found = [(name, "install", text) for name, text in self.environment["errors"].items()]
        for row in self.rows:
            where = row.get("table", "")
            where += f", {row['n']} rows" if "n" in row else ""
            where += f", {row['data']} {row['base']}" if "data" in row else ""
            if "error" in row:
                found.append((row.get("method", row["job"]), where, row["error"]))
            elif row.get("status") == "timed out":
                group = row.get("group")
                where += f", {group}" if group else ""
                limit = self.plan.groups[group].limit if group else self.plan.cost_limit
                found.append((row.get("method", row["job"]), where, f"stopped after {limit:.0f} s"))
        return found

    @cached_property
    def environment(self) -> dict:
        """Versions and errors that `install` wrote."""
        path = Path(sys.prefix) / "peers.json"
        empty = {"versions": {}, "errors": {}}
        return json.loads(path.read_text(encoding="utf-8")) if path.exists() else empty
