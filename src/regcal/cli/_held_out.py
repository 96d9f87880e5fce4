"""How a model does on rows that were held out, for people and for model files."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import clone

import regcal
from regcal import AutoCalibrator, Distribution, Outcomes
from regcal.cli._console import note, note_table
from regcal.cli._rows import Columns, distributions, fitted
from regcal.metrics import interval_coverage
from regcal.notebook import rows_text
from regcal.tables import HeldOutScore, TableCalibrator, TableModel, outcome_columns

# Every fifth row is held out to judge, if that leaves enough to judge by.
_SHARE = 5
_FEWEST_ROWS = 100


def hold_out(n_rows: int) -> np.ndarray:
    """Return which rows, dealt at random and always in the same way, are held out."""
    return np.random.default_rng(0).permutation(n_rows) % _SHARE == 0


def scores_on_held_out_rows(
    model: TableModel, columns: Columns, held_out: np.ndarray, **options: Any
) -> list[HeldOutScore]:
    """Fit a copy of a fitted model without some rows, by the method it keeps, and judge it on them.

    A copy that chose anew, from fewer rows, would often be judged for another method.
    """
    if held_out.sum() * _SHARE < _FEWEST_ROWS:
        return []
    rest = {name: column[~held_out] for name, column in columns.items()}
    judged = {name: column[held_out] for name, column in columns.items()}
    own = {name: value[~held_out] for name, value in options.items() if value is not None}
    copy = fitted(_with_kept_method(model), rest, **own)
    y = outcome_columns(model.target)(judged)
    before, after = (distributions(copy, judged, calibrated=after) for after in (False, True))
    return held_out_scores(y, before, after)


def _with_kept_method(model: TableModel) -> TableModel:
    """Return a copy, not fitted, that makes no choice of a method but takes the one made."""
    if not was_chosen(model):
        return clone(model)
    if isinstance(model, TableCalibrator):
        return clone(model).set_params(calibrator=clone(model.calibrator_.calibrator_))
    return clone(model).set_params(model__calibrator=clone(model.model_.members_[0].calibrator))


def was_chosen(model: TableModel) -> bool:
    """Return whether the method of a fitted model was chosen by its rows."""
    if isinstance(model, TableCalibrator):
        return isinstance(model.calibrator_, AutoCalibrator)
    return hasattr(model.model_, "selection_")


def held_out_scores(y: Any, before: Distribution, after: Distribution) -> list[HeldOutScore]:
    """Return the scores that a model file keeps; of censored rows, the log score alone.

    It is the one to compare by: the CRPS of censored rows is not proper.
    """

    def score(name: str, better: str, metric: Any) -> HeldOutScore:
        first, second = (float(np.mean(metric(y, dist))) for dist in (before, after))
        return HeldOutScore(name, first, second, better, len(y))

    scores = [score("log score", "larger", regcal.log_score)]
    if Outcomes.of(y).exact_rows.all():
        y = Outcomes.of(y).values
        scores += [
            score("CRPS", "smaller", regcal.crps),
            score("coverage 90 %", "90 %", lambda y, dist: interval_coverage(y, dist, 0.9)),
        ]
    return scores


def note_scores(model: TableModel) -> None:
    """Tell people how calibration did on rows that were held out."""
    scores: Sequence[HeldOutScore] = model.scores_
    if not scores:
        note("There are too few rows to hold some out and judge by them.")
        note(f"Rows to learn from: {rows_text(model.n_rows_seen_)}.")
        return
    rows = [(s.name, f"{s.before:.4g}", f"{s.after:.4g}", s.better) for s in scores]
    note_table(("", "before", "after", "better"), rows)
    whole = "the method was chosen and the model fitted with all rows"
    if not was_chosen(model):
        whole = "the model itself uses all rows"
    note(f"On {scores[0].rows} rows that were held out to judge; {whole}.")
