"""BAMCP: Bayes-adaptive Monte Carlo planning (Guez, Silver & Dayan, NIPS 2012; JAIR 48, 2013). And BAUCT.

UCT over histories (:mod:`bamdp.planners.shared.tree_search` has the recursion) in which the belief is never updated
inside the tree: each simulation draws one model from the *root's* posterior and moves in it, and rows of the model
are only drawn when the simulation comes to them. Conditioning happens by itself: the simulations that reach a history
are those whose models produced it.

**One law, two ways to draw it.** Let μ ~ β and s' ~ μ(· | s, a) along a simulation. By the chain rule, and for
*every* belief, the law of the path is the product of predictives, each given all that came before:
P(s_1..s_n) = ∏ ν(s_{i+1} | s_i, a_i; β, the transitions before i). So a path in a model drawn at the root and a path
whose next states come from a belief updated along it have the same law, and a simulation, which sees nothing of the
model but its path, cannot tell them apart. ``root_sampling`` says which is used:

* ``"rows"``: the definition as written. What all rows share is drawn first (``choose``: a model of a finite set, a
  component of a mixture), then rows where they are needed, from the posterior given that choice.
* ``"predictive"``: advance the belief along the simulation and take it all back at the end. For independent rows
  that costs some nanoseconds per step, where a posterior row costs a gamma variable for every outcome.
* ``"auto"``: rows where the belief has weights over alternatives (FiniteModels, Mixture), whose updates are dear and
  whose rows are cheap; predictive elsewhere.

Rewards that are not known are drawn from their predictive along the simulation, by the same argument. If the belief
over rewards shares its weights with the one over transitions (FiniteModels with rewards of their own), ``"rows"``
would break that tie: it is refused, and ``"auto"`` is predictive.

Guarantee: Q at the root converges in probability to the Bayes-optimal value of the horizon ``depth`` (the paper's
Theorem 1), for rewards that are known or have finitely many outcomes.

Departures: the authors' program makes a node at the second visit of (h, a) and begins it with a random action; here,
as in the paper's pseudocode, the first visit makes the node and the rollout policy begins it. The bonus is the paper's
c √(log N(h) / N(h, a)), where the program has log(N(h) + 1).

**BAUCT** is UCT in the belief MDP, the posterior updated along every branch. The belief is part of the state: from
(s, β) action ``a`` leads to s' ~ ν_β(· | s, a) with reward r ~ τ_β, and the belief becomes β given (s, a, r, s'). That
is an MDP, and this is UCT on it (Kocsis & Szepesvári 2006; called BA-UCT by Guez, Silver & Dayan 2012), with next
states from the predictive of the branch's own counts, in the tree and in the rollout below it. A history determines its
belief, so a node is a history.

Guarantee: as simulations grow, Q at the root converges to the Bayes-optimal value of the horizon ``depth``, for
rewards that are known or have finitely many outcomes (the consistency of UCT, applied to the belief MDP).

Departures: rollouts, their Q-learner and the first action of a new node are those of BAMCP, so that the two differ in
nothing but how a next state is drawn. By the law above their simulations have the same law; what differs is the cost
where an update of the belief is dear, since BAUCT pays one at every simulated step. With independent rows it is not,
BAMCP draws in this very way too, and both give the same numbers from the same seed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from bamdp._kernels.random import below, uniform
from bamdp._kernels.rows import Rows
from bamdp._parameters import choice
from bamdp.beliefs import verbs
from bamdp.beliefs.belief import Belief
from bamdp.beliefs.kernels import empty_rows
from bamdp.beliefs.verbs import NO_ROOM
from bamdp.planners.shared.tree_search import (
    Predictive,
    TreeSearch,
    begin_simulation,
    finish_simulation,
    move,
)

ROOT_SAMPLING = ("auto", "rows", "predictive")
ENTRIES_PER_STEP = 16  # room to begin with
NOT_YET_DRAWN = -1
SHARED_CHOICE, N_DRAWN, END = 0, 1, 2  # entries of DrawnRows.now


class DrawnRows(NamedTuple):
    """A model of the root's posterior, as far as the simulation has looked at it."""

    rows: Rows  # rewards are not used
    drawn: np.ndarray  # int64 [D]: which rows have been drawn
    now: np.ndarray  # int64 [3]: what the rows share, how many rows were drawn, used entries

    def with_more_room(self) -> DrawnRows:
        """Return rows with room for four times as many entries."""
        return self._replace(rows=empty_rows(len(self.rows.reward), 4 * len(self.rows.index)))


@begin_simulation.register(DrawnRows)
def _begin(world, belief, rng):
    world.now[SHARED_CHOICE] = verbs.choose(belief.transitions, rng)
    world.now[N_DRAWN] = 0
    world.now[END] = 0


@move.register(DrawnRows)
def _move(world, belief, row, rng):
    rows = world.rows
    if rows.span[row, 0] == NOT_YET_DRAWN:
        at, choice = world.now[END], world.now[SHARED_CHOICE]
        end, background = verbs.sample_row(belief.transitions, choice, row, rows.index, rows.prob, at, rng)
        if end == NO_ROOM:
            return np.int64(NO_ROOM)
        rows.span[row, 0] = at
        rows.span[row, 1] = end
        rows.background[row] = background
        world.drawn[world.now[N_DRAWN]] = row
        world.now[N_DRAWN] += 1
        world.now[END] = end
    x = uniform(rng)
    possible = NOT_YET_DRAWN
    for i in range(rows.span[row, 0], rows.span[row, 1]):
        x -= rows.prob[i]
        if x < 0.0:
            return np.int64(rows.index[i])
        if rows.prob[i] > 0.0:
            possible = i
    if rows.background[row] > 0.0 or possible == NOT_YET_DRAWN:
        return np.int64(below(rng, belief.space.terminal.shape[0]))
    return np.int64(rows.index[possible])  # rounding


@finish_simulation.register(DrawnRows)
def _finish(world, belief, n):
    for i in range(world.now[N_DRAWN]):
        world.rows.span[world.drawn[i], 0] = NOT_YET_DRAWN


@dataclass(frozen=True, kw_only=True)
class BAMCP(TreeSearch):
    """Bayes-adaptive Monte Carlo planning.

    Parameters
    ----------
    n_simulations
        Simulations at every step.
    time_limit
        Instead: seconds of simulating at every step. Plans are then not reproducible, and say so.
    depth
        Steps of a simulation, tree and rollout together; ``"auto"`` is int(log 0.01 / log γ).
    exploration
        c of UCT. It is added to returns, so the range of the rewards matters.
    epsilon, learning_rate
        Of the rollout policy: ε-greedy for a Q-learner fed by real transitions.
    learn_from_simulations
        Feed it with the simulated ones as well.
    reuse_tree
        Keep the part of the tree that a real transition has made true.
    root_sampling
        How the model is drawn, ``"auto"``, ``"rows"`` or ``"predictive"``: a matter of speed, see the module.

    Examples
    --------
    >>> BAMCP(n_simulations=10_000, depth=50).exploration
    3.0
    """

    root_sampling: str = choice("auto", ROOT_SAMPLING)

    def _world(self, belief: Belief, depth: int) -> Any:
        shared = belief.rewards.shares_weights
        if shared and self.root_sampling == "rows":
            raise ValueError(
                'root_sampling="rows" cannot draw the rewards that come with a finite set of models; use "auto" '
                'or "predictive", which have the same law'
            )
        weighted = not belief.transitions.independent_rows and not shared
        if self.root_sampling == "rows" or (self.root_sampling == "auto" and weighted):
            rows = empty_rows(belief.n_states * belief.n_actions, ENTRIES_PER_STEP * depth)
            return DrawnRows(rows, drawn=np.zeros(depth, np.int64), now=np.zeros(3, np.int64))
        return Predictive()


@dataclass(frozen=True, kw_only=True)
class BAUCT(TreeSearch):
    """UCT in the belief MDP.

    Parameters as for :class:`BAMCP`, without root sampling.

    Examples
    --------
    >>> BAUCT(n_simulations=500, depth=15).exploration
    3.0
    """

    def _world(self, belief: Belief, depth: int) -> Predictive:
        return Predictive()
