"""The verdict in words: calibrated or not, where, by how much, and what calibration changed.

All of it is read off one test per model, so that no sentence can contradict another: what is called
wrong lies outside the range of that test, and a calibrated model has nothing outside.
"""

from dataclasses import dataclass

import numpy as np

from regcal.audit import Audit
from regcal.audit.findings import p_in_words
from regcal.metrics.compare import ComparedMetric
from regcal.metrics.joint import LEVEL, JointCalibrationTest, Statement
from regcal.metrics.thresholds import ThresholdErrors
from regcal.report.content import Content, ModelContent

_FEW_ROWS = 100

# Rows that would not have shown 90 % intervals that hold only half of the outcomes, with a spread
# two and a half times too small, cannot call a model calibrated. benchmarks/verdict.py, "few": 15
# rows can.
_LEAST_NOTICED = 0.5

# Stretches of thresholds that are named; the figure has all.
_MOST_PLACES = 3


@dataclass(frozen=True)
class Cell:
    """A number of the table below the headline, its range by chance, and whether it is outside."""

    text: str
    chance: str = ""
    wrong: bool = False


@dataclass(frozen=True)
class Verdict:
    """Headline, what news it is, a table with a column a model, and sentences.

    News are ``"good"``, ``"bad"`` or, where rows are too few to tell, ``"open"``.
    """

    headline: str
    news: str
    table: list[tuple[str, list[Cell]]]
    sentences: list[str]


def verdict_of(content: Content, target: str) -> Verdict:
    """Return the verdict on the last model, and what changed from the first."""
    model = content.models[-1]
    everywhere = content.audit is None or not content.audit.wrong
    sentences = _findings(model, target)
    first = content.models[0]
    if first is not model and not first.test.calibrated:
        sentences.append(f"“{first.name}”: {_findings(first, target)[0]}")
    sentences.append(_power(model.test, content.n_test_rows, target))
    if content.audit is not None:
        sentences.append(_segments(content.audit))
    if len(content.models) > 1:
        sentences.append(_changes(content))
    notes = (model.reliability.note, model.pit.note)
    sentences += [f"{note}." for note in notes if note]
    table = _table(content.models, target)
    return Verdict(*_headline(content, everywhere), table, sentences)


def _headline(content: Content, everywhere: bool) -> tuple[str, str]:
    """Return the verdict in one line, and what news it is."""
    model, first = content.models[-1], content.models[0]
    rows = f"{content.n_test_rows:,} row{'s' if content.n_test_rows != 1 else ''}"
    telling = model.test.noticed.too_narrow >= _LEAST_NOTICED
    if not model.test.calibrated:
        return f"“{model.name}” is not calibrated", "bad"
    if not everywhere:
        whole = "is calibrated on the whole, but not" if telling else "is not calibrated"
        return f"“{model.name}” {whole} for all rows", "bad"
    if not telling:
        return f"{rows} cannot tell whether “{model.name}” is calibrated", "open"
    headline = f"“{model.name}” is calibrated, as far as {rows} can tell"
    return headline if first.test.calibrated else f"{headline}; “{first.name}” is not", "good"


# ------------------------------------------------------------------------------------------- table


def _table(models: list[ModelContent], target: str) -> list[tuple[str, list[Cell]]]:
    """Return what the test weighs, in a few rows: label, and a cell for each model."""
    tests = [model.test for model in models]
    return [
        ("All statements, one test", [_overall(test) for test in tests]),
        ("90 % intervals hold", [_share(test.of("coverage", 0.9)) for test in tests]),
        ("Outcomes below the 5 % quantile", [_share(test.of("below", 0.05)) for test in tests]),
        ("Outcomes above the 95 % quantile", [_share(test.of("above", 0.05)) for test in tests]),
        ("Outcomes ≤ t, at the worst t", [_at_threshold(test) for test in tests]),
        (f"Error of P({target} ≤ t), at the worst t", [_in_bins(model) for model in models]),
        ("Mean outcome − predicted mean", [_mean(test.all_of("mean")[0]) for test in tests]),
    ]


def _overall(test: JointCalibrationTest) -> Cell:
    return Cell(_p_in_words(test.p_value), wrong=not test.calibrated)


def _p_in_words(p_value: float) -> str:
    # The smallest p-value of 999 simulations.
    return "p ≤ 0.001" if p_value <= 0.001 else p_in_words(p_value)


def _share(one: Statement) -> Cell:
    chance = f"{100 * one.lower:.1f} to {100 * one.upper:.1f}"
    return Cell(f"{100 * one.observed:.1f} %", chance, one.p_value < LEVEL)


def _at_threshold(test: JointCalibrationTest) -> Cell:
    def distance(one: Statement) -> float:
        return abs(one.observed - one.expected) / max(one.upper - one.lower, 1e-12)

    worst = max(test.all_of("threshold"), key=distance)
    cell = _share(worst)
    return Cell(cell.text, f"{cell.chance}, t = {worst.place:.3g}", cell.wrong)


def _in_bins(model: ModelContent) -> Cell:
    """Return the error in bins of P(Y <= t) where most speaks against it."""
    errors, p_values = model.errors, np.array(model.p_values)
    k = int(np.lexsort((-errors.errors, p_values))[0])
    where = f"t = {errors.thresholds[k]:.3g}"
    return Cell(f"{errors.errors[k]:.3f}", where, bool(p_values[k] < LEVEL))


def _mean(one: Statement) -> Cell:
    return Cell(f"{one.observed:+.2g}", f"{one.lower:.2g} to {one.upper:.2g}", one.p_value < LEVEL)


# --------------------------------------------------------------------------------------- sentences


def _findings(model: ModelContent, target: str) -> list[str]:
    """Return a sentence for each thing that is wrong, by its kind."""
    if model.test.calibrated:
        return []
    said = [*_places(model.errors, np.array(model.p_values), target), *_outside(model.test, target)]
    if not said:
        said = ["The PIT histogram is not level, though no single statement stands out."]
    return said


def _places(errors: ThresholdErrors, p_values: np.ndarray, target: str) -> list[str]:
    """Return a sentence for the worst stretches of thresholds at which the model is wrong."""
    runs = _runs(p_values < LEVEL)
    worst = sorted(runs, key=lambda run: -errors.errors[run[0] : run[1] + 1].max())[:_MOST_PLACES]
    return [_place(errors, first, last, target) for first, last in sorted(worst)]


def _runs(flags: np.ndarray) -> list[tuple[int, int]]:
    """Return first and last index of each run of true values."""
    padded = np.concatenate([[False], flags, [False]])
    starts = np.flatnonzero(padded[1:] & ~padded[:-1])
    ends = np.flatnonzero(~padded[1:] & padded[:-1])
    return [(int(a), int(b) - 1) for a, b in zip(starts, ends, strict=True)]


def _place(errors: ThresholdErrors, first: int, last: int, target: str) -> str:
    thresholds, biases = errors.thresholds, errors.biases[first : last + 1]
    where = f"At {target} = {thresholds[first]:.4g}"
    if last > first:
        where = f"Between {target} = {thresholds[first]:.4g} and {thresholds[last]:.4g}"
    bias = float(biases[np.abs(biases).argmax()])
    error = max(float(errors.errors[first : last + 1].max()), abs(bias))
    if abs(bias) < 0.5 * error:
        kind = "too high for some rows and too low for others"
    else:
        kind = f"too {'high' if bias > 0 else 'low'} by up to {abs(bias):.2f} on average"
    return f"{where}, probabilities are off by up to {error:.2f}: {kind}."


def _outside(test: JointCalibrationTest, target: str) -> list[str]:
    """Return sentences on intervals, tails, masses and the mean that are outside their ranges."""
    said = []
    wrong = {
        kind: [one for one in test.wrong if one.kind == kind]
        for kind in ("coverage", "below", "above", "mass", "mean", "slope", "lowest", "highest")
    }
    if wrong["coverage"]:
        # The level that people ask for, if it is wrong itself.
        one = min(wrong["coverage"], key=lambda one: abs(one.place - 0.9))
        word = "narrow" if one.observed < one.expected else "wide"
        said.append(
            f"Intervals that should hold {100 * one.place:.0f} % of the outcomes hold "
            f"{_with_range(one)}: too {word}."
        )
    for kind, level in (("below", lambda p: p), ("above", lambda p: 1 - p)):
        if wrong[kind]:
            one = min(wrong[kind], key=lambda one: one.p_value)
            said.append(
                f"{_with_range(one)} of the outcomes lie {kind} the {100 * level(one.place):g} % "
                "quantile."
            )
    for one in wrong["mass"][:_MOST_PLACES]:
        said.append(
            f"{target} = {one.place:.4g} has a probability of {100 * one.expected:.1f} % on "
            f"average and happened in {_with_range(one)}."
        )
    for one in wrong["mean"]:
        word = "above" if one.observed > 0 else "below"
        said.append(
            f"On average, outcomes lie about {abs(one.observed):.3g} {word} their predicted mean; "
            f"chance makes up to {one.upper:.3g} of it."
        )
    for one in wrong["slope"]:
        said.append(
            f"Where the predicted mean is higher by 1, outcomes are higher by about "
            f"{one.observed:.2f} (by chance {one.lower:.2f} to {one.upper:.2f}): predictions "
            f"differ too {'little' if one.observed > 1 else 'much'} from row to row."
        )
    for one in wrong["lowest"] + wrong["highest"]:
        end = "low" if one.kind == "lowest" else "high"
        said.append(
            f"At least one outcome is so {end} that its row gave it a probability of "
            f"{one.observed:.1g}; the outermost of calibrated rows has {one.lower:.1g} or more."
        )
    return said


def _with_range(one: Statement) -> str:
    return (
        f"{100 * one.observed:.1f} % (by chance {100 * one.lower:.1f} to {100 * one.upper:.1f} %)"
    )


def _power(test: JointCalibrationTest, n_rows: int, target: str) -> str:
    """Return what the test looked at, and what it would have seen."""
    noticed, shown = test.noticed, []
    limits = [
        f"{word} than {100 * share:.1f} %"
        for word, share in (("less", noticed.too_narrow), ("more", noticed.too_wide))
        if np.isfinite(share)
    ]
    if limits:
        shown.append(f"90 % intervals that hold {' or '.join(limits)}")
    if noticed.probability <= 0.5:
        shown.append(f"P({target} ≤ t) that is off by {noticed.probability:.2g} on average")
    few = " With so few, only large errors can be seen." if n_rows < _FEW_ROWS else ""
    if not shown:
        return f"So few rows show no error of any size for sure.{few}"
    return (
        f"What {n_rows:,} rows can tell: four times in five they would have shown "
        f"{', or '.join(shown)}. Smaller errors may be there.{few}"
    )


def _segments(audit: Audit) -> str:
    """Return what an audit found, with its worst segment."""
    worst = f" The worst: {audit.segments[0]}." if audit.wrong else ""
    return f"By segments: {audit.headline()}{worst}"


def _changes(content: Content) -> str:
    first, last = content.models[0], content.models[-1]
    score, crps = content.comparison["log score"], content.comparison["CRPS"]
    return (
        f"From “{first.name}” to “{last.name}” the log score changed by "
        f"{_change(score, larger_is_better=True)} and the CRPS by "
        f"{_change(crps, larger_is_better=False)}."
    )


def _change(metric: ComparedMetric, *, larger_is_better: bool) -> str:
    gap, error = metric.differences[-1], metric.difference_errors[-1]
    if not (np.isfinite(gap) and np.isfinite(error)):
        return f"{gap:+.3g}"
    if abs(gap) <= 2 * error:
        word = "within noise"
    else:
        word = "better" if (gap > 0) == larger_is_better else "worse"
    return f"{gap:+.3g} ± {error:.2g} ({word})"
