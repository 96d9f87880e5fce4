"""Which columns are computed of predictive distributions, and how they are called."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from regcal import Distribution
from regcal.cli._errors import InputError, as_typed
from regcal.cli._predictions import numbers_in

_DEFAULT_LEVELS = (0.05, 0.5, 0.95)

# What a column is called if its own name is taken by a column that is passed on.
_PREFIX = "calibrated_"


@dataclass(frozen=True)
class Answers:
    """What is asked of every row's distribution.

    Parameters
    ----------
    levels : sequence of float
        Quantiles: columns ``q05``, ``q97.5``.
    intervals : sequence of float
        Coverages of central intervals: columns ``lower_90`` and ``upper_90``.
    below, above : sequence of float
        Thresholds t of P(Y <= t) and P(Y > t): columns ``below_40`` and ``above_40``.
    moments : bool
        Columns ``mean`` and ``std``.

    Examples
    --------
    >>> from regcal.cli._answers import Answers
    >>> Answers(levels=(0.05, 0.975), intervals=(0.9,), below=(40.0,), above=(-1.5,)).names
    ['q05', 'q97.5', 'lower_90', 'upper_90', 'below_40', 'above_-1.5']
    """

    levels: Sequence[float] = ()
    intervals: Sequence[float] = ()
    below: Sequence[float] = ()
    above: Sequence[float] = ()
    moments: bool = False

    @classmethod
    def from_options(
        cls,
        levels: str | None,
        interval: list[str] | None,
        below: list[str] | None,
        above: list[str] | None,
        moments: bool,
    ) -> "Answers":
        """Return what the options ask for; the median and a 90 % range if they ask for nothing."""
        asked = levels or interval or below or above or moments
        flag = as_typed("--levels", "--quantiles")
        chosen = numbers_in([levels or ""], flag) if asked else _DEFAULT_LEVELS
        intervals = numbers_in(interval, "--interval")
        check_probabilities(chosen, flag)
        check_probabilities(intervals, "--interval")
        thresholds = numbers_in(below, "--below"), numbers_in(above, "--above")
        return cls(chosen, intervals, *thresholds, moments)

    @property
    def names(self) -> list[str]:
        """Names of the columns."""
        return [
            *(f"q{_percent(level)}" for level in self.levels),
            *(f"{end}_{100 * c:.12g}" for c in self.intervals for end in ("lower", "upper")),
            *(f"below_{t:g}" for t in self.below),
            *(f"above_{t:g}" for t in self.above),
            *(("mean", "std") if self.moments else ()),
        ]

    def names_beside(self, others: Sequence[str]) -> list[str]:
        """Return the names of the columns beside others that are passed on."""
        names = [_PREFIX + name if name in others else name for name in self.names]
        taken = sorted(set(names) & set(others)) + sorted({n for n in names if names.count(n) > 1})
        if taken:
            msg = (
                f"There would be two columns {taken[0]!r}. Ask for each answer once, and leave "
                "out columns by --keep."
            )
            raise InputError(msg)
        return names

    def columns(self, dist: Distribution) -> list[np.ndarray]:
        """Return the answers for all rows, a column each."""
        ends = [0.5 + side * c / 2 for c in self.intervals for side in (-1, 1)]
        answers: list[np.ndarray] = []
        if self.levels or ends:
            answers += list(dist.ppf(np.array([[*self.levels, *ends]])).T)
        if self.below:
            answers += list(dist.cdf(np.array([self.below])).T)
        if self.above:
            answers += list(dist.sf(np.array([self.above])).T)
        if self.moments:
            answers += [dist.mean(), dist.std()]
        return answers


def _percent(level: float) -> str:
    """Return 05 for 0.05 and 97.5 for 0.975."""
    text = f"{100 * level:.12g}"
    return text if level >= 0.1 else "0" + text


def check_probabilities(values: Sequence[float], flag: str) -> None:
    """Refuse what is no probability, by the name of the option."""
    for value in values:
        if not 0 < value < 1:
            msg = f"{flag} takes numbers between 0 and 1, got {value:g}. Write 90 % as 0.9."
            raise InputError(msg)
