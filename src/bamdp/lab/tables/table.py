"""One form for every table; see :mod:`bamdp.lab.tables.render` for what becomes of it.

A cell is a text to be read and, behind it, the numbers at full precision, which a CSV file has in columns of their
own.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from bamdp.lab.statistics import Estimate

MISSING = "–"
ERROR, LOW, HIGH = "standard error", "low", "high"  # what CSV columns of a cell's further numbers are called


@dataclass(frozen=True)
class Cell:
    """What stands in one place."""

    text: str
    numbers: tuple[tuple[str, float], ...] = ()  # (what it is: "" for the value itself, number)
    bold: bool = False

    @property
    def value(self) -> float | None:
        """The number to sort by."""
        return self.numbers[0][1] if self.numbers else None


@dataclass(frozen=True)
class Table:
    """Rows under a header, with what a reader must know to read them."""

    name: str  # of its files
    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    align: str  # "l" or "r" for each column
    notes: tuple[str, ...] = ()
    rules: tuple[int, ...] = ()  # rows above which a line stands
    warning: str = ""  # what must be seen first, such as that these were quick runs

    def __post_init__(self) -> None:
        widths = {len(self.header), len(self.align), *(len(row) for row in self.rows)}
        if len(widths) != 1:
            raise ValueError(f"table {self.name!r} has rows, header or alignment of different widths")


def text(words: Any) -> Cell:
    """Words."""
    return Cell(str(words))


def number(value: float, words: str | None = None, bold: bool = False) -> Cell:
    """A number, written with three significant digits or as given."""
    if math.isnan(value):
        return Cell(MISSING)
    exact = int(value) if isinstance(value, int) else float(value)  # and no NumPy scalar
    return Cell(significant(value) if words is None else words, (("", exact),), bold)


def mean_error(mean: float, error: float, decimals: int, bold: bool = False, mark: str = "") -> Cell:
    """A mean ± standard error; of a single run the mean alone."""
    if math.isnan(mean):
        return Cell(MISSING)
    around = "" if math.isnan(error) else f" ± {error:.{decimals}f}"
    return Cell(f"{mean:.{decimals}f}{around}{mark}", (("", float(mean)), (ERROR, float(error))), bold)


def interval(estimate: Estimate, decimals: int) -> Cell:
    """Both ends of a 95% interval."""
    if math.isnan(estimate.low):
        return Cell(MISSING)
    words = f"{estimate.low:.{decimals}f} to {estimate.high:.{decimals}f}"
    return Cell(words, ((LOW, estimate.low), (HIGH, estimate.high)))


def value_interval(estimate: Estimate, decimals: int, bold: bool = False) -> Cell:
    """A value with its interval in brackets; without one, alone."""
    if math.isnan(estimate.value):
        return Cell(MISSING)
    ends = interval(estimate, decimals)
    around = f" [{ends.text}]" if ends.numbers else ""
    numbers = (("", estimate.value), (LOW, estimate.low), (HIGH, estimate.high))
    return Cell(f"{estimate.value:.{decimals}f}{around}", numbers, bold)


def significant(value: float, digits: int = 3) -> str:
    """A number with so many significant digits, never with an exponent.

    Examples
    --------
    >>> significant(1312.4), significant(0.012345), significant(7.0)
    ('1312', '0.0123', '7.00')
    """
    if value == 0.0:
        return "0"
    return f"{value:.{max(0, digits - 1 - math.floor(math.log10(abs(value))))}f}"


def decimals_of(words: str) -> int:
    """How many decimals a number was written with."""
    return len(words.partition(".")[2])


def decimals(errors: Iterable[float]) -> int:
    """Decimals that show two digits of the middle one of these standard errors, at most four; two without any.

    Examples
    --------
    >>> decimals([0.5, 4.7, 21.0]), decimals([0.0034]), decimals([])
    (1, 4, 2)
    """
    known = sorted(error for error in errors if error > 0.0)
    if not known:
        return 2
    return min(4, max(0, 1 - math.floor(math.log10(known[len(known) // 2]))))


def p_value(p: float) -> Cell:
    """A probability; the smallest are not spelt out."""
    if math.isnan(p):
        return Cell(MISSING)
    return number(p, "< 0.001" if p < 0.001 else f"{p:.3f}")


def settings(configuration: Mapping[str, Any]) -> str:
    """Parameters as they are written on the command line.

    Examples
    --------
    >>> settings({"n_steps": 25, "prior.beta": 6.0})
    'n_steps=25, prior.beta=6'
    """
    return ", ".join(f"{key}={_plain(value)}" for key, value in configuration.items()) or MISSING


def _plain(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
