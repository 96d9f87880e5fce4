"""The paper's study on real data: every cell once, on all cores or a cluster, row by row."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from joblib import Parallel, delayed, effective_n_jobs

from regcal import datasets
from regcal.datasets import Dataset
from regcal.reproduce.cells import BASES, DATASETS, FULL, N_FOLDS, Cell, Study, Unit, grouped
from regcal.reproduce.results import open_results
from regcal.reproduce.scores import METHODS, Row, score_unit

# Units given out at a time to backends that return results only when all are done.
_BATCH = 8

_LOADERS: dict[str, Callable[[], Dataset]] = {
    "diabetes": datasets.load_diabetes,
    "boston": datasets.load_boston,
    "airfoil": datasets.load_airfoil,
    "forest_fires": datasets.load_forest_fires,
    "concrete": datasets.load_concrete,
}


def load_datasets(
    names: tuple[str, ...] = DATASETS, tell: Callable[[str], None] | None = None
) -> dict[str, Dataset]:
    """Return the study's data sets by name, without those that cannot be had here.

    Parameters
    ----------
    names : tuple of str
    tell : callable, optional
        Given the message about each data set that is left out.

    Returns
    -------
    dict from str to Dataset

    Examples
    --------
    >>> from regcal.reproduce import load_datasets
    >>> list(load_datasets(("diabetes", "airfoil")))
    ['diabetes', 'airfoil']
    """
    found = {}
    for name in names:
        if name not in _LOADERS:
            msg = f"There is no data set {name!r} in the study. Known: {', '.join(_LOADERS)}."
            raise ValueError(msg)
        try:
            found[name] = _LOADERS[name]()
        except OSError as error:
            if tell is not None:
                tell(f"{name} is left out. {error}")
    return found


def run_cell(name: str) -> Row:
    """Compute one cell of the study alone, from its name.

    Parameters
    ----------
    name : str
        Such as ``"boston/GPR/3/2/gpc/32"``: data set, base model, repetition, fold, method and
        number of thresholds, 0 for methods that have none.

    Returns
    -------
    Row
        What the whole study gives for the cell.

    Examples
    --------
    >>> from regcal.reproduce import run_cell
    >>> round(run_cell("diabetes/OLS/0/0/uncalibrated/0").log_score, 2)
    -5.5
    """
    cell = Cell.from_name(name)
    unit = cell.unit
    named = ("data set", unit.dataset, DATASETS), ("base model", unit.base, BASES)
    for what, given, known in (*named, ("method", cell.method, METHODS)):
        if given not in known:
            msg = f"There is no {what} {given!r} in the study. Known: {', '.join(known)}."
            raise ValueError(msg)
    if unit.fold >= N_FOLDS:
        msg = f"{name!r} names fold {unit.fold}. They are numbered from 0 to {N_FOLDS - 1}."
        raise ValueError(msg)
    data = load_datasets((unit.dataset,), _refuse)[unit.dataset]
    return score_unit(data, [cell])[0]


def _refuse(message: str) -> None:
    raise OSError(message)


def run_study(
    path: str | Path,
    study: Study = FULL,
    *,
    data: dict[str, Dataset] | None = None,
    n_jobs: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> dict[Cell, Row]:
    """Compute the cells that a results file lacks, and append them as they finish.

    A run that was interrupted is continued by running it again.

    Parameters
    ----------
    path : str or Path
        CSV file; made if it does not exist.
    study : Study, default=FULL
        `FULL`, `QUICK` or your own.
    data : dict from str to Dataset, optional
        By default all that `load_datasets` finds.
    n_jobs : int, optional
        As everywhere in joblib; None follows ``joblib.parallel_config``, through which Dask and
        Ray clusters take part.
    progress : callable, optional
        Called with the numbers of finished cells and of all.

    Returns
    -------
    dict from Cell to Row
        The rows of this study, in its order.
    """
    data = load_datasets() if data is None else data
    cells = study.cells(data)
    with open_results(path) as results:
        todo = grouped(cell for cell in cells if cell not in results.rows)
        done = len(cells) - sum(map(len, todo.values()))
        tell = progress or (lambda done, total: None)
        tell(done, len(cells))
        for rows in _computed(todo, data, n_jobs):
            results.append(rows)
            done += len(rows)
            tell(done, len(cells))
        return {cell: results.rows[cell] for cell in cells}


def _computed(
    todo: dict[Unit, list[Cell]], data: dict[str, Dataset], n_jobs: int | None
) -> Iterator[list[Row]]:
    """Yield the rows of units as they finish, or batch by batch where joblib cannot do that."""
    tasks: list[Any] = [
        delayed(score_unit)(data[unit.dataset], cells) for unit, cells in todo.items()
    ]
    try:
        finished = Parallel(n_jobs=n_jobs, return_as="generator_unordered", batch_size=1)
    except ValueError:
        parallel = Parallel(n_jobs=n_jobs, batch_size=1)
        size = _BATCH * effective_n_jobs(n_jobs)
        for start in range(0, len(tasks), size):
            yield from parallel(tasks[start : start + size])
    else:
        yield from finished(tasks)
