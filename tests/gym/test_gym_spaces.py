"""Finite spaces as numbers, and things as they appear."""

import numpy as np
import pytest
from gymnasium import spaces

from bamdp.gym.spaces import (
    Numbering,
    as_key,
    digits_of,
    element_of,
    n_elements,
    number_actions,
    number_observations,
    number_of,
)

SPACES = [
    spaces.Discrete(5, start=-2),
    spaces.MultiDiscrete([2, 3, 4], start=[1, 0, -1]),
    spaces.MultiDiscrete(np.array([[2, 3], [1, 2]])),
    spaces.MultiBinary([2, 2]),
    spaces.Tuple([spaces.Discrete(3), spaces.Dict({"b": spaces.MultiBinary(1), "a": spaces.Discrete(2)})]),
]


@pytest.mark.parametrize("space", SPACES, ids=str)
def test_elements_and_numbers_are_one_to_one(space):
    digits = digits_of(space)
    found = [element_of(space, i) for i in range(n_elements(digits))]
    assert all(space.contains(x) for x in found)
    assert [number_of(digits, x) for x in found] == list(range(n_elements(digits)))
    assert len({as_key(x) for x in found}) == n_elements(digits)
    for _ in range(20):
        assert 0 <= number_of(digits, space.sample()) < n_elements(digits)


@pytest.mark.parametrize("space", SPACES, ids=str)
def test_what_is_no_element_is_refused(space):
    for wrong in (99, "a", None, np.array([9.5]), (0, 0, 0, 0, 0)):
        with pytest.raises(ValueError, match="should"):
            number_of(digits_of(space), wrong)


def test_things_are_numbered_as_they_appear_up_to_a_stated_number():
    numbering = number_observations(spaces.Text(5), 3, None)
    assert [numbering(x) for x in ("a", "b", "a", "c")] == [0, 1, 0, 2]
    with pytest.raises(ValueError, match=r"'d' is new, and 3 others .* max_states; raise it"):
        numbering("d")
    assert numbering("b") == 1
    ints = number_observations(spaces.Box(0, 9, (2,), np.int64), 5, None)
    assert [ints(np.array(x)) for x in ([1, 2], [2, 1], [1, 2])] == [0, 1, 0]


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (
            lambda: number_observations(spaces.Box(0, 1), None, None),
            r"make them discrete: bamdp.gym.Discretize",
        ),
        (lambda: number_observations(spaces.Box(0, 1), 9, None), "make them discrete"),
        (lambda: number_observations(spaces.Dict({"x": spaces.Box(0, 1)}), 9, None), "make them discrete"),
        (lambda: number_observations(spaces.Text(5), None, None), "say max_states"),
        (lambda: number_observations(spaces.Box(0, 9, (2,), np.int64), None, None), "say max_states"),
        (lambda: number_observations(spaces.MultiDiscrete([999] * 3), None, None), "say max_states"),
        (
            lambda: number_observations(spaces.Discrete(2), None, lambda x: x),
            r"observation=\.\.\. say max_states",
        ),
        (lambda: number_observations(spaces.Discrete(2), 0, None), "max_states must be at least 1"),
        (lambda: number_actions(spaces.Box(0, 1)), "ActionWrapper"),
        (lambda: number_actions(spaces.MultiBinary(40)), "more than"),
        (lambda: Numbering(None, 5)({1, 2}), "not hashable; give observation="),
    ],
)
def test_spaces_that_are_not_finite_get_a_cure(make, words):
    with pytest.raises(ValueError, match=words):
        make()
