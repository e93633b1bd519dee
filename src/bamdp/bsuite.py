"""Agents in bsuite: any of its experiments whose observations come from a finite set.

bsuite's loop (``bsuite.baselines.experiment.run``) talks to an agent in timesteps of dm_env:
``select_action(timestep)``, ``update(timestep, action, new_timestep)``. :class:`BsuiteAgent` answers them with an
:class:`~bamdp.Agent`. Observations are arrays; each array that differs from those before is a new state, up to
``max_states``. That suits deep_sea, bandit, catch, memory_len, discounting_chain and umbrella_length; a pole in
balance never shows the same observation twice.

A last timestep with discount 0 is an end, one with a discount above 0 was cut off and is no end (that is dm_env's
rule).

Only :func:`load` needs the package bsuite: ``pip install 'bamdp[bsuite]'``.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from bamdp import _checks, _files
from bamdp.agent import Agent
from bamdp.beliefs.base import Prior, RewardModel
from bamdp.gym.spaces import Numbering
from bamdp.planners.base import Planner
from bamdp.registry import make_planner
from bamdp.seeding import Seed


class BsuiteAgent:
    """An agent as bsuite's experiments want it. Made by :meth:`for_env`; ``agent`` is the :class:`~bamdp.Agent` inside.

    Examples
    --------
    >>> import bamdp
    >>> from bamdp.bsuite import BsuiteAgent, load
    >>> env = load("deep_sea/0")
    >>> player = BsuiteAgent.for_env(env, bamdp.ThompsonSampling(resample="episode"), max_states=100, seed=0)
    >>> from bsuite.baselines import experiment
    >>> experiment.run(player, env, num_episodes=3)
    >>> player.agent.belief.n_states  # those that may appear, and the end
    101
    """

    def __init__(self, agent: Agent, numbering: Numbering, begun: bool = False) -> None:
        self.agent = agent
        self.numbering = numbering
        self.begun = begun  # whether the agent knows of the episode that has begun

    @classmethod
    def for_env(
        cls,
        env: Any,
        planner: Planner | str,
        prior: Prior | str | None = None,
        *,
        rewards: RewardModel | str = "normal",
        discount: float | None = None,
        objective: str = "episode",
        max_states: int = 1000,
        seed: Seed = None,
    ) -> BsuiteAgent:
        """Make an agent that has learned nothing yet.

        Parameters
        ----------
        env
            The dm_env environment: its actions must be discrete.
        planner
            The algorithm's hyper-parameters, or text, such as ``"dss-pi:n_steps=30"``.
        prior
            What is believed about transitions, or text; by default the planner's ``default_prior``.
        rewards
            A reward model, or text; by default ``NormalGamma()``.
        discount
            γ in [0, 1), the planning discount; by default the planner's, or 0.99 if that depends on a horizon.
        objective
            What an end is worth: ``"episode"``, nothing; ``"lifetime"``, what the next episode is worth.
        max_states
            How many different observations may appear.
        seed
            The seed of the agent's random stream.
        """
        n_actions = getattr(env.action_spec(), "num_values", None)
        if n_actions is None:
            raise ValueError(
                f"actions must be discrete, and these are {env.action_spec()}; wrap the environment so that it takes "
                "the number of an action"
            )
        numbering = Numbering(None, _checks.integer(max_states, "max_states"))
        made = make_planner(planner)
        usual = made.default_discount
        gamma = discount if discount is not None else 0.99 if isinstance(usual, str) else usual
        agent = Agent(
            made,
            prior=made.default_prior if prior is None else prior,
            rewards=rewards,
            n_states=numbering.n + 1,
            n_actions=int(n_actions),
            discount=gamma,
            end=numbering.n,
            objective=objective,
            seed=seed,
        )
        return cls(agent, numbering)

    def __repr__(self) -> str:
        return f"<BsuiteAgent {self.agent!r}, {len(self.numbering.seen)} observations seen>"

    def select_action(self, timestep: Any) -> int:
        """Return the agent's action."""
        state = self._state(timestep.observation)
        if timestep.first() and not self.begun:
            self.agent.begin(state)
            self.begun = True
        return self.agent.act(state)

    def update(self, timestep: Any, action: int, new_timestep: Any) -> None:
        """Learn from a step."""
        ended = bool(new_timestep.last() and new_timestep.discount == 0)
        after = self.numbering.n if ended else self._state(new_timestep.observation)
        reward = _checks.real(new_timestep.reward, "reward")
        self.agent.observe(self._state(timestep.observation), int(action), reward, after, ended)
        self.begun = self.begun and not new_timestep.last()

    def _state(self, observation: Any) -> int:
        """Return the number of an observation; two arrays are one state if all entries agree."""
        key = tuple(np.asarray(observation, float).ravel().tolist())
        seen = self.numbering.seen
        if key not in seen and len(seen) == self.numbering.n:
            raise ValueError(
                f"there are more than {len(seen)} different observations, which is max_states; raise it, unless "
                "they are continuous: then wrap the environment so that it shows a few numbers"
            )
        return self.numbering(key)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the agent to one ``.npz`` file."""
        content = {"agent": self.agent.content(), "numbering": self.numbering, "begun": self.begun}
        _files.write(path, "a bsuite agent", content)

    @staticmethod
    def load(path: str | os.PathLike[str]) -> BsuiteAgent:
        """Read an agent that :meth:`save` wrote."""

        def make(content: dict[str, Any]) -> BsuiteAgent:
            return BsuiteAgent(Agent.from_content(content["agent"]), content["numbering"], content["begun"])

        return _files.read(path, "a bsuite agent", make)


def load(bsuite_id: str) -> Any:
    """Return one of bsuite's environments by its id, such as ``"deep_sea/0"``.

    Examples
    --------
    >>> load("deep_sea/5").observation_spec().shape
    (20, 20)
    >>> load("deep_see/0")
    Traceback (most recent call last):
    ...
    ValueError: unknown bsuite id 'deep_see/0'; did you mean 'deep_sea/0'? ...
    """
    try:
        import bsuite
        from bsuite import sweep
    except ImportError:
        raise ImportError(
            "the package bsuite is not installed; install it with: pip install bsuite"
        ) from None
    name = str(bsuite_id)
    if name not in sweep.SETTINGS:
        near = [known for known in sweep.SETTINGS if known.partition("/")[2] == "0"]
        _checks.one_of(name, "bsuite id", near)
    return bsuite.load(name.partition("/")[0], sweep.SETTINGS[name])
