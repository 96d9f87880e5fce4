"""Random generators from what users pass as ``random_state``."""

import numpy as np

RandomState = int | np.random.RandomState | np.random.Generator | None


def as_generator(random_state: RandomState) -> np.random.Generator:
    """Return a generator; a `RandomState` seeds one and moves on."""
    if isinstance(random_state, np.random.RandomState):
        random_state = random_state.randint(np.iinfo(np.int32).max)
    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError) as error:
        msg = (
            "random_state must be a whole number of at least 0, a random generator of NumPy, or "
            f"None, got {random_state!r}."
        )
        raise type(error)(msg) from error


def child_generator(random_state: RandomState) -> np.random.Generator:
    """Return a generator for simulations; a generator is returned as it is.

    That of a seed is a child stream, because the data may have been drawn from this very seed.
    """
    if isinstance(random_state, np.random.Generator):
        return random_state
    return as_generator(random_state).spawn(1)[0]


def uniforms_by_order(
    first: np.ndarray, second: np.ndarray, random_state: RandomState
) -> np.ndarray:
    """Return a uniform number per row; the same rows in another order get the same numbers."""
    uniforms, order = np.empty(len(first)), np.lexsort((second, first))
    uniforms[order] = child_generator(random_state).random(len(first))
    return uniforms
