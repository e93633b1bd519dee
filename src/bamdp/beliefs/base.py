"""Priors and reward models: parameters only. The posterior that they become is in :mod:`bamdp.beliefs.belief`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from bamdp import _checks
from bamdp._kernels.rows import Space
from bamdp.beliefs.arrays import copy_state, pay_nothing, with_room
from bamdp.beliefs.belief import Belief
from bamdp.beliefs.episodes import new_episodes
from bamdp.mdp.build import read_space

__all__ = [
    "Belief",
    "Prior",
    "RewardModel",
    "check_bounds",
    "check_by",
    "copy_state",
    "pay_nothing",
    "with_room",
]


class RewardModel(ABC):
    """Parameters of a prior over rewards."""

    @abstractmethod
    def state(self, n_states: int, n_actions: int) -> Any:
        """The posterior before any observation, as a NamedTuple of arrays."""

    def check(self, reward: float) -> None:
        """Refuse a reward that this model can never produce."""

    def refusal(self, reward: float) -> str:
        """Why a reward that passed :meth:`check` has probability 0 by now, and what to do."""
        return f"{self} gives probability 0 to reward {reward}; use a model that allows it"


def check_by(by: Any) -> str:
    """What rewards depend on: ``"pair"`` or ``"next"``."""
    return _checks.one_of(by, "by", ("pair", "next"))


def check_bounds(bounds: Any) -> tuple[float, float] | None:
    """(lowest, highest) reward, or None."""
    if bounds is None:
        return None
    if not isinstance(bounds, (tuple, list)) or len(bounds) != 2:
        raise TypeError(f"bounds must be (lowest, highest), got {bounds!r}")
    low, high = (_checks.real(bound, "every bound") for bound in bounds)
    if not low < high:
        raise ValueError(f"bounds must be (lowest, highest), got {bounds}")
    return low, high


class Prior(ABC):
    """Parameters of a prior over transition models. Compared and stored by value."""

    @abstractmethod
    def state(self, n_states: int, n_actions: int) -> Any:
        """The posterior before any observation, as a NamedTuple of arrays."""

    def own_rewards(self, n_states: int, n_actions: int, state: Any) -> Any:
        """The reward posterior that comes with the prior itself, if any (see FiniteModels)."""
        return None

    def belief(
        self,
        n_states: int,
        n_actions: int,
        *,
        rewards: RewardModel | ArrayLike | None = None,
        terminal: ArrayLike | None = None,
        action_mask: ArrayLike | None = None,
        end: int | None = None,
        objective: str = "episode",
    ) -> Belief:
        """The posterior that lives: no data yet.

        Parameters
        ----------
        n_states, n_actions
            Size of the world.
        rewards
            A reward model, or an array of known rewards ``[S]``, ``[S, A]`` or ``[S, A, S]``. By default the
            rewards are known to be zero (unless the prior brings its own).
        terminal, action_mask
            What is known beforehand: terminal states, a mask ``[S]`` or a list of them; existing actions, a mask
            ``[S, A]``, or ``[A]`` for all states alike.
        end
            The number of a state that stands for the end of an episode, whatever the environment shows then. Without
            it a state that was entered with ``terminated`` is terminal.
        objective
            ``"episode"``: nothing follows an end. ``"lifetime"``: the next episode does, see
            :mod:`bamdp.beliefs.episodes`.
        """
        S = _checks.integer(n_states, "n_states")
        A = _checks.integer(n_actions, "n_actions")
        T = self.state(S, A)
        R: Any
        model: RewardModel | None = None
        if rewards is None:
            R = self.own_rewards(S, A, T)
            rewards = None if R is not None else np.zeros((S, A))
        if rewards is not None:
            from bamdp.beliefs.rewards import as_reward_model

            model = as_reward_model(rewards)
            R = model.state(S, A)
        space = self.space(S, A, terminal, action_mask)
        belief = Belief(self, model, T, R, space, new_episodes(objective, end, space.terminal))
        if belief.episodes.again and pay_nothing.dispatch(type(R)) is pay_nothing.dispatch(object):
            pay_nothing(R, 0)  # says why not
        for state in np.flatnonzero(belief.episodes.ends):
            belief._close(int(state))
        return belief

    def space(
        self, n_states: int, n_actions: int, terminal: ArrayLike | None, action_mask: ArrayLike | None
    ) -> Space:
        """What is known beforehand; a prior may know more than it is told."""
        return read_space(n_states, n_actions, terminal, action_mask)
