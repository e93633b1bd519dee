"""Random streams that branch: each is one word, and what comes out of it has a stream of its own.

So a tree that is grown at random can be a function of its seed alone, in whatever order its parts are looked at.
"""

from __future__ import annotations

import numpy as np

from bamdp._kernels.jit import JIT, primitive

GOLDEN = 0x9E3779B97F4A7C15  # 2^64 divided by the golden ratio, odd

if JIT:

    @primitive
    def finalise(word):
        """Mix the bits of a 64-bit word (the finaliser of SplitMix64, Steele et al. 2014)."""
        word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return word ^ (word >> np.uint64(31))

    @primitive
    def plus(x, y):
        """Return x + y modulo 2^64."""
        return x + y

    @primitive
    def times(x, y):
        """Return x · y modulo 2^64."""
        return x * y

else:  # the same bits from Python integers, whose products do not overflow
    _WORD = (1 << 64) - 1

    def finalise(word):
        """Mix the bits of a 64-bit word (the finaliser of SplitMix64, Steele et al. 2014)."""
        word = int(word)
        word = ((word ^ (word >> 30)) * 0xBF58476D1CE4E5B9) & _WORD
        word = ((word ^ (word >> 27)) * 0x94D049BB133111EB) & _WORD
        return np.uint64(word ^ (word >> 31))

    def plus(x, y):
        """Return x + y modulo 2^64."""
        return np.uint64((int(x) + int(y)) & _WORD)

    def times(x, y):
        """Return x · y modulo 2^64."""
        return np.uint64((int(x) * int(y)) & _WORD)


@primitive
def mix(word):
    """Return a well mixed 64-bit word from another."""
    return finalise(plus(word, np.uint64(GOLDEN)))


@primitive
def branch(stream, number):
    """Return the stream of the number-th thing that comes out of another stream."""
    return mix(np.uint64(stream) ^ mix(np.uint64(number)))


@primitive
def open_stream(stream, rng):
    """Make ``rng`` the generator of a stream."""
    for i in range(4):
        stream = mix(stream)
        rng[i] = stream
