"""Continuous-state benchmarks from the literature as Gymnasium environments, and prior knowledge for agents.

>>> import gymnasium
>>> env = gymnasium.make("bamdp/TipCartPole-v0")
>>> known(env)["angles"]
(2,)
"""

import gymnasium

from bamdp.continuous.tasks.known import known
from bamdp.continuous.tasks.systems import LavaPath, PilcoCartPole, SparsePendulum, Task, TipCartPole
from bamdp.continuous.tasks.unknown_gain import GainSolution, UnknownGain

__all__ = [
    "IDS",
    "GainSolution",
    "LavaPath",
    "PilcoCartPole",
    "SparsePendulum",
    "Task",
    "TipCartPole",
    "UnknownGain",
    "known",
]

_CLASSES: tuple[type[Task], ...] = (TipCartPole, PilcoCartPole, SparsePendulum, LavaPath, UnknownGain)
IDS = tuple(f"bamdp/{task.__name__}-v0" for task in _CLASSES)
"""The ids for ``gymnasium.make``: ``bamdp/TipCartPole-v0`` and so on."""

for _id, _task in zip(IDS, _CLASSES):
    if _id not in gymnasium.registry:
        gymnasium.register(
            _id, entry_point=f"{_task.__module__}:{_task.__name__}", max_episode_steps=_task.horizon
        )
