"""What notebooks show of an object: a card with figures and pictures, drawn as inline SVG.

Everything is inside the text: no scripts, no fonts, nothing is loaded. Text and lines take the
colour of their surroundings, so that light and dark pages both work.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial, singledispatch
from html import escape
from typing import Any

import numpy as np
from scipy.special import ndtr, ndtri

from regcal._validation import Array
from regcal.audit import Audit
from regcal.audit.findings import shown_p
from regcal.binary import BetaCalibrator
from regcal.calibrators import (
    AutoCalibrator,
    Calibrator,
    ConditionalCalibrator,
    DensityCalibrator,
    DirichletCalibrator,
    GPCalibrator,
    IsotonicCalibrator,
    OneVsRestCalibrator,
    PaperGPCalibrator,
    PITCalibrator,
    ScaleCalibrator,
    SinhArcsinhCalibrator,
    StackCalibrator,
    Support,
)
from regcal.calibrators.few_rows import FEW_ROWS, coverage_error
from regcal.calibrators.one_vs_rest import DecodedMaps
from regcal.distributions import Distribution
from regcal.explanation import Explanation
from regcal.maps import PiecewiseMap, ProbitMap, ScaleMap
from regcal.regressor import CalibratedRegressorCV, NormalResidualRegressor

# Contrasts with white and with black alike.
_ACCENT = "#3b82c4"
_DASHES = ("", "5 3", "1.5 2.5")

_STYLE = """<style>
.regcal-card{color:inherit;font:13px/1.5 system-ui,sans-serif;margin:.4em 0;max-width:100%;
overflow-x:auto}
.regcal-card table{border-collapse:collapse;margin:.2em 0;color:inherit;background:none}
.regcal-card caption{caption-side:top;text-align:left;color:inherit;padding:0 0 .2em}
.regcal-card th,.regcal-card td{padding:.1em .7em .1em 0;text-align:right;border:0;color:inherit;
background:none;font-variant-numeric:tabular-nums;white-space:nowrap;vertical-align:middle}
.regcal-card thead th{font-weight:normal;opacity:.75;border-bottom:1px solid currentColor}
.regcal-card tbody th{font-weight:normal;text-align:left;opacity:.75}
.regcal-card .regcal-words td{text-align:left;white-space:normal}
.regcal-card svg{display:block;overflow:visible}
.regcal-side{display:flex;flex-wrap:wrap;gap:.6em 2em;align-items:flex-start}
</style>"""

# Rows of a batch that are shown, and points at which their densities are drawn.
_ROWS_SHOWN = 5
_N_POINTS = 121

# Segments of an audit that are shown.
_SEGMENTS_SHOWN = 10
_SHOWN_LEVELS = np.array([[0.05, 0.5, 0.95]])
_OUTER_LEVELS = np.array([[0.005, 0.995]])

# Predicted probabilities at which pictures of maps are drawn; 0 and 1 are added.
_DRAWN_LEVELS = np.linspace(0.0, 1.0, 61)[1:-1]

# Where maps of (t, q) are drawn: at 10, 50 and 90 % of the targets' range, as shares of the axis.
_DRAWN_TARGETS = np.array([0.3, 0.5, 0.7])

Figures = list[tuple[str, str]]


@singledispatch
def html_of(value: Any) -> str:
    """Return the card of a batch of distributions, an audit or an estimator, as HTML.

    An estimator that has not learnt anything has none: the text is empty.

    Examples
    --------
    >>> from regcal import Normal, ScaleCalibrator
    >>> calibrator = ScaleCalibrator()
    >>> html_of(calibrator)
    ''
    >>> "factor on the spread" in html_of(calibrator.fit(Normal([0.0, 0.0], 1.0), [1.0, 2.0]))
    True
    """
    msg = f"There is no card for a {type(value).__name__}."
    raise TypeError(msg)


# ---------------------------------------------------------------------------------- pieces of HTML


def number(value: Any) -> str:
    """Return a number with four digits, in words that fit into a table.

    Examples
    --------
    >>> number(1234.5678), number(float("inf"))
    ('1235', '∞')
    """
    value = float(value)
    if np.isnan(value):
        return "unknown"
    if np.isinf(value):
        return "∞" if value > 0 else "−∞"
    return f"{value:.4g}".replace("-", "−")


def card(title: str, *parts: str) -> str:
    """Return a card: a title, which is escaped, above pieces of HTML."""
    name = escape(title)
    body = "".join(parts)
    return (
        f'{_STYLE}<div class="regcal-card" role="group" aria-label="{name}">'
        f"<div><strong>{name}</strong></div>{body}</div>"
    )


def table(header: Sequence[str], rows: Sequence[Sequence[str]], note: str = "") -> str:
    """Return a table whose cells are HTML already; the first cell of a row names it."""
    head = "".join(f'<th scope="col">{cell}</th>' for cell in header)
    lines = [
        f'<tr><th scope="row">{first}</th>{"".join(f"<td>{cell}</td>" for cell in cells)}</tr>'
        for first, *cells in rows
    ]
    caption = f"<caption>{note}</caption>" if note else ""
    return f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{''.join(lines)}</tbody></table>"


def facts(pairs: Sequence[tuple[str, str]]) -> str:
    """Return a table of names and values, which are escaped."""
    lines = [
        f'<tr><th scope="row">{escape(name)}</th><td>{escape(value)}</td></tr>'
        for name, value in pairs
    ]
    return f'<table class="regcal-words"><tbody>{"".join(lines)}</tbody></table>'


def _path(x: Array, y: Array) -> str:
    return "M" + "L".join(f"{a:.1f} {b:.1f}" for a, b in zip(x, y, strict=True))


def sparkline(share: Array, height: Array, text: str, size: tuple[int, int] = (150, 26)) -> str:
    """Return a filled line through points whose coordinates are between 0 and 1."""
    width, tall = size
    x, y = width * share, tall - 1 - (tall - 3) * height
    line = _path(x, y)
    return (
        f'<svg role="img" aria-label="{escape(text)}" width="{width}" height="{tall}" '
        f'viewBox="0 0 {width} {tall}"><path d="M0 {tall - 1}L{width} {tall - 1}" '
        'stroke="currentColor" stroke-opacity=".3" fill="none"/>'
        f'<path d="{line}L{x[-1]:.1f} {tall - 1}L{x[0]:.1f} {tall - 1}Z" fill="{_ACCENT}" '
        f'fill-opacity=".25"/><path d="{line}" fill="none" stroke="{_ACCENT}" '
        'stroke-width="1.5"/></svg>'
    )


@dataclass(frozen=True)
class Curve:
    """Calibrated against predicted probabilities, with a word on where they hold."""

    predicted: Array
    calibrated: Array
    label: str = ""


def map_picture(curves: Sequence[Curve]) -> str:
    """Return a square picture of maps of probabilities, with the diagonal of no change."""
    side, left, top = 120, 30, 8
    lines = []
    for k, curve in enumerate(curves):
        x, y = left + side * curve.predicted, top + side * (1.0 - curve.calibrated)
        lines.append(
            f'<path d="{_path(x, y)}" fill="none" stroke="{_ACCENT}" stroke-width="1.8" '
            f'stroke-dasharray="{_DASHES[k % len(_DASHES)]}"/>'
        )
    named = [(k, curve.label) for k, curve in enumerate(curves) if curve.label]
    legend = "".join(
        f'<path d="M{left + side + 12} {top + 10 + 18 * place}h18" stroke="{_ACCENT}" '
        f'stroke-width="1.8" stroke-dasharray="{_DASHES[k % len(_DASHES)]}"/>'
        f'<text x="{left + side + 36}" y="{top + 14 + 18 * place}">{escape(label)}</text>'
        for place, (k, label) in enumerate(named)
    )
    middle = "; ".join(
        f"{curve.label + ': ' if curve.label else ''}0.5 becomes "
        f"{np.interp(0.5, curve.predicted, curve.calibrated):.2f}"
        for curve in curves
    )
    text = escape(f"Calibrated against predicted probability. {middle}.")
    width, tall = left + side + (120 if named else 12), top + side + 30
    return (
        f'<svg role="img" aria-label="{text}" width="{width}" height="{tall}" '
        f'viewBox="0 0 {width} {tall}" font-size="11" fill="currentColor">'
        f'<rect x="{left}" y="{top}" width="{side}" height="{side}" fill="none" '
        'stroke="currentColor" stroke-opacity=".4"/>'
        f'<path d="M{left} {top + side}L{left + side} {top}" stroke="currentColor" '
        f'stroke-opacity=".5" stroke-dasharray="3 3"/>{"".join(lines)}{legend}'
        f'<text x="{left - 6}" y="{top + 8}" text-anchor="end">1</text>'
        f'<text x="{left - 6}" y="{top + side}" text-anchor="end">0</text>'
        f'<text x="{left + side}" y="{top + side + 13}" text-anchor="end">1</text>'
        f'<text x="{left + side / 2}" y="{top + side + 26}" text-anchor="middle">predicted P</text>'
        f'<text transform="translate({left - 14} {top + side / 2}) rotate(-90)" '
        'text-anchor="middle">calibrated P</text></svg>'
    )


# ----------------------------------------------------------------------------------- distributions


@html_of.register
def _of_distribution(dist: Distribution) -> str:
    """Return figures and densities of the first rows."""
    title = repr(dist)
    if len(dist) == 0:
        return card(title, "<div>no rows</div>")
    some = dist[:_ROWS_SHOWN]
    with np.errstate(all="ignore"):
        figures = np.column_stack([some.mean(), some.std(), some.ppf(_SHOWN_LEVELS)])
        points = _shared_points(some.ppf(_OUTER_LEVELS))
        densities = None if points is None else some.pdf(points[np.newaxis, :])
    header = ["row", "mean", "std", "5 %", "median", "95 %"]
    rows = [[str(k), *map(number, line)] for k, line in enumerate(figures)]
    if points is not None and densities is not None:
        header.append(f"density from {number(points[0])} to {number(points[-1])}")
        for row, line, density in zip(rows, figures, densities, strict=True):
            text = f"Density: 90 % between {number(line[2])} and {number(line[4])}"
            row.append(sparkline(np.linspace(0.0, 1.0, _N_POINTS), _heights(density), text))
    left = len(dist) - len(some)
    more = f"<div>and {left} more row{'s' if left > 1 else ''}</div>" if left else ""
    return card(title, table(header, rows), more)


def _shared_points(quantiles: Array) -> Array | None:
    """Return points from the lowest to the highest quantile of all rows, if that is a range."""
    low, high = quantiles.min(), quantiles.max()
    if not (np.isfinite(high - low) and high > low):
        return None
    return np.linspace(low, high, _N_POINTS)


def _heights(density: Array) -> Array:
    """Return densities as shares of their largest finite value."""
    finite = density[np.isfinite(density)]
    largest = finite.max() if len(finite) else 0.0
    if largest <= 0:
        return np.zeros(len(density))
    return np.where(np.isfinite(density), density, largest) / largest


# ------------------------------------------------------------------------------------------ audits


@html_of.register
def _of_audit(audit: Audit) -> str:
    """Return what was found, and the worst segments."""
    header = ["segment", "rows", "event", "predicted", "observed", "by chance", "adjusted p"]
    shown = audit.segments[:_SEGMENTS_SHOWN]
    rows = [
        [
            escape(one.segment),
            str(one.n_rows),
            escape(one.event()),
            number(one.predicted),
            number(one.observed),
            f"{number(one.predicted + one.lower)} to {number(one.predicted + one.upper)}",
            escape(shown_p(one.p_value)),
        ]
        for one in shown
    ]
    left = len(audit.segments) - len(shown)
    more = [f"and {left} more segment{'s' if left > 1 else ''}"] if left else []
    notes = [f"<div>{escape(text)}</div>" for text in [*more, audit.note] if text]
    return card("Audit", f"<div>{escape(audit.headline())}</div>", table(header, rows), *notes)


@html_of.register
def _of_explanation(explanation: Explanation) -> str:
    """Return what the model got wrong in words, and what covariates are worth."""
    said = explanation.sentences()
    shown = [f"<li>{escape(one)}</li>" for one in said[:_SEGMENTS_SHOWN]]
    left = len(said) - len(shown)
    more = [f"and {left} more sentence{'s' if left > 1 else ''}"] if left else []
    opening = [explanation.headline(), explanation.importances()]
    return card(
        "Where the model was wrong",
        *(f"<div>{escape(text)}</div>" for text in opening if text),
        f"<ul>{''.join(shown)}</ul>" if shown else "",
        *(f"<div>{escape(text)}</div>" for text in [*more, explanation.bands] if text),
    )


# -------------------------------------------------------------------------------------- estimators


def _fitted_card(estimator: Any, figures: Figures, curves: Sequence[Curve] = ()) -> str:
    picture = map_picture(curves) if curves else ""
    side_by_side = f'<div class="regcal-side">{facts(figures)}{picture}</div>'
    return card(f"{type(estimator).__name__}, fitted", side_by_side)


@html_of.register
def _of_calibrator(calibrator: Calibrator) -> str:
    if not hasattr(calibrator, "n_rows_seen_"):
        return ""
    figures = [
        ("calibration rows", rows_text(calibrator.n_rows_seen_)),
        *_seen_through(calibrator.support_),
        *figures_of(calibrator),
    ]
    return _fitted_card(calibrator, figures, curves_of(calibrator))


@html_of.register
def _of_choice(auto: AutoCalibrator) -> str:
    if hasattr(auto, "n_rows_seen_"):
        return _of_calibrator(auto)
    return _fitted_card(auto, _choice(auto)) if hasattr(auto, "scores_") else ""


@html_of.register
def _of_regressor(model: CalibratedRegressorCV) -> str:
    if not hasattr(model, "members_"):
        return ""
    calibrators = [member.calibrator for member in model.members_]
    rows = sum(calibrator.n_rows_seen_ for calibrator in calibrators)
    figures = [
        ("model", type(model.members_[0].estimator).__name__),
        *(_choice(model.selection_) if hasattr(model, "selection_") else []),
        ("calibrator", type(calibrators[0]).__name__),
        ("calibrated models", f"{len(calibrators)}, averaged" if model.ensemble_ else "1"),
        ("calibration rows", rows_text(rows)),
        *_seen_through(model.support_),
        *(figures_of(calibrators[0]) if len(calibrators) == 1 else []),
    ]
    return _fitted_card(model, figures, _shared_curves(calibrators))


@html_of.register
def _of_residuals(model: NormalResidualRegressor) -> str:
    if not hasattr(model, "scale_"):
        return ""
    figures = [
        ("model", type(model.estimator_).__name__),
        ("spread of its residuals", number(model.scale_)),
    ]
    return _fitted_card(model, figures)


def rows_text(n_rows: int) -> str:
    """Return a number of calibration rows; if they are few, with what to expect of them.

    Examples
    --------
    >>> rows_text(400), rows_text(25)
    ('400', '25, few: what 90 % intervals hold is known to ± 12 % only')
    """
    if n_rows >= FEW_ROWS:
        return str(n_rows)
    error = 100 * coverage_error(n_rows)
    return f"{n_rows}, few: what 90 % intervals hold is known to ± {error:.0f} % only"


# ------------------------------------------------------------------------- what calibrators learnt


@singledispatch
def figures_of(calibrator: Any) -> Figures:
    """Return what a fitted calibrator has learnt, as names and values in words."""
    return []


@figures_of.register
def _figures_of_scale(calibrator: ScaleCalibrator) -> Figures:
    return [("factor on the spread", number(calibrator.factor_))]


@figures_of.register
def _figures_of_sinh_arcsinh(calibrator: SinhArcsinhCalibrator) -> Figures:
    own = calibrator.map_
    figures = [("shift", number(own.shift)), ("factor on the spread", number(own.factor))]
    if not calibrator.shape:
        return figures
    return [*figures, ("skewness", number(own.skew)), ("tails", number(own.tail))]


@figures_of.register
def _figures_of_conditional(calibrator: ConditionalCalibrator) -> Figures:
    if calibrator.correction_ is None:
        return [("covariates", "looked at, and not used: nothing was gained")]
    learnt = f"location and spread ({calibrator.learner_}), {calibrator.gain():.2g} nats a row"
    return [
        ("covariates", ", ".join(calibrator.columns_.names) if calibrator.columns_ else "none"),
        ("learnt from them", learnt),
        ("where the model was wrong", "regcal.explain says it"),
        *figures_of(calibrator.calibrator_),
    ]


@figures_of.register
def _figures_of_pit(calibrator: PITCalibrator) -> Figures:
    return [("knots of the map", str(len(calibrator.map_.knots)))]


@figures_of.register
def _figures_of_isotonic(calibrator: IsotonicCalibrator) -> Figures:
    return [
        ("rows in order of", f"predicted {calibrator.index_}"),
        ("segments", str(len(calibrator.thresholds_) + 1)),
        ("bandwidth", f"{calibrator.bandwidth_:.1%} of the range of outcomes"),
        ("of all rows together", f"{calibrator.marginal_bandwidth_:.1%}"),
    ]


@figures_of.register
def _figures_of_stack(stack: StackCalibrator) -> Figures:
    names = [name for name, _ in stack.calibrators]
    shares = zip(stack.weights_, names, strict=True)
    return [("average of", ", ".join(f"{share:.0%} {name}" for share, name in shares))]


@figures_of.register
def _figures_of_segments(calibrator: OneVsRestCalibrator) -> Figures:
    binary = BetaCalibrator() if calibrator.binary is None else calibrator.binary
    maps = calibrator.maps_
    unions = [("unions of them", str(len(maps.matrix)))] if isinstance(maps, DecodedMaps) else []
    return [
        _segments_in_words(calibrator.thresholds_),
        *unions,
        ("map of each", type(binary).__name__),
    ]


@figures_of.register
def _figures_of_band(calibrator: DirichletCalibrator) -> Figures:
    own, neighbours, constants = map(number, calibrator.deviations_)
    return [
        _segments_in_words(calibrator.thresholds_),
        ("prior deviation of own shares", own),
        ("of neighbours' shares", neighbours),
        ("of constants", constants),
    ]


def _segments_in_words(thresholds: Array) -> tuple[str, str]:
    low, high = number(thresholds[0]), number(thresholds[-1])
    return "segments", f"{len(thresholds) + 1}, cut between {low} and {high}"


@figures_of.register(DensityCalibrator)
@figures_of.register(GPCalibrator)
def _figures_of_process(calibrator: DensityCalibrator | GPCalibrator) -> Figures:
    return [
        ("starts from", _start_in_words(calibrator.start_)),
        ("length-scales of P and t", " and ".join(map(number, calibrator.lengthscales_))),
        ("prior deviation", number(calibrator.sigma_)),
    ]


def _start_in_words(start: ProbitMap) -> str:
    """Return what the prior mean of a Gaussian process is: the base model, maybe mapped."""
    if isinstance(start, PiecewiseMap):
        return f"the base model after PIT recalibration with {len(start.knots)} knots"
    if isinstance(start, ScaleMap) and start.factor != 1.0:
        return f"the base model with {number(start.factor)} times its spread"
    return "the base model"


@figures_of.register
def _figures_of_classifier(calibrator: PaperGPCalibrator) -> Figures:
    return [("kernel", str(calibrator.classifier_.kernel_))]


@figures_of.register
def _figures_of_choice(auto: AutoCalibrator) -> Figures:
    return [*_choice(auto), *figures_of(auto.calibrator_)]


def _seen_through(support: Support) -> Figures:
    """Return what outcomes are seen through; nothing for the whole line."""
    return [("outcomes", support.described())] if support else []


def _choice(auto: AutoCalibrator) -> Figures:
    return [("choice", auto.explanation())]


@singledispatch
def curves_of(calibrator: Any) -> list[Curve]:
    """Return the maps of probabilities that a fitted calibrator has learnt, if it has any."""
    return []


@curves_of.register(PITCalibrator)
@curves_of.register(ScaleCalibrator)
@curves_of.register(SinhArcsinhCalibrator)
def _curves_of_probits(
    calibrator: PITCalibrator | ScaleCalibrator | SinhArcsinhCalibrator,
) -> list[Curve]:
    return [_curve(lambda q: ndtr(calibrator.map_(ndtri(q))))]


@curves_of.register(DensityCalibrator)
@curves_of.register(GPCalibrator)
@curves_of.register(PaperGPCalibrator)
def _curves_of_surface(
    calibrator: DensityCalibrator | GPCalibrator | PaperGPCalibrator,
) -> list[Curve]:
    """Return the map of (t, q) at low, middle and high targets."""
    axes = calibrator.axes_
    targets = axes.low + (axes.high - axes.low) * _DRAWN_TARGETS
    return [_curve(partial(calibrator.calibration_map, t), f"t = {number(t)}") for t in targets]


@curves_of.register
def _curves_of_chosen(auto: AutoCalibrator) -> list[Curve]:
    return curves_of(auto.calibrator_)


def _curve(calibrated: Callable[[Array], Array], label: str = "") -> Curve:
    values = np.clip(calibrated(_DRAWN_LEVELS), 0.0, 1.0)
    return Curve(np.r_[0.0, _DRAWN_LEVELS, 1.0], np.r_[0.0, values, 1.0], label)


def _shared_curves(calibrators: Sequence[Calibrator]) -> list[Curve]:
    """Return the maps of all members together, or nothing if each has several of them."""
    curves = [curves_of(calibrator) for calibrator in calibrators]
    return curves[0] if len(curves) == 1 else [one[0] for one in curves if len(one) == 1]
