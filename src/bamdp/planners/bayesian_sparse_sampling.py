"""Bayesian sparse sampling (Wang, Lizotte, Bowling & Schuurmans 2005): a lookahead tree grown where it is promising.

Sparse sampling tries every action at every node. Here a tree of hyper-states is grown by ``n_trajectories`` descents
from the root, which choose actions by Thompson sampling:

    at a decision node (s, β)   draw a model μ ~ β and take the action that is optimal for μ in s
    at its outcome node (s, β, a)  draw r, s' from the predictive; go to the child of that outcome, or,
                                   if there is none yet, create it as a new leaf, where the descent ends

A descent also ends at the depth limit and in terminal states. Values are then backed up from the leaves:

    V(leaf) = optimal value of the mean model of the leaf's belief        (0 in terminal states)
    Q(ω, a) = average of r + γ V(ω') over the draws of the outcome node
    V(ω)    = max of Q(ω, a) over the actions tried at ω

The agent takes the best action at the root. The tree is therefore deep where actions look promising under the
posterior. No performance bound is known. An action that is optimal in no model is never tried. Unlike sparse sampling,
the method therefore need not converge to the Bayes-optimal action if that action is useful only for gathering
information. If every action can be optimal, V(root) with ``leaf="horizon"`` converges to the exact value for ``depth``
steps (:mod:`bamdp.planners.fhts`) as ``n_trajectories`` and ``width`` grow.

Departures from the original, which targets undiscounted, finite-horizon problems such as bandits: it selects actions by
Thompson sampling from the node's belief, stops when a budget is exhausted, averages over sampled outcomes, maximises
over actions and values a childless node at depth d of D at (D−d) times the greatest expected reward, that is, at the
value of acting greedily to the end. Here

- actions are optimal for the sampled *MDP* with discount γ (in a bandit, this is the original rule);
- the value of acting greedily is replaced by the optimal discounted value of the mean model, either over an infinite
  horizon (``leaf="mean"``) or for the steps left until the depth limit (``leaf="horizon"``; in a bandit, this is the
  discounted version of the original rule);
- the budget counts descents, each of which adds at most one node;
- equal outcomes share a child, and once an outcome node has ``width`` draws, further descents choose one of them
  uniformly instead of sampling. Without this limit, a tree over many states would never grow deep.

Reference: T. Wang, D. Lizotte, M. Bowling, D. Schuurmans, "Bayesian sparse sampling for on-line reward
optimization", ICML 2005.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

import bamdp.beliefs.verbs as verbs
import bamdp.planners.tree as trees
from bamdp._kernels.jit import inner, kernel, zeros
from bamdp._kernels.random import below
from bamdp._kernels.rows import improve
from bamdp._kernels.solve import solve
from bamdp._parameters import choice, positive_number, whole_number
from bamdp.beliefs.belief import Belief
from bamdp.beliefs.kernels import mean_model, push_step, sample_model, undo_steps
from bamdp.planners.base import OUTCOME_STEPS, Cost, Plan, candidates, estimate, spread_of
from bamdp.planners.shared.workspace import Workspace, workspace_for
from bamdp.planners.tree import NO_NODE, NODES, ROOT, HistoryPlanner, HistoryTree

OUTCOME_LEAVES = ("mean", "horizon")


class OutcomeTreeParams(NamedTuple):
    """Parameters that stay fixed between searches."""

    discount: float
    tol: float
    depth: int
    width: int
    horizon: int | None  # steps from the root for which leaves are valued; None if infinite


@kernel
def grow_outcomes(belief, workspace, params, tree, worth, s, n, rng):
    """Grow a tree from state ``s`` by ``n`` descents.

    The COUNT of a node is the number of draws of its outcome, ``tries`` that of an action. ``worth``, float64 [M],
    holds node values: this function sets those of leaves, and :func:`back_up_outcomes` sets all of them.
    """
    trees.open_node(tree, trees.plant_root(tree, s), 0.0)
    worth[ROOT] = 0.0
    for _ in range(n):
        node = np.int64(ROOT)
        fresh = False
        while not fresh and tree.node[node, trees.DEPTH] < params.depth:
            if belief.space.terminal[tree.node[node, trees.STATE]]:
                break
            size = tree.used[NODES]
            node = _descend(belief, workspace, params, tree, node, rng)
            fresh = tree.used[NODES] > size
        if fresh:
            trees.open_node(tree, node, 0.0)
            worth[node] = 0.0
            if not belief.space.terminal[tree.node[node, trees.STATE]]:
                worth[node] = _leaf_value(belief, workspace, params, params.horizon, tree, node)
        undo_steps(belief, tree.node[node, trees.DEPTH])


@inner
def _descend(belief, workspace, params, tree, node, rng):
    """Move to an outcome of the action that is optimal for a sampled model and return its node."""
    T, R, rows, solver = belief.transitions, belief.rewards, workspace.rows, workspace.solver
    s = tree.node[node, trees.STATE]
    sample_model(belief, rows, rng)
    solve(rows, belief.space, params.discount, params.tol, solver, True)
    a = np.int64(solver.policy[s])
    row = s * belief.space.allowed.shape[1] + a
    if tree.tries[node, a] == params.width:  # enough draws: choose one of them
        left = below(rng, params.width)
        child = tree.child[node, a]
        while left >= tree.node[child, trees.COUNT]:
            left -= tree.node[child, trees.COUNT]
            child = tree.node[child, trees.SIBLING]
        push_step(belief, row, tree.node[child, trees.STATE], tree.reward[child])
        return child
    s2 = np.int64(verbs.advance(T, row, rng))
    r = verbs.draw_reward(R, row, s2, rng)
    verbs.push_reward(R, row, s2, r)
    child = trees.find_child(tree, node, a, s2, r, True)
    if child == NO_NODE:
        child = trees.append_node(tree, node, a, s2, r)
    tree.node[child, trees.COUNT] += 1
    tree.tries[node, a] += 1
    return child


@inner
def _leaf_value(belief, workspace, params, horizon, tree, node):
    """Return the value of a new leaf under the mean model of its belief; ``horizon`` None means infinite."""
    rows, solver, discount = workspace.rows, workspace.leaf_solver, params.discount
    mean_model(belief, rows)
    values, scratch = solver.values, solver.scratch
    if horizon is None:
        solve(rows, belief.space, discount, params.tol, solver, False)
    else:
        for t in range(values.shape[0]):
            values[t] = 0.0
        for _ in range(horizon - tree.node[node, trees.DEPTH]):
            improve(rows, belief.space, discount, values, scratch, solver.policy)
            for t in range(values.shape[0]):
                values[t] = scratch[t]
    return values[tree.node[node, trees.STATE]]


@kernel
def back_up_outcomes(tree, worth, squares, discount):
    """Back up ``worth`` and Q from the last node to the root; write the root's sums of squared returns, [A]."""
    for a in range(squares.shape[0]):
        squares[a] = 0.0
    for node in range(tree.used[NODES] - 1, -1, -1):
        best = -np.inf
        for a in range(tree.tries.shape[1]):
            if tree.tries[node, a] > 0:
                tree.value[node, a] /= tree.tries[node, a]
                best = max(best, tree.value[node, a])
        if best > -np.inf:
            worth[node] = best
        if node != ROOT:
            parent, a = tree.node[node, trees.PARENT], tree.node[node, trees.ACTION]
            q = tree.reward[node] + discount * worth[node]
            tree.value[parent, a] += tree.node[node, trees.COUNT] * q
            if parent == ROOT:
                squares[a] += tree.node[node, trees.COUNT] * q * q


@dataclass
class OutcomeTreeMemory:
    """Buffers for the tree and for models; the solvers' values serve as warm starts."""

    workspace: Workspace
    params: OutcomeTreeParams
    tree: HistoryTree
    worth: np.ndarray  # float64 [M]
    squares: np.ndarray  # float64 [A]


@dataclass(frozen=True, kw_only=True)
class BayesianSparseSampling(HistoryPlanner):
    """A sparse lookahead tree grown by Thompson sampling.

    Parameters
    ----------
    n_trajectories
        Number of descents from the root, each of which adds at most one node.
    depth
        Maximum lookahead, in steps.
    width
        Maximum number of draws of next state and reward per action and node.
    leaf
        Value of a childless node: ``"mean"``, the optimal value of the mean model after the simulated updates;
        ``"horizon"``, the same for the steps left until the depth limit, hence 0 at the limit.
    tol
        Accuracy of the solutions of sampled and mean models, as in :class:`~bamdp.generators.PI`.

    Examples
    --------
    >>> import bamdp
    >>> env = bamdp.make_env("chain")
    >>> agent = bamdp.Agent(BayesianSparseSampling(n_trajectories=20), prior=bamdp.Dirichlet(),
    ...                     rewards=env.rewards, n_states=env.n_states, n_actions=env.n_actions,
    ...                     discount=0.95, seed=0)
    >>> agent.plan(0).details["nodes"] <= 21
    True
    """

    n_trajectories: int = whole_number(64)
    depth: int = whole_number(10)
    width: int = whole_number(8)
    leaf: str = choice("mean", OUTCOME_LEAVES)
    tol: float = positive_number(1e-3)

    def cost(self, n_states: int, n_actions: int, discount: float) -> Cost:
        steps = float(self.n_trajectories) * self.depth
        return estimate(n_states, n_actions, steps=OUTCOME_STEPS * steps, bytes=64.0 * steps)

    def start(self, belief: Belief, discount: float) -> OutcomeTreeMemory:
        n_nodes, horizon = self.n_trajectories + 1, self.depth if self.leaf == "horizon" else None
        return OutcomeTreeMemory(
            workspace_for(belief, leaves=True),
            OutcomeTreeParams(discount, float(self.tol), self.depth, self.width, horizon),
            zeros(HistoryTree, M=n_nodes, A=belief.n_actions),
            worth=np.zeros(n_nodes),
            squares=np.zeros(belief.n_actions),
        )

    def plan(self, memory: OutcomeTreeMemory, belief: Belief, state: int, rng: np.ndarray) -> Plan:
        params, tree, worth = memory.params, memory.tree, memory.worth
        given = params, tree, worth, state, self.n_trajectories
        belief.run(grow_outcomes, memory.workspace, *given, rng, depth=self.depth)
        belief.call(back_up_outcomes, tree, worth, memory.squares, params.discount)
        actions = np.flatnonzero(tree.tries[ROOT])
        n, q = tree.tries[ROOT, actions], tree.value[ROOT, actions]
        weighed = candidates(actions, q, spread_of(n, q, memory.squares[actions]), n)
        details = {"nodes": int(tree.used[NODES]), "depth": int(tree.used[trees.DEEPEST])}
        return Plan(int(actions[q.argmax()]), float(worth[ROOT]), weighed, details=details)

    def shown(self, memory: OutcomeTreeMemory, belief: Belief) -> tuple[Any, ...]:
        tree, n = memory.tree, int(memory.tree.used[NODES])
        q = np.where(tree.tries[:n] > 0, tree.value[:n], np.nan)
        return tree, memory.worth[:n], q, tree.tries[:n]
