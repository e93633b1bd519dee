"""Oracles in rationals: the evidence of a sequence of transitions, by enumeration, for small worlds.

A transition is ``(s, a, r, s2)``. Every oracle integrates the model out by its definition: Dirichlet
integrals as ratios of rising factorials, sparse rows by all supports of all sizes, finite sets by Bayes'
rule.
"""

import math
from collections import Counter, defaultdict
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations

import numpy as np

from bamdp import (
    BetaBernoulli,
    Dirichlet,
    DisturbancePrior,
    FiniteMDP,
    FiniteModels,
    FiniteRewards,
    Mixture,
    SharedSupport,
    SparseDirichlet,
)

S, A = 4, 2
REWARDS = np.arange(S * A, dtype=float).reshape(S, A)


def rising(x, n):
    """x (x+1) ... (x+n-1), which is Γ(x+n)/Γ(x)."""
    return math.prod((x + j for j in range(n)), start=Fraction(1))


def by_row(data):
    """The next states seen in each row, as counts."""
    rows = defaultdict(Counter)
    for s, a, _, s2 in data:
        rows[s, a][s2] += 1
    return rows


def dirichlet_row(alpha, counts):
    """∫ Π p_i^{n_i} dDirichlet(alpha): 0 where an impossible outcome was seen."""
    top = math.prod((rising(alpha[i], n) for i, n in counts.items()), start=Fraction(1))
    return top / rising(sum(alpha), sum(counts.values()))


def dirichlet(alpha):
    """Evidence under independent rows with prior counts ``alpha[s][a][s2]``."""
    exact = [
        [[Fraction(float(x)) for x in row] for row in rows] for rows in np.broadcast_to(alpha, (S, A, S))
    ]

    def evidence(data):
        parts = (dirichlet_row(exact[s][a], counts) for (s, a), counts in by_row(data).items())
        return math.prod(parts, start=Fraction(1))

    return evidence


def sparse_row(n_states, alpha, p_k, counts):
    """The same under the hierarchical prior: every support of every size k, each with P(k) / (S choose k)."""
    total = Fraction(0)
    for k, p in enumerate(p_k, start=1):
        for support in combinations(range(n_states), k):
            if set(counts) <= set(support):
                given = [alpha if i in support else Fraction(0) for i in range(n_states)]
                total += p / math.comb(n_states, k) * dirichlet_row(given, counts)
    return total / sum(p_k)


def sparse(alpha, p_k):
    exact = Fraction(alpha)

    def evidence(data):
        parts = (sparse_row(S, exact, p_k, counts) for counts in by_row(data).values())
        return math.prod(parts, start=Fraction(1))

    return evidence


def shared(alpha, p_k):
    """Evidence under supports that the actions of a state share: every support of every size k of every state."""
    exact = Fraction(alpha)

    def of_state(rows):
        total = Fraction(0)
        for k, p in enumerate(p_k, start=1):
            for support in combinations(range(S), k):
                given = [exact if i in support else Fraction(0) for i in range(S)]
                likelihood = math.prod((dirichlet_row(given, counts) for counts in rows), start=Fraction(1))
                if all(set(counts) <= set(support) for counts in rows):
                    total += p / math.comb(S, k) * likelihood
        return total / sum(p_k)

    def evidence(data):
        rows = by_row(data)
        states = ([counts for (s, _), counts in rows.items() if s == state] for state in range(S))
        return math.prod((of_state(part) for part in states), start=Fraction(1))

    return evidence


def models(tables, weights, rewards=None):
    """A finite set of models with rational rows ``table[s][a][s2]``; their rewards are evidence if given."""

    def likelihood(m, data):
        p = Fraction(1)
        for s, a, r, s2 in data:
            p *= tables[m][s][a][s2]
            if rewards is not None:
                p *= int(rewards[m][s][a] == r)
        return p

    def evidence(data):
        return sum(w * likelihood(m, data) for m, w in enumerate(weights)) / sum(weights)

    return evidence


def disturbance(rule, alpha, known=()):
    """Evidence under s' = rule(s, a, w), w from one Dirichlet law: the sum over all disturbances that fit."""
    exact = [Fraction(float(x)) for x in alpha]

    def evidence(data):
        ways = Counter({(0,) * len(exact): Fraction(1)})
        for s, a, _, s2 in data:
            fits = [w for w in range(len(exact)) if rule(s, a, w) == s2]
            longer = Counter()
            for counts, n in ways.items():
                if (s, a) in known:
                    longer[counts] += n * Fraction(float(known[s, a][s2]))
                else:
                    for w in fits:
                        longer[*counts[:w], counts[w] + 1, *counts[w + 1 :]] += n
            ways = longer
        return sum(n * dirichlet_row(exact, dict(enumerate(counts))) for counts, n in ways.items())

    return evidence


def mixture(parts, weights):
    return lambda data: sum(w * part(data) for w, part in zip(weights, parts)) / sum(weights)


def by_cell(data, by_next):
    """The rewards seen in each pair, or in each pair with its next state, as counts."""
    cells = defaultdict(Counter)
    for s, a, r, s2 in data:
        cells[(s, a, s2) if by_next else (s, a)][r] += 1
    return cells


def finite_rewards(n_values, concentration, by_next):
    """Symmetric Dirichlet over values 0.0 and 1.0, and more that are never seen."""
    alpha = Fraction(concentration) / n_values

    def evidence(data):
        parts = (
            dirichlet_row([alpha] * n_values, {int(r): n for r, n in counts.items()})
            for counts in by_cell(data, by_next).values()
        )
        return math.prod(parts, start=Fraction(1))

    return evidence


def beta_bernoulli(a, b, by_next=False):
    def evidence(data):
        rows = by_cell(data, by_next)
        a_, b_ = Fraction(a), Fraction(b)
        return math.prod(
            (rising(a_, n[1]) * rising(b_, n[0]) / rising(a_ + b_, n[0] + n[1]) for n in rows.values()),
            start=Fraction(1),
        )

    return evidence


@dataclass(frozen=True)
class Case:
    """A belief and its oracle."""

    prior: object
    exact: object  # evidence of the transitions
    rewards: object = None
    exact_rewards: object = None  # evidence of the rewards beside it

    def belief(self, data=()):
        belief = self.prior.belief(S, A, rewards=self.rewards)
        for step in data:
            belief.observe(*step)
        return belief

    def evidence(self, data):
        p = self.exact(data)
        return p * self.exact_rewards(data) if self.exact_rewards else p

    def predictive(self, data, s, a):
        """ν(· | s, a) as rationals."""
        before = self.exact(data)
        return [self.exact([*data, (s, a, self.reward(s, a), s2)]) / before for s2 in range(S)]

    def reward(self, s, a):
        """A reward that says nothing."""
        return 0.0


def _tables(rng, n, zeros):
    """``n`` random models in sixteenths, with impossible transitions."""
    out = []
    for _ in range(n):
        counts = rng.integers(0, 4, (S, A, S)) + (0 if zeros else 1)
        counts[..., 1] += counts.sum(axis=2) == 0
        out.append([[[Fraction(int(x), int(row.sum())) for x in row] for row in rows] for rows in counts])
    return out


def _mdp(table, rewards):
    return FiniteMDP(np.array([[[float(x) for x in row] for row in rows] for rows in table]), rewards)


_rng = np.random.default_rng(7)
PER_ROW = np.round(_rng.uniform(0.1, 3.0, (S, A)), 2)
FULL = np.round(_rng.uniform(0.1, 2.0, (S, A, S)), 2) * (_rng.random((S, A, S)) < 0.6)
FULL[..., 2] += FULL.sum(axis=2) == 0.0
TABLES = _tables(_rng, 3, zeros=True)
MODEL_WEIGHTS = (Fraction(1, 2), Fraction(1, 3), Fraction(1, 6))
MODELS = FiniteModels([_mdp(t, REWARDS) for t in TABLES], [float(w) for w in MODEL_WEIGHTS])
# Three models with the same transitions in pairs but other rewards: 0 tells them apart in some states only.
OWN_TABLES = [TABLES[0], TABLES[0], TABLES[1]]
OWN_REWARDS = _rng.integers(0, 2, (3, S, A)).astype(float)
OWN = FiniteModels([_mdp(t, r) for t, r in zip(OWN_TABLES, OWN_REWARDS)], [0.5, 0.25, 0.25])
ONE_BY_K = [Fraction(1, k**2) for k in range(1, S + 1)]
TWO_BY_K = [Fraction(1, max(k, 2) ** 2) for k in range(1, S + 1)]
NARROW = (0.0, 2.0, 1.0)  # two or three outcomes, never four

DEMAND = np.array([0.5, 1.0, 0.25, 2.0])
KNOWN_ROW = np.zeros((S, A, S))
KNOWN_ROW[2, 1] = 0.5, 0.0, 0.25, 0.25


def stock(s, a, w):
    """What is left of up to 3 units, after one was ordered or not, and a demand that may not be met."""
    return max(min(s + a, 3) - w, 0)


CASES = {
    "scalar": Case(Dirichlet(alpha=0.3), dirichlet(0.3)),
    "per-row": Case(Dirichlet(alpha=PER_ROW), dirichlet(PER_ROW[..., None])),
    "full": Case(Dirichlet(alpha=FULL), dirichlet(FULL)),
    "sparse": Case(SparseDirichlet(alpha=0.2, beta=2.0), sparse(0.2, ONE_BY_K)),
    "sparse p_k": Case(SparseDirichlet(alpha=1.5, p_k=NARROW), sparse(1.5, [Fraction(x) for x in NARROW])),
    "shared": Case(SharedSupport(alpha=0.2, beta=2.0), shared(0.2, TWO_BY_K)),
    "shared or sparse": Case(
        Mixture([SharedSupport(alpha=1.5, beta=2.0), SparseDirichlet(alpha=0.2, beta=2.0)], [0.75, 0.25]),
        mixture([shared(1.5, TWO_BY_K), sparse(0.2, ONE_BY_K)], [Fraction(3, 4), Fraction(1, 4)]),
    ),
    "disturbance": Case(DisturbancePrior(stock, (S, A, 4), DEMAND), disturbance(stock, DEMAND)),
    "known row": Case(
        DisturbancePrior(stock, (S, A, 4), DEMAND, known=KNOWN_ROW),
        disturbance(stock, DEMAND, {(2, 1): KNOWN_ROW[2, 1]}),
    ),
    "models": Case(MODELS, models(TABLES, MODEL_WEIGHTS)),
    "mixture": Case(
        Mixture([Dirichlet(alpha=0.3), SparseDirichlet(alpha=1.5, p_k=NARROW)], [0.25, 0.75]),
        mixture(
            [dirichlet(0.3), sparse(1.5, [Fraction(x) for x in NARROW])], [Fraction(1, 4), Fraction(3, 4)]
        ),
    ),
    "nested": Case(
        Mixture([MODELS, Mixture([Dirichlet(alpha=0.3), Dirichlet(alpha=2.0)]), Dirichlet(alpha=FULL)]),
        mixture(
            [
                models(TABLES, MODEL_WEIGHTS),
                mixture([dirichlet(0.3), dirichlet(2.0)], [Fraction(1, 2)] * 2),
                dirichlet(FULL),
            ],
            [Fraction(1, 3)] * 3,
        ),
        rewards=REWARDS,
    ),
    "bernoulli": Case(
        SparseDirichlet(alpha=0.2, beta=2.0),
        sparse(0.2, ONE_BY_K),
        BetaBernoulli(a=0.5, b=2.0),
        beta_bernoulli(0.5, 2.0),
    ),
    "bernoulli by next": Case(
        SparseDirichlet(alpha=0.2, beta=2.0),
        sparse(0.2, ONE_BY_K),
        BetaBernoulli(a=0.5, b=2.0, by="next"),
        beta_bernoulli(0.5, 2.0, by_next=True),
    ),
    "values by next": Case(
        Dirichlet(alpha=0.3),
        dirichlet(0.3),
        FiniteRewards(values=(0.0, 1.0), concentration=1.5, by="next"),
        finite_rewards(2, 1.5, by_next=True),
    ),
    "own rewards": Case(OWN, models(OWN_TABLES, (2, 1, 1), OWN_REWARDS)),
}
