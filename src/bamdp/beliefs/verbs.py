"""Operations of a posterior inside kernels, each called a *verb* and dispatched on the NamedTuple class.

A posterior implements a verb as a method of the same name, registered by the decorators that declare it
(:func:`~bamdp.beliefs.base.transition_posterior`, :func:`~bamdp.beliefs.base.reward_posterior`). Kernels call the verb:
``verbs.push(T, row, s2)``.

``T`` is a posterior over transitions and ``R`` one over rewards, both NamedTuples of arrays (the fields ``transitions``
and ``rewards`` of :class:`~bamdp.beliefs.base.BeliefArrays`); ``row`` is ``s * A + a``. Simulated transitions are
pushed and popped in last-in-first-out order, so a planner never clones the belief on a branch of its tree. Before
entering a kernel, the caller makes the undo logs long enough for the deepest branch (``Belief.reserve``).

Rows need not be independent: ``choose`` first draws what all rows of a sampled model share (the model of a finite set,
the component of a mixture), and ``sample_row`` then draws a row given that choice. Planners can therefore draw rows
lazily, only where they need them.

Defaults that follow from other verbs are registered for ``object``. A custom posterior over transitions needs four
verbs: :func:`push`, :func:`pop`, :func:`probability` and :func:`sample_row`. It needs the field ``n_states``, and
``log`` and ``top`` if it keeps an undo log (``top[0]`` is its length). Defining :func:`draw` and :func:`mean_row` as
well makes it faster; some planners need :func:`moments_row` or :func:`concentration`.
"""

from __future__ import annotations

import math

from bamdp._kernels.jit import generic
from bamdp._kernels.random import uniform


@generic
def draw(T, row, rng):
    """Draw a next state from the predictive distribution ν(· | row)."""


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
    """Draw a next state from the predictive distribution, and push it as if it had been observed."""


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
    """Undo the last pushed transition."""


@generic
def probability(T, row, s2):
    """Return the predictive probability ν(s2 | row)."""


@generic
def log_probability(T, row, s2):
    """Return log ν(s2 | row), finite even if the probability underflows; -inf only if the transition is impossible."""


@log_probability.register(object)
def _log_of_probability(T, row, s2):
    p = probability(T, row, s2)
    return math.log(p) if p > 0.0 else -math.inf


@generic
def choose(T, rng):
    """Draw what the rows of a sampled model share; return 0 if rows are independent."""


@choose.register(object)
def _choose_nothing(T, rng):
    return 0


@generic
def sample_row(T, choice, row, index, prob, at, rng):
    """Draw a row from the posterior into ``index[at:end]`` and ``prob[at:end]``; return (end, background mass)."""


@generic
def most_entries(T, n_states):
    """Return the largest number of entries that a row occupies while being written; callers leave space for them."""


@most_entries.register(object)
def _one_of_each_state(T, n_states):
    return n_states + 1


@generic
def mean_row(T, row, index, prob, at):
    """Write the posterior mean of a row, its predictive distribution; return (end, background mass)."""


@mean_row.register(object)
def _all_probabilities(T, row, index, prob, at):
    for s2 in range(T.n_states):
        index[at + s2] = s2
        prob[at + s2] = probability(T, row, s2)
    return at + T.n_states, 0.0


@generic
def moments_row(T, row, index, mean, variance, at):
    """Write the posterior mean and variance of each of a row's probabilities.

    Listed outcomes are written to ``index``, ``mean`` and ``variance`` at ``at:end``. The return value is (end, mean,
    variance), where the mean and variance apply to every other outcome.
    """


@generic
def concentration(T, row):
    """Return n₀ + n, the prior count of a row plus its observations; for a mixture, the harmonic mean.

    Only posteriors that declare ``counts_transitions`` define it; a finite set of models has no such number.
    """


@generic
def commit(T, row):
    """Make the transitions pushed on ``row`` final: they were really observed."""


@commit.register(object)
def _clear_log(T, row):
    T.top[0] = 0


@generic
def draw_reward(R, row, s2, rng):
    """Draw a reward from τ(· | row, s2), after the transition itself has been pushed."""


@generic
def draw_model_reward(R, choice, row, s2, rng):
    """Draw a reward after ``row`` → ``s2`` in a sampled model with the given ``choice``.

    If the choice does not affect rewards, this is :func:`draw_reward`.
    """


@draw_model_reward.register(object)
def _predictive_reward(R, choice, row, s2, rng):
    return draw_reward(R, row, s2, rng)


@generic
def push_reward(R, row, s2, r):
    """Add the simulated reward ``r`` after ``row`` → ``s2``."""


@generic
def pop_reward(R):
    """Undo the last pushed reward."""


@generic
def sample_reward(R, choice, row, index, prob, begin, end, background, rng):
    """Return E[r | row] in a sampled model whose transition row is at ``begin:end`` (plus background)."""


@generic
def expected_reward(R, row, index, prob, begin, end, background):
    """Return E[r | row] under the belief, given the mean transition row at ``begin:end`` (plus background)."""


@generic
def reward_variance(R, row, index, prob, begin, end, background):
    """Return the posterior variance of E[r | row] due to the reward model alone: 0 for known rewards.

    The mean transition row is at ``begin:end`` (plus background), as for :func:`expected_reward`.
    """


@generic
def log_reward_probability(R, row, s2, r):
    """Return the log probability (or density) of reward ``r`` after ``row`` → ``s2``, which has already been pushed.

    It is -inf only if the reward is impossible.
    """


@generic
def commit_reward(R, row):
    """Make pushed rewards final: they were really observed."""


@generic
def outcome(R, row, s2, i):
    """Return (reward, probability) of the i-th outcome after ``row`` → ``s2``, which has already been pushed.

    Only posteriors that declare ``n_outcomes`` define it.
    """
