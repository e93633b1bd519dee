"""The small classics: the chain, the double loop, river swim and Bernoulli bandits."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import numpy as np

from bamdp import _checks
from bamdp.envs.environment import Environment, bernoulli
from bamdp.envs.layout import Layout, graph_layout, line_layout
from bamdp.envs.making import Probability, Size, environment, rows
from bamdp.mdp.model import FiniteMDP

DOUBLE_LOOP_TEXT = """\
(2)◀──(1)       (5)──▶(6)
 │       ╲     ╱       │
 │        ╲   ╱        │
 │         (0)         │
 │        ╱   ╲        │
 ▼       ╱     ╲       ▼
(3)──▶(4)       (8)◀──(7)"""


@environment
def chain(
    rewards: Literal["action", "effect"] = "action", n_states: Size = 5, slip: Probability = 0.2
) -> Environment:
    """A chain of states whose far end pays, with slips back to the beginning.

    Description
    -----------
    Going forward pays nothing until the end of the chain, and every step may slip all the way back. Going
    back pays a little at once. Always going forward is optimal, and an agent that does not explore stays at the
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
    states, last = np.arange(n_states), n_states - 1
    target = np.stack([np.zeros(n_states, int), np.minimum(states + 1, last)], axis=1)  # of back and forward
    if rewards == "action":
        table = np.zeros((n_states, 2))
        table[:, 0] = 0.2
        table[last, 1] = 1.0
    else:
        _checks.memory(16 * n_states**2, f"rewards of the effects in a chain of {n_states} states")
        table = np.zeros((n_states, 2, n_states))
        table[:, :, 0] = 0.2
        table[last, :, last] = 1.0
    chances = [[1.0 - slip, slip], [slip, 1.0 - slip]]
    mdp = FiniteMDP(rows(target[:, None].repeat(2, 1), chances), table, action_labels=("back", "forward"))
    # forward straight, back in arcs below
    bends = {(s, s + 1): 0.0 for s in range(last)} | {(s, 0): 0.42 for s in range(1, n_states)}
    layout = line_layout(n_states, bends=bends, text="──▶".join(f"({s})" for s in range(n_states)))
    return Environment("chain", mdp, time_limit=0.25, layout=layout)


@environment
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
    rewards = np.zeros((9, 2))
    rewards[4], rewards[8] = 1.0, 2.0
    mdp = FiniteMDP(rows(target[:, :, None], 1.0), rewards, action_labels=("left", "right"))
    return Environment("double_loop", mdp, time_limit=0.25, layout=double_loop_layout())


def double_loop_layout() -> Layout:
    """Two regular pentagons that share the node in the middle; both are walked away from it along the top."""
    radius = 1.2
    turn = 2 * math.pi / 5 * np.arange(1, 5)
    right = np.column_stack([radius - radius * np.cos(turn), -radius * np.sin(turn)])
    left = right * (-1, 1)
    positions = np.vstack([[0.0, 0.0], left, right])
    # the edge from 0 to 5 keeps to the outside of the one that comes back
    return graph_layout(positions, bends={(0, 5): 0.0, (5, 0): 0.3}, text=DOUBLE_LOOP_TEXT)


@environment
def river_swim(n_states: Size = 6) -> Environment:
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
    s, last = np.arange(n_states), n_states - 1
    target = np.stack([np.maximum(s - 1, 0), s, np.minimum(s + 1, last)], axis=1)[:, None].repeat(2, 1)
    chances = np.zeros((n_states, 2, 3))
    chances[:, 0, 0] = 1.0
    chances[:, 1] = 0.05, 0.6, 0.35
    chances[0, 1], chances[last, 1] = (0.0, 0.4, 0.6), (0.4, 0.6, 0.0)
    rewards = np.zeros((n_states, 2))
    rewards[0, 0], rewards[last, 1] = 0.005, 1.0
    mdp = FiniteMDP(rows(target, chances), rewards, action_labels=("left", "right"))
    layout = line_layout(n_states, text="◀─▶".join(f"({i})" for i in range(n_states)))
    return Environment("river_swim", mdp, time_limit=0.25, layout=layout)


@environment
def bandit(means: Sequence[float] = (0.3, 0.5, 0.7)) -> Environment:
    """A bandit: one state, and arms that pay 1 with probabilities of their own.

    Description
    -----------
    Nothing is to be learned about transitions, for there is only one state; all the uncertainty is in the
    rewards. So an agent here needs a model of rewards (``BetaBernoulli``) instead of known ones.

    States
    ------
    One.

    Actions
    -------
    One per arm.

    Transitions
    -----------
    Every arm leads back to the one state.

    Rewards
    -------
    Drawn: 1 with probability ``means[a]``, else 0. The true model holds the means.

    Start
    -----
    State 0. The bandit never ends.

    Reference
    ---------
    W. R. Thompson (1933), On the likelihood that one unknown probability exceeds another in view of the
    evidence of two samples, Biometrika.

    Parameters
    ----------
    means : sequence of float, default (0.3, 0.5, 0.7)
        The success probability of each arm.

    Examples
    --------
    >>> env = bandit(means=[0.2, 0.9])
    >>> env.reset(seed=0)
    0
    >>> [env.step(1)[1] for _ in range(6)]
    [1.0, 1.0, 0.0, 1.0, 0.0, 1.0]
    """
    if isinstance(means, (int, float)):
        means = (means,)
    if isinstance(means, str) or len(means) == 0:
        raise ValueError(f"means must be a sequence of one number or more, one per arm, got {means!r}")
    chances = tuple(_checks.real(m, f"means[{a}]", low=0.0, high=1.0) for a, m in enumerate(means))
    mdp = FiniteMDP(
        np.ones((1, len(chances), 1)), [chances], action_labels=[f"arm {a}" for a in range(len(chances))]
    )
    layout = Layout("arms", len(chances), 1, np.zeros((1, 2)))
    parameters = {"means": chances}
    return Environment(
        "bandit", mdp, time_limit=0.25, layout=layout, parameters=parameters, draw_reward=bernoulli
    )
