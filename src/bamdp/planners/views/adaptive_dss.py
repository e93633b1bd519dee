"""The race of AdaptiveDSS as a tree: strategies at the root, and below each the outcomes of its first stage."""

from __future__ import annotations

import math
from typing import Any

from bamdp.planners.adaptive_dss import LEADER, MODELS, RaceArrays, RaceParams
from bamdp.planners.base import Plan
from bamdp.planners.tree import (
    CHOICE,
    HYPER_STATE,
    NO_NODE,
    POLICIES,
    POLICY,
    SPREAD,
    VALUE,
    Tree,
    add_node,
    add_outcome,
    add_step,
    new_record,
    recorded_tree,
)


def _plain(function: Any) -> Any:
    """Return a primitive as plain Python, which is faster when called from Python."""
    return getattr(function, "py_func", function)


py_add_node, py_add_outcome, py_add_step = _plain(add_node), _plain(add_outcome), _plain(add_step)


def race_tree(plan: Plan, race: RaceArrays, params: RaceParams, state: int) -> Tree:
    """Return the candidates of ``plan`` as choices, each with the first K steps of its recorded trials.

    Later stages follow policies that are computed on the fly and not stored. A sample's return is a difference of
    values within its model, so hyper-states have no values of their own.
    """
    kept, n = min(int(race.number[MODELS]), len(race.path)), len(plan.candidates)
    record = new_record(1 + n * (1 + kept), n, steps=params.n_steps, n_states=race.policy.shape[1])
    root = int(py_add_node(record, HYPER_STATE, NO_NODE, state, NO_NODE, 1))
    record.real[root, VALUE] = plan.value
    for c, candidate in enumerate(plan.candidates):
        choice = int(py_add_node(record, CHOICE, root, state, candidate.action, candidate.count))
        record.whole[choice, POLICY] = c
        record.real[choice, [VALUE, SPREAD]] = candidate.value, candidate.spread
        record.policies[c] = race.policy[c]
        n_samples = min(kept, candidate.count)
        for m in range(n_samples):
            node = int(py_add_outcome(record, choice, 1.0 / n_samples))
            for s in race.path[m, c, : min(params.n_steps, race.path[m, c, -1])]:
                py_add_step(record, node, s, math.nan, 1.0)
    record.used[POLICIES] = n
    return recorded_tree(record, int(race.number[LEADER]))
