"""What is told to users about their input."""

from collections.abc import Sequence
from difflib import get_close_matches


class InputError(ValueError):
    """Something in a file or an option is wrong; the message says what, where and the way out."""


def unknown_name(name: str, known: Sequence[str], what: str) -> str:
    """Return the start of a message on a name that is not there, with the likeliest one.

    Examples
    --------
    >>> from regcal.cli._errors import unknown_name
    >>> unknown_name("sigmma", ["id", "mu", "sigma"], "data.csv has no column")
    "data.csv has no column 'sigmma'. Did you mean 'sigma'?"
    """
    by_lower = {one.lower(): one for one in known}
    close = get_close_matches(name.lower(), by_lower, n=1)
    if close:
        return f"{what} {name!r}. Did you mean {by_lower[close[0]]!r}?"
    shown = ", ".join(repr(one) for one in known[:12]) + (", ..." if len(known) > 12 else "")
    return f"{what} {name!r}. It has: {shown}."
