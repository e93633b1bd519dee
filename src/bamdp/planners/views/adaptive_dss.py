"""The race of AdaptiveDSS as a tree: the strategies at the root, and below each what its first stage led to."""

from __future__ import annotations

import math

from bamdp.planners.adaptive_dss import LEADER, MODELS, RaceArrays, RaceParams
from bamdp.planners.base import Plan
from bamdp.planners.tree import NO_NODE, Tree, TreeBuilder


def race_tree(plan: Plan, race: RaceArrays, params: RaceParams, state: int) -> Tree:
    """Return the candidates of ``plan`` as choices, each with the first K steps of its trials in the models kept.

    Later stages follow policies that were solved on the way and are not kept. What a sample is worth is a difference
    of values in its model, so hyper-states have no values of their own.
    """
    builder = TreeBuilder(steps=params.n_steps)
    root = builder.hyper_state(NO_NODE, state, count=1, value=plan.value)
    kept = min(int(race.number[MODELS]), len(race.path))
    choices = []
    for c, candidate in enumerate(plan.candidates):
        known = {"value": candidate.value, "spread": candidate.spread, "count": candidate.count}
        choice = builder.choice(root, candidate.action, policy=race.policy[c].copy(), **known)
        choices.append(choice)
        n = min(kept, candidate.count)
        for m in range(n):
            path = race.path[m, c, : min(params.n_steps, race.path[m, c, -1])]
            rewards = [math.nan] * len(path)
            end = int(path[-1]) if len(path) else state
            builder.hyper_state(choice, end, path=path.tolist(), gains=rewards, count=1, share=1.0 / n)
    return builder.finish(choices[int(race.number[LEADER])])
