"""Write the report: compute its content, fill the template, save one file."""

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

from regcal._validation import Array, check_weights
from regcal._version import __version__
from regcal.audit import Audit
from regcal.audit.findings import shown_p
from regcal.explanation import Explanation
from regcal.metrics._inputs import check_level, checked_outcomes
from regcal.metrics.thresholds import DEFAULT_THRESHOLDS
from regcal.report.content import Content, compute_content
from regcal.report.verdict import verdict_of


def report(
    y: Any,
    dist: Any,
    before: Any = None,
    path: str | Path = "report.html",
    *,
    title: str = "Calibration report",
    target_name: str = "y",
    names: Sequence[str] | None = None,
    row_names: Sequence[Any] | None = None,
    thresholds: Any = DEFAULT_THRESHOLDS,
    audit: Audit | None = None,
    explanation: Explanation | None = None,
    intervals: Mapping[float, Any] | None = None,
    sample_weight: Any = None,
    random_state: Any = 0,
) -> Path:
    """Write a self-contained HTML page that says whether predictions are calibrated.

    It opens by double click and asks no server for anything: verdict in words, table of scores,
    interactive figures, and an explorer in which one reads P(Y <= t) of single rows.

    Parameters
    ----------
    y : array-like of shape (n_rows,), or Outcomes
        Outcomes of rows that neither model nor calibrator has seen. The page says how censored
        ones were counted.
    dist : Distribution or anything `as_distribution` takes
        The predictions to judge.
    before : Distribution or anything `as_distribution` takes, optional
        The same rows before calibration, to show what changed.
    path : str or Path, default="report.html"
        File to write.
    title : str, default="Calibration report"
    target_name : str, default="y"
        What the target is called in the page.
    names : sequence of str, optional
        Names of the predictions, in the order in which they are shown: ``("before", "after")`` by
        default, or ``("model",)`` without `before`.
    row_names : sequence of length n_rows, optional
        What rows are called in the explorer; their numbers by default.
    thresholds : int, grid or array-like, default=QuantileGrid(16)
        Where threshold calibration is judged.
    audit : Audit, optional
        What `regcal.audit` found in these rows of `dist`, for a section on groups and covariates.
    explanation : Explanation, optional
        What `regcal.explain` says of the model before calibration, for a section on where it was
        wrong.
    intervals : mapping from float to array-like of shape (n_rows, 2), optional
        Intervals with a guarantee, by what they promise, for a section on what became of it:
        ``{0.9: model.predict_interval(X, 0.9, guarantee=True)}``.
    sample_weight : array-like of shape (n_rows,), optional
    random_state : int, RandomState, Generator or None, default=0
        For simulated tests, and for the choice of rows where there are many.

    Returns
    -------
    Path
        The file that was written.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> import regcal
    >>> y = np.random.default_rng(0).normal(size=200)
    >>> dist = regcal.Normal(np.zeros(200), np.ones(200))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = regcal.report(y, dist, path=folder + "/report.html")
    ...     "is calibrated, as far as 200 rows can tell" in file.read_text(encoding="utf-8")
    True
    """
    seen = [checked_outcomes(y, one) for one in (before, dist) if one is not None]
    outcomes, dists = seen[0][0], [one for _, one in seen]
    labels = _checked_names(names, len(dists))
    weights = check_weights(sample_weight, len(outcomes))
    _check_audit(audit, int(np.count_nonzero(weights)))
    if explanation is not None and not isinstance(explanation, Explanation):
        msg = (
            "explanation must be what regcal.explain(model, X, …) returned, got "
            f"{type(explanation).__name__}."
        )
        raise TypeError(msg)
    file = Path(path)
    if not file.parent.is_dir() or file.is_dir():
        msg = f"Cannot write the report to {str(file)!r}: name a file in a folder that exists."
        raise FileNotFoundError(msg)
    content = compute_content(
        outcomes,
        dict(zip(labels, dists, strict=True)),
        weights,
        thresholds=thresholds,
        row_names=_checked_row_names(row_names, len(outcomes)),
        audit=audit,
        explanation=explanation,
        intervals=_checked_intervals(intervals, len(outcomes)),
        random_state=random_state,
    )
    file.write_text(_render(content, str(title), str(target_name)), encoding="utf-8")
    return file


def _checked_names(names: Sequence[str] | None, n_models: int) -> list[str]:
    if names is None:
        return ["before", "after"] if n_models == 2 else ["model"]
    labels = [names] if isinstance(names, str) else [str(name) for name in names]
    if len(set(labels)) != n_models:
        msg = f"Got names {labels!r} for {n_models} prediction(s). Pass one different name each."
        raise ValueError(msg)
    return labels


def _check_audit(audit: Audit | None, n_rows: int) -> None:
    if audit is not None and not isinstance(audit, Audit):
        msg = f"audit must be what regcal.audit(y, dist, …) returned, got {type(audit).__name__}."
        raise TypeError(msg)
    if audit is not None and audit.n_rows != n_rows:
        msg = (
            f"The audit is of {audit.n_rows} rows and the report of {n_rows}. Audit the same rows, "
            "with the same weights."
        )
        raise ValueError(msg)


def _checked_intervals(intervals: Mapping[float, Any] | None, n_rows: int) -> dict[float, Array]:
    checked = {}
    for promised, ends in ({} if intervals is None else intervals).items():
        pairs = np.asarray(ends, dtype=np.float64)
        if pairs.shape != (n_rows, 2):
            msg = (
                f"Intervals of {promised} have the shape {pairs.shape}. Pass lower and upper ends, "
                f"({n_rows}, 2): {{0.9: model.predict_interval(X, 0.9, guarantee=True)}}."
            )
            raise ValueError(msg)
        checked[check_level(promised, "intervals")] = pairs
    return checked


def _checked_row_names(row_names: Sequence[Any] | None, n_rows: int) -> list[str] | None:
    if row_names is None:
        return None
    if len(row_names) != n_rows:
        msg = f"Got {len(row_names)} row names for {n_rows} rows. Pass one per row."
        raise ValueError(msg)
    return [str(name) for name in row_names]


def _render(content: Content, title: str, target_name: str) -> str:
    """Fill the template; all text from users passes through its escaping."""
    from jinja2 import Environment, StrictUndefined

    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True)
    environment.filters["p_value"] = shown_p
    scripts = [_chart_library(), _static("report.js")]
    return environment.from_string(_static("template.html")).render(
        title=title,
        target=target_name,
        content=content,
        verdict=verdict_of(content, target_name),
        data=_json_for_html({"target": target_name, **content.chart_data()}),
        scripts=scripts,
        script_hashes=[_content_hash(script) for script in scripts],
        style=_static("report.css"),
        chart_licence=_static("LICENSE-chart.js.txt"),
        version=__version__,
    )


def _static(name: str) -> str:
    return resources.files("regcal.report").joinpath("static", name).read_text(encoding="utf-8")


def _chart_library() -> str:
    """Return the charting library without its pointer to a source map that is not there."""
    return _static("chart.umd.min.js").partition("//# sourceMappingURL")[0]


def _content_hash(script: str) -> str:
    """Return a script's hash as a content security policy names it."""
    digest = hashlib.sha256(script.encode("utf-8")).digest()
    return "sha256-" + base64.b64encode(digest).decode("ascii")


def _json_for_html(data: dict[str, Any]) -> str:
    """Return JSON that cannot end the script element it is put into."""
    text = json.dumps(_plain(data), allow_nan=False, separators=(",", ":"))
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def _plain(value: Any) -> Any:
    """Return lists and numbers that JSON knows; what is not finite becomes null."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, np.ndarray):
        return _plain(value.tolist())
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float):
        return float(f"{value:.5g}") if np.isfinite(value) else None
    return value
