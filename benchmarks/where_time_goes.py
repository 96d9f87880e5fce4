"""Where regcal's time goes, and the least it could be. Writes benchmarks/PROFILE.md.

    OMP_NUM_THREADS=1 python benchmarks/where_time_goes.py                 # about five minutes
    OMP_NUM_THREADS=1 python benchmarks/where_time_goes.py --rows 10000    # a minute

Every task is timed without a profiler first (CPU time, least of a few) and beside its limit: what
the task cannot do without, such as one evaluation of the base model's CDF. Then cProfile says
which functions the time is spent in.
"""

import argparse
import cProfile
import os
import platform
import pstats
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import numpy as np
from gaussian_process import heavy_tailed
from sklearn.linear_model import BayesianRidge

import regcal
from regcal.datasets import load_concrete

HERE = Path(__file__).parent
N_FUNCTIONS = 6
LEVELS = [0.05, 0.5, 0.95]


@dataclass(frozen=True)
class Task:
    """Something a user waits for, and what it cannot do without."""

    name: str
    work: Callable[[], object]
    limit_name: str
    limit: Callable[[], object]
    repeats: int = 3


def cpu_time(function: Callable[[], object], repeats: int) -> float:
    """Return the least CPU time of one call."""
    times = []
    for _ in range(repeats):
        start = time.process_time()
        function()
        times.append(time.process_time() - start)
    return min(times)


def many(function: Callable[[], object], times: int) -> Callable[[], None]:
    """Return a function that calls another many times, for tasks too short to be timed alone."""

    def repeated() -> None:
        for _ in range(times):
            function()

    return repeated


def fit_tasks(n: int) -> list[Task]:
    """Return what fitting costs, beside the base's values at the points that are needed."""
    dist, y = heavy_tailed(n)
    tasks = []
    for name in ("scale", "pit", "e-beta", "gpc", "gp-density"):
        calibrator = regcal.get_calibrator(name).fit(dist[:1000], y[:1000])
        thresholds = getattr(calibrator, "thresholds_", None)
        if thresholds is None:
            limit_name, limit = "base probit at the outcomes", lambda: dist.probit(y)
        else:
            limit_name = f"base CDF at {len(thresholds)} thresholds"
            limit = lambda t=thresholds: dist.cdf(t[np.newaxis, :])  # noqa: E731
        work = lambda c=calibrator: c.fit(dist, y)  # noqa: E731
        tasks.append(Task(f"{name}: fit {n:,} rows", work, limit_name, limit))
    return tasks


def output_tasks(n: int) -> list[Task]:
    """Return what answers cost, beside the base's own."""
    dist, y = heavy_tailed(n)
    levels = np.array([LEVELS])
    tasks = []
    for name in ("pit", "e-beta", "gpc", "gp-density"):
        calibrator = regcal.get_calibrator(name).fit(dist[:1000], y[:1000])
        # transformed anew each time, so that nothing is remembered from the last one
        logpdf = lambda c=calibrator: c.transform(dist).logpdf(y)  # noqa: E731
        ppf = lambda c=calibrator: c.transform(dist).ppf(levels)  # noqa: E731
        what = f"{name}: log density of {n:,} rows"
        tasks.append(Task(what, logpdf, "base log density", lambda: dist.logpdf(y)))
        what = f"{name}: {levels.size} quantiles of {n:,} rows"
        tasks.append(Task(what, ppf, "base quantiles", lambda: dist.ppf(levels)))
    return tasks


def single_row_tasks() -> list[Task]:
    """Return what one row's quantiles cost, beside the base model's prediction of the row."""
    data = load_concrete()
    row = data.X[:1]
    base = BayesianRidge().fit(data.X, data.y)
    tasks = []
    for name, ensemble in (("scale", False), ("gpc", False), ("gpc", True)):
        model = regcal.CalibratedRegressorCV(BayesianRidge(), name, ensemble=ensemble)
        model.fit(data.X, data.y)
        what = f"{name}{', averaged over 3 folds' if ensemble else ''}: 100 single rows' quantiles"
        work = many(lambda m=model: m.predict_quantiles(row, LEVELS), 100)
        limit = many(lambda: base.predict(row, return_std=True), 100)
        tasks.append(Task(what, work, "base predict(return_std=True)", limit))
    return tasks


def short_name(function: tuple[str, int, str]) -> str:
    """Return a function's place within its package, without the machine's path."""
    file, _, name = function
    if file.startswith(("~", "<")):
        return name.replace("<built-in method ", "").replace("<method ", "").rstrip(">")
    path = Path(file)
    marks = [i for i, part in enumerate(path.parts) if part in ("regcal", "site-packages")]
    parts = (
        path.parts[marks[-1] + (path.parts[marks[-1]] != "regcal") :] if marks else path.parts[-1:]
    )
    return f"{'/'.join(parts)}:{name}"


def top_functions(work: Callable[[], object]) -> list[tuple[str, float]]:
    """Return the functions with the largest share of time of their own."""
    profile = cProfile.Profile()
    profile.runcall(work)
    stats = pstats.Stats(profile).stats
    total = sum(own for _, _, own, _, _ in stats.values())
    ranked = sorted(stats.items(), key=lambda item: item[1][2], reverse=True)
    return [(short_name(key), value[2] / total) for key, value in ranked[:N_FUNCTIONS]]


def import_lines() -> list[str]:
    """Return where the time of `import regcal` goes, by top-level package."""
    command = [sys.executable, "-X", "importtime", "-c", "import regcal"]
    answer = subprocess.run(command, capture_output=True, text=True, check=True)
    own: dict[str, float] = {}
    for line in answer.stderr.splitlines()[1:]:
        microseconds, _, module = line.removeprefix("import time:").split("|")
        package = module.strip().split(".")[0]
        own[package] = own.get(package, 0.0) + float(microseconds) / 1000
    total = sum(own.values())
    ranked = sorted(own.items(), key=lambda item: item[1], reverse=True)[:8]
    ranked += [("regcal", own["regcal"])] if "regcal" not in dict(ranked) else []
    return [f"| {package} | {100 * ms / total:.0f} % |" for package, ms in ranked]


def task_text(task: Task) -> str:
    """Measure a task and describe it."""
    task.work()
    seconds, least = cpu_time(task.work, task.repeats), cpu_time(task.limit, task.repeats)
    lines = [
        f"### {task.name}",
        "",
        f"{1e3 * seconds:.3g} ms, {seconds / max(least, 1e-9):.2g} times its limit "
        f"({task.limit_name}: {1e3 * least:.3g} ms).",
        "",
    ]
    lines += [f"- {share:.0%} `{name}`" for name, share in top_functions(task.work)]
    print(lines[0], lines[2], flush=True)
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--output", type=Path, default=HERE / "PROFILE.md")
    options = parser.parse_args()
    sections = {
        "Fitting few rows": fit_tasks(1000),
        "Fitting many rows": fit_tasks(options.rows),
        "Answers": output_tasks(options.rows),
        "Single rows": single_row_tasks(),
    }
    text = f"""# Where the time goes

Written by `python benchmarks/where_time_goes.py --rows {options.rows}` on {date.today()} with
regcal {regcal.__version__}; do not edit.
{os.cpu_count()} cores, one used; Python {platform.python_version()}. Times are CPU times without a
profiler; shares are time spent in the function itself, under cProfile.
"""
    for title, tasks in sections.items():
        text += f"\n## {title}\n\n" + "\n".join(task_text(task) for task in tasks)
    text += "\n## Import\n\n| package | share of `import regcal` |\n| --- | ---: |\n"
    text += "\n".join(import_lines()) + "\n"
    options.output.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
