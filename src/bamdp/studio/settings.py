"""The studio's form: an environment, a prior, one planner or two, as text."""

from __future__ import annotations

from dataclasses import dataclass

from bamdp import _checks
from bamdp.envs.environment import World
from bamdp.envs.registry import make_world
from bamdp.runs import new_agent
from bamdp.settings import Setting, make_setting

MOST_STEPS = 100_000  # of a run that is watched


@dataclass(frozen=True)
class Limits:
    """What the studio works with at a time."""

    states: int = 2_500  # of an environment that is drawn
    seconds: float = 60.0  # of a single decision, after which its process is ended

    def __post_init__(self) -> None:
        _checks.integer(self.states, "max-states")
        _checks.real(self.seconds, "limit", low=0.0, high=1e6, open_low=True)  # poll counts in ms

    def check(self, setting: Setting, env: World) -> None:
        """Refuse what cannot be drawn, and a planner whose decisions would take too long or too much memory."""
        if env.n_states > self.states:
            raise ValueError(
                f"{env.name} has {env.n_states} states, and the studio draws up to {self.states}: choose a smaller "
                "one, or start the studio with a larger --max-states"
            )
        cost = setting.planner.cost(env.n_states, env.n_actions, setting.first_discount)
        if cost.seconds > self.seconds:
            raise ValueError(
                f"a decision in {env.n_states} states would take about {cost.seconds:.3g} s, and the studio waits for "
                f"{self.seconds:g} s: lower the planner's parameters, or start the studio with a larger --limit"
            )
        _checks.memory(cost.bytes, "a decision")
        new_agent(setting, env)  # the planner may refuse the belief


@dataclass(frozen=True)
class Choice:
    """A form as it is written; :meth:`settings` checks it. None stands for the planner's or environment's own."""

    env: str = "grid10"
    planners: tuple[str, ...] = ("dss-pi",)  # one or two, as name:key=value,...
    prior: str | None = None
    rewards: str | None = None
    discount: float | str | None = None
    objective: str = "episode"
    seed: int = 0
    steps: int | None = None

    def settings(self, limits: Limits) -> list[Setting]:
        """Return one setting for each planner, after checking everything."""
        if not 1 <= len(self.planners) <= 2:
            raise ValueError(f"choose one planner or two, got {len(self.planners)}")
        env = make_world(self.env)
        steps = min(env.horizon, MOST_STEPS) if self.steps is None else self.steps
        values = {key: getattr(self, key) for key in ("prior", "rewards", "discount", "objective", "seed")}
        made = [make_setting(self.env, name, steps=steps, world=env, **values) for name in self.planners]
        for setting in made:
            limits.check(setting, env)
        return made


# What a tab shows that asks for nothing else: an agent that has found the goal
FIRST, FIRST_STEP = Choice("grid5", ("dss-pi",), prior="sparse:beta=6"), 600
