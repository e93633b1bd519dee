"""A planning tree to be looked at: what a search did for one decision, as flat arrays.

All planners that grow a tree speak of the same two kinds of nodes, which alternate from the root down:

* a **hyper-state** ω = (s, β): a state, and the belief after everything simulated on the way there;
* a **choice** at a hyper-state: an action, or for DSS a policy that is followed for K steps.

A hyper-state below a choice is one thing that may come of it: a sampled rollout, a sampled next state, or one of all
possible next states. ``Q`` of a choice is its ``value``; the edge into a hyper-state carries the ``reward`` collected
on the way and the ``path`` of states passed.

Searches do not keep such a tree: they have no use for most of it. It is made on request
(:meth:`bamdp.Agent.plan` with ``tree=True``), from what the search left behind or by walking the same way again with
the same random numbers, so that acting is not slowed down by a nanosecond.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bamdp.planners.base import Transition
from bamdp.planners.shared.history_tree import NO_NODE, ROOT

HYPER_STATE, CHOICE = 0, 1  # kinds of nodes
MAX_NODES = 200_000  # of a tree that is built node by node; those beyond are counted, not kept

_COLUMNS = {
    "kind": np.int8,
    **dict.fromkeys(("parent", "depth", "state", "action", "policy"), np.int32),
    "count": np.int64,
    **dict.fromkeys(("reward", "share", "value", "spread", "lower"), np.float64),
}


@dataclass(frozen=True, eq=False, repr=False)
class Tree:
    """The tree of one decision. Node 0 is the root, a hyper-state; parents stand before their children.

    What does not apply to a node is -1 or NaN.
    """

    kind: NDArray[np.int8]  # [n]: HYPER_STATE or CHOICE
    parent: NDArray[np.int32]  # [n]: -1 for the root
    depth: NDArray[np.int32]  # [n]: steps ahead of now
    state: NDArray[np.int32]  # [n]: s of the hyper-state; of a choice, where it is made
    action: NDArray[
        np.int32
    ]  # [n]: the (first) action of a choice; of a hyper-state, that of the choice above
    policy: NDArray[np.int32]  # [n]: the row of `policies` that a choice follows, for DSS
    reward: NDArray[np.float64]  # [n]: of a hyper-state: discounted, collected since the choice above
    share: NDArray[np.float64]  # [n]: of a hyper-state: its probability, or its share of the samples
    count: NDArray[np.int64]  # [n]: samples behind the value
    value: NDArray[
        np.float64
    ]  # [n]: Q of a choice, V of a hyper-state; an upper bound where there is a lower
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


@dataclass
class TreeBuilder:
    """Nodes as they come, parents first; beyond ``limit`` they are only counted, but for choices at the root."""

    limit: int = MAX_NODES
    total: int = 0
    columns: dict[str, list[float]] = field(default_factory=lambda: {name: [] for name in _COLUMNS})
    paths: list[Any] = field(default_factory=list)
    gains: list[Any] = field(default_factory=list)
    policies: list[NDArray[np.int32]] = field(default_factory=list)

    def hyper_state(self, parent: int, state: int, *, path: Any = (), gains: Any = (), **rest: float) -> int:
        """Add what a choice led to (or the root: parent NO_NODE); returns the node, NO_NODE if it is not kept."""
        depth, action = 0, NO_NODE
        if parent != NO_NODE:
            depth = int(self.columns["depth"][parent]) + len(path)
            action = int(self.columns["action"][parent])
        rest |= {"kind": HYPER_STATE, "parent": parent, "depth": depth, "state": state, "action": action}
        return self._add(path, gains, rest)

    def step(self, parent: int, state: int, reward: float, **rest: float) -> int:
        """Add what a choice led to after a single step."""
        return self.hyper_state(parent, state, path=(state,), gains=(reward,), reward=reward, **rest)

    def choice(
        self, parent: int, action: int, *, policy: NDArray[np.int32] | None = None, **rest: float
    ) -> int:
        """Add a choice at a hyper-state; returns the node, NO_NODE if it is not kept."""
        depth = state = row = NO_NODE
        if parent != NO_NODE:
            depth, state = (int(self.columns[name][parent]) for name in ("depth", "state"))
            if policy is not None:
                row = len(self.policies)
                self.policies.append(policy)
        rest |= {"kind": CHOICE, "parent": parent, "depth": depth, "state": state, "action": action}
        return self._add((), (), {**rest, "policy": row})

    def _add(self, path: Any, gains: Any, given: dict[str, float]) -> int:
        self.total += 1
        node, parent = len(self.paths), given["parent"]
        beyond = node >= self.limit and parent != ROOT  # what was there to choose from is always kept
        if beyond or (parent == NO_NODE and node > 0):
            return NO_NODE
        given = {"policy": NO_NODE, "count": 0, **given}
        for name, column in self.columns.items():
            column.append(given.get(name, np.nan))
        self.paths.append(path)
        self.gains.append(gains)
        return node

    def set(self, node: int, **values: float) -> None:
        """Write what is known of a node only after those below it."""
        if node != NO_NODE:
            for name, value in values.items():
                self.columns[name][node] = value

    def at_root(self, action: int) -> int:
        """Return the choice of an action at the root."""
        return list(zip(self.columns["parent"], self.columns["action"])).index((ROOT, action))

    def finish(self, root_choice: int) -> Tree:
        """Return the tree; ``root_choice`` is what the search settled for (choices below the root go by value)."""
        begin = np.zeros(len(self.paths) + 1, np.int64)
        np.cumsum([len(path) for path in self.paths], out=begin[1:])
        columns: dict[str, Any] = {
            name: np.array(self.columns[name], dtype) for name, dtype in _COLUMNS.items()
        }
        return Tree(
            chosen=_chosen(columns["parent"], columns["kind"], columns["value"], root_choice),
            path_begin=begin,
            path=_joined(self.paths, np.int32),
            path_reward=_joined(self.gains, np.float64),
            policies=np.array(self.policies, np.int32) if self.policies else np.zeros((0, 0), np.int32),
            total=self.total,
            **columns,
        )


def mean_and_spread(returns: Sequence[float]) -> tuple[float, float]:
    """Return the mean of sampled returns and their standard deviation, in the very steps of the compiled searches."""
    n, total, squares = len(returns), 0.0, 0.0
    for q in returns:
        total += q
        squares += q * q
    mean = total / n
    return mean, math.sqrt(max(0.0, squares / n - mean * mean) * n / (n - 1)) if n > 1 else math.nan


def _joined(parts: Sequence[Any], dtype: Any) -> NDArray[Any]:
    filled = [np.asarray(part, dtype) for part in parts if len(part)]
    return np.concatenate(filled) if filled else np.zeros(0, dtype)


def _chosen(
    parent: NDArray[np.int32], kind: NDArray[Any], value: NDArray[np.float64], root_choice: int
) -> NDArray[np.bool_]:
    """Return which nodes best choices lead to, from the root down: all samples of the best choice, the best there..."""
    n = len(parent)
    best = np.asarray(kind == HYPER_STATE)
    choices = np.flatnonzero(kind == CHOICE)
    comparable = np.where(np.isnan(value[choices]), -np.inf, value[choices])
    order = choices[np.lexsort((choices, -comparable, parent[choices]))]  # the first of the best comes first
    first = np.ones(len(order), bool)
    first[1:] = parent[order[1:]] != parent[order[:-1]]
    best[order[first]] = True
    best[choices[parent[choices] == ROOT]] = False
    best[root_choice] = True
    chosen = np.zeros(n, bool)
    chosen[ROOT] = True
    while True:
        further = best & chosen[parent]
        further[ROOT] = True
        if np.array_equal(further, chosen):
            return chosen
        chosen = further
