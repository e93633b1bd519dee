"""Checks of values from users: each returns the value in its proper type, or says what is wrong and what to do."""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable
from typing import Any

import numpy as np


def discount(value: Any) -> float:
    """Check a discount, a number in [0, 1)."""
    number = real(value, "discount")
    if not 0.0 <= number < 1.0:
        raise ValueError(
            f"discount must be in [0, 1), got {number}; for long horizons use a value close to 1, such as 0.999"
        )
    return number


def real(
    value: Any, name: str, *, low: float = -math.inf, high: float = math.inf, open_low: bool = False
) -> float:
    """Check a finite real number in [low, high] ((low, high] with ``open_low``)."""
    if isinstance(value, bool) or not isinstance(value, (int, float, np.integer, np.floating)):
        raise TypeError(f"{name} must be a number, got {value!r}")
    number = float(value)
    if not math.isfinite(number) or number < low or number > high or (open_low and number == low):
        bounds = "finite"
        if low > -math.inf:
            bounds += f", {'above' if open_low else 'at least'} {low:g}"
        if high < math.inf:
            bounds += f", at most {high:g}"
        raise ValueError(f"{name} must be {bounds}, got {value}")
    return number


def integer(value: Any, name: str, *, low: int = 1, high: int | None = None) -> int:
    """Check a whole number in [low, high]."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise TypeError(f"{name} must be a whole number, got {value!r}")
    number = int(value)
    if number < low or (high is not None and number > high):
        upper = "" if high is None else f" and at most {high}"
        raise ValueError(f"{name} must be at least {low}{upper}, got {number}")
    return number


def numbers(values: Any, name: str) -> np.ndarray:
    """Check an array of numbers, and return a copy with floats."""
    try:
        array = np.asarray(values)
    except ValueError:  # rows of several lengths
        array = np.array("")
    if array.dtype.kind not in "biuf":
        raise TypeError(
            f"{name} must be an array of numbers with rows of one length, got {repr(values)[:80]}"
        )
    return array.astype(float)


def one_of(value: Any, name: str, choices: Iterable[str]) -> str:
    """Check a name among ``choices``; the nearest one is suggested when it is misspelt."""
    known = list(choices)
    if value not in known:
        near = difflib.get_close_matches(str(value), known, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise ValueError(f"unknown {name} {value!r}{hint} (known: {', '.join(known)})")
    return str(value)


def index(value: Any, name: str, size: int) -> int:
    """Check the number of a state or action, in 0..size-1."""
    if type(value) is int and 0 <= value < size:  # as in every step of a run
        return value
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise TypeError(f"{name} must be a whole number, got {value!r}")
    if not 0 <= value < size:
        raise ValueError(f"{name} must be in 0..{size - 1}, got {value}")
    return int(value)


def weights(values: Any, size: int) -> tuple[float, ...]:
    """Check ``size`` non-negative numbers, not all zero, and scale them to sum to one; None for equal ones."""
    if values is None:
        return (1.0 / size,) * size
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise TypeError(f"weights must be a list of {size} numbers, got {values!r}")
    numbers = [real(value, "every weight", low=0.0) for value in values]
    if len(numbers) != size:
        raise ValueError(f"there must be one weight for each of the {size} members, got {len(numbers)}")
    total = sum(numbers)
    if total <= 0.0:
        raise ValueError("at least one weight must be positive")
    if math.isclose(total, 1.0, rel_tol=1e-12):  # scaled already: leave them as they are, to the bit
        return tuple(numbers)
    return tuple(number / total for number in numbers)


def error_line(error: BaseException) -> str:
    """Return the message of an error in one line; the operating system's errors begin with the file's name."""
    if isinstance(error, OSError) and error.filename is not None and error.strerror:
        return f"{error.filename}: {error.strerror}"
    return " ".join(str(error).split()) or type(error).__name__
