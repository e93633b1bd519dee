"""UCT in the tree of histories: what BAMCP and BAUCT share.

A node is a history h, with the state that it ends in; N(h) counts its simulations, N(h, a) and Q(h, a) those that
chose ``a`` and their mean return. One simulation starts at the root and

* in a node that was visited before takes argmax_a Q(h, a) + c √(log N(h) / N(h, a)), untried actions first,
  ties at random;
* moves to a next state (how it is drawn is the *world*, see below) and on to the child (h, a, s');
* makes a node of the first history that is not in the tree, and follows the rollout policy from there to the
  depth limit or to a terminal state;
* gives every node on its way its discounted return: N += 1, Q += (return − Q) / N.

The depth limit holds for tree and rollout together; beyond it the value is 0.

**Worlds.** A world answers ``begin`` (a simulation starts), ``move`` (a next state) and ``finish``. BAUCT's is
:class:`Predictive`: the next state is drawn from the predictive of the belief updated along the branch. BAMCP
draws a model at the root instead (:mod:`bamdp.planners.bamcp`).

**Rewards that are not known** are part of the history: a child stands for (a, s', r) when a transition can be
followed by finitely many rewards. When it cannot (a Normal reward), every reward would be its own child and no
node would ever be met again, so r is then left out: the belief still learns from it along the simulation, but
actions in the tree do not depend on it, which is a departure from the Bayes-optimal plan.

**The rollout policy** is ε-greedy for a table that Q-learning keeps, from the transitions that really happened, or
from simulated ones as well (``learn_from_simulations``). Ties are broken at random.

**The tree** is a struct of arrays, children found through a hash table: a node takes some 100 bytes for 4 actions
(a child array over all S states, as in the original program, takes 8·S·A). At MEMORY bytes it stops growing, and
simulations go on below it by rollouts.

**Reuse.** After a real transition the child (a, s', r) is the root of the next search, with its statistics: they are
samples from the very belief that has now come true. They were cut off one step earlier than new ones will be.
"""

from __future__ import annotations

import math
import time
from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from bamdp import _checks
from bamdp._kernels.jit import generic, kernel, primitive
from bamdp._kernels.random import below, uniform
from bamdp._kernels.rows import Space
from bamdp._serial import known
from bamdp.beliefs import verbs
from bamdp.beliefs.base import Belief
from bamdp.planners.base import Candidate, Plan, Planner, Transition

ROOT, NO_NODE = 0, -1
NO_KEY = -1  # the root's
DONE, NO_ROOM = 0, verbs.NO_ROOM
MEMORY = 64_000_000  # bytes that a tree may take
FIRST_BATCH = 16  # simulations before the clock is looked at for the first time
ACCURACY = 0.01  # depth "auto": γ^depth is about this
MANY_REWARDS = 1_000_000  # more outcomes than that are as good as infinitely many


@known
class Tree(NamedTuple):
    """Nodes in the order of their making, so that a parent stands before its children; all are written to."""

    key: np.ndarray  # int64 [M]: (parent·A + action)·S + state, NO_KEY for the root
    reward: np.ndarray  # float64 [M]: the reward on the way in, where it is part of the history
    visits: np.ndarray  # int64 [M]: N(h)
    tries: np.ndarray  # int64 [M, A]: N(h, a)
    value: np.ndarray  # float64 [M, A]: Q(h, a)
    table: np.ndarray  # int32 [2^k]: nodes by the hash of their key, or NO_NODE
    used: np.ndarray  # int64 [1]: how many nodes there are
    path: np.ndarray  # int64 [D, 2]: node and action of each step in the tree
    gain: np.ndarray  # float64 [D]: the rewards of these steps
    returns: np.ndarray  # float64 [A, 3]: number, sum and sum of squares of the root's returns in this search


@known
class Learner(NamedTuple):
    """The Q-learner behind the rollouts and its policy; both are written to."""

    q: np.ndarray  # float64 [S, A]
    below: np.ndarray  # float64 [S, A - 1]: probability that the rollout policy takes one of the actions 0..a
    epsilon: float
    rate: float


# --- worlds -------------------------------------------------------------------------------------------------


@generic
def begin(W, rng):
    """A simulation starts."""


@generic
def move(W, row, rng):
    """The next state, or NO_ROOM (then the simulation must be done again with more room)."""


@generic
def finish(W, n):
    """The simulation is over after ``n`` moves: forget them."""


@known
class Predictive(NamedTuple):
    """Next states come from the predictive, and the belief learns them until the simulation is over."""

    T: Any


@begin.register(Predictive)
def _begin(W, rng):
    pass


@move.register(Predictive)
def _move(W, row, rng):
    return verbs.advance(W.T, row, rng)


@finish.register(Predictive)
def _finish(W, n):
    for _ in range(n):
        verbs.pop(W.T)


# --- the search ---------------------------------------------------------------------------------------------


@kernel
def search(W, R, space, tree, learner, discount, exploration, depth, by_reward, learning, n, s, rng, before):
    """Run ``n`` simulations from state ``s`` at the root of ``tree``.

    Returns DONE and ``n``, or NO_ROOM and how many were done before the world ran out of room; the generator is
    then where the failed simulation began (``before``, uint64 [4], is scratch for that).
    """
    n_actions = space.allowed.shape[1]
    for i in range(n):
        for j in range(4):
            before[j] = rng[j]
        begin(W, rng)
        t, node, d, inside, fits = s, ROOT, 0, 0, True
        total, weight = 0.0, 1.0
        while d < depth and not space.terminal[t]:
            fresh = node == NO_NODE or tree.visits[node] == 0
            if fresh:
                a = rollout_action(learner, t, rng)
            else:
                a = ucb_action(tree, space, node, t, exploration, rng)
            row = t * n_actions + a
            t2 = move(W, row, rng)
            if t2 == NO_ROOM:
                fits = False
                break
            r = verbs.draw_reward(R, row, t2, rng)
            verbs.push_reward(R, row, t2, r)
            if learning:
                learn(learner, space, discount, t, a, r, t2)
            d += 1
            t = t2
            if node == NO_NODE:  # below the tree
                total += weight * r
                weight *= discount
                continue
            tree.path[inside, 0] = node
            tree.path[inside, 1] = a
            tree.gain[inside] = r
            inside += 1
            if fresh or d == depth or space.terminal[t]:
                node = NO_NODE
            else:
                node = child(tree, space, node, a, t, r, by_reward)
        for _ in range(d):
            verbs.pop_reward(R)
        finish(W, d)
        if not fits:
            for j in range(4):
                rng[j] = before[j]
            return NO_ROOM, i
        back_up(tree, inside, total, discount)
    return DONE, n


_COUNTS = np.arange(1.0, 4097.0)
_ROOT_LOG = np.concatenate([[0.0], np.sqrt(np.log(_COUNTS))])
_INVERSE_ROOT = np.concatenate([[0.0], 1.0 / np.sqrt(_COUNTS)])


@primitive
def root_log(n):
    """√log n, from a table where it is small: most nodes are."""
    return _ROOT_LOG[n] if n < _ROOT_LOG.shape[0] else math.sqrt(math.log(n))


@primitive
def inverse_root(n):
    """1/√n."""
    return _INVERSE_ROOT[n] if n < _INVERSE_ROOT.shape[0] else 1.0 / math.sqrt(n)


@primitive
def ucb_action(tree, space, node, s, exploration, rng):
    """argmax of Q + c √(log N / N_a); untried actions first, ties at random."""
    scale = exploration * root_log(tree.visits[node])
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
def back_up(tree, inside, value, discount):
    """Give the return to the nodes on the way, from the last to the root."""
    for i in range(inside - 1, -1, -1):
        node, a = tree.path[i, 0], tree.path[i, 1]
        value = tree.gain[i] + discount * value
        n = tree.tries[node, a] + 1
        tree.tries[node, a] = n
        tree.visits[node] += 1
        tree.value[node, a] += (value - tree.value[node, a]) / n
        if i == 0:
            tree.returns[a, 0] += 1.0
            tree.returns[a, 1] += value
            tree.returns[a, 2] += value * value


# --- the rollout policy -------------------------------------------------------------------------------------


@primitive
def rollout_action(learner, s, rng):
    """ε-greedy. Comparing with every bound, not only up to the first above, leaves no branch to mispredict."""
    u = uniform(rng)
    a = 0
    for b in range(learner.below.shape[1]):
        a += np.int64(u >= learner.below[s, b])
    return a


@primitive
def learn(learner, space, discount, s, a, r, s2):
    """One step of Q-learning, and the rollout policy in ``s`` after it."""
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
def learn_really(learner, space, discount, s, a, r, s2):
    """:func:`learn` on its own."""
    learn(learner, space, discount, s, a, r, s2)


@kernel
def set_policies(learner, space):
    """The policy in every state."""
    for s in range(learner.q.shape[0]):
        set_policy(learner, space, s)


def new_learner(space: Space, epsilon: float, rate: float) -> Learner:
    """Q is 0: all allowed actions are greedy."""
    n_states, n_actions = space.allowed.shape
    learner = Learner(np.zeros((n_states, n_actions)), np.ones((n_states, n_actions - 1)), epsilon, rate)
    set_policies(learner, space)
    return learner


# --- nodes --------------------------------------------------------------------------------------------------


@primitive
def find(tree, key, r, by_reward):
    """(node with this key and reward, or NO_NODE; the table's entry for it)."""
    last = tree.table.shape[0] - 1
    slot = ((((key ^ (key >> 31)) & 0x7FFFFFFF) * 1640531527) >> 24) & last  # the product stays below 2^62
    node = np.int64(tree.table[slot])
    while node != NO_NODE and not (tree.key[node] == key and (not by_reward or tree.reward[node] == r)):
        slot = (slot + 1) & last
        node = np.int64(tree.table[slot])
    return node, slot


@primitive
def child(tree, space, parent, a, s, r, by_reward):
    """The child (a, s, r) of a node, made if it is not there; NO_NODE when the tree is full."""
    n_states, n_actions = space.allowed.shape
    key = (parent * n_actions + a) * n_states + s
    node, slot = find(tree, key, r, by_reward)
    if node == NO_NODE and tree.used[0] < tree.key.shape[0]:
        node = tree.used[0]
        tree.used[0] = node + 1
        tree.table[slot] = node
        tree.key[node] = key
        tree.reward[node] = r
        clear(tree, node)
    return node


@primitive
def clear(tree, node):
    """No simulation yet."""
    tree.visits[node] = 0
    for a in range(tree.tries.shape[1]):
        tree.tries[node, a] = 0
        tree.value[node, a] = 0.0


@kernel
def plant(tree):
    """A tree of nothing but a root."""
    for i in range(tree.table.shape[0]):
        tree.table[i] = NO_NODE
    tree.used[0] = 1
    tree.key[ROOT] = NO_KEY
    clear(tree, ROOT)


@kernel
def rehash(tree, by_reward):
    """Fill the table from the nodes."""
    for i in range(tree.table.shape[0]):
        tree.table[i] = NO_NODE
    for node in range(1, tree.used[0]):
        tree.table[find(tree, tree.key[node], tree.reward[node], by_reward)[1]] = node


@kernel
def reroot(tree, space, a, s, r, by_reward, moved):
    """Make the root's child (a, s, r) the root and drop everything else; returns False if there is none.

    ``moved``, int64 [nodes], is scratch: the new number of each node. Nodes stand after their parents, so one
    pass in order is enough, and nothing is overwritten before it is read.
    """
    n_states, n_actions = space.allowed.shape
    width = n_actions * n_states
    root = find(tree, (ROOT * n_actions + a) * n_states + s, r, by_reward)[0]
    if root == NO_NODE or tree.visits[root] == 0:
        return False
    for node in range(root):
        moved[node] = NO_NODE
    kept = 0
    for node in range(root, tree.used[0]):
        parent, edge = tree.key[node] // width, tree.key[node] % width
        if node != root and moved[parent] == NO_NODE:
            moved[node] = NO_NODE
            continue
        moved[node] = kept
        tree.key[kept] = NO_KEY if node == root else moved[parent] * width + edge
        tree.reward[kept] = tree.reward[node]
        tree.visits[kept] = tree.visits[node]
        for b in range(n_actions):
            tree.tries[kept, b] = tree.tries[node, b]
            tree.value[kept, b] = tree.value[node, b]
        kept += 1
    tree.used[0] = kept
    return True


def new_tree(n_actions: int, n_nodes: int, depth: int) -> Tree:
    """Room for so many nodes; there is a root."""
    tree = Tree(
        key=np.zeros(n_nodes, np.int64),
        reward=np.zeros(n_nodes),
        visits=np.zeros(n_nodes, np.int64),
        tries=np.zeros((n_nodes, n_actions), np.int64),
        value=np.zeros((n_nodes, n_actions)),
        table=np.zeros(1 << max(2, (2 * n_nodes - 1).bit_length()), np.int32),
        used=np.zeros(1, np.int64),
        path=np.zeros((depth, 2), np.int64),
        gain=np.zeros(depth),
        returns=np.zeros((n_actions, 3)),
    )
    plant(tree)
    return tree


def most_nodes(n_actions: int) -> int:
    """How many nodes MEMORY holds: of each its row, and up to four entries of the table."""
    return MEMORY // (8 * (3 + 2 * n_actions) + 16)


def with_node_room(tree: Tree, n: int, by_reward: bool) -> Tree:
    """The same tree with room for ``n`` more nodes, as far as MEMORY allows."""
    n_actions = tree.tries.shape[1]
    used, most = int(tree.used[0]), most_nodes(tree.tries.shape[1])
    need = min(used + n, most)
    if need <= len(tree.key):
        return tree
    grown = new_tree(n_actions, min(max(need, 2 * len(tree.key)), most), len(tree.gain))
    for name in ("key", "reward", "visits", "tries", "value"):
        getattr(grown, name)[:used] = getattr(tree, name)[:used]
    grown.used[0] = used
    grown.returns[:] = tree.returns
    rehash(grown, by_reward)
    return grown


# --- the planners' common part ------------------------------------------------------------------------------


@known
@dataclass
class Memory:
    """What an agent keeps between steps."""

    tree: Tree
    learner: Learner
    discount: float
    depth: int
    by_reward: bool  # rewards are part of the history
    world: Any = None  # the world's workspace, if it needs one
    root_state: int = -1  # state of the root of a tree that is kept; -1: plant a new one


@dataclass(frozen=True, kw_only=True)
class TreeSearch(Planner):
    """Hyper-parameters that BAMCP and BAUCT share; :class:`~bamdp.planners.bamcp.BAMCP` explains them."""

    n_simulations: int = 1000
    time_limit: float | None = None
    depth: int | str = "auto"
    exploration: float = 3.0
    epsilon: float = 0.5
    learning_rate: float = 0.2
    learn_from_simulations: bool = False
    reuse_tree: bool = False

    def __post_init__(self) -> None:
        _checks.integer(self.n_simulations, "n_simulations")
        if self.time_limit is not None:
            _checks.real(self.time_limit, "time_limit", low=0.0, open_low=True)
        if isinstance(self.depth, str):
            _checks.one_of(self.depth, "depth", ("auto",))
        else:
            _checks.integer(self.depth, "depth")
        _checks.real(self.exploration, "exploration", low=0.0)
        _checks.real(self.epsilon, "epsilon", low=0.0, high=1.0)
        _checks.real(self.learning_rate, "learning_rate", low=0.0, high=1.0)
        for name in ("learn_from_simulations", "reuse_tree"):
            if not isinstance(getattr(self, name), bool):
                raise TypeError(f"{name} must be True or False, got {getattr(self, name)!r}")

    @abstractmethod
    def _world(self, memory: Memory, belief: Belief) -> Any:
        """What simulations of ``memory.depth`` steps move in."""

    def _grow_world(self, memory: Memory) -> None:
        """Make more room in the world."""

    def start(self, belief: Belief, discount: float) -> Memory:
        depth = auto_depth(discount) if isinstance(self.depth, str) else self.depth
        return Memory(
            tree=new_tree(belief.n_actions, 1, depth),
            learner=new_learner(belief.space, float(self.epsilon), float(self.learning_rate)),
            discount=discount,
            depth=depth,
            by_reward=has_few_rewards(belief.R),
        )

    def act(self, memory: Memory, belief: Belief, state: int, rng: np.ndarray) -> int:
        self._search(memory, belief, state, rng)
        return int(greedy_action(memory.tree, rng))

    def plan(self, memory: Memory, belief: Belief, state: int, rng: np.ndarray) -> Plan:
        done = self._search(memory, belief, state, rng)
        tree = memory.tree
        action = int(greedy_action(tree, rng))
        actions = np.flatnonzero(belief.space.allowed[state]).tolist()
        return Plan(
            action,
            float(tree.value[ROOT, action]),
            tuple(_candidate(tree, a) for a in actions),
            reproducible=self.time_limit is None,
            details={"simulations": done, "nodes": int(tree.used[0]), "depth": memory.depth},
        )

    def explain(self, memory: Memory, belief: Belief, state: int, rng: np.ndarray) -> Plan:
        from bamdp.planners.belief_tree_view import view

        plan = self.plan(memory, belief, state, rng)
        return replace(plan, tree=view(memory, belief, state, plan.action))

    def _search(self, memory: Memory, belief: Belief, state: int, rng: np.ndarray) -> int:
        """Grow the tree from ``state``; returns the number of simulations."""
        if memory.root_state != state:
            plant(memory.tree)
        memory.root_state = state if self.reuse_tree else -1
        memory.tree.returns[:] = 0.0
        if self.time_limit is None:
            self._simulate(memory, belief, state, rng, self.n_simulations)
            return self.n_simulations
        start = time.perf_counter()
        done, batch = 0, FIRST_BATCH
        while True:
            self._simulate(memory, belief, state, rng, batch)
            done += batch
            spent = time.perf_counter() - start
            if spent >= self.time_limit:
                return done
            batch = max(1, min(2 * batch, int(0.5 * done / spent * (self.time_limit - spent))))

    def _simulate(self, memory: Memory, belief: Belief, state: int, rng: np.ndarray, n: int) -> None:
        belief.reserve(memory.depth)
        memory.tree = with_node_room(memory.tree, n, memory.by_reward)
        before = np.empty(4, np.uint64)
        while True:
            status, done = belief.call(
                search,
                self._world(memory, belief),
                belief.R,
                belief.space,
                memory.tree,
                memory.learner,
                memory.discount,
                float(self.exploration),
                memory.depth,
                memory.by_reward,
                self.learn_from_simulations,
                n,
                state,
                rng,
                before,
            )
            if status == DONE:
                return
            n -= int(done)
            self._grow_world(memory)

    def learn(self, memory: Memory, belief: Belief, seen: Transition) -> None:
        s, a, r, s2, terminated = seen
        belief.call(learn_really, memory.learner, belief.space, memory.discount, s, a, float(r), s2)
        if memory.root_state < 0:
            return
        follows = memory.root_state == s and not terminated
        memory.root_state = -1
        moved = np.empty(int(memory.tree.used[0]), np.int64)
        if follows and reroot(memory.tree, belief.space, a, s2, float(r), memory.by_reward, moved):
            rehash(memory.tree, memory.by_reward)
            memory.root_state = s2

    def respace(self, memory: Memory, belief: Belief) -> None:
        set_policies(memory.learner, belief.space)
        memory.root_state = -1


def auto_depth(discount: float) -> int:
    """Steps after which what follows weighs about ACCURACY: 89 for γ = 0.95."""
    return max(1, int(math.log(ACCURACY) / math.log(discount))) if discount > 0.0 else 1


def _candidate(tree: Tree, a: int) -> Candidate:
    n, total, squares = (float(x) for x in tree.returns[a])
    spread = math.sqrt(max(0.0, squares - total * total / n) / (n - 1.0)) if n > 1 else math.nan
    count = int(tree.tries[ROOT, a])
    return Candidate(a, float(tree.value[ROOT, a]) if count else math.nan, spread, count)


def has_few_rewards(R: Any) -> bool:
    """Whether more than one reward, but finitely many, can follow a transition."""
    return type(R) in verbs.n_outcomes.table and 1 < verbs.n_outcomes(R) <= MANY_REWARDS


@kernel
def greedy_action(tree, rng):
    """The root action with the highest mean return, of those that were tried; ties at random."""
    best, action, ties = -np.inf, 0, 1
    for a in range(tree.tries.shape[1]):
        if tree.tries[ROOT, a] == 0:
            continue
        if tree.value[ROOT, a] > best:
            best, action, ties = tree.value[ROOT, a], a, 1
        elif tree.value[ROOT, a] == best:
            ties += 1
            if below(rng, ties) == 0:
                action = a
    return action
