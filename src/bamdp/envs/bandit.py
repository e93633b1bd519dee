"""Bernoulli bandits: the simplest world in which exploring costs something."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bamdp import _checks
from bamdp.envs.environment import Environment, bernoulli
from bamdp.envs.layout import Layout
from bamdp.mdp import FiniteMDP


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
    n_arms = len(chances)
    mdp = FiniteMDP(
        np.ones((1, n_arms, 1)), np.array([chances]), action_labels=[f"arm {a}" for a in range(n_arms)]
    )
    return Environment(
        "bandit",
        mdp,
        horizon=1000,
        time_limit=0.25,
        layout=Layout("arms", n_arms, 3, np.array([[(n_arms - 1) / 2, 2.0]])),
        parameters={"means": chances},
        draw_reward=bernoulli,
    )
