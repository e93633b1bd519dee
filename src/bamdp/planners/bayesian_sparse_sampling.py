"""Bayesian sparse sampling (Wang, Lizotte, Bowling & Schuurmans 2005): a look-ahead tree grown where it pays.

Sparse sampling tries every action at every node. Here a tree of hyper-states is grown by descents from the root
that try the actions Thompson sampling would, ``n_trajectories`` times:

    at a decision node (s, β)   draw a model μ ~ β and take the action that is optimal for μ in s
    at its outcome node (s, β, a)  draw r, s' from the predictive; go to the child of that outcome, or,
                                   if there is none yet, make it: a new leaf, where the descent ends

(it ends at the depth limit and in terminal states, too). Then, from the leaves up,

    V(leaf) = optimal value of the mean model of the leaf's belief        (0 in terminal states)
    Q(ω, a) = average of r + γ V(ω') over the draws of the outcome node
    V(ω)    = max of Q(ω, a) over the actions tried at ω

and the agent takes the action that is best at the root. The tree is therefore deep where the posterior makes
actions look promising. No bound is known. An action that is optimal in no model is never tried, so, unlike
sparse sampling, more descents need not lead to the Bayes-optimal action where the best way to learn is an
action of no other use. Where every action may be optimal, V(root) with ``leaf="horizon"`` converges to the exact
value of ``depth`` steps (:mod:`bamdp.planners.fhts`) as ``n_trajectories`` and ``width`` grow.

What is the original's and what is not. The original was written for bandits and the like, undiscounted, with a
horizon: it draws the action by Thompson sampling from the node's belief, ends at a budget, averages over sampled
outcomes, maximises over actions, and values a childless node at d of D by (D−d) times the greatest expected
reward, that is, by acting greedily to the end. Here

- actions are optimal for the sampled *MDP* with the discount γ (in a bandit this is the original's rule);
- acting greedily to the end becomes the optimal value of the mean model: discounted, without end
  (``leaf="mean"``), or for the steps that are left to the depth limit (``leaf="horizon"``), which in a bandit is
  the original's rule, discounted;
- the budget counts descents, each of which adds at most one node;
- equal outcomes share a child, and an outcome node that has ``width`` draws is not drawn from again: one of its
  draws is chosen, each with the same probability. Without this limit a tree over many states would never
  get deep.

The published abstract and the pseudocode of the paper's baseline, sparse sampling with this leaf, were at hand
when this was written; the paper's full text was not.

Reference: T. Wang, D. Lizotte, M. Bowling, D. Schuurmans, "Bayesian sparse sampling for on-line reward
optimization", ICML 2005.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, NamedTuple

import numpy as np

from bamdp._kernels.bundles import zeros
from bamdp._kernels.jit import inner, kernel, primitive
from bamdp._kernels.random import below
from bamdp._kernels.solve import solve
from bamdp._kernels.sweeps import improve
from bamdp._parameters import choice, positive_number, whole_number
from bamdp.beliefs import verbs
from bamdp.beliefs.belief import Belief
from bamdp.beliefs.kernels import FULL, mean_model, sample_model, undo_steps
from bamdp.beliefs.verbs import DONE
from bamdp.planners.base import OUTCOME_STEPS, Candidate, Cost, Plan, Planner, estimate
from bamdp.planners.shared.workspace import Workspace, leaf_workspace_for
from bamdp.planners.tree import NO_NODE, ROOT, Tree, TreeBuilder

OUTCOME_LEAVES = ("mean", "horizon")
BY_MEAN_MODEL = OUTCOME_LEAVES.index("mean")


class OutcomeTreeParams(NamedTuple):
    """What does not change between searches."""

    discount: float
    tol: float
    depth: int
    width: int
    n_trajectories: int
    leaf: int  # an index of OUTCOME_LEAVES


class OutcomeTree(NamedTuple):
    """Decision nodes in the order in which they were made, root first. All arrays are written to."""

    state: Annotated[np.ndarray, "int64 [M]"]
    parent: Annotated[np.ndarray, "int64 [M]"]
    action: Annotated[np.ndarray, "int64 [M]"]  # the parent's action that led here
    reward: Annotated[np.ndarray, "float64 [M]"]  # received on the way
    times: Annotated[np.ndarray, "int64 [M]"]  # draws of this outcome
    sibling: Annotated[np.ndarray, "int64 [M]"]  # the next child of the same outcome node, or NO_NODE
    value: Annotated[np.ndarray, "float64 [M]"]  # of the leaf, after back_up of the node
    child: Annotated[np.ndarray, "int64 [M, A]"]  # first child by each action, or NO_NODE
    draws: Annotated[np.ndarray, "int64 [M, A]"]  # draws from each outcome node
    total: Annotated[np.ndarray, "float64 [M, A]"]  # sum of returns over the draws, for back_up
    squares: Annotated[np.ndarray, "float64 [A]"]  # sum of squared returns at the root
    size: Annotated[np.ndarray, "int64 [2]"]  # nodes made, greatest depth of one


@kernel
def grow_outcomes(belief, workspace, params, tree, s, rng):
    """Grow the tree from state ``s`` and back it up; returns DONE or FULL, the belief as it was."""
    T, R, space = belief.transitions, belief.rewards, belief.space
    rows, solver = workspace.rows, workspace.solver
    n_actions = space.allowed.shape[1]
    tree.size[0] = 0
    tree.size[1] = 0
    _add_node(tree, NO_NODE, 0, 0.0, s)
    for _ in range(params.n_trajectories):
        node, d = ROOT, 0
        status, fresh = DONE, False
        while not fresh and d < params.depth and not space.terminal[tree.state[node]]:
            # the action that is optimal for a sampled model
            if sample_model(belief, rows, rng) == FULL:
                status = FULL
                break
            solve(rows, space, params.discount, params.tol, solver, True)
            a = np.int64(solver.policy[tree.state[node]])
            row = tree.state[node] * n_actions + a
            # its outcome: drawn anew, or one of those that were drawn
            drawn = tree.draws[node, a] < params.width
            child = NO_NODE if drawn else _pick_child(tree, node, a, rng)
            s2 = np.int64(verbs.draw(T, row, rng)) if drawn else tree.state[child]
            verbs.push(T, row, s2)
            r = verbs.draw_reward(R, row, s2, rng) if drawn else tree.reward[child]
            verbs.push_reward(R, row, s2, r)
            d += 1
            if drawn:
                child = _find_child(tree, node, a, s2, r)
                if child == NO_NODE:
                    child = _add_node(tree, node, a, r, s2)
                    tree.size[1] = max(tree.size[1], d)
                    fresh = True
                tree.times[child] += 1
                tree.draws[node, a] += 1
            node = child
        if fresh and not space.terminal[tree.state[node]]:
            status = _value_leaf(belief, workspace, params, params.depth - d, tree, node)
        undo_steps(belief, d)
        if status == FULL:
            return FULL
    back_up_outcomes(tree, params.discount)
    return DONE


@primitive
def _add_node(tree, parent, a, r, s):
    """Add a decision node, the first child of its parent's action ``a``, and return it."""
    node = tree.size[0]
    tree.size[0] = node + 1
    tree.state[node] = s
    tree.parent[node] = parent
    tree.action[node] = a
    tree.reward[node] = r
    tree.times[node] = 0
    tree.value[node] = 0.0
    for b in range(tree.child.shape[1]):
        tree.child[node, b] = NO_NODE
        tree.draws[node, b] = 0
    if parent != NO_NODE:
        tree.sibling[node] = tree.child[parent, a]
        tree.child[parent, a] = node
    return node


@primitive
def _find_child(tree, node, a, s2, r):
    """Return the child of an outcome, or NO_NODE."""
    child = tree.child[node, a]
    while child != NO_NODE and (tree.state[child] != s2 or tree.reward[child] != r):
        child = tree.sibling[child]
    return child


@primitive
def _pick_child(tree, node, a, rng):
    """Draw the child of one of the draws of an outcome node, each with the same probability."""
    left = below(rng, tree.draws[node, a])
    child = tree.child[node, a]
    while left >= tree.times[child]:
        left -= tree.times[child]
        child = tree.sibling[child]
    return child


@inner
def _value_leaf(belief, workspace, params, steps, tree, node):
    """Value a new leaf, with ``steps`` to go to the depth limit, by the mean model of its belief."""
    rows, solver, discount = workspace.rows, workspace.leaf_solver, params.discount
    if mean_model(belief, rows) == FULL:
        return FULL
    values, scratch = solver.values, solver.scratch
    if params.leaf == BY_MEAN_MODEL:
        solve(rows, belief.space, discount, params.tol, solver, False)
    else:
        for t in range(values.shape[0]):
            values[t] = 0.0
        for _ in range(steps):
            improve(rows, belief.space, discount, values, scratch, solver.policy)
            for t in range(values.shape[0]):
                values[t] = scratch[t]
    tree.value[node] = values[tree.state[node]]
    return DONE


@inner
def back_up_outcomes(tree, discount):
    """Compute the values of all nodes: children are made after their parents, so one pass from the last to the root."""
    n_actions = tree.child.shape[1]
    for node in range(tree.size[0]):
        for a in range(n_actions):
            tree.total[node, a] = 0.0
    for a in range(n_actions):
        tree.squares[a] = 0.0
    for node in range(tree.size[0] - 1, -1, -1):
        best = -np.inf
        for a in range(n_actions):
            if tree.draws[node, a] > 0:
                best = max(best, tree.total[node, a] / tree.draws[node, a])
        if best > -np.inf:
            tree.value[node] = best
        if node != ROOT:
            q = tree.reward[node] + discount * tree.value[node]
            parent, a = tree.parent[node], tree.action[node]
            tree.total[parent, a] += tree.times[node] * q
            if parent == ROOT:
                tree.squares[a] += tree.times[node] * q * q


@dataclass
class OutcomeTreeMemory:
    """Room for the tree and for models; the solvers' values warm-start the next."""

    workspace: Workspace
    params: OutcomeTreeParams
    tree: OutcomeTree


@dataclass(frozen=True, kw_only=True)
class BayesianSparseSampling(Planner):
    """A sparse look-ahead tree grown by Thompson sampling.

    Parameters
    ----------
    n_trajectories
        Descents from the root, each adding at most one node.
    depth
        Steps to look ahead at most.
    width
        Draws of next state and reward for one action at one node, at most.
    leaf
        Value of a childless node: ``"mean"``, the optimal value of the mean model after the simulated updates;
        ``"horizon"``, the same for the steps left to the depth limit, and 0 there.
    tol
        Accuracy to which sampled and mean models are solved, as in :class:`~bamdp.generators.PI`.

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
        tree = zeros(OutcomeTree, M=self.n_trajectories + 1, A=belief.n_actions)
        leaf = OUTCOME_LEAVES.index(self.leaf)
        params = OutcomeTreeParams(
            discount, float(self.tol), self.depth, self.width, self.n_trajectories, leaf
        )
        return OutcomeTreeMemory(leaf_workspace_for(belief), params, tree)

    def act(self, memory: OutcomeTreeMemory, belief: Belief, state: int, rng: np.ndarray) -> int:
        belief.run(
            grow_outcomes, memory.workspace, memory.params, memory.tree, state, depth=self.depth, rng=rng
        )
        return max(self._candidates(memory), key=lambda c: c.value).action

    def plan(self, memory: OutcomeTreeMemory, belief: Belief, state: int, rng: np.ndarray) -> Plan:
        action = self.act(memory, belief, state, rng)
        tree = memory.tree
        details = {"nodes": int(tree.size[0]), "depth": int(tree.size[1])}
        return Plan(action, float(tree.value[ROOT]), tuple(self._candidates(memory)), details=details)

    def explain(self, memory: OutcomeTreeMemory, belief: Belief, state: int, rng: np.ndarray) -> Plan:
        plan = self.plan(memory, belief, state, rng)
        return replace(plan, tree=_view(memory.tree, plan))

    def _candidates(self, memory: OutcomeTreeMemory) -> list[Candidate]:
        """Return the actions tried at the root."""
        tree = memory.tree
        out = []
        for a in np.flatnonzero(tree.draws[ROOT]):
            n = int(tree.draws[ROOT, a])
            q = float(tree.total[ROOT, a]) / n
            variance = max(0.0, float(tree.squares[a]) / n - q * q)
            spread = (variance * n / (n - 1)) ** 0.5 if n > 1 else float("nan")
            out.append(Candidate(int(a), q, spread, n))
        return out


def _view(tree: OutcomeTree, plan: Plan) -> Tree:
    """Return the tree as it stands, with outcome nodes as choices."""
    builder = TreeBuilder()
    spreads = {c.action: c.spread for c in plan.candidates}
    place = {ROOT: builder.hyper_state(NO_NODE, int(tree.state[ROOT]), value=plan.value, count=1)}
    choices: dict[tuple[int, int], int] = {}
    for node in range(int(tree.size[0])):
        parent, a = int(tree.parent[node]), int(tree.action[node])
        if node != ROOT:
            n, r = int(tree.times[node]), float(tree.reward[node])
            share, value = n / int(tree.draws[parent, a]), float(tree.value[node])
            s2 = int(tree.state[node])
            place[node] = builder.step(choices[parent, a], s2, r, share=share, value=value, count=n)
        for b in np.flatnonzero(tree.draws[node]).tolist():
            n = int(tree.draws[node, b])
            spread = spreads[b] if node == ROOT else float("nan")
            value = float(tree.total[node, b]) / n
            choices[node, b] = builder.choice(place[node], b, value=value, spread=spread, count=n)
    return builder.finish(choices[ROOT, plan.action])
