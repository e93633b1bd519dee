"""Models as full arrays and value iteration on them, in NumPy alone: oracles for the planners that solve one."""

import numpy as np

import bamdp


def models(S, A, n, seed=0, rewards=None):
    """Random models, of the same rewards if those are given."""
    rng = np.random.default_rng(seed)
    out = []
    for _ in range(n):
        P = rng.dirichlet(np.full(S, 0.3), size=(S, A))
        out.append(bamdp.FiniteMDP(P, rng.random((S, A)) if rewards is None else rewards))
    return out


def full_alpha(S, A, seed=0):
    """Prior counts with impossible outcomes."""
    rng = np.random.default_rng(seed)
    alpha = rng.uniform(0.1, 2.0, size=(S, A, S)) * (rng.random((S, A, S)) < 0.6)
    alpha[:, :, 0] += 0.2
    return alpha


def priors(S, A):
    """One of each kind."""
    return {
        "dirichlet": bamdp.Dirichlet(alpha=0.3),
        "rows": bamdp.Dirichlet(alpha=np.random.default_rng(1).uniform(0.1, 1.0, size=(S, A))),
        "full": bamdp.Dirichlet(alpha=full_alpha(S, A)),
        "sparse": bamdp.SparseDirichlet(alpha=0.2, beta=2.0),
        "mixture": bamdp.Mixture([bamdp.Dirichlet(alpha=0.5), bamdp.SparseDirichlet(alpha=0.4)], [1.0, 2.0]),
        "finite": bamdp.FiniteModels(models(S, A, 3)),
        "finite mixture": bamdp.Mixture([bamdp.FiniteModels(models(S, A, 2)), bamdp.Dirichlet(alpha=0.3)]),
    }


def dense_row(rows, row, S):
    """A row of Rows as a vector [S]."""
    begin, end = rows.span[row]
    out = np.full(S, rows.background[row] / S)
    np.add.at(out, rows.index[begin:end], rows.prob[begin:end])
    return out


def mean_model(belief):
    """(P̄ [S, A, S], r̄ [S, A])."""
    S, A = belief.n_states, belief.n_actions
    P = np.array([[belief.predictive(s, a) for a in range(A)] for s in range(S)])
    return P, np.array([[belief.expected_reward(s, a) for a in range(A)] for s in range(S)])


def action_values(P, r, values, discount, allowed=None):
    """Q [S, A], -inf where there is no such action."""
    q = r + discount * P @ values
    return q if allowed is None else np.where(allowed, q, -np.inf)


def optimal_values(P, r, discount, *, terminal=None, allowed=None, tol=1e-12):
    """V* [S] by value iteration; terminal states are worth 0."""
    values = np.zeros(len(P))
    while True:
        new = action_values(P, r, values, discount, allowed).max(axis=1)
        if terminal is not None:
            new = np.where(terminal, 0.0, new)
        if np.abs(new - values).max() < tol:
            return new
        values = new


def second_moments(belief, s, a):
    """E[p_i²] of each outcome: the probability that the next two draws of the row are both i, by the predictive."""
    first = belief.predictive(s, a)
    out = np.zeros_like(first)
    for i, p in enumerate(first):
        if p > 0.0:
            after = belief.copy()
            after.observe(s, a, after_reward(after, s, a, i), i)
            out[i] = p * after.predictive(s, a)[i]
    return out


def after_reward(belief, s, a, s2):
    """A reward that rules nothing out where rewards are known, and is taken for granted elsewhere."""
    return belief.expected_reward(s, a) if belief.reward_model is None else 1.0


def variances(belief, s, a):
    """Posterior variance of each of a row's probabilities."""
    return np.maximum(0.0, second_moments(belief, s, a) - belief.predictive(s, a) ** 2)
