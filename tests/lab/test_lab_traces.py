"""Traces in few bytes, exactly."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from bamdp.lab.units import decode_trace, encode_trace


def bits(rewards):
    return np.asarray(rewards, float).view(np.uint64)


@given(hnp.arrays(np.float64, st.integers(0, 60), elements=st.floats(width=64)))
def test_every_trace_comes_back_to_the_bit(rewards):
    assert np.array_equal(bits(decode_trace(encode_trace(rewards)).rewards), bits(rewards))


@given(
    hnp.arrays(np.float64, 30, elements=st.floats(width=64)),
    st.dictionaries(st.integers(0, 29), st.booleans(), max_size=20),
)
def test_episodes_come_back_beside_the_rewards(rewards, episodes):
    ends = sorted(episodes)
    trace = encode_trace(rewards, ends, [episodes[t] for t in ends])
    assert np.array_equal(bits(decode_trace(trace).rewards), bits(rewards))
    run = decode_trace(trace)
    assert dict(zip(run.ends.tolist(), run.terminated[run.ends].tolist())) == episodes
    assert (trace == encode_trace(rewards)) is not bool(
        episodes
    )  # worlds without episodes have their old bytes


@pytest.mark.parametrize("n_values", [1, 2, 255, 256, 257, 65536, 65537])
def test_any_number_of_distinct_values_comes_back(n_values):
    rewards = np.random.default_rng(0).integers(0, n_values, 200_000) / 7.0
    rewards[:n_values] = np.arange(n_values) / 7.0
    assert np.array_equal(bits(decode_trace(encode_trace(rewards)).rewards), bits(rewards))


def test_signs_of_zero_and_nan_are_kept():
    rewards = np.array([0.0, -0.0, np.nan, np.inf, -np.inf, 5e-324] * 3)
    assert np.array_equal(bits(decode_trace(encode_trace(rewards)).rewards), bits(rewards))


def test_a_trace_of_few_values_is_small():
    rewards = np.random.default_rng(0).choice([0.0, 0.2, 1.0], 1000, p=[0.5, 0.2, 0.3])
    assert len(encode_trace(rewards)) < 400  # 8000 bytes of float64; the entropy is 185


def test_what_comes_back_may_be_written_to():
    for rewards in (np.zeros(10), np.random.default_rng(0).normal(size=10)):
        decode_trace(encode_trace(rewards)).rewards[0] = 1.0
