"""``regcal evaluate``: scores of predictions whose outcomes are known."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from regcal.cli import _options as options
from regcal.cli._console import show, show_json, show_table

if TYPE_CHECKING:
    from regcal.metrics.compare import Comparison


def evaluate(
    data: Annotated[str, typer.Argument(help="Table with outcomes.")],
    target: options.TargetOfModel = None,
    model: Annotated[
        str | None, typer.Option(help="Model file: judge its predictions before and after.")
    ] = None,
    censored: options.Censored = None,
    lower: options.Lower = None,
    upper: options.Upper = None,
    support: options.SupportOfJudged = "none",
    step: options.Step = None,
    mean: options.Mean = None,
    std: options.Std = None,
    quantiles: options.InputQuantiles = None,
    samples: options.Samples = None,
    covariates: options.CovariatesOfModel = None,
    coverage: Annotated[float, typer.Option(help="Of the intervals that are judged.")] = 0.9,
    trust: options.Trust = None,
    skip_missing: options.SkipMissing = False,
    json: options.Json = False,
) -> None:
    """Score predictions against outcomes, with standard errors.

    [bold]Examples[/bold]

    regcal evaluate past.csv --target y --mean mu --std sigma

    regcal evaluate test.csv --model model.regcal --json

    regcal evaluate past.csv --target days --censored alive --quantiles 'q*'
    """
    import regcal
    from regcal.cli._answers import check_probabilities
    from regcal.cli._known_outcomes import read_known_outcomes
    from regcal.cli._outcomes import OutcomeOptions, SupportOptions
    from regcal.metrics.compare import table_cells

    check_probabilities([coverage], "--coverage")
    outcomes = OutcomeOptions(target, censored, lower, upper)
    ends, named = SupportOptions.parsed(support, step), (mean, std, quantiles, samples)
    known = read_known_outcomes(data, model, outcomes, ends, named, covariates, trust, skip_missing)
    table = regcal.compare(known.y, known.dists, coverage=coverage)
    if json:
        show_json(_for_programs(table) | {"support": known.support})
        return
    models = table.models
    gaps = [f"{name} - {models[0]}" for name in models[1:]]
    show_table(("", *models, *gaps, "better"), map(table_cells, table.metrics))
    show(f"{table.n_rows} rows; ± is one standard error.")
    for remark in table.notes:
        show(remark)
    if known.support:
        show(f"Outcomes: {known.support.described()}.")


def _for_programs(table: "Comparison") -> dict[str, Any]:
    metrics = {
        metric.name: {
            "better": metric.better,
            "values": dict(zip(table.models, metric.values.tolist(), strict=True)),
            "standard_errors": dict(
                zip(table.models, metric.standard_errors.tolist(), strict=True)
            ),
        }
        for metric in table.metrics
    }
    return {"rows": table.n_rows, "metrics": metrics, "notes": table.notes}
