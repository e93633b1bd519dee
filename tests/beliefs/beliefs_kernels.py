"""Kernels for the tests of beliefs: drawing many times, and scripts of pushes and pops."""

import math

import numpy as np

from bamdp._kernels.jit import kernel
from bamdp._kernels.random import below, uniform
from bamdp.beliefs import verbs

POP = -1  # in a script: take back the last transition


@kernel
def draw_many(T, row, rng, out):
    """``out[s2]`` counts draws from the predictive of ``row``."""
    for _ in range(out[0]):
        out[1 + verbs.draw(T, row, rng)] += 1


@kernel
def advance_many(T, rows, rng, n, n_states, out):
    """``out[code]`` counts the outcomes of advancing along ``rows``, ``n`` times, each time taken back."""
    for _ in range(n):
        code = 0
        for i in range(rows.shape[0]):
            code = code * n_states + verbs.advance(T, rows[i], rng)
        for _ in range(rows.shape[0]):
            verbs.pop(T)
        out[code] += 1


@kernel
def sample_many(T, rows, rng, n, n_states, index, prob, out, mean):
    """Like :func:`advance_many`, from one sampled model each time; ``mean[s2]`` sums its row ``rows[0]``."""
    for _ in range(n):
        choice = verbs.choose(T, rng)
        code = 0
        for i in range(rows.shape[0]):
            same = i > 0 and rows[i] == rows[i - 1]  # rows are given sorted: each is drawn once a model
            if not same:
                end, background = verbs.sample_row(T, choice, rows[i], index, prob, 0, rng)
            if i == 0:
                for j in range(end):
                    mean[index[j]] += prob[j]
                for s2 in range(n_states):
                    mean[s2] += background / n_states
            code = code * n_states + _outcome(index, prob, end, n_states, rng)
        out[code] += 1


@kernel
def _outcome(index, prob, end, n_states, rng):
    x = uniform(rng)
    for j in range(end):
        x -= prob[j]
        if x < 0.0:
            return np.int64(index[j])
    return below(rng, n_states)


@kernel
def sample_block(T, row, rng, index, prob, low, high, out, left):
    """``out[i]`` is the mass of states low..high-1 in the i-th sampled row, ``left[i]`` its background."""
    for i in range(out.shape[0]):
        end, left[i] = verbs.sample_row(T, verbs.choose(T, rng), row, index, prob, 0, rng)
        total = 0.0
        for j in range(end):
            if low <= index[j] < high:
                total += prob[j]
        out[i] = total


@kernel
def sum_of_squares(T, row, rng, index, prob, out):
    """``out[i]`` is Σ p² of the i-th sampled row."""
    for i in range(out.shape[0]):
        end, _ = verbs.sample_row(T, 0, row, index, prob, 0, rng)
        out[i] = 0.0
        for j in range(end):
            out[i] += prob[j] * prob[j]


@kernel
def play(T, R, script, probs):
    """Pushes (row, s2, r) and pops as ``script`` says; ``probs[i]`` is what a push found likely.

    Impossible transitions are passed over, with -1 in ``probs``.
    """
    depth = 0
    for i in range(script.shape[0]):
        row, s2, r = script[i, 0], script[i, 1], np.float64(script[i, 2])
        probs[i] = -1.0
        if row == POP:
            if depth > 0:
                verbs.pop_reward(R)
                verbs.pop(T)
                depth -= 1
            continue
        p = verbs.probability(T, row, s2)
        if not p > 0.0:
            continue
        verbs.push(T, row, s2)
        q = math.exp(verbs.log_reward_probability(R, row, s2, r))
        if not q > 0.0:
            verbs.pop(T)
            continue
        verbs.push_reward(R, row, s2, r)
        probs[i] = p * q
        depth += 1
    return depth


@kernel
def unwind(T, R, depth):
    """Take back everything."""
    for _ in range(depth):
        verbs.pop_reward(R)
        verbs.pop(T)


@kernel
def moments(T, row, index, mean, variance):
    """Posterior means and variances of a row's probabilities, see ``verbs.moments_row``."""
    return verbs.moments_row(T, row, index, mean, variance, 0)


@kernel
def reward_outcomes(R, row, s2, out):
    """``out[i] = (reward, probability)`` for every outcome."""
    for i in range(out.shape[0]):
        out[i, 0], out[i, 1] = verbs.outcome(R, row, s2, i)


@kernel
def draw_rewards(R, row, s2, rng, out):
    for i in range(out.shape[0]):
        out[i] = verbs.draw_reward(R, row, s2, rng)


@kernel
def log_density(R, row, s2, r):
    return verbs.log_reward_probability(R, row, s2, r)


@kernel
def row_variance(T, R, row, index, prob):
    """The posterior variance of E[r | row] under the mean row."""
    end, background = verbs.mean_row(T, row, index, prob, 0)
    return verbs.reward_variance(R, row, index, prob, 0, end, background)


@kernel
def play_rewards(T, R, steps, rewards):
    """Push every (row, s2) with its reward."""
    for i in range(steps.shape[0]):
        verbs.push(T, steps[i, 0], steps[i, 1])
        verbs.push_reward(R, steps[i, 0], steps[i, 1], rewards[i])
