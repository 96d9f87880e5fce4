"""Learning a calibrator from predictions and outcomes in a table."""

import regcal
from regcal.cli._covariates import covariate_columns, covariate_names
from regcal.cli._held_out import hold_out, scores_on_held_out_rows
from regcal.cli._outcomes import OutcomeOptions, SupportOptions
from regcal.cli._predictions import prediction_columns
from regcal.cli._reading import open_table, read_columns
from regcal.cli._rows import RowReader, fitted
from regcal.tables import TableCalibrator


def learned(
    calibration: str,
    outcomes: OutcomeOptions,
    ends: SupportOptions,
    named: tuple[str | None, str | None, str | None, str | None],
    calibrator: str,
    covariates: str | None,
    skip_missing: bool,
) -> TableCalibrator:
    """Return a calibrator fitted on all rows, with scores of its method on rows held out."""
    method = regcal.get_calibrator(calibrator, **ends.parameters)
    table = open_table(calibration)
    target = outcomes.columns_of(table.layout)
    layout = table.layout
    columns = prediction_columns(layout, *named)
    others = [name for name in layout.names if name not in (*columns.names, *target.names)]
    names = covariate_names(covariates, others, "the columns beside predictions and outcomes")
    arrays = read_columns(table, list(dict.fromkeys((*columns.names, *target.names, *names))))
    model = TableCalibrator(columns, method, target, covariate_columns(names, arrays, layout))
    reader = RowReader.of_model(model, skip_missing, with_outcomes=True)
    reader.support = ends.given
    rows = reader.of_columns(arrays, layout)
    reader.tell(layout)
    fitted(model, rows)
    model.source_ = layout.label
    model.scores_ = scores_on_held_out_rows(model, rows, hold_out(len(rows[model.inputs[0]])))
    return model
