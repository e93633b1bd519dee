"""Agents at work: the one loop that lets an agent act in an environment, and the run that comes of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from time import thread_time
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bamdp import _checks
from bamdp._progress import step_bar
from bamdp.advice import Summary, summarize
from bamdp.agent import Agent
from bamdp.envs.environment import World
from bamdp.envs.registry import make_world
from bamdp.seeding import ENVIRONMENT, Seed, stream_seed

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from pandas import DataFrame

_new_tuple: Any = tuple.__new__  # _new_tuple(Step, (...)) is Step(...) in half the time


class Step(NamedTuple):
    """One step of a run, as callbacks are given it."""

    t: int
    state: int
    action: int
    reward: float
    next_state: int
    terminated: bool
    truncated: bool = False
    seconds: float = 0.0  # processor time of planning and learning; 0 where it is not measured


class Interaction:
    """One stream of an agent's experience: it acts, something answers, it observes the answer.

    This is the only loop of the library: :func:`simulate`, playback in the studio, vectors of environments and
    measurements of losses all go through it. Whoever drives it makes the answer between :meth:`act` and
    :meth:`observe`; for a :class:`~bamdp.envs.World`, :class:`WorldInteraction` does so.

    Parameters
    ----------
    agent
        The agent; several interactions may share one.
    state
        The state in which the next action is chosen, until :meth:`begin_at` sets another.
    """

    def __init__(self, agent: Agent, state: int = 0) -> None:
        self.agent, self.state = agent, state
        self.t = 0  # steps observed so far
        self.over = False  # the episode has ended or was truncated: another must begin before the next action
        self._planning = 0.0  # processor seconds of the last act

    def begin_at(self, state: int, allowed: NDArray[np.bool_] | None = None) -> None:
        """Begin an episode in ``state``, where only the actions in the mask ``allowed`` exist if it is given."""
        self.state, self.over = state, False
        self.agent.begin(state)
        self.allow(allowed)

    def allow(self, allowed: NDArray[np.bool_] | None) -> None:
        """Tell the agent which actions exist in the present state; None tells nothing."""
        if allowed is not None:
            self.agent.allow(self.state, allowed)

    def act(self) -> int:
        """Return the action that the agent chooses in the present state."""
        begin = thread_time()
        action = self.agent.act(self.state)
        self._planning = thread_time() - begin
        return action

    def observe(
        self, action: int, next_state: int, reward: float, terminated: bool, truncated: bool = False
    ) -> Step:
        """Let the agent learn what its action has led to, go to the next state, and return the step."""
        begin, state, t = thread_time(), self.state, self.t
        self.agent.observe(state, action, reward, next_state, terminated)
        seconds = thread_time() - begin + self._planning
        truncated = truncated and not terminated
        self.t, self.state, self.over = t + 1, next_state, terminated or truncated
        return _new_tuple(Step, (t, state, action, reward, next_state, terminated, truncated, seconds))


class WorldInteraction(Interaction):
    """An agent in an environment, step by step and episode after episode.

    The environment is reset with ``seed`` and the first episode begins at once.
    """

    def __init__(self, agent: Agent, env: World, seed: Seed = None) -> None:
        super().__init__(agent)
        self.env = env
        self.begin_at(env.reset(seed=stream_seed(seed, ENVIRONMENT)), env.allowed)

    def step(self, repeated_action: int | None = None) -> Step:
        """Let the agent act once and learn from it.

        With ``repeated_action`` that action is taken whatever the agent chooses, which still advances its random
        stream: a recorded run is so repeated even if its planner depends on the clock.
        """
        action = self.act()
        if repeated_action is not None:
            action = repeated_action
        next_state, reward, terminated = self.env.step(action)
        return self.observe(action, next_state, reward, terminated, self.env.truncated)

    def proceed(self) -> None:
        """Get ready for the next step: begin an episode after the last, or take note of the present actions."""
        if self.over:
            self.begin_at(self.env.reset(), self.env.allowed)
        else:
            self.allow(self.env.allowed)


@dataclass(frozen=True, eq=False)
class Run:
    """The steps of an agent in an environment. Runs are equal if their steps are; times do not count."""

    states: NDArray[
        Any
    ]  # [T]: the state in which each action was taken; [T, d] where observations are continuous
    actions: NDArray[Any]  # [T], or [T, m]
    rewards: NDArray[np.float64]  # [T]
    terminated: NDArray[np.bool_]  # [T]
    step_seconds: NDArray[np.float64]  # [T]: processor time of planning and learning
    truncated: NDArray[np.bool_] | None = None  # [T]: where an episode was cut off; None if none was
    n_actions: int | None = None  # that there are; None where it is not known

    def __repr__(self) -> str:
        returns = self.episode_returns
        n = len(returns)
        episodes = f", {n} episode{'s' * (n != 1)} with mean return {returns.mean():.4g}" if n else ""
        steps = f"{len(self.rewards)} step{'s' * (len(self.rewards) != 1)}"
        return f"Run: {steps}, total {self.total_reward:.6g}{episodes}, {self.ms_per_step:.2g} ms per step"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Run):
            return NotImplemented
        names = ("states", "actions", "rewards", "terminated", "truncated")
        return all(np.array_equal(getattr(self, name), getattr(other, name)) for name in names)

    __hash__ = None  # type: ignore[assignment]

    def plot(self, *, ax: Axes | None = None, **options: Any) -> Axes:
        """Draw the returns of its episodes over time, or the reward per step where these do not differ.

        Options are those of :func:`bamdp.plot.returns` and :func:`bamdp.plot.learning_curve`.
        """
        from bamdp import plot  # Matplotlib is imported only where something is drawn

        draw = plot.returns if len(set(self.episode_returns.tolist())) > 1 else plot.learning_curve
        return draw(self, ax=ax, **options)

    def summary(self) -> Summary:
        """Return how much was tried and what random play would have earned, with a warning where that is more.

        Examples
        --------
        >>> import bamdp
        >>> run = bamdp.simulate(bamdp.Agent.for_env("chain", seed=0), "chain", 300, seed=0)
        >>> run.summary().below_random
        False
        """
        return summarize(self.states, self.actions, self.rewards, self.n_actions)

    def to_frame(self) -> DataFrame:
        """Return a pandas DataFrame with a row for each step."""
        steps = np.arange(len(self.rewards))
        return new_frame(
            {
                "step": steps,
                "episode": np.searchsorted(self.ends, steps),
                **_columns("state", self.states),
                **_columns("action", self.actions),
                "reward": self.rewards,
                "terminated": self.terminated,
                "truncated": np.zeros(len(steps), bool) if self.truncated is None else self.truncated,
                "seconds": self.step_seconds,
            }
        )

    @property
    def ends(self) -> NDArray[np.int64]:
        """The last step of every episode that was completed, by an end or a truncation."""
        cut = self.terminated if self.truncated is None else self.terminated | self.truncated
        return np.flatnonzero(cut)

    @property
    def episode_returns(self) -> NDArray[np.float64]:
        """The undiscounted sum of rewards of every episode that was completed."""
        sums = np.concatenate([[0.0], np.cumsum(self.rewards)])
        return np.diff(sums[np.concatenate([[0], self.ends + 1])])

    @property
    def success(self) -> float | None:
        """The share of completed episodes that reached their goal; None where there is none, see `success_share`."""
        return success_share([self])

    @property
    def total_reward(self) -> float:
        """Undiscounted sum of rewards."""
        return float(self.rewards.sum())

    @property
    def seconds(self) -> float:
        """Processor time spent planning and learning, compiling included."""
        return float(self.step_seconds.sum())

    @property
    def ms_per_step(self) -> float:
        """Mean processor milliseconds of a step, without the first, in which code may have been compiled."""
        later = self.step_seconds[1:] if len(self.step_seconds) > 1 else self.step_seconds
        return 1e3 * float(later.mean()) if len(later) else 0.0


def success_share(runs: Sequence[Run]) -> float | None:
    """Return the share of completed episodes that ended, in time, with a positive reward.

    It is defined where that means reaching a goal: None where positive rewards come on the way, where there is
    nothing but costs, or where no episode was completed.
    """
    rewards, ended = (
        np.concatenate([getattr(run, name) for run in runs]) for name in ("rewards", "terminated")
    )
    n_episodes, reached = sum(len(run.ends) for run in runs), ended & (rewards > 0.0)
    elsewhere, only_costs = (
        (rewards[~ended] > 0.0).any(),
        rewards.min(initial=0.0) < 0.0 and not reached.any(),
    )
    return None if elsewhere or only_costs or not n_episodes else float(reached.sum() / n_episodes)


def _columns(name: str, values: NDArray[Any]) -> dict[str, NDArray[Any]]:
    """Return the column of values [T], or a column for each coordinate of values [T, d]."""
    return (
        {name: values} if values.ndim == 1 else {f"{name}_{j}": values[:, j] for j in range(values.shape[1])}
    )


def new_frame(columns: Mapping[str, Any]) -> DataFrame:
    """Return a pandas DataFrame; pandas is imported only where a frame is made."""
    from pandas import DataFrame

    return DataFrame(dict(columns))


Callback = Callable[[Agent, Any, Step], Any]


def simulate(
    agent: Agent,
    env: Any,
    steps: int | None = None,
    *,
    seed: Seed = None,
    progress: bool | Callable[[int], None] = False,
    callbacks: Iterable[Callback] = (),
) -> Run:
    """Let an agent act and learn in an environment.

    Parameters
    ----------
    agent
        The agent.
    env
        The environment, as :meth:`Agent.for_env` takes it. It is reset; an episode that has ended or was cut off is
        followed by the next.
    steps
        Number of steps T; by default the environment's horizon.
    seed
        The seed of the run, whose environment stream is used: s, or (s, r) for replicate r, see :mod:`bamdp.seeding`.
        With the agent's seed the same, this is the run with this number of :func:`bamdp.run_many`.
    progress
        True for a progress bar on standard error, or a function called with the number of steps just done.
    callbacks
        Called as ``callback(agent, env, step)`` after each step; returning False ends the run there.

    Notes
    -----
    If the environment does something impossible (a state out of range, a reward that is not a number), the error says
    how far the run came. The agent keeps all that it has learned: it can be saved, and go on.

    What has to be compiled is compiled in the first step, which takes some seconds on a machine where it was never
    done; the logger ``bamdp`` says so.
    """
    if not isinstance(agent, Agent) and not hasattr(agent, "system"):
        hint = "; a GymAgent plays by itself: player.play(steps=...)" if hasattr(agent, "play") else ""
        raise TypeError(f"simulate(agent, env, ...) takes an Agent first, got {type(agent).__name__}{hint}")
    env = make_world(env)
    T = env.horizon if steps is None else _checks.integer(steps, "steps", low=0)
    if env.system is not None or not isinstance(agent, Agent):
        env.check_agent(agent)
    elif (env.n_states, env.n_actions) != (agent.belief.n_states, agent.belief.n_actions):
        raise ValueError(
            f"the environment has {env.n_states} states and {env.n_actions} actions, the agent was made for "
            f"{agent.belief.n_states} and {agent.belief.n_actions}"
        )
    listeners = tuple(callbacks)
    states, actions = env.records(T)
    rewards, ends, cuts = np.zeros(T), np.zeros(T, bool), np.zeros(T, bool)
    seconds = np.zeros(T)
    loop: WorldInteraction | None = None
    try:
        with step_bar(progress, T) as tick:
            loop = WorldInteraction(agent, env, seed)
            for t in range(T):
                step = loop.step()
                _, states[t], actions[t], rewards[t], _, ends[t], cuts[t], seconds[t] = step
                if tick is not None:
                    tick(1)
                answers = [listener(agent, env, step) for listener in listeners]
                if any(answer is False for answer in answers):
                    break
                if t + 1 < T:  # nothing begins after the last step
                    loop.proceed()
    except (ValueError, TypeError, RuntimeError) as error:
        done = loop.t if loop else 0
        error.add_note(f"(after {done} steps; the agent keeps what it has learned from them)")
        raise
    done = loop.t
    truncated = cuts[:done] if cuts.any() else None
    parts = (states[:done], actions[:done], rewards[:done], ends[:done], seconds[:done])
    return Run(*parts, truncated, env.n_actions)
