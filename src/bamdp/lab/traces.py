"""Rewards of a run, step by step, in few bytes and exactly.

Most environments pay one of a handful of values, so a trace is a list of the distinct ones, to the bit, and for
each step the number of its value, all of it compressed: about a byte for every 10 to 50 steps. Where nearly every
reward is another, the numbers themselves are compressed.

Format: zlib of one byte (bytes of a number of a value; 0: raw), the number of distinct values as uint32, the values
as float64, the numbers of the values; little-endian.
"""

from __future__ import annotations

import struct
import zlib

import numpy as np
from numpy.typing import ArrayLike, NDArray

RAW = 0
HEAD = struct.Struct("<BI")
WIDTHS = (1, 2, 4)


def encode(rewards: ArrayLike) -> bytes:
    """Rewards [T] as bytes.

    Examples
    --------
    >>> len(encode(np.zeros(20_000))) < 100
    True
    >>> decode(encode([0.0, 0.2, 1.0, 0.2]))
    array([0. , 0.2, 1. , 0.2])
    """
    array = np.ascontiguousarray(rewards, "<f8")
    values, numbers = np.unique(array.view("<u8"), return_inverse=True)  # by their bits: -0.0 and NaN, too
    width = next(width for width in WIDTHS if len(values) <= 256**width)
    if 8 * len(values) + width * len(array) >= 8 * len(array):
        return zlib.compress(HEAD.pack(RAW, 0) + array.tobytes())
    coded = numbers.astype(f"<u{width}").tobytes()
    return zlib.compress(HEAD.pack(width, len(values)) + values.astype("<u8").tobytes() + coded)


def decode(data: bytes) -> NDArray[np.float64]:
    """The rewards [T] that :func:`encode` was given."""
    plain = zlib.decompress(data)
    width, n_values = HEAD.unpack_from(plain)
    if width == RAW:
        return np.frombuffer(plain, "<f8", offset=HEAD.size).astype(float)
    values = np.frombuffer(plain, "<f8", count=n_values, offset=HEAD.size)
    numbers = np.frombuffer(plain, f"<u{width}", offset=HEAD.size + 8 * n_values)
    return values[numbers].astype(float)
