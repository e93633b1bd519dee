"""Dirichlet rows with a shared base measure and concentration, both learned from all transitions.

The row of (s, a) is Dirichlet(c·G_sa), so that after n transitions of a pair, n_t of them to t,

    ν(t | s, a) = (c G_sa(t) + n_t) / (c + n),        G_sa(t) = w_0/S + w_1 Σ_d g_a(d) [s+d → t] + w_2 f_a(t).

The base measure G of an untried pair has three parts: a uniform distribution over all states; the displacements
d = s' − s of the same action elsewhere (a level that falls by the demand, a step to the east), with s + d clipped to
the first or last state; and its targets s' elsewhere (an action that leads back to the start). The concentration c
measures how alike the rows are. As c → 0, each row has a single outcome of its own, drawn from G; as c → ∞, all rows
equal G. If state numbers carry no meaning, no displacement is common, w_1 is small, and rows are independent.

Given (c, w, g, f), the posterior is exact. These parameters are estimated from all transitions (empirical Bayes), with
one update per transition:

- The outcome came from G, not from the row's own past, with probability p = c G(t) / (c G(t) + n_t), and from part k
  of G with probability p q_k / Σ q, where q are the parts of G(t).
- Add these part probabilities to w, and p to g_a(d) and f_a(t) (at the first or last state, divide p among the
  displacements that lead there).
- Set c = exp E[log c] over a grid, weighting each c by the probabilities that it assigned to the outcomes so far.

The update takes place when a transition is committed. Planning treats the parameters as known, which makes rows
independent. A row lists the outcomes seen, and the displacements and targets that make up a share of ``LISTED`` of g_a
and f_a. A part of G with a weight below ``LEAST`` is omitted.

References: Teh, Jordan, Beal & Blei, "Hierarchical Dirichlet processes" (JASA 2006); MacKay & Peto, "A hierarchical
Dirichlet language model" (1995).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

import bamdp.beliefs.transitions.counts as tally
import bamdp.beliefs.verbs as verbs
from bamdp._kernels.dirichlet import dirichlet
from bamdp._kernels.jit import inner, primitive
from bamdp._kernels.random import below, uniform
from bamdp.beliefs.base import Prior, transition_posterior
from bamdp.beliefs.transitions.counts import COUNT, LOG_END, NEXT, NOT_SEEN, SIZE, START, TOTAL, Counts
from bamdp.beliefs.transitions.dirichlet import STICKS_PAY, break_sticks

if TYPE_CHECKING:
    from bamdp.beliefs.belief import Belief

ANYWHERE, MOVES, TARGETS = range(3)  # parts of G
CONCENTRATIONS = (0.01, 0.03, 0.1, 0.3, 1.0)
LISTED, LEAST = 0.98, 0.02
MOST_LISTED = 48  # displacements, and targets, stored for each action


@transition_posterior(
    independent_rows=True,
    pools=True,
    counts_transitions=True,
    learned=("counts", "weight", "log_c", "place", "mass", "listed", "total", "share"),
)
class HierarchicalPosterior(NamedTuple):
    """Posterior of rows with a common base measure; all arrays are updated in place."""

    counts: Counts
    weight: np.ndarray  # float64 [3]: 1 + number of transitions from each part of G
    log_c: np.ndarray  # float64 [concentrations]: log posterior of the grid, up to a constant
    place: np.ndarray  # int64 [A, 2, MOST_LISTED]: displacements + S − 1, and targets, sorted by mass
    mass: np.ndarray  # float64 [A, 2, MOST_LISTED]: their mass, decreasing; 0 in unused entries
    listed: np.ndarray  # int64 [A, 2]: number of them that rows list
    total: np.ndarray  # float64 [A, 2]: total mass of the listed ones
    share: np.ndarray  # float64 [4]: c and c·w
    at: np.ndarray  # int64 [S] scratch: position of a state in a row, counted from 1; 0 before and after
    mark: np.ndarray  # int64 [S+1] scratch of draw_new_outcomes
    n_states: int
    n_actions: int
    last: int  # the last state that displacements lead to


tally.register_count_verbs(HierarchicalPosterior)


@primitive
def reached(T, s, part, place):
    """Return the state to which a displacement leads from ``s``, or the target itself."""
    return max(0, min(T.last, s + place - T.n_states + 1)) if part == MOVES else place


@inner
def write_row(T, row, index, prob, at):
    """Write the concentration c·G(t) + n_t of each listed outcome, except the part that is uniform over all states.

    Return the end of the row and this uniform part, summed over all S states.
    """
    s, a = row // T.n_actions, row % T.n_actions
    start, end, rest = T.counts.rows[row, START], at, T.share[1 + ANYWHERE]
    for i in range(T.counts.rows[row, SIZE]):
        index[end] = T.counts.pool[start + i, NEXT]
        prob[end] = T.counts.pool[start + i, COUNT]
        end += 1
        T.at[index[end - 1]] = end - at
    for part in (MOVES, TARGETS):
        if T.listed[a, part - 1] == 0:
            rest += T.share[1 + part]
            continue
        scale = T.share[1 + part] / T.total[a, part - 1]
        if scale > 0.0:
            for i in range(T.listed[a, part - 1]):
                t = reached(T, s, part, T.place[a, part - 1, i])
                if T.at[t] == 0:
                    index[end] = t
                    prob[end] = 0.0
                    end += 1
                    T.at[t] = end - at
                prob[at + T.at[t] - 1] += scale * T.mass[a, part - 1, i]
    for i in range(at, end):
        T.at[index[i]] = 0
    return end, rest


@primitive
def part_at(T, row, s2, part):
    """Return the contribution of one part of G to c·G(s2) in a row."""
    s, a = row // T.n_actions, row % T.n_actions
    if part == ANYWHERE or T.listed[a, part - 1] == 0:
        return T.share[1 + part] / T.n_states
    total = 0.0
    for i in range(T.listed[a, part - 1]):
        if reached(T, s, part, T.place[a, part - 1, i]) == s2:
            total += T.mass[a, part - 1, i]
    return T.share[1 + part] * total / T.total[a, part - 1]


@primitive
def base_at(T, row, s2):
    """Return c·G(s2) in a row."""
    return part_at(T, row, s2, ANYWHERE) + part_at(T, row, s2, MOVES) + part_at(T, row, s2, TARGETS)


# --- verbs ----------------------------------------------------------------------------------------------------


@tally.draw_slot.register(HierarchicalPosterior)
def _draw_slot(T, row, rng):
    counts = T.counts
    x = uniform(rng) * verbs.concentration(T, row)
    slot = counts.rows[row, START]
    for i in range(slot, slot + counts.rows[row, SIZE]):
        x -= counts.pool[i, COUNT]
        if x < 0.0:
            return np.int64(counts.pool[i, NEXT]), np.int64(i)
    s, a = row // T.n_actions, row % T.n_actions
    s2 = np.int64(-1)
    for part in (MOVES, TARGETS):
        if s2 < 0 and T.listed[a, part - 1] > 0:
            if x < T.share[1 + part]:
                x *= T.total[a, part - 1] / T.share[1 + part]
                i = 0
                while i < T.listed[a, part - 1] - 1 and x >= T.mass[a, part - 1, i]:
                    x -= T.mass[a, part - 1, i]
                    i += 1
                s2 = np.int64(reached(T, s, part, T.place[a, part - 1, i]))
            else:
                x -= T.share[1 + part]
    if s2 < 0:
        s2 = np.int64(below(rng, T.n_states))
    return s2, np.int64(tally.find(counts, row, s2))


@verbs.probability.register(HierarchicalPosterior)
def _probability(T, row, s2):
    slot = tally.find(T.counts, row, s2)
    own = 0.0 if slot == NOT_SEEN else float(T.counts.pool[slot, COUNT])
    return (base_at(T, row, s2) + own) / verbs.concentration(T, row)


@verbs.concentration.register(HierarchicalPosterior)
def _concentration(T, row):
    return T.share[0] + T.counts.rows[row, TOTAL]


@verbs.sample_row.register(HierarchicalPosterior)
def _sample_row(T, choice, row, index, prob, at, rng):
    end, rest = write_row(T, row, index, prob, at)
    alpha, unseen = rest / T.n_states, T.n_states - (end - at)
    smallest = np.inf
    for i in range(at, end):
        prob[i] += alpha
        smallest = min(smallest, prob[i])
    if unseen > STICKS_PAY * (unseen * alpha + 1.0):
        prob[end] = unseen * alpha
        dirichlet(prob, at, end + 1, min(smallest, prob[end]), rng)
        return break_sticks(T, index, prob, at, end, prob[end], alpha, rng)
    if unseen > 0:
        for i in range(at, end):
            T.at[index[i]] = 1
        for s2 in range(T.n_states):
            if T.at[s2] == 0:
                index[end] = s2
                prob[end] = alpha
                end += 1
            T.at[s2] = 0
        smallest = min(smallest, alpha)
    dirichlet(prob, at, end, smallest, rng)
    return end, 0.0


@verbs.mean_row.register(HierarchicalPosterior)
def _mean_row(T, row, index, prob, at):
    end, rest = write_row(T, row, index, prob, at)
    scale = 1.0 / verbs.concentration(T, row)
    for i in range(at, end):
        prob[i] *= scale
    return end, rest * scale


@verbs.moments_row.register(HierarchicalPosterior)
def _moments_row(T, row, index, mean, variance, at):
    end, rest = write_row(T, row, index, mean, at)
    total = verbs.concentration(T, row)
    each = rest / T.n_states / total
    for i in range(at, end):
        p = mean[i] / total + each
        mean[i] = p
        variance[i] = max(0.0, p * (1.0 - p)) / (total + 1.0)
    return end, each, each * (1.0 - each) / (total + 1.0)


# --- learning -------------------------------------------------------------------------------------------------


@verbs.commit.register(HierarchicalPosterior)
def _commit(T, row):
    """Learn from the most recent pushed transition, which is committed before the next one is observed."""
    counts = T.counts
    slot = counts.log[counts.top[LOG_END] - 1, 1]
    if slot == NOT_SEEN:
        slot = counts.rows[row, START] + counts.rows[row, SIZE] - 1
    tally.commit_count(counts, row)
    s2, n_t, n = counts.pool[slot, NEXT], counts.pool[slot, COUNT] - 1, counts.rows[row, TOTAL] - 1
    g = base_at(T, row, s2)
    of_base = g / (g + n_t)
    for j in range(T.log_c.shape[0]):
        c = CONCENTRATIONS[j]
        T.log_c[j] += math.log((c * g / T.share[0] + n_t) / (c + n))
    for part in (ANYWHERE, MOVES, TARGETS):
        T.weight[part] += of_base * part_at(T, row, s2, part) / g
    learn_places(T, row // T.n_actions, row % T.n_actions, s2, of_base)
    update(T, row % T.n_actions)


@primitive
def move_up(T, a, k, i):
    """Move the i-th displacement or target of an action ahead of those with less mass."""
    own, place = T.mass[a, k, i], T.place[a, k, i]
    while i > 0 and T.mass[a, k, i - 1] < own:
        T.mass[a, k, i], T.place[a, k, i] = T.mass[a, k, i - 1], T.place[a, k, i - 1]
        i -= 1
    T.mass[a, k, i], T.place[a, k, i] = own, place


@inner
def learn_places(T, s, a, s2, of_base):
    """Add a transition, from G with probability ``of_base``, to the displacements and targets of an action."""
    for part in (MOVES, TARGETS):
        if part == MOVES and s2 > T.last:
            continue
        k, total, used = part - 1, 0.0, 0
        while used < MOST_LISTED and T.mass[a, k, used] > 0.0:
            if reached(T, s, part, T.place[a, k, used]) == s2:
                total += T.mass[a, k, used]
            used += 1
        if total == 0.0:  # a new one replaces the one with the least mass if no entry is free
            last = min(used, MOST_LISTED - 1)
            T.place[a, k, last] = s2 - s + T.n_states - 1 if part == MOVES else s2
            T.mass[a, k, last] = of_base
            move_up(T, a, k, last)
            continue
        for i in range(used):
            if reached(T, s, part, T.place[a, k, i]) == s2:
                T.mass[a, k, i] += of_base * T.mass[a, k, i] / total
                move_up(T, a, k, i)


@primitive
def update(T, a):
    """Compute c, c·w, and how many displacements and targets the rows of action ``a`` list."""
    highest, total, log_c = -np.inf, 0.0, 0.0
    for j in range(T.log_c.shape[0]):
        highest = max(highest, T.log_c[j])
    for j in range(T.log_c.shape[0]):
        p = math.exp(T.log_c[j] - highest)
        total += p
        log_c += p * math.log(CONCENTRATIONS[j])
    c, weights = math.exp(log_c / total), T.weight[ANYWHERE] + T.weight[MOVES] + T.weight[TARGETS]
    T.share[0] = c
    T.share[1] = c
    for part in (MOVES, TARGETS):
        w = T.weight[part] / weights
        T.share[1 + part] = c * w if w >= LEAST else 0.0
        T.share[1] -= T.share[1 + part]
        k, every, listed, mass = part - 1, 0.0, 0, 0.0
        for i in range(MOST_LISTED):
            every += T.mass[a, k, i]
        while mass < LISTED * every and listed < MOST_LISTED:
            mass += T.mass[a, k, listed]
            listed += 1
        T.listed[a, k], T.total[a, k] = listed, mass


@dataclass(frozen=True, kw_only=True)
class HierarchicalDirichlet(Prior):
    """Dirichlet rows with a shared base measure and concentration, both learned: the default prior.

    Examples
    --------
    >>> belief = HierarchicalDirichlet().belief(20, 2)
    >>> for s in (5, 9, 14):
    ...     belief.observe(s, 0, 0.0, s - 3)
    >>> int(belief.predictive(12, 0).argmax())
    9
    """

    def posterior(self, n_states: int, n_actions: int) -> HierarchicalPosterior:
        T = HierarchicalPosterior(
            counts=tally.empty_counts(n_states * n_actions),
            weight=np.ones(3),
            log_c=np.zeros(len(CONCENTRATIONS)),
            place=np.zeros((n_actions, 2, MOST_LISTED), np.int64),
            mass=np.zeros((n_actions, 2, MOST_LISTED)),
            listed=np.zeros((n_actions, 2), np.int64),
            total=np.zeros((n_actions, 2)),
            share=np.zeros(4),
            at=np.zeros(n_states, np.int64),
            mark=np.zeros(n_states + 1, np.int64),
            n_states=n_states,
            n_actions=n_actions,
            last=n_states - 1,
        )
        update(T, 0)
        return T

    def belief(self, n_states: int, n_actions: int, *, end: int | None = None, **known: Any) -> Belief:
        """Return the belief before any observation; if ``end`` is the last state, no displacement leads to it."""
        belief = super().belief(n_states, n_actions, end=end, **known)
        if end is not None and end == n_states - 1 > 0:
            transitions = belief.transitions._replace(last=n_states - 2)
            belief.arrays = belief.arrays._replace(transitions=transitions)
        return belief
