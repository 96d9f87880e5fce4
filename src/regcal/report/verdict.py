"""The verdict in words: calibrated or not, where, by how much, and what calibration changed."""

from dataclasses import dataclass

import numpy as np

from regcal.audit import Audit
from regcal.audit.findings import shown_p
from regcal.metrics.compare import ComparedMetric
from regcal.metrics.thresholds import ThresholdCalibrationTest
from regcal.report.content import Content, ModelContent

# A verdict of "not calibrated" is wrong for one calibrated model in twenty.
_SIGNIFICANT = 0.05
_FEW_ROWS = 100


@dataclass(frozen=True)
class Verdict:
    """Headline, whether it is good news, and sentences that explain it."""

    headline: str
    calibrated: bool
    sentences: list[str]


def verdict_of(content: Content, target: str) -> Verdict:
    """Return the verdict on the last model, and what changed from the first."""
    model = content.models[-1]
    overall = _p_value(model) >= _SIGNIFICANT
    everywhere = content.audit is None or not content.audit.wrong
    if overall and everywhere:
        headline = f"No sign of miscalibration in “{model.name}”"
    elif overall:
        headline = f"“{model.name}” is calibrated on the whole, but not for all rows"
    else:
        headline = f"“{model.name}” is not calibrated"
    sentences = [_size(model, content.n_test_rows)]
    if not overall:
        sentences += _places(model, target)
    sentences.append(_coverage(content))
    if content.audit is not None:
        sentences.append(_segments(content.audit))
    if len(content.models) > 1:
        sentences += _changes(content)
    notes = (model.reliability.note, model.pit.note)
    sentences += [f"{note}." for note in notes if note]
    if content.n_test_rows < _FEW_ROWS:
        sentences.append(
            f"With {content.n_test_rows} row(s) only large errors can be seen: “no sign” is weak "
            "evidence here."
        )
    return Verdict(headline, overall and everywhere, sentences)


def _p_value(model: ModelContent) -> float:
    """Return one p-value of three tests, by Bonferroni's rule."""
    uniformity = model.pit_test
    smallest = min(model.test.p_value, uniformity.ks_p_value, uniformity.chi2_p_value)
    return min(1.0, 3 * smallest)


def _size(model: ModelContent, n_rows: int) -> str:
    test = model.test
    return (
        f"On {n_rows:,} rows, predicted probabilities P(Y ≤ t) differ from observed frequencies "
        f"by {test.raw_error:.3f} (root mean square over rows and {len(test.thresholds)} "
        f"thresholds); a calibrated model would show {test.expected:.3f} by chance. Beyond chance: "
        f"{test.error:.3f}. Combined p-value of all tests: {shown_p(_p_value(model))}."
    )


def _places(model: ModelContent, target: str) -> list[str]:
    """Return a sentence for each run of thresholds at which the model is wrong."""
    test = model.test
    runs = _runs(test.p_values < _SIGNIFICANT)
    if not runs:
        return ["No single threshold stands out: the errors are small and spread out."]
    return [_place(test, first, last, target) for first, last in runs]


def _runs(flags: np.ndarray) -> list[tuple[int, int]]:
    """Return first and last index of each run of true values."""
    padded = np.concatenate([[False], flags, [False]])
    starts = np.flatnonzero(padded[1:] & ~padded[:-1])
    ends = np.flatnonzero(~padded[1:] & padded[:-1])
    return [(int(a), int(b) - 1) for a, b in zip(starts, ends, strict=True)]


def _place(test: ThresholdCalibrationTest, first: int, last: int, target: str) -> str:
    thresholds, biases = test.thresholds, test.biases[first : last + 1]
    where = f"At {target} = {thresholds[first]:.4g}"
    if last > first:
        where = f"Between {target} = {thresholds[first]:.4g} and {thresholds[last]:.4g}"
    error = test.errors[first : last + 1].max()
    bias = float(biases[np.abs(biases).argmax()])
    if abs(bias) < 0.5 * error:
        kind = "too high for some rows and too low for others"
    else:
        kind = f"too {'high' if bias > 0 else 'low'} by up to {abs(bias):.2f} on average"
    return f"{where}, probabilities are off by up to {error:.2f}: {kind}."


def _coverage(content: Content) -> str:
    metric = content.comparison["coverage 90 %"]
    value, error = metric.values[-1], metric.standard_errors[-1]
    noise = f" ± {100 * error:.1f} %" if np.isfinite(error) else ""
    return f"Intervals that should hold 90 % of the outcomes hold {100 * value:.1f} %{noise}."


def _segments(audit: Audit) -> str:
    """Return what an audit found, with its worst segment."""
    worst = f" The worst: {audit.segments[0]}." if audit.wrong else ""
    return f"By segments: {audit.headline()}{worst}"


def _changes(content: Content) -> list[str]:
    first, last = content.models[0], content.models[-1]
    score, crps = content.comparison["log score"], content.comparison["CRPS"]
    return [
        f"From “{first.name}” to “{last.name}” the threshold calibration error went from "
        f"{first.test.error:.3f} to {last.test.error:.3f}, the log score changed by "
        f"{_change(score, larger_is_better=True)} and the CRPS by "
        f"{_change(crps, larger_is_better=False)}."
    ]


def _change(metric: ComparedMetric, *, larger_is_better: bool) -> str:
    gap, error = metric.differences[-1], metric.difference_errors[-1]
    if not (np.isfinite(gap) and np.isfinite(error)):
        return f"{gap:+.3g}"
    if abs(gap) <= 2 * error:
        word = "within noise"
    else:
        word = "better" if (gap > 0) == larger_is_better else "worse"
    return f"{gap:+.3g} ± {error:.2g} ({word})"
