"""Exact values of staged policies for a finite set of models: nothing here shares a line with the library.

A world is weights and models (P [S, A, S], R [S, A]); rewards are evidence where models differ in them. Beliefs are
tuples of weights. All values are over finitely many steps and exact up to rounding.
"""

from __future__ import annotations

import itertools

import numpy as np


class World:
    def __init__(self, models, weights, discount):
        self.P = np.array([P for P, _ in models], float)
        self.R = np.array([R for _, R in models], float)
        self.prior = tuple(float(w) for w in weights)
        self.discount = discount
        self.S, self.A = self.R.shape[1:]

    def branches(self, w, s, a):
        """(probability, reward, s2, weights after it)."""
        for r in sorted(set(self.R[:, s, a])):
            for s2 in range(self.S):
                after = np.array(w) * self.P[:, s, a, s2] * (self.R[:, s, a] == r)
                p = after.sum()
                if p > 0:
                    yield p, r, s2, tuple(after / p)

    def bayes_optimal(self, w, s, steps):
        if steps == 0:
            return 0.0
        return max(
            sum(
                p * (r + self.discount * self.bayes_optimal(w2, s2, steps - 1))
                for p, r, s2, w2 in self.branches(w, s, a)
            )
            for a in range(self.A)
        )

    def optimal_policies(self):
        """π*_μ of every model, for infinitely many steps, as tuples."""
        found = []
        for P, R in zip(self.P, self.R):
            V = np.zeros(self.S)
            for _ in range(2000):
                Q = R + self.discount * P @ V
                V = Q.max(axis=1)
            found.append(tuple(int(a) for a in (R + self.discount * P @ V).argmax(axis=1)))
        return found

    def run(self, w, s, policy, K, then):
        """K steps of ``policy[k][s]``, then ``then(w, s)``, in expectation."""
        if K == 0:
            return then(w, s)
        a = policy[0][s]
        return sum(
            p * (r + self.discount * self.run(w2, s2, policy[1:], K - 1, then))
            for p, r, s2, w2 in self.branches(w, s, a)
        )

    def staged(self, w, s, K, H, combine):
        """The value of H stages; ``combine(w, Q)`` makes one number of Q(policy), a stationary policy at a time."""
        if H == 0:
            return 0.0

        def Q(policy):
            return self.run(w, s, [policy] * K, K, lambda w2, s2: self.staged(w2, s2, K, H - 1, combine))

        return combine(w, Q)

    def best_markov(self, w, s, K, H):
        """The best policy that decides once per stage on a K-step Markov policy, which may depend on time."""
        if H == 0:
            return 0.0
        single = list(itertools.product(range(self.A), repeat=self.S))
        return max(
            self.run(w, s, policy, K, lambda w2, s2: self.best_markov(w2, s2, K, H - 1))
            for policy in itertools.product(single, repeat=K)
        )

    def changes(self, w, s, K, H):
        """ε_h, h = 0 .. H-1: the largest L1 change of the belief inside stage h, over all that can happen."""
        largest = np.zeros(H)

        def walk(start, w, s, k):
            h = k // K
            if h == H:
                return
            for a in range(self.A):
                for _, _, s2, w2 in self.branches(w, s, a):
                    largest[h] = max(largest[h], np.abs(np.subtract(w2, start)).sum())
                    walk(w2 if (k + 1) % K == 0 else start, w2, s2, k + 1)

        walk(w, w, s, 0)
        return largest

    def disagreement(self):
        """C̄ = E D(μ, μ')."""
        D = np.abs(self.P[:, None] - self.P[None]).sum(axis=-1) + 2 * np.abs(self.R[:, None] - self.R[None])
        return float(np.array(self.prior) @ D.max(axis=(2, 3)) @ np.array(self.prior))


def thompson(world):
    """Combine: the mean over policies of sampled models."""
    policies = world.optimal_policies()
    return lambda w, Q: sum(x * Q(policy) for x, policy in zip(w, policies) if x > 0)


def near(seed, n_models, spread, discount):
    """Two states and actions, models that differ by about ``spread`` in every row.

    In state 0 the actions are alike but for these differences, so models disagree on which is better; in state 1
    one pays and the other does not, so that there is something to get wrong.
    """
    rng = np.random.default_rng(seed)
    base = rng.dirichlet(np.ones(2), size=(2, 2))
    base[0, 1] = base[0, 0]
    R = np.array([[0.5, 0.5], [0.0, 1.0]])
    draw = lambda: rng.dirichlet(np.ones(2), size=(2, 2))
    models = [((1 - spread) * base + spread * draw(), R) for _ in range(n_models)]
    return World(models, rng.dirichlet(np.full(n_models, 5.0)), discount)


def one_of_two_arms(discount):
    """A bandit: one arm always pays, the other never, and nobody knows which."""
    P = np.ones((1, 2, 1))
    return World([(P, np.array([[1.0, 0.0]])), (P, np.array([[0.0, 1.0]]))], [0.5, 0.5], discount)
