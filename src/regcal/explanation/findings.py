"""What an explanation says: effects of covariates as objects, sentences and tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from regcal._inspection import notebook_card
from regcal._validation import Array
from regcal.audit.findings import as_table

# Sentences that a text has; `sentences` has all.
_SAID = 10

# Importances that a text names.
_NAMED = 5


@dataclass(frozen=True)
class Size:
    """How large an effect is, in the middle and at both ends of its band."""

    value: float
    lower: float
    upper: float

    def excludes(self, other: float) -> bool:
        """Whether a value lies outside the band."""
        return not self.lower <= other <= self.upper


@dataclass(frozen=True)
class ExplainedSegment:
    """What a model got wrong for the rows of one segment, on average.

    Attributes
    ----------
    covariate : str
        Empty for all rows together.
    segment : str
        Its rows in words: ``age < 7``.
    n_rows : int
        Of those that were given.
    shift, shift_lower, shift_upper : float
        By how much outcomes lie above predicted medians, in the units of y, and its band.
    factor, factor_lower, factor_upper : float
        How many times as far as predicted outcomes spread about the corrected median.
    spreads : float
        The shift in predicted standard deviations.
    centre : float
        Median of a covariate that is a number, place of a category; nan where there is none.

    Examples
    --------
    >>> from regcal.explanation import ExplainedSegment
    >>> young = ExplainedSegment("age", "age < 7", 80, -9.0, -11.0, -7.0, 2.0, 1.6, 2.5, -0.9, 3.0)
    >>> young.said_of_location("MPa")
    'for age < 7 the model predicted 9 MPa too much (7 to 11)'
    >>> young.said_of_spread()
    'for age < 7 the model was 2 times too sure (1.6 to 2.5)'
    """

    covariate: str
    segment: str
    n_rows: int
    shift: float
    shift_lower: float
    shift_upper: float
    factor: float
    factor_lower: float
    factor_upper: float
    spreads: float
    centre: float

    @property
    def location(self) -> Size:
        """The shift with its band."""
        return Size(self.shift, self.shift_lower, self.shift_upper)

    @property
    def spread(self) -> Size:
        """The factor with its band."""
        return Size(self.factor, self.factor_lower, self.factor_upper)

    @property
    def cost_of_location(self) -> float:
        """What the shift costs in nats a row, about: half its square in spreads."""
        return 0.5 * self.spreads**2

    def cost_of_spread(self, usual: float = 1.0) -> float:
        """Return what a factor other than the usual one costs in nats a row, about."""
        factor = self.factor / usual
        return 0.5 * (factor**2 - 1.0) - float(np.log(factor))

    def said_of_location(self, unit: str = "") -> str:
        """Return in words by how much predictions were too high or too low."""
        much = "too little" if self.shift > 0 else "too much"
        ends = sorted((abs(self.shift_lower), abs(self.shift_upper)))
        shown = f"{abs(self.shift):.2g}{' ' if unit else ''}{unit}"
        return f"for {self.segment} the model predicted {shown} {much} ({_range(*ends)})"

    def said_of_spread(self) -> str:
        """Return in words how many times too narrow or too wide predictions were."""
        if self.factor > 1.0:
            ends = _range(self.factor_lower, self.factor_upper)
            return f"for {self.segment} the model was {self.factor:.2g} times too sure ({ends})"
        ends = _range(1.0 / self.factor_upper, 1.0 / self.factor_lower)
        moved = ", with its medians corrected" if self.location.excludes(0.0) else ""
        surer = f"{1.0 / self.factor:.2g} times surer{moved}"
        return f"for {self.segment} the model could be {surer} ({ends})"


def _range(low: float, high: float) -> str:
    return f"{low:.2g} to {high:.2g}"


@dataclass(frozen=True)
class CovariateEffect:
    """What one covariate does by itself, value by value: the curve that a display draws.

    Attributes
    ----------
    name : str
    kind : "number" or "category"
    values : ndarray of shape (n_values,)
        Numbers in increasing order, or places of categories.
    labels : tuple of str
        Names of the categories; empty for numbers.
    shift, factor : ndarray of shape (3, n_values)
        Lower end of the band, effect and upper end: on all rows, if they had these values and
        other covariates stayed as they are. Bands are those of the posterior of an additive term;
        of other learners, those of the mean of as many rows as the segment of a value has.
    importance : float
        What the log score of the rows loses, in nats a row, if the calibrator gets the values of
        other rows in this column alone; nan if no outcomes were given. It is too large where other
        covariates together say the same, since the calibrator then gets contradictions.
    standard_error : float
        Of the importance.

    Examples
    --------
    >>> import numpy as np
    >>> import regcal
    >>> dist, kind = regcal.Normal(np.zeros(60), 1.0), ["a", "b"] * 30
    >>> y = np.linspace(-1.5, 1.5, 60) + [0.0, 2.0] * 30
    >>> known = {"kind": kind}
    >>> calibrator = regcal.ConditionalCalibrator("additive").fit(dist, y, covariates=known)
    >>> effect = regcal.explain(calibrator, dist, covariates=known).covariates[0]
    >>> effect.labels, effect.shift[1].round() + 1.0
    (('a', 'b'), array([1., 3.]))
    """

    name: str
    kind: str
    values: Array
    labels: tuple[str, ...]
    shift: Array
    factor: Array
    importance: float
    standard_error: float


@dataclass(frozen=True, repr=False)
class Explanation:
    """Where a model was wrong, as covariates tell: what `regcal.explain` returns.

    Attributes
    ----------
    segments : tuple of ExplainedSegment
        All rows together first, then the segments of each covariate in their order.
    covariates : tuple of CovariateEffect
        First those along whose segments the model was most wrong.
    learner : str
        What learnt the effects: "additive", "trees", "regressors", or "none" if none was worth it.
    gain : float
        What looking at covariates is worth, in nats a row, on calibration rows that the effects
        were not learnt from.
    n_rows : int
        How many rows were given.
    n_scored : int
        With how many of them importances were measured; 0 without outcomes.
    bands : str
        What bands are.
    unit : str
        Of y.

    Examples
    --------
    >>> import numpy as np
    >>> import regcal
    >>> rng = np.random.default_rng(0)
    >>> age = rng.uniform(0.0, 10.0, 600)
    >>> y = rng.normal(np.where(age < 2, -1.5, 0.0))
    >>> dist = regcal.Normal(np.zeros(600), 1.0)
    >>> calibrator = regcal.ConditionalCalibrator("additive").fit(dist, y, covariates={"age": age})
    >>> explanation = regcal.explain(calibrator, dist, covariates={"age": age})
    >>> explanation.sentences()[0]
    'for age < 2.228 the model predicted 1... too much (1... to ...)'
    """

    segments: tuple[ExplainedSegment, ...]
    covariates: tuple[CovariateEffect, ...]
    learner: str
    gain: float
    n_rows: int
    n_scored: int
    bands: str
    unit: str = ""

    def table(self) -> Any:
        """Return a row per segment: a pandas frame, or a list of dicts without pandas."""
        return as_table(map(asdict, self.segments))

    def importance_table(self) -> Any:
        """Return a row per covariate with its importance in nats, like `table`."""
        names = ("name", "importance", "standard_error")
        return as_table([{name: getattr(one, name) for name in names} for one in self.covariates])

    def effect_table(self) -> Any:
        """Return a row per covariate and value with what it does by itself, like `table`."""
        names = ("lower", "", "upper")
        return as_table(
            {
                "covariate": one.name,
                "value": one.labels[k] if one.labels else value,
                **{f"shift_{n}".rstrip("_"): one.shift[i, k] for i, n in enumerate(names)},
                **{f"factor_{n}".rstrip("_"): one.factor[i, k] for i, n in enumerate(names)},
            }
            for one in self.covariates
            for k, value in enumerate(one.values.tolist())
        )

    def bars(self, effect: CovariateEffect, name: str) -> Array:
        """Return where segments of a covariate are drawn.

        Parameters
        ----------
        effect : CovariateEffect
        name : {"shift", "factor"}

        Returns
        -------
        ndarray of shape (n_segments, 4)
            Centre, lower end of the band, mean, upper end; without those that have no centre.
        """
        own = [one for one in self.segments if one.covariate == effect.name]
        names = ("centre", f"{name}_lower", name, f"{name}_upper")
        rows = [[getattr(one, field) for field in names] for one in own if np.isfinite(one.centre)]
        return np.array(rows).reshape(-1, 4)

    def sentences(self) -> list[str]:
        """Return what the model got wrong, in words: what costs most first.

        Only effects whose band excludes that nothing was wrong are told; of a segment, only what
        differs from all rows together, and a spread by how much it differs.
        """
        if not self.segments:
            return []
        everywhere = self.segments[0]
        said = []
        for one in self.segments:
            own = one is everywhere
            if one.location.excludes(0.0) and (own or one.location.excludes(everywhere.shift)):
                said.append((one.cost_of_location, one.said_of_location(self.unit)))
            if one.spread.excludes(1.0) and (own or one.spread.excludes(everywhere.factor)):
                usual = 1.0 if own else everywhere.factor
                said.append((one.cost_of_spread(usual), one.said_of_spread()))
        return [text for _, text in sorted(said, key=lambda pair: -pair[0])]

    def headline(self) -> str:
        """Return what looking at covariates is worth, in one sentence."""
        if not self.covariates:
            return "No covariate tells where the model is wrong: nothing was learnt from them."
        return (
            f"Looking at covariates ({self.learner}) is worth {self.gain:.2g} nats a row, on "
            "calibration rows it was not learnt from."
        )

    def importances(self) -> str:
        """Return the most important covariates in words, if any is clearly above 0.

        Importances order covariates; what looking at them is worth is told by `headline`.
        """
        known = [one for one in self.covariates if one.importance > 2.0 * one.standard_error]
        first = sorted(known, key=lambda one: -one.importance)[:_NAMED]
        named = ", ".join(f"{one.name} {one.importance:.2g}" for one in first)
        if not known:
            return ""
        return (
            "Importance, which puts covariates in order: what values of other rows would cost, in "
            f"nats a row, on {self.n_scored:,} given rows: {named}. Wrong values mislead, so that "
            "this may exceed what looking is worth."
        )

    def __str__(self) -> str:
        said = self.sentences()
        lines = [self.headline(), self.importances(), *(f"  {one}" for one in said[:_SAID])]
        if len(said) > _SAID:
            lines.append(f"  and {len(said) - _SAID} more; explanation.sentences() has all")
        return "\n".join(line for line in [*lines, self.bands] if line)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return notebook_card(self)


def cost_along(segments: Sequence[ExplainedSegment], covariate: str) -> float:
    """Return what the errors in the segments of a covariate cost, in nats a row, about."""
    usual = segments[0].factor
    own = [one for one in segments if one.covariate == covariate]
    costs = [one.cost_of_location + one.cost_of_spread(usual) for one in own]
    return float(np.average(costs, weights=[one.n_rows for one in own]))
