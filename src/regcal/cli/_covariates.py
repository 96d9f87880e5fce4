"""Which columns hold covariates, from the options of a command."""

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa

import regcal
from regcal.cli._errors import InputError, unknown_name
from regcal.cli._estimators import Role, is_text
from regcal.cli._predictions import split_names
from regcal.cli._reading import Layout
from regcal.covariates import Covariates
from regcal.tables import CovariateColumns

_OUT = "Leave it out of --covariates."
_COVARIATE = Role("covariate", _OUT, f"{_OUT} A number, such as the year, can be one.")


def covariate_names(option: str | None, among: Sequence[str], what: str) -> list[str]:
    """Return the columns that --covariates names; "all" are all that may be covariates.

    Parameters
    ----------
    option : str, optional
        What was typed.
    among : sequence of str
        Columns that may be covariates.
    what : str
        What these are, in words.
    """
    if option is None:
        return []
    names = list(dict.fromkeys(split_names(option)))
    if names == ["all"] and "all" not in among:
        names = list(among)
    if not names:
        msg = "--covariates names no column. Write them as age,region, or all."
        raise InputError(msg)
    for name in names:
        if name not in among:
            known = ", ".join(among) or "none"
            msg = f"--covariates names {name!r}, which is none of {what}. These are: {known}."
            raise InputError(msg)
    return names


def check_calibrator(calibrator: str, option: str | None) -> None:
    """Refuse a method that is not known, or covariates for one that has no use for them."""
    if calibrator not in regcal.calibrator_names():
        what = "--calibrator: there is no calibrator"
        msg = unknown_name(calibrator, regcal.calibrator_names(), what)
        raise InputError(msg.replace("It has:", "Known:"))
    if option is not None and not regcal.get_calibrator(calibrator).uses_covariates:
        msg = (
            f"--calibrator {calibrator} does not look at covariates. Choose --calibrator auto or "
            "conditional, or leave out --covariates."
        )
        raise InputError(msg)


def covariate_columns(
    names: Sequence[str], arrays: dict[str, pa.Array], layout: Layout
) -> CovariateColumns | None:
    """Return where covariates stand, and which of them are categories, from what they hold."""
    if not names:
        return None
    texts = tuple(name for name in names if is_text(arrays[name], layout, name, _COVARIATE))
    return CovariateColumns({name: name for name in names}, texts)


def columns_read_before(known: Covariates | None) -> CovariateColumns | None:
    """Return where the covariates of a calibrator, which was fitted elsewhere, should stand."""
    if known is None:
        return None
    for column in known.columns:
        if not all(isinstance(level, str) for level in column.levels):
            msg = (
                f"The calibrator knows column {column.name!r} by levels such as "
                f"{column.levels[0]!r}, which no text of a table is. Fit it on texts, or by regcal "
                "calibrate --save."
            )
            raise InputError(msg)
    return CovariateColumns.like(known)


def renamed(known: CovariateColumns | None, option: str | None) -> CovariateColumns | None:
    """Return the columns of a model under other names, if the option gives any."""
    if option is None:
        return known
    names = split_names(option)
    if known is None:
        msg = "This model has learnt from no covariates. Leave out --covariates."
        raise InputError(msg)
    if len(names) != len(known.columns):
        msg = (
            f"--covariates names {len(names)} column(s), but the model has learnt from "
            f"{len(known.columns)}: {', '.join(known.columns)}. Name as many, in this order."
        )
        raise InputError(msg)
    return replace(known, columns=dict(zip(known.columns, names, strict=True)))


def covariates_in_words(names: Sequence[str]) -> str:
    """Return what follows the name of a method that looks at covariates."""
    return f", given {', '.join(names)}," if names else ""
