"""Parameters are declared once: the declaration checks them, documents their class, and is listed."""

from __future__ import annotations

import doctest
import math
from dataclasses import dataclass
from typing import Annotated, Literal, NamedTuple

import numpy as np
import pytest

import bamdp
from bamdp import _checks
from bamdp._kernels.jit import zeros
from bamdp._parameters import Declared, choice, declared, flag, positive_number, real_number, whole_number


@dataclass(frozen=True)
class Owner(Declared):
    """Own things.

    Examples
    --------
    >>> Owner().n
    2
    """

    n: int = whole_number(2, help="How many")
    steps: int | str = whole_number("all", names=["all"])
    tol: float = positive_number(0.5, help="How near.")
    share: float | None = real_number(None, low=0.0, high=1.0)
    kind: str = choice("near", ["near", "far"], help="Which side")
    keep: bool = flag(False)
    free: object = None


def test_what_a_parameter_may_be_is_taken():
    owner = Owner(n=np.int32(7), steps=3, tol=1, share=0.0, kind="far", keep=True, free="anything")
    assert (owner.n, owner.steps, owner.share, owner.kind) == (7, 3, 0.0, "far")
    assert Owner() == Owner(2, "all", 0.5, None, "near", False)


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"n": 0}, ValueError, "n must be at least 1, got 0"),
        ({"n": None}, TypeError, "n must be a whole number"),
        ({"n": True}, TypeError, "n must be a whole number, got True"),
        ({"n": "2"}, TypeError, "n must be a whole number, got '2'"),
        ({"steps": "al"}, ValueError, "unknown steps 'al'; did you mean 'all'"),
        ({"steps": 0}, ValueError, "steps must be at least 1"),
        ({"tol": 0.0}, ValueError, "tol must be finite, above 0"),
        ({"tol": math.inf}, ValueError, "tol must be finite, above 0, got inf"),
        ({"tol": True}, TypeError, "tol must be a number, got True"),
        ({"share": 1.5}, ValueError, "share must be finite, at least 0, at most 1"),
        ({"kind": "fa"}, ValueError, "unknown kind 'fa'; did you mean 'far'"),
        ({"keep": 1}, TypeError, "keep must be True or False, got 1"),
        ({"step": 1}, TypeError, "unknown parameter of Owner 'step'; did you mean 'steps'"),
    ],
)
def test_what_it_may_not_be_is_refused_by_name(given, error, message):
    with pytest.raises(error, match=message):
        Owner(**given)


def test_declarations_are_listed_and_documented():
    n, steps, tol, share, kind, keep, free = declared(Owner)
    assert (n.name, n.kind, n.default, n.help) == ("n", "whole number", 2, "How many")
    assert (steps.choices, kind.choices) == (("all",), ("near", "far"))
    assert [one.kind for one in (tol, share, kind, keep, free)] == [
        "number",
        "number",
        "choice",
        "flag",
        "value",
    ]
    head, section = Owner.__doc__.split("Parameters\n----------\n")
    assert head == "Own things.\n\n"
    assert section.startswith(
        "n : whole number, default 2\n    How many.\ntol : number, default 0.5\n    How near.\n"
    )
    assert 'kind : "near" | "far", default \'near\'\n    Which side.\n\nExamples\n--------\n' in section


def test_functions_and_own_classes_are_declared_by_their_annotations():
    def grow(size: int = 5, how: Literal["fast", "slow"] = "fast", x=None):
        pass

    size, how, x = declared(grow)
    assert (size.name, size.default, how.choices, x.default) == ("size", 5, ("fast", "slow"), None)
    assert {p.name: p.kind for p in declared(bamdp.SparseDirichlet)}["beta"] == "number"
    generator = next(p for p in declared(bamdp.DSS) if p.name == "generator")
    assert (generator.kind, list(generator.parts)) == ("part", ["pi", "rtdp", "vi"])


def test_every_planner_names_the_parameter_that_was_meant():
    with pytest.raises(TypeError, match="unknown parameter of DSS 'n_step'; did you mean 'n_steps'"):
        bamdp.DSS(n_step=20)
    with pytest.raises(TypeError, match="did you mean 'beta'"):
        bamdp.SparseDirichlet(betas=2.0)
    with pytest.raises(TypeError, match=r"given by name, such as DSS\(n_policies=20\)"):
        bamdp.DSS(20)


class Bundle(NamedTuple):
    state: Annotated[np.ndarray, "int64 [H]"]
    value: Annotated[np.ndarray, "float64 [H, 3]"]
    seen: Annotated[np.ndarray, "bool [H, A]"]
    number: int


def test_a_bundle_is_made_of_zeros_in_the_shapes_that_it_declares():
    bundle = zeros(Bundle, H=4, A=2, number=5)
    shapes = [(np.int64, (4,)), (np.float64, (4, 3)), (np.bool_, (4, 2))]
    assert [(x.dtype, x.shape) for x in bundle[:3]] == shapes
    assert not any(x.any() for x in bundle[:3])
    assert bundle.number == 5
    own = np.full(7, 1.0)
    assert zeros(Bundle, H=4, A=2, number=5, value=own).value is own


def test_examples():
    assert doctest.testmod(_checks, optionflags=doctest.ELLIPSIS).failed == 0


def test_an_integer_beyond_64_bits_is_rejected():
    with pytest.raises(ValueError, match=r"n must be at least 1 and below 2\^63"):
        _checks.integer(2**63, "n")
    assert _checks.integer(np.int64(2**63 - 1), "n") == 2**63 - 1


@pytest.mark.parametrize("value", [10**400, -math.inf, math.nan, 1.01e100, np.float64(1e200)])
def test_a_real_number_whose_square_may_overflow_is_refused_in_a_short_message(value):
    with pytest.raises(ValueError, match="x must be") as caught:
        _checks.real(value, "x")
    assert len(str(caught.value)) < 200
    assert [_checks.real(x, "x") for x in (0, -1e100, 2**300)] == [0.0, -1e100, 2.0**300]


def test_the_memory_limit_is_what_the_variable_says_or_half_of_the_machine(monkeypatch):
    monkeypatch.setenv("BAMDP_MAX_MEMORY", "1.5")
    _checks.memory(1.5 * 2**30, "it")
    with pytest.raises(ValueError, match=r"it would need about .* GiB of memory, more than the"):
        _checks.memory(1.5 * 2**30 + 1, "it")
    for text in ("64G",):
        monkeypatch.setenv("BAMDP_MAX_MEMORY", text)
        with pytest.raises(ValueError, match="BAMDP_MAX_MEMORY must be a number of GiB"):
            _checks.memory(1, "it")
    monkeypatch.delenv("BAMDP_MAX_MEMORY")
    monkeypatch.setattr(_checks.os, "sysconf", {"SC_PHYS_PAGES": 1000, "SC_PAGE_SIZE": 4096}.__getitem__)
    assert _checks.memory_limit() == 1000 * 4096 / 2
