"""The chain: a small reward at hand against a large one far away, past slips."""

from __future__ import annotations

from typing import Literal

import numpy as np

from bamdp import _checks
from bamdp.envs.environment import Environment
from bamdp.envs.layout import Layout, line_layout
from bamdp.mdp import FiniteMDP


def chain(
    rewards: Literal["action", "effect"] = "action", n_states: int = 5, slip: float = 0.2
) -> Environment:
    """A chain of states whose far end pays, with slips back to the beginning.

    Description
    -----------
    Going forward pays nothing until the end of the chain, and every step may slip all the way back. Going
    back pays a little at once. Forward for ever is optimal, and an agent that does not explore stays at the
    near end.

    States
    ------
    0 .. ``n_states`` - 1, from the near end to the far end (5 in the paper).

    Actions
    -------
    0 back, 1 forward.

    Transitions
    -----------
    The *effect* is that of the chosen action with probability 1 - ``slip`` and that of the other one with
    ``slip``. Forward leads from s to s + 1 and from the far end to itself; back leads to 0.

    Rewards
    -------
    ``rewards="action"``, the paper's: 0.2 for choosing back anywhere, 1 for choosing forward at the far end,
    R(s, a). ``rewards="effect"``, the classic: 0.2 whenever the effect is back, 1 whenever the effect is
    forward at the far end, R(s, a, s'). The older literature's totals are ten times as large.

    Start
    -----
    State 0. The chain never ends; the paper runs it for 1000 steps.

    Reference
    ---------
    R. Dearden, N. Friedman, S. Russell (1998), Bayesian Q-learning, AAAI; M. Strens (2000), A Bayesian
    framework for reinforcement learning, ICML.

    Parameters
    ----------
    rewards : {"action", "effect"}, default "action"
        Whether the chosen action or its effect is paid.
    n_states : int, default 5
        The length of the chain, at least 2.
    slip : float, default 0.2
        The probability of the other action's effect.

    Examples
    --------
    >>> env = chain()
    >>> env.mdp.row(2, 1)
    (array([0, 3]), array([0.2, 0.8]))
    >>> env.rewards.tolist()
    [[0.2, 0.0], [0.2, 0.0], [0.2, 0.0], [0.2, 0.0], [0.2, 1.0]]
    """
    _checks.one_of(rewards, "reward convention of chain", ("action", "effect"))
    n_states = _checks.integer(n_states, "n_states", low=2)
    slip = _checks.real(slip, "slip", low=0.0, high=1.0)
    entry_bytes = 16 if rewards == "action" else 32  # of the arrays here and those of the model
    _checks.memory(entry_bytes * 2 * n_states**2, f"a chain of {n_states} states")
    states, last = np.arange(n_states), n_states - 1
    ahead = np.minimum(states + 1, last)
    transitions = np.zeros((n_states, 2, n_states))
    transitions[:, :, 0] = 1.0 - slip, slip
    transitions[states, :, ahead] = slip, 1.0 - slip
    if rewards == "action":
        table = np.zeros((n_states, 2))
        table[:, 0] = 0.2
        table[last, 1] = 1.0
    else:
        table = np.zeros((n_states, 2, n_states))
        table[:, :, 0] = 0.2
        table[last, :, last] = 1.0
    mdp = FiniteMDP(transitions, table, action_labels=("back", "forward"))
    return Environment(
        "chain",
        mdp,
        horizon=1000,
        time_limit=0.25,
        layout=_layout(n_states),
        parameters={"rewards": rewards, "n_states": n_states, "slip": slip},
    )


def _layout(n_states: int) -> Layout:
    """Forward straight, back in arcs below."""
    bends = {(s, s + 1): 0.0 for s in range(n_states - 1)} | {(s, 0): 0.42 for s in range(1, n_states)}
    return line_layout(n_states, bends=bends, text="──▶".join(f"({s})" for s in range(n_states)))
