"""Priors and reward models: parameters only. The posterior that they become is in :mod:`bamdp.beliefs.belief`."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from bamdp import _checks
from bamdp._kernels.rows import Space
from bamdp._parameters import Declared, parameter
from bamdp.beliefs.arrays import BeliefArrays, fix_zero_reward
from bamdp.beliefs.episodes import new_episodes
from bamdp.mdp.build import ROW_BYTES, read_space

if TYPE_CHECKING:
    from bamdp.beliefs.belief import Belief


def check_bounds(bounds: Any) -> tuple[float, float]:
    """Return (lowest, highest) reward; refuse anything else."""
    if not isinstance(bounds, (tuple, list)) or len(bounds) != 2:
        raise TypeError(f"bounds must be (lowest, highest), got {bounds!r}")
    low, high = (_checks.real(bound, "every bound") for bound in bounds)
    if not low < high:
        raise ValueError(f"bounds must be (lowest, highest), got {bounds}")
    return low, high


def bounds_parameter() -> Any:
    """A parameter of a reward model: what rewards are known to lie between."""
    return parameter(
        None,
        lambda value, name: check_bounds(value),
        help="(lowest, highest) that rewards are known to lie between. Planners that need a range (BFS3, RMax) take it "
        "and refuse without; a reward outside is refused",
    )


PAIR_OR_NEXT = ("pair", "next")  # what a reward depends on: (s, a), or (s, a, s')


class RewardModel(Declared, ABC):
    """Parameters of a prior over rewards."""

    comes_with_prior: ClassVar[bool] = False  # it is that of the prior's own models (FiniteModels)
    bounds: Any = None  # (lowest, highest) reward, where that is known

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.bounds is not None:
            object.__setattr__(self, "bounds", check_bounds(self.bounds))

    @property
    def limits(self) -> tuple[float, float]:
        """The lowest and the highest reward, infinite where nothing is known."""
        return self.bounds or (-math.inf, math.inf)

    @abstractmethod
    def posterior(self, n_states: int, n_actions: int) -> Any:
        """Return the posterior before any observation, as a NamedTuple of arrays."""

    def check(self, reward: float) -> None:
        """Refuse a reward that this model can never produce."""
        low, high = self.limits
        if not low <= reward <= high:
            raise ValueError(
                f"reward {reward} is outside the bounds {low:g}..{high:g} of {type(self).__name__}; widen them"
            )

    def refusal(self, reward: float) -> str | None:
        """Return why a reward that passed :meth:`check` has probability 0 by now, and what to do."""
        return f"{self} gives probability 0 to reward {reward}; use a model that allows it"


class Prior(Declared, ABC):
    """Parameters of a prior over transition models. Compared and stored by value."""

    @abstractmethod
    def posterior(self, n_states: int, n_actions: int) -> Any:
        """Return the posterior before any observation, as a NamedTuple of arrays."""

    def rewards_of_models(
        self, n_states: int, n_actions: int, transitions: Any
    ) -> tuple[RewardModel, Any] | None:
        """Return the reward model that comes with the prior itself and its posterior, if any (see FiniteModels)."""
        return None

    def movement_posterior(self, transitions: Any) -> Any:
        """Return the posterior by whose means and standard deviations SBOSS measures how far a row has moved.

        It shares its arrays with ``transitions``, and is ``transitions`` itself unless a prior knows better.
        """
        return transitions

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
        """Return the belief before any observation.

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
        from bamdp.beliefs.belief import Belief  # this and known rewards are made of what is defined here
        from bamdp.beliefs.rewards.known import KnownRewards

        S = _checks.integer(n_states, "n_states")
        A = _checks.integer(n_actions, "n_actions")
        _checks.memory(ROW_BYTES * S * A, f"a belief about {S} states and {A} actions")
        transitions = self.posterior(S, A)
        own = rewards is None or getattr(rewards, "comes_with_prior", False)
        from_prior = self.rewards_of_models(S, A, transitions) if own else None
        if from_prior is not None:
            model, reward_posterior = from_prior
        else:
            given = np.zeros((S, A)) if rewards is None else rewards
            model = given if isinstance(given, RewardModel) else KnownRewards(given)
            reward_posterior = model.posterior(S, A)
        space = self.space(S, A, terminal, action_mask)
        arrays = BeliefArrays(transitions, reward_posterior, space)
        belief = Belief(self, model, arrays, new_episodes(objective, end, space.terminal))
        if belief.episodes.restarts and fix_zero_reward.dispatch(
            type(reward_posterior)
        ) is fix_zero_reward.dispatch(object):
            fix_zero_reward(reward_posterior, 0)  # says why not
        for state in np.flatnonzero(belief.episodes.ends):
            belief._close(int(state))
        return belief

    def space(
        self, n_states: int, n_actions: int, terminal: ArrayLike | None, action_mask: ArrayLike | None
    ) -> Space:
        """Return what is known beforehand; a prior may know more than it is told."""
        return read_space(n_states, n_actions, terminal, action_mask)
