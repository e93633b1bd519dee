"""Numbers that every belief gives, to be compared between a compiled and an interpreted process."""

import json
import sys

import numpy as np
from beliefs_exact import CASES, A, S
from beliefs_kernels import advance_many, draw_many, moments, play, unwind

from bamdp._kernels.random import new_rng


def numbers(name):
    case, data = CASES[name], []
    for step in [
        (0, 0, 1.0, 1),
        (0, 0, 0.0, 0),
        (1, 1, 1.0, 2),
        (0, 0, 1.0, 2),
        (2, 0, 0.0, 3),
        (0, 0, 0.0, 3),
    ]:
        if case.evidence([*data, step]) > 0:
            data.append(step)
    belief = case.belief(data)
    out = [belief.log_evidence]
    belief.observe_many(*([step[i] for step in data[:2]] for i in range(4)))
    out += [belief.log_evidence]
    out += [
        x
        for s in range(S)
        for a in range(A)
        for x in [*belief.predictive(s, a), belief.expected_reward(s, a)]
    ]
    for seed in range(10):
        model = belief.sample(seed)
        out += [*model.dense().ravel(), *model.expected_rewards.ravel()]
    out += [*belief.mean().dense().ravel()]
    for row in range(S * A):
        arrays = np.zeros(64, np.int32), np.zeros(64), np.zeros(64)
        out += [*moments(belief.transitions, row, *arrays), *arrays[0], *arrays[1], *arrays[2]]
    belief.reserve(20)
    counts = np.zeros(S**3, np.int64)
    advance_many(belief.transitions, np.array([0, 0, 3]), new_rng(1), 50, S, counts)
    draws = np.zeros(S + 1, np.int64)
    draws[0] = 50
    draw_many(belief.transitions, 2, new_rng(2), draws)
    script = np.array([(0, 1, 1), (1, 2, 0), (-1, 0, 0), (0, 3, 0), (4, 3, 1)])
    probs = np.zeros(len(script))
    depth = play(belief.transitions, belief.rewards, script, probs)
    unwind(belief.transitions, belief.rewards, depth)
    return [float(x) for x in [*out, *counts, *draws, *probs, depth, *belief.predictive(0, 0)]]


if __name__ == "__main__":
    json.dump({name: numbers(name) for name in CASES}, sys.stdout)
