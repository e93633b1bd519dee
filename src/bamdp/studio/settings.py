"""The studio's form: an environment, a prior, one planner or two, as text, with every field checked.

An error is a :class:`~bamdp.settings.FieldError`, which names its field so that the form can point at it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from bamdp import _checks
from bamdp.beliefs.episodes import OBJECTIVES
from bamdp.envs.environment import World
from bamdp.envs.registry import list_envs, make_world
from bamdp.registry import DEFAULT_PRIOR, make_planner
from bamdp.runs import new_agent
from bamdp.settings import FieldError, Setting, in_field, make_setting
from bamdp.studio.limits import Limits, Size, expected_size

MOST_STEPS = 100_000
LONGEST = 400  # characters of one field
MOST_SEED = 2**53  # what a browser can count to
FIELDS = ("env", "prior", "rewards", "discount", "objective", "seed", "steps", "planners")


@dataclass(frozen=True)
class Choice:
    """A form as it is written; :meth:`settings` checks it."""

    env: str = "grid10"
    planners: tuple[str, ...] = ("dss-pi",)  # name:key=value,...
    prior: str = DEFAULT_PRIOR
    rewards: str | None = None
    discount: float = 0.95
    objective: str = "episode"
    seed: int = 0
    steps: int | None = None
    files: frozenset[str] = field(
        default=frozenset(), repr=False
    )  # environments from files that may be opened

    @staticmethod
    def read(form: Any, files: Iterable[str] = ()) -> Choice:
        """Read a form from JSON; unknown and misshapen fields are refused, missing ones have their defaults."""
        if not isinstance(form, Mapping):
            raise FieldError("env", "expected an object with the fields " + ", ".join(FIELDS))
        for name in form:
            with in_field(name):
                _checks.one_of(name, "field", FIELDS)
        values = dict(form)
        planners = values.get("planners", ["dss-pi"])
        if not isinstance(planners, list) or not 1 <= len(planners) <= 2:
            raise FieldError("planners", f"planners must be a list of one or two, got {_shown(planners)}")
        values["planners"] = tuple(_check_text(f"planner {i}", spec) for i, spec in enumerate(planners))
        for name in ("env", "prior", "rewards"):
            if name == "rewards" and values.get(name) in (None, ""):  # the environment's usual ones
                values[name] = None
            elif name in values:
                values[name] = _check_text(name, values[name])
        if values.get("objective") in (None, ""):
            values["objective"] = "episode"
        choice = Choice(**values, files=frozenset(files))
        choice.check_numbers()
        return choice

    def check_numbers(self) -> None:
        """Refuse what is wrong without regard to an environment: discount, objective, seed, steps."""
        with in_field("discount"):
            _checks.discount(self.discount)
        with in_field("objective"):
            _checks.one_of(self.objective, "objective", OBJECTIVES)
        with in_field("seed"):
            _checks.integer(self.seed, "seed", low=0, high=MOST_SEED)
        if self.steps is not None:
            with in_field("steps"):
                _checks.integer(self.steps, "steps", high=MOST_STEPS)

    def check_beforehand(self, limits: Limits) -> None:
        """Refuse what can be told to be wrong, too large or too much work without building anything."""
        self.check_numbers()
        size = None
        with in_field("env"):
            if self._check_env_name() not in ("file", "gym"):
                size = expected_size(self.env)
            if size is not None:
                limits.check_size(self.env, size)
        for i, spec in enumerate(self.planners):
            with in_field(f"planner {i}"):
                planner = make_planner(spec)
                limits.check_planner(spec, planner, size or Size(1, 1, 1), self.discount)

    def settings(self, limits: Limits | None = None) -> list[Setting]:
        """Return one setting for each planner, after checking everything."""
        limits = limits or Limits()
        self.check_beforehand(limits)
        with in_field("env"):
            env = make_world(self.env)
            size = Size(env.n_states, env.n_actions, 1)
            limits.check_size(self.env, size)
        steps = min(env.horizon, MOST_STEPS) if self.steps is None else self.steps
        for i, spec in enumerate(self.planners):
            with in_field(f"planner {i}"):
                limits.check_planner(spec, make_planner(spec), size, self.discount)
        return [self._setting(f"planner {i}", spec, env, steps) for i, spec in enumerate(self.planners)]

    def _setting(self, name: str, planner: str, env: World, steps: int) -> Setting:
        try:
            setting = make_setting(
                self.env,
                planner,
                prior=self.prior,
                rewards=self.rewards,
                discount=self.discount,
                objective=self.objective,
                steps=steps,
                seed=self.seed,
                world=env,
            )
            with in_field("planner"):
                new_agent(setting, env)  # the planner may refuse the belief
            return setting
        except FieldError as error:  # the form has several planners
            raise FieldError(name if error.field == "planner" else error.field, str(error)) from error

    def _check_env_name(self) -> str:
        head = self.env.partition(":")[0].strip()
        if head in ("file", "gym") and self.env not in self.files:
            raise ValueError(
                "files and Gymnasium's environments can only be opened from the command line: bamdp studio "
                "file:model.npz, or bamdp studio gym:FrozenLake-v1"
            )
        if head not in ("file", "gym"):
            known = [info.name for info in list_envs()]
            _checks.one_of(head.lower().replace("-", "_"), "environment", known)
        return head


def _check_text(name: str, value: Any) -> str:
    if not isinstance(value, str) or not value.strip() or len(value) > LONGEST:
        raise FieldError(name, f"{name} must be a word of at most {LONGEST} characters, got {_shown(value)}")
    return value.strip()


def _shown(value: Any) -> str:
    """Write the beginning of a value from JSON, for a message."""
    return json.dumps(value)[:60]
