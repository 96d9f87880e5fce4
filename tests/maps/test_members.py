"""Batches joined from parts, and what is remembered of them."""

import gc
import weakref

import numpy as np
from numpy.testing import assert_array_equal

from regcal.maps.members import Joints, Members


def test_rows_know_their_parts():
    """Some rows of a batch have the values of the parts that they belong to."""
    members = Members(2, n_each=3)

    assert_array_equal(members.take(np.array([5, 0])).repeated([7.0, 9.0]), [9.0, 7.0])


class Part:
    """Anything, equal to all others."""

    __hash__ = object.__hash__

    def __eq__(self, other):
        return True


def test_the_very_same_parts_are_joined_once():
    """Equal parts are not the same, nor are some of them; other kinds are kept apart."""
    joints, asked = Joints(), []

    def ask(kind, parts):
        return joints.once(kind, parts, lambda: asked.append(parts) or len(asked))

    first, second = Part(), Part()

    assert [ask("a", [first, second]), ask("a", [first, second])] == [1, 1]
    assert [ask("a", [first, first]), ask("a", [first]), ask("b", [first])] == [2, 3, 4]
    assert ask("a", [first]) == 3


def test_joints_live_as_long_as_their_owner():
    """What an owner's parts were joined to goes when it goes."""
    owner = Part()
    joints = weakref.ref(Joints.of(owner))
    assert Joints.of(owner) is joints()

    del owner
    gc.collect()

    assert joints() is None
