"""Small Gymnasium environments for tests, good and bad."""

import gymnasium
import numpy as np
from gymnasium import spaces


class Corridor(gymnasium.Env):
    """States 0..n-1 in a row; action 1 goes on, action 0 back; the last step pays 1 and ends. Shown in any form."""

    def __init__(self, n=4, show=lambda s: s, space=None, actions=None, read=lambda a: a):
        self.n, self.show, self.read = n, show, read
        self.observation_space = spaces.Discrete(n) if space is None else space
        self.action_space = spaces.Discrete(2) if actions is None else actions

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.at = 0
        return self.show(self.at), {}

    def step(self, action):
        self.at = max(0, self.at + (1 if self.read(action) == 1 else -1))
        over = self.at == self.n
        return self.show(min(self.at, self.n - 1)), float(over), over, False, {}


FORMS = {
    "discrete from 7": {"show": lambda s: s + 7, "space": spaces.Discrete(4, start=7)},
    "multi": {"show": lambda s: np.array([s // 2, s % 2]), "space": spaces.MultiDiscrete([2, 2])},
    "binary": {"show": lambda s: np.array([s // 2, s % 2], np.int8), "space": spaces.MultiBinary(2)},
    "tuple": {
        "show": lambda s: (s // 2, np.array([s % 2])),
        "space": spaces.Tuple([spaces.Discrete(2), spaces.MultiDiscrete([2])]),
    },
    "dict": {
        "show": lambda s: {"high": s // 2, "low": (s % 2,)},
        "space": spaces.Dict({"low": spaces.Tuple([spaces.Discrete(2)]), "high": spaces.Discrete(2)}),
    },
    "actions": {
        "actions": spaces.Tuple([spaces.Discrete(2, start=1), spaces.MultiBinary(1)]),
        "read": lambda a: int(a[0] == 2 and a[1][0] == 1),
    },
}
