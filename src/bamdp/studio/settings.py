"""Text form of the studio: an environment, a prior, and one or two planners."""

from __future__ import annotations

from dataclasses import dataclass

from bamdp import _checks
from bamdp.envs.environment import World
from bamdp.envs.registry import make_world
from bamdp.runs import Setting, make_setting, new_agent

MOST_STEPS = 100_000  # of a watched run


@dataclass(frozen=True)
class Limits:
    """Limits on the size and computation time of watched runs."""

    states: int = 2_500  # of a displayed environment
    seconds: float = 60.0  # for a single decision; a slower process is killed

    def __post_init__(self) -> None:
        _checks.integer(self.states, "max-states")
        _checks.real(self.seconds, "limit", low=0.0, high=1e6, open_low=True)  # poll takes milliseconds

    def check(self, setting: Setting, env: World) -> None:
        """Reject environments too large to display, and planners whose decisions need too much time or memory."""
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
        new_agent(setting, env)  # the planner may reject the belief


@dataclass(frozen=True)
class Choice:
    """Unvalidated form; :meth:`settings` checks it. None selects the default of the planner or environment."""

    env: str = "grid10"
    planners: tuple[str, ...] = ("dss-pi",)  # one or two, as name:key=value,...
    prior: str | None = None
    rewards: str | None = None
    discount: float | str | None = None
    objective: str = "episode"
    seed: int = 0
    steps: int | None = None

    def settings(self, limits: Limits) -> list[Setting]:
        """Return one setting per planner after validating the form."""
        if not 1 <= len(self.planners) <= 2:
            raise ValueError(f"choose one planner or two, got {len(self.planners)}")
        env = make_world(self.env)
        steps = min(env.horizon, MOST_STEPS) if self.steps is None else self.steps
        values = {key: getattr(self, key) for key in ("prior", "rewards", "discount", "objective", "seed")}
        made = [make_setting(self.env, name, steps=steps, world=env, **values) for name in self.planners]
        for setting in made:
            limits.check(setting, env)
        return made


# initial form of a new tab: an agent that has already found the goal
FIRST, FIRST_STEP = Choice("grid5", ("dss-pi",), prior="sparse:beta=6"), 600
