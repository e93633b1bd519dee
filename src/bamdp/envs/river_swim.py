"""River swim: a hard way upstream to a large reward."""

from __future__ import annotations

import numpy as np

from bamdp import _checks
from bamdp.envs.environment import Environment
from bamdp.envs.layout import line_layout
from bamdp.mdp import FiniteMDP


def river_swim(n_states: int = 6) -> Environment:
    """A river to swim up against the current, for a large reward at its end.

    Description
    -----------
    Swimming left goes with the current and never fails; swimming right mostly holds its place. A small reward
    waits downstream and a large one upstream, so undirected exploration takes time exponential in the length.

    States
    ------
    0 .. ``n_states`` - 1, from the left bank to the right one.

    Actions
    -------
    0 left, with the current; 1 right, against it.

    Transitions
    -----------
    Left leads from s to s - 1, and from 0 to 0, with certainty. Right leads from an inner state up with 0.35,
    nowhere with 0.6 and down with 0.05; from 0 up with 0.6, nowhere with 0.4; from the last nowhere with 0.6,
    down with 0.4.

    Rewards
    -------
    R(s, a): 0.005 for left in 0, 1 for right in the last state.

    Start
    -----
    State 0. Here the river never ends: it has no episodes.

    Reference
    ---------
    A. Strehl, M. Littman (2008), An analysis of model-based interval estimation for Markov decision
    processes, JCSS; the numbers are those of I. Osband's TabulaRL.

    Parameters
    ----------
    n_states : int, default 6
        The length of the river, at least 2.

    Examples
    --------
    >>> river_swim().mdp.row(2, 1)
    (array([1, 2, 3]), array([0.05, 0.6 , 0.35]))
    """
    n_states = _checks.integer(n_states, "n_states", low=2)
    _checks.memory(16 * 2 * n_states**2, f"a river of {n_states} states")
    s, last = np.arange(n_states), n_states - 1
    transitions = np.zeros((n_states, 2, n_states))
    transitions[s, 0, np.maximum(s - 1, 0)] = 1.0
    transitions[s[1:], 1, s[1:] - 1] = 0.05
    transitions[s, 1, s] = 0.6
    transitions[s[:-1], 1, s[:-1] + 1] = 0.35
    transitions[0, 1, [0, 1]] = 0.4, 0.6
    transitions[last, 1, [last - 1, last]] = 0.4, 0.6
    rewards = np.zeros((n_states, 2))
    rewards[0, 0], rewards[last, 1] = 0.005, 1.0
    return Environment(
        "river_swim",
        FiniteMDP(transitions, rewards, action_labels=("left", "right")),
        horizon=1000,
        time_limit=0.25,
        layout=line_layout(n_states, bends={}, text="◀─▶".join(f"({i})" for i in range(n_states))),
        parameters={"n_states": n_states},
    )
