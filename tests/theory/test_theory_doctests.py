"""The examples in the docstrings."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import bamdp.theory

MODULES = sorted(f"bamdp.theory.{info.name}" for info in pkgutil.iter_modules(bamdp.theory.__path__))


@pytest.mark.parametrize("name", MODULES)
def test_examples_are_true(name):
    assert doctest.testmod(importlib.import_module(name)).failed == 0
