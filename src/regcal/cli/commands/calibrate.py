"""``regcal calibrate``: correct predictions that stand in files."""

from typing import Annotated, Any

import typer

from regcal.cli import _options as options
from regcal.cli._console import note, show_json
from regcal.cli._errors import InputError


def calibrate(
    calibration: Annotated[
        str,
        typer.Argument(
            metavar="CAL",
            help="Table of predictions with outcomes, of rows the model has not seen.",
        ),
    ],
    target: options.Target = None,
    censored: options.Censored = None,
    lower: options.Lower = None,
    upper: options.Upper = None,
    support: options.SupportEnds = "auto",
    step: options.Step = None,
    mean: options.Mean = None,
    std: options.Std = None,
    quantiles: options.InputQuantiles = None,
    samples: options.Samples = None,
    calibrator: options.CalibratorName = "auto",
    covariates: options.Covariates = None,
    apply: Annotated[
        str | None, typer.Option(metavar="NEW", help="Table of predictions to correct.")
    ] = None,
    output: options.Output = "-",
    save: Annotated[
        str | None, typer.Option(metavar="MODEL", help="Keep the calibrator for regcal predict.")
    ] = None,
    levels: options.Levels = None,
    interval: options.Interval = None,
    below: options.Below = None,
    above: options.Above = None,
    moments: options.Moments = False,
    keep: options.Keep = None,
    skip_missing: options.SkipMissing = False,
    json: options.Json = False,
) -> None:
    """Learn from past predictions and their outcomes, and correct new predictions.

    [bold]Examples[/bold]

    regcal calibrate past.csv --target y --mean mu --std sigma --apply new.csv --output better.csv

    regcal calibrate past.csv --target y --quantiles q05,q50,q95 --apply new.csv --below 40

    regcal calibrate past.parquet --target y --samples draw_ --calibrator gpc --save model.regcal

    regcal calibrate past.csv --target y --mean mu --std sigma --covariates age,region --save model

    regcal calibrate rain.csv --target mm --samples run_ --support 0, --apply new.csv --above 0

    regcal calibrate past.csv --target days --censored alive --mean mu --std sigma --save m.regcal
    """
    import regcal
    from regcal.cli._answers import Answers
    from regcal.cli._covariates import check_calibrator, covariates_in_words
    from regcal.cli._held_out import note_scores
    from regcal.cli._learning import learned
    from regcal.cli._outcomes import OutcomeOptions, SupportOptions, note_support
    from regcal.cli._reading import open_table
    from regcal.cli._streaming import apply_model, kept_columns
    from regcal.cli._writing import check_file_can_be_written, check_nothing_is_overwritten

    outcomes = OutcomeOptions(target, censored, lower, upper)
    ends = SupportOptions.parsed(support, step)
    answers = Answers.from_options(levels, interval, below, above, moments)
    _check_streams(calibration, apply, output, json)
    check_nothing_is_overwritten(
        {"--output": output, "--save": save}, {"CAL": calibration, "--apply": apply}
    )
    if save is not None:
        check_file_can_be_written(save)
    check_calibrator(calibrator, covariates)
    new = None if apply is None else open_table(apply)
    if new is not None:
        kept_columns(new, keep)  # refuses names before anything is learnt
    named = (mean, std, quantiles, samples)
    model = learned(calibration, outcomes, ends, named, calibrator, covariates, skip_missing)
    chosen = getattr(model.calibrator_, "chosen_", calibrator)
    result: dict[str, Any] = {"calibrator": chosen, "rows": model.n_rows_seen_}
    result |= {"covariates": model.covariates_read, "support": model.support}
    result["scores"] = model.scores_
    if not json:
        given = covariates_in_words(model.covariates_read)
        note(f"Learned {chosen}{given} from {model.n_rows_seen_} rows of {model.source_}.")
        note_support(model.support, ends)
        note_scores(model)
    if save is not None:
        regcal.save(model, save)
        result["model"] = save
    if new is not None:
        result["applied"] = apply_model(
            model, new, answers, output, keep=keep, skip_missing=skip_missing
        )
    if json:
        show_json(result)


def _check_streams(calibration: str, apply: str | None, output: str, json: bool) -> None:
    if calibration == apply == "-":
        msg = "Only one of the two tables can come from standard input. Name a file for the other."
        raise InputError(msg)
    if json and apply is not None and output == "-":
        msg = "--json and the table would both go to standard output. Pass --output FILE."
        raise InputError(msg)
    if apply is None and output != "-":
        msg = "--output is where corrected predictions go. Name the table of new ones by --apply."
        raise InputError(msg)
