"""One job of the benchmark in a process of its own; appends rows to a file as they finish."""

import json
import resource
import sys
import time
import traceback
from pathlib import Path

import numpy as np

from peers import data, scoring
from peers.catalogue import METHODS

TIMED_LEVELS = np.arange(1, 10) / 10
TIMED_POINTS = np.linspace(-2.0, 2.0, 9)  # in units of the base's spread
N_SCORED = 10_000

# Runs shorter than this are repeated, and the fastest counts.
_SHORT, _REPEATS = 0.3, 100


class Rowbook:
    """Appends rows to a file, each with the job's own labels."""

    def __init__(self, path: Path, labels: dict) -> None:
        self.path = path
        self.labels = labels

    def write(self, **row) -> None:
        """Append a row at once, so that a job that is stopped leaves what it finished."""
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps({**self.labels, **row}) + "\n")


def prepare(book: Rowbook, job: dict) -> None:
    for name, base in job["cells"]:
        try:
            data.prepare_cell(Path(job["cache"]), name, base, job["folds"])
        except OSError as error:
            book.write(data=name, base=base, error=str(error))


def quality(book: Rowbook, job: dict) -> None:
    """Score a method in every cell that is not done."""
    cache = Path(job["cache"])
    for name, base in job["cells"]:
        paths = [data.fold_path(cache, name, base, fold) for fold in range(job["folds"])]
        if not all(path.exists() for path in paths):
            continue
        start = time.process_time()
        try:
            scores, unnormalised = _scored_folds(job["method"], [data.Split.load(p) for p in paths])
        except Exception as error:
            book.write(data=name, base=base, error=one_line(error))
            continue
        seconds = time.process_time() - start
        path = cache / "scores" / f"{job['slug']}-{name}-{base}.npz"
        path.parent.mkdir(parents=True, exist_ok=True)
        np.savez(path, **scores)
        means = {key: float(np.mean(values)) for key, values in scores.items()}
        book.write(
            data=name, base=base, seconds=seconds, unnormalised=unnormalised, scores=str(path.name),
            means=means,
        )  # fmt: skip


def _scored_folds(name: str, splits: list[data.Split]) -> tuple[dict, float | None]:
    """Return scores of all test rows, and the share of rows whose density has no unit mass."""
    parts, unnormalised = [], []
    for split in splits:
        method = METHODS[name].make()
        method.fit(split.held_out, split.y)
        parts.append(scoring.score(method, split.new, split.y_new, split.spread))
        if "density" in method.outputs and not unnormalised:
            unnormalised.append(scoring.unnormalised_rows(method, split.new, split.y_new))
    scores = {key: np.concatenate([part[key] for part in parts]) for key in parts[0]}
    return scores, (unnormalised[0] if unnormalised else None)


def cost(book: Rowbook, job: dict) -> None:
    """Time fit and outputs at one number of rows, then score some of the new rows."""
    n = job["n"]
    n_features = 4 if n <= 1_000_000 else 0
    held_out, y = data.simulated(n, seed=1, n_features=n_features)
    new, y_new = data.simulated(max(n, N_SCORED), seed=2, n_features=n_features)
    small, y_small = data.simulated(200, seed=3, n_features=n_features)
    entry = METHODS[job["method"]]
    first = entry.make()
    first.fit(small, y_small)  # what is done once per process is not counted
    for output in first.outputs:
        _ask(first, output, small, y_small)
    method, seconds = _timed(lambda: _fitted(entry, held_out, y))
    book.write(what="fit", seconds=seconds)
    for output in method.outputs:
        _, seconds = _timed(lambda output=output: _ask(method, output, new[:n], y_new[:n]))
        book.write(what=output, seconds=seconds)
    if job["score"]:
        some, y_some = new[:N_SCORED], y_new[:N_SCORED]
        spread = float(np.subtract(*np.quantile(y, [0.75, 0.25])))
        scores = scoring.score(method, some, y_some, spread)
        scores["truth"] = data.true_log_density(some, y_some)
        path = Path(job["cache"]) / "scores" / f"{job['slug']}-simulated-{n}.npz"
        path.parent.mkdir(parents=True, exist_ok=True)
        np.savez(path, **scores)
        means = {key: float(np.mean(values)) for key, values in scores.items()}
        book.write(what="scores", scores=path.name, means=means)


def _fitted(entry, rows, y):
    method = entry.make()
    method.fit(rows, y)
    return method


def _ask(method, output: str, rows, y: np.ndarray):
    if output == "density":
        return method.log_density(rows, y)
    if output == "quantiles":
        return method.quantiles(rows, TIMED_LEVELS)
    return method.cdf(rows, rows.loc[:, np.newaxis] + rows.scale[:, np.newaxis] * TIMED_POINTS)


def _timed(function):
    """Return the result and the CPU time; of short runs the mean of many.

    Some systems count CPU time in steps of milliseconds.
    """
    start, repeats = time.process_time(), 0
    while repeats == 0 or (time.process_time() - start < _SHORT and repeats < _REPEATS):
        result = function()
        repeats += 1
    return result, (time.process_time() - start) / repeats


def latency(book: Rowbook, job: dict) -> None:
    """Time quantiles of a single row against the base model's own prediction."""
    from sklearn.linear_model import BayesianRidge

    import regcal

    concrete = regcal.datasets.load_concrete()
    row, levels = concrete.X[:1], [0.05, 0.5, 0.95]
    base = BayesianRidge().fit(concrete.X, concrete.y)
    book.write(what="base", seconds=_fastest(lambda: base.predict(row, return_std=True)))
    for calibrator in ("identity", "scale", "pit", "e-beta", "gpc", "gp-density", "auto"):
        for ensemble in (False, True):
            model = regcal.CalibratedRegressorCV(BayesianRidge(), calibrator, ensemble=ensemble)
            model.fit(concrete.X, concrete.y)
            seconds = _fastest(lambda model=model: model.predict_quantiles(row, levels))
            book.write(what=calibrator, ensemble=ensemble, seconds=seconds)


def _fastest(function, repeats: int = 200) -> float:
    function()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
        if sum(times) > 10.0:
            break
    return min(times)


def one_line(error: Exception) -> str:
    """Return the kind and the first line of an error."""
    return f"{type(error).__name__}: {str(error).strip().splitlines()[0] if str(error) else ''}"


def main() -> None:
    job = json.loads(sys.argv[1])
    book = Rowbook(Path(job["rows"]), {"job": job["job"], **job["labels"]})
    resource.setrlimit(resource.RLIMIT_CPU, (int(job["limit"]), int(job["limit"]) + 5))
    kinds = {"prepare": prepare, "quality": quality, "cost": cost, "latency": latency}
    try:
        kinds[job["kind"]](book, job)
    except Exception as error:
        traceback.print_exc()
        book.write(error=one_line(error))
        sys.exit(1)


if __name__ == "__main__":
    main()
