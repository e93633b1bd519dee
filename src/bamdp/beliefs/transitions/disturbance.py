"""A known rule with a random disturbance of unknown distribution: s' = f(s, a, w), with w = 0 .. W-1 drawn from p.

Demand, arrivals, wear and prices are examples. A new w is drawn in every step. All rows share the distribution p, so
every transition is informative about all states: it shows that w is in the set C = {w : f(s, a, w) = s'}. The posterior
of p is represented by independent Beta distributions of its hazards

    h_w = p_w / (p_w + p_{w+1} + ...) ~ Beta(a_w, b_w),        p_w = h_w Π_{v<w} (1 - h_v).

Their prior is equivalent to Dirichlet(α), with b_w = α_{w+1} + ... + α_{W-1}. Observations update them:

    w itself is seen:               a_w + 1, and b_v + 1 for v < w                                           (exact)
    w is seen to be at least c:     b_v + 1 for v < c                                                        (exact)
    any other set C:                each w in C counts as seen p_w / Σ_C p times                       (approximate)

Sales lost when the stock runs out and customers who find the queue full are of the second kind, for which the posterior
is a generalised Dirichlet distribution. In the third case the shares are those of the final p, as in the EM algorithm:
every real transition recomputes them for all observations so far. The mean is then close to the exact one (sale
probabilities differ by .012 on average after 25 customers who would pay one of four prices), and the distribution of p
is slightly too narrow. Number the disturbances so that censored ones come last.

A sampled model is a draw of p, which is not stored. Instead, ``choose`` draws the number of a random stream and
combines it with the number of simulated transitions in the belief. These two determine p whenever a row of the model is
needed.

Reference: R. Connor, J. Mosimann (1969), Concepts of independence for proportions with a generalization of the
Dirichlet distribution, JASA 64.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

import bamdp.beliefs.verbs as verbs
from bamdp import _checks
from bamdp._kernels.jit import primitive
from bamdp._kernels.random import beta, next_word, open_stream, uniform
from bamdp.beliefs.base import Prior, longer, reserve, transition_posterior

HIT, PASS, CHANCE = 0, 1, 2  # a and b (the rows of ``law``) and, in the log, the predictive p
DEPTH_BITS, STREAM_BITS = 23, 40  # sizes of the parts of a choice
NOTHING = -1
OF_KNOWN_ROW = 1e300  # concentration of a known row
ROUNDING = 1e-6
MOST_PASSES, SETTLED = 100, 1e-10  # limit on iterations of the shares, and the change at which they stop


@transition_posterior(counts_transitions=True, learned=("law", "chance", "seen"))
class DisturbancePosterior(NamedTuple):
    """Arrays of the posterior; ``law``, ``chance``, ``seen``, the log and the scratch fields are updated in place.

    K is the number of outcomes of the widest row, C the number of different sets of disturbances that can be seen.
    """

    outcome: np.ndarray  # int32 [S*A, K]: the distinct next states of a row
    size: np.ndarray  # int64 [S*A]: their number
    slot: np.ndarray  # int32 [S*A, W]: index in ``outcome`` of each disturbance's next state
    known: np.ndarray  # float64 [S*A, K]: probabilities of a known row; no columns if there is none
    is_known: np.ndarray  # bool [S*A]
    set_of: np.ndarray  # int32 [S*A, K]: set of the disturbances that lead to each outcome
    inside: np.ndarray  # bool [C, W]: members of each set
    span: np.ndarray  # int64 [C, 2]: first and last member of each set
    exact: np.ndarray  # bool [C]: the set is one disturbance, or all from some number on
    seen: np.ndarray  # float64 [C]: number of real observations of each set
    prior: np.ndarray  # float64 [2, W]: prior value of ``law``
    law: np.ndarray  # float64 [2, W]: HIT, PASS
    chance: np.ndarray  # float64 [W]: the predictive p
    log: np.ndarray  # float64 [depth, 3, W]: HIT, PASS, CHANCE before each pushed transition
    pushed: np.ndarray  # int64 [depth]: the set that was seen, NOTHING for a known row
    top: np.ndarray  # int64 [1]: length of the log
    drawn: np.ndarray  # float64 [W] scratch: p of the last sampled model used
    of: np.ndarray  # int64 [1] scratch: the choice of that model
    stream: np.ndarray  # uint64 [4] scratch


@primitive
def _slot(T, row, s2):
    """Return the index of a next state among the outcomes of a row, or -1."""
    for i in range(T.size[row]):
        if T.outcome[row, i] == s2:
            return i
    return -1


@primitive
def _mass(T, row, i, p):
    """Return the probability of the i-th outcome of a row if disturbances have distribution ``p``."""
    if T.is_known[row]:
        return T.known[row, i]
    total = 0.0
    for w in range(p.shape[0]):
        if T.slot[row, w] == i:
            total += p[w]
    return total


@primitive
def update_chances(law, chance):
    """Write the predictive distribution of the next disturbance to ``chance``."""
    rest, last = 1.0, law.shape[1] - 1
    for w in range(last):
        h = law[HIT, w] / (law[HIT, w] + law[PASS, w])
        chance[w] = rest * h
        rest *= 1.0 - h
    chance[last] = rest


@verbs.push.register(DisturbancePosterior)
def _push(T, row, s2):
    entry = T.top[0]
    T.top[0] = entry + 1
    for w in range(T.law.shape[1]):
        T.log[entry, HIT, w], T.log[entry, PASS, w] = T.law[HIT, w], T.law[PASS, w]
        T.log[entry, CHANCE, w] = T.chance[w]
    T.pushed[entry] = NOTHING
    if not T.is_known[row]:
        T.pushed[entry] = T.set_of[row, _slot(T, row, s2)]
        _add_set(T, T.pushed[entry], 1.0)
        update_chances(T.law, T.chance)


@primitive
def _add_set(T, c, n):
    """Update ``law`` with ``n`` observations of the set ``c``."""
    first, last = T.span[c, 0], T.span[c, 1]
    for w in range(first):
        T.law[PASS, w] += n
    if T.exact[c]:
        if first == last:
            T.law[HIT, first] += n
        return
    mass, left = 0.0, n
    for w in range(first, last + 1):
        mass += T.chance[w] if T.inside[c, w] else 0.0
    for w in range(first, last + 1):
        share = n * T.chance[w] / mass if T.inside[c, w] else 0.0
        left = max(left - share, 0.0) if w < last else 0.0
        T.law[HIT, w] += share
        T.law[PASS, w] += left


@primitive
def share_again(T):
    """Recompute ``law`` from all real observations, with shares proportional to its own mean."""
    for _ in range(MOST_PASSES):
        for w in range(T.law.shape[1]):
            T.law[HIT, w], T.law[PASS, w] = T.prior[HIT, w], T.prior[PASS, w]
            T.drawn[w] = T.chance[w]
        for c in range(T.seen.shape[0]):
            if T.seen[c] > 0.0:
                _add_set(T, c, T.seen[c])
        update_chances(T.law, T.chance)
        change = 0.0
        for w in range(T.law.shape[1]):
            change = max(change, abs(T.chance[w] - T.drawn[w]))
        if change < SETTLED:
            break
    T.of[0] = NOTHING


@verbs.pop.register(DisturbancePosterior)
def _pop(T):
    entry = T.top[0] - 1
    T.top[0] = entry
    for w in range(T.law.shape[1]):
        T.law[HIT, w], T.law[PASS, w] = T.log[entry, HIT, w], T.log[entry, PASS, w]
        T.chance[w] = T.log[entry, CHANCE, w]


@verbs.commit.register(DisturbancePosterior)
def _commit(T, row):
    for entry in range(T.top[0]):
        if T.pushed[entry] != NOTHING:
            T.seen[T.pushed[entry]] += 1.0
    T.top[0] = 0
    T.of[0] = NOTHING
    for c in range(T.seen.shape[0]):
        if T.seen[c] > 0.0 and not T.exact[c]:
            share_again(T)
            return


@reserve.register(DisturbancePosterior)
def _reserve(T: DisturbancePosterior, depth: int) -> DisturbancePosterior:
    size = depth + int(T.top[0])
    return T._replace(log=longer(T.log, size), pushed=longer(T.pushed, size))


@verbs.draw.register(DisturbancePosterior)
def _draw(T, row, rng):
    x, last = uniform(rng), T.size[row] - 1
    if T.is_known[row]:
        for i in range(last):
            x -= T.known[row, i]
            if x < 0.0:
                return np.int64(T.outcome[row, i])
        return np.int64(T.outcome[row, last])
    last = T.law.shape[1] - 1
    for w in range(last):
        x -= T.chance[w]
        if x < 0.0:
            return np.int64(T.outcome[row, T.slot[row, w]])
    return np.int64(T.outcome[row, T.slot[row, last]])


@verbs.probability.register(DisturbancePosterior)
def _probability(T, row, s2):
    i = _slot(T, row, s2)
    return 0.0 if i < 0 else _mass(T, row, i, T.chance)


@verbs.concentration.register(DisturbancePosterior)
def _concentration(T, row):
    return OF_KNOWN_ROW if T.is_known[row] else T.law[HIT, 0] + T.law[PASS, 0]


@verbs.choose.register(DisturbancePosterior)
def _choose(T, rng):
    number = np.int64(next_word(rng) >> np.uint64(64 - STREAM_BITS))
    return (number << DEPTH_BITS) | T.top[0]


@primitive
def _draw_law(T, choice):
    """Draw p of a sampled model into ``drawn``, unless it is already there."""
    if T.of[0] == choice:
        return
    depth = choice & ((1 << DEPTH_BITS) - 1)
    live = depth == T.top[0]
    open_stream(np.uint64(choice), T.stream)
    rest, last = 1.0, T.law.shape[1] - 1
    for w in range(last):
        a = T.law[HIT, w] if live else T.log[depth, HIT, w]
        b = T.law[PASS, w] if live else T.log[depth, PASS, w]
        h = beta(T.stream, a, b)
        T.drawn[w] = rest * h
        rest *= 1.0 - h
    T.drawn[last] = rest
    T.of[0] = choice


@primitive
def _write_row(T, row, p, index, prob, at):
    end = at + T.size[row]
    for i in range(T.size[row]):
        index[at + i] = T.outcome[row, i]
        prob[at + i] = T.known[row, i] if T.is_known[row] else 0.0
    if not T.is_known[row]:
        for w in range(p.shape[0]):
            prob[at + T.slot[row, w]] += p[w]
    return np.int64(end), 0.0


@verbs.most_entries.register(DisturbancePosterior)
def _most_entries(T, n_states):
    return T.outcome.shape[1]


@verbs.sample_row.register(DisturbancePosterior)
def _sample_row(T, choice, row, index, prob, at, rng):
    _draw_law(T, choice)
    return _write_row(T, row, T.drawn, index, prob, at)


@verbs.mean_row.register(DisturbancePosterior)
def _mean_row(T, row, index, prob, at):
    return _write_row(T, row, T.chance, index, prob, at)


@verbs.moments_row.register(DisturbancePosterior)
def _moments_row(T, row, index, mean, variance, at):
    """Write the exact moments of sums of p by the backward recursion Z_w = h_w [w in C] + (1 - h_w) Z_{w+1}."""
    end, rest = _write_row(T, row, T.chance, index, mean, at)
    for i in range(T.size[row]):
        variance[at + i] = 0.0
        if T.is_known[row]:
            continue
        last = T.law.shape[1] - 1
        first = second = 1.0 if T.slot[row, last] == i else 0.0
        for w in range(last - 1, -1, -1):
            a, b = T.law[HIT, w], T.law[PASS, w]
            h, n = a / (a + b), a + b + 1.0
            inside = 1.0 if T.slot[row, w] == i else 0.0
            miss = (1.0 - h) * (b + 1.0) / n
            second = inside * (h * (a + 1.0) / n + 2.0 * h * b / n * first) + miss * second
            first = inside * h + (1.0 - h) * first
        variance[at + i] = max(0.0, second - first * first)
    return end, rest, 0.0


@dataclass(frozen=True, eq=False)
class DisturbancePrior(Prior):
    """A known rule s' = f(s, a, w) with a random disturbance w, whose distribution is learned from all transitions.

    Pass rewards to the agent as for any prior: either known rewards as an array, or a reward model that learns.

    Parameters
    ----------
    rule
        The function f of state, action and disturbance, or its table, an array ``[S, A, W]`` of states.
    shape
        The numbers (S, A, W) of states, actions and disturbances; not needed for a table. If several disturbances lead
        to the same state, the posterior is exact if they are all those from some number on (demand beyond the stock),
        and approximate otherwise.
    alpha
        Prior count of each disturbance: one number, or an array ``[W]``.
    known
        Known rows, which do not depend on w: an array ``[S, A, S]`` of probabilities, 0 in all other rows.

    Examples
    --------
    A shop with space for 10 units orders up to 4 units for the next day without knowing the demand:

    >>> prior = DisturbancePrior(lambda s, a, w: max(min(s + a, 10) - w, 0), shape=(11, 5, 11))
    >>> belief = prior.belief(11, 5)
    >>> belief.observe(3, 2, 0.0, 1)  # a demand of 4
    >>> belief.predictive(10, 0).round(2)[5:8]  # which is likelier now, whatever the stock
    array([0.08, 0.23, 0.08])
    """

    rule: Any
    shape: tuple[int, int, int] | None = None
    alpha: Any = 0.5
    known: Any = None

    def __post_init__(self) -> None:
        table = _tabulate(self.rule, self.shape)
        S, A, W = table.shape
        alpha = np.array(np.broadcast_to(_checks.numbers(self.alpha, "alpha"), W), float)
        if not ((alpha > 0.0) & (alpha < 1e100)).all():
            raise ValueError(
                f"alpha must be above 0, a number or one for each of {W} disturbances, got {self.alpha}"
            )
        known = None if self.known is None else _known_rows(self.known, S, A)
        for name, value in (("rule", table), ("shape", table.shape), ("alpha", alpha), ("known", known)):
            object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        return "DisturbancePrior({} states, {} actions, {} disturbances)".format(*self.rule.shape)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DisturbancePrior) and self._parts() == other._parts()

    def __hash__(self) -> int:
        return hash(self._parts())

    def _parts(self) -> tuple[Any, ...]:
        return self.shape, *(None if x is None else x.tobytes() for x in (self.rule, self.alpha, self.known))

    def posterior(self, n_states: int, n_actions: int) -> DisturbancePosterior:
        S, A, W = self.rule.shape
        if (n_states, n_actions) != (S, A):
            raise ValueError(
                f"the rule is for {S} states and {A} actions, and there are {n_states} and {n_actions}"
            )
        rows = [np.unique(row, return_inverse=True) for row in self.rule.reshape(S * A, W)]
        table = np.zeros((S * A, S)) if self.known is None else self.known.reshape(S * A, S)
        is_known: NDArray[np.bool_] = np.any(table > 0.0, axis=1)
        outcomes = [np.flatnonzero(table[i]) if is_known[i] else rows[i][0] for i in range(S * A)]
        size = np.array([len(states) for states in outcomes])
        K = int(size.max())
        outcome, fixed = np.zeros((S * A, K), np.int32), np.zeros((S * A, K if is_known.any() else 0))
        for i, states in enumerate(outcomes):
            outcome[i, : len(states)] = states
            if is_known[i]:
                fixed[i, : len(states)] = table[i, states]
        beyond = np.append(np.cumsum(self.alpha[::-1])[::-1][1:], 0.0)
        law, chance = np.array([self.alpha, beyond]), np.zeros(W)
        update_chances(law, chance)
        slot = np.array([place for _, place in rows], np.int32)
        inside = (slot[:, None, :] == np.arange(K)[:, None]).reshape(-1, W)
        sets, set_of = np.unique(inside, axis=0, return_inverse=True)
        span = np.column_stack([sets.argmax(axis=1), W - 1 - sets[:, ::-1].argmax(axis=1)])
        n = sets.sum(axis=1)
        return DisturbancePosterior(
            outcome=outcome,
            size=size,
            slot=slot,
            known=fixed,
            is_known=is_known,
            set_of=set_of.reshape(S * A, K).astype(np.int32),
            inside=sets,
            span=span,
            exact=(n == 1) | (span[:, 0] + n == W),
            seen=np.zeros(len(sets)),
            prior=law.copy(),
            law=law,
            chance=chance,
            log=np.zeros((64, 3, W)),
            pushed=np.zeros(64, np.int64),
            top=np.zeros(1, np.int64),
            drawn=np.zeros(W),
            of=np.full(1, NOTHING, np.int64),
            stream=np.zeros(4, np.uint64),
        )


def _tabulate(rule: Callable[[int, int, int], int] | ArrayLike, shape: Any) -> NDArray[np.int64]:
    """Return the table [S, A, W] of a rule after validating it."""
    if callable(rule):
        if not isinstance(shape, (tuple, list)) or len(shape) != 3:
            raise TypeError(f"give shape=(states, actions, disturbances) with a function, got {shape!r}")
        sizes = [_checks.integer(n, name) for n, name in zip(shape, ("states", "actions", "disturbances"))]
        _checks.memory(8 * np.prod(sizes, dtype=float), f"a rule for {sizes}")
        rule = np.array([rule(*cell) for cell in np.ndindex(*sizes)]).reshape(sizes)
    table = np.array(rule)
    if table.ndim != 3 or not table.size:
        raise ValueError(f"a rule has a table [S, A, W], got shape {list(table.shape)}")
    bad = np.argwhere((table != np.floor(table)) | (table < 0) | (table >= len(table)))
    if len(bad):
        s, a, w = bad[0].tolist()
        raise ValueError(f"the rule leads from ({s}, {a}) by {w} to {table[s, a, w]}, which is no state")
    return table.astype(np.int64)


def _known_rows(known: ArrayLike, n_states: int, n_actions: int) -> NDArray[np.float64]:
    rows = _checks.numbers(known, "known")
    if rows.shape != (n_states, n_actions, n_states):
        raise ValueError(f"known must be [S, A, S], got shape {list(rows.shape)}")
    total = rows.sum(axis=2)
    if not ((rows >= 0.0).all() and ((abs(total - 1.0) < ROUNDING) | (total == 0.0)).all()):
        raise ValueError("each row of known must be probabilities that sum to 1, or all 0 where w decides")
    return rows
