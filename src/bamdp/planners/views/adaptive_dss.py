"""The race of AdaptiveDSS as a tree: the strategies at the root, and below each what its first stage led to."""

from __future__ import annotations

import math

from bamdp.planners.adaptive_dss import LEADER, MODELS, RaceArrays, RaceParams
from bamdp.planners.base import Plan
from bamdp.planners.shared.history_tree import py_add_node, py_add_outcome, py_add_step, record_root
from bamdp.planners.tree import (
    CHOICE,
    POLICIES,
    POLICY,
    SPREAD,
    VALUE,
    Tree,
    new_record,
    recorded_tree,
)


def race_tree(plan: Plan, race: RaceArrays, params: RaceParams, state: int) -> Tree:
    """Return the candidates of ``plan`` as choices, each with the first K steps of its trials in the models kept.

    Later stages follow policies that were solved on the way and are not kept. What a sample is worth is a difference
    of values in its model, so hyper-states have no values of their own.
    """
    kept, n = min(int(race.number[MODELS]), len(race.path)), len(plan.candidates)
    record = new_record(1 + n * (1 + kept), n, steps=params.n_steps, n_states=race.policy.shape[1])
    root = record_root(record, state, plan.value, 1)
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
