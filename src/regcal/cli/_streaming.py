"""Apply a model to a table of any length."""

from collections.abc import Sequence

import numpy as np

from regcal.cli._answers import Answers
from regcal.cli._console import with_progress
from regcal.cli._errors import InputError
from regcal.cli._predictions import split_names
from regcal.cli._reading import Table
from regcal.cli._rows import RowReader, distributions
from regcal.cli._writing import as_column, open_output
from regcal.tables import TableModel


def apply_model(
    model: TableModel,
    table: Table,
    answers: Answers,
    output: str,
    *,
    keep: str | None,
    skip_missing: bool,
) -> dict[str, object]:
    """Write what is asked of every row beside the columns that are kept; return what was done."""
    layout = table.layout
    reader = RowReader.of_model(model, skip_missing)
    reader.learning = False
    reader.check_names(layout)
    kept = kept_columns(table, keep)
    names = [layout.names[k] for k in kept]
    new_names = answers.names_beside(names)
    n_rows = 0
    with open_output(output, [*names, *new_names], layout) as writer:
        for batch in with_progress(table, "Predicting"):
            columns, usable = reader.of_batch(batch)
            new = _answered(model, answers, columns, usable)
            writer.write([*(batch.columns[k] for k in kept), *map(as_column, new)])
            n_rows += len(batch)
        if n_rows == 0:
            msg = f"{layout.label} has column names but no rows."
            raise InputError(msg)
    reader.tell(layout)
    return {
        "output": output,
        "rows": n_rows,
        "rows_skipped": reader.rows_skipped,
        "rows_with_crossing_quantiles": reader.rows_crossing,
        "columns": new_names,
    }


def kept_columns(table: Table, keep: str | None) -> list[int]:
    """Return the numbers of the columns that are passed on."""
    if keep is None:
        return list(range(len(table.layout.names)))
    return [table.layout.position(name, "--keep") for name in split_names(keep)]


def _answered(
    model: TableModel, answers: Answers, columns: dict[str, np.ndarray], usable: np.ndarray
) -> Sequence[np.ndarray]:
    """Return the answers for all rows of a batch, NaN for those that were left out."""
    if not usable.any():
        return [np.full(len(usable), np.nan) for _ in answers.names]
    found = answers.columns(distributions(model, columns))
    if usable.all():
        return found
    filled = [np.full(len(usable), np.nan) for _ in found]
    for target, values in zip(filled, found, strict=True):
        target[usable] = values
    return filled
