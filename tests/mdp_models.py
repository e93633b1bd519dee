"""Tiny models, written out, and random ones, for the tests of this folder."""

import numpy as np

from bamdp._kernels.rows import Rows, Space
from bamdp.mdp import FiniteMDP


def random_mdp(rng, n_states, n_actions, fill=1.0, **options):
    """Random rows with about ``fill`` of their entries nonzero; rewards [S, A]."""
    p = rng.dirichlet(np.ones(n_states), size=(n_states, n_actions))
    p *= rng.random(p.shape) < fill
    p[..., 0] += p.sum(axis=2) == 0.0
    p /= p.sum(axis=2, keepdims=True)
    return FiniteMDP(p, rng.normal(size=(n_states, n_actions)), **options)


def chain(by_effect=False):
    """The paper's chain, 5 states and 2 actions."""
    p = np.zeros((5, 2, 5))
    r = np.zeros((5, 2, 5))
    for s in range(5):
        onward = min(s + 1, 4)
        for a, forward in ((0, 0.2), (1, 0.8)):
            p[s, a, onward] += forward
            p[s, a, 0] += 1.0 - forward
            r[s, a, 0] = 0.2
        r[4, :, 4] = 1.0
    if by_effect:
        return FiniteMDP(p, r)
    reward = np.zeros((5, 2))
    reward[:, 0] = 0.2
    reward[4, 1] = 1.0
    return FiniteMDP(p, reward)


def double_loop():
    moves = [(1, 5), (2, 2), (3, 3), (4, 4), (0, 0), (0, 6), (0, 7), (0, 8), (0, 0)]
    p = np.zeros((9, 2, 9))
    for s, targets in enumerate(moves):
        for a, target in enumerate(targets):
            p[s, a, target] = 1.0
    return FiniteMDP(p, np.array([0, 0, 0, 0, 1, 0, 0, 0, 2.0]))


def grid(size):
    n = size * size
    p = np.zeros((n, 4, n))
    steps = [(0, 1), (1, 0), (0, -1), (-1, 0)]
    for s in range(n - 1):
        x, y = divmod(s, size)
        for a in range(4):
            for turn, chance in ((0, 0.8), (1, 0.1), (-1, 0.1)):
                dx, dy = steps[(a + turn) % 4]
                inside = 0 <= x + dx < size and 0 <= y + dy < size
                p[s, a, s + dx * size + dy if inside else s] += chance
    p[n - 1, :, 0] = 1.0
    reward = np.zeros(n)
    reward[n - 1] = 1.0
    return FiniteMDP(p, reward)


def with_background(rng, n_states, n_actions, entries=2, terminal=None, mask=None):
    """(a model with background mass, the same model written out densely)."""
    n = n_states * n_actions
    counts = rng.integers(0, entries + 1, size=n)
    ends = np.cumsum(counts)
    span = np.stack([ends - counts, ends], axis=1)
    background = np.where(counts == 0, 1.0, rng.random(n) * (rng.random(n) < 0.7))
    prob = np.concatenate(
        [[], *((1.0 - b) * rng.dirichlet(np.ones(c)) for b, c in zip(background, counts) if c)]
    )
    index = rng.integers(0, n_states, size=ends[-1]).astype(np.int32)
    ends_here = np.zeros(n_states, bool) if terminal is None else terminal
    allowed = np.ones((n_states, n_actions), bool) if mask is None else mask
    rows = Rows(span, index, prob, background, rng.normal(size=n))
    model = FiniteMDP.from_rows(rows, Space(ends_here, allowed))
    written = FiniteMDP(model.dense(), model.expected_rewards, terminal=ends_here, action_mask=allowed)
    return model, written


def exact_values(mdp, policy, discount):
    """V of a deterministic policy by dense linear algebra, independent of the package's solvers."""
    everyone = np.arange(mdp.n_states)
    p = mdp.dense()[everyone, policy]
    return np.linalg.solve(np.eye(mdp.n_states) - discount * p, mdp.expected_rewards[everyone, policy])


def oracle(mdp, discount):
    """(policy, values) by quantecon; terminal states become absorbing without reward."""
    from quantecon.markov import DiscreteDP

    p = mdp.dense()
    r = np.where(mdp.action_mask, mdp.expected_rewards, -np.inf)
    for s in np.flatnonzero(mdp.terminal):
        p[s] = 0.0
        p[s, :, s] = 1.0
        r[s] = 0.0
    blank = p.sum(axis=2) == 0.0
    p[blank, 0] = 1.0
    result = DiscreteDP(r, p, discount).solve(method="policy_iteration")
    return result.sigma, result.v
