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


def integrate(function: Callable[[Array], Array], edges: Array) -> Array:
    """Integrate a function of (n_rows, n_points) over each row's panels."""
    n_rows, n_panels = edges.shape[0], edges.shape[1] - 1
    half = 0.5 * np.diff(edges)
    middle = 0.5 * (edges[:, 1:] + edges[:, :-1])
    points = middle[:, :, np.newaxis] + half[:, :, np.newaxis] * _NODES
    values = function(points.reshape(n_rows, -1)).reshape(n_rows, n_panels, len(_NODES))
    return ((values @ _WEIGHTS) * half).sum(axis=1)
