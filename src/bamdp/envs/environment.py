"""`World`, the interface of environments, and `Environment`, which has a known true model.

An environment holds its true model, a state, and a random stream that is independent of the agent's. Step t of a run
uses the t-th uniform number u_t of that stream regardless of earlier actions, even if the outcome is certain: the next
state is the quantile at u_t of the row's distribution. Agents are therefore compared under common random numbers, and
the seed and the actions reproduce a run.

Rows are converted to lists on their first visit, so memory grows with the number of visited rows, and a step takes
about a microsecond.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bamdp import _checks
from bamdp.envs import drawing
from bamdp.envs.picture import Layout, default_layout, draw_world, table_layout
from bamdp.mdp.model import FiniteMDP, check_start

if TYPE_CHECKING:
    from bamdp.beliefs.base import Prior

LEAST_U = 2.0**-54  # half the smallest positive uniform number; the normal quantile at 0 is infinite
_BLOCK = 512  # uniforms per draw; the stream does not depend on it
REFERENCE_MODELS = 64  # sample size that represents the distribution of models
Seed = int | np.random.SeedSequence | None
StepResult = tuple[int, float, bool]  # next state, reward, whether the episode has ended
OutcomeRow = tuple[list[float], list[StepResult]]


class World:
    """The interface of environments with numbered states and actions.

    A subclass sets the name and the sizes and implements `reset` and `step`."""

    name: str
    n_states: int
    n_actions: int
    horizon: int = 1000  # usual number of steps in a run
    truncated: bool = False  # whether the last step truncated the episode
    stochastic_rewards: bool = True  # whether rewards are random
    system: Any = None  # continuous observations, see bamdp.continuous; None if states are numbered
    usual_planner: str | None = None  # set if it differs from the general default
    # mask [A] of the actions in the current state, if it is known only on arrival
    allowed: NDArray[np.bool_] | None = None
    mdp: FiniteMDP | None = None  # the true model, if known
    end: int | None = None  # the state that represents the end of an episode, if any
    start: Any = 0

    @property
    def knowledge(self) -> dict[str, Any]:
        """The arguments of `Agent` that are known in advance: the state that represents the end, if any."""
        return {} if self.end is None else {"end": self.end}

    def check_agent(self, agent: Any) -> None:
        """Raise ValueError for an agent that needs continuous observations."""
        raise ValueError(f"{agent!r} is for continuous observations, and the states of {self!r} are numbered")

    def records(self, steps: int) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return arrays for recording ``steps`` states and actions."""
        return np.zeros(steps, np.int64), np.zeros(steps, np.int64)

    def reset(self, *, seed: Seed = None) -> int:
        """Begin an episode and return its first state; with a seed, reseed the random stream."""
        raise NotImplementedError

    def step(self, action: int) -> StepResult:
        """Take an action and return (next state, reward, whether the episode has ended)."""
        raise NotImplementedError

    def state_label(self, state: int) -> str:
        """Return the label of a state, by default its number."""
        return "end" if state == self.end else str(state)

    def action_label(self, action: int, state: int | None = None) -> str:
        """Return the label of an action, by default its number; in some environments it depends on the state."""
        return str(action)

    @property
    def geometry(self) -> Layout:
        """The geometry for drawing the environment in the current run: by default a table of its states."""
        return table_layout(self.n_states)

    def layout(self) -> dict[str, Any]:
        """Return the layout and the names of states and actions as plain data, ready for JSON.

        Examples
        --------
        >>> from bamdp.envs import make_env
        >>> data = make_env("grid", size=2).layout()
        >>> data["kind"], data["positions"]
        ('grid', [[0.0, 1.0], [0.0, 0.0], [1.0, 1.0], [1.0, 0.0]])
        """
        mdp, geometry, ends = self.mdp, self.geometry, [] if self.end is None else [self.end]
        return {
            **geometry.data(),
            "name": self.name,
            "n_actions": self.n_actions,
            "start": self.start if isinstance(self.start, int) else 0,
            "edges": geometry.edges(mdp),
            "terminal": ends if mdp is None else np.flatnonzero(mdp.terminal).tolist(),
            "arms": None if mdp is None or self.n_states > 1 else mdp.expected_rewards[0].tolist(),
            "state_labels": [self.state_label(s) for s in range(self.n_states)],
            "action_labels": [self.action_label(a) for a in range(self.n_actions)],
        }


class Environment(World):
    """An environment whose true model is known, though not to the agent.

    Most users create one with `bamdp.make_env` or `from_mdp`.

    Parameters
    ----------
    name : str
        The name.
    mdp : FiniteMDP
        The true model, hidden from agents.
    start : int or array [S], default 0
        The state after `reset`, or the probabilities of the start states.
    horizon : int, default 1000
        Usual number of steps in a run: the paper's T if the paper uses this environment.
    time_limit : float, default 1.0
        Planning time per step, in seconds: the paper's limit if the paper uses this environment.
    layout : Layout or callable (FiniteMDP) -> Layout, optional
        The geometry for drawing; by default nodes on a circle, or a table of more than 24 states.
    parameters : mapping, optional
        The arguments that created it. For names known to `make_env`, ``make_env(env.name, **env.parameters)`` creates
        another instance.
    draw_reward : callable (mean, u) -> float, optional
        Makes rewards random: returns the quantile at u in [0, 1) of the reward distribution with the given mean (for
        example `bernoulli`). Every step then uses a second random number.
    draw_model : callable (u) -> FiniteMDP, optional
        Makes every run use its own model: returns the model of a run whose random stream begins with u in [0, 1).
    law : Prior, optional
        The distribution of the models, which is the correct prior for an agent.
    disturbance : Prior, optional
        The prior of an agent that knows how the state, the action and a disturbance determine the next state, but does
        not know the distribution of the disturbance.

    Attributes
    ----------
    start : int
        The start state; if it is random, that of the current run (before the first run, the most likely one).
    start_probabilities : array [S] or None
        The distribution of the start state, if it is random.
    state : int
        The current state.
    terminated : bool
        Whether a terminal state was reached, so that `reset` is required.
    last_action : int or None
        The last action since `reset`.
    draws_model : bool
        Whether each run draws its own model; ``mdp`` is then the model of the current run.

    Examples
    --------
    >>> from bamdp.envs import make_env
    >>> env = make_env("grid5")
    >>> env
    Environment('grid5', 25 states, 4 actions, start 0, horizon 1000)
    >>> env.reset(seed=1)
    0
    >>> env.step(1)
    (5, 0.0, False)
    """

    mdp: FiniteMDP

    def __init__(
        self,
        name: str,
        mdp: FiniteMDP,
        *,
        start: int | ArrayLike = 0,
        horizon: int = 1000,
        time_limit: float = 1.0,
        layout: Layout | Callable[[FiniteMDP], Layout] | None = None,
        parameters: Mapping[str, Any] | None = None,
        draw_reward: Callable[[float, float], float] | None = None,
        draw_model: Callable[[float], FiniteMDP] | None = None,
        law: Prior | None = None,
        disturbance: Prior | None = None,
    ) -> None:
        if not isinstance(mdp, FiniteMDP):
            raise TypeError(f"mdp must be a FiniteMDP of your arrays, got {type(mdp).__name__}")
        self.name = str(name)
        first = check_start(start, mdp.n_states)
        self.start_probabilities = first if isinstance(first, np.ndarray) else None
        self.start = int(np.argmax(first)) if isinstance(first, np.ndarray) else first
        self.horizon = _checks.integer(horizon, "horizon")
        self.time_limit = _checks.real(time_limit, "time_limit", low=0.0, open_low=True)
        self.parameters = dict(parameters or {})
        self.state, self.terminated = self.start, False
        self.last_action: int | None = None
        self.law, self.disturbance = law, disturbance
        self.draws_model = draw_model is not None
        self._draw_model, self._draw_reward = draw_model, draw_reward
        self._rng: np.random.Generator | None = None
        self._uniforms: list[float] = []
        self._layout = default_layout(mdp.n_states) if layout is None else layout
        self._become(mdp)
        possible = [self.start] if self.start_probabilities is None else self.start_probabilities > 0
        if self._ends[possible].any():
            raise ValueError(f"{self.name} may start in a terminal state, where no step can be taken")

    def _become(self, mdp: FiniteMDP) -> None:
        """Set the model; called in each run if models are random."""
        self.mdp = mdp
        self.n_states, self.n_actions = mdp.n_states, mdp.n_actions
        self._ends = np.asarray(mdp.terminal, bool)
        self._rows: dict[int, OutcomeRow] = {}

    def models(self, seeds: Sequence[np.random.SeedSequence] = ()) -> tuple[tuple[float, FiniteMDP], ...]:
        """Return pairs (share, model) for runs with these seeds or, without seeds, for the distribution of models.

        Most environments have only one model. Otherwise, without seeds, an evenly spaced sample represents the
        distribution.
        """
        if self._draw_model is None:
            return ((1.0, self.mdp),)
        even = ((np.arange(REFERENCE_MODELS) + 0.5) / REFERENCE_MODELS).tolist()
        numbers = [np.random.default_rng(seed).random() for seed in seeds] or even
        drawn = [self._draw_model(u) for u in numbers]
        counts = Counter(map(id, drawn))
        return tuple((counts[id(m)] / len(drawn), m) for m in {id(m): m for m in drawn}.values())

    @property
    def rewards(self) -> NDArray[np.float64]:
        """The true model's rewards, [S], [S, A] or [S, A, S], which an agent may know."""
        return self.mdp.rewards

    @property
    def knowledge(self) -> dict[str, Any]:
        """The arguments of `Agent` that are known in advance: the terminal states and the existing actions."""
        return {"terminal": self.mdp.terminal, "action_mask": self.mdp.action_mask}

    @property
    def stochastic_rewards(self) -> bool:  # type: ignore[override]
        """Whether rewards are random, in which case `rewards` contains their means."""
        return self._draw_reward is not None

    @property
    def binary_rewards(self) -> bool:
        """Whether rewards are random with values 0 and 1."""
        return self._draw_reward is bernoulli

    def reset(self, *, seed: Seed = None) -> int:
        """Begin an episode and return its start state.

        Parameters
        ----------
        seed : int or SeedSequence, optional
            Reseeds the random stream. Without a seed the stream continues; the first reset then takes its seed from the
            operating system.
        """
        if seed is not None or self._rng is None:
            self._rng, self._uniforms = np.random.default_rng(seed), []
        if self._draw_model is not None:
            self._become(self._draw_model(self._random()))
        if self.start_probabilities is not None:
            cumulative = np.cumsum(self.start_probabilities)
            self.start = int(np.searchsorted(cumulative / cumulative[-1], self._random(), side="right"))
        self.state, self.terminated, self.last_action = self.start, False, None
        return self.state

    def step(self, action: int) -> StepResult:
        """Take an action.

        Parameters
        ----------
        action : int

        Returns
        -------
        next_state : int
        reward : float
        terminated : bool
            Whether ``next_state`` is terminal; if so, call `reset` before the next step.
        """
        if action.__class__ is not int or not 0 <= action < self.n_actions:
            action = _checks.index(action, "action", self.n_actions)
        row = self._rows.get(self.state * self.n_actions + action)
        if row is None or self.terminated:
            row = self._open_row(action)
        cumulative, outcomes = row
        outcome = outcomes[bisect_right(cumulative, self._random())]
        self.state, _, self.terminated = outcome
        self.last_action = action
        if self._draw_reward is None:
            return outcome
        return outcome[0], self._draw_reward(outcome[1], self._random()), outcome[2]

    def _random(self) -> float:
        """Return the next uniform number of the random stream, which is drawn in blocks for speed."""
        if not self._uniforms:
            self._uniforms = self._rng.random(_BLOCK)[::-1].tolist()  # type: ignore[union-attr]
        return self._uniforms.pop()

    def _open_row(self, action: int) -> OutcomeRow:
        """Build the lists of a row on its first visit: cumulative probabilities except the last, and outcomes."""
        if self._rng is None:
            raise RuntimeError(f"{self.name} has not been reset; call reset(seed=...) before the first step")
        if self.terminated:
            raise RuntimeError(f"{self.name} has terminated in state {self.state}; call reset()")
        s = self.state
        if not self.mdp.action_mask[s, action]:
            choices = np.flatnonzero(self.mdp.action_mask[s]).tolist()
            raise ValueError(f"action {action} is not allowed in state {s}; allowed there: {choices}")
        states, chances = self.mdp.row(s, action)
        possible, rewards = chances > 0, self.rewards
        outcomes = [
            (t, float(rewards[(s, action, t)[: rewards.ndim]]), bool(self._ends[t]))
            for t in states[possible].tolist()
        ]
        total = float(chances[possible].sum())
        cumulative = [c / total for c in accumulate(chances[possible].tolist())][:-1]
        self._rows[s * self.n_actions + action] = row = cumulative, outcomes
        return row

    @property
    def geometry(self) -> Layout:
        """The geometry for drawing the environment in the current run."""
        return self._layout(self.mdp) if callable(self._layout) else self._layout

    def state_label(self, state: int) -> str:
        """Return the label of a state, by default its number."""
        labels = self.mdp.state_labels
        return str(state) if labels is None else str(labels[state])

    def action_label(self, action: int, state: int | None = None) -> str:
        """Return the label of an action, by default its number; in some environments it depends on the state."""
        labels = self.mdp.action_labels
        return str(action) if labels is None else str(labels[action])

    def render(self) -> NDArray[np.uint8]:
        """Return an image of the current state, uint8 [H, W, 3]; :mod:`bamdp.plot` plots policies and values."""
        return drawing.as_image(self._picture())

    def _repr_svg_(self) -> str:
        """Return the picture of the current state that notebooks show."""
        return drawing.with_colours(drawing.markup(self._picture()))

    def _picture(self) -> Any:
        world = self.layout()
        return draw_world(world, self.state, world["arms"], last_action=self.last_action).figure

    def __repr__(self) -> str:
        return (
            f"Environment({self.name!r}, {self.n_states} states, {self.n_actions} actions, "
            f"start {self.start}, horizon {self.horizon})"
        )


def bernoulli(mean: float, u: float) -> float:
    """Return the quantile at ``u`` of a Bernoulli reward, which is 1 with probability ``mean`` and 0 otherwise."""
    return 1.0 if u < mean else 0.0
