"""Options that several commands share."""

from typing import Annotated

import typer


def _calibrator_names() -> list[str]:
    from regcal import calibrator_names

    return calibrator_names()


_SEEN, _IN, _OUT = "Outcomes in the table", "Predictions in the table", "Columns to write"

Target = Annotated[
    str | None, typer.Option(help="Column of outcomes.", show_default=False, rich_help_panel=_SEEN)
]
TargetOfModel = Annotated[
    str | None,
    typer.Option(help="Column of outcomes; a model file knows its own.", rich_help_panel=_SEEN),
]
Censored = Annotated[
    str | None,
    typer.Option(
        help="Column of truth values, beside --target: True or 1 where the outcome is only known "
        "to be at least the value (right-censored, still alive), False or 0 where the value is the "
        "outcome. For a column of events, which says the opposite, write its opposite first.",
        rich_help_panel=_SEEN,
    ),
]
Lower = Annotated[
    str | None,
    typer.Option(
        help="Column of the lower ends of intervals that hold the outcome, instead of --target; "
        "empty where there is none, equal to the upper end where the outcome is known.",
        rich_help_panel=_SEEN,
    ),
]
Upper = Annotated[
    str | None,
    typer.Option(
        help="Column of the upper ends; empty where there is none.", rich_help_panel=_SEEN
    ),
]
SupportEnds = Annotated[
    str,
    typer.Option(
        "--support",
        metavar="auto|none|LOW,HIGH",
        help="Ends at which outcomes beyond are seen, such as 0 for rain: found where outcomes "
        "pile up, none, or given; 0, is an end below only.",
        rich_help_panel=_SEEN,
    ),
]
SupportOfJudged = Annotated[
    str,
    typer.Option(
        "--support",
        metavar="auto|none|LOW,HIGH",
        help="Ends through which predictions in the table are seen; 0, is an end below only. A "
        "model file knows its own.",
        rich_help_panel=_SEEN,
    ),
]
Step = Annotated[
    str | None,
    typer.Option(
        metavar="auto|NUMBER",
        help="Distance of the values that outcomes are rounded to: 1 for counts.",
        rich_help_panel=_SEEN,
    ),
]
Mean = Annotated[str | None, typer.Option(help="Column of predicted means.", rich_help_panel=_IN)]
Std = Annotated[
    str | None, typer.Option(help="Column of predicted standard deviations.", rich_help_panel=_IN)
]
QUANTILES_HELP = (
    "Columns of predicted quantiles, such as q05,q50,q95 or 'q*'. Levels are taken from the names; "
    "if those do not tell: low=0.05,mid=0.5,high=0.95."
)
InputQuantiles = Annotated[
    str | None,
    typer.Option("--quantiles", "--quantile-columns", help=QUANTILES_HELP, rich_help_panel=_IN),
]
QuantileColumns = Annotated[
    str | None, typer.Option("--quantile-columns", help=QUANTILES_HELP, rich_help_panel=_IN)
]
Samples = Annotated[
    str | None,
    typer.Option(
        help="Columns of draws: names, a common start such as draw_, or a pattern such as 'draw*'.",
        rich_help_panel=_IN,
    ),
]

Covariates = Annotated[
    str | None,
    typer.Option(
        metavar="NAMES|all",
        help="Columns, such as age,region, given which the predictions are to be right: numbers or "
        "texts, which may be missing.",
    ),
]
CovariatesOfModel = Annotated[
    str | None,
    typer.Option(
        metavar="NAMES",
        help="Columns of covariates, in the order in which the model has learnt them, if they have "
        "other names here.",
        rich_help_panel=_IN,
    ),
]

LEVELS_HELP = "Quantiles to write, such as 0.05,0.5,0.95 (which is the default)."
Levels = Annotated[str | None, typer.Option(help=LEVELS_HELP, rich_help_panel=_OUT)]
LevelsOfPredict = Annotated[
    str | None, typer.Option("--quantiles", "--levels", help=LEVELS_HELP, rich_help_panel=_OUT)
]
Interval = Annotated[
    list[str] | None,
    typer.Option(
        help="Central interval with this probability, such as 0.9: lower_90, upper_90.",
        rich_help_panel=_OUT,
    ),
]
Below = Annotated[
    list[str] | None,
    typer.Option(help="P(Y <= t) for this t; may be repeated.", rich_help_panel=_OUT),
]
Above = Annotated[
    list[str] | None,
    typer.Option(help="P(Y > t) for this t; may be repeated.", rich_help_panel=_OUT),
]
Moments = Annotated[
    bool,
    typer.Option(
        "--moments", help="Mean and standard deviation; much slower.", rich_help_panel=_OUT
    ),
]
Keep = Annotated[
    str | None,
    typer.Option(
        help="Columns of the table to pass on, such as id,date; all by default.",
        rich_help_panel=_OUT,
    ),
]
Output = Annotated[
    str,
    typer.Option("--output", "-o", help="File to write, .csv or .parquet; - is standard output."),
]

CalibratorName = Annotated[
    str,
    typer.Option(
        help="Method: identity, scale, pit, isotonic, e-logistic, e-beta, e-isotonic, "
        "dirichlet, gpc, gpc-paper, gp-density, conditional, auto.",
        autocompletion=_calibrator_names,
        show_default=True,
    ),
]
Trust = Annotated[
    list[str] | None,
    typer.Option(
        help="Full name of a class, neither regcal's nor scikit-learn's, that the model file may "
        "use; may be repeated. Trust only what you would run."
    ),
]
SkipMissing = Annotated[
    bool,
    typer.Option(
        "--skip-missing",
        help="Leave out rows with missing values instead of refusing the table; "
        "in what is written, they have empty answers.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Write the result as JSON.")]
