"""The search tree of one decision, for inspection.

Trees have two alternating kinds of nodes, starting with a hyper-state at the root:

* a **hyper-state** ω = (s, β): a state and the belief after all simulated steps on the path to it;
* a **choice** at a hyper-state: an action, or for DSS a policy that is followed for K steps.

A hyper-state below a choice is one of its outcomes: a sampled rollout, a sampled next state, or one of all possible
next states. The ``value`` of a choice is its Q. The edge into a hyper-state has the ``reward`` collected along it and
the ``path`` of visited states.

A depth-first search writes its nodes to a :class:`TreeRecord` if its memory has one; otherwise, the search is
compiled without the recording code. UCT, BFS3 and Bayesian sparse sampling grow a :class:`HistoryTree` selectively,
which :func:`record_histories` copies to a record.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bamdp._kernels.jit import kernel, primitive, zeros
from bamdp.beliefs.belief import Belief
from bamdp.planners.base import KernelPlanner, Plan, Transition

NO_NODE, ROOT = -1, 0
HYPER_STATE, CHOICE = 0, 1  # kinds of nodes
MAX_NODES = 200_000  # maximum number of nodes kept; further ones are only counted
MAX_ENTRIES = 40_000_000  # maximum total size of paths, and of policies

WHOLE = ("state", "parent", "action", "depth", "count", "kind", "policy")  # columns of `whole`, and PATH
REAL = ("reward", "share", "value", "spread", "lower")  # columns of `real`
STATE, PARENT, ACTION, DEPTH, COUNT, KIND, POLICY, PATH = range(8)
REWARD, SHARE, VALUE, SPREAD, LOWER = range(5)
NODES, TOTAL, STEPS, POLICIES, LIMIT = range(5)  # indices into `used`
NODE_HERE, CHOICE_HERE = range(2)  # columns of `branch`
UNOPENED = -2  # in HistoryTree.child: the node's actions are not initialised
SIBLING = 5  # in HistoryTree.node, after STATE .. COUNT
DEEPEST = 1  # in HistoryTree.used, after NODES


class TreeRecord(NamedTuple):
    """Nodes in order of creation, parents first. Inapplicable entries are -1 or NaN.

    ``used`` holds the numbers of NODES kept, nodes created (TOTAL), STEPS and POLICIES, and the LIMIT of nodes kept.
    """

    whole: Annotated[np.ndarray, "int64 [n, 8]"]  # STATE .. PATH (where a node's path begins)
    real: Annotated[np.ndarray, "float64 [n, 5]"]  # REWARD .. LOWER
    path: Annotated[np.ndarray, "int32 [P]"]
    path_reward: Annotated[np.ndarray, "float64 [P]"]
    policies: Annotated[np.ndarray, "int32 [N, S]"]
    used: Annotated[np.ndarray, "int64 [5]"]
    branch: Annotated[np.ndarray, "int64 [D, 2]"]  # current hyper-state and choice at each level


def new_record(nodes: float, at_root: int, depth: int = 1, steps: int = 1, n_states: int = 0) -> TreeRecord:
    """Return an empty record.

    Parameters
    ----------
    nodes
        An upper bound on the number of nodes in the search. Nodes beyond MAX_NODES are not kept, except for ``at_root``
        choices.
    at_root
        Maximum number of choices at the root.
    depth
        Number of levels of the search.
    steps
        Maximum number of steps on the edge into a hyper-state.
    n_states
        S, if choices are policies.
    """
    limit = int(min(nodes, MAX_NODES, max(1, MAX_ENTRIES // max(steps, n_states))))
    n = limit + at_root
    record = zeros(TreeRecord, n=n, P=n * steps, N=n if n_states else 0, S=n_states, D=depth)
    record.used[LIMIT] = limit
    return record


@primitive
def add_node(record, kind, parent, state, action, count):
    """Add a node and return it; NO_NODE if it is not kept. Choices at the root are always kept."""
    used = record.used
    node = used[NODES]
    used[TOTAL] += 1
    if (node >= used[LIMIT] and parent != ROOT) or (parent == NO_NODE and node > 0):
        return np.int64(NO_NODE)
    used[NODES] = node + 1
    whole = record.whole
    whole[node, KIND] = kind
    whole[node, PARENT] = parent
    whole[node, DEPTH] = whole[parent, DEPTH] if node > 0 else 0
    whole[node, STATE] = state
    whole[node, ACTION] = action
    whole[node, POLICY] = NO_NODE
    whole[node, COUNT] = count
    whole[node, PATH] = used[STEPS]
    for i in range(record.real.shape[1]):
        record.real[node, i] = np.nan
    return np.int64(node)


@primitive
def add_policy(record, parent, state, action, count):
    """Add a choice that is a policy, if policies are recorded, and return it."""
    choice = add_node(record, CHOICE, parent, state, action, count)
    if choice != NO_NODE and record.policies.shape[0] > 0:
        record.whole[choice, POLICY] = record.used[POLICIES]
        record.used[POLICIES] += 1
    return choice


@primitive
def add_outcome(record, choice, share):
    """Add a hyper-state below a choice; :func:`add_step` extends the path into it."""
    known = max(choice, 0)
    state, action = record.whole[known, STATE], record.whole[known, ACTION]
    node = add_node(record, HYPER_STATE, choice, state, action, 1)
    if node != NO_NODE:
        record.real[node, SHARE] = share
        record.real[node, REWARD] = 0.0
    return node


@primitive
def add_step(record, node, s2, r, weight):
    """Append a step to the path into the latest node; ``weight`` is the discount factor of its reward."""
    if node != NO_NODE:
        step = record.used[STEPS]
        record.used[STEPS] = step + 1
        record.path[step] = s2
        record.path_reward[step] = r
        record.whole[node, STATE] = s2
        record.whole[node, DEPTH] += 1
        record.real[node, REWARD] += weight * r


@primitive
def set_value(record, node, value, spread):
    """Write the value of a node after its descendants are done; for a choice, also the spread of its samples."""
    if node != NO_NODE:
        record.real[node, VALUE] = value
        record.real[node, SPREAD] = spread


# --- histories -----------------------------------------------------------------------------------------------


class HistoryTree(NamedTuple):
    """Histories of simulated steps, in order of creation, so parents precede their children; all arrays are written to.

    The children of a node for each action form a linked list, so a node takes about 150 bytes for 4 actions (a child
    array over all S states, as in the original BAMCP, takes 8·S·A).
    """

    node: Annotated[np.ndarray, "int64 [M, 6]"]  # STATE, PARENT, ACTION, DEPTH, COUNT, SIBLING
    reward: Annotated[np.ndarray, "float64 [M]"]  # of the step into the node
    child: Annotated[np.ndarray, "int64 [M, A]"]  # most recent child for each action, or NO_NODE
    tries: Annotated[np.ndarray, "int64 [M, A]"]  # how often an action was tried, or its next state drawn
    value: Annotated[np.ndarray, "float64 [M, A]"]  # Q(h, a)
    used: Annotated[np.ndarray, "int64 [2]"]  # number of NODES, DEPTH of the DEEPEST


@primitive
def plant_root(tree, s):
    """Reset the tree to a single root node."""
    tree.used[NODES] = 0
    tree.used[DEEPEST] = 0
    return append_node(tree, NO_NODE, 0, s, 0.0)


@primitive
def append_node(tree, parent, a, s, r):
    """Prepend a node to the children of its parent's action ``a`` and return it."""
    node = tree.used[NODES]
    tree.used[NODES] = node + 1
    tree.reward[node] = r
    tree.child[node, 0] = UNOPENED
    info = tree.node[node]
    info[STATE] = s
    info[PARENT] = parent
    info[ACTION] = a
    info[COUNT] = 0
    info[SIBLING] = NO_NODE
    info[DEPTH] = 0
    if parent != NO_NODE:
        info[SIBLING] = tree.child[parent, a]
        info[DEPTH] = tree.node[parent, DEPTH] + 1
        tree.child[parent, a] = node
        tree.used[DEEPEST] = max(tree.used[DEEPEST], info[DEPTH])
    return node


@primitive
def open_node(tree, node, value):
    """Initialise the actions of a node with the given value."""
    for a in range(tree.child.shape[1]):
        tree.child[node, a] = NO_NODE
        tree.tries[node, a] = 0
        tree.value[node, a] = value


@primitive
def find_child(tree, node, a, s, r, by_reward):
    """Return the child (a, s, r), or (a, s) if histories exclude rewards; NO_NODE if there is none."""
    child = tree.child[node, a]
    while child != NO_NODE and (tree.node[child, STATE] != s or (by_reward and tree.reward[child] != r)):
        child = tree.node[child, SIBLING]
    return child


@kernel
def record_histories(record, tree, values, q, counts, choice, below, share):
    """Append a tree of histories to a record.

    ``values``, float64 [M, 2], and ``q``, float64 [M, A, 2], hold the value and lower bound of each node and action;
    actions whose value is NaN are left out. ``counts``, int64 [M, A], holds the samples of each action. The tree's root
    goes below the choice ``below`` of the record with the given share or, if ``below`` is NO_NODE, becomes the root
    of the record.
    ``choice``, int64 [M, A], is written to: the record's node for each action.
    """
    for i in range(tree.used[NODES]):
        s, parent, a = tree.node[i, STATE], tree.node[i, PARENT], tree.node[i, ACTION]
        if parent == NO_NODE and below == NO_NODE:
            node = add_node(record, HYPER_STATE, NO_NODE, s, NO_NODE, 1)
        else:
            node = add_outcome(record, below if parent == NO_NODE else choice[parent, a], share)
            add_step(record, node, s, tree.reward[i], 1.0)
        set_value(record, node, values[i, 0], np.nan)
        if node != NO_NODE:
            record.whole[node, COUNT] = max(tree.node[i, COUNT], np.int64(i == ROOT))
            record.real[node, LOWER] = values[i, 1]
            if parent != NO_NODE:
                record.real[node, SHARE] = tree.node[i, COUNT] / max(1, counts[parent, a])
        for b in range(q.shape[1]):
            choice[i, b] = NO_NODE
            if not np.isnan(q[i, b, 0]):
                choice[i, b] = add_node(record, CHOICE, node, s, b, counts[i, b])
                set_value(record, choice[i, b], q[i, b, 0], np.nan)
                if choice[i, b] != NO_NODE:
                    record.real[choice[i, b], LOWER] = q[i, b, 1]


# --- the whole tree ------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False, repr=False)
class Tree:
    """The search tree of one decision. Node 0 is the root, a hyper-state; parents precede their children.

    Inapplicable entries are -1 or NaN.
    """

    kind: NDArray[np.int64]  # [n]: HYPER_STATE or CHOICE
    parent: NDArray[np.int64]  # [n]: -1 for the root
    depth: NDArray[np.int64]  # [n]: steps ahead of the current state
    state: NDArray[np.int64]  # [n]: s of the hyper-state; for a choice, the state in which it is made
    action: NDArray[np.int64]  # [n]: the (first) action of a choice, or of the choice above a hyper-state
    policy: NDArray[np.int64]  # [n]: the row of `policies` that a choice follows, for DSS
    reward: NDArray[np.float64]  # [n]: for a hyper-state: discounted reward since the choice above
    share: NDArray[np.float64]  # [n]: for a hyper-state: its probability or its share of the samples
    count: NDArray[np.int64]  # [n]: number of samples behind the value
    value: NDArray[np.float64]  # [n]: Q of a choice, V of a hyper-state; an upper bound if `lower` is set
    spread: NDArray[np.float64]  # [n]: for a choice: standard deviation of its samples
    lower: NDArray[np.float64]  # [n]: lower bound on the value, for BFS3
    chosen: NDArray[np.bool_]  # [n]: on the maximising branch
    path_begin: NDArray[np.int64]  # [n + 1]: start of a hyper-state's path in `path` and `path_reward`
    path: NDArray[np.int32]  # [steps]: states entered since the choice above, ending with the node's own
    path_reward: NDArray[np.float64]  # [steps]: the reward on entering each; NaN if not recorded
    policies: NDArray[np.int32]  # [P, S]: an action for every state; no rows if choices are actions
    total: int  # number of nodes in the whole search; more than n if some were not kept

    def __len__(self) -> int:
        return len(self.kind)

    def __repr__(self) -> str:
        kept = "" if self.complete else f" of {self.total}"
        return f"<Tree of {len(self)}{kept} nodes, {int(self.depth.max())} steps deep>"

    @property
    def complete(self) -> bool:
        """Return whether every node of the search was kept."""
        return len(self) == self.total

    @property
    def n_hyper_states(self) -> int:
        """Return the number of hyper-states among the kept nodes."""
        return int(np.count_nonzero(self.kind == HYPER_STATE))

    def children(self, node: int) -> NDArray[np.int64]:
        """Return the children of a node."""
        return np.flatnonzero(self.parent == node)

    def path_of(self, node: int) -> NDArray[np.int32]:
        """Return the states entered between the choice above a hyper-state and the hyper-state."""
        return self.path[self.path_begin[node] : self.path_begin[node + 1]]

    def history(self, node: int) -> list[Transition]:
        """Return the transitions simulated between the root and a hyper-state, which update its belief."""
        if self.kind[node] == CHOICE:
            node = int(self.parent[node])
        branch = []
        while node != ROOT:
            branch.append(node)
            node = int(self.parent[self.parent[node]])
        steps: list[Transition] = []
        for child in reversed(branch):
            choice = int(self.parent[child])
            s, policy = int(self.state[choice]), int(self.policy[choice])
            for i in range(int(self.path_begin[child]), int(self.path_begin[child + 1])):
                a = int(self.action[choice] if policy == NO_NODE else self.policies[policy, s])
                s2 = int(self.path[i])
                steps.append(Transition(s, a, float(self.path_reward[i]), s2, False))
                s = s2
        return steps


class TreePlanner(KernelPlanner):
    """A planner that writes its search tree to the ``record`` in its memory, a TreeRecord or None."""

    @abstractmethod
    def record(self, belief: Belief) -> TreeRecord:
        """Return an empty record for a decision."""

    def explain(self, memory: Any, belief: Belief, state: int, rng: np.ndarray) -> Plan:
        memory.record = record = self.record(belief)
        plan = self.plan(memory, belief, state, rng)
        memory.record = None
        return with_tree(plan, record) if record.used[NODES] else plan


class HistoryPlanner(KernelPlanner):
    """A planner whose memory holds the :class:`HistoryTree` of its last search as ``tree``."""

    @abstractmethod
    def shown(self, memory: Any, belief: Belief) -> tuple[Any, ...]:
        """Return the last search's tree, node values, [n], and action values and counts, [n, A]."""

    def explain(self, memory: Any, belief: Belief, state: int, rng: np.ndarray) -> Plan:
        plan = self.plan(memory, belief, state, rng)
        tree, values, q, counts = self.shown(memory, belief)
        record = new_record(int(tree.used[NODES]) * (1 + belief.n_actions), belief.n_actions)
        choice = np.zeros(q.shape, np.int64)
        values, q = (np.stack([x, np.full_like(x, np.nan)], axis=-1) for x in (values, q))
        record_histories(record, tree, values, q, counts, choice, NO_NODE, np.nan)
        for candidate in plan.candidates:
            if choice[ROOT, candidate.action] != NO_NODE:
                record.real[choice[ROOT, candidate.action], SPREAD] = candidate.spread
        return with_tree(plan, record)


def with_tree(plan: Plan, record: TreeRecord) -> Plan:
    """Return a plan with the recorded tree of its search."""
    n, total, steps, n_policies, _ = record.used.tolist()
    whole, real = record.whole[:n].T.copy(), record.real[:n].T.copy()
    named = dict(zip(WHOLE, whole)) | dict(zip(REAL, real))
    choices = np.flatnonzero(whole[PARENT] == ROOT)
    best = choices[np.where(whole[ACTION, choices] == plan.action, real[VALUE, choices], -np.inf).argmax()]
    tree = Tree(
        **named,
        chosen=chosen_nodes(whole[PARENT], whole[KIND], real[VALUE], best),
        path_begin=np.append(whole[PATH], steps),
        path=record.path[:steps].copy(),
        path_reward=record.path_reward[:steps].copy(),
        policies=record.policies[:n_policies].copy(),
        total=total,
    )
    return replace(plan, tree=tree)


def chosen_nodes(
    parent: NDArray[np.int64], kind: NDArray[Any], value: NDArray[np.float64], root_choice: int
) -> NDArray[np.bool_]:
    """Return which nodes are reached by best choices: all samples of the root's choice, their best choices, and so
    on."""
    first = np.full(len(parent), NO_NODE)  # of the best choices at a hyper-state
    for node in range(len(parent) - 1, 0, -1):
        above = parent[node]
        if kind[node] == CHOICE and (first[above] == NO_NODE or not value[node] < value[first[above]]):
            first[above] = node
    first[ROOT] = root_choice
    chosen = np.zeros(len(parent), bool)
    chosen[ROOT] = True
    for node in range(1, len(parent)):
        chosen[node] = chosen[parent[node]] and (kind[node] == HYPER_STATE or first[parent[node]] == node)
    return chosen
