"""Which columns hold predictions, from the options of a command."""

import math
import re
from collections.abc import Sequence
from fnmatch import fnmatchcase

from regcal.cli._errors import InputError, as_typed, in_words, likeliest
from regcal.cli._reading import Layout
from regcal.tables import NormalColumns, PredictionColumns, QuantileColumns, SampleColumns

_WAYS = "--mean and --std, --quantiles, or --samples"


def prediction_columns(
    layout: Layout,
    mean: str | None,
    std: str | None,
    quantiles: str | None,
    samples: str | None,
) -> PredictionColumns:
    """Return the columns that the options name, after checking that the table has them."""
    given = [mean is not None or std is not None, quantiles is not None, samples is not None]
    if sum(given) != 1:
        msg = f"Say where the predictions are by one of {_WAYS}."
        if sum(given) > 1 and quantiles is not None:
            msg += " Here --quantiles names columns; for quantiles to write, use --levels."
        raise InputError(msg)
    if quantiles is not None:
        return _quantile_columns(layout, quantiles)
    if samples is not None:
        return _sample_columns(layout, samples)
    if mean is None or std is None:
        msg = "--mean and --std belong together: name the columns of both."
        raise InputError(msg)
    for name, option in ((mean, "--mean"), (std, "--std")):
        layout.position(name, option)
    return NormalColumns(mean, std)


def check_columns_of_model(columns: PredictionColumns, layout: Layout) -> None:
    """Refuse a table without the columns that a model knows, and say how to name others."""
    lacking = [name for name in columns.names if name not in layout.names]
    if not lacking:
        return
    here = {name: name for name in columns.names}
    free = [name for name in layout.names if name not in here]
    for name in lacking:
        here[name] = likeliest(name, free) or "NAME"
        free = [one for one in free if one != here[name]]
    if isinstance(columns, NormalColumns):
        option = f"--mean {here[columns.mean]} --std {here[columns.std]}"
    elif isinstance(columns, QuantileColumns):
        levels = (f"{here[name]}={level:g}" for level, name in sorted(columns.columns.items()))
        option = f"--quantile-columns {','.join(levels)}"
    else:
        option = "--samples with their names, or with a common start such as draw_"
    msg = (
        f"{layout.label} has no column {lacking[0]!r}, where the model has learnt to find "
        f"predictions. If they have other names here: {option}. It has: {in_words(layout.names)}."
    )
    raise InputError(msg)


def _quantile_columns(layout: Layout, option: str) -> QuantileColumns:
    pairs, flag = [], as_typed("--quantile-columns", "--quantiles")
    for part in split_names(option):
        known = part in layout.names
        name, _, level = (part, "", "") if known else part.partition("=")
        for column in _matching(layout, name, flag):
            pairs.append((level_of(level or column, column, flag), column))
    pairs.sort()
    levels = tuple(level for level, _ in pairs)
    if len(set(levels)) < max(2, len(levels)):
        msg = (
            f"{flag} {option} gives the levels {', '.join(f'{one:g}' for one in levels)}. "
            "At least two different ones are needed, each once."
        )
        raise InputError(msg)
    if not levels[0] <= 0.5 <= levels[-1]:
        name = pairs[0][1]
        msg = (
            f"{flag} {option} gives the levels {', '.join(f'{one:g}' for one in levels)}, all "
            f"on one side of the median. If these are not meant, write '{name}=0.1,...'."
        )
        raise InputError(msg)
    return QuantileColumns(dict(pairs))


def _sample_columns(layout: Layout, option: str) -> SampleColumns:
    parts = split_names(option)
    names = [name for part in parts for name in _matching(layout, part, "--samples")]
    if len(names) == 1:
        names = [name for name in layout.names if name.startswith(names[0])]
    if len(names) < 2:
        msg = (
            f"--samples {option} names {len(names)} column of {layout.label}; at least two draws "
            "are needed. Name them all, a common start such as draw_, or a pattern such as 'draw*'."
        )
        raise InputError(msg)
    return SampleColumns(tuple(names))


def _matching(layout: Layout, name: str, flag: str) -> list[str]:
    """Return the columns that a name, a pattern or a common start stands for."""
    if name in layout.names:
        return [name]
    if any(mark in name for mark in "*?["):
        found = [one for one in layout.names if fnmatchcase(one, name)]
    else:
        found = [one for one in layout.names if re.fullmatch(re.escape(name) + r"[\d.]+", one)]
    if not found:
        layout.position(name, flag)  # says what the table has
    return found


def split_names(option: str) -> list[str]:
    """Return the parts of a list that is separated by commas."""
    return [part.strip() for part in option.split(",") if part.strip()]


def level_of(text: str, name: str, flag: str = "--quantiles") -> float:
    """Return the level that a column's name tells.

    Examples
    --------
    >>> from regcal.cli._predictions import level_of
    >>> [level_of(name, name) for name in ("q05", "P50", "0.9", "q97.5", "q_0.25", "q975")]
    [0.05, 0.5, 0.9, 0.975, 0.25, 0.975]
    """
    found = re.search(r"(\d*\.?\d+)\s*%?$", text.strip())
    digits = found.group(1) if found else ""
    if digits.startswith(("0.", ".")):
        level = float(digits)
    elif re.fullmatch(r"\d{3,}", digits) and digits != "100":  # q025, q975
        level = float("0." + digits)
    else:
        level = float(digits or "nan") / 100
    if not 0 < level < 1:
        msg = (
            f"The name {name!r} does not tell a level between 0 and 1, as q05, q97.5 or 0.5 do. "
            f"Write it as {flag} '{name}=0.05,...'."
        )
        raise InputError(msg)
    return round(level, 12)


def numbers_in(texts: Sequence[str] | None, flag: str) -> tuple[float, ...]:
    """Return the numbers of an option that was given several times, or with commas, or not."""
    try:
        numbers = [float(part) for text in texts or () for part in split_names(text)]
    except ValueError as error:
        msg = f"{flag} takes numbers, got {', '.join(texts or ())!r}. {str(error).capitalize()}."
        raise InputError(msg) from error
    if not all(map(math.isfinite, numbers)):
        msg = f"{flag} takes finite numbers, got {', '.join(texts or ())}."
        raise InputError(msg)
    return tuple(numbers)
