"""Checks of values: what does not fit into 64 bits, into a float, or into memory."""

from __future__ import annotations

import math

import numpy as np
import pytest

from bamdp import _checks


@pytest.mark.parametrize("value", [2**63, 10**20, 10**400, 10**5000], ids=lambda n: f"{n.bit_length()}bits")
def test_an_integer_beyond_64_bits_is_refused_in_a_short_message(value):
    with pytest.raises(ValueError, match=r"n must be below 2\^63") as caught:
        _checks.integer(value, "n")
    assert len(str(caught.value)) < 200


def test_the_largest_integer_of_64_bits_is_accepted():
    assert _checks.integer(2**63 - 1, "n") == 2**63 - 1
    assert _checks.integer(np.int64(2**63 - 1), "n") == 2**63 - 1


@pytest.mark.parametrize(
    "value",
    [10**400, -(10**400), math.inf, -math.inf, math.nan, 1.01e100, -1e308, np.float64(1e200)],
)
def test_a_real_number_whose_square_may_overflow_is_refused_in_a_short_message(value):
    with pytest.raises(ValueError, match="x must be") as caught:
        _checks.real(value, "x")
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize("value", [0, 1e100, -1e100, 5e-324, 2**300])
def test_other_real_numbers_are_accepted(value):
    assert _checks.real(value, "x") == value


@pytest.mark.parametrize(
    ("text", "limit"),
    [("1000", 1000), ("2K", 2048), ("1.5g", 1.5 * 2**30), ("3 GiB", 3 * 2**30), ("1TB", 2**40)],
)
def test_the_memory_limit_is_what_the_variable_says(text, limit, monkeypatch):
    monkeypatch.setenv("BAMDP_MAX_MEMORY", text)
    assert _checks.memory_limit() == limit
    _checks.memory(limit, "it")
    with pytest.raises(ValueError, match=r"it would need about .* GiB of memory"):
        _checks.memory(limit + 1, "it")


@pytest.mark.parametrize("text", ["x", "-1", "0", "1e400", "nan", "9" * 5000, "G", "1P"])
def test_a_memory_limit_that_is_none_is_refused(text, monkeypatch):
    monkeypatch.setenv("BAMDP_MAX_MEMORY", text)
    with pytest.raises(ValueError, match="BAMDP_MAX_MEMORY must be a number of bytes"):
        _checks.memory(1, "it")


def test_without_the_variable_the_limit_is_a_share_of_the_machine(monkeypatch):
    monkeypatch.delenv("BAMDP_MAX_MEMORY", raising=False)
    pages = {"SC_PHYS_PAGES": 1000, "SC_PAGE_SIZE": 4096}
    monkeypatch.setattr(_checks.os, "sysconf", pages.__getitem__)
    assert _checks.memory_limit() == 1000 * 4096 / 2
