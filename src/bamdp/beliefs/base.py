"""Priors and reward models, which hold parameters only; the posterior is in :mod:`bamdp.beliefs.belief`."""

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
    """Return ``bounds`` as a pair (lowest, highest); raise if they are anything else."""
    if not isinstance(bounds, (tuple, list)) or len(bounds) != 2:
        raise TypeError(f"bounds must be (lowest, highest), got {bounds!r}")
    low, high = (_checks.real(bound, "every bound") for bound in bounds)
    if not low < high:
        raise ValueError(f"bounds must be (lowest, highest), got {bounds}")
    return low, high


def bounds_parameter() -> Any:
    """Return the declaration of the parameter ``bounds``, which reward models share."""
    return parameter(
        None,
        lambda value, name: check_bounds(value),
        help="(lowest, highest) that rewards are known to lie between. Planners that need a range (BFS3, RMax) take it "
        "and refuse without; a reward outside is refused",
    )


PAIR_OR_NEXT = ("pair", "next")  # what a reward depends on: (s, a), or (s, a, s')


class RewardModel(Declared, ABC):
    """Parameters of a prior over rewards."""

    comes_with_prior: ClassVar[bool] = False  # the rewards are those of the prior's models
    bounds: Any = None  # (lowest, highest) reward, if known

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.bounds is not None:
            object.__setattr__(self, "bounds", check_bounds(self.bounds))

    @property
    def limits(self) -> tuple[float, float]:
        """The lowest and highest possible reward, infinite if unknown."""
        return self.bounds or (-math.inf, math.inf)

    @abstractmethod
    def posterior(self, n_states: int, n_actions: int) -> Any:
        """Return the posterior before any observation, as a NamedTuple of arrays."""

    def check(self, reward: float) -> None:
        """Raise ValueError if this model can never produce the reward."""
        low, high = self.limits
        if not low <= reward <= high:
            raise ValueError(
                f"reward {reward} is outside the bounds {low:g}..{high:g} of {type(self).__name__}; widen them"
            )

    def refusal(self, reward: float) -> str | None:
        """Return why a reward that passed :meth:`check` now has probability 0, and how to fix it."""
        return f"{self} gives probability 0 to reward {reward}; use a model that allows it"


class Prior(Declared, ABC):
    """Parameters of a prior over transition models, compared and stored by value."""

    @abstractmethod
    def posterior(self, n_states: int, n_actions: int) -> Any:
        """Return the posterior before any observation, as a NamedTuple of arrays."""

    def rewards_of_models(
        self, n_states: int, n_actions: int, transitions: Any
    ) -> tuple[RewardModel, Any] | None:
        """Return the prior's own reward model and its posterior, if it has one (see FiniteModels)."""
        return None

    def movement_posterior(self, transitions: Any) -> Any:
        """Return the posterior whose means and standard deviations SBOSS uses to measure how far a row has moved.

        It shares its arrays with ``transitions``. By default it is ``transitions`` itself.
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
            Number of states and number of actions.
        rewards
            A reward model, or an array of known rewards ``[S]``, ``[S, A]`` or ``[S, A, S]``. The default is the reward
            model of the prior itself if it has one, otherwise rewards known to be zero.
        terminal, action_mask
            Known terminal states, as a mask ``[S]`` or a list, and existing actions, as a mask ``[S, A]``, or ``[A]``
            if it is the same in all states.
        end
            Index of a state that represents the end of an episode, whatever state the environment then shows. Without
            it, a state that was entered with ``terminated`` is terminal.
        objective
            ``"episode"``: nothing follows the end of an episode. ``"lifetime"``: the next episode does, see
            :mod:`bamdp.beliefs.episodes`.
        """
        from bamdp.beliefs.belief import Belief  # both modules import this one
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
            fix_zero_reward(reward_posterior, 0)  # raises with the reason
        for state in np.flatnonzero(belief.episodes.ends):
            belief._close(int(state))
        return belief

    def space(
        self, n_states: int, n_actions: int, terminal: ArrayLike | None, action_mask: ArrayLike | None
    ) -> Space:
        """Return the known terminal states and actions; a prior may add to those in the arguments."""
        return read_space(n_states, n_actions, terminal, action_mask)
