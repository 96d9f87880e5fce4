"""Run the benchmark: every job in a process of its own, with a time limit and its peak memory.

    make bench              # everything; an hour and a half on two cores, most of it for the peers
    make bench QUICK=1      # one outer fold, fewer rows, short limits; minutes

Times are measured first, one job at a time. Scores do not depend on what else runs, and limits are
of CPU time, so that methods are scored on all cores at once.

Rows are written as they finish, into `.bench-cache/` at the top of the repository. A run that was
stopped goes on where it was; a method is run again when its code here or regcal's changed.
Only the standard library is imported here: a child inherits its parent's peak memory.
"""

import argparse
import hashlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from peers.catalogue import IMPORTS, METHODS, OURS, Entry

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
# A job may take so many times its limit of CPU time by the clock.
_PATIENCE = 20

SHARED = ["method.py", "data.py", "scoring.py", "worker.py"]
ONE_THREAD = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS"), "1"
)
PAPER_SETS = ("diabetes", "boston", "airfoil", "forest_fires", "concrete")
DEVELOPMENT_SETS = (
    *("doctor visits", "affairs", "articles", "rain", "wages 1988", "wages of the young"),
    *("wages in Ontario", "flights", "ridership", "deliveries", "car prices", "storms"),
    *("loans", "NOx", "births"),
)
# Cells are pairs of a data set and a base model. Means are taken within a group.
GROUPS = {
    "paper": [(data, base) for base in ("BRR", "OLS", "GPR") for data in PAPER_SETS],
    "models": [(data, base) for base in ("NGBoost", "network") for data in PAPER_SETS],
    "development": [(data, "BRR") for data in DEVELOPMENT_SETS],
}


@dataclass(frozen=True)
class Extent:
    """How much of a group of cells is run."""

    folds: int  # outer ones
    limit: float  # CPU seconds of one method in all cells


@dataclass(frozen=True)
class Plan:
    """How much is run."""

    name: str
    groups: dict[str, Extent]
    sizes: tuple[int, ...]
    own_sizes: tuple[int, ...]  # for regcal, if the previous size was cheap
    cost_limit: float  # CPU seconds of one method at one size
    import_runs: int


QUICK = Plan("quick", {"paper": Extent(1, 120.0)}, (1_000, 10_000, 100_000), (), 20.0, 2)
FULL = Plan(
    "full",
    {"paper": Extent(5, 300.0), "models": Extent(2, 120.0), "development": Extent(1, 120.0)},
    (1_000, 10_000, 100_000, 1_000_000),
    (10_000_000,),
    60.0,
    15,
)


@dataclass
class Runner:
    """Runs jobs and keeps their rows."""

    plan: Plan
    rows: list[dict] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.cache = ROOT / ".bench-cache" / self.plan.name
        self.cache.mkdir(parents=True, exist_ok=True)
        self.path = self.cache / "rows.jsonl"
        self.reload()

    def reload(self) -> None:
        """Read the rows again."""
        if self.path.exists():
            lines = self.path.read_text(encoding="utf-8").splitlines()
            self.rows = [json.loads(line) for line in lines]

    def write(self, **row) -> None:
        """Append a row."""
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")
        self.rows.append(row)

    def find(self, **wanted) -> list[dict]:
        """Return the rows with these values."""
        return [row for row in self.rows if all(row.get(k) == v for k, v in wanted.items())]

    def finished(self, job: str) -> bool:
        """Return whether a job has come to its end, good or bad."""
        return bool(self.find(job=job, what="end"))

    def run(self, job: str, kind: str, limit: float, labels: dict, **details) -> dict:
        """Run a job, unless it is done; return the row that ends it."""
        if self.finished(job):
            return self.find(job=job, what="end")[-1]
        start = time.perf_counter()
        request = {"job": job, "kind": kind, "rows": str(self.path), "cache": str(self.cache)}
        request |= {"labels": labels, "limit": limit, **details}
        command = [sys.executable, "-m", "peers.worker", json.dumps(request)]
        log = self.cache / "logs" / f"{slug(job)}.txt"
        status, peak = watched(command, limit, log)
        end = {"job": job, **labels, "what": "end", "status": status, "peak_mb": peak}
        end["wall"] = round(time.perf_counter() - start, 1)
        self.reload()
        if status == "failed" and not any("error" in row for row in self.find(job=job)):
            end["error"] = last_line(log)
        self.write(**end)
        print(f"{end['wall']:7.1f} s  {peak:6.0f} MB  {status:9}  {job}", flush=True)
        return end


def slug(text: str) -> str:
    """Return a name for a file."""
    return re.sub(r"[^A-Za-z0-9.-]+", "_", text)


def last_line(log: Path) -> str:
    lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    return without_addresses(lines[-1]) if lines else "no message"


def without_addresses(text: str) -> str:
    """Return text without addresses and paths, which belong to the machine it ran on."""
    return re.sub(r"(\w+://|(?<![\w.])/)\S+", "...", text)


def watched(command: list[str], limit: float, log: Path) -> tuple[str, float]:
    """Run a command; return how it ended and its peak memory in MB.

    The command limits its own CPU time, so that other work on the machine does not decide who is
    stopped; the time by the clock is a second net.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    environment = {**os.environ, **ONE_THREAD}
    with log.open("w", encoding="utf-8") as file:
        child = subprocess.Popen(
            command, stdout=file, stderr=subprocess.STDOUT, cwd=HERE.parent, env=environment,
            start_new_session=True,
        )  # fmt: skip
    deadline, status = time.monotonic() + _PATIENCE * limit, None
    while True:
        pid, code, usage = os.wait4(child.pid, os.WNOHANG)
        if pid:
            break
        if status is None and time.monotonic() > deadline:
            status = "timed out"
            os.killpg(child.pid, signal.SIGKILL)
        time.sleep(0.05)
    child.returncode = os.waitstatus_to_exitcode(code)  # so that Popen does not wait again
    if child.returncode == -signal.SIGXCPU:
        status = "timed out"
    if status is None:
        status = "done" if child.returncode == 0 else "failed"
    return status, usage.ru_maxrss / 1024


def digest(entry: Entry) -> str:
    """Return a fingerprint of the code that decides a method's rows."""
    files = [HERE / name for name in [*SHARED, f"{entry.module}.py"]]
    if entry.package == "regcal":
        files += sorted((ROOT / "src" / "regcal").rglob("*.py"))
    text = b"".join(path.read_bytes() for path in files) + repr(entry).encode()
    return hashlib.sha1(text).hexdigest()[:8]


def run_quality(runner: Runner, entry: Entry, group: str) -> None:
    """Score a method in all cells of a group."""
    labels = {"table": "quality", "group": group, "method": entry.name}
    job = f"quality {group} {entry.name} {digest(entry)}"
    done = {(row["data"], row["base"]) for row in runner.find(job=job) if "means" in row}
    cells = [cell for cell in GROUPS[group] if cell not in done]
    extent = runner.plan.groups[group]
    details = {"method": entry.name, "slug": slug(entry.name), "folds": extent.folds}
    runner.run(job, "quality", extent.limit, labels, cells=cells, **details)


def run_cost(runner: Runner, entry: Entry) -> None:
    """Time a method at growing sizes, until it fails or runs out of time."""
    sizes = runner.plan.sizes
    if entry in OURS and not entry.name.startswith(("auto", "conditional")):
        sizes += runner.plan.own_sizes
    for n in sizes:
        job = f"cost {entry.name} {n} {digest(entry)}"
        labels = {"table": "cost", "method": entry.name, "n": n}
        details = {"method": entry.name, "slug": slug(entry.name), "n": n}
        score = n <= 1_000_000
        end = runner.run(job, "cost", runner.plan.cost_limit, labels, score=score, **details)
        if end["status"] != "done":
            break


def cpu_seconds(code: str) -> float:
    """Return the CPU time of a fresh interpreter that runs some code."""
    environment = {**os.environ, **ONE_THREAD}
    child = subprocess.Popen(
        [sys.executable, "-c", code],
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    _, code_, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(code_)
    return usage.ru_utime + usage.ru_stime if child.returncode == 0 else float("nan")


def run_imports(runner: Runner) -> None:
    """Time imports, the fastest of a few in turn."""
    statements = {"nothing": "pass", "limit": "import sklearn.linear_model, scipy.stats"}
    statements["regcal"] = "import regcal"
    statements |= {package: f"import {module}" for package, module in IMPORTS.items()}
    times = {name: float("inf") for name in statements}
    for _ in range(runner.plan.import_runs):
        for name, code in statements.items():
            times[name] = min(times[name], cpu_seconds(code))
    for name, seconds in times.items():
        runner.write(table="import", package=name, code=statements[name], seconds=seconds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="minutes instead of hours")
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument(
        "--tables", nargs="+", default=["import", "latency", "cost", "quality"],
        choices=["import", "latency", "cost", "quality"],
    )  # fmt: skip
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="methods scored at once")
    options = parser.parse_args()
    runner = Runner(QUICK if options.quick else FULL)
    plan = runner.plan
    if "import" in options.tables:
        run_imports(runner)
    if "latency" in options.tables:
        job = f"latency {digest(METHODS['gpc'])}"
        runner.run(job, "latency", 300.0, {"table": "latency"})
    chosen = [METHODS[name] for name in options.methods]
    if "cost" in options.tables:
        for entry in chosen:
            run_cost(runner, entry)
    for group, extent in plan.groups.items() if "quality" in options.tables else ():
        details = {"folds": extent.folds, "cells": GROUPS[group]}
        job = f"prepare {group} {extent.folds}"
        runner.run(job, "prepare", 7200.0, {"table": "prepare"}, **details)
        with ThreadPoolExecutor(options.jobs) as pool:
            list(pool.map(partial(run_quality, runner, group=group), chosen))


if __name__ == "__main__":
    main()
