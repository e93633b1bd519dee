"""Small classic problems: the chain, the double loop, RiverSwim and Bernoulli bandits."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np

from bamdp import _checks
from bamdp.envs.environment import Environment, bernoulli
from bamdp.envs.picture import Layout, graph_layout, row_layout
from bamdp.envs.registry import Probabilities, Probability, Size, environment, rows
from bamdp.mdp.model import FiniteMDP


@environment
def chain(
    rewards: Literal["action", "effect"] = "action", n_states: Size = 5, slip: Probability = 0.2
) -> Environment:
    """A chain of states with a reward at the far end and slips back to the start.

    Description
    -----------
    Going forward earns nothing until the end of the chain, and every step may slip all the way back. Going back earns a
    small immediate reward. Always going forward is optimal, but an agent that does not explore stays at the near end.

    States
    ------
    0 .. ``n_states`` - 1, from the near end to the far end (5 in the paper).

    Actions
    -------
    0 back, 1 forward.

    Transitions
    -----------
    The chosen action takes *effect* with probability 1 - ``slip``; otherwise the other action does. Forward leads from
    s to s + 1 and stays at the far end; back leads to 0.

    Rewards
    -------
    ``rewards="action"``, as in the paper: 0.2 for choosing back anywhere, 1 for choosing forward at the far end, R(s,
    a). ``rewards="effect"``, the classic variant: 0.2 whenever the effect is back, 1 whenever the effect is forward at
    the far end, R(s, a, s'). Rewards in the older literature are ten times as large.

    Start
    -----
    State 0. The task is continuing; the paper runs it for 1000 steps.

    Reference
    ---------
    R. Dearden, N. Friedman, S. Russell (1998), Bayesian Q-learning, AAAI; M. Strens (2000), A Bayesian
    framework for reinforcement learning, ICML.

    Parameters
    ----------
    rewards : {"action", "effect"}, default "action"
        Whether rewards depend on the chosen action or on its effect.
    n_states : int, default 5
        Length of the chain, at least 2.
    slip : float, default 0.2
        Probability that the other action takes effect.

    Examples
    --------
    >>> env = chain()
    >>> env.mdp.row(2, 1)
    (array([0, 3]), array([0.2, 0.8]))
    >>> env.rewards.tolist()
    [[0.2, 0.0], [0.2, 0.0], [0.2, 0.0], [0.2, 0.0], [0.2, 1.0]]
    """
    states, last = np.arange(n_states), n_states - 1
    target = np.stack([np.zeros(n_states, int), np.minimum(states + 1, last)], axis=1)  # for back and forward
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
    return Environment("chain", mdp, time_limit=0.25, layout=row_layout(n_states))


@environment
def double_loop() -> Environment:
    """Two loops through one state; the loop that is easier to leave pays twice as much.

    Description
    -----------
    Two loops of five states share state 0. In the left loop every action moves on, and completing it pays 1. The right
    loop pays 2, but completing it requires choosing action 1 at each of its first three states: action 0 leads back to
    0.

    States
    ------
    0 is shared, 1 to 4 form the left loop, 5 to 8 the right loop.

    Actions
    -------
    0 left, 1 right.

    Transitions
    -----------
    Deterministic. In 0: action 0 leads to 1, action 1 to 5. Under both actions, states 1, 2 and 3 lead to the next
    state and 4 leads to 0. In 5, 6 and 7, action 1 leads to the next state and action 0 to 0. State 8 leads to 0 under
    both actions.

    Rewards
    -------
    R(s, a): 1 for any action in state 4, 2 for any action in state 8.

    Start
    -----
    State 0. The task is continuing; the paper runs it for 1000 steps.

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
    """Return two regular pentagons that share the middle node; both loops leave it along the top."""
    radius = 1.2
    turn = 2 * math.pi / 5 * np.arange(1, 5)
    right = np.column_stack([radius - radius * np.cos(turn), -radius * np.sin(turn)])
    left = right * (-1, 1)
    return graph_layout(np.vstack([[0.0, 0.0], left, right]))


@environment
def river_swim(n_states: Size = 6) -> Environment:
    """A river to swim against the current, with a large reward at the far end.

    Description
    -----------
    Swimming left, with the current, never fails; swimming right usually leaves the agent where it is. There is a small
    reward downstream and a large one upstream, so undirected exploration takes time exponential in the length.

    States
    ------
    0 .. ``n_states`` - 1, from the left bank to the right bank.

    Actions
    -------
    0 left, with the current; 1 right, against the current.

    Transitions
    -----------
    Left leads from s to max(s - 1, 0) with certainty. Right moves up with probability 0.35, stays with 0.6 and moves
    down with 0.05; in state 0 it moves up with 0.6 and stays with 0.4; in the last state it stays with 0.6 and moves
    down with 0.4.

    Rewards
    -------
    R(s, a): 0.005 for left in state 0, 1 for right in the last state.

    Start
    -----
    State 0. The task is continuing: there are no episodes.

    Reference
    ---------
    A. Strehl, M. Littman (2008), An analysis of model-based interval estimation for Markov decision
    processes, JCSS; the parameters follow I. Osband's TabulaRL.

    Parameters
    ----------
    n_states : int, default 6
        Length of the river, at least 2.

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
    return Environment("river_swim", mdp, time_limit=0.25, layout=row_layout(n_states))


@environment
def bandit(means: Probabilities = (0.3, 0.5, 0.7)) -> Environment:
    """A Bernoulli bandit: one state and arms with unknown success probabilities.

    Description
    -----------
    With only one state, there is nothing to learn about transitions; all uncertainty is in the rewards. The agent
    therefore needs a reward model (``BetaBernoulli``) instead of known rewards.

    States
    ------
    One.

    Actions
    -------
    One per arm.

    Transitions
    -----------
    Every arm leads back to the only state.

    Rewards
    -------
    Random: 1 with probability ``means[a]``, else 0. The true model contains the means.

    Start
    -----
    State 0. The task is continuing.

    Reference
    ---------
    W. R. Thompson (1933), On the likelihood that one unknown probability exceeds another in view of the
    evidence of two samples, Biometrika.

    Parameters
    ----------
    means : sequence of float, default (0.3, 0.5, 0.7)
        Success probability of each arm.

    Examples
    --------
    >>> env = bandit(means=[0.2, 0.9])
    >>> env.reset(seed=0)
    0
    >>> [env.step(1)[1] for _ in range(6)]
    [1.0, 1.0, 0.0, 1.0, 0.0, 1.0]
    """
    n = len(means)
    mdp = FiniteMDP(np.ones((1, n, 1)), [means], action_labels=[f"arm {a}" for a in range(n)])
    layout = Layout("arms", n, 1, np.zeros((1, 2)))
    return Environment("bandit", mdp, time_limit=0.25, layout=layout, draw_reward=bernoulli)
