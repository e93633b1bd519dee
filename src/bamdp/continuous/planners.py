"""Planners for continuous dynamics.

All planners search with the cross-entropy method (:mod:`bamdp.continuous.cem`), starting from the remainder of the last
plan, and replan after holding the first control for its full duration. They differ in the models used to evaluate
plans. Controls are random until there are enough data to fit scales and hyper-parameters; otherwise, a system at a
low-cost rest point would never move or provide informative data.

=============  ==========================================================================================
``mean``       the posterior mean (certainty equivalence): ignores the value of information
``thompson``   one posterior draw, kept for an episode and updated as data arrive
``open-loop``  the average over several draws: cautious, ignores future learning
``dss``        posterior draws with belief updates along each plan; see :mod:`bamdp.continuous.dss`
=============  ==========================================================================================
"""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from bamdp._parameters import Declared, positive_number, real_number, whole_number
from bamdp.continuous.belief import FIRST_FIT, DynamicsBelief, text_of
from bamdp.continuous.cem import Objective, Outputs, Search, optimise
from bamdp.continuous.models import Models
from bamdp.continuous.system import System
from bamdp.planners.base import Cost

Array = NDArray[Any]
AUTO = "auto"
BLOCKS = 30  # maximum number of blocks per plan by default
STEP_SECONDS = 1e-6  # approximate time per simulated step
SHORT = 500  # in episodes of at most this many steps, each control is held for one step
STEPS_PER_BLOCK = 200  # in longer episodes: 1000 steps give blocks of 5


@dataclass(frozen=True)
class Choice:
    """A candidate plan considered at the root."""

    action: Any
    value: float
    spread: float = float("nan")  # standard deviation of the returns averaged in the value
    count: int = 0  # number of returns
    actions: Array = field(default_factory=lambda: np.zeros((0, 0)), repr=False, compare=False)  # [T, m]
    states: Array = field(default_factory=lambda: np.zeros((0, 0)), repr=False, compare=False)  # [T + 1, D]

    def __str__(self) -> str:
        spread = "" if np.isnan(self.spread) else f" ± {self.spread:.2g}"
        count = f" ({self.count} samples)" if self.count else ""
        action = np.array2string(np.asarray(self.action), precision=3)
        return f"action {action}: {self.value:.4g}{spread}{count}"


@dataclass(frozen=True)
class ContinuousPlan:
    """A decision with supporting evidence.

    ``actions`` [T, m] ([T] for discrete actions) is the underlying plan, ``states`` [T + 1, D] contains the
    observations predicted by the planning model, and ``candidates`` lists the compared plans.
    """

    action: Any
    value: float
    actions: Array = field(repr=False, compare=False)
    states: Array = field(repr=False, compare=False)
    candidates: tuple[Choice, ...] = ()
    reproducible: bool = True  # False if a time budget limited the computation
    details: Mapping[str, Any] = field(default_factory=dict, compare=False)

    def __str__(self) -> str:
        action = np.array2string(np.asarray(self.action), precision=3)
        return "\n  ".join([f"action {action}, value {self.value:.4g}", *map(str, self.candidates)])


@dataclass
class Memory:
    """A planner's state between decisions."""

    plan: Array | None = None  # [H, k]: remainder of the last plan, which starts the next search
    draw: int = -1  # index of the current draw; -1 if a new draw is due
    age: int = 0  # decisions since the draw
    control: Array | None = None  # [k]: the control being held
    hold: int = 0  # remaining steps for which it is held


@dataclass(frozen=True, eq=False)
class Question:
    """A planning problem: the state, the belief and the number of steps to plan for."""

    belief: DynamicsBelief
    state: Array
    discount: float
    steps_left: int | None
    rng: np.random.Generator

    @property
    def system(self) -> System:
        """The system of the belief."""
        return self.belief.system


@dataclass(frozen=True, kw_only=True)
class ContinuousPlanner(Declared):
    """Hyper-parameters shared by all planners for continuous dynamics."""

    name: ClassVar[str]
    result_version: ClassVar[int] = 1
    uses_prior: ClassVar[bool] = True
    blocks: int | str = whole_number(
        AUTO, names=[AUTO], help=f"controls of a plan; auto: {BLOCKS}, or as many as an episode has"
    )
    repeat: int | str = whole_number(
        AUTO,
        names=[AUTO],
        help=f"steps for which a control is held; auto: 1, but a {STEPS_PER_BLOCK}th of episodes beyond {SHORT} steps",
    )
    plans: int = whole_number(80, low=2, help="plans drawn in an iteration of the search")
    iterations: int = whole_number(8, help="iterations of the search")
    elites: int = whole_number(8, help="plans to which the next draws are fitted")
    colour: float = real_number(0.7, low=0.0, high=0.999, help="correlation of successive controls in a draw")
    milliseconds: float | None = positive_number(
        None, help="iterate for so long instead, at least once; results then depend on the clock"
    )

    @property
    def text(self) -> str:
        """The label used in tables."""
        return text_of(self)

    def cost(self, n_states: int, n_actions: int, discount: float) -> Cost:
        """Return the approximate time per decision; memory use is negligible."""
        blocks = BLOCKS if isinstance(self.blocks, str) else self.blocks
        return Cost(STEP_SECONDS * self.plans * self.iterations * blocks, 0.0)

    def random(self, rng: Any) -> Any:
        """Return the agent's random generator, which decisions use."""
        return rng

    def warm_up(self, memory: Any, belief: Any, state: Any, rng: Any) -> None:
        """Do nothing, since the first decision already calls all kernels."""

    @abstractmethod
    def decide(
        self, question: Question, search: Search, memory: Memory
    ) -> tuple[Array, tuple[Choice, ...], Models]:
        """Return the plan [H, k], the candidates with the chosen one first, and a model for displaying the plan."""

    def search(self, system: System, discount: float, steps_left: int | None) -> Search:
        """Return the search settings for a system, with a horizon of at most ``steps_left`` steps."""
        repeat, blocks, steps = self.repeat, self.blocks, system.steps
        if isinstance(repeat, str):
            repeat = 1 if steps is None or steps <= SHORT else round(steps / STEPS_PER_BLOCK)
        if isinstance(blocks, str):
            blocks = BLOCKS if steps is None else min(BLOCKS, -(-steps // repeat))
        if steps_left is not None:
            repeat = min(repeat, steps_left)
            blocks = min(blocks, -(-steps_left // repeat))
        return Search(blocks, repeat, self.plans, self.iterations, self.elites, self.colour, discount)

    def plan(self, question: Question, memory: Memory) -> ContinuousPlan:
        """Return a decision with evidence, and store the rest of the plan in the memory."""
        begin = time.perf_counter()
        search = self.search(question.system, question.discount, question.steps_left)
        if self.milliseconds is not None:
            search = replace(search, deadline=begin + 1e-3 * self.milliseconds)
        plan, found, model = self.decide(question, search, memory)
        if question.belief.prior.fits and question.belief.n < FIRST_FIT:
            plan[0] = question.rng.uniform(-1.0, 1.0, plan.shape[1])
        memory.plan = np.concatenate([plan[1:], np.zeros((1, plan.shape[1]))])
        memory.control, memory.hold = plan[0], search.repeat
        memory.age += 1
        system, chosen = question.system, found[0]
        states = model.follow(np.zeros(1, np.int64), question.state[None], plan[None], search.repeat)[0][0]
        actions = system.actions(plan.repeat(search.repeat, 0))
        details = {"steps observed": question.belief.n, "blocks": search.blocks, "repeat": search.repeat}
        return ContinuousPlan(
            system.action(plan[0]),
            chosen.value,
            actions,
            system.observations(states),
            found,
            self.milliseconds is None,
            details,
        )

    def act(self, question: Question, memory: Memory) -> Any:
        """Return the action: the control being held, or the first control of a new plan."""
        if memory.hold > 0 and memory.control is not None:
            memory.hold -= 1
            return question.system.action(memory.control)
        action = self.plan(question, memory).action
        memory.hold -= 1
        return action

    def begin(self, memory: Memory) -> None:
        """Record the start of an episode."""
        memory.plan, memory.draw, memory.age, memory.control, memory.hold = None, -1, 0, None, 0


def starts(memory: Memory, search: Search, k: int) -> Array:
    """Return the initial plans [1, G, H, k] of a search: the remainder of the last plan."""
    plan = np.zeros((search.blocks, k))
    if memory.plan is not None:
        n = min(len(plan), len(memory.plan))
        plan[:n] = memory.plan[:n]
    return plan[None, None]


def outputs_of(belief: DynamicsBelief) -> Outputs:
    """Return the sources of rewards and terminations in a belief's models.

    Learned rewards are never predicted to be lower than the lowest observed reward. Otherwise, extrapolation could
    make all unknown states look too bad to visit.
    """
    d = belief.system.n_states
    end = belief.end_output - d if belief.end_output >= 0 and belief.ends else -1
    if belief.reward_output < 0:
        return Outputs(belief.system, -1, end)
    least = min((row[belief.reward_output] for row in belief.data.outputs), default=-np.inf)
    return Outputs(belief.system, belief.reward_output - d, end, least)


def best_plan(
    question: Question, models: Models, search: Search, memory: Memory
) -> tuple[Array, tuple[Choice, ...]]:
    """Return the best plan for the average over models, and its candidate record."""
    system = question.system
    which = np.arange(models.count)[None]
    objective = Objective(models, which, question.state[None], search, outputs_of(question.belief))
    plans, values = optimise(
        objective, starts(memory, search, system.n_controls), question.rng, bool(system.n_actions)
    )
    return plans[0], (Choice(system.action(plans[0, 0]), float(values[0])),)


@dataclass(frozen=True, kw_only=True)
class Mean(ContinuousPlanner):
    """Certainty equivalence: the best plan for the posterior mean model."""

    name: ClassVar[str] = "mean"

    def decide(
        self, question: Question, search: Search, memory: Memory
    ) -> tuple[Array, tuple[Choice, ...], Models]:
        model = question.belief.mean()
        return *best_plan(question, model, search, memory), model


@dataclass(frozen=True, kw_only=True)
class Thompson(ContinuousPlanner):
    """Thompson sampling: the best plan for one model drawn from the posterior.

    Until the next draw is due, the same sampled function is updated with new observations.
    """

    name: ClassVar[str] = "thompson"
    resample: int | str = whole_number(
        "episode",
        names=["episode"],
        help="when another model is drawn: at each episode, or after so many decisions",
    )

    def decide(
        self, question: Question, search: Search, memory: Memory
    ) -> tuple[Array, tuple[Choice, ...], Models]:
        if memory.draw < 0 or (not isinstance(self.resample, str) and memory.age >= self.resample):
            memory.draw, memory.age = int(question.rng.integers(2**62)), 0
        model = question.belief.sample(memory.draw)
        return *best_plan(question, model, search, memory), model


@dataclass(frozen=True, kw_only=True)
class OpenLoop(ContinuousPlanner):
    """Open-loop planning: the best plan on average over several posterior draws, ignoring future learning."""

    name: ClassVar[str] = "open-loop"
    models: int = whole_number(8, help="M, models drawn for each decision")

    def decide(
        self, question: Question, search: Search, memory: Memory
    ) -> tuple[Array, tuple[Choice, ...], Models]:
        models = question.belief.sample(question.rng, self.models)
        return *best_plan(question, models, search, memory), models
