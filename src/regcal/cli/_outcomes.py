"""Where outcomes stand and through what they are seen, from the options of a command."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from regcal.calibrators import Support
from regcal.cli._console import note
from regcal.cli._errors import InputError
from regcal.cli._predictions import numbers_in
from regcal.cli._reading import Layout
from regcal.ends import given_ends
from regcal.outcomes import Outcomes
from regcal.tables import (
    CensoredColumns,
    ExactColumn,
    IntervalColumns,
    OutcomeColumns,
    RefusedRows,
)


@dataclass(frozen=True)
class OutcomeOptions:
    """Columns of outcomes as options name them.

    Parameters
    ----------
    target, censored, lower, upper : str, optional
        The values of these options.
    """

    target: str | None = None
    censored: str | None = None
    lower: str | None = None
    upper: str | None = None

    def columns(self) -> OutcomeColumns | None:
        """Return where outcomes stand; nothing if no option says so."""
        ends = self.lower is not None, self.upper is not None
        if any(ends):
            if self.target is not None or self.censored is not None:
                msg = (
                    "--lower and --upper tell all of an outcome. Leave out --target and "
                    "--censored, or these two."
                )
                raise InputError(msg)
            if not all(ends):
                msg = (
                    "--lower and --upper belong together: name the columns of both ends. A cell "
                    "is empty where an end is not known."
                )
                raise InputError(msg)
            return IntervalColumns(self.lower, self.upper)
        if self.censored is None:
            return None if self.target is None else ExactColumn(self.target)
        if self.target is None:
            msg = (
                "--censored tells which outcomes are only known to be at least their values. Name "
                "the column of the values: --target y."
            )
            raise InputError(msg)
        return CensoredColumns(self.target, self.censored)

    def columns_of(self, layout: Layout) -> OutcomeColumns:
        """Return where outcomes stand, after checking that the table has these columns."""
        columns = self.columns()
        if columns is None:
            msg = "Name the column of outcomes: --target y. For intervals: --lower a --upper b."
            raise InputError(msg)
        self.check_names(layout)
        return columns

    def check_names(self, layout: Layout) -> None:
        """Refuse names that the table does not have, and say which option has them."""
        for option in ("target", "censored", "lower", "upper"):
            name = getattr(self, option)
            if name is not None:
                layout.position(name, f"--{option}")


@dataclass(frozen=True)
class SupportOptions:
    """Ends and step as options tell them.

    Parameters
    ----------
    support : {"auto", None} or (low, high)
    step : {"auto", None} or float
        Both as calibrators take them.

    Examples
    --------
    >>> from regcal.cli._outcomes import SupportOptions
    >>> SupportOptions.parsed("0,", "1")
    SupportOptions(support=(0.0, None), step=1.0)
    """

    support: Any = "auto"
    step: Any = None

    @classmethod
    def parsed(cls, support: str, step: str | None) -> "SupportOptions":
        """Return what ``--support auto|none|LOW,HIGH`` and ``--step auto|NUMBER`` say."""
        return cls(_support_in(support), None if step is None else _step_in(step))

    @property
    def parameters(self) -> dict[str, Any]:
        """The same as parameters of a calibrator."""
        return {"support": self.support, "step": self.step}

    @property
    def given(self) -> Support:
        """What is given rather than found."""
        return Support.given(self.support, self.step)


def _support_in(text: str) -> Any:
    word = text.strip().lower()
    if word in ("auto", "none"):
        return "auto" if word == "auto" else None
    ends = word.split(",")
    if len(ends) != 2 or not any(end.strip() for end in ends):
        msg = (
            f"--support takes auto, none, or two ends with a comma, got {text!r}. Leave out an "
            "end that there is none of: --support 0, or --support ,100."
        )
        raise InputError(msg)
    low, high = (numbers_in([end], "--support") or (None,) for end in ends)
    pair = (low[0], high[0])
    try:
        given_ends(pair)
    except ValueError as error:
        msg = f"--support {text}: {error}"
        raise InputError(msg) from error
    return pair


def _step_in(text: str) -> Any:
    if text.strip().lower() == "auto":
        return "auto"
    numbers = numbers_in([text], "--step")
    if len(numbers) != 1 or numbers[0] <= 0:
        msg = f"--step takes auto or a positive number, such as 1 for counts, got {text!r}."
        raise InputError(msg)
    return numbers[0]


def refused_by(support: Support, columns: OutcomeColumns, y: Any) -> RefusedRows:
    """Return the outcomes that cannot be seen through ends and a step that were given."""
    outcomes = Outcomes.of(y)
    found, values = f"the outcome in {columns.label!r} is", outcomes.values
    outside = support.beyond(outcomes)
    if outside.any():
        rule = f"--support goes from {support.low:g} to {support.high:g}"
        return RefusedRows(outside, found, values, rule)
    return RefusedRows(
        support.off_step(outcomes), found, values, f"--step says multiples of {support.step:g}"
    )


def note_support(support: Support, options: SupportOptions) -> None:
    """Tell people through what outcomes are seen, and the way out of each part that was found."""
    if support:
        ways_out = []
        if options.support == "auto" and np.isfinite([support.low, support.high]).any():
            ways_out.append("pass --support none")
        if options.step == "auto" and support.step > 0:
            ways_out.append("leave out --step")
        way_out = f" If not, {', or '.join(ways_out)}." if ways_out else ""
        if support.smooth:
            way_out += f" For P(Y <= k) of such values, pass --step {support.step:g}."
        note(f"Outcomes: {support.described()}.{way_out}")
