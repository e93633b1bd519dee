"""Finite spaces as numbers, and observations numbered as they appear."""

import numpy as np
import pytest
from gymnasium import spaces

from bamdp.gym.world import MAX_ELEMENTS, elements, list_actions, number_observations

SPACES = [
    spaces.Discrete(5, start=-2),
    spaces.MultiDiscrete([2, 3, 4], start=[1, 0, -1]),
    spaces.MultiDiscrete(np.array([[2, 3], [1, 2]])),
    spaces.MultiBinary([2, 2]),
    spaces.Tuple([spaces.Discrete(3), spaces.Dict({"b": spaces.MultiBinary(1), "a": spaces.Discrete(2)})]),
]


@pytest.mark.parametrize("space", SPACES, ids=str)
def test_elements_and_numbers_are_one_to_one(space):
    found = elements(space)
    assert all(space.contains(x) for x in found)
    numbering = number_observations(space, None, None)
    assert [numbering(x) for x in found] == list(range(numbering.n))
    for _ in range(20):
        assert 0 <= numbering(space.sample()) < numbering.n
    for wrong in (99, "a", None, (0, 0, 0, 0, 0)):
        with pytest.raises(ValueError, match="is outside of the space"):
            numbering(wrong)


def test_large_spaces_are_not_listed():
    assert len(elements(spaces.Tuple([spaces.MultiBinary(40), spaces.MultiBinary(40)]))) == MAX_ELEMENTS + 1


def test_observations_are_numbered_as_they_appear_up_to_a_stated_number():
    numbering = number_observations(spaces.Text(5), 3, None)
    assert [numbering(x) for x in ("a", "b", "a", "c")] == [0, 1, 0, 2]
    with pytest.raises(ValueError, match=r"'d' is new after 3 others; increase max_states"):
        numbering("d")
    ints = number_observations(spaces.Box(0, 9, (2,), np.int64), 5, None)
    assert [ints(np.array(x)) for x in ([1, 2], [2, 1], [1, 2])] == [0, 1, 0]


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: number_observations(spaces.Box(0, 1), 9, None), "discrete by bins"),
        (lambda: number_observations(spaces.Dict({"x": spaces.Box(0, 1)}), 9, None), "make them discrete"),
        (lambda: number_observations(spaces.Text(5), None, None), "needs max_states"),
        (lambda: number_observations(spaces.MultiDiscrete([999] * 3), None, None), "needs max_states"),
        (lambda: number_observations(spaces.Discrete(2), None, lambda x: x), "=... needs max_states"),
        (lambda: number_observations(spaces.Discrete(2), 0, None), "max_states must be at least 1"),
        (lambda: list_actions(spaces.Box(0, 1)), "DiscretizeActions"),
        (lambda: list_actions(spaces.MultiBinary(40)), "not a finite set"),
    ],
)
def test_what_cannot_be_numbered_is_refused_with_a_cure(make, words):
    with pytest.raises(ValueError, match=words):
        make()
