"""Small pieces of HTML for notebooks: a card with a table and a picture drawn as inline SVG.

Depends on NumPy and `_validation` only. Everything is inside the text: no scripts, no fonts,
nothing is loaded. Text and lines take the colour of their surroundings, so that light and dark
pages both work.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any

import numpy as np

from regcal._validation import Array

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


@dataclass(frozen=True)
class CardContent:
    """What a fitted estimator tells about itself: figures, and maps of probabilities if any."""

    title: str
    figures: list[tuple[str, str]]
    curves: list[Curve] = field(default_factory=list)

    def to_html(self) -> str:
        """Return the card."""
        picture = map_picture(self.curves) if self.curves else ""
        return card(self.title, f'<div class="regcal-side">{facts(self.figures)}{picture}</div>')


class FittedCard:
    """Adds a card to scikit-learn's diagram once an estimator is fitted.

    To be inherited from before `BaseEstimator`. `_card_content` returns None before `fit`.
    """

    def _card_content(self) -> CardContent | None:
        return None

    def _card(self) -> str:
        summary = self._card_content()
        return "" if summary is None else summary.to_html()

    def _repr_html_inner(self) -> str:
        return super()._repr_html_inner() + self._card()  # type: ignore[misc]

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        bundle = super()._repr_mimebundle_(**kwargs)  # type: ignore[misc]
        if "text/html" in bundle:
            bundle["text/html"] += self._card()
        return bundle
