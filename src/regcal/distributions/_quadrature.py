"""Gauss-Legendre quadrature over panels, row by row."""

from collections.abc import Callable, Sequence

import numpy as np

from regcal._validation import Array

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(8)


def panels_between(
    edges: Array, kinks: Sequence[Array | None], extras: Sequence[Array | None]
) -> Array:
    """Return sorted panel edges per row: `edges`, the kinks within them, and all extra points."""
    low, high = edges[:, :1], edges[:, -1:]
    parts = [edges]
    parts += [np.clip(k, low, high) for k in kinks if k is not None]
    parts += [extra for extra in extras if extra is not None]
    return np.sort(np.concatenate(parts, axis=1), axis=1)


def nodes_between(edges: Array) -> tuple[Array, Array]:
    """Return points and weights, (n_rows, n_points), of integrals over each row's panels."""
    half = 0.5 * np.diff(edges)[:, :, np.newaxis]
    middle = 0.5 * (edges[:, 1:] + edges[:, :-1])[:, :, np.newaxis]
    points, weights = middle + half * _NODES, half * _WEIGHTS
    return points.reshape(len(edges), -1), weights.reshape(len(edges), -1)


def integrate(function: Callable[[Array], Array], edges: Array) -> Array:
    """Integrate a function of (n_rows, n_points) over each row's panels."""
    points, weights = nodes_between(edges)
    return (function(points) * weights).sum(axis=1)
