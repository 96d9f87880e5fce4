"""``regcal predict``: apply a model file to a table."""

from typing import Annotated

import typer

from regcal.cli import _options as options
from regcal.cli._console import note, show_json
from regcal.cli._errors import InputError


def predict(
    model: Annotated[str, typer.Argument(help="File by regcal fit or regcal calibrate --save.")],
    data: Annotated[str, typer.Argument(metavar="NEW", help="Table to predict.")],
    quantiles: options.LevelsOfPredict = None,
    interval: options.Interval = None,
    below: options.Below = None,
    above: options.Above = None,
    moments: options.Moments = False,
    keep: options.Keep = None,
    output: options.Output = "-",
    mean: options.Mean = None,
    std: options.Std = None,
    quantile_columns: options.QuantileColumns = None,
    samples: options.Samples = None,
    covariates: options.CovariatesOfModel = None,
    trust: options.Trust = None,
    skip_missing: options.SkipMissing = False,
    json: options.Json = False,
) -> None:
    """Predict a table of any length by a model file.

    A model by regcal fit needs the columns of features; one by regcal calibrate needs the columns
    of predictions and covariates, under the names it was learnt with unless others are given.

    [bold]Examples[/bold]

    regcal predict model.regcal new.csv --output predicted.csv

    regcal predict model.regcal new.csv --quantiles 0.1,0.5,0.9 --above 40 --keep id

    cat new.csv | regcal predict model.regcal - --interval 0.9 > predicted.csv
    """
    from regcal.cli._answers import Answers
    from regcal.cli._models import load_model, model_for_table
    from regcal.cli._reading import open_table
    from regcal.cli._streaming import apply_model
    from regcal.cli._writing import check_nothing_is_overwritten

    if json and output == "-":
        msg = "--json and the table would both go to standard output. Pass --output FILE."
        raise InputError(msg)
    answers = Answers.from_options(quantiles, interval, below, above, moments)
    check_nothing_is_overwritten({"--output": output}, {"the model file": model, "the table": data})
    loaded = load_model(model, trust)
    table = open_table(data)
    ready = model_for_table(
        loaded,
        table.layout,
        mean=mean,
        std=std,
        quantiles=quantile_columns,
        samples=samples,
        covariates=covariates,
    )
    result = apply_model(ready, table, answers, output, keep=keep, skip_missing=skip_missing)
    if json:
        show_json(result)
    elif output != "-":
        note(f"Wrote {result['rows']} rows to {output}.")
