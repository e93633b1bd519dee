"""A world of your own as a Gymnasium environment, played without being told anything about it.

Hide and seek: the player sees its own square of a 3 by 3 board and whether it is warm; the treasure pays 1 and ends the
episode. Observations are a Dict, actions a MultiBinary: both are numbered. Run: python examples/own_gym.py
"""

import gymnasium
import numpy as np
from gymnasium import spaces

import bamdp


class Treasure(gymnasium.Env):
    """Steps are (horizontal or vertical, back or forth); the treasure lies at (2, 1)."""

    observation_space = spaces.Dict({"square": spaces.MultiDiscrete([3, 3]), "warm": spaces.Discrete(2)})
    action_space = spaces.MultiBinary(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.square = np.array([0, 0])
        return self.look(), {}

    def step(self, action):
        axis, forth = (int(x) for x in action)
        self.square[axis] = np.clip(self.square[axis] + (1 if forth else -1), 0, 2)
        if self.np_random.random() < 0.1:  # the floor is slippery
            self.square = self.np_random.integers(0, 3, 2)
        found = bool((self.square == (2, 1)).all())
        return self.look(), float(found), found, False, {}

    def look(self):
        return {"square": self.square.copy(), "warm": int(np.abs(self.square - (2, 1)).sum() <= 1)}


def main() -> None:
    env = gymnasium.wrappers.TimeLimit(Treasure(), 50)
    player = bamdp.GymAgent.for_env(
        env, bamdp.DSS(n_policies=2, n_samples=2, n_steps=15), objective="lifetime", discount=0.95, seed=0
    )
    run = player.play(steps=1500, seed=0)
    lengths = np.diff(np.concatenate([[-1], run.ends]))
    print(f"{len(lengths)} treasures; steps to the first ten: {lengths[:10].tolist()}")
    print(f"steps to the last fifty, on average: {lengths[-50:].mean():.1f} (3 without the slippery floor)")


if __name__ == "__main__":
    main()
