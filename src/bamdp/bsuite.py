"""Agents for bsuite experiments whose observations come from a finite set.

bsuite's loop (``bsuite.baselines.experiment.run``) passes dm_env timesteps to an agent through
``select_action(timestep)`` and ``update(timestep, action, new_timestep)``. :class:`BsuiteAgent` adapts an
:class:`~bamdp.Agent` to this interface. Observations are arrays; each distinct array becomes a state, up to
``max_states``. This works for deep_sea, bandit, catch, memory_len, discounting_chain and umbrella_length, but not for
cartpole, whose observations never repeat.

By dm_env's convention, a last timestep with discount 0 ends the episode, and one with a positive discount truncates it.

Only :func:`load` requires the bsuite package: ``pip install 'bamdp[bsuite]'``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bamdp import _checks
from bamdp.agent import Agent
from bamdp.beliefs.base import Prior
from bamdp.envs.environment import World
from bamdp.gym.world import Numbering
from bamdp.planners.base import Planner


class BsuiteAgent:
    """An adapter that lets an :class:`~bamdp.Agent` (its attribute ``agent``) run in bsuite experiments.

    Create one with :meth:`for_env`.

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

    def __init__(self, agent: Agent, numbering: Numbering) -> None:
        self.agent = agent
        self.numbering = numbering
        self.begun = False  # whether agent.begin was called for the current episode

    @classmethod
    def for_env(
        cls,
        env: Any,
        planner: Planner | str,
        prior: Prior | str | None = None,
        *,
        max_states: int = 1000,
        **options: Any,
    ) -> BsuiteAgent:
        """Create an agent without any experience.

        Parameters
        ----------
        env
            The dm_env environment, whose actions must be discrete.
        planner, prior
            As in :meth:`bamdp.Agent.for_env`.
        max_states
            Maximum number of distinct observations.
        **options
            ``rewards``, ``discount``, ``horizon``, ``objective`` and ``seed``, as in :meth:`bamdp.Agent.for_env`.
        """
        numbering = Numbering(_checks.integer(max_states, "max_states"))
        world = World()  # carries only the sizes; the experiment steps its own environment
        world.name, world.n_actions = "the experiment", int(env.action_spec().num_values)
        world.n_states, world.end = numbering.n + 1, numbering.n
        return cls(Agent.for_env(world, planner, prior=prior, **options), numbering)

    def __repr__(self) -> str:
        return f"<BsuiteAgent {self.agent!r}, {len(self.numbering.numbers)} observations seen>"

    def select_action(self, timestep: Any) -> int:
        """Return the agent's action."""
        state = self._state(timestep)
        if timestep.first() and not self.begun:
            self.agent.begin(state)
            self.begun = True
        return self.agent.act(state)

    def update(self, timestep: Any, action: int, new_timestep: Any) -> None:
        """Learn from a step."""
        ended = bool(new_timestep.last() and new_timestep.discount == 0)
        after = self.numbering.n if ended else self._state(new_timestep)
        reward = _checks.real(new_timestep.reward, "reward")
        self.agent.observe(self._state(timestep), int(action), reward, after, ended)
        self.begun = self.begun and not new_timestep.last()

    def _state(self, timestep: Any) -> int:
        """Return the state of an observation; arrays with equal entries are the same state."""
        return self.numbering(np.asarray(timestep.observation, float).ravel().tolist())


def load(bsuite_id: str) -> Any:
    """Return a bsuite environment by its id, such as ``"deep_sea/0"``.

    Examples
    --------
    >>> load("deep_sea/5").observation_spec().shape
    (20, 20)
    >>> load("deep_see/0")
    Traceback (most recent call last):
    ...
    ValueError: unknown bsuite id 'deep_see/0'; did you mean 'deep_sea/0'? ...
    """
    import bsuite
    from bsuite import sweep

    if bsuite_id not in sweep.SETTINGS:
        _checks.one_of(bsuite_id, "bsuite id", [known for known in sweep.SETTINGS if known.endswith("/0")])
    return bsuite.load(bsuite_id.partition("/")[0], sweep.SETTINGS[bsuite_id])
