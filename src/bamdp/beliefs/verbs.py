"""What every belief can do inside a kernel: short verbs, each chosen by the NamedTuple class of a posterior.

``T`` is a posterior over transitions, ``R`` one over rewards, both NamedTuples of arrays (the fields ``transitions``
and ``rewards`` of :class:`~bamdp.beliefs.arrays.BeliefArrays`); ``row`` is ``s * A + a``. Simulated transitions are
pushed and popped in last-in-first-out order, so a belief on a branch of a planning tree is never cloned. The caller
makes the undo logs long enough for the deepest branch before it enters a kernel (``Belief.reserve``).

Rows need not be independent: ``choose`` first draws whatever all rows of one sampled model share (which model
of a finite set, which component of a mixture), and ``sample_row`` then draws a row given that choice. Rows
can therefore be drawn lazily, only where a planner looks.

What follows from other verbs is defined for all posteriors that do not say otherwise (registered for ``object``). A
posterior of one's own over transitions needs four: :func:`push`, :func:`pop`, :func:`probability` and
:func:`sample_row`, with the fields ``n_states``, and ``log`` and ``top`` if it keeps an undo log (``top[0]`` is its
length). It is faster with :func:`draw` and :func:`mean_row`; some planners need :func:`moments_row` or
:func:`concentration`.
"""

from __future__ import annotations

import math

from bamdp._kernels.jit import generic
from bamdp._kernels.random import uniform


@generic
def draw(T, row, rng):
    """Draw a next state from the predictive ν(· | row)."""


@draw.register(object)
def _draw_by_probabilities(T, row, rng):
    u = uniform(rng)
    likely = 0
    for s2 in range(T.n_states):
        p = probability(T, row, s2)
        if p > 0.0:
            likely = s2
            u -= p
            if u < 0.0:
                break
    return likely


@generic
def advance(T, row, rng):
    """Draw a next state from the predictive, and push it as if it had been observed."""


@advance.register(object)
def _draw_and_push(T, row, rng):
    s2 = draw(T, row, rng)
    push(T, row, s2)
    return s2


@generic
def push(T, row, s2):
    """Add the simulated transition ``row`` → ``s2``."""


@generic
def pop(T):
    """Take back the last pushed transition."""


@generic
def probability(T, row, s2):
    """Return the predictive probability ν(s2 | row)."""


@generic
def log_probability(T, row, s2):
    """log ν(s2 | row): finite also where the probability itself underflows, -inf only for the impossible."""


@log_probability.register(object)
def _log_of_probability(T, row, s2):
    p = probability(T, row, s2)
    return math.log(p) if p > 0.0 else -math.inf


@generic
def choose(T, rng):
    """Draw what the rows of one sampled model share; 0 where rows are independent."""


@choose.register(object)
def _choose_nothing(T, rng):
    return 0


@generic
def sample_row(T, choice, row, index, prob, at, rng):
    """Draw a row from the posterior into ``index[at:end], prob[at:end]``; returns (end, background mass)."""


@generic
def most_entries(T, n_states):
    """Return how many entries a row takes at most while it is written: callers leave space for as many."""


@most_entries.register(object)
def _one_of_each_state(T, n_states):
    return n_states + 1


@generic
def mean_row(T, row, index, prob, at):
    """Write the posterior mean of a row (its predictive), and return the same as :func:`sample_row`."""


@mean_row.register(object)
def _all_probabilities(T, row, index, prob, at):
    for s2 in range(T.n_states):
        index[at + s2] = s2
        prob[at + s2] = probability(T, row, s2)
    return at + T.n_states, 0.0


@generic
def moments_row(T, row, index, mean, variance, at):
    """Write the posterior mean and variance of each of a row's probabilities.

    Those of some outcomes are written to ``index``, ``mean`` and ``variance`` at ``at:end``; returns (end, mean,
    variance) with the two numbers that all other outcomes share.
    """


@generic
def concentration(T, row):
    """n₀ + n: the prior count of a row plus what was observed. The harmonic mean where a row is a mixture.

    Only for posteriors that declare ``counts_transitions``: there is none for a finite set of models.
    """


@generic
def commit(T, row):
    """Make what was pushed on ``row`` final: it was really observed."""


@commit.register(object)
def _clear_log(T, row):
    T.top[0] = 0


@generic
def draw_reward(R, row, s2, rng):
    """Draw a reward from τ(· | row, s2), given that the transition itself has been pushed already."""


@generic
def draw_model_reward(R, choice, row, s2, rng):
    """Draw a reward after ``row`` → ``s2`` in a sampled model with that ``choice``.

    Where the choice says nothing about rewards it is :func:`draw_reward`.
    """


@draw_model_reward.register(object)
def _predictive_reward(R, choice, row, s2, rng):
    return draw_reward(R, row, s2, rng)


@generic
def push_reward(R, row, s2, r):
    """Add the simulated reward."""


@generic
def pop_reward(R):
    """Take back the last pushed reward."""


@generic
def sample_reward(R, choice, row, index, prob, begin, end, background, rng):
    """E[r | row] in a sampled model whose transition row stands at ``begin:end`` (plus background)."""


@generic
def expected_reward(R, row, index, prob, begin, end, background):
    """E[r | row] under the belief, with the mean transition row at ``begin:end`` (plus background)."""


@generic
def reward_variance(R, row, index, prob, begin, end, background):
    """Return the posterior variance of E[r | row], as far as the reward model itself is open: 0 for known rewards.

    The mean transition row stands at ``begin:end`` (plus background), as for :func:`expected_reward`.
    """


@generic
def reward_probability(R, row, s2, r):
    """Return the probability (or density) of reward ``r`` after ``row`` → ``s2``, which has been pushed already."""


@generic
def log_reward_probability(R, row, s2, r):
    """Return the logarithm of :func:`reward_probability`, -inf only for the impossible."""


@log_reward_probability.register(object)
def _log_of_reward_probability(R, row, s2, r):
    p = reward_probability(R, row, s2, r)
    return math.log(p) if p > 0.0 else -math.inf


@generic
def commit_reward(R, row):
    """Make pushed rewards final."""


@generic
def outcome(R, row, s2, i):
    """Return (reward, probability) of the i-th outcome after ``row`` → ``s2``, which has been pushed already.

    Only for posteriors that declare ``n_outcomes``.
    """
