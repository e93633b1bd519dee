"""The tree of one decision, to be looked at.

Trees have two kinds of nodes, which alternate from the root down:

* a **hyper-state** ω = (s, β): a state, and the belief after everything simulated on the way there;
* a **choice** at a hyper-state: an action, or for DSS a policy that is followed for K steps.

A hyper-state below a choice is one thing that may come of it: a sampled rollout, a sampled next state, or one of all
possible next states. ``Q`` of a choice is its ``value``; the edge into a hyper-state carries the ``reward`` collected
on the way and the ``path`` of states passed.

A depth-first search that is given a :class:`TreeRecord` writes its nodes there as it goes; given None, it is compiled
without these lines. Searches that keep their whole tree are shown by :mod:`bamdp.planners.shared.history_tree`.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bamdp._kernels.bundles import zeros
from bamdp._kernels.jit import primitive
from bamdp.beliefs.belief import Belief
from bamdp.planners.base import KernelPlanner, Plan, Transition

NO_NODE, ROOT = -1, 0
HYPER_STATE, CHOICE = 0, 1  # kinds of nodes
MAX_NODES = 200_000  # that are kept; those beyond are counted
MAX_ENTRIES = 40_000_000  # of all paths, and of all policies

STATE, PARENT, ACTION, DEPTH, COUNT, KIND, POLICY, PATH = range(8)  # columns of `whole`
REWARD, SHARE, VALUE, SPREAD, LOWER = range(5)  # columns of `real`
NODES, TOTAL, STEPS, POLICIES, LIMIT = range(5)  # in `used`
NODE_HERE, CHOICE_HERE = range(2)  # columns of `branch`


class TreeRecord(NamedTuple):
    """Nodes in the order in which they are made, parents first. What does not apply to a node is -1 or NaN."""

    whole: Annotated[np.ndarray, "int64 [n, 8]"]  # STATE .. PATH (where a node's path begins)
    real: Annotated[np.ndarray, "float64 [n, 5]"]  # REWARD .. LOWER
    path: Annotated[np.ndarray, "int32 [P]"]
    path_reward: Annotated[np.ndarray, "float64 [P]"]
    policies: Annotated[np.ndarray, "int32 [N, S]"]
    used: Annotated[np.ndarray, "int64 [5]"]  # nodes kept, nodes made, steps, policies; nodes to be kept
    branch: Annotated[np.ndarray, "int64 [D, 2]"]  # at each level of a search: the hyper-state, the choice


def new_record(nodes: float, at_root: int, depth: int = 1, steps: int = 1, n_states: int = 0) -> TreeRecord:
    """Return an empty record.

    Parameters
    ----------
    nodes
        An upper bound of the nodes of the search. Those beyond MAX_NODES are not kept, ``at_root`` choices excepted.
    at_root
        The largest number of choices at the root.
    depth
        Levels of the search.
    steps
        The largest number of steps on the way into a hyper-state.
    n_states
        S, where choices are policies.
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
    """Add a choice that is a policy, where policies are recorded, and return it."""
    choice = add_node(record, CHOICE, parent, state, action, count)
    if choice != NO_NODE and record.policies.shape[0] > 0:
        record.whole[choice, POLICY] = record.used[POLICIES]
        record.used[POLICIES] += 1
    return choice


@primitive
def add_outcome(record, choice, share):
    """Add a hyper-state below a choice, to which :func:`add_step` leads."""
    known = max(choice, 0)
    state, action = record.whole[known, STATE], record.whole[known, ACTION]
    node = add_node(record, HYPER_STATE, choice, state, action, 1)
    if node != NO_NODE:
        record.real[node, SHARE] = share
        record.real[node, REWARD] = 0.0
    return node


@primitive
def add_step(record, node, s2, r, weight):
    """Add a step to the path into the latest node; ``weight`` is the discount of its reward."""
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
    """Write the value of a node, known after those below it, and of a choice the spread of its samples."""
    if node != NO_NODE:
        record.real[node, VALUE] = value
        record.real[node, SPREAD] = spread


@dataclass(frozen=True, eq=False, repr=False)
class Tree:
    """The tree of one decision. Node 0 is the root, a hyper-state; parents stand before their children.

    What does not apply to a node is -1 or NaN.
    """

    kind: NDArray[np.int64]  # [n]: HYPER_STATE or CHOICE
    parent: NDArray[np.int64]  # [n]: -1 for the root
    depth: NDArray[np.int64]  # [n]: steps ahead of now
    state: NDArray[np.int64]  # [n]: s of the hyper-state; of a choice, where it is made
    action: NDArray[
        np.int64
    ]  # [n]: the (first) action of a choice; of a hyper-state, that of the choice above
    policy: NDArray[np.int64]  # [n]: the row of `policies` that a choice follows, for DSS
    reward: NDArray[np.float64]  # [n]: of a hyper-state: discounted, collected since the choice above
    share: NDArray[np.float64]  # [n]: of a hyper-state: its probability, or its share of the samples
    count: NDArray[np.int64]  # [n]: samples behind the value
    value: NDArray[np.float64]  # [n]: Q of a choice, V of a hyper-state; an upper bound if there is a lower
    spread: NDArray[np.float64]  # [n]: of a choice: standard deviation of its samples
    lower: NDArray[np.float64]  # [n]: the lower bound that goes with the value, for BFS3
    chosen: NDArray[np.bool_]  # [n]: on the maximising branch
    path_begin: NDArray[np.int64]  # [n + 1]: where a hyper-state's path begins in the two below
    path: NDArray[np.int32]  # [steps]: the states entered since the choice above, the node's own last
    path_reward: NDArray[np.float64]  # [steps]: the reward on entering each; NaN where it was not kept
    policies: NDArray[np.int32]  # [P, S]: an action for every state; no rows where choices are actions
    total: int  # nodes of the whole search; more than n if it was too large to be kept

    def __len__(self) -> int:
        return len(self.kind)

    def __repr__(self) -> str:
        kept = "" if self.complete else f" of {self.total}"
        return f"<Tree of {len(self)}{kept} nodes, {int(self.depth.max())} steps deep>"

    @property
    def complete(self) -> bool:
        """Whether every node of the search is here."""
        return len(self) == self.total

    @property
    def n_hyper_states(self) -> int:
        """How many of the nodes kept are hyper-states."""
        return int(np.count_nonzero(self.kind == HYPER_STATE))

    def children(self, node: int) -> NDArray[np.int64]:
        """Return the nodes right below another."""
        return np.flatnonzero(self.parent == node)

    def path_of(self, node: int) -> NDArray[np.int32]:
        """Return the states entered on the way into a hyper-state since the choice above."""
        return self.path[self.path_begin[node] : self.path_begin[node + 1]]

    def history(self, node: int) -> list[Transition]:
        """Every transition simulated between the root and a hyper-state: what its belief has learned."""
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
    """A planner that writes all it searches to a record, where it is given one."""

    @abstractmethod
    def record(self, belief: Belief) -> TreeRecord:
        """Return an empty record for a decision."""

    @abstractmethod
    def plan(
        self, memory: Any, belief: Belief, state: int, rng: np.ndarray, record: TreeRecord | None = None
    ) -> Plan: ...

    def explain(self, memory: Any, belief: Belief, state: int, rng: np.ndarray) -> Plan:
        record = self.record(belief)
        plan = self.plan(memory, belief, state, rng, record)
        if record.used[NODES] == 0:
            return plan
        best = [c.value if c.action == plan.action else -np.inf for c in plan.candidates]
        return replace(plan, tree=recorded_tree(record, int(np.argmax(best))))


def recorded_tree(record: TreeRecord, chosen: int) -> Tree:
    """Return what a search has recorded, which settled for the ``chosen``-th choice at the root."""
    n, total, steps, n_policies, _ = record.used.tolist()
    whole, real = record.whole[:n].T.copy(), record.real[:n].T.copy()
    parent, value = whole[PARENT], real[VALUE]
    root_choice = int(np.flatnonzero(parent == ROOT)[chosen])
    return Tree(
        kind=whole[KIND],
        parent=parent,
        depth=whole[DEPTH],
        state=whole[STATE],
        action=whole[ACTION],
        policy=whole[POLICY],
        reward=real[REWARD],
        share=real[SHARE],
        count=whole[COUNT],
        value=value,
        spread=real[SPREAD],
        lower=real[LOWER],
        chosen=chosen_nodes(parent, whole[KIND], value, root_choice),
        path_begin=np.append(whole[PATH], steps),
        path=record.path[:steps].copy(),
        path_reward=record.path_reward[:steps].copy(),
        policies=record.policies[:n_policies].copy(),
        total=total,
    )


def chosen_nodes(
    parent: NDArray[np.int64], kind: NDArray[Any], value: NDArray[np.float64], root_choice: int
) -> NDArray[np.bool_]:
    """Return which nodes best choices lead to, from the root down: all samples of the best choice, the best there..."""
    chosen = np.zeros(len(parent), bool)
    chosen[[ROOT, root_choice]] = True
    best = np.full(len(parent), -np.inf)  # of the choices at a hyper-state
    choices = np.flatnonzero(kind == CHOICE)
    np.fmax.at(best, parent[choices], value[choices])
    first = np.full(len(parent), NO_NODE)
    at_best = choices[~(value[choices] < best[parent[choices]])]
    first[parent[at_best][::-1]] = at_best[::-1]
    for node in range(1, len(parent)):
        above = parent[node]
        if above != ROOT and chosen[above]:
            chosen[node] = kind[node] == HYPER_STATE or first[above] == node
    return chosen
