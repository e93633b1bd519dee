"""Parameters that are checked when their owner is made, and bundles of arrays that know their shapes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, NamedTuple

import numpy as np
import pytest

from bamdp._kernels.bundles import zeros
from bamdp._parameters import check_parameters, choice, flag, positive_number, real_number, whole_number


@dataclass(frozen=True)
class Owner:
    n: int = whole_number(2)
    steps: int | str = whole_number("all", names=["all"])
    tol: float = positive_number(0.5)
    share: float | None = real_number(None, low=0.0, high=1.0)
    kind: str = choice("near", ["near", "far"])
    keep: bool = flag(False)
    free: object = None

    def __post_init__(self) -> None:
        check_parameters(self)


def test_what_a_parameter_may_be_is_taken():
    owner = Owner(n=7, steps=3, tol=1, share=0.0, kind="far", keep=True, free="anything")
    assert (owner.n, owner.steps, owner.share, owner.kind) == (7, 3, 0.0, "far")
    assert Owner() == Owner(2, "all", 0.5, None, "near", False)


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"n": 0}, ValueError, "n must be at least 1, got 0"),
        ({"n": None}, TypeError, "n must be a whole number"),
        ({"steps": "al"}, ValueError, "unknown steps 'al'; did you mean 'all'"),
        ({"steps": 0}, ValueError, "steps must be at least 1"),
        ({"tol": 0.0}, ValueError, "tol must be finite, above 0"),
        ({"share": 1.5}, ValueError, "share must be finite, at least 0, at most 1"),
        ({"kind": "fa"}, ValueError, "unknown kind 'fa'; did you mean 'far'"),
        ({"keep": 1}, TypeError, "keep must be True or False, got 1"),
    ],
)
def test_what_it_may_not_be_is_refused_by_name(given, error, message):
    with pytest.raises(error, match=message):
        Owner(**given)


class Bundle(NamedTuple):
    state: Annotated[np.ndarray, "int64 [H]"]
    value: Annotated[np.ndarray, "float64 [H, 3]"]
    seen: Annotated[np.ndarray, "bool [H, A]"]
    number: int


def test_a_bundle_is_made_of_zeros_in_the_shapes_that_it_declares():
    bundle = zeros(Bundle, H=4, A=2, number=5)
    assert [(x.dtype, x.shape) for x in bundle[:3]] == [
        (np.int64, (4,)),
        (np.float64, (4, 3)),
        (np.bool_, (4, 2)),
    ]
    assert not any(x.any() for x in bundle[:3])
    assert bundle.number == 5
    own = np.full(7, 1.0)
    assert zeros(Bundle, H=4, A=2, number=5, value=own).value is own
