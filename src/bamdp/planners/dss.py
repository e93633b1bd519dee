"""DSS: deep, sparse sampling (Grover, Basu & Dimitrakakis, AISTATS 2020, Algorithm 2).

At a hyper-state ω = (s, β) with h stages behind it,

    V_H(ω)    = leaf value (0 by default)
    Π_ω       = {P(μ_i) : μ_i ~ β, i = 1..N}                          N sampled models, each made a policy  (line 6)
    Q(ω, π)   = 1/M Σ_{m=1..M} [ Σ_{k<K} γ^k r_k + γ^K V_{h+1}(ω_K) ]   lines 9 to 20
    V_h(ω)    = max_{π in Π_ω} Q(ω, π)

where along a sample a_k = π(s_k), s_{k+1} ~ ν(· | ω_k, a_k), r ~ τ(· | ω_k, a_k), and the belief is updated
with every simulated step (line 16). The agent acts by the π that is best at the root.

The misprints of the paper are mended so: a_k = π(s_k) at every step, not once; the recursion returns
max_π Q and only the root the argmax; the return is discounted from the node (c = 1) with γ^K on the next
stage, never both this and c = γ^h. Terminal states end a sample with value 0.

The tree is walked depth first with an explicit stack of H levels. Only one branch exists at a time, so the
belief is pushed along it and popped on the way back; a level needs one policy, because the N policies of a
node are drawn one after the other from the same belief.

A generator that looks at few rows of a model (RTDP) is given models whose rows are drawn when they are looked at
(:mod:`bamdp.generators.lazy`) where there are more than ``WHOLE_MODELS`` states: a step then costs what its trials
and samples touch, whatever the number of states.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np

from bamdp._kernels.bundles import zeros
from bamdp._kernels.jit import generic, kernel, primitive
from bamdp._parameters import choice, positive_number, whole_number
from bamdp.beliefs.belief import Belief
from bamdp.beliefs.kernels import sample_model, simulate_step, undo_steps
from bamdp.beliefs.verbs import DONE, NO_ROOM
from bamdp.generators import Generator, generate, generator_parameter, make_generator
from bamdp.generators.builtin import RMAX
from bamdp.generators.lazy import (
    ROWS,
    ROWS_AHEAD,
    UNKNOWN,
    LazyModels,
    LazyWorkspace,
    generate_lazily,
    highest_reward,
    lazy_action,
    lazy_workspace_for,
)
from bamdp.planners.base import Cost, Plan, Planner, Transition, candidates, estimate, n_branches
from bamdp.planners.shared.leaves import DSS_LEAVES, ModelLeaf, ZeroLeaf, leaf_value
from bamdp.planners.shared.workspace import Workspace, leaf_workspace_for, put_policy, workspace_for
from bamdp.planners.sparse_sampling import (
    BEST_Q,
    Q_SUM,
    SAMPLE_RETURN,
    add_sample,
    clear_samples,
    sample_spread,
)

WHOLE_MODELS = 1000  # states, up to which models are drawn whole


class DSSParams(NamedTuple):
    """What does not change between searches."""

    generator: Any  # parameters of the compiled policy generator; None for one in plain Python
    leaf: ZeroLeaf | ModelLeaf
    discount: float
    n_policies: int  # N
    n_samples: int  # M
    n_steps: int  # K


class DSSTree(NamedTuple):
    """The stack, one entry per stage, and what is found at the root."""

    policy: Annotated[np.ndarray, "int32 [H, W]"]  # being tried; W is S, or 0 if models are drawn in part
    state: Annotated[np.ndarray, "int64 [H]"]  # s of the node
    trial: Annotated[np.ndarray, "int64 [H, 2]"]  # which policy, which sample of it
    length: Annotated[np.ndarray, "int64 [H]"]  # steps pushed by the sample at hand
    sums: Annotated[np.ndarray, "float64 [H, 4]"]  # see :mod:`bamdp.planners.sparse_sampling`
    action: Annotated[np.ndarray, "int32 [N]"]  # first action of each root policy
    value: Annotated[np.ndarray, "float64 [N]"]  # its Q
    spread: Annotated[np.ndarray, "float64 [N]"]  # standard deviation of its M samples
    best: Annotated[np.ndarray, "int32 [S]"]  # best root policy, UNKNOWN where its model was not looked at


# The policies that are tried: of a model that is drawn whole, or of one that is drawn where it is looked at. Which it
# is follows from the workspace. ``tree.state[h]`` is the state that a policy of stage ``h`` starts from.


@generic
def draw_policy(workspace, belief, params, tree, h, rng):
    """Draw a model and make it the policy of stage ``h``; DONE or NO_ROOM."""


@generic
def policy_action(workspace, belief, params, tree, h, s, rng):
    """Return the action of stage ``h``'s policy in state ``s``, or NO_ROOM."""


@generic
def keep_policy(workspace, belief, params, tree, rng):
    """Keep the root's policy in ``tree.best``, UNKNOWN where its model was not looked at."""


@draw_policy.register(object)
def _draw_whole(workspace, belief, params, tree, h, rng):
    rows, solver = workspace.rows, workspace.solver
    if sample_model(belief, rows, rng) == NO_ROOM:
        return NO_ROOM
    generate(params.generator, rows, belief.space, params.discount, tree.state[h], solver, rng)
    for t in range(solver.policy.shape[0]):
        tree.policy[h, t] = solver.policy[t]
    return DONE


@policy_action.register(object)
def _look_up(workspace, belief, params, tree, h, s, rng):
    return tree.policy[np.uint64(h), np.uint64(s)]


@keep_policy.register(object)
def _copy_whole(workspace, belief, params, tree, rng):
    for t in range(tree.best.shape[0]):
        tree.best[t] = tree.policy[0, t]


@draw_policy.register(LazyModels)
def _draw_in_part(models, belief, params, tree, h, rng):
    return generate_lazily(params.generator, models, belief, params.discount, h, tree.state[h], rng)


@policy_action.register(LazyModels)
def _work_out(models, belief, params, tree, h, s, rng):
    return lazy_action(params.generator, models, belief, params.discount, h, s, rng)


@keep_policy.register(LazyModels)
def _copy_what_is_known(models, belief, params, tree, rng):
    for i in range(models.n_known[0]):
        tree.best[models.known[i]] = UNKNOWN
    needed = ROWS if params.generator.bound == RMAX else ROWS_AHEAD  # then an action draws nothing
    n = 0
    for at in range(models.begin[0], models.end[0]):
        if models.drawn[at] >= needed:
            s = np.int64(models.state[at])
            tree.best[s] = lazy_action(params.generator, models, belief, params.discount, np.int64(0), s, rng)
            models.known[n] = s
            n += 1
    models.n_known[0] = n


# generic functions as compiled code calls them, for callers outside of it


@primitive
def call_draw_policy(workspace, belief, params, tree, h, rng):
    """Call :func:`draw_policy` from outside of kernels."""
    return draw_policy(workspace, belief, params, tree, h, rng)


@primitive
def call_policy_action(workspace, belief, params, tree, h, s, rng):
    """Call :func:`policy_action` from outside of kernels."""
    return policy_action(workspace, belief, params, tree, h, s, rng)


@primitive
def call_keep_policy(workspace, belief, params, tree, rng):
    """Call :func:`keep_policy` from outside of kernels."""
    keep_policy(workspace, belief, params, tree, rng)


# The search


@kernel
def search(belief, workspace, params, tree, s, rng):
    """Algorithm 2 from state ``s``. Fills the root arrays of ``tree``; returns DONE or NO_ROOM.

    The belief is as before when it returns, in either case.
    """
    N, M, discount = params.n_policies, params.n_samples, params.discount
    H = tree.state.shape[0]
    last_discount = discount**params.n_steps
    h = np.int64(0)  # a literal 0 would have every helper compiled twice
    _enter(tree, h, s)
    while True:
        if tree.trial[h, 1] == 0:  # a new policy                                        line 6
            if draw_policy(workspace, belief, params, tree, h, rng) == NO_ROOM:
                _leave(belief, tree, h)
                return NO_ROOM
            clear_samples(tree.sums, h)
        end = _roll_out(belief, workspace, params, tree, h, rng)  # lines 10 to 18
        if end == NO_ROOM:
            _leave(belief, tree, h)
            return NO_ROOM
        value = 0.0
        if not belief.space.terminal[end]:
            if h + 1 < H:
                h += 1
                _enter(tree, h, end)
                continue
            status, value = leaf_value(params.leaf, belief, workspace, discount, end, rng)
            if status == NO_ROOM:
                _leave(belief, tree, h)
                return NO_ROOM
        while True:  # a sample of level h is complete; its node may be, too
            q = tree.sums[h, SAMPLE_RETURN] + last_discount * value  # line 19
            _take_back(belief, tree, h)
            add_sample(tree.sums, h, q)
            tree.trial[h, 1] += 1
            if tree.trial[h, 1] < M:
                break
            _finish_policy(belief, workspace, params, tree, h, rng)
            if tree.trial[h, 0] < N:
                break
            if h == 0:
                return DONE
            value = tree.sums[h, BEST_Q]
            h -= 1


@primitive
def _enter(tree, h, s):
    """Begin a node at level ``h``."""
    tree.state[h] = s
    tree.trial[h, 0] = 0
    tree.trial[h, 1] = 0
    tree.length[h] = 0
    tree.sums[h, BEST_Q] = -np.inf


@primitive
def _roll_out(belief, workspace, params, tree, h, rng):
    """Follow the level's policy for K steps in the belief; returns the last state, or NO_ROOM."""
    n_actions = belief.space.allowed.shape[1]
    s = tree.state[h]
    total, weight = 0.0, 1.0
    k = 0
    while k < params.n_steps and not belief.space.terminal[np.uint64(s)]:
        action = policy_action(workspace, belief, params, tree, h, s, rng)
        if action == NO_ROOM:
            s = np.int64(NO_ROOM)
            break
        s, r = simulate_step(belief, s * n_actions + action, rng)
        total += weight * r
        weight *= params.discount
        k += 1
    tree.length[h] = k
    tree.sums[h, SAMPLE_RETURN] = total
    return s


@primitive
def _take_back(belief, tree, h):
    """Pop what the level's sample has pushed."""
    undo_steps(belief, tree.length[h])
    tree.length[h] = 0


@primitive
def _leave(belief, tree, h):
    """Pop everything, from level ``h`` up to the root."""
    for level in range(h, -1, -1):
        _take_back(belief, tree, level)


@primitive
def _finish_policy(belief, workspace, params, tree, h, rng):
    """Compare a policy, all M samples of which are in, with the best, and go on to the next."""
    i = tree.trial[h, 0]
    q = tree.sums[h, Q_SUM] / params.n_samples
    if h == 0:
        tree.action[i] = policy_action(workspace, belief, params, tree, h, tree.state[0], rng)
        tree.value[i] = q
        tree.spread[i] = sample_spread(tree.sums, 0, params.n_samples)
        if q > tree.sums[h, BEST_Q]:
            keep_policy(workspace, belief, params, tree, rng)
    tree.sums[h, BEST_Q] = max(tree.sums[h, BEST_Q], q)
    tree.trial[h, 0] = i + 1
    tree.trial[h, 1] = 0


@dataclass
class DSSMemory:
    """What a DSS agent keeps between steps."""

    workspace: Workspace | LazyWorkspace
    params: DSSParams
    tree: DSSTree
    steps_left: int = 0  # for which the best policy of the last plan is still followed


@dataclass(frozen=True, kw_only=True)
class DSS(Planner):
    """Deep, sparse sampling.

    Parameters
    ----------
    n_policies
        N, policies (sampled models) at a node.
    n_samples
        M, samples of each policy.
    n_steps
        K, steps between two branchings.
    n_stages
        H, stages: the tree is K·H steps deep.
    generator
        From a sampled model to a policy: ``"pi"``, ``"rtdp"``, ``"vi"``, a :class:`~bamdp.generators.Generator`
        such as ``RTDP(depth=50)``, or any function ``(mdp, discount) -> policy`` in plain Python (which costs
        some 10 to 50 times more per step: the models are then handed out of the compiled code one by one).
    leaf
        Value after the last stage: ``"zero"``; ``"mean"``, the optimal value of the mean model after the
        simulated updates; ``"upper"``, the mean optimal value of ``leaf_samples`` sampled models; ``"policy"``,
        the value of the mean model's policy on ``leaf_samples`` sampled models.
    leaf_samples, leaf_tol
        For the leaves that need them.
    replan_every
        Follow the best policy for so many real steps before planning again; fewer, with models that are drawn as they
        are looked at, if it comes to a state that was not looked at.

    Examples
    --------
    >>> DSS(n_policies=4, n_samples=4, n_steps=18, n_stages=2).n_steps
    18
    """

    keeps: ClassVar[tuple[str, ...]] = ("steps_left", "tree.action", "tree.value", "tree.spread")

    n_policies: int = whole_number(4)
    n_samples: int = whole_number(4)
    n_steps: int = whole_number(20)
    n_stages: int = whole_number(1)
    generator: Any = generator_parameter("pi", or_function=True)  # noqa: RUF009
    leaf: str = choice("zero", DSS_LEAVES)
    leaf_samples: int = whole_number(2)
    leaf_tol: float = positive_number(1e-3)
    replan_every: int = whole_number(1)

    def cost(self, n_states: int, n_actions: int, discount: float) -> Cost:
        calls = self.n_steps * n_branches(self.n_policies * self.n_samples, self.n_stages)
        models = calls / (self.n_steps * self.n_samples)
        stack = (4.0 * n_states + 80) * self.n_stages + 64.0 * self.n_steps + 16.0 * self.n_policies
        return estimate(n_states, n_actions, models=models, steps=calls, bytes=stack)

    def start(self, belief: Belief, discount: float) -> DSSMemory:
        generator = make_generator(self.generator)
        leaf: ZeroLeaf | ModelLeaf = ZeroLeaf()
        if self.leaf != "zero":
            leaf = ModelLeaf(DSS_LEAVES.index(self.leaf), self.leaf_samples, float(self.leaf_tol))
        S, H, N = belief.n_states, self.n_stages, self.n_policies
        workspace: Workspace | LazyWorkspace
        if self.leaf != "zero":
            workspace = leaf_workspace_for(belief)
        elif S > WHOLE_MODELS and getattr(generator, "lazy", False) and math.isfinite(highest_reward(belief)):
            workspace = lazy_workspace_for(belief, H, discount)
        else:
            workspace = workspace_for(belief)
        params = DSSParams(
            generator=generator.state() if isinstance(generator, Generator) else None,
            leaf=leaf,
            discount=discount,
            n_policies=N,
            n_samples=self.n_samples,
            n_steps=self.n_steps,
        )
        lazy = isinstance(workspace, LazyWorkspace)
        tree = zeros(DSSTree, H=H, N=N, S=S, W=0 if lazy else S)
        if lazy:
            tree.best[:] = UNKNOWN
        return DSSMemory(workspace, params, tree)

    def act(self, memory: DSSMemory, belief: Belief, state: int, rng: np.ndarray) -> int:
        if not self._follows(memory, state):
            if memory.params.generator is None:
                from bamdp.planners.views.dss import search_in_python

                search_in_python(self, memory, belief, state, rng)
            else:
                depth = self.n_steps * self.n_stages
                belief.run(search, memory.workspace, memory.params, memory.tree, state, depth=depth, rng=rng)
            memory.steps_left = self.replan_every
        memory.steps_left -= 1
        return int(memory.tree.best[state])

    @staticmethod
    def _follows(memory: DSSMemory, state: int) -> bool:
        """Return whether the best policy of the last plan is still followed in this state."""
        return memory.steps_left > 0 and bool(memory.tree.best[state] != UNKNOWN)

    def plan(self, memory: DSSMemory, belief: Belief, state: int, rng: np.ndarray) -> Plan:
        following = self._follows(memory, state)
        action = self.act(memory, belief, state, rng)
        tree = memory.tree
        weighed = candidates(tree.action, tree.value, tree.spread, self.n_samples)
        details = {"followed_from_last_plan": following}
        return Plan(action, float(tree.value.max()), weighed, details=details)

    def explain(self, memory: DSSMemory, belief: Belief, state: int, rng: np.ndarray) -> Plan:
        if self._follows(memory, state):  # the last plan is still followed: there was no search
            return self.plan(memory, belief, state, rng)
        from bamdp.planners.views.dss import search_with_tree

        tree = search_with_tree(self, memory, belief, state, rng)
        memory.steps_left = self.replan_every
        return replace(
            self.plan(memory, belief, state, rng), tree=tree, details={"followed_from_last_plan": False}
        )

    def learn(self, memory: DSSMemory, belief: Belief, seen: Transition) -> None:
        if seen.terminated:
            memory.steps_left = 0

    def begin(self, memory: DSSMemory, belief: Belief, state: int) -> None:
        memory.steps_left = 0

    def learned(self, memory: DSSMemory) -> dict[str, np.ndarray]:
        return super().learned(memory) | {"policy": memory.tree.best}

    def relearn(self, memory: DSSMemory, belief: Belief, arrays: Mapping[str, np.ndarray]) -> None:
        super().relearn(memory, belief, arrays)
        known = np.flatnonzero(arrays["policy"] != UNKNOWN)
        put_policy(memory.tree.best[known], belief.n_actions, arrays["policy"][known])
        memory.tree.best[known] = arrays["policy"][known]
        if isinstance(memory.workspace, LazyWorkspace):
            while len(memory.workspace.arrays.known) < len(known):
                memory.workspace.grow()
            memory.workspace.arrays.known[: len(known)] = known
            memory.workspace.arrays.n_known[0] = len(known)

    def on_space_changed(self, memory: DSSMemory, belief: Belief) -> None:
        memory.steps_left = 0
        if isinstance(memory.workspace, LazyWorkspace):
            memory.workspace.set_bound(belief, memory.params.discount)
