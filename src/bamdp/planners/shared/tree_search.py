"""UCT in the tree of histories: what BAMCP and BAUCT share.

One simulation starts at the root of a :mod:`~bamdp.planners.shared.history_tree` and

* in a node that was visited before takes argmax_a Q(h, a) + c √(log N(h) / N(h, a)), untried actions first,
  ties at random;
* moves to a next state (how it is drawn is the *world*, see below) and on to the child (h, a, s');
* makes a node of the first history that is not in the tree, and follows the rollout policy from there to the
  depth limit or to a terminal state;
* gives every node on its way its discounted return: N += 1, Q += (return − Q) / N.

The depth limit holds for tree and rollout together; beyond it the value is 0.

**Worlds.** A world answers ``begin_simulation``, ``move`` (a next state) and ``finish_simulation``. BAUCT's is
:class:`Predictive`: the next state is drawn from the predictive of the belief updated along the branch. BAMCP
draws a model at the root instead (:mod:`bamdp.planners.bamcp`).

**Rewards that are not known** are part of the history: a child stands for (a, s', r) when a transition can be
followed by finitely many rewards. When it cannot (a Normal reward), every reward would be its own child and no
node would ever be met again, so r is then left out: the belief still learns from it along the simulation, but
actions in the tree do not depend on it, which is a departure from the Bayes-optimal plan.

**The rollout policy** is ε-greedy for a table that Q-learning keeps, ties broken at random. It learns from the
transitions that really happened, or from simulated ones as well (``learn_from_simulations``).
"""

from __future__ import annotations

import math
import time
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np

from bamdp._kernels.jit import generic, kernel, primitive
from bamdp._kernels.random import uniform
from bamdp._kernels.rows import Space
from bamdp._parameters import flag, positive_number, real_number, whole_number
from bamdp.beliefs import verbs
from bamdp.beliefs.belief import Belief
from bamdp.beliefs.verbs import DONE, NO_ROOM
from bamdp.planners.base import Candidate, Cost, Plan, Planner, Transition, estimate
from bamdp.planners.random_play import any_best
from bamdp.planners.shared.history_tree import (
    NO_NODE,
    NODES,
    ROOT,
    SIMULATIONS_LEFT,
    HistoryTree,
    back_up_return,
    child_node,
    new_history_tree,
    plant_root,
    rehash,
    reroot,
    ucb_action,
    with_node_room,
)

FIRST_BATCH = 16  # simulations before the clock is looked at for the first time
ACCURACY = 0.01  # depth "auto": γ^depth is about this
MANY_OUTCOMES = 1_000_000  # more rewards than that are as good as infinitely many


# --- the rollout policy ---------------------------------------------------------------------------------------


class RolloutLearner(NamedTuple):
    """The Q-learner behind the rollouts and its policy; both are written to."""

    q: np.ndarray  # float64 [S, A]
    below: np.ndarray  # float64 [S, A - 1]: probability that the rollout policy takes one of the actions 0..a
    epsilon: float
    rate: float


@primitive
def rollout_action(learner, s, rng):
    """ε-greedy. Comparing with every bound, not only up to the first above, leaves no branch to mispredict."""
    u = uniform(rng)
    a = 0
    for b in range(learner.below.shape[1]):
        a += np.int64(u >= learner.below[s, b])
    return a


@primitive
def learn_transition(learner, space, discount, s, a, r, s2):
    """Take one step of Q-learning, and set the rollout policy in ``s`` after it."""
    future = 0.0
    if not space.terminal[s2]:
        future = -np.inf
        for b in range(learner.q.shape[1]):
            if space.allowed[s2, b]:
                future = max(future, learner.q[s2, b])
    learner.q[s, a] += learner.rate * (r + discount * future - learner.q[s, a])
    set_policy(learner, space, s)


@primitive
def set_policy(learner, space, s):
    """Make the policy in ``s`` ε-greedy for Q; greedy actions share evenly."""
    best, n_greedy, n_allowed, last = -np.inf, 0, 0, 0
    for b in range(learner.q.shape[1]):
        if space.allowed[s, b]:
            n_allowed += 1
            last = b
            if learner.q[s, b] > best:
                best, n_greedy = learner.q[s, b], 0
            if learner.q[s, b] == best:
                n_greedy += 1
    total = 0.0
    for b in range(last):
        if space.allowed[s, b]:
            total += learner.epsilon / n_allowed
            if learner.q[s, b] == best:
                total += (1.0 - learner.epsilon) / n_greedy
        learner.below[s, b] = total
    for b in range(last, learner.below.shape[1]):
        learner.below[s, b] = 1.0


@kernel
def set_policies(learner, space):
    """Set the policy in every state."""
    for s in range(learner.q.shape[0]):
        set_policy(learner, space, s)


def new_rollout_learner(space: Space, epsilon: float, rate: float) -> RolloutLearner:
    """Q is 0: all allowed actions are greedy."""
    n_states, n_actions = space.allowed.shape
    learner = RolloutLearner(
        np.zeros((n_states, n_actions)), np.ones((n_states, n_actions - 1)), epsilon, rate
    )
    set_policies(learner, space)
    return learner


# --- worlds -------------------------------------------------------------------------------------------------


@generic
def begin_simulation(world, belief, rng):
    """Begin a simulation."""


@generic
def move(world, belief, row, rng):
    """Return the next state, or NO_ROOM (then the simulation must be done again with more room)."""


@generic
def finish_simulation(world, belief, n):
    """Forget the ``n`` moves of a simulation that is over."""


class Predictive(NamedTuple):
    """Next states come from the predictive, and the belief learns them until the simulation is over."""

    unused: int = 0


@begin_simulation.register(Predictive)
def _begin(world, belief, rng):
    pass


@move.register(Predictive)
def _move(world, belief, row, rng):
    return verbs.advance(belief.transitions, row, rng)


@finish_simulation.register(Predictive)
def _finish(world, belief, n):
    for _ in range(n):
        verbs.pop(belief.transitions)


@dataclass
class WorldRoom:
    """The world's arrays, which grow if a simulation does not fit."""

    arrays: Any

    def grow(self) -> None:
        """Ask the world for more room."""
        self.arrays = self.arrays.with_more_room()


# --- the search ---------------------------------------------------------------------------------------------


class UCTParams(NamedTuple):
    """What does not change between simulations."""

    discount: float
    exploration: float  # c
    depth: int
    by_reward: bool  # rewards are part of the history
    learning: bool  # the rollout policy learns from simulations
    before: np.ndarray  # uint64 [4] scratch: the random state before the simulation at hand


@kernel
def simulate_histories(belief, world, params, tree, learner, s, rng):
    """Run the simulations that are left (``tree.used[SIMULATIONS_LEFT]``) from state ``s`` at the root.

    Returns DONE, or NO_ROOM where the world ran out of room; the generator is then where the failed simulation began.
    """
    space, R, discount, before = belief.space, belief.rewards, params.discount, params.before
    n_actions = space.allowed.shape[1]
    while tree.used[SIMULATIONS_LEFT] > 0:
        # where to go back to if the world runs out of room
        for j in range(4):
            before[j] = rng[j]
        begin_simulation(world, belief, rng)
        t, node, d, inside, fits = s, ROOT, 0, 0, True
        total, weight = 0.0, 1.0
        while d < params.depth and not space.terminal[t]:
            # UCB in nodes that were visited before, the rollout policy in new ones and below the tree
            fresh = node == NO_NODE or tree.visits[node] == 0
            if fresh:
                a = rollout_action(learner, t, rng)
            else:
                a = ucb_action(tree, space, node, t, params.exploration, rng)
            # a simulated transition; the belief over rewards learns from it until the simulation is over
            row = t * n_actions + a
            t2 = move(world, belief, row, rng)
            if t2 == NO_ROOM:
                fits = False
                break
            r = verbs.draw_reward(R, row, t2, rng)
            verbs.push_reward(R, row, t2, r)
            if params.learning:
                learn_transition(learner, space, discount, t, a, r, t2)
            d += 1
            t = t2
            if node == NO_NODE:  # below the tree
                total += weight * r
                weight *= discount
                continue
            # inside the tree: note the step, go on to the child, which may be new
            tree.path[inside, 0] = node
            tree.path[inside, 1] = a
            tree.gain[inside] = r
            inside += 1
            if fresh or d == params.depth or space.terminal[t]:
                node = NO_NODE
            else:
                node = child_node(tree, space, node, a, t, r, params.by_reward)
        # take everything back, then give the return to the nodes on the way
        for _ in range(d):
            verbs.pop_reward(R)
        finish_simulation(world, belief, d)
        if not fits:
            for j in range(4):
                rng[j] = before[j]
            return NO_ROOM
        back_up_return(tree, inside, total, discount)
        tree.used[SIMULATIONS_LEFT] -= 1
    return DONE


# --- the planners' common part ------------------------------------------------------------------------------


@dataclass
class TreeSearchMemory:
    """What an agent keeps between steps."""

    tree: HistoryTree
    learner: RolloutLearner
    params: UCTParams
    world: WorldRoom
    root_state: int = -1  # state of the root of a tree that is kept; -1: plant a new one


@dataclass(frozen=True, kw_only=True)
class TreeSearch(Planner):
    """Hyper-parameters that BAMCP and BAUCT share; :class:`~bamdp.planners.bamcp.BAMCP` explains them."""

    keeps: ClassVar[tuple[str, ...]] = ("learner.q",)

    n_simulations: int = whole_number(1000)
    time_limit: float | None = positive_number(None)
    depth: int | str = whole_number("auto", names=["auto"])
    exploration: float = real_number(3.0, low=0.0)
    epsilon: float = real_number(0.5, low=0.0, high=1.0)
    learning_rate: float = real_number(0.2, low=0.0, high=1.0)
    learn_from_simulations: bool = flag(False)
    reuse_tree: bool = flag(False)

    @abstractmethod
    def _world(self, belief: Belief, depth: int) -> Any:
        """Return what simulations of ``depth`` steps move in."""

    def cost(self, n_states: int, n_actions: int, discount: float) -> Cost:
        depth = auto_depth(discount) if isinstance(self.depth, str) else self.depth
        cost = estimate(
            n_states, n_actions, models=0.0, steps=self.n_simulations * float(depth), bytes=64.0 * depth
        )
        return cost if self.time_limit is None else cost._replace(seconds=self.time_limit)

    def start(self, belief: Belief, discount: float) -> TreeSearchMemory:
        depth = auto_depth(discount) if isinstance(self.depth, str) else self.depth
        return TreeSearchMemory(
            tree=new_history_tree(belief.n_actions, 1, depth),
            learner=new_rollout_learner(belief.space, float(self.epsilon), float(self.learning_rate)),
            params=UCTParams(
                discount=discount,
                exploration=float(self.exploration),
                depth=depth,
                by_reward=1 < (belief.rewards.n_outcomes or 0) <= MANY_OUTCOMES,
                learning=self.learn_from_simulations,
                before=np.empty(4, np.uint64),
            ),
            world=WorldRoom(self._world(belief, depth)),
        )

    def act(self, memory: TreeSearchMemory, belief: Belief, state: int, rng: np.ndarray) -> int:
        return self._search(memory, belief, state, rng)[0]

    def plan(self, memory: TreeSearchMemory, belief: Belief, state: int, rng: np.ndarray) -> Plan:
        action, done = self._search(memory, belief, state, rng)
        tree = memory.tree
        actions = np.flatnonzero(belief.space.allowed[state]).tolist()
        return Plan(
            action,
            float(tree.value[ROOT, action]),
            tuple(_candidate(tree, a) for a in actions),
            reproducible=self.time_limit is None,
            details={"simulations": done, "nodes": int(tree.used[NODES]), "depth": memory.params.depth},
        )

    def explain(self, memory: TreeSearchMemory, belief: Belief, state: int, rng: np.ndarray) -> Plan:
        from bamdp.planners.views.histories import view_histories

        plan = self.plan(memory, belief, state, rng)
        return replace(plan, tree=view_histories(memory, belief, state, plan))

    def _search(
        self, memory: TreeSearchMemory, belief: Belief, state: int, rng: np.ndarray
    ) -> tuple[int, int]:
        """Grow the tree from ``state``; returns the action with the highest mean return, and the simulations."""
        if memory.root_state != state:
            plant_root(memory.tree)
        memory.root_state = state if self.reuse_tree else -1
        memory.tree.returns[:] = 0.0
        start = time.perf_counter()
        done, batch = 0, self.n_simulations if self.time_limit is None else FIRST_BATCH
        while batch > 0:
            self._simulate(memory, belief, state, rng, batch)
            done += batch
            spent, limit = time.perf_counter() - start, self.time_limit or 0.0
            batch = max(1, min(2 * batch, int(0.5 * done / spent * (limit - spent)))) if spent < limit else 0
        tree = memory.tree
        return int(any_best(np.where(tree.tries[ROOT] > 0, tree.value[ROOT], np.nan), rng)), done

    def _simulate(
        self, memory: TreeSearchMemory, belief: Belief, state: int, rng: np.ndarray, n: int
    ) -> None:
        memory.tree = tree = with_node_room(memory.tree, n, memory.params.by_reward)
        tree.used[SIMULATIONS_LEFT] = n
        belief.run(
            simulate_histories,
            memory.world,
            memory.params,
            tree,
            memory.learner,
            state,
            depth=memory.params.depth,
            rng=rng,
            resumes=True,
        )

    def learn(self, memory: TreeSearchMemory, belief: Belief, seen: Transition) -> None:
        s, a, r, s2, terminated = seen
        params = memory.params
        belief.call(learn_transition, memory.learner, belief.space, params.discount, s, a, float(r), s2)
        if memory.root_state < 0:
            return
        follows = memory.root_state == s and not terminated
        memory.root_state = -1
        moved = np.empty(int(memory.tree.used[NODES]), np.int64)
        if follows and reroot(memory.tree, belief.space, a, s2, float(r), params.by_reward, moved):
            rehash(memory.tree, params.by_reward)
            memory.root_state = s2

    def relearn(self, memory: TreeSearchMemory, belief: Belief, arrays: Mapping[str, np.ndarray]) -> None:
        super().relearn(memory, belief, arrays)
        set_policies(memory.learner, belief.space)

    def on_space_changed(self, memory: TreeSearchMemory, belief: Belief) -> None:
        set_policies(memory.learner, belief.space)
        memory.root_state = -1


def auto_depth(discount: float) -> int:
    """Steps after which what follows weighs about ACCURACY: 89 for γ = 0.95."""
    return max(1, int(math.log(ACCURACY) / math.log(discount))) if discount > 0.0 else 1


def _candidate(tree: HistoryTree, a: int) -> Candidate:
    n, total, squares = (float(x) for x in tree.returns[a])
    spread = math.sqrt(max(0.0, squares - total * total / n) / (n - 1.0)) if n > 1 else math.nan
    count = int(tree.tries[ROOT, a])
    return Candidate(a, float(tree.value[ROOT, a]) if count else math.nan, spread, count)
