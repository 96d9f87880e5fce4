"""Through what outcomes are seen: ends at which they pile up, and the step they are rounded to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from regcal._validation import Array
from regcal.distributions import Clipped, Distribution, Rounded
from regcal.ends import OFF_STEP, WHOLE_LINE, given_ends, given_step
from regcal.outcomes import Outcomes


@dataclass(frozen=True)
class Support:
    """What is seen of a latent continuous Y: nothing beyond the ends, and multiples of a step.

    Parameters
    ----------
    low, high : float
        Ends at which what lies beyond is seen; infinite where there is none.
    step : float
        Distance of the values; 0 where they are continuous.
    smooth : bool
        Whether predictions are continuous nevertheless: the step only tells what outcomes mean.
    bare_low, bare_high : bool
        Whether outcomes were censored and none was seen at the end, so that none lies there.

    Examples
    --------
    >>> from regcal import Normal, Outcomes
    >>> from regcal.calibrators import Support
    >>> rain = Support(low=0.0)
    >>> rain.seen(Outcomes.exact([0.0, 1.5])).lower  # no rain is at most 0
    array([-inf,  1.5])
    >>> rain.through(Normal([0.0], [1.0])).mass(0.0)
    array([0.5])
    """

    low: float = -np.inf
    high: float = np.inf
    step: float = 0.0
    smooth: bool = False
    bare_low: bool = False
    bare_high: bool = False

    @classmethod
    def given(cls, support: Any, step: Any) -> Support:
        """Return what is given, rather than to be found, by the parameters of a calibrator."""
        if isinstance(support, Support):
            return support
        return cls(*(given_ends(support) or WHOLE_LINE), step=given_step(step) or 0.0)

    def __bool__(self) -> bool:
        return self != UNBOUNDED

    @property
    def ends(self) -> tuple[float, float]:
        """The outermost thresholds that tell outcomes apart."""
        half = 0.5 * self.step
        return self.low + half, self.high - half

    def check(self, outcomes: Outcomes, numbers: np.ndarray | None = None) -> None:
        """Refuse outcomes that cannot be seen through it.

        Parameters
        ----------
        outcomes : Outcomes
        numbers : ndarray of int, optional
            Of their rows, as the one who passed them counts.
        """

        def row(which: np.ndarray) -> tuple[int, str]:
            first = int(np.flatnonzero(which)[0])
            return first, "" if numbers is None else f" in row {numbers[first]}"

        beyond = self.beyond(outcomes)
        if beyond.any():
            first, in_row = row(beyond)
            ends = np.unique([outcomes.lower[first], outcomes.upper[first]])
            outcome = " to ".join(str(end) for end in ends if np.isfinite(end))
            msg = (
                f"The outcome {outcome} lies outside the support ({self.low}, {self.high}){in_row}:"
                f" {int(beyond.sum())} of {len(outcomes)} outcomes do. Widen support=, or correct "
                "or remove such rows."
            )
            raise ValueError(msg)
        off = self.off_step(outcomes)
        if off.any():
            first, in_row = row(off)
            msg = (
                f"{int(off.sum())} outcome(s) are no multiples of step={self.step}, the first "
                f"is {outcomes.lower[first]}{in_row}. Pass the step of their rounding, or None."
            )
            raise ValueError(msg)

    def beyond(self, outcomes: Outcomes) -> np.ndarray:
        """Return which outcomes lie beyond an end, whatever they are."""
        return (outcomes.lower > self.high) | (outcomes.upper < self.low)

    def off_step(self, outcomes: Outcomes) -> np.ndarray:
        """Return which outcomes were seen exactly and are no multiples of the step."""
        if self.step == 0:
            return np.zeros(len(outcomes), dtype=bool)
        steps = np.where(outcomes.exact_rows, outcomes.lower, 0.0) / self.step
        return np.abs(steps - np.round(steps)) > OFF_STEP

    def seen(self, outcomes: Outcomes) -> Outcomes:
        """Return what outcomes tell of the latent variable."""
        if not self:
            return outcomes
        self.check(outcomes)
        lower, upper = outcomes.lower, outcomes.upper
        at_low, at_high = lower <= self.low, upper >= self.high
        if self.step > 0:
            lower = (np.round(lower / self.step) - 0.5) * self.step
            upper = (np.round(upper / self.step) + 0.5) * self.step
        low, high = self.ends
        above = at_low & (upper > low) & self.bare_low
        below = at_high & (lower < high) & self.bare_high
        return Outcomes.unchecked(
            np.where(above, low, np.where(at_low, -np.inf, lower)),
            np.where(below, high, np.where(at_high, np.inf, upper)),
        )

    def through(self, latent: Distribution) -> Distribution:
        """Return the distribution of what is seen."""
        dist = latent
        if np.isfinite(self.low) or np.isfinite(self.high):
            near = 0.5 * self.step if self.smooth else 0.0
            dist = Clipped(dist, self.low, self.high, near)
        return Rounded(dist, self.step) if self.step > 0 and not self.smooth else dist

    def within(self, thresholds: Array) -> Array:
        """Return thresholds within the ends, one at each end, between the values of a step."""
        if not self:
            return thresholds
        low, high = self.ends
        if self.step > 0:
            thresholds = (np.floor(thresholds / self.step + OFF_STEP) + 0.5) * self.step
        ends = [end for end in (low, high) if np.isfinite(end)]
        return np.unique(np.concatenate([np.clip(thresholds, low, high), ends]))

    def described(self) -> str:
        """Return it in words; nothing for the whole line."""
        words = [f"values at or below {self.low:g} are seen at {self.low:g}"] * bool(
            np.isfinite(self.low)
        )
        words += [f"values at or above {self.high:g} are seen at {self.high:g}"] * bool(
            np.isfinite(self.high)
        )
        rounded = "rounded to multiples of" if self.smooth else "multiples of"
        words += [f"{rounded} {self.step:g}"] * bool(self.step > 0)
        return "; ".join(words)


# All of Y is seen as it is.
UNBOUNDED = Support()
