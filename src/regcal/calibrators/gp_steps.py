"""The steps by which a Gaussian process on (u, t) becomes a map, in the order in which they run.

Notation (docs/notation.md): u = probit of the base's P(Y <= t), after the start map; h = the
Gaussian process; eta = the calibrated probit. What the process returns to where there are few data
is a prior object: the base model (`IdentityPrior`) or 1/2 (`FlatPrior`).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np
from scipy.special import log_ndtr, ndtri

from regcal._validation import Array
from regcal._weighted import weighted_quantiles
from regcal.calibrators.axes import LARGEST_PROBIT, MapAxes
from regcal.calibrators.cells import Points
from regcal.calibrators.held_out import HeldOut
from regcal.calibrators.start import choose_start
from regcal.calibrators.targets import Targets
from regcal.distributions import Transformed
from regcal.ends import Ends
from regcal.gp import (
    EvidenceSearch,
    FittedProcess,
    HilbertBasis,
    HyperPrior,
    Kernel,
    Link,
    Probit,
    fit_process,
)
from regcal.gp.laplace import LaplaceLikelihood
from regcal.maps import ProbitMap, Surface, log_change
from regcal.maps.axis import LINEAR
from regcal.maps.scale import IDENTITY
from regcal.maps.surface_curves import SMALLEST_SLOPE

# Most basis functions per axis. With few rows there are fewer: no more than rows, if these are
# more than the fewest.
_LARGEST_SIZES, _FEWEST = (20, 32), 10

# A length-scale that a basis of n functions resolves is at least this over n.
_FUNCTIONS_PER_LENGTHSCALE = 2.3

# Weak prior on the logarithms of sigma and the two length-scales: without signal the evidence is
# flat, and short length-scales would only cost time.
# benchmarks/PARTS.md, "hyper-prior": without it -0.004 to -0.005 nats with 40 rows, up to
# -0.035 (gp-density, ridership), within 0.003 with all; with 40, fits take 1.3 times as long.
_HYPER_PRIOR = HyperPrior(mean=(0.0, math.log(0.5), math.log(0.5)), sd=(1.5, 1.0, 1.0))

# A search that begins where an earlier one ended begins with at least this log sigma: where there
# is next to no function, the evidence is flat, and nothing would ever be found again.
_LEAST_START = (-2.0, -np.inf, -np.inf)

# A map that loses more than this per row, on at most so many of its own rows, is dropped: what it
# started from is left.
# benchmarks/PARTS.md, "drop": acts in none of 320 fits. It answers tests of hostile data: with
# weights that differ by orders of magnitude, maps are worse than none without it.
_LARGEST_LOSS = 0.05
_CHECKED_ROWS = 5000

# Beyond all outcomes, tails are no heavier than a Pareto tail of this index, and not made lighter
# than the base's. A row that is further out than so many spreads beyond all others is a gross error
# and does not make them heavier still. (With four rows for one, tails that 3 % of the rows fill, a
# thousand spreads wide, lose 1.5 to 3 nats.)
# benchmarks/PARTS.md, "tails": without it -0.006 nats at most with all rows, and +0.007 to +0.008
# with 40. It buys no score, but a bound where no outcome was seen: without it, tests of ends of the
# support and of rows that weigh next to nothing fail.
_TAIL_INDEX = 4.0
_FARTHEST = 20.0

# From here on, a map with a prior of 1/2 fades into the identity.
_FADING_PROBIT = 3.0


# --------------------------------------------------------------------------------------- 1. prior


@dataclass(frozen=True)
class IdentityPrior:
    """The process returns to the base model, recalibrated where that is clearly better."""

    link: Link = field(default_factory=Probit)
    variances: ClassVar[tuple[float, ...]] = (1.0, 1.0)
    hyper_prior: ClassVar[HyperPrior | None] = _HYPER_PRIOR

    def axes(self, targets: Targets) -> MapAxes:
        """Return axes along which the targets look most normal."""
        return MapAxes.around(targets)

    def start(self, outcomes: Points, intervals: Points, ends_of_support: Ends) -> ProbitMap:
        """Return PIT recalibration, a scale or the identity."""
        return choose_start(outcomes, intervals, ends_of_support)

    def mean(self, u: Array) -> Array:
        """Return the base's probability on the scale of the link."""
        return u if isinstance(self.link, Probit) else log_ndtr(u) - log_ndtr(-u)

    def columns(self, u: Array) -> Array:
        """Return a constant and u."""
        return np.stack([np.ones_like(u), u], axis=-1)

    def row_share(self, n_rows: float, n_thresholds: int) -> float:
        """Return less than 1 with fewer rows than thresholds, at each of which a row enters."""
        # benchmarks/PARTS.md, "row share": without it -0.053 nats with 40 rows (16 of 20 sets)
        return min(1.0, n_rows / n_thresholds)

    @property
    def largest_sigma(self) -> float:
        """The logarithm of a correction from one end of the links of probits to the other.

        More says nothing. Rows that are repeated dozens of times are separable everywhere and ask
        for more without end; what is not known of the process would be one half then, between its
        rows as well as far from them (`tests/calibrators/test_gp_threshold.py`).
        """
        return math.log(2.0 * float(self.mean(np.array(LARGEST_PROBIT))))

    def largest_sizes(self, n_rows: float) -> tuple[int, int]:
        """Return no more functions than rows, if these are more than a few."""
        share = min(1.0, math.sqrt(n_rows / math.prod(_LARGEST_SIZES)))
        first, second = (max(_FEWEST, int(share * size)) for size in _LARGEST_SIZES)
        return first, second

    def surface(self, process: FittedProcess, axes: MapAxes, start: ProbitMap) -> Surface:
        """Return the map, which goes on beyond the box as its linear terms do."""
        u, t, eta, variance = averaged_table(process, axes, self)
        slopes = [1.0, 1.0]
        if isinstance(self.link, Probit):
            slope = 1.0 + float(process.posterior.coefficients[1])
            ends = (variance[0].mean(), variance[-1].mean())
            slopes = [max(slope / np.sqrt(1.0 + end), SMALLEST_SLOPE) for end in ends]
        tails = (slopes[0], slopes[1])
        return Surface(u, t, eta - u[:, np.newaxis], tails, start, axes.axis, axes.ends)

    def checked(
        self, surface: Surface, outcomes: Points, intervals: Points, rows: HeldOut
    ) -> Surface:
        """Return the map, or its start alone if that is better, with bounded tails."""
        seen = outcomes, intervals, rows
        bounded = with_bounded_tails(surface, *seen)
        if mean_gain(bounded, rows) > -_LARGEST_LOSS:
            return bounded
        alone = replace(surface, h=np.zeros_like(surface.h), slopes=(1.0, 1.0))
        return with_bounded_tails(alone, *seen)


@dataclass(frozen=True)
class FlatPrior:
    """The process returns to 1/2, as in the paper."""

    link: Link = field(default_factory=Probit)
    variances: ClassVar[tuple[float, ...]] = ()
    hyper_prior: ClassVar[HyperPrior | None] = None
    largest_sigma: ClassVar[float] = 4.0

    def axes(self, targets: Targets) -> MapAxes:
        """Return axes along which targets are seen as they are, as in the paper."""
        return MapAxes.around(targets, LINEAR)

    def start(self, outcomes: Points, intervals: Points, ends_of_support: Ends) -> ProbitMap:
        """Return the identity."""
        return IDENTITY

    def mean(self, u: Array) -> Array:
        """Return 0."""
        return np.zeros_like(u)

    def columns(self, u: Array) -> Array:
        """Return no columns."""
        return np.empty((*u.shape, 0))

    def row_share(self, n_rows: float, n_thresholds: int) -> float:
        """Return 1."""
        return 1.0

    def largest_sizes(self, n_rows: float) -> tuple[int, int]:
        """Return the most there are."""
        return _LARGEST_SIZES

    def surface(self, process: FittedProcess, axes: MapAxes, start: ProbitMap) -> Surface:
        """Return the map, which fades into the identity."""
        u, t, eta, _ = averaged_table(process, axes, self)
        return faded_surface(u, t, eta, axes)

    def checked(
        self, surface: Surface, outcomes: Points, intervals: Points, rows: HeldOut
    ) -> Surface:
        """Return the map as it is."""
        return surface


Prior = IdentityPrior | FlatPrior


# ------------------------------------------------------------------------------------- 2. process


def shortest_lengthscales(prior: Prior, n_rows: float = math.inf) -> tuple[float, float]:
    """Return the logarithms of the shortest length-scales that so many rows may ask for."""
    first, second = (
        math.log(_FUNCTIONS_PER_LENGTHSCALE / size) for size in prior.largest_sizes(n_rows)
    )
    return first, second


def fit_map_process(
    likelihood_for: Callable[[HilbertBasis], LaplaceLikelihood],
    n_rows: float,
    prior: Prior,
    kernel: Kernel | None,
    earlier: FittedProcess | None = None,
) -> FittedProcess:
    """Fit the process of a map learnt from so many rows.

    The search for hyper-parameters begins where an earlier one ended.
    """
    sizes, shortest = prior.largest_sizes(n_rows), shortest_lengthscales(prior, n_rows)
    search = EvidenceSearch(
        bounds=((-5.0, prior.largest_sigma), (shortest[0], 1.5), (shortest[1], 1.5)),
        prior=prior.hyper_prior,
        tolerance=0.01,
        gradient_tolerance=0.03,
        max_evaluations=30,
    )
    if earlier is not None:
        search = replace(search, starts=(np.maximum(earlier.posterior.theta, _LEAST_START),))
    return fit_process(
        likelihood_for,
        kernel=kernel,
        basis=None if earlier is None else earlier.basis,
        extra_variances=prior.variances,
        search=search,
        largest_sizes=sizes,
        warn=False,
    )


# ------------------------------------------------------------------------------------- 3. surface


def averaged_table(
    process: FittedProcess, axes: MapAxes, prior: Prior
) -> tuple[Array, Array, Array, Array]:
    """Return u, places of t, and on their grid eta averaged over the posterior, and the variance.

    The grid resolves the process.
    """
    x_scale, s_scale = process.lengthscales
    u = np.linspace(-LARGEST_PROBIT, LARGEST_PROBIT, int(np.clip(24 / x_scale, 48, 320)) + 1)
    t = np.linspace(*axes.places, int(np.clip(8 / s_scale, 32, 160)) + 1)
    grid = axes.probit_axis(u), axes.coordinate(t), prior.columns(u)[:, np.newaxis, :]
    mean, variance = process.mean_grid(*grid), process.variance_grid(*grid)
    # benchmarks/PARTS.md, "averaging": without it -0.102 (gpc) and -0.073 nats (gp-density) with 40
    # rows, -0.005 and -0.002 with all
    eta = prior.link.average_probit(prior.mean(u)[:, np.newaxis] + mean, variance)
    return u, t, eta, variance


def faded_surface(u: Array, t: Array, eta: Array, axes: MapAxes) -> Surface:
    """Return a map that fades into the identity where the base says nearly 0 or nearly 1.

    A classifier whose prior is 1/2 never reaches 0 and 1, so that mass would be left at infinity.
    """
    share = np.clip((LARGEST_PROBIT - np.abs(u)) / (LARGEST_PROBIT - _FADING_PROBIT), 0.0, 1.0)
    smooth = share**2 * (3.0 - 2.0 * share)
    h = smooth[:, np.newaxis] * (eta - u[:, np.newaxis])
    return Surface(u, t, h, (1.0, 1.0), axis=axes.axis, ends=axes.ends)


# --------------------------------------------------------------------------------------- 4. check


def with_bounded_tails(
    surface: Surface, outcomes: Points, intervals: Points, rows: HeldOut
) -> Surface:
    """Return the map with steeper tails where no outcome was, if they are too heavy.

    A straight line learnt in the middle may be nearly flat, and says nothing about what is far
    beyond all outcomes: at each target, beyond the probit of the farthest of those that were as
    far out. Rows that are sure and wrong have outcomes at hundreds of probits, which tell nothing
    of the tails of wide ones.
    """
    z, t, weights = _known_places(intervals, rows)
    if len(z) == 0:
        return surface
    total = outcomes.weights.sum() + intervals.weights.sum()
    last_eta = -float(ndtri(0.5 / (max(total, 1.0) + 1.0)))
    # in spreads of the started base, since a start may be nearly flat in its tails as well
    low, middle, high = surface.start.inverse(np.array([-1.0, 0.0, 1.0]))
    spread, knots = 0.5 * (high - low), surface.start.inverse(surface.u)
    seen, places, at = (z - middle) / spread, (knots - middle) / spread, surface.axis(t)
    of_start = surface.start.image_and_slope(knots)[1]
    eta, slopes = surface.h + surface.u[:, np.newaxis], []
    for side, edge in ((-1, 0), (1, -1)):
        farthest = _farthest(side * seen, side * at, weights, side * surface.t)
        outwards = np.maximum(side * places[::side, np.newaxis], farthest)
        rise = _least_rise(outwards, last_eta)
        image = side * eta[::side]
        least = np.maximum.accumulate(image - rise, axis=0) + rise
        eta = (side * np.where(outwards > farthest, least, image))[::side]
        beyond = _least_slope(outwards[-1].max(), last_eta) / (spread * of_start[edge])
        slopes.append(max(surface.slopes[edge], float(beyond)))
    return replace(surface, h=eta - surface.u[:, np.newaxis], slopes=(slopes[0], slopes[1]))


def _known_places(intervals: Points, rows: HeldOut) -> tuple[Array, Array, Array]:
    """Return probits, targets and weights of what was seen: outcomes, and ends of intervals."""
    some = rows.possible & rows.exact
    z, t = np.concatenate(
        [[rows.z[some], rows.y[some]], intervals.values[:2], intervals.values[2:]], axis=1
    )
    half = 0.5 * intervals.weights
    weights = np.concatenate([rows.weights[some], half, half])
    finite = np.isfinite(z) & np.isfinite(t)
    return z[finite], t[finite], weights[finite]


def _farthest(seen: Array, at: Array, weights: Array, columns: Array) -> Array:
    """Return the place of the farthest outcome of those at least as far out as each column.

    Beyond the last of them it is that of the last; gross errors count as if they were nearer.
    """
    all_but_one = np.array([1.0 - min(1.0 / weights.sum(), 0.5)])
    most = float(weighted_quantiles(seen, weights, all_but_one)[0])
    credible = np.clip(seen, 1.0, max(most, 0.0) + _FARTHEST)
    order = np.argsort(at)
    farther = np.maximum.accumulate(credible[order][::-1])[::-1]
    return farther[np.minimum(np.searchsorted(at[order], columns), len(at) - 1)]


def _least_slope(place: Array, last_eta: float) -> Array:
    """Return the slope of a Pareto tail at a place, in spreads of the base, or the base's if less.

    Where eta is the calibrated probit of the last outcome, what is beyond falls by
    `last_eta * slope` per spread; a place before that of the last outcome is no tail.
    """
    return np.minimum(_TAIL_INDEX / (last_eta * np.maximum(place, last_eta)), 1.0)


def _least_rise(place: Array, last_eta: float) -> Array:
    """Return the integral of the least slope."""
    # with few rows the base's own slope is less up to here, and beyond it the tail's falls
    bend = max(last_eta, _TAIL_INDEX / last_eta)
    before = np.minimum(place, bend) * _least_slope(np.array(bend), last_eta)
    return before + _TAIL_INDEX / last_eta * np.log(np.maximum(place, bend) / bend)


def mean_gain(surface: Surface, rows: HeldOut) -> float:
    """Return the mean gain in log density over the start alone, on the rows it was learnt from."""
    every = len(rows) // _CHECKED_ROWS
    some = rows.take(slice(None, None, every)) if every > 1 else rows
    whole, z = Transformed(some.dist, surface), some.z
    with np.errstate(invalid="ignore"):
        gain = whole.log_change(z) - log_change(surface.start, z)
        if not some.exact.all():
            part, exact = some.take(~some.exact), some.exact
            before = Transformed(part.dist, surface.start)
            gain[~exact] = part.log_scores(whole[~exact]) - part.log_scores(before)
    return float(np.average(np.where(np.isfinite(gain), gain, 0.0), weights=some.weights))
