"""The double loop: two deterministic loops, one of which pays twice the other."""

from __future__ import annotations

import math

import numpy as np

from bamdp.envs.environment import Environment
from bamdp.envs.layout import Layout
from bamdp.mdp import FiniteMDP

_TEXT = """\
(2)◀──(1)       (5)──▶(6)
 │       ╲     ╱       │
 │        ╲   ╱        │
 │         (0)         │
 │        ╱   ╲        │
 ▼       ╱     ╲       ▼
(3)──▶(4)       (8)◀──(7)"""


def double_loop() -> Environment:
    """Two loops through one state; the one that is easy to leave pays twice the other.

    Description
    -----------
    Two loops of five states share state 0. The left one is walked whatever is done and pays 1 at its end. The
    right one pays 2, and is walked only by choosing action 1 four times in a row: any other choice leads back
    to 0.

    States
    ------
    0 the shared one, 1 to 4 the left loop, 5 to 8 the right loop.

    Actions
    -------
    0 left, 1 right.

    Transitions
    -----------
    Deterministic. In 0: action 0 leads to 1, action 1 to 5. 1, 2, 3 lead on and 4 to 0, under both actions.
    In 5, 6 and 7 action 1 leads on and action 0 to 0. 8 leads to 0 under both.

    Rewards
    -------
    R(s, a): 1 for any action in 4, 2 for any action in 8.

    Start
    -----
    State 0. The world never ends; the paper runs it for 1000 steps.

    Reference
    ---------
    R. Dearden, N. Friedman, S. Russell (1998), Bayesian Q-learning, AAAI.

    Examples
    --------
    >>> env = double_loop()
    >>> env.reset(seed=0)
    0
    >>> [env.step(1) for _ in range(5)][-1]
    (0, 2.0, False)
    """
    target = np.array([[1, 5], [2, 2], [3, 3], [4, 4], [0, 0], [0, 6], [0, 7], [0, 8], [0, 0]])
    transitions = np.zeros((9, 2, 9))
    np.put_along_axis(transitions, target[:, :, None], 1.0, axis=2)
    rewards = np.zeros((9, 2))
    rewards[4], rewards[8] = 1.0, 2.0
    mdp = FiniteMDP(transitions, rewards, action_labels=("left", "right"))
    return Environment("double_loop", mdp, horizon=1000, time_limit=0.25, layout=double_loop_layout())


def double_loop_layout() -> Layout:
    """Two regular pentagons that share the node in the middle; both are walked away from it along the top."""
    radius = 1.2
    turn = 2 * math.pi / 5 * np.arange(1, 5)
    right = np.column_stack([radius - radius * np.cos(turn), -radius * np.sin(turn)])
    left = right * (-1, 1)
    positions = np.vstack([[0.0, 0.0], left, right])
    positions -= positions.min(axis=0)
    width, height = positions.max(axis=0) + 1
    # the edge from 0 to 5 keeps to the outside of the one that comes back
    return Layout(
        "graph", float(width), float(height), positions, bends={(0, 5): 0.0, (5, 0): 0.3}, text=_TEXT
    )
