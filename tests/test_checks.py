"""Checks of values: what does not fit into 64 bits, into a float, or into memory."""

from __future__ import annotations

import doctest
import math

import numpy as np
import pytest

from bamdp import _checks


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
