"""Expectation propagation for binomial observations: what Laplace inference is compared with.

Minka (2001); Rasmussen and Williams (2006), Section 3.6, in the coefficients of a basis. A cell's
likelihood is replaced by a normal function of its predictor, such that mean and variance of the
predictor are those under the others' replacements and its own likelihood; these are computed by
quadrature, so that cells may have any number of trials, and any link.
"""

from dataclasses import replace

import numpy as np
from scipy import linalg

from regcal.gp import BinomialLikelihood, LaplacePosterior
from regcal.gp.binomial import BinomialObservations

# Quadrature around the mode of each cell, and how fast and how long the cells are replaced.
NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(32)
DAMPING, MAX_ROUNDS = 0.8, 200


def propagated(
    likelihood: BinomialLikelihood, start: LaplacePosterior, tolerance: float = 1e-9
) -> LaplacePosterior:
    """Return the posterior of expectation propagation, given the hyper-parameters of another.

    Parameters
    ----------
    likelihood : BinomialLikelihood
    start : LaplacePosterior
        Of the same likelihood.
    tolerance : float
        Stop when no coefficient moves by more, in prior standard deviations.
    """
    (term,) = likelihood.restrict(start.active).terms
    design, cells, scale = term.design, term.observations, start.scale
    at = cells.derivatives(design.predict(start.coefficients[start.active]))
    precision = at.second
    pull = at.first + precision * design.predict(start.coefficients[start.active])
    whitened = np.zeros(len(scale))
    for _ in range(MAX_ROUNDS):
        before = whitened
        gram = design.gram(precision) * np.multiply.outer(scale, scale)
        cholesky = linalg.cholesky(gram + np.eye(len(scale)), lower=True)
        whitened = linalg.cho_solve((cholesky, True), scale * design.adjoint(pull))
        covariance = linalg.cho_solve((cholesky, True), np.diag(scale)) * scale[:, np.newaxis]
        mean, variance = design.predict(scale * whitened), design.quadratic(covariance)
        # without the cell itself
        spread = 1.0 / (1.0 / variance - precision)
        centre = spread * (mean / variance - pull)
        log_mass, new_mean, new_variance = tilted_moments(cells, centre, spread)
        if np.abs(whitened - before).max() < tolerance:
            break
        precision = precision + DAMPING * (1.0 / new_variance - 1.0 / spread - precision)
        pull = pull + DAMPING * (new_mean / new_variance - centre / spread - pull)
    else:
        msg = f"No convergence in {MAX_ROUNDS} rounds."
        raise RuntimeError(msg)
    # of the normal functions alone, over the others' replacements and over the prior
    replaced = 0.5 * (
        (centre / spread + pull) ** 2 / (1.0 / spread + precision)
        - centre**2 / spread
        - np.log1p(precision * spread)
    )
    log_evidence = (log_mass - replaced).sum() + 0.5 * pull @ mean
    coefficients = np.zeros(len(start.coefficients))
    coefficients[start.active] = scale * whitened
    return replace(
        start,
        coefficients=coefficients,
        cholesky=cholesky,
        log_evidence=float(log_evidence - np.log(np.diag(cholesky)).sum()),
    )


def tilted_moments(
    cells: BinomialObservations, centre: np.ndarray, spread: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return log mass, mean and variance of N(centre, spread) times each cell's likelihood."""
    mode = centre.copy()
    for _ in range(50):
        at = cells.derivatives(mode)
        step = (at.first - (mode - centre) / spread) / (at.second + 1.0 / spread)
        mode = mode + step
        if np.abs(step).max() < 1e-10:
            break
    width = 1.0 / np.sqrt(cells.derivatives(mode).second + 1.0 / spread)
    logs, points = [], []
    for node, weight in zip(NODES, WEIGHTS, strict=True):
        point = mode + width * node
        log_density = -0.5 * (point - centre) ** 2 / spread + cells.derivatives(point).value
        logs.append(np.log(weight) + 0.5 * node**2 + log_density)
        points.append(point)
    peak = np.max(logs, axis=0)
    shares = np.exp(logs - peak)
    total = shares.sum(axis=0)
    mean = (shares * points).sum(axis=0) / total
    variance = (shares * (np.array(points) - mean) ** 2).sum(axis=0) / total
    return peak + np.log(total * width) - 0.5 * np.log(2 * np.pi * spread), mean, variance
