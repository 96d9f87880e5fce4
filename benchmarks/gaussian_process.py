"""What the Gaussian-process calibrators cost, against scikit-learn, GPyTorch and the base model.

Prints one line per measurement, with the wanted limit where there is one. Times are CPU times,
best of a few; keep them to one thread:

    OMP_NUM_THREADS=1 python benchmarks/gaussian_process.py --slow          # everything
    OMP_NUM_THREADS=1 python benchmarks/gaussian_process.py --sections predict million

`--slow` adds 2000 pairs, which take scikit-learn about a minute.
"""

import argparse
import operator
import resource
import time
import warnings
from dataclasses import dataclass
from unittest.mock import patch

import numpy as np
from scipy import stats
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process import kernels as exact_kernels
from sklearn.linear_model import BayesianRidge
from sklearn.metrics import log_loss

import regcal
from regcal.calibrators import gp_density
from regcal.datasets import make_toy_mixture
from regcal.gp import (
    RBF,
    BinomialLikelihood,
    FittedProcess,
    HilbertBasis,
    Logit,
    ProcessPrior,
    TensorDesign,
    fit_process,
    laplace_posterior,
)

N_HELD_OUT = 2000
SVGP_INDUCING, SVGP_STEPS, SVGP_RATE = 128, 300, 0.05
COMPARISONS = {"<=": operator.le, ">=": operator.ge}


def cpu_time(function, repeats: int = 3):
    """Return the least CPU time of a few runs, and the last result."""
    times = []
    for _ in range(repeats):
        start = time.process_time()
        result = function()
        times.append(time.process_time() - start)
    return min(times), result


def show(what: str, value: float, unit: str = "", wanted: str = "") -> None:
    """Print a measurement; `wanted` is a comparison and a limit, such as "<= 5"."""
    verdict = ""
    if wanted:
        comparison, limit = wanted.split()
        verdict = "met" if COMPARISONS[comparison](value, float(limit)) else "MISSED"
    print(f"{what:<62} {value:>10.4g} {unit:<2} {wanted:>9} {verdict}".rstrip(), flush=True)


# Data


def simulated(n: int) -> tuple[regcal.Normal, np.ndarray]:
    rng = np.random.default_rng(0)
    loc, scale = 3 * rng.normal(size=n), np.exp(0.3 * rng.normal(size=n))
    return regcal.Normal(loc, scale), loc + 1.3 * scale * rng.normal(size=n)


def heavy_tailed(n: int) -> tuple[regcal.Normal, np.ndarray]:
    rng = np.random.default_rng(1)
    loc, scale = 3 * rng.normal(size=n), np.exp(0.3 * rng.normal(size=n))
    return regcal.Normal(loc, scale), loc + 1.3 * scale * rng.standard_t(4, size=n)


class Toy:
    """The toy mixture, with a Bayesian ridge regression trained on rows of its own."""

    def __init__(self) -> None:
        training = make_toy_mixture(1000, random_state=0)
        self.model = BayesianRidge().fit(training.X, training.y)
        self.low, self.high = float(training.y.min()), float(training.y.max())

    def rows(self, n: int, seed: int) -> tuple[regcal.Normal, np.ndarray]:
        """Return the model's distributions of new rows, and their outcomes."""
        data = make_toy_mixture(n, random_state=seed)
        return regcal.Normal(*self.model.predict(data.X, return_std=True)), data.y

    def pairs(self, n: int, seed: int) -> "Pairs":
        """Return one pair (q(t), t, y <= t) per new row, each at a threshold of its own."""
        dist, y = self.rows(n, seed)
        t = np.random.default_rng(seed).uniform(self.low, self.high, size=n)
        scaled = 2 * (t - self.low) / (self.high - self.low) - 1
        return Pairs(np.column_stack([2 * dist.cdf(t) - 1, scaled]), (y <= t).astype(float))


@dataclass(frozen=True)
class Pairs:
    """Features q(t) and t, both scaled to [-1, 1], and whether Y <= t."""

    features: np.ndarray
    labels: np.ndarray

    def likelihood(self, basis: HilbertBasis) -> BinomialLikelihood:
        """Return the logistic likelihood of the pairs, with a prior mean of zero."""
        design = TensorDesign.values(basis, *self.features.T)
        return BinomialLikelihood(design, self.labels, link=Logit())

    def log_loss(self, probability: np.ndarray) -> float:
        """Return the mean negative log probability of the labels."""
        return log_loss(self.labels, probability)


# The three ways to fit the pairs


def fit_ours(pairs: Pairs) -> FittedProcess:
    return fit_process(pairs.likelihood)


def our_probability(process: FittedProcess, features: np.ndarray) -> np.ndarray:
    return Logit().average(*process.moments(*features.T))


def fit_sklearn(pairs: Pairs) -> GaussianProcessClassifier:
    kernel = exact_kernels.ConstantKernel() * exact_kernels.RBF([1.0, 1.0])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return GaussianProcessClassifier(kernel).fit(pairs.features, pairs.labels)


def ours_at(pairs: Pairs, theta: np.ndarray) -> FittedProcess:
    """Return our posterior at given hyper-parameters, in a basis as large as they ask for."""
    kernel, lengthscales = RBF(), np.exp(theta[1:])
    boundary = np.maximum(HilbertBasis().required_boundary(kernel, lengthscales), 1.3)
    basis = HilbertBasis(boundary=(float(boundary[0]), float(boundary[1])))
    sizes = np.maximum(basis.required_sizes(kernel, lengthscales), 10)
    basis = HilbertBasis((int(sizes[0]), int(sizes[1])), basis.boundary)
    prior = ProcessPrior(basis, kernel)
    return FittedProcess(prior, laplace_posterior(pairs.likelihood(basis), prior, theta))


def fit_svgp(pairs: Pairs):
    """Fit a sparse variational process with GPyTorch; return a function of the features."""
    import gpytorch
    import torch

    class SparseProcess(gpytorch.models.ApproximateGP):
        def __init__(self, inducing):
            posterior = gpytorch.variational.CholeskyVariationalDistribution(len(inducing))
            super().__init__(gpytorch.variational.VariationalStrategy(self, inducing, posterior))
            self.mean_module = gpytorch.means.ZeroMean()
            self.covar_module = gpytorch.kernels.ScaleKernel(
                gpytorch.kernels.RBFKernel(ard_num_dims=2)
            )

        def forward(self, x):
            return gpytorch.distributions.MultivariateNormal(
                self.mean_module(x), self.covar_module(x)
            )

    torch.set_num_threads(1)
    torch.manual_seed(0)
    x = torch.tensor(pairs.features, dtype=torch.float32)
    labels = torch.tensor(pairs.labels, dtype=torch.float32)
    model = SparseProcess(x[:SVGP_INDUCING].clone())
    likelihood = gpytorch.likelihoods.BernoulliLikelihood()
    objective = gpytorch.mlls.VariationalELBO(likelihood, model, len(labels))
    optimizer = torch.optim.Adam(model.parameters(), lr=SVGP_RATE)
    for _ in range(SVGP_STEPS):
        optimizer.zero_grad()
        loss = -objective(model(x), labels)
        loss.backward()
        optimizer.step()
    model.eval()

    def probability(features: np.ndarray) -> np.ndarray:
        with torch.no_grad():
            latent = model(torch.tensor(features, dtype=torch.float32))
            return likelihood(latent).mean.numpy().astype(float)

    return probability


# Sections


def pair_sizes(slow: bool) -> list[int]:
    return [500, 1000, 2000] if slow else [500, 1000]


def measure_pairs(slow: bool) -> None:
    toy = Toy()
    held_out = toy.pairs(N_HELD_OUT, seed=99)
    fit_ours(toy.pairs(100, seed=1))  # what is done once per process is not counted
    for n in pair_sizes(slow):
        pairs = toy.pairs(n, seed=n)
        ours_time, ours = cpu_time(lambda pairs=pairs: fit_ours(pairs), 5)
        repeats = 1 if n >= 2000 else 2
        exact_time, exact = cpu_time(lambda pairs=pairs: fit_sklearn(pairs), repeats)
        show(f"{n} pairs: scikit-learn, fit with search", exact_time, "s")
        show(f"{n} pairs: regcal.gp, fit with search", ours_time, "s")
        show(f"{n} pairs: ratio", exact_time / ours_time, "x", ">= 300" if n == 2000 else "")

        log_variance, *log_lengthscales = exact.kernel_.theta
        same = ours_at(pairs, np.array([0.5 * log_variance, *log_lengthscales]))
        theirs = exact.predict_proba(pairs.features)[:, 1]
        change = np.abs(our_probability(same, pairs.features) - theirs).max()
        show(f"{n} pairs: largest |difference| at scikit-learn's optimum", change)
        own = np.abs(our_probability(ours, pairs.features) - theirs).max()
        show(f"{n} pairs: largest |difference|, each at its own optimum", own)
        score = held_out.log_loss(exact.predict_proba(held_out.features)[:, 1])
        show(f"{n} pairs: held-out log loss, scikit-learn", score)
        score = held_out.log_loss(our_probability(ours, held_out.features))
        show(f"{n} pairs: held-out log loss, regcal.gp", score)
        for name, sigma, scales in (
            ("scikit-learn", np.exp(0.5 * log_variance), np.exp(log_lengthscales)),
            ("regcal.gp", ours.sigma, ours.lengthscales),
        ):
            found = f"sigma {sigma:.3g}, length-scales {scales[0]:.3g} and {scales[1]:.3g}"
            print(f"  {name} found {found}")
        print(f"  basis {ours.basis.sizes}, at scikit-learn's optimum {same.basis.sizes}")


def measure_svgp(slow: bool) -> None:
    try:
        import gpytorch  # noqa: F401
        import torch  # noqa: F401
    except ImportError as error:
        print(f"skipped ({error}); to run it: pip install torch gpytorch")
        return
    toy = Toy()
    held_out = toy.pairs(N_HELD_OUT, seed=99)
    fit_ours(toy.pairs(100, seed=1))
    print(f"  {SVGP_INDUCING} inducing points, {SVGP_STEPS} steps of Adam at {SVGP_RATE}")
    for n in pair_sizes(slow):
        pairs = toy.pairs(n, seed=n)
        ours_time, ours = cpu_time(lambda pairs=pairs: fit_ours(pairs), 5)
        sparse_time, sparse = cpu_time(lambda pairs=pairs: fit_svgp(pairs), 2)
        show(f"{n} pairs: SVGP, fit", sparse_time, "s")
        show(f"{n} pairs: regcal.gp, fit with search", ours_time, "s")
        show(f"{n} pairs: ratio", sparse_time / ours_time, "x")
        score = held_out.log_loss(sparse(held_out.features))
        show(f"{n} pairs: held-out log loss, SVGP", score)
        score = held_out.log_loss(our_probability(ours, held_out.features))
        show(f"{n} pairs: held-out log loss, regcal.gp", score)


def measure_paper_size(slow: bool) -> None:
    for data, (dist, y) in (("normal", simulated(1000)), ("toy", Toy().rows(1000, seed=1))):
        for name, options in (("gpc", {"thresholds": 32}), ("gp-density", {})):
            calibrator = regcal.get_calibrator(name, **options)
            fit, _ = cpu_time(lambda c=calibrator, dist=dist, y=y: c.fit(dist, y), 5)
            show(f"1000 rows, {data}: {name} fit", fit, "s", "<= 0.25")


def measure_million(slow: bool) -> None:
    dist, y = simulated(1_000_000)
    gpc = regcal.get_calibrator("gpc", thresholds=64)
    fit, _ = cpu_time(lambda: gpc.fit(dist, y), 2)
    # before the base CDF, whose own result is half a gigabyte
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024**2
    thresholds = gpc.thresholds_[np.newaxis, :]
    base, _ = cpu_time(lambda: dist.cdf(thresholds).shape, 2)
    show("1 000 000 rows: base CDF at 64 thresholds", base, "s")
    show("1 000 000 rows: gpc fit", fit, "s")
    show("1 000 000 rows: gpc fit over base CDF", fit / base, "x", "<= 5")
    show("1 000 000 rows: peak memory of the process after gpc", peak, "GB", "<= 1.5")
    density = regcal.get_calibrator("gp-density")
    # how long the search takes depends on the draw
    small = []
    for start in range(0, 70_000, 10_000):
        rows = slice(start, start + 10_000)
        small.append(cpu_time(lambda rows=rows: density.fit(dist[rows], y[rows]), 2)[0])
    large, _ = cpu_time(lambda: density.fit(dist, y), 2)
    show("10 000 rows: gp-density fit, fastest of 7 draws", min(small), "s")
    show("10 000 rows: gp-density fit, median of 7 draws", np.median(small), "s")
    show("10 000 rows: gp-density fit, slowest of 7 draws", max(small), "s")
    show("1 000 000 rows: gp-density fit", large, "s")
    ratio = large / np.median(small)
    show("1 000 000 rows over 10 000 (median): gp-density fit", ratio, "x", "<= 10")
    show("1 000 000 rows over 10 000 (fastest): gp-density fit", large / min(small), "x")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024**2
    show("1 000 000 rows: peak memory with base CDF and gp-density", peak, "GB")


def measure_predict(slow: bool) -> None:
    n, n_grid = 1_000_000, 10_000
    toy = Toy()
    smooth = regcal.get_calibrator("gp-density").fit(*heavy_tailed(1000))
    folded = regcal.get_calibrator("gpc").fit(*toy.rows(1000, seed=1))
    for what, calibrator, (dist, y), wanted in (
        ("no repair", smooth, simulated(n), "<= 10"),
        ("toy", folded, toy.rows(n, seed=2), "<= 100"),
    ):
        calibrator.transform(dist[:10]).logpdf(y[:10])
        repaired = 1.0 - calibrator.transform(dist)._curve._safe.mean()
        show(f"{what}: share of rows that may need repair", repaired)
        base, _ = cpu_time(lambda d=dist, y=y: stats.norm.logpdf(y, d.loc, d.scale))
        # transformed anew each time, so that nothing is remembered from the last one
        ours, _ = cpu_time(lambda c=calibrator, d=dist, y=y: c.transform(d).logpdf(y), 2)
        show(f"{what}: scipy.stats.norm.logpdf of 1 000 000 rows", base, "s")
        show(f"{what}: calibrated logpdf of 1 000 000 rows", ours, "s")
        show(f"{what}: calibrated logpdf over scipy's", ours / base, "x", wanted)

        few = dist[:n_grid]
        grid = np.linspace(y.min(), y.max(), 1024)[np.newaxis, :]
        base, _ = cpu_time(lambda d=few, t=grid: d.cdf(t))
        ours, _ = cpu_time(lambda c=calibrator, d=few, t=grid: c.transform(d).cdf(t))
        show(f"{what}: base CDF, 10 000 rows by 1024 points", base, "s")
        show(f"{what}: calibrated CDF, 10 000 rows by 1024 points", ours, "s")
        show(f"{what}: calibrated CDF over the base's", ours / base, "x", "<= 3")


def steep_worlds(n: int) -> dict[str, tuple[regcal.Normal, np.ndarray]]:
    """Return rows whose maps change quickly along the target."""
    rng = np.random.default_rng(0)
    loc = 5 * rng.normal(size=n)
    noise = np.where(loc > 2, 0.75, 0.2) * rng.standard_t(4, size=n)
    log_loc = rng.normal(size=n)
    wide = np.full(n, 2.0)
    return {
        "toy": Toy().rows(n, seed=1),
        "narrow": (regcal.Normal(loc, np.full(n, 0.5)), loc + noise + 0.6 * np.sin(3 * loc)),
        "lognormal": (
            regcal.Normal(np.exp(0.7 * log_loc + 0.25), wide),
            np.exp(0.7 * (log_loc + rng.normal(size=n))),
        ),
        "smooth": heavy_tailed(n),
    }


def measure_cells(slow: bool) -> None:
    """Compare gp-density in cells with the map of all points at the same hyper-parameters."""
    n_rows = 6000
    merged = gp_density.PathPoints.merged

    def all_in_the_end(points, n_levels):
        return points if n_levels == gp_density._FINAL_LEVELS else merged(points, n_levels)

    for world, (dist, y) in steep_worlds(n_rows).items():
        grid = np.quantile(y, np.linspace(0.002, 0.998, 64))[np.newaxis, :]
        few = dist[:: n_rows // 200]

        def answers(few=few, grid=grid, dist=dist, y=y) -> np.ndarray:
            return regcal.get_calibrator("gp-density").fit(dist, y).transform(few).cdf(grid)

        with patch.object(gp_density.PathPoints, "merged", all_in_the_end):
            every_point = answers()
        off = np.abs(answers() - every_point).max()
        show(f"{n_rows} rows, {world}: gp-density in cells, largest error", off, "", "<= 0.005")
        with patch.object(gp_density, "_FINAL_LEVELS", gp_density._SEARCH_LEVELS):
            off = np.abs(answers() - every_point).max()
        show(f"{n_rows} rows, {world}: with the levels of the search alone", off)


# `million` comes first: its peak memory is that of the process so far.
SECTIONS = {
    "million": measure_million,
    "predict": measure_predict,
    "paper-size": measure_paper_size,
    "pairs": measure_pairs,
    "svgp": measure_svgp,
    "cells": measure_cells,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sections", nargs="+", choices=SECTIONS, default=list(SECTIONS))
    parser.add_argument("--slow", action="store_true", help="also 2000 pairs")
    arguments = parser.parse_args()
    print(f"{'CPU time, best of a few':<62} {'measured':>13} {'wanted':>9}")
    for name, measure in SECTIONS.items():
        if name in arguments.sections:
            print(f"\n{name}")
            measure(arguments.slow)


if __name__ == "__main__":
    main()
