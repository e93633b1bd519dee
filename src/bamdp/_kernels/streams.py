"""Branching random streams, each represented by one 64-bit word.

Each child of a node has its own stream, so that a random tree depends only on its seed and not on the order in which
its nodes are visited.
"""

from __future__ import annotations

import numpy as np

from bamdp._kernels.jit import primitive, wrapping

GOLDEN = 0x9E3779B97F4A7C15  # 2^64 divided by the golden ratio, odd


@wrapping
def finalise(word):
    """Mix the bits of a 64-bit word (the finaliser of SplitMix64, Steele et al. 2014)."""
    word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return word ^ (word >> np.uint64(31))


@wrapping
def plus(x, y):
    """Return x + y modulo 2^64."""
    return x + y


@wrapping
def times(x, y):
    """Return x · y modulo 2^64."""
    return x * y


@primitive
def mix(word):
    """Return a hash of a 64-bit word."""
    return finalise(plus(word, np.uint64(GOLDEN)))


@primitive
def branch(stream, number):
    """Return the child stream with the given number."""
    return mix(np.uint64(stream) ^ mix(np.uint64(number)))


@primitive
def open_stream(stream, rng):
    """Seed ``rng`` from a stream."""
    for i in range(4):
        stream = mix(stream)
        rng[i] = stream
