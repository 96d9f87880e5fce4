"""``regcal monitor``: say when predictions in a growing table stop being calibrated."""

from typing import TYPE_CHECKING, Annotated

import typer

from regcal.cli import _options as options
from regcal.cli._console import show, show_json

if TYPE_CHECKING:
    from regcal.cli._reading import Table
    from regcal.cli._watching import Watched
    from regcal.online import CalibrationMonitor

# The exit code while there is an alarm.
ALARM = 3


def monitor(
    data: Annotated[str, typer.Argument(help="Table of predictions with outcomes, oldest first.")],
    target: options.TargetOfModel = None,
    model: Annotated[
        str | None, typer.Option(help="Model file: watch its calibrated predictions.")
    ] = None,
    state: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="What is known so far: read if it exists, and written. Only rows that are new in "
            "the table are looked at; those before have to be as they were.",
        ),
    ] = None,
    reference: Annotated[
        str | None,
        typer.Option(
            metavar="TABLE",
            help="Rows with outcomes, of the same columns, that neither model nor calibrator has "
            "seen: later rows are compared with them.",
        ),
    ] = None,
    alpha: Annotated[
        float | None, typer.Option(help="Probability of a false alarm over all time; 0.05.")
    ] = None,
    censored: options.Censored = None,
    lower: options.Lower = None,
    upper: options.Upper = None,
    mean: options.Mean = None,
    std: options.Std = None,
    quantiles: options.InputQuantiles = None,
    samples: options.Samples = None,
    trust: options.Trust = None,
    skip_missing: Annotated[
        bool,
        typer.Option(
            "--skip-missing",
            help="Pass over rows with missing values for good, instead of waiting for missing "
            "outcomes and refusing missing predictions.",
        ),
    ] = False,
    json: options.Json = False,
) -> None:
    """Say when and how predictions stop being calibrated, in a table that grows.

    Rows are looked at up to the first whose outcome is missing; the next time, from there on. A
    missing prediction is refused. With an alarm, the exit code is 3.

    [bold]Examples[/bold]

    regcal monitor log.csv --target y --mean mu --std sigma --state watch.regcal

    regcal monitor log.csv --target y --model model.regcal --reference held_out.csv --json
    """
    import regcal
    from regcal.cli._answers import check_probabilities
    from regcal.cli._models import load_model
    from regcal.cli._outcomes import OutcomeOptions
    from regcal.cli._reading import open_table
    from regcal.cli._watching import check_columns, compare_with, monitor_of, watched_rows
    from regcal.cli._writing import check_file_can_be_written, check_nothing_is_overwritten

    if alpha is not None:
        check_probabilities([alpha], "--alpha")
    check_nothing_is_overwritten({"--state": state}, {"DATA": data, "--reference": reference})
    if state is not None:
        check_file_can_be_written(state)
    outcomes, named = (
        OutcomeOptions(target, censored, lower, upper),
        (mean, std, quantiles, samples),
    )
    loaded = None if model is None else load_model(model, trust)

    def watched(table: "Table") -> "Watched":
        return watched_rows(table, loaded, outcomes, named, skip_missing)

    own, log = monitor_of(state, alpha), watched(open_table(data))
    check_columns(own, log, state)
    compare_with(own, reference, watched, state)
    before = own.n_rows_seen_
    log.reader.outcomes_may_come = True
    for pit in log.pit_after(own):
        own.update(pit, skip_missing=True)
    own.log_ |= log.told()
    if state is not None and own.n_rows_seen_:
        regcal.save(own, state)
    _tell(own, own.n_rows_seen_ - before, json)
    if own.alarm_ is not None:
        raise typer.Exit(ALARM)


def _tell(own: "CalibrationMonitor", new: int, json: bool) -> None:
    """Show what was found."""
    rows, left_out = own.n_rows_seen_, len(own.log_["left_out"])
    alarm, money = own.alarm_, own.money_ if rows else 1.0
    if json:
        show_json(
            {
                "rows": rows,
                "new_rows": new,
                "rows_used": rows - left_out,
                "alarm": alarm,
                "money": money,
                "enough": 1 / own.alpha,
            }
        )
        return
    used = f" {rows - left_out} rows were used, {left_out} passed over." if left_out else ""
    show(f"{rows} rows, {new} of them new.{used}")
    show(
        f"No alarm: the evidence is {money:.3g}, and {1 / own.alpha:.3g} would be enough."
        if alarm is None
        else str(alarm)
    )
