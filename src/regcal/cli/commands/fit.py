"""``regcal fit``: train a model on a table, calibrate it and keep it."""

from typing import Annotated, Any

import typer

from regcal.cli import _options as options
from regcal.cli._console import note, show_json


def _model_names() -> list[str]:
    from regcal.cli._estimators import MODEL_NAMES

    return list(MODEL_NAMES)


def fit(
    data: Annotated[str, typer.Argument(help="Table of features and outcomes.")],
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="MODEL", help="Model file to write.")
    ],
    target: options.Target = None,
    censored: options.Censored = None,
    lower: options.Lower = None,
    upper: options.Upper = None,
    support: options.SupportEnds = "auto",
    step: options.Step = None,
    model: Annotated[
        str,
        typer.Option(
            help="bayesian-ridge, ols, gpr, forest, boosting, or your own class as module:Class, "
            "whose module is imported and run, from the working directory first.",
            autocompletion=_model_names,
        ),
    ] = "bayesian-ridge",
    calibrator: options.CalibratorName = "auto",
    covariates: options.Covariates = None,
    features: Annotated[
        str | None, typer.Option(help="Columns to predict from; all others by default.")
    ] = None,
    drop: Annotated[str | None, typer.Option(help="Columns to leave out, such as id.")] = None,
    cv: Annotated[int, typer.Option(help="Number of folds that are held out in turn.")] = 3,
    ensemble: Annotated[
        bool | None,
        typer.Option(help="Average the folds' models, or fit one on all rows. Default: by size."),
    ] = None,
    groups: Annotated[
        str | None, typer.Option(help="Column of groups whose rows belong together.")
    ] = None,
    time: Annotated[
        str | None, typer.Option(help="Column of times: hold out later rows only.")
    ] = None,
    skip_missing: options.SkipMissing = False,
    json: options.Json = False,
) -> None:
    """Train a model on a table, calibrate it on rows held out, and keep it in a file.

    Columns of texts become indicator columns. Of outcomes that are intervals, the model itself is
    fitted to the end that is known or to the middle. Then: regcal predict MODEL NEW.

    [bold]Examples[/bold]

    regcal fit data.csv --target strength --output model.regcal

    regcal fit data.csv --target y --model forest --calibrator gpc --drop id --output model.regcal

    regcal fit sales.parquet --target sales --model boosting --time date --output model.regcal

    regcal fit houses.csv --target price --model boosting --covariates age,region -o model.regcal

    regcal fit patients.csv --target days --censored alive --support 0, --output model.regcal
    """
    import regcal
    from regcal.cli._covariates import check_calibrator, covariates_in_words
    from regcal.cli._held_out import note_scores
    from regcal.cli._outcomes import OutcomeOptions, SupportOptions, note_support
    from regcal.cli._reading import open_table
    from regcal.cli._training import Training, train
    from regcal.cli._writing import check_file_can_be_written, check_nothing_is_overwritten

    outcomes = OutcomeOptions(target, censored, lower, upper)
    ends = SupportOptions.parsed(support, step)
    check_calibrator(calibrator, covariates)
    wanted = Training(
        outcomes,
        ends,
        model,
        calibrator,
        covariates,
        features,
        drop,
        cv,
        ensemble,
        groups,
        time,
        skip_missing,
    )
    check_nothing_is_overwritten({"--output": output}, {"the table": data})
    check_file_can_be_written(output)
    trained = train(wanted, open_table(data))
    regcal.save(trained, output)
    chosen = getattr(getattr(trained.model_, "selection_", None), "chosen_", calibrator)
    if json:
        result: dict[str, Any] = {"output": output, "model": model, "calibrator": chosen}
        result |= {"rows": trained.n_rows_seen_, "features": trained.inputs}
        result |= {"covariates": trained.covariates_read, "support": trained.support}
        show_json({**result, "scores": trained.scores_})
        return
    how = f"calibrated by {chosen}{covariates_in_words(trained.covariates_read) or ','}"
    note(f"Fitted {model}, {how} on {trained.n_rows_seen_} rows: {output}.")
    note_support(trained.support, ends)
    note_scores(trained)
