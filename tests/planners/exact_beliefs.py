"""Bayes by definition, in rationals: what a prior makes of a history is its evidence, a sum over models.

A history is a Counter of (s, a, r, s'). ``Evidence`` functions map it to its exact probability (given the
actions), and everything else, predictives and Bayes-optimal values, is a ratio of evidences. Nothing here shares
a line with the library.
"""

from collections import Counter
from fractions import Fraction as F
from math import comb, prod


def rising(x, n):
    """x (x+1) ... (x+n-1)."""
    return prod((x + i for i in range(n)), start=F(1))


def by_row(history):
    rows = {}
    for (s, a, _, s2), n in history.items():
        rows.setdefault((s, a), Counter())[s2] += n
    return rows


def dirichlet(alpha):
    """alpha(s, a, s2) is the prior count, 0 for an impossible outcome."""

    def evidence(history, S):
        total = F(1)
        for (s, a), counts in by_row(history).items():
            total *= prod((rising(alpha(s, a, s2), n) for s2, n in counts.items()), start=F(1))
            total /= rising(sum(alpha(s, a, s2) for s2 in range(S)), sum(counts.values()))
        return total

    return evidence


def sparse(alpha, beta):
    """Supports of size k with probability ∝ k^-beta, uniform among those of a size, Dirichlet(alpha) on them."""

    def evidence(history, S):
        weight = [F(1, k**beta) for k in range(1, S + 1)]
        total = F(1)
        for counts in by_row(history).values():
            k0, n = len(counts), sum(counts.values())
            likelihood = prod((rising(alpha, c) for c in counts.values()), start=F(1))
            total *= sum(
                weight[k - 1]
                / sum(weight)
                * F(comb(S - k0, k - k0), comb(S, k))
                * likelihood
                / rising(k * alpha, n)
                for k in range(k0, S + 1)
            )
        return total

    return evidence


def finite(models, weights=None):
    """Models as (P[s][a][s2], R[s][a] or None): a model with rewards rules out others."""
    weights = weights or [F(1, len(models))] * len(models)

    def evidence(history, S):
        total = F(0)
        for w, (P, R) in zip(weights, models):
            for (s, a, r, s2), n in history.items():
                w = w * P[s][a][s2] ** n
                if R is not None and R[s][a] != r:
                    w = F(0)
            total += w
        return total

    return evidence


def mixture(parts, weights):
    return lambda history, S: sum(w * part(history, S) for w, part in zip(weights, parts))


def beta_bernoulli(a, b):
    """Evidence of the rewards alone."""

    def evidence(history):
        wins, losses = Counter(), Counter()
        for (s, action, r, _), n in history.items():
            (wins if r == 1 else losses)[s, action] += n
        pairs = set(wins) | set(losses)
        return prod(
            (rising(a, wins[x]) * rising(b, losses[x]) / rising(a + b, wins[x] + losses[x]) for x in pairs),
            start=F(1),
        )

    return evidence


class World:
    """A prior with rewards: either known ones, rewards(s, a, s2), or several outcomes with their evidence."""

    def __init__(
        self,
        S,
        A,
        evidence,
        *,
        rewards=None,
        outcomes=None,
        reward_evidence=None,
        terminal=(),
        allowed=None,
        data=(),
    ):
        self.S, self.A = S, A
        self.evidence = evidence
        self.rewards, self.outcomes, self.reward_evidence = rewards, outcomes, reward_evidence
        self.terminal = set(terminal)
        self.allowed = allowed or (lambda s, a: True)
        self.data = Counter(data)

    def weight(self, history):
        total = self.evidence(history, self.S)
        return total * self.reward_evidence(history) if self.reward_evidence else total

    def actions(self, s):
        return [a for a in range(self.A) if self.allowed(s, a)]

    def branches(self, history, s, a):
        """(probability, reward, s2, history after it) of all that can happen."""
        now = self.weight(history)
        for s2 in range(self.S):
            for r in [self.rewards(s, a, s2)] if self.outcomes is None else self.outcomes:
                after = history + Counter([(s, a, r, s2)])
                p = self.weight(after) / now
                if p > 0:
                    yield p, r, s2, after


def bayes_optimal(world, s, steps, discount, *, merge=True):
    """(Q values {a: Q}, number of hyper-states) of so many steps from ``s``, by the definition."""
    seen = {}
    nodes = 0

    def q(history, s, a, steps):
        return sum(
            p * (r + (discount * value(after, s2, steps - 1) if steps > 1 else 0))
            for p, r, s2, after in world.branches(history, s, a)
        )

    def value(history, s, steps):
        nonlocal nodes
        if s in world.terminal:
            return F(0)
        key = (s, frozenset(history.items()))
        if not merge or key not in seen:
            nodes += 1
            seen[key] = max(q(history, s, a, steps) for a in world.actions(s))
        return seen[key]

    result = {a: q(world.data, s, a, steps) for a in world.actions(s)}
    return result, nodes + 1
