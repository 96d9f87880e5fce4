"""``regcal report``: the HTML page."""

from typing import Annotated

import typer

from regcal.cli import _options as options
from regcal.cli._console import note, show_json


def report(
    data: Annotated[str, typer.Argument(help="Table with outcomes.")],
    target: options.TargetOfModel = None,
    model: Annotated[
        str | None, typer.Option(help="Model file: show its predictions before and after.")
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
    output: Annotated[str, typer.Option("--output", "-o", help="Page to write.")] = "report.html",
    title: Annotated[str, typer.Option(help="Title of the page.")] = "Calibration report",
    trust: options.Trust = None,
    skip_missing: options.SkipMissing = False,
    json: options.Json = False,
) -> None:
    """Write an HTML page that shows whether predictions are calibrated, and where not.

    [bold]Examples[/bold]

    regcal report past.csv --target y --mean mu --std sigma --output report.html

    regcal report test.csv --model model.regcal --title "Strength of concrete"
    """
    import regcal
    from regcal.cli._known_outcomes import read_known_outcomes
    from regcal.cli._outcomes import OutcomeOptions, SupportOptions, note_support
    from regcal.cli._writing import check_nothing_is_overwritten, complete_file

    check_nothing_is_overwritten({"--output": output}, {"the table": data, "the model file": model})
    outcomes = OutcomeOptions(target, censored, lower, upper)
    ends, named = SupportOptions.parsed(support, step), (mean, std, quantiles, samples)
    known = read_known_outcomes(data, model, outcomes, ends, named, covariates, trust, skip_missing)
    *before, (name, dist) = known.dists.items()
    with complete_file(output) as part:
        regcal.report(
            known.y,
            dist,
            before[0][1] if before else None,
            part,
            title=title,
            target_name=known.target,
            names=[*(one for one, _ in before), name],
        )
    if json:
        show_json({"output": output, "rows": len(known.y), "support": known.support})
    else:
        note_support(known.support, ends)
        note(f"Wrote {output}: open it in a browser.")
