"""What is watched: an environment, a prior, one planner or two, from text, with every part checked.

An error names the field that it belongs to, so that a form can point at it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from bamdp import _checks
from bamdp._specs import split_spec
from bamdp.beliefs.episodes import OBJECTIVES
from bamdp.envs import Environment, list_envs, make_env
from bamdp.registry import DEFAULT_PRIOR, make_planner, make_prior, make_rewards
from bamdp.runs import Setting

MOST_STATES = 2_500  # that can be drawn and looked at
MOST_ACTIONS = 24
MOST_STEPS = 100_000
LONGEST = 400  # characters of one field
MOST_SEED = 2**53  # what a browser can count to
FIELDS = ("env", "prior", "rewards", "discount", "objective", "seed", "steps", "planners")

T = TypeVar("T")


class BadField(ValueError):
    """Something is wrong with one field of a form."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field


@dataclass(frozen=True)
class Choice:
    """A form, as it is written. Nothing is checked yet."""

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
    def read(given: Any, files: Iterable[str] = ()) -> Choice:
        """From JSON; unknown, missing and misshapen fields are refused."""
        if not isinstance(given, Mapping):
            raise BadField("env", "expected an object with the fields " + ", ".join(FIELDS))
        for name in given:
            _in_field("env", _checks.one_of, name, "field", FIELDS)
        texts = {name: _text(given, name) for name in ("env", "prior") if name in given}
        planners = given.get("planners", ["dss-pi"])
        if not isinstance(planners, list) or not 1 <= len(planners) <= 2:
            raise BadField(
                "planners", f"planners must be a list of one or two, got {json.dumps(planners)[:60]}"
            )
        names = tuple(_text({f"planner {i}": p}, f"planner {i}") for i, p in enumerate(planners))
        rewards = None if given.get("rewards") in (None, "") else _text(given, "rewards")
        return Choice(
            planners=names,
            rewards=rewards,
            discount=_in_field("discount", _checks.discount, given.get("discount", 0.95)),
            objective=_in_field(
                "objective", _checks.one_of, given.get("objective") or "episode", "objective", OBJECTIVES
            ),
            seed=_in_field("seed", _checks.integer, given.get("seed", 0), "seed", low=0, high=MOST_SEED),
            steps=None if given.get("steps") is None else given["steps"],
            files=frozenset(files),
            **texts,
        )

    def settings(self) -> list[Setting]:
        """One for each planner, checked throughout."""
        env = _in_field("env", self._environment)
        prior = _in_field("prior", make_prior, self.prior, env)
        rewards = _in_field("rewards", make_rewards, self.rewards, env)
        wanted = min(env.horizon, MOST_STEPS) if self.steps is None else self.steps
        steps = _in_field("steps", _checks.integer, wanted, "steps", high=MOST_STEPS)
        found = []
        for i, spec in enumerate(self.planners):
            planner = _in_field(f"planner {i}", make_planner, spec)
            setting = Setting(
                self.env, planner, prior, rewards, self.discount, steps, self.seed, self.objective
            )
            _in_field(f"planner {i}", setting.agent, env)  # it may refuse the belief
            found.append(setting)
        return found

    def _environment(self) -> Environment:
        head = self.env.partition(":")[0].strip()
        if head == "file" and self.env not in self.files:
            raise ValueError("files can only be opened from the command line: bamdp studio file:model.npz")
        known = [info.name for info in list_envs()]
        if head not in ("file", "gym"):  # of which the latter is refused below
            _checks.one_of(head.lower().replace("-", "_"), "environment", known)
            _bound_sizes(split_spec(self.env)[1])
        env = make_env(self.env)
        if env.n_states > MOST_STATES or env.n_actions > MOST_ACTIONS:
            raise ValueError(
                f"{self.env} has {env.n_states} states and {env.n_actions} actions; what can be looked at here ends "
                f"at {MOST_STATES} states and {MOST_ACTIONS} actions: choose smaller ones, or use bamdp run"
            )
        return env


def _bound_sizes(parameters: Mapping[str, str]) -> None:
    """Refuse sizes that would take long to build before they can be refused for what they are."""
    for key, value in parameters.items():
        digits = value.strip().lstrip("+-").replace("_", "")
        if digits.isdigit() and not key.endswith("seed") and int(digits) > MOST_STATES:
            raise ValueError(f"{key} must be at most {MOST_STATES} here, got {value}")


def _text(given: Mapping[str, Any], name: str) -> str:
    value = given[name]
    if not isinstance(value, str) or not value.strip() or len(value) > LONGEST:
        raise BadField(
            name, f"{name} must be a word of at most {LONGEST} characters, got {json.dumps(value)[:60]}"
        )
    return value.strip()


def _in_field(name: str, make: Callable[..., T], *arguments: Any, **options: Any) -> T:
    try:
        return make(*arguments, **options)
    except BadField:
        raise
    except (ValueError, TypeError, OSError) as error:
        raise BadField(name, " ".join(str(error).split())) from error
