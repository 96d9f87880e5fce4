"""Held-out rows with what every fit asks of them, and the sample of rows that is kept."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from typing import Any, Self

import numpy as np
from scipy.special import ndtr

from regcal._caching import WithoutCaches
from regcal._random import as_generator
from regcal._validation import Array, check_weights
from regcal.calibrators.support import UNBOUNDED, Support
from regcal.covariates import Covariates
from regcal.distributions import Distribution, Quantiles, as_distribution, concatenate
from regcal.distributions.alike import read, readings_of, row_keys, says_the_same
from regcal.distributions.stacked import joined
from regcal.ends import Ends, least_mass
from regcal.outcomes import Outcomes, check_outcomes

# So many rows are kept.
MAX_ROWS = 2**14

# Rows that are looked at together.
_BLOCK = 2**16

# Parts are joined when there are so many of them.
_MAX_PARTS = 256

# What is forgotten, when all else is, is left out once it holds less than this share of all weight.
# It is how many rows a short memory keeps.
_NEXT_TO_NOTHING = 2.0**-14

# Rows wait to be counted until they hold so many numbers, 8 MB, as do points that are kept. With
# more, longer streams are looked at where a fit looks (`tests/test_fit_laws.py`, "batches"), and
# `partial_fit`, which counts them each time, takes longer: here, four times at most.
_MOST_WAITING = 2**20

# Sampled rows of classes that cannot be joined are tabulated at these probits.
_PROBITS = np.linspace(-6.0, 6.0, 97)

# Numbers that agree in so many bits, about seven digits, count as equal. Other processors round
# differently in the last digit, and what was equal must not become different by that.
_EQUAL_BITS = 24

# Cells in which to look for equal numbers: of 16 times fewer, one in 16 shares its cell.
_CELLS = 2**20

# An outcome is foreseen if it is no further out, in probits of its own prediction. One in a million
# of a model that is right is; what a model is surprised by may be a gross error.
_FORESEEN = 5.0

# So many of the outermost outcomes are looked at for one that was foreseen: first one alone.
_OUTERMOST = (1, 64, 4096)

# What is derived of rows whatever their weights.
_OF_NO_WEIGHT = ("y", "exact", "_at_outcomes", "possible", "distinct")


def without_last_digits(values: Array) -> Array:
    """Return numbers with about seven digits, so that those that should be equal are."""
    unit = 1 << (53 - _EQUAL_BITS)
    bits = values.view(np.int64) + unit // 2  # a carry goes on into the exponent
    bits &= -unit
    return bits.view(np.float64)


@dataclass(frozen=True)
class HeldOut(WithoutCaches):
    """Predictions for rows that their model has not seen, and what was seen of the outcomes.

    Parameters
    ----------
    dist : Distribution
    seen : Outcomes
    weights : ndarray of shape (n_rows,)
    covariates : Covariates, optional
        What else is known of the rows.
    groups : ndarray of shape (n_rows,), optional
        Numbers of groups whose rows belong together: none is learnt from to judge another.
    """

    dist: Distribution
    seen: Outcomes
    weights: Array
    covariates: Covariates | None = None
    groups: np.ndarray | None = None

    @classmethod
    def checked(
        cls,
        dist: Any,
        y: Any,
        sample_weight: Any = None,
        covariates: Any = None,
        support: Support = UNBOUNDED,
    ) -> "HeldOut":
        """Return the rows that count, after checking what the user passed."""
        dist = as_distribution(dist)
        dist = read(dist, readings_of(dist))
        n_rows = len(dist)
        outcomes, weights = check_outcomes(y, n_rows), check_weights(sample_weight, n_rows)
        if support:
            counted = np.flatnonzero(weights)
            support.check(outcomes[counted], counted)
        known = None if covariates is None else Covariates.of(covariates, n_rows)
        return cls(dist, outcomes, weights, known).counted()

    @classmethod
    def joined(cls, parts: Sequence["HeldOut"]) -> "HeldOut":
        """Return the rows of several parts; in one batch of their class where that is possible."""
        if len(parts) == 1:
            return parts[0]
        readings = readings_of(*(part.dist for part in parts))
        dists = [read(part.dist, readings) for part in parts]
        whole = joined(dists)
        lower, upper, weights = (
            np.concatenate(columns)
            for columns in zip(
                *((part.seen.lower, part.seen.upper, part.weights) for part in parts), strict=True
            )
        )
        rows = cls(
            concatenate(dists) if whole is None else whole,
            Outcomes.unchecked(lower, upper),
            weights,
            _joined_covariates([part.covariates for part in parts]),
            _joined_groups([part.groups for part in parts]),
        )
        same = all(says_the_same(part.dist, dist) for part, dist in zip(parts, dists, strict=True))
        if same and all("_at_outcomes" in vars(part) for part in parts):
            known = zip(*(part._at_outcomes for part in parts), strict=True)
            vars(rows)["_at_outcomes"] = tuple(np.concatenate(one) for one in known)
        return rows

    def __len__(self) -> int:
        return len(self.weights)

    @cached_property
    def y(self) -> Array:
        """A number per row; see `Outcomes.values`."""
        return self.seen.values

    @cached_property
    def exact(self) -> np.ndarray:
        """Whether the outcome is a point that has a density, rather than an interval or a mass."""
        masses = self.dist._evaluate("_logmass", self.y[:, np.newaxis], True)
        return self.seen.exact_rows & (masses == -np.inf)

    @cached_property
    def _at_outcomes(self) -> tuple[Array, Array]:
        return self.dist.probit_and_logslope(self.y)

    @property
    def z(self) -> Array:
        """The probits of `y`; infinite where it is impossible."""
        return self._at_outcomes[0]

    @property
    def log_spread(self) -> Array:
        """The logs of dt / dz at `y`; infinite where there is no density."""
        return -self._at_outcomes[1]

    @cached_property
    def intervals(self) -> tuple["HeldOut", Array, Array]:
        """The rows that are not exact, and the probits between which their outcomes lie."""
        rows = self.take(np.flatnonzero(~self.exact))
        low = rows.dist._evaluate("_probit_below", rows.seen.lower[:, np.newaxis], True)
        return rows, low, rows.dist.probit(rows.seen.upper)

    @cached_property
    def possible(self) -> np.ndarray:
        """Which outcomes lie inside of what is predicted, and have a density or a probability."""
        z, log_slope = self._at_outcomes
        inside = np.isfinite(z) & np.isfinite(log_slope)
        if self.exact.all():
            return inside
        _, low, high = self.intervals
        inside[~self.exact] = low < high
        return inside

    @cached_property
    def foreseen(self) -> Ends:
        """The outermost outcomes that are possible by what is predicted of their own rows."""
        high = self._highest_foreseen(1.0)
        return -self._highest_foreseen(-1.0), high

    def _highest_foreseen(self, sign: float) -> float:
        """Return the largest outcome that was foreseen, times the sign; -inf if none of many is."""
        y = sign * self.y
        for count in np.minimum(_OUTERMOST, len(y)):
            outer = np.argpartition(y, len(y) - count)[len(y) - count :]
            with np.errstate(all="ignore"):  # functions of users may overflow far out
                near = np.abs(self.dist[outer].probit(self.y[outer])) <= _FORESEEN
            if near.any():
                return float(y[outer[near]].max())
        return -np.inf

    @property
    def n_possible(self) -> int:
        """The number of outcomes that are possible."""
        return int(np.count_nonzero(self.possible))

    @cached_property
    def possible_intervals(self) -> np.ndarray:
        """Of outcomes that were seen as intervals, whether predictions have anything in them."""
        if self.seen.exact_rows.all():
            return np.empty(0, dtype=bool)
        rows, low, high = self.intervals
        return (low < high)[~rows.seen.exact_rows]

    @cached_property
    def distinct(self) -> np.ndarray:
        """The number of each row among the distinct ones, in the order of z and y."""
        columns = [self.z, self.seen.lower, self.seen.upper, *self._keys]
        numbers = _numbered(columns)
        if numbers.max(initial=-1) + 1 == len(self):
            return numbers
        # rows that say the same of their outcome, as of a mass, may differ elsewhere
        return _numbered([*columns, *row_keys(self.dist)])

    @property
    def _keys(self) -> list[Array]:
        """Numbers that tell the covariates and groups of rows apart."""
        known = [] if self.covariates is None else [one.keys for one in self.covariates.columns]
        return known if self.groups is None else [*known, self.groups.astype(float)]

    @property
    def constant(self) -> bool:
        """Whether all outcomes are equal."""
        return bool(np.ptp(self.y) == 0)

    @property
    def n_numbers(self) -> int:
        """How many numbers the rows hold."""
        columns = 0 if self.covariates is None else len(self.covariates.columns)
        return _numbers_in(self.dist) + (3 + columns) * len(self)

    def log_scores(self, dist: Distribution) -> Array:
        """Return the log density of points, and the log probability of intervals."""
        scores, exact = np.empty(len(self)), self.exact
        if exact.all():
            return dist.logpdf(self.y)
        scores[exact] = dist[exact].logpdf(self.y[exact])
        scores[~exact] = dist[~exact].logprob(self.seen.lower[~exact], self.seen.upper[~exact])
        return scores

    def through(self, support: Support) -> "HeldOut":
        """Return the rows with what a support lets one see of their outcomes."""
        if not support:
            return self
        part = replace(self, seen=support.seen(self.seen))
        same = np.array_equal(part.y, self.y)
        return self._with_known(part, slice(None)) if same else part

    def within(self, ends: Ends) -> "HeldOut":
        """Return the rows with outcomes of which none lies beyond given ends."""
        seen = self.seen.within(ends)
        return self if seen is self.seen else replace(self, seen=seen)

    def counted(self) -> "HeldOut":
        """Return the rows whose weight is not 0."""
        if self.weights.all():
            return self
        return self.take(np.flatnonzero(check_weights(self.weights, len(self))))

    def take(self, places: Any) -> "HeldOut":
        """Return some of the rows."""
        covariates = None if self.covariates is None else self.covariates.take(places)
        groups = None if self.groups is None else self.groups[places]
        parts = (self.dist[places], self.seen[places], self.weights[places])
        part = HeldOut(*parts, covariates, groups)
        if "exact" in vars(self):
            vars(part)["exact"] = self.exact[places]
        return self._with_known(part, places)

    def blocks(self) -> Iterator["HeldOut"]:
        """Yield the rows in parts that are looked at together."""
        for start in range(0, len(self), _BLOCK):
            yield self if len(self) <= _BLOCK else self.take(slice(start, start + _BLOCK))

    def reweighted(self, weights: Array) -> "HeldOut":
        """Return the rows with other weights."""
        part = replace(self, weights=weights)
        vars(part).update({name: vars(self)[name] for name in _OF_NO_WEIGHT if name in vars(self)})
        return part

    def with_dist(self, dist: Distribution) -> "HeldOut":
        """Return the rows with the same predictions in another form."""
        return self._with_known(replace(self, dist=dist), slice(None))

    def predicted(self, dist: Distribution) -> "HeldOut":
        """Return the rows with other predictions."""
        return replace(self, dist=dist)

    def merged(self) -> "HeldOut":
        """Return each distinct row once, in the order of z and y, with the weight of its like."""
        _, first = np.unique(self.distinct, return_index=True)
        return self.take(first).reweighted(np.bincount(self.distinct, self.weights).astype(float))

    def _with_known(self, part: "HeldOut", places: Any) -> "HeldOut":
        """Give a part of these rows what is known of them."""
        if "_at_outcomes" in vars(self):
            vars(part)["_at_outcomes"] = tuple(known[places] for known in self._at_outcomes)
        return part


@dataclass(frozen=True)
class Sample(WithoutCaches):
    """Rows with random priorities: the `MAX_ROWS` of largest priority stay.

    Priority sampling (Duffield, Lund and Thorup, 2007): a row of weight w has the priority w / U
    for a uniform U. With the largest priority that was dropped, max(w, dropped) is an unbiased
    weight for what a kept row stands for, and samples of disjoint sets of rows merge.

    U follows from the row itself, from seven digits of the outcome, of its probit (but where that
    takes something from other rows), of what is predicted and of covariates: neither batches nor
    the order of rows nor the last digit of a number matters, and rows that are equal are one row.

    Parameters
    ----------
    parts : tuple of HeldOut
        More rows than that only of a sample that is drawn when it is asked for.
    uniforms : tuple of ndarray
        U of the rows of each part, once rows have been dropped.
    dropped : float
        Largest priority of a row that is not kept; 0 while all are.
    """

    parts: tuple[HeldOut, ...] = ()
    uniforms: tuple[Array, ...] = ()
    dropped: float = 0.0

    @property
    def complete(self) -> bool:
        """Whether no row has been dropped."""
        return self.dropped == 0

    def __len__(self) -> int:
        return sum(map(len, self.parts))

    def add(self, rows: HeldOut) -> Self:
        """Return these rows and more, dropping the least if they are too many."""
        if self.complete:
            return self._with((rows,), ())
        uniforms, known = uniforms_of(rows), np.concatenate(self.uniforms)
        chosen = rows.weights / uniforms > self.dropped
        # the like of a row that is kept adds to its weight
        like = np.flatnonzero(~chosen & (uniforms <= known.max()))
        chosen[like] = np.isin(uniforms[like], known)
        wanted = np.flatnonzero(chosen)
        return self._with((rows.take(wanted),), (uniforms[wanted],))

    def merge(self, other: "Sample") -> "Sample":
        """Return the rows of both, dropping the least if they are too many."""
        if self.complete != other.complete:
            drawn, whole = (other, self) if self.complete else (self, other)
            return reduce(Sample.add, whole.parts, drawn)
        most = replace(self, dropped=max(self.dropped, other.dropped))
        return most._with(other.parts, other.uniforms)

    def _with(self, parts: tuple[HeldOut, ...], uniforms: tuple[Array, ...]) -> Self:
        kept = replace(self, parts=self.parts + parts, uniforms=self.uniforms + uniforms)
        most = MAX_ROWS * (1.0 if kept.complete else 1.5)
        return kept.trimmed() if len(kept) > most or len(kept.parts) > _MAX_PARTS else kept

    def faded(self, factor: float) -> "Sample":
        """Return the rows with their weights multiplied, without those that hardly count.

        Where rows have been dropped, those left stand for them, and none is left out.
        """
        whole = self._whole
        (rows,) = whole.parts
        rows = rows.reweighted(factor * rows.weights)
        if whole.complete:
            rows = rows.take(that_count(rows.weights))
        return replace(whole, parts=(rows,), dropped=factor * whole.dropped)

    def trimmed(self) -> Self:
        """Return at most `MAX_ROWS` rows, in one part where that is possible."""
        if len(self) <= MAX_ROWS:
            known = (np.concatenate(self.uniforms),) if self.uniforms else ()
            return replace(self, parts=(HeldOut.joined(self.parts),), uniforms=known)
        weights, uniforms, first = self._distinct()
        priorities = weights / uniforms
        n_left_out, dropped = len(first) - MAX_ROWS, self.dropped
        if n_left_out > 0:
            dropped = max(dropped, float(np.partition(priorities, n_left_out - 1)[n_left_out - 1]))
        chosen = np.flatnonzero(priorities > dropped)
        chosen = chosen[np.argsort(first[chosen])]
        rows = self._taken(first[chosen]).reweighted(weights[chosen])
        known = (uniforms[chosen],) if dropped > 0 else ()
        return replace(self, parts=(rows,), uniforms=known, dropped=dropped)

    def _distinct(self) -> tuple[Array, Array, np.ndarray]:
        """Return weight and U of distinct rows, and the place of the first of each."""
        weights = np.concatenate([part.weights for part in self.parts])
        known = np.concatenate(self.uniforms or tuple(map(uniforms_of, self.parts)))
        if not _any_equal(known):  # as nearly always: it takes no sorting
            return weights, known, np.arange(len(known))
        uniforms, first, place = np.unique(known, return_index=True, return_inverse=True)
        return np.bincount(place, weights).astype(float), uniforms, first

    def _taken(self, places: np.ndarray) -> HeldOut:
        """Return the rows at increasing places of all parts together, in plain arrays."""
        starts = np.cumsum([0, *map(len, self.parts)])
        own = np.split(places, np.searchsorted(places, starts[1:-1]))
        parts = [
            part.take(numbers - start)
            for part, numbers, start in zip(self.parts, own, starts[:-1], strict=True)
            if len(numbers)
        ]
        return HeldOut.joined([part.with_dist(_plain(part.dist)) for part in parts])

    @property
    def at_hand(self) -> HeldOut:
        """All rows where none has been dropped yet, else those that are kept."""
        return self.parts[0] if self.complete and len(self.parts) == 1 else self.all()

    def all(self) -> HeldOut:
        """Return the rows in one batch, with the weights of what they stand for."""
        whole = self._whole
        (rows,) = whole.parts
        return rows if whole.complete else rows.reweighted(np.maximum(rows.weights, whole.dropped))

    @cached_property
    def _whole(self) -> "Sample":
        """The rows that are kept, in one part."""
        if len(self) <= MAX_ROWS:
            return self if len(self.parts) == 1 else self.trimmed()
        drawn = self
        if self.complete:
            blocks = (block for part in self.parts for block in part.blocks())
            drawn = reduce(Sample.add, blocks, Sample())
        return drawn if len(drawn) <= MAX_ROWS else drawn.trimmed()


@dataclass(frozen=True)
class Waiting:
    """Rows that are not counted before it is known which targets to look at.

    Parameters
    ----------
    parts : tuple of HeldOut
    """

    parts: tuple[HeldOut, ...] = ()

    def add(self, parts: tuple[HeldOut, ...]) -> "Waiting":
        """Return these rows and more."""
        grown = Waiting(self.parts + parts)
        return Waiting((grown.all(),)) if len(grown.parts) > _MAX_PARTS else grown

    @property
    def full(self) -> bool:
        """Whether they are too many to wait any longer."""
        return sum(part.n_numbers for part in self.parts) > _MOST_WAITING

    def all(self) -> HeldOut:
        """Return the rows in one batch, which is read as one."""
        return HeldOut.joined(self.parts)


def _numbers_in(dist: Distribution) -> int:
    """Return how many numbers a batch holds."""
    total = 0
    for held in dist.__getstate__().values():
        for part in held if isinstance(held, list | tuple) else [held]:
            if isinstance(part, np.ndarray):
                total += part.size
            elif isinstance(part, Distribution):
                total += _numbers_in(part)
    return total


def that_count(weights: Array) -> np.ndarray:
    """Return the places of all but the lightest, which together are next to nothing of all."""
    order = np.argsort(weights, kind="stable")
    shares = np.cumsum(weights[order])
    return np.sort(order[shares > _NEXT_TO_NOTHING * weights.sum()])


def _joined_covariates(parts: Sequence[Covariates | None]) -> Covariates | None:
    """Return the covariates of several parts, all of which have them or none."""
    known = [part for part in parts if part is not None]
    if not known:
        return None
    if len(known) < len(parts):
        msg = "Some rows have covariates and others have none. Pass them with every batch."
        raise ValueError(msg)
    return Covariates.joined(known)


def _joined_groups(parts: Sequence[np.ndarray | None]) -> np.ndarray | None:
    """Return the groups of several parts, all of which have them or none."""
    known = [part for part in parts if part is not None]
    return np.concatenate(known) if known else None


def _plain(dist: Distribution) -> Distribution:
    """Return rows that hold nothing but their own arrays; a table of quantiles if need be."""
    if joined([dist, dist]) is not None:
        return dist
    values = dist.from_probit(_PROBITS[np.newaxis, :])
    # a search has last digits, which may fall where many levels have one quantile
    return Quantiles(ndtr(_PROBITS), np.maximum.accumulate(values, axis=1))


def deal(
    rows: HeldOut, n_folds: int, seed: int, support: Support = UNBOUNDED
) -> tuple[HeldOut, np.ndarray]:
    """Return rows, and a fold for each: at random, but equal rows and groups stay together.

    Equal rows are kept together as copies, or as the weight, of one. Those that are equal because
    little is said of them and little was seen are not: else a count would be left out with all its
    rows, and what learnt without it would be judged by it. What such rows weigh is dealt row by
    row, and a row of each fold stands for its share.

    Parameters
    ----------
    rows : HeldOut
    n_folds, seed : int
    support : Support
        Through what outcomes are seen, if rows are as given.
    """
    units, grouped = rows.distinct, rows.groups is not None and np.ptp(rows.groups) > 0
    if grouped:
        units = np.unique(np.asarray(rows.groups), return_inverse=True)[1]
    random = as_generator(seed)
    folds = (random.permutation(int(units.max()) + 1) % n_folds)[units]
    if grouped:
        return rows, folds
    totals = np.bincount(units, rows.weights).astype(float)
    first = np.unique(units, return_index=True)[1]
    masses = np.flatnonzero(_are_masses(rows, totals, first, support))
    if len(masses) == 0:
        return rows, folds
    single = np.flatnonzero(~np.isin(units, masses))
    n_equal = np.round(totals[masses]).astype(int)
    counts = random.multinomial(n_equal, np.full(n_folds, 1 / n_folds))
    mass, fold = np.nonzero(counts)
    share = counts[mass, fold] / n_equal[mass]
    weights = np.concatenate([rows.weights[single], share * totals[masses][mass]])
    divided = rows.take(np.concatenate([single, first[masses][mass]])).reweighted(weights)
    return divided, np.concatenate([folds[single], fold])


def _are_masses(rows: HeldOut, totals: Array, first: np.ndarray, support: Support) -> np.ndarray:
    """Return which distinct rows, of given weights and places, are several that came out equal.

    Their outcome is an interval or has a mass, and their prediction was also made of rows with
    other outcomes, which no weight explains. benchmarks/equal_rows.py, "auto" of 150 rows under one
    prediction: with equal rows in one fold, -0.21 nats and CRPS +24 % where 40 % are 0; without the
    masses, -0.39 and +3 % of a favourite value. 40 rows of weight 10 that weight alone would divide
    lose 2.5 nats.
    """
    several = np.round(totals) > 1
    if not several.any():
        return several
    seen = support.seen(rows.seen[first])
    outcome = _numbered([seen.lower, seen.upper])
    frequent = np.bincount(outcome, totals)[outcome] >= least_mass(totals.sum())
    points = np.quantile(np.unique(rows.y), [0.25, 0.75])  # where predictions that differ do so
    one = rows.take(first)
    prediction = _numbered([*one.dist.probit(points[np.newaxis, :]).T, *one._keys])
    repeated = np.bincount(prediction)[prediction] > 1
    return several & (frequent | ~seen.exact_rows) & repeated


def _numbered(columns: Sequence[Array]) -> np.ndarray:
    """Return the number of each row of columns among the distinct ones."""
    rows = without_last_digits(np.column_stack(columns))
    return np.unique(rows, axis=0, return_inverse=True)[1].ravel()


def uniforms_of(rows: HeldOut) -> Array:
    """Return numbers in (0, 1] that look random and follow from what each row holds alone."""
    mixed = np.zeros(len(rows), dtype=np.uint64)
    probits = [] if readings_of(rows.dist) else [rows.z]
    for values in (*probits, rows.y, *rows._keys, *row_keys(rows.dist)):
        mixed ^= _seven_digits(values)
        mixed = _scrambled(mixed)
    if not rows.seen.exact_rows.all():
        widths = _seven_digits(rows.seen.upper - rows.seen.lower)
        mixed = np.where(rows.seen.exact_rows, mixed, _scrambled(mixed ^ widths))
    return ((mixed >> np.uint64(11)).astype(np.float64) + 1.0) * 2.0**-53


def _any_equal(uniforms: Array) -> bool:
    """Return whether some are equal: few share a narrow cell, and those alone are sorted."""
    cells = (uniforms * _CELLS).astype(np.intp)
    shared = np.sort(uniforms[np.bincount(cells)[cells] > 1])
    return bool((shared[1:] == shared[:-1]).any())


def _seven_digits(values: Array) -> np.ndarray:
    """Return the bits of numbers without their last digits; -0.0 is what it is equal to, 0."""
    return (without_last_digits(values) + 0.0).view(np.uint64)


def _scrambled(x: np.ndarray) -> np.ndarray:
    """Return the finaliser of SplitMix64 (Steele, Lea and Flood, 2014)."""
    x = x + np.uint64(0x9E3779B97F4A7C15)
    x ^= x >> np.uint64(30)
    x *= np.uint64(0xBF58476D1CE4E5B9)
    x ^= x >> np.uint64(27)
    x *= np.uint64(0x94D049BB133111EB)
    x ^= x >> np.uint64(31)
    return x
