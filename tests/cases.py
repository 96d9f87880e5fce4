"""What the laws run over: every kind of distribution, and every calibrator's output.

To let a new distribution inherit the laws, add an entry to `DISTRIBUTIONS`. A new calibrator joins
by its name in `regcal.calibrator_names()`; settings that keep it quick go into `PARAMETERS`.
"""

import functools
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.stats
from scipy.special import ndtr

import regcal
from regcal.distributions import Distribution

N_ROWS = 4
N_CALIBRATION_ROWS = 80


@dataclass(frozen=True)
class Unit:
    """A unit of y: what is x in the standard unit is ``scale * x + shift`` here."""

    scale: float = 1.0
    shift: float = 0.0

    def __call__(self, x: Any) -> Any:
        """Return standard values in this unit."""
        return self.scale * np.asarray(x) + self.shift


STANDARD = Unit()
UNITS = [STANDARD, Unit(2e-12, 0.0), Unit(3e12, -5e12), Unit(0.1, 40.0)]


@dataclass(frozen=True)
class Case:
    """A way to build a batch of distributions, and what may be asked of it.

    Parameters
    ----------
    name : str
    build : callable
        ``build(rng, n_rows, unit)`` returns a `Distribution`; the same seed in another unit is
        the same distribution in that unit.
    everywhere : bool
        Whether the density is positive on the whole line.
    exact_tails : bool
        Whether both log tails are accurate 30 standard deviations out.
    reach : float
        How many interquartile ranges beyond its outer quantiles the density can be resolved.
    precision : float
        Relative accuracy of the density and of what follows from it.
    """

    name: str
    build: Callable[[np.random.Generator, int, Unit], Distribution]
    everywhere: bool = True
    exact_tails: bool = True
    reach: float = 30.0
    precision: float = 1e-4

    def make(self, seed: int, unit: Unit = STANDARD, n_rows: int = N_ROWS) -> Distribution:
        """Return the distributions of a seed."""
        return self.build(np.random.default_rng(seed), n_rows, unit)


# ------------------------------------------------------------------------------------ distributions


def _centres(rng, n_rows, unit):
    """Return random locations and spreads of rows."""
    return unit(rng.normal(size=n_rows)), unit.scale * rng.uniform(0.3, 2.0, n_rows)


def _normal(rng, n_rows, unit):
    return regcal.Normal(*_centres(rng, n_rows, unit))


def _scipy(family, *shapes):
    """Return a builder of a scipy.stats family; shapes are ranges to draw from."""

    def build(rng, n_rows, unit):
        loc, scale = _centres(rng, n_rows, unit)
        values = [rng.uniform(low, high, n_rows) for low, high in shapes]
        return regcal.ScipyDistribution(family(*values, loc=loc, scale=scale))

    return build


def _quantiles(rng, n_rows, unit):
    levels = np.array([0.01, 0.1, 0.25, 0.5, 0.7, 0.95])
    loc, scale = _centres(rng, n_rows, unit)
    steps = rng.uniform(0.2, 1.5, (n_rows, len(levels)))
    return regcal.Quantiles(levels, loc[:, None] + scale[:, None] * np.cumsum(steps, axis=1))


def _samples(rng, n_rows, unit):
    loc, scale = _centres(rng, n_rows, unit)
    return regcal.Samples(loc[:, None] + scale[:, None] * rng.gamma(2.0, size=(n_rows, 30)))


def _many_samples(rng, n_rows, unit):
    loc, scale = _centres(rng, n_rows, unit)
    return regcal.Samples(loc[:, None] + scale[:, None] * rng.gamma(2.0, size=(n_rows, 700)))


def _histogram(rng, n_rows, unit, ends=(0.0, 4.0)):
    edges = np.concatenate([ends[:1], np.sort(rng.uniform(0.2, 3.8, 5)), ends[1:]])
    masses = rng.dirichlet(np.ones(6), n_rows) * 0.98 + 0.02 / 6
    return regcal.Histogram(unit(edges), masses)


def _open_histogram(rng, n_rows, unit):
    return _histogram(rng, n_rows, unit, ends=(-np.inf, np.inf))


def _gapped_histogram(rng, n_rows, unit):
    masses = np.tile([0.3, 0.0, 0.5, 0.0, 0.2], (n_rows, 1))
    steps = rng.uniform(0.5, 1.5, (n_rows, 6))
    return regcal.Histogram(unit(np.cumsum(steps, axis=1)), masses)


def _mixture(rng, n_rows, unit):
    parts = [_normal(rng, n_rows, unit), _scipy(scipy.stats.logistic)(rng, n_rows, unit)]
    return regcal.Mixture(parts, rng.dirichlet([2.0, 2.0], n_rows))


def _separated_mixture(rng, n_rows, unit):
    loc, scale = _centres(rng, n_rows, unit)
    narrow = regcal.Normal(loc + 20 * unit.scale, 0.01 * scale)
    return regcal.Mixture([regcal.Normal(loc, scale), narrow])


def _logistic_functions(rng, n_rows, unit):
    loc, scale = _centres(rng, n_rows, unit)

    def standard(points, rows):
        return (points - loc[rows, None]) / scale[rows, None]

    def cdf(points, rows):
        return scipy.stats.logistic.cdf(standard(points, rows))

    def sf(points, rows):
        return scipy.stats.logistic.sf(standard(points, rows))

    def pdf(points, rows):
        return scipy.stats.logistic.pdf(standard(points, rows)) / scale[rows, None]

    return cdf, sf, pdf


def _custom(rng, n_rows, unit):
    cdf, sf, pdf = _logistic_functions(rng, n_rows, unit)
    return regcal.CustomDistribution(cdf, n_rows, pdf=pdf, sf=sf)


def _custom_without_sf(rng, n_rows, unit):
    loc, scale = _centres(rng, n_rows, unit)

    def cdf(points, rows):
        return ndtr((points - loc[rows, None]) / scale[rows, None])

    def pdf(points, rows):
        return scipy.stats.norm.pdf(points, loc[rows, None], scale[rows, None])

    return regcal.CustomDistribution(cdf, n_rows, pdf=pdf)


def _custom_cdf_only(rng, n_rows, unit):
    cdf, _, _ = _logistic_functions(rng, n_rows, unit)
    return regcal.CustomDistribution(cdf, n_rows)


DISTRIBUTIONS = [
    Case("normal", _normal),
    Case("gamma", _scipy(scipy.stats.gamma, (1.2, 5.0)), everywhere=False),
    Case("uniform", _scipy(scipy.stats.uniform), everywhere=False),
    Case("exponential", _scipy(scipy.stats.expon), everywhere=False),
    Case(
        "truncated normal",
        _scipy(scipy.stats.truncnorm, (-2.0, -1.0), (1.0, 2.0)),
        everywhere=False,
    ),
    Case("t", _scipy(scipy.stats.t, (5.0, 12.0))),
    Case("johnson", _scipy(scipy.stats.johnsonsu, (-1.0, 1.0), (2.0, 4.0))),
    Case("gumbel", _scipy(scipy.stats.gumbel_r), reach=2.0),
    Case("laplace", _scipy(scipy.stats.laplace)),
    Case("lognormal", _scipy(scipy.stats.lognorm, (0.3, 0.6)), everywhere=False),
    Case("quantiles", _quantiles),
    Case("samples", _samples),
    Case("many samples", _many_samples),
    Case("histogram", _histogram, everywhere=False),
    Case("open histogram", _open_histogram),
    Case("gapped histogram", _gapped_histogram, everywhere=False),
    Case("mixture", _mixture),
    Case("separated mixture", _separated_mixture, precision=1e-3),
    Case("custom", _custom),
    Case("custom without sf", _custom_without_sf, reach=20.0),
    Case("custom cdf only", _custom_cdf_only, exact_tails=False, precision=1e-3),
]
BY_NAME = {case.name: case for case in DISTRIBUTIONS}


# ------------------------------------------------------------------------------- masses at ends


def piled_up(unit=STANDARD, low=0.0, high=np.inf, n_rows=9, n_draws=14):
    """Return draws of which many are at an end; all of the first row, none of the last."""
    rng = np.random.default_rng(5)
    draws = rng.normal(np.linspace(-1.0, 3.0, n_rows)[:, np.newaxis], 1.0, (n_rows, n_draws))
    draws[0], draws[-1] = -1.0, draws[-1] + 20.0 * np.isinf(high)
    return unit(np.clip(draws, low, high))


_LEVELS = np.array([0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95])


def quantiles_of(draws):
    """Return quantiles that are equal where draws are."""
    return np.quantile(draws, _LEVELS, axis=1, method="lower").T


def bins_of(draws, edges):
    """Return the shares of draws in bins; the outer ones are points."""
    inner = np.stack([np.histogram(row, edges)[0] for row in draws])
    inner[:, 0] -= (draws == edges[0]).sum(axis=1)
    inner[:, -1] -= (draws == edges[-1]).sum(axis=1)
    ends = [(draws == edge).sum(axis=1)[:, np.newaxis] for edge in (edges[0], edges[-1])]
    counts = np.concatenate([ends[0], inner, ends[1]], axis=1)
    return np.concatenate([edges[:1], edges, edges[-1:]]), counts / draws.shape[1]


# What users pass that piles up at an end, by unit.
WITH_MASSES: dict[str, Callable[[Unit], Distribution]] = {
    "rain draws": lambda unit: regcal.Samples(piled_up(unit)),
    "capped draws": lambda unit: regcal.Samples(piled_up(unit, -np.inf, 1.5)),
    "draws between two ends": lambda unit: regcal.Samples(piled_up(unit, 0.0, 2.0)),
    "draws beyond given ends": lambda unit: regcal.Samples(
        piled_up(unit, -np.inf), support=(unit(-0.5), unit(2.5))
    ),
    "draws in steps": lambda unit: regcal.Samples(unit(np.round(piled_up(n_draws=40), 1))),
    "rain quantiles": lambda unit: regcal.Quantiles(_LEVELS, quantiles_of(piled_up(unit))),
    "quantiles between two ends": lambda unit: regcal.Quantiles(
        _LEVELS, quantiles_of(piled_up(unit, 0.0, 2.0))
    ),
    "quantiles beyond given ends": lambda unit: regcal.Quantiles(
        _LEVELS,
        quantiles_of(piled_up(unit, -np.inf)),
        support=(unit(-0.5), unit(2.5)),
    ),
    "bins with points": lambda unit: regcal.Histogram(
        *bins_of(piled_up(unit, 0.0, 2.0), unit(np.array([0.0, 0.3, 0.9, 1.6, 2.0])))
    ),
    "mixed draws": lambda unit: regcal.Mixture(
        [regcal.Samples(piled_up(unit))[::3], regcal.Samples(piled_up(unit, 0.2))[::-3]]
    ),
    "stacked draws": lambda unit: regcal.concatenate(
        [regcal.Samples(piled_up(unit)), regcal.Samples(piled_up(unit, 0.2))]
    ),
}


# -------------------------------------------------------------------------------------- calibrators

# What a name needs to be quick enough for the laws; most need nothing.
PARAMETERS: dict[str, dict[str, Any]] = {
    "gpc": {"thresholds": 16},
    "gpc-paper": {"n_pairs": 60, "prediction_thresholds": 16, "random_state": 0},
    "conditional": {"learner": "additive"},
    "auto": {"candidates": [(name, regcal.get_calibrator(name)) for name in ("identity", "pit")]},
}

# Further variants of calibrators, beside one per name. Those that learn in a way of their own obey
# the laws of fits as well.
VARIANTS: dict[str, Callable[[], regcal.Calibrator]] = {
    "e-beta uniform": lambda: regcal.get_calibrator("e-beta", shape="uniform"),
    "e-logistic uniform": lambda: regcal.get_calibrator("e-logistic", shape="uniform"),
    "e-isotonic uniform": lambda: regcal.get_calibrator("e-isotonic", shape="uniform"),
    "e-beta at quantiles": lambda: regcal.get_calibrator(
        "e-beta", thresholds=regcal.QuantileGrid(8)
    ),
    "e-beta without order": lambda: regcal.OneVsRestCalibrator(
        regcal.BetaCalibrator(monotone=False), thresholds=12
    ),
    "e-beta of thresholds": lambda: regcal.get_calibrator("e-beta", code=regcal.ThresholdCode()),
    "e-logistic of a dense code": lambda: regcal.get_calibrator(
        "e-logistic", thresholds=6, code=regcal.DenseCode()
    ),
}

WITHOUT_A_NAME = ["e-beta of thresholds"]

CALIBRATORS: dict[str, Callable[[], regcal.Calibrator]] = {
    name: functools.partial(regcal.get_calibrator, name, **PARAMETERS.get(name, {}))
    for name in regcal.calibrator_names()
} | VARIANTS

# Every calibrator is fitted on a few bases; one of segments and one of maps on all sorts.
FEW_BASES = ["normal", "t", "gapped histogram"]
ODD_BASES = ["quantiles", "open histogram", "separated mixture", "custom without sf"]
MORE_BASES = {
    "scale": ["uniform"],
    "e-beta": ["exponential", "gamma", "samples", "mixture", *ODD_BASES],
    "gp-density": ODD_BASES,
}


def outcomes(base: Distribution) -> np.ndarray:
    """Return outcomes that `base` predicts badly but does not exclude."""
    levels = np.random.default_rng(99).beta(2.0, 3.0, size=len(base))
    return base.ppf(levels)


@dataclass(frozen=True)
class CalibratedCase(Case):
    """The output of a calibrator that was fitted on a base."""

    build: Any = field(default=None, repr=False)
    calibrator: str = ""
    base: str = ""

    def make_base(self, seed: int, unit: Unit, n_rows: int) -> Distribution:
        """Return the distributions that are calibrated."""
        return BY_NAME[self.base].make(seed, unit, n_rows)

    def make(self, seed: int, unit: Unit = STANDARD, n_rows: int = N_ROWS) -> Distribution:
        """Return calibrated distributions; fits are kept, since laws ask for the same ones."""
        fitted = fitted_calibrator(self.calibrator, self.base, seed, unit)
        return fitted.transform(self.make_base(seed, unit, n_rows))


@functools.cache
def fitted_calibrator(name: str, base: str, seed: int, unit: Unit) -> regcal.Calibrator:
    """Return a calibrator fitted on a base's badly predicted outcomes."""
    dist = BY_NAME[base].make(seed, unit, N_CALIBRATION_ROWS)
    with warnings.catch_warnings():
        if name == "gpc-paper":  # 60 pairs teach its classifier too little, and it says so
            warnings.simplefilter("ignore", regcal.DisagreementWarning)
        return CALIBRATORS[name]().fit(dist, outcomes(dist))


def _calibrated(name: str, base: str) -> CalibratedCase:
    of_base = BY_NAME[base]
    return CalibratedCase(
        name=f"{name} of {base}",
        everywhere=of_base.everywhere,
        exact_tails=of_base.exact_tails,
        reach=of_base.reach,
        precision=of_base.precision,
        calibrator=name,
        base=base,
    )


def _bases(name: str) -> list[str]:
    if name == "gpc-paper":  # slow, and its answers are segments as those of e-beta are
        return [FEW_BASES[0], FEW_BASES[2]]
    if name in VARIANTS or name == "identity":
        return FEW_BASES[:1]
    return FEW_BASES + MORE_BASES.get(name, [])


CALIBRATED = [_calibrated(name, base) for name in CALIBRATORS for base in _bases(name)]
CASES = DISTRIBUTIONS + CALIBRATED
