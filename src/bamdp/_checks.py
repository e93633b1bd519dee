"""Validation of user input: each check returns the converted value or raises an error that explains the fix."""

from __future__ import annotations

import difflib
import math
import os
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

LARGEST_INTEGER = 2**63 - 1  # compiled code uses 64-bit integers
LARGEST_REAL = 1e100  # in magnitude; keeps squares and their sums over many steps finite
MAX_MEMORY_VARIABLE = "BAMDP_MAX_MEMORY"
MEMORY_SHARE = 0.5  # default limit per request, as a fraction of the machine's memory
GIBIBYTE = 2**30
LONGEST_SHOWN = 80  # maximum number of characters of a value in a message


def discount(value: Any) -> float:
    """Check a discount, a number in [0, 1)."""
    number = real(value, "discount")
    if not 0.0 <= number < 1.0:
        raise ValueError(
            f"discount must be in [0, 1), got {number}; for long horizons use a value close to 1, such as 0.999"
        )
    return number


HORIZON = "horizon"  # instead of a discount: maximise the total over the remaining steps
AUTO = "auto"  # the same, with the planning horizon limited by the amount of data


def planning_discount(value: Any) -> float | str:
    """Check a planning objective: a discount, or ``"horizon"`` or ``"auto"`` for the remaining steps."""
    if isinstance(value, str) and value not in (HORIZON, AUTO):
        raise TypeError(f"discount must be a number in [0, 1), 'horizon' or 'auto', got {shown(value)}")
    return value if isinstance(value, str) else discount(value)


def real(
    value: Any, name: str, *, low: float = -math.inf, high: float = math.inf, open_low: bool = False
) -> float:
    """Check a finite real number in [low, high] ((low, high] with ``open_low``) of magnitude below 1e100."""
    if isinstance(value, bool) or not isinstance(value, (int, float, np.integer, np.floating)):
        raise TypeError(f"{name} must be a number, got {shown(value)}")
    size = abs(value if isinstance(value, int) else float(value))  # integers may exceed all floats
    number = float(value) if size <= LARGEST_REAL else math.inf
    if not math.isfinite(number) or number < low or number > high or (open_low and number == low):
        words = ["finite"]
        if low > -math.inf:
            words.append(f"{'above' if open_low else 'at least'} {low:g}")
        if high < math.inf or LARGEST_REAL < size < math.inf:
            words.append(f"at most {min(high, LARGEST_REAL):g}")
        raise ValueError(f"{name} must be {', '.join(words)}, got {shown(value, str)}")
    return number


def integer(value: Any, name: str, *, low: int = 1, high: int | None = None) -> int:
    """Check an integer in [low, high]; ``high=None`` allows up to the largest 64-bit integer."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise TypeError(f"{name} must be a whole number, got {shown(value)}")
    if not low <= value <= (LARGEST_INTEGER if high is None else high):
        upper = f" and at most {high}" if high is not None else " and below 2^63" if value > low else ""
        raise ValueError(f"{name} must be at least {low}{upper}, got {shown(value, str)}")
    return int(value)


def numbers(values: Any, name: str) -> np.ndarray:
    """Check an array of numbers and return a float copy."""
    try:
        array = np.asarray(values)
    except ValueError:  # rows of different lengths
        array = np.array("")
    if array.dtype.kind not in "biuf":
        raise TypeError(
            f"{name} must be an array of real numbers with rows of one length, got {repr(values)[:80]}"
        )
    memory(8.0 * array.size, f"a copy of {name} of shape {list(array.shape)}")
    return array.astype(float)


def one_of(value: Any, name: str, choices: Iterable[str]) -> str:
    """Check that a name is among ``choices``; the error for a misspelt name suggests the closest one."""
    known = list(choices)
    if value not in known:
        text = shown(value, str)
        # also suggest "dss-pi" for "dss"
        longer = [name for name in known if len(text) > 1 and name.startswith(text)]
        near = longer or difflib.get_close_matches(text, known, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise ValueError(f"unknown {name} {shown(value)}{hint} (known: {', '.join(known)})")
    return str(value)


def parameter(key: str, owner: str, known: Iterable[str], error: type[Exception] = ValueError) -> None:
    """Check that ``key`` is among the ``known`` parameters of ``owner``."""
    try:
        if not known:
            raise ValueError(f"{owner} takes no parameters, got {key!r}")
        one_of(key, f"parameter of {owner}", known)
    except ValueError as unknown:
        raise error(str(unknown)) from None


def index(value: Any, name: str, size: int) -> int:
    """Check the index of a state or action, in 0..size-1."""
    if type(value) is int and 0 <= value < size:  # fast path, taken at every step of a run
        return value
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise TypeError(f"{name} must be a whole number, got {shown(value)}")
    if not 0 <= value < size:
        raise ValueError(f"{name} must be in 0..{size - 1}, got {shown(value, str)}")
    return int(value)


def weights(values: Any, size: int) -> tuple[float, ...]:
    """Check ``size`` non-negative weights, not all zero, and normalise them; None stands for equal weights."""
    if values is None:
        return (1.0 / size,) * size
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise TypeError(f"weights must be a list of {size} numbers, got {shown(values)}")
    numbers = [real(value, "every weight", low=0.0) for value in values]
    if len(numbers) != size:
        raise ValueError(f"there must be one weight for each of the {size} members, got {len(numbers)}")
    total = sum(numbers)
    if total <= 0.0:
        raise ValueError("at least one weight must be positive")
    exact = math.isclose(total, 1.0, rel_tol=1e-12)  # already normalised: keep them bit for bit
    return tuple(numbers) if exact else tuple(number / total for number in numbers)


def memory(n_bytes: float, what: str) -> None:
    """Raise an error if a request would exceed the memory limit; call this before allocating.

    The limit is BAMDP_MAX_MEMORY (in GiB) if set, otherwise half of the machine's memory.

    Examples
    --------
    >>> memory(1e15, "a table of 10^7 by 10^7 states")
    Traceback (most recent call last):
    ...
    ValueError: a table of 10^7 by 10^7 states would need about 9.3e+05 GiB of memory, more than the limit of ...
    """
    limit = memory_limit()
    if n_bytes > limit:
        raise ValueError(
            f"{what} would need about {n_bytes / GIBIBYTE:.2g} GiB of memory, more than the limit of "
            f"{limit / GIBIBYTE:.2g} GiB; reduce the size, or set {MAX_MEMORY_VARIABLE} to a larger number of GiB"
        )


def memory_limit() -> float:
    """Return the memory limit of one request in bytes; infinite if it cannot be determined."""
    text = os.environ.get(MAX_MEMORY_VARIABLE)
    if text:
        try:
            return GIBIBYTE * float(text)
        except ValueError:
            raise ValueError(f"{MAX_MEMORY_VARIABLE} must be a number of GiB, got {text!r}") from None
    if not hasattr(os, "sysconf"):  # Windows
        return math.inf
    return MEMORY_SHARE * os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def shown(value: Any, write: Callable[[Any], str] = repr) -> str:
    """Return the text of a value for use in a message, truncated if it is long."""
    text = write(value)
    return text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}..."


def error_line(error: BaseException) -> str:
    """Return the message of an error on one line; operating system errors start with the file name."""
    if isinstance(error, OSError) and error.filename is not None and error.strerror:
        return f"{error.filename}: {error.strerror}"
    return " ".join(str(error).split()) or type(error).__name__
