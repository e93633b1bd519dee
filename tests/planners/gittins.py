"""Gittins indices of Bernoulli arms with Beta beliefs, by calibration, and exact bandit values by recursion.

The index of an arm is the λ that makes one indifferent between a sure λ a step for ever and the arm with the right
to retire to λ at any later time. For a fixed λ the second is an optimal stopping problem over the arm's counts,

    V_λ(a, b) = max(λ/(1−γ), p (1 + γ V_λ(a+1, b)) + (1 − p) γ V_λ(a, b+1)),    p = a/(a+b),

solved backwards from a far horizon; the advantage of the arm over retiring falls strictly with λ, and its root is
found between the points of a grid. Nothing here shares a line with the library.
"""

import functools

import numpy as np

GRID = np.linspace(0.0, 1.0, 2001)


@functools.cache
def indices(discount, most, beyond=150):
    """Gittins indices [i, j] of Beta(1+i, 1+j) for i + j <= most; beyond: steps after which an arm is settled."""
    last = most + beyond
    retire = GRID / (1.0 - discount)
    p = (1.0 + np.arange(last + 1)) / (last + 2.0)  # successes i of n = last
    value = np.maximum(retire, p[:, None] / (1.0 - discount))  # [i, λ]
    found = np.full((most + 1, most + 1), np.nan)
    for n in range(last - 1, -1, -1):
        p = ((1.0 + np.arange(n + 1)) / (n + 2.0))[:, None]
        go_on = p * (1.0 + discount * value[1:]) + (1.0 - p) * discount * value[:-1]
        if n <= most:
            for i in range(n + 1):
                found[i, n - i] = _root(go_on[i] - retire)
        value = np.maximum(retire, go_on)
    return found


def _root(advantage):
    """Where a falling function on GRID crosses zero."""
    k = int(np.argmax(advantage < 0.0))
    share = advantage[k - 1] / (advantage[k - 1] - advantage[k])
    return GRID[k - 1] + share * (GRID[k] - GRID[k - 1])


def two_arm_values(discount, horizon, policy=None):
    """(lower, upper) discounted value of two Beta(1, 1) arms, under ``policy(i, j, k, l) -> arm`` or the best.

    After ``horizon`` steps: the higher mean for ever, or a sure 1 for ever.
    """

    def ends(i, j, k, l):
        return max((1 + i) / (2 + i + j), (1 + k) / (2 + k + l)) / (1 - discount), 1 / (1 - discount)

    @functools.cache
    def value(i, j, k, l):
        if i + j + k + l == horizon:
            return ends(i, j, k, l)
        p, q = (1 + i) / (2 + i + j), (1 + k) / (2 + k + l)

        def pull(arm):
            mean = (p, q)[arm]
            won, lost = (
                ((i + 1, j, k, l), (i, j + 1, k, l)) if arm == 0 else ((i, j, k + 1, l), (i, j, k, l + 1))
            )
            return [mean + discount * (mean * w + (1 - mean) * x) for w, x in zip(value(*won), value(*lost))]

        if policy is not None:
            return tuple(pull(policy(i, j, k, l)))
        return tuple(map(max, *(pull(arm) for arm in (0, 1))))

    return value(0, 0, 0, 0)


def play(means, draws, discount, choose, learn):
    """Discounted sum of the chosen arms' true means (rewards' own noise is left out).

    ``draws[a, k]`` decides the k-th pull of arm a, so that all players meet the same luck.
    """
    pulls = np.zeros(len(means), int)
    total, weight = 0.0, 1.0
    for _ in range(draws.shape[1]):
        arm = choose()
        reward = float(draws[arm, pulls[arm]] < means[arm])
        pulls[arm] += 1
        total += weight * means[arm]
        weight *= discount
        learn(arm, reward)
    return total


def play_gittins(means, draws, discount):
    """The same for the Gittins policy."""
    steps = draws.shape[1]
    table = indices(discount, steps)
    won, lost = np.zeros(len(means), int), np.zeros(len(means), int)

    def learn(arm, reward):
        (won if reward else lost)[arm] += 1

    return play(means, draws, discount, lambda: int(np.argmax(table[won, lost])), learn)
