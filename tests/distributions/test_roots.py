"""Roots of many increasing functions, against roots known beforehand."""

import numpy as np
from numpy.testing import assert_allclose

from regcal.distributions._roots import solve_between


def test_roots_of_cubics_between_bounds(rng):
    """Steep, flat and nearly settled rows reach their targets, each to the last digits."""
    wanted = np.concatenate([rng.normal(size=(6, 3)), np.zeros((1, 3)), np.full((1, 3), 1e3)])
    flatness = np.array([1.0, 1.0, 1e-3, 1e-6, 1.0, 1.0, 0.0, 1.0])[:, np.newaxis]
    asked = []

    def function_of(rows):
        flat = flatness if rows is None else flatness[rows]
        asked.append(len(flat))

        def function(points):
            with np.errstate(divide="ignore"):
                return flat * points + points**3, np.log(flat + 3 * points**2)

        return function

    targets = flatness * wanted + wanted**3
    found = solve_between(function_of, targets, wanted - 2.0, wanted + 3.0, wanted + 1.0)

    assert_allclose(found, wanted, rtol=1e-9, atol=1e-4)
    assert asked[-1] < len(wanted)


def test_points_that_are_known_are_not_searched_for():
    """A bracket without width is its own answer."""

    def function_of(rows):
        def function(points):
            raise AssertionError

        return function

    at = np.array([[1.0, 2.0]])

    assert_allclose(solve_between(function_of, at, at, at, at), at)


def test_a_last_step_needs_no_look():
    """Where errors fall by squares, nothing is evaluated only to see that it is right."""
    asked = []

    def function_of(rows):
        def function(points):
            asked.append(points)
            return np.sinh(points), np.log(np.cosh(points))

        return function

    wanted = np.array([[0.3, 1.2]])
    found = solve_between(function_of, np.sinh(wanted), wanted - 1.0, wanted + 1.0, wanted + 0.02)

    assert_allclose(found, wanted, rtol=1e-14)
    assert np.abs(asked[-1] - wanted).max() > 1e-13


def test_what_slopes_tell_of_bends_spares_a_look(rng):
    """Four looks reach what Newton's steps, of which each squares the error, reach in five."""
    asked = []

    def function_of(rows):
        def function(points):
            asked.append(points)
            return np.sinh(points), np.log(np.cosh(points))

        return function

    wanted = rng.uniform(1.0, 2.0, size=(1, 9))
    found = solve_between(function_of, np.sinh(wanted), wanted - 1.0, wanted + 1.0, wanted + 0.5)

    assert_allclose(found, wanted, rtol=1e-14)
    assert len(asked) == 4
