"""What is told to users about their input."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from difflib import get_close_matches

# What the extra ``cli`` brings.
_EXTRA = {"pandas", "pyarrow", "rich", "skops", "typer"}


class InputError(ValueError):
    """Something in a file or an option is wrong; the message says what, where and the way out."""


class TerminatedError(SystemExit):
    """The process was asked to end, by a signal."""


@contextmanager
def code_of_users(start: str, end: str = "") -> Iterator[None]:
    """Tell in a sentence whatever code of users raises, also when it wants to end the process.

    Parameters
    ----------
    start, end : str
        What stands before and after the error.
    """
    try:
        yield
    except (InputError, MemoryError, TerminatedError):
        raise
    except SystemExit as error:
        msg = f"{start}: it has called sys.exit({error.code!r}).{end}"
        raise InputError(msg) from error
    except Exception as error:
        msg = f"{start}: {type(error).__name__}: {str(error).rstrip('.')}.{end}"
        raise InputError(msg) from error


def missing_package(error: Exception) -> str | None:
    """Return what to install if a package of the command line is missing, or None."""
    name = error.name or "" if isinstance(error, ModuleNotFoundError) else ""
    if name.split(".")[0] not in _EXTRA:
        return None
    return f"The command line needs {name}, which is not installed: pip install 'regcal[cli]'"


def as_typed(*names: str) -> str:
    """Return the one of an option's names that stands in the command, or else the first."""
    typed = {part.partition("=")[0] for part in sys.argv[1:]}
    return next((name for name in names if name in typed), names[0])


def likeliest(name: str, known: Sequence[str]) -> str | None:
    """Return the name that is most like one that is not there: longer, shorter, or mistyped.

    Examples
    --------
    >>> from regcal.cli._errors import likeliest
    >>> likeliest("prediction", ["region", "pred"]), likeliest("sigmma", ["sigma", "id"])
    ('pred', 'sigma')
    """
    by_lower = {one.lower(): one for one in known}
    asked = name.lower()
    parts = [
        one
        for one in by_lower
        if min(len(one), len(asked)) > 2 and (one.startswith(asked) or asked.startswith(one))
    ]
    close = get_close_matches(asked, parts, n=1, cutoff=0.0) or get_close_matches(asked, by_lower)
    return by_lower[close[0]] if close else None


def unknown_name(name: str, known: Sequence[str], what: str) -> str:
    """Return the start of a message on a name that is not there, with the likeliest one.

    Examples
    --------
    >>> from regcal.cli._errors import unknown_name
    >>> unknown_name("sigmma", ["id", "mu", "sigma"], "data.csv has no column")
    "data.csv has no column 'sigmma'. Did you mean 'sigma'?"
    """
    close = likeliest(name, known)
    if close is not None:
        return f"{what} {name!r}. Did you mean {close!r}?"
    return f"{what} {name!r}. It has: {in_words(known)}."


def in_words(names: Sequence[str]) -> str:
    """Return names as a text, the first of many."""
    return ", ".join(repr(one) for one in names[:12]) + (", ..." if len(names) > 12 else "")
