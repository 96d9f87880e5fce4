"""Count how often calibration does harm where there are few rows.

    python benchmarks/harm.py [--worlds 200] [--only scale auto] [--by-kind]

Draws small worlds, calibrates a base model's predictions in each and scores them on 500 new rows. A
world has 10 to 200 calibration rows and one kind of truth: the base is right, biased, too narrow or
too wide, or the noise has heavy tails, two modes, rounding or outliers. Harm is a loss of more than
0.01 nats of mean log score, or of more than 1 % of CRPS, against the base. Prints, for every
calibrator, the share of worlds with harm, the worst world and the mean gain.
"""

import argparse
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

import regcal

N_NEW = 500
METHODS = (
    *("scale", "pit", "isotonic", "e-logistic", "e-beta", "e-isotonic", "gpc", "gp-density"),
    "auto",
)
LOST_NATS, LOST_SHARE = 0.01, 0.01

Noise = Callable[[np.random.Generator, int], np.ndarray]


def well_specified(rng: np.random.Generator, n: int) -> np.ndarray:
    return rng.normal(size=n)


def biased(rng: np.random.Generator, n: int) -> np.ndarray:
    return 0.7 + rng.normal(size=n)


def narrow(rng: np.random.Generator, n: int) -> np.ndarray:
    return 2.0 * rng.normal(size=n)


def wide(rng: np.random.Generator, n: int) -> np.ndarray:
    return 0.4 * rng.normal(size=n)


def heavy_tails(rng: np.random.Generator, n: int) -> np.ndarray:
    return rng.standard_t(3, size=n)


def bimodal(rng: np.random.Generator, n: int) -> np.ndarray:
    return rng.choice([-1.5, 1.5], n) + 0.4 * rng.normal(size=n)


def with_outliers(rng: np.random.Generator, n: int) -> np.ndarray:
    noise = rng.normal(size=n)
    return np.where(rng.random(n) < 0.03, 15.0 * noise, noise)


KINDS: dict[str, Noise] = {
    "right": well_specified,
    "biased": biased,
    "too narrow": narrow,
    "too wide": wide,
    "heavy tails": heavy_tails,
    "two modes": bimodal,
    "rounded": well_specified,
    "outliers": with_outliers,
}


@dataclass(frozen=True)
class Rows:
    """Predictions and outcomes."""

    dist: regcal.Normal
    y: np.ndarray


def drawn_rows(kind: str, n: int, rng: np.random.Generator) -> Rows:
    """Return rows whose spread varies, in a world of some kind."""
    loc, scale = 2 * rng.normal(size=n), np.exp(0.3 * rng.normal(size=n))
    y = loc + scale * KINDS[kind](rng, n)
    if kind == "rounded":
        y = np.round(2.0 * y) / 2.0
    return Rows(regcal.Normal(loc, scale), y)


@dataclass(frozen=True)
class Outcome:
    """What calibration gained in one world: nats of log score, and share of CRPS."""

    world: int
    kind: str
    n_rows: int
    method: str
    nats: float
    crps: float

    @property
    def harms_log_score(self) -> bool:
        """Whether the log score is clearly worse than the base's."""
        return self.nats < -LOST_NATS

    @property
    def harms_crps(self) -> bool:
        """Whether the CRPS is clearly worse than the base's."""
        return self.crps < -LOST_SHARE


def run_world(world: int, methods: list[str]) -> list[Outcome]:
    """Return the gains of every method in one world."""
    rng = np.random.default_rng([2018, world])
    kind = list(KINDS)[world % len(KINDS)]
    n_rows = round(float(np.exp(rng.uniform(np.log(10), np.log(200)))))
    learnt, new = drawn_rows(kind, n_rows, rng), drawn_rows(kind, N_NEW, rng)
    before = new.dist.logpdf(new.y).mean(), new.dist.crps(new.y).mean()
    outcomes = []
    for method in methods:
        dist = regcal.get_calibrator(method).fit(learnt.dist, learnt.y).transform(new.dist)
        nats = float(dist.logpdf(new.y).mean() - before[0])
        share = float(1.0 - dist.crps(new.y).mean() / before[1])
        outcomes.append(Outcome(world, kind, n_rows, method, nats, share))
    return outcomes


def table(outcomes: list[Outcome]) -> list[str]:
    """Return a line per method: share of worlds with harm, the worst of them, the mean gain."""
    lines = ["| method | harm, log score | worst | mean | harm, CRPS | worst | mean |"]
    lines.append("|---|---:|---:|---:|---:|---:|---:|")
    for method in dict.fromkeys(one.method for one in outcomes):
        own = [one for one in outcomes if one.method == method]
        nats, crps = np.array([one.nats for one in own]), np.array([one.crps for one in own])
        harm = np.mean([one.harms_log_score for one in own]), np.mean([o.harms_crps for o in own])
        lines.append(
            f"| {method} | {harm[0]:.1%} | {nats.min():+.2f} | {nats.mean():+.3f} | "
            f"{harm[1]:.1%} | {-100 * crps.min():+.1f} % | {-100 * crps.mean():+.1f} % |"
        )
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--worlds", type=int, default=200)
    parser.add_argument("--only", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--by-kind", action="store_true")
    options = parser.parse_args()
    outcomes = []
    for world in range(options.worlds):
        outcomes += run_world(world, options.only)
    print("\n".join(table(outcomes)))
    if options.by_kind:
        for kind in KINDS:
            print(f"\n{kind}\n")
            print("\n".join(table([one for one in outcomes if one.kind == kind])))


if __name__ == "__main__":
    main()
