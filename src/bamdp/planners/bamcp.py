"""BAMCP and BAUCT: Bayes-adaptive Monte Carlo planning (Guez, Silver & Dayan, NIPS 2012; JAIR 48, 2013).

UCT over histories. Each simulation starts at the root and

* takes argmax_a Q(h, a) + c √(log N(h) / N(h, a)) in previously visited nodes, trying untried actions first and
  breaking ties at random;
* draws a next state and moves to the child (h, a, s');
* adds a node for the first history that is not yet in the tree, then follows the rollout policy to the depth limit or a
  terminal state;
* updates every visited node with its discounted return: N += 1, Q += (return − Q) / N.

The depth limit applies to tree and rollout together; beyond it the value is 0. When the tree reaches TREE_BYTES bytes
it stops growing, and simulations continue below it with rollouts. The rollout policy is ε-greedy with respect to a
Q-table learned from real transitions by Q-learning, with ties broken at random.

The belief is never updated inside the tree: each simulation samples one model from the *root's* posterior and uses it
throughout, drawing rows of the model only when it reaches them. Conditioning is implicit: the simulations that reach a
history are those whose models produced it.

**One distribution, two ways to sample it.** Let μ ~ β and s' ~ μ(· | s, a) along a simulation. By the chain rule, for
*every* belief, the distribution of the path is the product of the predictives, each conditional on all previous steps:
P(s_1..s_n) = ∏ ν(s_{i+1} | s_i, a_i; β, the transitions before i). Hence a path in a model drawn at the root and a path
whose next states come from a belief updated along the way have the same distribution. A simulation observes nothing of
the model except its path, so the two are equivalent. ``root_sampling`` selects one:

* ``"rows"``: the definition as written. The quantity shared by all rows is drawn first (``choose``: a model of a finite
  set, a component of a mixture), then rows are drawn on demand from the posterior given that choice.
* ``"predictive"``: update the belief along the simulation and undo all updates at the end. For independent rows this
  costs a few nanoseconds per step, whereas drawing a posterior row takes one gamma variate per outcome.
* ``"auto"``: rows for beliefs with weights over alternatives (FiniteModels, Mixture), whose updates are expensive and
  whose rows are cheap; predictive otherwise.

By the same argument, unknown rewards are drawn from their predictive along the simulation. They are part of the
history: a child represents (a, s', r) if a transition has finitely many possible rewards. With continuous rewards (such
as Normal), every reward would create its own child and no node would ever be revisited, so r is left out. The belief
still learns from it along the simulation, but actions in the tree do not depend on it, which departs from the
Bayes-optimal plan. If the belief over rewards shares its weights with the one over transitions (FiniteModels with
rewards of their own), ``"rows"`` would break that coupling, so it is rejected, and ``"auto"`` selects predictive.

Guarantee: for rewards that are known or have finitely many outcomes, Q at the root converges in probability to the
Bayes-optimal value for the horizon ``depth`` (Theorem 1 of the paper).

Departures: the authors' program creates a node on the second visit of (h, a) and starts it with a random action. Here,
as in the paper's pseudocode, the first visit creates the node and the rollout policy chooses its first action. The
bonus is the paper's c √(log N(h) / N(h, a)), whereas the program uses log(N(h) + 1).

**BAUCT** is UCT in the belief MDP, with the posterior updated along every branch. The belief is part of the state: from
(s, β), action ``a`` leads to s' ~ ν_β(· | s, a) with reward r ~ τ_β, and β is conditioned on (s, a, r, s'). BAUCT
applies UCT (Kocsis & Szepesvári 2006; called BA-UCT by Guez, Silver & Dayan 2012) to this MDP, drawing next states from
the predictive under the counts of the branch, both in the tree and in the rollout below it. A history determines its
belief, so nodes are histories.

Guarantee: for rewards that are known or have finitely many outcomes, Q at the root converges to the Bayes-optimal value
for the horizon ``depth`` as the number of simulations grows (consistency of UCT, applied to the belief MDP).

Departures: rollouts, their Q-learner and the first action of a new node are those of BAMCP, so the two differ only in
how next states are drawn. As shown above, their simulations have the same distribution. BAUCT updates the belief at
every simulated step, so it costs more if updates are expensive. With independent rows, updates are cheap; BAMCP then
samples the same way, and both give identical results for the same seed.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

import bamdp.beliefs.verbs as verbs
import bamdp.planners.tree as trees
from bamdp._kernels.jit import kernel, primitive, zeros
from bamdp._kernels.random import below, uniform
from bamdp._kernels.rows import ANYWHERE, Rows, draw_next
from bamdp._parameters import choice, positive_number, real_number, whole_number
from bamdp.beliefs.belief import Belief
from bamdp.beliefs.kernels import empty_rows
from bamdp.planners.base import (
    Cost,
    Plan,
    Transition,
    any_best,
    candidates,
    enumerable_rewards,
    estimate,
    spread_of,
)
from bamdp.planners.tree import COUNT, NO_NODE, NODES, ROOT, HistoryPlanner, HistoryTree

ROOT_SAMPLING = ("auto", "rows", "predictive")
CALL_STEPS = 4_000_000  # maximum steps of a kernel call, a few tenths of a second: Ctrl-C waits for it
FIRST_BATCH = 16  # simulations before the first check of the clock
ACCURACY = 0.01  # depth "auto": γ^depth is about this
TREE_BYTES = 64_000_000  # maximum size of a tree
NOT_YET_DRAWN = -1
SHARED_CHOICE, N_DRAWN, END = 0, 1, 2  # entries of DrawnRows.now


class DrawnRows(NamedTuple):
    """The rows of a model from the root's posterior that the simulation has visited."""

    rows: Rows  # rewards are not used
    drawn: Annotated[np.ndarray, "int64 [D]"]  # which rows have been drawn
    now: Annotated[np.ndarray, "int64 [3]"]  # shared choice, number of drawn rows, used entries


class UCTParams(NamedTuple):
    """Parameters that stay fixed between simulations."""

    discount: float
    exploration: float  # c
    depth: int
    by_reward: bool  # rewards are part of the history


class Path(NamedTuple):
    """The in-tree part of a simulation, and the sum of squared returns of each action at the root."""

    step: Annotated[np.ndarray, "int64 [D, 2]"]  # node and action
    reward: Annotated[np.ndarray, "float64 [D]"]
    squares: Annotated[np.ndarray, "float64 [A]"]


# --- simulations ---------------------------------------------------------------------------------------------

_COUNTS = np.arange(1.0, 4097.0)
_ROOT_LOG = np.concatenate([[0.0], np.sqrt(np.log(_COUNTS))])
_INVERSE_ROOT = np.concatenate([[0.0], 1.0 / np.sqrt(_COUNTS)])


@primitive
def root_log(n):
    """Return √log n, from a table for small n, which covers most nodes."""
    return _ROOT_LOG[n] if n < _ROOT_LOG.shape[0] else math.sqrt(math.log(n))


@primitive
def inverse_root(n):
    """Return 1/√n."""
    return _INVERSE_ROOT[n] if n < _INVERSE_ROOT.shape[0] else 1.0 / math.sqrt(n)


@primitive
def ucb_action(tree, space, node, s, exploration, rng):
    """Return argmax of Q + c √(log N / N_a); untried actions come first, ties are broken at random."""
    scale = exploration * root_log(tree.node[node, COUNT])
    best, action, ties = -np.inf, 0, 1
    for a in range(tree.tries.shape[1]):
        if not space.allowed[s, a]:
            continue
        n = tree.tries[node, a]
        score = tree.value[node, a] + scale * inverse_root(n) if n > 0 else np.inf
        if score > best:
            best, action, ties = score, a, 1
        elif score == best:
            ties += 1
            if below(rng, ties) == 0:
                action = a
    return action


@primitive
def rollout_action(policy, s, rng):
    """Draw an ε-greedy action, comparing with every bound to avoid mispredicted branches."""
    u = uniform(rng)
    a = 0
    for b in range(policy.shape[1]):
        a += np.int64(u >= policy[s, b])
    return a


@primitive
def _draw_from_model(model, belief, row, rng):
    """Draw a next state from a row of the sampled model, drawing the row first if necessary."""
    rows = model.rows
    if rows.span[row, 0] == NOT_YET_DRAWN:
        at, shared = model.now[END], model.now[SHARED_CHOICE]
        end, background = verbs.sample_row(belief.transitions, shared, row, rows.index, rows.prob, at, rng)
        rows.span[row, 0] = at
        rows.span[row, 1] = end
        rows.background[row] = background
        model.drawn[model.now[N_DRAWN]] = row
        model.now[N_DRAWN] += 1
        model.now[END] = end
    s2 = draw_next(rows, row, rng)
    return np.int64(below(rng, belief.space.terminal.shape[0])) if s2 == ANYWHERE else s2


@primitive
def _begin_model(model, belief, rng):
    """Start a new model: draw the choice shared by all rows, but no rows."""
    for i in range(model.now[N_DRAWN]):
        model.rows.span[model.drawn[i], 0] = NOT_YET_DRAWN
    model.now[SHARED_CHOICE] = verbs.choose(belief.transitions, rng)
    model.now[N_DRAWN] = 0
    model.now[END] = 0


@kernel
def simulate_histories(belief, model, params, tree, path, policy, s, n, rng):
    """Run ``n`` simulations from state ``s`` at the root.

    ``model`` is a DrawnRows, or None to draw next states from the predictive. ``policy``, float64 [S, A - 1], holds the
    cumulative probabilities of the rollout policy, that is, of taking one of the actions 0..a.
    """
    space, R, discount = belief.space, belief.rewards, params.discount
    n_actions = space.allowed.shape[1]
    for _ in range(n):
        if model is not None:
            _begin_model(model, belief, rng)
        t, node, d, inside = s, np.int64(ROOT), 0, 0
        total, weight = 0.0, 1.0
        while d < params.depth and not space.terminal[t]:
            # UCB in previously visited nodes, the rollout policy in new ones and below the tree
            fresh = node == NO_NODE or tree.node[node, COUNT] == 0
            if fresh:
                a = rollout_action(policy, t, rng)
            else:
                a = ucb_action(tree, space, node, t, params.exploration, rng)
            # a simulated transition, pushed onto the belief until the end of the simulation
            row = t * n_actions + a
            if model is None:
                t = verbs.advance(belief.transitions, row, rng)
            else:
                t = _draw_from_model(model, belief, row, rng)
            r = verbs.draw_reward(R, row, t, rng)
            verbs.push_reward(R, row, t, r)
            d += 1
            if node == NO_NODE:  # below the tree
                total += weight * r
                weight *= discount
                continue
            path.step[inside, 0] = node
            path.step[inside, 1] = a
            path.reward[inside] = r
            inside += 1
            if fresh or d == params.depth or space.terminal[t]:
                node = np.int64(NO_NODE)
            else:
                node = _child(tree, node, a, t, r, params.by_reward)
        for _ in range(d):
            verbs.pop_reward(R)
            if model is None:
                verbs.pop(belief.transitions)
        _back_up(tree, path, inside, total, discount)


@primitive
def _child(tree, parent, a, s, r, by_reward):
    """Return the child (a, s, r) of a node, creating it if necessary, or NO_NODE if the tree is full."""
    child = trees.find_child(tree, parent, a, s, r, by_reward)
    if child == NO_NODE and tree.used[NODES] < tree.reward.shape[0]:
        child = trees.append_node(tree, parent, a, s, r)
        trees.open_node(tree, child, 0.0)
    return child


@primitive
def _back_up(tree, path, inside, value, discount):
    """Back up the return along the path, from the last node to the root."""
    for i in range(inside - 1, -1, -1):
        node, a = path.step[i, 0], path.step[i, 1]
        value = path.reward[i] + discount * value
        tree.node[node, COUNT] += 1
        tree.tries[node, a] += 1
        tree.value[node, a] += (value - tree.value[node, a]) / tree.tries[node, a]
        if i == 0:
            path.squares[a] += value * value


@kernel
def _begin_search(tree, s):
    trees.open_node(tree, trees.plant_root(tree, s), 0.0)


def rollout_policy(q: NDArray[np.float64], allowed: NDArray[np.bool_], epsilon: float) -> NDArray[np.float64]:
    """Return cumulative action probabilities, [..., A - 1]; greedy actions share their probability equally."""
    best = np.where(allowed, q, -np.inf).max(axis=-1, keepdims=True)
    greedy = allowed & (q == best)
    n_allowed, n_greedy = (np.maximum(1, x.sum(axis=-1, keepdims=True)) for x in (allowed, greedy))
    below = (epsilon * allowed / n_allowed + (1.0 - epsilon) * greedy / n_greedy).cumsum(axis=-1)
    last = allowed[..., ::-1].cumsum(axis=-1)[..., ::-1] <= allowed  # no later action exists
    return np.where(last, 1.0, below)[..., :-1]


# --- the planners --------------------------------------------------------------------------------------------


@dataclass
class UCTMemory:
    """The rollout learner and the search buffers."""

    tree: HistoryTree
    path: Path
    params: UCTParams
    model: DrawnRows | None
    q: np.ndarray  # float64 [S, A]
    policy: np.ndarray  # float64 [S, A - 1]: see :func:`simulate_histories`


@dataclass(frozen=True, kw_only=True)
class BAUCT(HistoryPlanner):
    """UCT in the belief MDP.

    The parameters are those of :class:`BAMCP`, without ``root_sampling``.

    Examples
    --------
    >>> BAUCT(n_simulations=500, depth=15).exploration
    3.0
    """

    keeps: ClassVar[tuple[str, ...]] = ("q",)

    n_simulations: int = whole_number(1000)
    time_limit: float | None = positive_number(None)
    depth: int | str = whole_number("auto", names=["auto"])
    exploration: float = real_number(3.0, low=0.0)
    epsilon: float = real_number(0.5, low=0.0, high=1.0)
    learning_rate: float = real_number(0.2, low=0.0, high=1.0)

    def _depth(self, discount: float) -> int:
        return auto_depth(discount) if isinstance(self.depth, str) else self.depth

    def cost(self, n_states: int, n_actions: int, discount: float) -> Cost:
        depth = float(self._depth(discount))
        steps, tree = self.n_simulations * depth, min(TREE_BYTES, self.n_simulations * node_bytes(n_actions))
        cost = estimate(n_states, n_actions, models=0.0, steps=steps, bytes=64.0 * depth + tree)
        return cost if self.time_limit is None else cost._replace(seconds=self.time_limit)

    def start(self, belief: Belief, discount: float) -> UCTMemory:
        S, A, depth = belief.n_states, belief.n_actions, self._depth(discount)
        by_reward = enumerable_rewards(belief) and belief.rewards.n_outcomes > 1
        most = max(2, TREE_BYTES // node_bytes(A))
        n_nodes = most if self.time_limit is not None else min(most, self.n_simulations + 1)
        q = np.zeros((S, A))
        return UCTMemory(
            tree=zeros(HistoryTree, M=n_nodes, A=A),
            path=zeros(Path, D=depth, A=A),
            params=UCTParams(discount, float(self.exploration), depth, by_reward),
            model=self._model(belief, depth),
            q=q,
            policy=rollout_policy(q, belief.space.allowed, self.epsilon),
        )

    def _model(self, belief: Belief, depth: int) -> DrawnRows | None:
        """Return a buffer for the sampled model, or None to use the predictive."""
        return None

    def act(self, memory: UCTMemory, belief: Belief, state: int, rng: np.ndarray) -> int:
        return self._search(memory, belief, state, rng)[0]

    def plan(self, memory: UCTMemory, belief: Belief, state: int, rng: np.ndarray) -> Plan:
        action, done = self._search(memory, belief, state, rng)
        tree, actions = memory.tree, np.flatnonzero(belief.space.allowed[state])
        counts = tree.tries[ROOT, actions]
        values = np.where(counts > 0, tree.value[ROOT, actions], np.nan)
        spreads = spread_of(counts, values, memory.path.squares[actions])
        details = {"simulations": done, "nodes": int(tree.used[NODES]), "depth": memory.params.depth}
        weighed = candidates(actions, values, spreads, counts)
        return Plan(action, float(tree.value[ROOT, action]), weighed, self.time_limit is None, details)

    def shown(self, memory: UCTMemory, belief: Belief) -> tuple[Any, ...]:
        """Return the tree, in which the value of a history is its mean return.

        The count of a choice includes simulations that ended above its children (at a newly added history or at the
        depth limit), so the shares of the children may sum to less than 1. A history first reached by the very last
        simulation has been added but not searched, so its count is 0.
        """
        tree, n = memory.tree, int(memory.tree.used[NODES])
        tries, q = tree.tries[:n], tree.value[:n]
        with np.errstate(invalid="ignore"):
            mean = (tries * q).sum(axis=1) / tree.node[:n, COUNT]
        if not (memory.params.by_reward or belief.rewards.certain):
            tree = tree._replace(reward=np.full(n, np.nan))
        return tree, mean, np.where(tries > 0, q, np.nan), tries

    def _search(self, memory: UCTMemory, belief: Belief, state: int, rng: np.ndarray) -> tuple[int, int]:
        """Grow a tree from ``state``; return the action with the highest mean return and the number of simulations."""
        tree, depth, limit = memory.tree, memory.params.depth, self.time_limit
        belief.call(_begin_search, tree, state)
        memory.path.squares[:] = 0.0
        belief.reserve(depth)
        given = memory.model, memory.params, tree, memory.path, memory.policy, state
        start, most = time.perf_counter(), max(1, CALL_STEPS // depth)
        done, batch = 0, self.n_simulations if limit is None else FIRST_BATCH
        while batch > 0:
            batch = min(batch, most)
            belief.call(simulate_histories, belief.arrays, *given, batch, rng)
            done += batch
            spent = time.perf_counter() - start
            if limit is None:
                batch = self.n_simulations - done
            else:
                batch = (
                    max(1, min(2 * batch, int(0.5 * done / spent * (limit - spent)))) if spent < limit else 0
                )
        values = np.where(tree.tries[ROOT] > 0, tree.value[ROOT], np.nan)
        return int(any_best(values, rng)), done

    def learn(self, memory: UCTMemory, belief: Belief, seen: Transition) -> None:
        s, a, r, s2, _ = seen
        q, space = memory.q, belief.space
        future = 0.0 if space.terminal[s2] else q[s2, space.allowed[s2]].max()
        q[s, a] += self.learning_rate * (r + memory.params.discount * future - q[s, a])
        memory.policy[s] = rollout_policy(q[s], space.allowed[s], self.epsilon)

    def relearn(self, memory: UCTMemory, belief: Belief, arrays: Any) -> None:
        super().relearn(memory, belief, arrays)
        self.on_space_changed(memory, belief)

    def on_space_changed(self, memory: UCTMemory, belief: Belief) -> None:
        memory.policy[:] = rollout_policy(memory.q, belief.space.allowed, self.epsilon)


@dataclass(frozen=True, kw_only=True)
class BAMCP(BAUCT):
    """Bayes-adaptive Monte Carlo planning.

    Parameters
    ----------
    n_simulations
        Number of simulations per step.
    time_limit
        Alternative budget, in seconds per step. Plans are then not reproducible and are marked as such.
    depth
        Number of steps per simulation, counting tree and rollout together; ``"auto"`` is int(log 0.01 / log γ).
    exploration
        c of UCT. Choose it relative to the scale of the returns.
    epsilon, learning_rate
        Parameters of the rollout policy, which is ε-greedy for a Q-learner trained on real transitions.
    root_sampling
        How the model is sampled: ``"auto"``, ``"rows"`` or ``"predictive"``. It only affects speed; see the module
        docstring.

    Examples
    --------
    >>> BAMCP(n_simulations=10_000, depth=50).exploration
    3.0
    """

    root_sampling: str = choice("auto", ROOT_SAMPLING)

    def _model(self, belief: Belief, depth: int) -> DrawnRows | None:
        shared = belief.rewards.shares_weights
        if shared and self.root_sampling == "rows":
            raise ValueError('root_sampling="rows" cannot draw rewards that come with models; use "auto"')
        weighted = not belief.transitions.independent_rows and not shared
        if self.root_sampling == "predictive" or (self.root_sampling == "auto" and not weighted):
            return None
        n_rows = belief.n_states * belief.n_actions
        capacity = min(depth, n_rows) * int(verbs.most_entries(belief.transitions, belief.n_states))
        return zeros(DrawnRows, rows=empty_rows(n_rows, capacity + belief.n_states + 1), D=depth)


def auto_depth(discount: float) -> int:
    """Return the depth at which the discount weight drops to about ACCURACY: 89 for γ = 0.95."""
    return max(1, int(math.log(ACCURACY) / math.log(discount))) if discount > 0.0 else 1


def node_bytes(n_actions: int) -> int:
    """Return the size of a node in bytes."""
    return 8 * (7 + 3 * n_actions)
