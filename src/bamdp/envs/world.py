"""What a world must offer for an agent to live in it: less than an environment of ours, which knows its own truth."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from bamdp.mdp import FiniteMDP


class World(Protocol):
    """Something real that answers `reset` and `step` in numbers."""

    name: str
    n_states: int
    n_actions: int
    horizon: int  # how many steps a run usually lasts
    truncated: bool  # whether the episode was cut off by the last step, without having ended

    @property
    def allowed(self) -> NDArray[np.bool_] | None:
        """The actions of the present state ``[A]``, where the world tells on the way."""

    @property
    def knowledge(self) -> dict[str, Any]:
        """What an agent is told beforehand: arguments of `Agent`."""

    @property
    def worlds(self) -> tuple[tuple[float, FiniteMDP], ...]:
        """The models that may be its truth, with their probabilities; none where nothing is known."""

    @property
    def stochastic_rewards(self) -> bool:
        """Whether rewards are drawn rather than certain."""

    def reset(self, *, seed: int | np.random.SeedSequence | None = None) -> int:
        """Begin an episode; returns its first state."""

    def step(self, action: int) -> tuple[int, float, bool]:
        """(next state, reward, whether the episode has ended)."""
