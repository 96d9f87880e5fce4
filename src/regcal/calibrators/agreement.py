"""Whether what was learnt agrees with the rows it was learnt from, in mean, tails and steps."""

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context

import numpy as np

from regcal._validation import Array
from regcal._weighted import places_of_quantiles
from regcal.calibrators.held_out import MAX_ROWS, HeldOut
from regcal.calibrators.support import Support
from regcal.calibrators.targets import Targets
from regcal.calibrators.thresholds import lengths_around, points_over
from regcal.distributions import Distribution
from regcal.ends import WHOLE_LINE
from regcal.outcomes import Outcomes

# So many rows are looked at.
_N_ROWS = 100

# A mean may be off by this part of the standard deviation of outcomes, or by noise.
_MEAN_OFF = 0.05

# So many standard errors are noise. Rows that a map was learnt from agree with it better than new
# ones, and many fits are made.
_NOISE = 5.0

# A tail may hold so many times what it should, or as much less, or differ by noise; and what is
# further off than the model itself is so many times as far off.
_TIMES = 2.0

# The outcomes that are expected beyond the largest one follow, if predictions are right, about an
# exponential distribution of mean 1: more than this are seen once in 22 000 times.
_BEYOND = 10.0

# The shares of outcomes in the tails that are looked at, beside what lies beyond all of them. The
# wide ones tell of maps that put probability between clusters of outcomes.
_TAILS = np.array([0.05, 0.25])

# Thresholds are rounded by at most this part of the range of outcomes.
_CLOSE = 1e-3

# A density has half a value's share on either side of it, so that P(Y <= k) is off by that half.
# Up to 0.05 is what readers of a probability forgive: ages, marks and rounded measurements with
# dozens of values stay below, counts with a few do not.
_LARGEST_SHARE = 0.1


class DisagreementWarning(UserWarning):
    """A calibrator disagrees with the rows it was learnt from, and more than the model itself.

    Examples
    --------
    >>> import warnings
    >>> import regcal
    >>> with warnings.catch_warnings():  # to be stopped by it
    ...     warnings.simplefilter("error", regcal.DisagreementWarning)
    ...     scale = regcal.get_calibrator("scale").fit(regcal.Normal([0.0, 0.0], 1.0), [2.0, -2.0])
    """


class GrossErrorsWarning(UserWarning):
    """Some outcomes are so far from all others that they count as if they were nearer.

    Examples
    --------
    >>> import warnings
    >>> import regcal
    >>> counts, dist = [3.0, 1.0, 2.0, 5.0, 4.0, 2.0, 3.0, 999999.0], regcal.Normal([3.0] * 8, 1.0)
    >>> with warnings.catch_warnings():  # they are known
    ...     warnings.simplefilter("ignore", regcal.GrossErrorsWarning)
    ...     scale = regcal.get_calibrator("scale").fit(dist, counts)
    >>> round(scale.factor_, 1)
    1.8
    """


class RoundedOutcomesWarning(UserWarning):
    """Outcomes are few values, such as counts, and a calibrator gives them a density.

    Examples
    --------
    >>> import warnings
    >>> import regcal
    >>> visits, dist = [0, 1, 1, 2, 0, 3, 1, 2], regcal.Normal([1.0] * 8, 1.0)
    >>> with warnings.catch_warnings():  # the density is wanted
    ...     warnings.simplefilter("ignore", regcal.RoundedOutcomesWarning)
    ...     smooth = regcal.get_calibrator("scale").fit(dist, visits)
    >>> counts = regcal.get_calibrator("scale", step=1).fit(dist, visits)
    >>> smooth.transform(dist).mass(1.0)[0] == 0, counts.transform(dist).mass(1.0)[0] > 0.3
    (np.True_, np.True_)
    """


@dataclass(frozen=True)
class Averages:
    """What predictions say of rows on average, with standard errors.

    Parameters
    ----------
    mean, mean_error : float
        By how much the mean of predictions exceeds that of the outcomes.
    tails, tail_errors : ndarray of shape (n_places,)
        The probability beyond some places; the errors are those of looking at some rows alone.
    """

    mean: float
    mean_error: float
    tails: Array
    tail_errors: Array


@dataclass(frozen=True)
class Tails:
    """The tails of outcomes: from where on, on which side, and which share of outcomes is there.

    Parameters
    ----------
    places : ndarray of shape (n_places,)
        Upper tails are what is above, lower ones what is at most there.
    signs : ndarray of shape (n_places,)
        -1 for lower tails, 1 for upper ones.
    shares : ndarray of shape (n_places,)
        Of outcomes.
    words : list of str
        As in "<= 2", true to the last digit.
    """

    places: Array
    signs: Array
    shares: Array
    words: list[str]

    @classmethod
    def of(cls, targets: Targets, support: Support) -> "Tails":
        """Return what lies beyond all outcomes, and the outer 5 and 25 %, on either side."""
        half = 0.5 * support.step
        shares = np.cumsum(targets.weights) / targets.weights.sum()
        at = np.searchsorted(shares, np.stack([_TAILS, 1.0 - _TAILS]))
        # ties may make them one
        low, high = map(np.unique, targets.values[np.minimum(at, len(shares) - 1)])
        range_of = targets.high - targets.low
        lowest = _in_few_digits(targets.low - half, range_of, ROUND_FLOOR)
        values = np.concatenate([low + half, high + half, [targets.high + half]])
        up = [_in_few_digits(value, range_of, ROUND_CEILING, targets) for value in values]
        places = np.array([np.nextafter(lowest, -np.inf), *up])
        below = targets.share_below(places)
        signs = np.repeat([-1.0, 1.0], [1 + len(low), len(high) + 1])
        shares = np.where(signs < 0, below, 1.0 - below)
        sides = ["<=" if sign < 0 else ">" for sign in signs[1:]]
        words = [f"{side} {_shortest(place)}" for side, place in zip(sides, up, strict=True)]
        words.insert(0, f"< {_shortest(lowest)}")
        # of weights that sum to nearly 1
        return cls(places, signs, np.clip(shares, 0.0, 1.0), words)

    def beyond(self, below: Array) -> Array:
        """Return the probabilities of the tails, given those up to their places."""
        return np.where(self.signs < 0, below, 1.0 - below)


def warn_of_disagreement(
    calibrated: Callable[[HeldOut], Distribution],
    rows: HeldOut,
    targets: Targets,
    support: Support,
    stacklevel: int,
) -> None:
    """Tell when calibrated predictions of rows disagree with their outcomes, beyond noise.

    Means and tails of a hundred rows are looked at. Nothing is told of what was about as wrong
    before, nor where not all outcomes were seen exactly.

    Parameters
    ----------
    calibrated : callable
        Calibrates the predictions of rows.
    rows : HeldOut
        Those that a calibrator was learnt from, as they were given.
    targets : Targets
        All outcomes that it was learnt from.
    support : Support
    stacklevel : int
        As for `warnings.warn`.
    """
    if rows.constant or not rows.seen.exact_rows.all():
        return
    tails = Tails.of(targets, support)
    some = rows.take(_spread_out(rows))
    points = points_over(targets, support)
    # of equal weight, and no more than are kept of any number of rows
    n_rows = min(float(rows.weights.sum() ** 2 / (rows.weights @ rows.weights)), MAX_ROWS)
    look = Look(n_rows, 1.0 - len(some) / len(rows), points, tails)
    allowed = Allowed(float(some.y.std()), tails.shares, n_rows)
    after = look.at(calibrated(some), some.y)
    if not allowed.exceeded(after).any():
        return
    before = look.at(support.through(some.dist), some.y)
    found = allowed.exceeded(after) & allowed.further_off(after, before)
    if found.any():
        mean = float(np.average(rows.y, weights=rows.weights))
        words = "; ".join(_described(found, mean, after, tails))
        msg = (
            f"The calibrated predictions disagree with the rows they were learnt from: {words}. "
            "Compare methods (regcal.compare), pass support= if outcomes end somewhere, and check "
            "that these rows are like those to come."
        )
        warnings.warn(msg, DisagreementWarning, stacklevel=stacklevel + 1)


def warn_of_gross_errors(
    outcomes: Outcomes, targets: Targets, stacklevel: int, of_model: str = ""
) -> None:
    """Tell which outcomes count as if they were nearer.

    Parameters
    ----------
    outcomes : Outcomes
        As they were given.
    targets : Targets
        All that were learnt from, with the ends beyond which they are not believed.
    stacklevel : int
        As for `warnings.warn`.
    of_model : str
        What else there is to say.
    """
    if targets.credible == WHOLE_LINE:
        return
    values, moved = outcomes.values, outcomes.within(targets.credible).values
    found = np.flatnonzero(values != moved)
    if len(found):
        first = found[0]
        msg = (
            f"{len(found)} of {len(outcomes)} outcomes looked at are gross errors, farther from "
            "all others than 100 times the range of these, and too few to be a point mass. They "
            f"count as if they were nearer: {values[first]:g} as {moved[first]:g}. Correct or "
            f"remove them; if they are real, calibrate on another scale.{of_model}"
        )
        warnings.warn(msg, GrossErrorsWarning, stacklevel=stacklevel + 1)


def warn_of_rounding(targets: Targets, support: Support, stacklevel: int) -> None:
    """Tell when P(Y <= k) of rounded outcomes is far from that of the density they are given.

    Parameters
    ----------
    targets : Targets
        All outcomes that were learnt from.
    support : Support
    stacklevel : int
        As for `warnings.warn`.
    """
    if not support.smooth:
        return
    inside = (targets.values > support.low) & (targets.values < support.high)
    shares = np.where(inside, targets.weights, 0.0) / targets.weights.sum()
    place, step = int(np.argmax(shares)), support.step
    if shares[place] < _LARGEST_SHARE:
        return
    value = targets.values[place] + 0.0  # and not -0
    msg = (
        f"The outcomes are multiples of {step:g}, and {shares[place]:.0%} of them are {value:g}, "
        f"but predictions are densities without steps: P(Y <= {value:g}) is off by about half of "
        f"that. Pass step={step:g} to get P(Y <= k) and P(Y = k) of such values. To keep the "
        'density, warnings.simplefilter("ignore", regcal.RoundedOutcomesWarning).'
    )
    warnings.warn(msg, RoundedOutcomesWarning, stacklevel=stacklevel + 1)


def _spread_out(rows: HeldOut) -> np.ndarray:
    """Return places of rows at equal steps of weight, in the order of outcomes."""
    count = min(_N_ROWS, len(rows))
    return places_of_quantiles(rows.y, rows.weights, (np.arange(count) + 0.5) / count)


@dataclass(frozen=True)
class Look:
    """A look at some of the rows.

    Parameters
    ----------
    n_rows : float
        How many rows of equal weight there are.
    left_out : float
        The share of rows that is not looked at.
    points : ndarray
        Over which means are integrated.
    tails : Tails
    """

    n_rows: float
    left_out: float
    points: Array
    tails: Tails

    def at(self, dist: Distribution, y: Array) -> Averages:
        """Return averages over predictions of rows, which are in the order of their outcomes."""
        with np.errstate(all="ignore"):  # functions of users may overflow far out
            shares = dist.cdf(np.concatenate([self.points, self.tails.places])[np.newaxis, :])
        n_points, lengths = len(self.points), lengths_around(self.points)
        # E Y - y is the integral of 1(y <= t) - P(Y <= t)
        excess = ((y[:, np.newaxis] <= self.points) - shares[:, :n_points]) @ lengths
        beyond = self.tails.beyond(shares[:, n_points:])
        mean_variance = excess.var() / self.n_rows + self._variance(excess + y)
        return Averages(
            float(excess.mean()),
            float(np.sqrt(mean_variance)),
            beyond.mean(axis=0),
            np.sqrt(self._variance(beyond)),
        )

    def _variance(self, values: Array) -> Array:
        """Return the variance of the mean of every k-th value, by differences of neighbours."""
        if len(values) < 2:
            return np.zeros(values.shape[1:])
        return self.left_out * 0.5 * (np.diff(values, axis=0) ** 2).mean(axis=0) / len(values)


@dataclass(frozen=True)
class Allowed:
    """How far averages may be from outcomes.

    Parameters
    ----------
    spread : float
        Standard deviation of outcomes.
    shares : ndarray of shape (n_places,)
        Of outcomes in tails.
    n_rows : float
        How many rows the shares are of.
    """

    spread: float
    shares: Array
    n_rows: float

    def exceeded(self, found: Averages) -> np.ndarray:
        """Return whether the mean, and each tail, are further off than is allowed."""
        mean = abs(found.mean) > max(_MEAN_OFF * self.spread, _NOISE * found.mean_error)
        variance = self.shares * (1.0 - self.shares) / self.n_rows + found.tail_errors**2
        noise = _NOISE * np.sqrt(variance) + _BEYOND / self.n_rows
        much = found.tails > np.maximum(_TIMES * self.shares, self.shares + noise)
        little = found.tails < np.minimum(self.shares / _TIMES, self.shares - noise)
        return np.array([mean, *(much | little)])

    def further_off(self, one: Averages, other: Averages) -> np.ndarray:
        """Return whether the mean, and each tail, are clearly further off than others."""
        mean = abs(one.mean) > _TIMES * abs(other.mean)
        tails = np.abs(one.tails - self.shares) > _TIMES * np.abs(other.tails - self.shares)
        return np.array([mean, *tails])


def _in_few_digits(
    value: float, range_of: float, direction: str, targets: Targets | None = None
) -> float:
    """Return a number of at least four digits, close to a value, on one side of it.

    So few of them that no target lies between, if targets are given.
    """
    for digits in range(4, 17):
        rounded = float(Context(digits, direction).create_decimal_from_float(float(value)))
        if abs(rounded - value) <= _CLOSE * range_of:
            both = np.array([value, rounded])
            if targets is None or np.ptp(targets.share_below(both)) == 0:
                return rounded
    return float(value)


def _shortest(number: float) -> str:
    """Return a number in the fewest digits that tell it, without a final .0."""
    short = f"{number:.15g}"
    return short if float(short) == number else repr(float(number))


def _described(found: np.ndarray, mean: float, averages: Averages, tails: Tails) -> Iterator[str]:
    """Yield in words what is off."""
    if found[0]:
        # so many digits that the difference has two
        digits = 4
        while digits < 17 and abs(mean) > 10.0 ** (digits - 2) * abs(averages.mean):
            digits += 1
        predicted, seen = f"{mean + averages.mean:.{digits}g}", f"{mean:.{digits}g}"
        yield f"their mean is {predicted}, that of the outcomes {seen}"
    for k in np.flatnonzero(found[1:]):
        yield (
            f"P(Y {tails.words[k]}) is {averages.tails[k]:.2g} on average, the share "
            f"of such outcomes {tails.shares[k]:.2g}"
        )
