"""The interaction loop between agents and environments, and the runs that it produces."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from time import thread_time
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bamdp import _checks
from bamdp.advice import Summary, summarize
from bamdp.agent import Agent
from bamdp.envs.environment import World
from bamdp.envs.registry import make_world
from bamdp.processes import step_bar
from bamdp.seeding import ENVIRONMENT, Seed, stream_seed

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from pandas import DataFrame

_new_tuple: Any = tuple.__new__  # _new_tuple(Step, (...)) takes half the time of Step(...)


class Step(NamedTuple):
    """One step of a run, as passed to callbacks."""

    t: int
    state: int
    action: int
    reward: float
    next_state: int
    terminated: bool
    truncated: bool = False
    seconds: float = 0.0  # processor time of planning and learning; 0 if not measured


class Interaction:
    """Step-by-step interaction of an agent with an environment across episodes.

    The constructor resets the environment with ``seed`` and begins the first episode. :func:`simulate` and playback in
    the studio share this loop.
    """

    def __init__(self, agent: Agent, env: World, seed: Seed = None) -> None:
        self.agent, self.env = agent, env
        self.t = 0  # number of completed steps
        self.state = env.reset(seed=stream_seed(seed, ENVIRONMENT))
        self.over = True  # an episode must begin before the next step
        self.proceed()

    def step(self, repeated_action: int | None = None) -> Step:
        """Let the agent act once and learn from the outcome.

        If ``repeated_action`` is given, it replaces the agent's choice, which still advances the agent's random stream.
        This replays a recorded run even if its planner depends on the clock.
        """
        state, t, begin = self.state, self.t, thread_time()
        action = self.agent.act(state)
        seconds = thread_time() - begin
        if repeated_action is not None:
            action = repeated_action
        next_state, reward, terminated = self.env.step(action)
        begin = thread_time()
        self.agent.observe(state, action, reward, next_state, terminated)
        seconds += thread_time() - begin
        truncated = self.env.truncated and not terminated
        self.t, self.state, self.over = t + 1, next_state, terminated or truncated
        return _new_tuple(Step, (t, state, action, reward, next_state, terminated, truncated, seconds))

    def proceed(self) -> None:
        """Prepare the next step: begin a new episode if necessary, and tell the agent which actions exist."""
        if self.over:
            if self.t:
                self.state = self.env.reset()
            self.over = False
            self.agent.begin(self.state)
        if self.env.allowed is not None:
            self.agent.allow(self.state, self.env.allowed)


@dataclass(frozen=True, eq=False)
class Run:
    """The steps of an agent in an environment; equality of runs ignores times."""

    states: NDArray[Any]  # [T]: the state in which each action was taken; [T, d] for continuous observations
    actions: NDArray[Any]  # [T], or [T, m]
    rewards: NDArray[np.float64]  # [T]
    terminated: NDArray[np.bool_]  # [T]
    step_seconds: NDArray[np.float64]  # [T]: processor time of planning and learning
    truncated: NDArray[np.bool_] | None = None  # [T]: steps that truncated an episode; None if none did
    n_actions: int | None = None  # number of actions; None if unknown

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
        """Plot episode returns over time, or the reward per step if all returns are equal.

        Accepts the options of :func:`bamdp.plot.returns` and :func:`bamdp.plot.learning_curve`.
        """
        from bamdp import plot  # imports Matplotlib only when needed

        draw = plot.returns if len(set(self.episode_returns.tolist())) > 1 else plot.learning_curve
        return draw(self, ax=ax, **options)

    def summary(self) -> Summary:
        """Summarize how much was explored, and warn if a random policy would have earned more.

        Examples
        --------
        >>> import bamdp
        >>> run = bamdp.simulate(bamdp.Agent.for_env("chain", seed=0), "chain", 300, seed=0)
        >>> run.summary().below_random
        False
        """
        return summarize(self.states, self.actions, self.rewards, self.n_actions)

    def to_frame(self) -> DataFrame:
        """Return a pandas DataFrame with one row per step."""
        from pandas import DataFrame  # slow to import

        steps = np.arange(len(self.rewards))
        return DataFrame(
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
        """Index of the last step of each completed (terminated or truncated) episode."""
        cut = self.terminated if self.truncated is None else self.terminated | self.truncated
        return np.flatnonzero(cut)

    @property
    def episode_returns(self) -> NDArray[np.float64]:
        """Undiscounted return of each completed episode."""
        sums = np.concatenate([[0.0], np.cumsum(self.rewards)])
        return np.diff(sums[np.concatenate([[0], self.ends + 1])])

    @property
    def success(self) -> float | None:
        """Fraction of completed episodes that reached their goal; None if undefined, see `success_share`."""
        return success_share([self])

    @property
    def total_reward(self) -> float:
        """Undiscounted sum of rewards."""
        return float(self.rewards.sum())

    @property
    def seconds(self) -> float:
        """Processor time spent on planning and learning, including compilation."""
        return float(self.step_seconds.sum())

    @property
    def ms_per_step(self) -> float:
        """Mean processor milliseconds per step, excluding the first step, which may include compilation."""
        later = self.step_seconds[1:] if len(self.step_seconds) > 1 else self.step_seconds
        return 1e3 * float(later.mean()) if len(later) else 0.0


def success_share(runs: Sequence[Run]) -> float | None:
    """Return the fraction of completed episodes that terminated, without truncation, with a positive reward.

    Return None if this does not indicate reaching a goal (positive rewards also occur earlier, or all rewards are
    costs) or if no episode was completed.
    """
    rewards = np.concatenate([run.rewards for run in runs])
    ended = np.concatenate([run.terminated for run in runs])
    n_episodes, reached = sum(len(run.ends) for run in runs), ended & (rewards > 0.0)
    only_costs = rewards.min(initial=0.0) < 0.0 and not reached.any()
    if only_costs or not n_episodes or (rewards[~ended] > 0.0).any():
        return None
    return float(reached.sum() / n_episodes)


def _columns(name: str, values: NDArray[Any]) -> dict[str, NDArray[Any]]:
    """Return one column for values [T], or one per coordinate for values [T, d]."""
    return (
        {name: values} if values.ndim == 1 else {f"{name}_{j}": values[:, j] for j in range(values.shape[1])}
    )


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
        The environment, as in :meth:`Agent.for_env`. It is reset first, and again after each terminated or truncated
        episode.
    steps
        Number of steps T; by default the environment's horizon.
    seed
        Seed of the run, from which the environment's random stream is derived: s, or (s, r) for replicate r; see
        :mod:`bamdp.seeding`. If the agent has the same seed, the run is the corresponding replicate of
        :func:`bamdp.run_many`.
    progress
        True to show a progress bar on standard error, or a function called with the number of completed steps.
    callbacks
        Functions called as ``callback(agent, env, step)`` after each step; returning False ends the run.

    Notes
    -----
    If the environment returns invalid data (a state out of range or a reward that is not a number), the error reports
    the step. The agent keeps what it has learned, and can still be saved and used.

    Code is compiled during the first step, which takes several seconds the first time on a machine; the logger
    ``bamdp`` reports this.
    """
    if not isinstance(agent, Agent) and not hasattr(agent, "system"):
        hint = "; use player.play(steps=...)" if hasattr(agent, "play") else ""
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
    rewards, ends, cuts, seconds = np.zeros(T), np.zeros(T, bool), np.zeros(T, bool), np.zeros(T)
    done = 0
    try:
        with step_bar(progress, T) as tick:
            loop = Interaction(agent, env, seed)
            while done < T:
                step = loop.step()
                _, states[done], actions[done], rewards[done], _, ends[done], cuts[done], seconds[done] = step
                done += 1
                tick(1)
                answers = [listener(agent, env, step) for listener in listeners]
                if any(answer is False for answer in answers):
                    break
                if done < T:  # no episode begins after the last step
                    loop.proceed()
    except (ValueError, TypeError, RuntimeError) as error:
        error.add_note(f"(after {done} steps; the agent keeps what it has learned from them)")
        raise
    truncated = cuts[:done] if cuts.any() else None
    parts = (states[:done], actions[:done], rewards[:done], ends[:done], seconds[:done])
    return Run(*parts, truncated, env.n_actions)
