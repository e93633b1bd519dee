"""DSS: deep, sparse sampling (Grover, Basu & Dimitrakakis, AISTATS 2020, Algorithm 2).

At a hyper-state ω = (s, β) after h stages,

    V_H(ω)    = leaf value (0 by default)
    Π_ω       = {P(μ_i) : μ_i ~ β, i = 1..N}                          policies of N sampled models  (line 6)
    Q(ω, π)   = 1/M Σ_{m=1..M} [ Σ_{k<K} γ^k r_k + γ^K V_{h+1}(ω_K) ]   lines 9 to 20
    V_h(ω)    = max_{π in Π_ω} Q(ω, π)

where along a sample a_k = π(s_k), s_{k+1} ~ ν(· | ω_k, a_k), r ~ τ(· | ω_k, a_k), and the belief is updated after every
simulated step (line 16). The agent follows the best policy π at the root.

Misprints in the paper are corrected: a_k = π(s_k) is evaluated at every step, not once; the recursion returns max_π Q,
and only the root returns the argmax; returns are discounted from the node (c = 1) with γ^K on the next stage, without
the additional factor c = γ^h. Terminal states end a sample with value 0.

The tree is traversed depth first using an explicit stack of H levels. Only one branch exists at a time, so steps are
pushed onto the belief along the branch and popped when backtracking. Each level stores a single policy, because the N
policies of a node are drawn one at a time from the same belief.

With more than ``WHOLE_MODELS`` states, a generator that reads few rows of a model (RTDP) receives models whose rows are
drawn on first access (:mod:`bamdp.generators.lazy`). The cost of a step then depends on the rows that its trials and
samples touch, not on the number of states.

With a pure-Python generator, the search stops whenever it needs a policy and resumes once it has one; its entire state
is on its stack. :mod:`bamdp.planners.sparse_sampling` is the same search with actions in place of policies.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np

import bamdp.planners.tree as trees
from bamdp._kernels.jit import kernel, primitive, zeros
from bamdp._parameters import choice, whole_number
from bamdp.beliefs.belief import Belief
from bamdp.beliefs.kernels import sample_model, simulate_step, undo_steps
from bamdp.generators import Generator, generate, generator_parameter, make_generator, python_policy
from bamdp.generators.lazy import N_TOUCHED, ROWS, ROWS_AHEAD, UNKNOWN, highest_reward, lazy_action, set_bound
from bamdp.generators.rtdp import ahead, generate_lazily
from bamdp.planners.base import Cost, Plan, Transition, candidates, estimate, n_branches
from bamdp.planners.shared.leaves import DSS_LEAVES, LEAF_HELP, leaf_value
from bamdp.planners.shared.workspace import Workspace, lazy_workspace_for, workspace_for
from bamdp.planners.tree import CHOICE_HERE, NO_NODE, NODE_HERE, TreePlanner, TreeRecord

WHOLE_MODELS = 1000  # maximum number of states for which complete models are drawn
STATE, TRIAL, SAMPLE, LENGTH = range(4)  # columns of DSSTree.at
DUE, GIVEN = -2, -1  # in SAMPLE: a policy is needed, was supplied
RETURN, Q_SUM, Q_SQUARES, BEST_Q = range(4)  # columns of DSSTree.sums
AT_ROOT = -1  # in DSSTree.level: start of the search


class DSSParams(NamedTuple):
    """Parameters that stay fixed between searches."""

    generator: Any  # parameters of the compiled policy generator; None for a pure-Python one
    leaf: int | None  # an index of DSS_LEAVES; None for 0
    discount: float
    n_policies: int  # N
    n_samples: int  # M
    n_steps: int  # K


class DSSTree(NamedTuple):
    """The stack, with one entry per stage and one for the leaf, and the results at the root."""

    level: Annotated[np.ndarray, "int64 [1]"]  # level at which to resume, or AT_ROOT
    at: Annotated[np.ndarray, "int64 [L, 4]"]  # STATE of the node, its TRIAL and SAMPLE, the sample's LENGTH
    sums: Annotated[np.ndarray, "float64 [L, 4]"]  # RETURN of the sample .. BEST_Q of the node
    policy: Annotated[np.ndarray, "int32 [H, W]"]  # current policies; W is S, or 0 if no policies are written
    action: Annotated[np.ndarray, "int32 [N]"]  # first action of each root policy
    value: Annotated[np.ndarray, "float64 [N]"]  # its Q
    spread: Annotated[np.ndarray, "float64 [N]"]  # standard deviation of its M samples
    best: Annotated[np.ndarray, "int32 [S]"]  # best root policy, UNKNOWN in unexplored states of its model


@kernel
def search(belief, workspace, params, tree, record, s, rng):
    """Run Algorithm 2 from state ``s``, or resume it; return False if it stops because it needs a policy.

    Fills the root arrays of ``tree`` and writes its nodes to ``record``, a TreeRecord or None. A completed search
    leaves the belief unchanged; a search that stops leaves the steps of the current branch in it.
    """
    rows, lazy, n_actions = workspace.rows, workspace.lazy, belief.space.allowed.shape[1]
    N, M, H = params.n_policies, params.n_samples, tree.policy.shape[0]
    last_discount = params.discount**params.n_steps
    h = tree.level[0]
    if h == AT_ROOT:
        h = np.int64(0)
        _enter(belief, rows, tree, h, s)
        if record is not None:
            trees.add_node(record, trees.HYPER_STATE, NO_NODE, s, NO_NODE, 1)
    while True:
        if h == H:  # lines 3 to 5
            s = tree.at[h, STATE]
            value = leaf_value(params.leaf, belief, rows, workspace.leaf_solver, params.discount, s, rng)
            h -= 1
        else:
            if tree.at[h, SAMPLE] == DUE and rows is not None and params.generator is None:
                tree.level[0] = h
                return False
            if tree.at[h, SAMPLE] == DUE:  # lines 6 to 8
                _draw_policy(belief, workspace, rows, lazy, params.generator, params.discount, tree, h, rng)
            if tree.at[h, SAMPLE] < 0:
                _begin_policy(belief, rows, lazy, params, tree, record, h, rng)
            if record is not None:
                branch = record.branch
                branch[h + 1, NODE_HERE] = trees.add_outcome(record, branch[h, CHOICE_HERE], 1.0 / M)
            s, k, total, weight = tree.at[h, STATE], 0, 0.0, 1.0
            while k < params.n_steps and not belief.space.terminal[np.uint64(s)]:  # lines 10 to 18
                a = _action(belief, rows, lazy, params.generator, params.discount, tree, h, s, rng)
                s, r = simulate_step(belief, s * n_actions + a, rng)
                total += weight * r
                if record is not None:
                    trees.add_step(record, record.branch[h + 1, NODE_HERE], s, r, weight)
                weight *= params.discount
                k += 1
            tree.at[h, LENGTH] = k
            tree.sums[h, RETURN] = total
            value = 0.0
            if not belief.space.terminal[s]:
                h += 1
                _enter(belief, rows, tree, h, s)
                continue
        while True:  # a sample of level h is complete, and possibly its policy and node
            undo_steps(belief, tree.at[h, LENGTH])
            tree.at[h, LENGTH] = 0
            if record is not None:
                trees.set_value(record, record.branch[h + 1, NODE_HERE], value, np.nan)
            q = tree.sums[h, RETURN] + last_discount * value  # line 19
            tree.sums[h, Q_SUM] += q
            tree.sums[h, Q_SQUARES] += q * q
            tree.at[h, SAMPLE] += 1
            if tree.at[h, SAMPLE] < M:
                break
            _finish_policy(belief, rows, lazy, params, tree, record, h, rng)  # line 20
            _turn_to(belief, rows, tree, h, tree.at[h, TRIAL] + 1)
            if tree.at[h, TRIAL] < N:
                break
            value = tree.sums[h, BEST_Q]  # line 22
            if h == 0:
                if record is not None:
                    trees.set_value(record, 0, value, np.nan)
                return True
            h -= 1


@primitive
def _enter(belief, rows, tree, h, s):
    """Start a node at level ``h``."""
    tree.at[h, STATE] = s
    tree.at[h, LENGTH] = 0
    tree.sums[h, BEST_Q] = -np.inf
    _turn_to(belief, rows, tree, h, 0)


@primitive
def _turn_to(belief, rows, tree, h, i):
    """Switch to the i-th policy, or to the first existing action from ``i`` on."""
    if rows is None:
        allowed = belief.space.allowed
        while i < allowed.shape[1] and not allowed[tree.at[h, STATE], i]:
            i += 1
    tree.at[h, TRIAL] = i
    tree.at[h, SAMPLE] = DUE


@primitive
def _draw_policy(belief, workspace, rows, lazy, generator, discount, tree, h, rng):
    """Draw a model and compute its policy for stage ``h``; no-op in sparse sampling."""
    if rows is None or generator is None:
        return
    elif lazy is None:
        s, policy = tree.at[h, STATE], workspace.solver.policy
        sample_model(belief, rows, rng)
        generate(generator, rows, belief.space, discount, s, workspace.solver, rng)
        for t in range(policy.shape[0]):
            tree.policy[h, t] = policy[t]
    else:
        generate_lazily(generator, lazy, belief, discount, h, tree.at[h, STATE], rng)


@primitive
def _action(belief, rows, lazy, generator, discount, tree, h, s, rng):
    """Return the action of stage ``h``'s policy in state ``s``."""
    if rows is None:
        return tree.at[h, TRIAL]
    elif lazy is None:
        return np.int64(tree.policy[np.uint64(h), np.uint64(s)])
    else:
        return lazy_action(lazy, belief, discount, ahead(generator), h, s, rng)


@primitive
def _begin_policy(belief, rows, lazy, params, tree, record, h, rng):
    """Start the samples of a policy."""
    tree.sums[h, Q_SUM] = 0.0
    tree.sums[h, Q_SQUARES] = 0.0
    tree.at[h, SAMPLE] = 0
    if record is not None:
        s = tree.at[h, STATE]
        a = _action(belief, rows, lazy, params.generator, params.discount, tree, h, s, rng)
        here = record.branch[h, NODE_HERE]
        record.branch[h, CHOICE_HERE] = trees.add_policy(record, here, s, a, params.n_samples)


@primitive
def _finish_policy(belief, rows, lazy, params, tree, record, h, rng):
    """Compare a policy whose M samples are complete with the best so far."""
    M, i, generator = params.n_samples, tree.at[h, TRIAL], params.generator
    q, spread = tree.sums[h, Q_SUM] / M, np.nan
    if M > 1:
        spread = np.sqrt(max(0.0, tree.sums[h, Q_SQUARES] / M - q * q) * M / (M - 1))
    if h == 0:
        s = tree.at[h, STATE]
        tree.action[i] = _action(belief, rows, lazy, generator, params.discount, tree, h, s, rng)
        tree.value[i] = q
        tree.spread[i] = spread
        if q > tree.sums[h, BEST_Q]:
            _write_policy(belief, rows, lazy, generator, params.discount, tree, h, tree.best, rng)
    if record is not None:
        choice = record.branch[h, CHOICE_HERE]
        trees.set_value(record, choice, q, spread)
        if choice != NO_NODE and rows is not None:
            policy = record.policies[record.whole[choice, trees.POLICY]]
            _write_policy(belief, rows, lazy, generator, params.discount, tree, h, policy, rng)
    tree.sums[h, BEST_Q] = max(tree.sums[h, BEST_Q], q)


@primitive
def _write_policy(belief, rows, lazy, generator, discount, tree, h, out, rng):
    """Write stage ``h``'s policy to ``out``, int32 [S], with UNKNOWN in unexplored states of its model."""
    if rows is None:
        return
    elif lazy is None:
        for t in range(out.shape[0]):
            out[t] = tree.policy[h, t]
    else:
        for t in range(out.shape[0]):
            out[t] = UNKNOWN
        needed = ROWS_AHEAD if ahead(generator) else ROWS  # choosing an action then draws nothing
        for i in range(lazy.number[h, N_TOUCHED]):
            s = np.int64(lazy.touched[h, i])
            if lazy.drawn[h, s] >= needed:
                out[s] = lazy_action(lazy, belief, discount, ahead(generator), h, s, rng)


@dataclass
class DSSMemory:
    """State of a DSS agent between steps."""

    workspace: Workspace
    params: DSSParams
    tree: DSSTree
    steps_left: int = 0  # remaining steps on the best policy of the last plan
    record: TreeRecord | None = None


@dataclass(frozen=True, kw_only=True)
class DSS(TreePlanner):
    """Deep, sparse sampling.

    Pure-Python generators are 10 to 50 times slower per step, since the search passes them models one at a time.

    Examples
    --------
    >>> DSS(n_policies=4, n_samples=4, n_steps=18, n_stages=2).n_steps
    18
    """

    keeps: ClassVar[tuple[str, ...]] = ("steps_left", "tree.action", "tree.value", "tree.spread", "tree.best")

    n_policies: int = whole_number(4, help="N, policies (sampled models) at a node")
    n_samples: int = whole_number(4, help="M, samples of each policy")
    n_steps: int = whole_number(20, help="K, steps between two branchings")
    n_stages: int = whole_number(1, help="H, stages: the tree is K·H steps deep")
    generator: Any = generator_parameter("pi")  # noqa: RUF009
    leaf: str = choice("zero", DSS_LEAVES, help=LEAF_HELP)
    replan_every: int = whole_number(1, help="real steps for which the best policy is followed")

    def cost(self, n_states: int, n_actions: int, discount: float) -> Cost:
        calls = self.n_steps * n_branches(self.n_policies * self.n_samples, self.n_stages)
        models = calls / (self.n_steps * self.n_samples)
        stack = (4.0 * n_states + 80) * self.n_stages + 64.0 * self.n_steps + 16.0 * self.n_policies
        return estimate(n_states, n_actions, models=models, steps=calls, bytes=stack)

    def start(self, belief: Belief, discount: float) -> DSSMemory:
        generator = make_generator(self.generator)
        S, H, N = belief.n_states, self.n_stages, self.n_policies
        large = S > WHOLE_MODELS and math.isfinite(highest_reward(belief))
        leaf = None
        if self.leaf != "zero":
            leaf = DSS_LEAVES.index(self.leaf)
            workspace = workspace_for(belief, leaves=True)
        elif large and getattr(generator, "lazy", False):
            workspace = lazy_workspace_for(belief, H, discount)
        else:
            workspace = workspace_for(belief)
        compiled = generator.parameters() if isinstance(generator, Generator) else None
        params = DSSParams(compiled, leaf, discount, N, self.n_samples, self.n_steps)
        tree = zeros(DSSTree, L=H + 1, H=H, N=N, S=S, W=S if workspace.lazy is None else 0)
        return DSSMemory(workspace, params, tree)

    def act(self, memory: DSSMemory, belief: Belief, state: int, rng: np.ndarray) -> int:
        if memory.steps_left == 0 or memory.tree.best[state] == UNKNOWN:
            self._search(memory, belief, state, rng)
        memory.steps_left -= 1
        return int(memory.tree.best[state])

    def plan(self, memory: DSSMemory, belief: Belief, state: int, rng: np.ndarray) -> Plan:
        tree = memory.tree
        following = memory.steps_left > 0 and bool(tree.best[state] != UNKNOWN)
        if not following:
            self._search(memory, belief, state, rng)
        weighed = candidates(tree.action, tree.value, tree.spread, self.n_samples)
        details = {"followed_from_last_plan": following}
        return Plan(self.act(memory, belief, state, rng), float(tree.value.max()), weighed, details=details)

    def record(self, belief: Belief) -> TreeRecord:
        N, M, H = self.n_policies, self.n_samples, self.n_stages
        nodes = 1 + n_branches(N * M, H) * (1 + 1 / M)
        return trees.new_record(nodes, N, H + 1, self.n_steps, belief.n_states)

    def _search(self, memory: DSSMemory, belief: Belief, state: int, rng: np.ndarray) -> None:
        tree, params, depth = memory.tree, memory.params, self.n_steps * self.n_stages
        given = memory.workspace, params, tree, memory.record, state, rng
        tree.level[0] = AT_ROOT
        tree.at[:, LENGTH] = 0
        try:
            while not belief.run(search, *given, depth=depth):
                h = tree.level[0]
                tree.policy[h] = python_policy(self.generator, belief.sample(rng), params.discount)
                tree.at[h, SAMPLE] = GIVEN
        except BaseException:
            undo_steps(belief.arrays, tree.at[:, LENGTH].sum())
            raise
        memory.steps_left = self.replan_every

    def learn(self, memory: DSSMemory, belief: Belief, seen: Transition) -> None:
        if seen.terminated:
            memory.steps_left = 0

    def begin(self, memory: DSSMemory, belief: Belief, state: int) -> None:
        memory.steps_left = 0

    def on_space_changed(self, memory: DSSMemory, belief: Belief) -> None:
        memory.steps_left = 0
        lazy = memory.workspace.lazy
        if lazy is not None:
            set_bound(lazy, belief, memory.params.discount)
