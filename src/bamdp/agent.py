"""An agent, which is a planner at work on one belief, and the loop that lets it act in an environment."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from threading import get_ident
from time import thread_time
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bamdp import _checks, _serial
from bamdp._kernels.random import Seed, new_state
from bamdp.beliefs.base import Prior, RewardModel
from bamdp.beliefs.belief import Belief
from bamdp.beliefs.episodes import BEGIN_AGAIN
from bamdp.envs.environment import World
from bamdp.loading import restore_agent_parts
from bamdp.planners.base import Plan, Planner, Transition

BUSY = "this agent is at work in another thread; give each thread an agent of its own, such as agent.copy()"
_new_tuple: Any = tuple.__new__  # _new_tuple(Step, (...)) is Step(...) in half the time


class Agent:
    """A planner at work on one belief; it does not know which environment it is in.

    Parameters
    ----------
    planner
        The algorithm's hyper-parameters.
    prior
        What is believed about transitions before any data.
    rewards
        Known rewards (an array ``[S]``, ``[S, A]`` or ``[S, A, S]``) or a reward model.
    n_states, n_actions
        The numbers of states and actions.
    discount
        γ in [0, 1), the planning discount.
    terminal, action_mask
        Where they are known beforehand: terminal states, a mask ``[S]`` or a list of them; existing actions, a mask
        ``[S, A]``, or ``[A]`` for all states alike.
    end
        The number of a state that stands for the end of an episode, where any transition may end one whatever the
        environment shows then. Without it, a state that was entered with ``terminated`` is terminal.
    objective
        What an end is worth: ``"episode"``, nothing; ``"lifetime"``, what the next episode is worth, see
        :mod:`bamdp.beliefs.episodes`. With ``"lifetime"`` the agent must be told where episodes begin
        (:meth:`begin`).
    seed
        The seed of the agent's random stream.

    Examples
    --------
    >>> import bamdp
    >>> env = bamdp.make_env("double_loop")
    >>> agent = bamdp.Agent(bamdp.ThompsonSampling(), prior=bamdp.Dirichlet(alpha=0.1), rewards=env.rewards,
    ...                     n_states=env.n_states, n_actions=env.n_actions, discount=0.95, seed=0)
    >>> state = env.reset(seed=0)
    >>> action = agent.act(state)
    >>> next_state, reward, terminated = env.step(action)
    >>> agent.observe(state, action, reward, next_state, terminated)
    """

    def __init__(
        self,
        planner: Planner,
        *,
        prior: Prior,
        n_states: int,
        n_actions: int,
        discount: float,
        rewards: RewardModel | ArrayLike | None = None,
        terminal: ArrayLike | None = None,
        action_mask: ArrayLike | None = None,
        end: int | None = None,
        objective: str = "episode",
        seed: Seed = None,
    ) -> None:
        if not isinstance(planner, Planner):
            raise TypeError(f"planner must be a planner such as DSS(), got {planner!r}")
        if not isinstance(prior, Prior):
            raise TypeError(f"prior must be a prior such as SparseDirichlet(), got {prior!r}")
        self.planner = planner
        self.discount = _checks.discount(discount)
        self.belief = prior.belief(
            n_states,
            n_actions,
            rewards=rewards,
            terminal=terminal,
            action_mask=action_mask,
            end=end,
            objective=objective,
        )
        self.rng = new_state(seed)
        self.memory = planner.start(self.belief, self.discount)

    @classmethod
    def with_belief(cls, planner: Planner, belief: Belief, *, discount: float, seed: Seed = None) -> Agent:
        """Make an agent that begins with a belief: one that was saved, or another agent's.

        The belief is taken as it is, not copied: the agent will learn in it. Planners that keep statistics of their own
        beside the belief (Q-learning, RMax) begin those anew.
        """
        if not isinstance(planner, Planner):
            raise TypeError(f"planner must be a planner such as DSS(), got {planner!r}")
        discount = _checks.discount(discount)
        memory = planner.start(belief, discount)
        return _restored(
            planner=planner, discount=discount, belief=belief, rng=new_state(seed), memory=memory
        )

    def __repr__(self) -> str:
        return f"<Agent {self.planner} on {self.belief!r}, discount={self.discount}>"

    def act(self, state: int) -> int:
        """Return the action that the agent chooses in a state; this advances its random stream."""
        belief = self.belief
        if state.__class__ is not int or not 0 <= state < belief.n_states or belief.episodes.ends[state]:
            state = self._state(state)  # converts it, or raises
        if self.__dict__.setdefault("_thread", thread := get_ident()) != thread:
            raise RuntimeError(BUSY)
        try:
            return self.planner.act(self.memory, belief, state, self.rng)
        finally:
            self.__dict__.pop("_thread", None)

    def plan(self, state: int, *, tree: bool = False) -> Plan:
        """Return what :meth:`act` would choose now, with its evidence. Nothing changes, so it can be asked again.

        With ``tree`` the plan has the whole :class:`~bamdp.planners.views.tree.Tree` of the search, for planners that
        grow one (DSS, FHTS, both sparse samplings, BAMCP, BAUCT, BFS3); otherwise, and for the others, it is None.
        """
        with self._alone():
            memory, rng = copy_memory(self.memory), self.rng.copy()
            ask = self.planner.explain if tree else self.planner.plan
            return ask(memory, self.belief, self._state(state), rng)

    def observe(self, s: int, a: int, r: float, s2: int, terminated: bool = False) -> None:
        """Learn from a real transition. A truncated episode has not ``terminated``; say :meth:`begin` after it."""
        if self.__dict__.setdefault("_thread", thread := get_ident()) != thread:
            raise RuntimeError(BUSY)
        try:
            belief, changes = self.belief, self.belief.n_changes
            belief.observe(s, a, r, s2, terminated)
            s, a, r, s2 = int(s), int(a), float(r), int(s2)  # few bits of NumPy's would overflow in a planner
            if terminated and belief.episodes.end is not None:
                s2 = belief.episodes.end
            if belief.n_changes != changes:
                self.planner.respace(self.memory, belief)
                self._learn_starts(s2)
            self.planner.learn(self.memory, belief, _new_tuple(Transition, (s, a, r, s2, terminated)))
        finally:
            self.__dict__.pop("_thread", None)

    def begin(self, state: int) -> None:
        """Take note that an episode begins here: the first, or one after an end or a truncation."""
        state = self._state(state)
        with self._alone():
            self.belief.begin(state)
            if self.belief.episodes.again:
                for end in np.flatnonzero(self.belief.episodes.ends).tolist():
                    transition = Transition(end, BEGIN_AGAIN, 0.0, state, False)
                    self.planner.learn(self.memory, self.belief, transition)
            self.planner.begin(self.memory, self.belief, state)

    def allow(self, state: int, actions: ArrayLike) -> None:
        """Take note of which actions exist in a state, bool ``[A]``, where the environment says so on the way."""
        with self._alone():
            changes = self.belief.n_changes
            self.belief.allow(state, actions)
            if self.belief.n_changes != changes:
                self.planner.respace(self.memory, self.belief)

    def copy(self) -> Agent:
        """Return an independent agent in the same state, random stream included."""
        with self._alone():
            parts = {"belief": self.belief.copy(), "rng": self.rng.copy(), "memory": copy_memory(self.memory)}
        return _restored(planner=self.planner, discount=self.discount, **parts)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the agent to one ``.npz`` file; :meth:`load` goes on from it bit for bit."""
        with self._alone():
            _serial.save(path, self)

    @staticmethod
    def load(path: str | os.PathLike[str]) -> Agent:
        """Read an agent that :meth:`save` wrote."""
        return _serial.load(path, Agent)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Refuse two threads at a time: simulated transitions of one would be in the belief of the other."""
        outer = "_thread" in self.__dict__  # the same thread may be here already, as in a callback
        if self.__dict__.setdefault("_thread", thread := get_ident()) != thread:
            raise RuntimeError(BUSY)
        try:
            yield
        finally:
            if not outer:
                self.__dict__.pop("_thread", None)

    def _learn_starts(self, end: int) -> None:
        """Let the planner learn the starts of episodes that the belief has put into a new end state."""
        episodes = self.belief.episodes
        if episodes.again and episodes.ends[end]:
            for start in np.repeat(np.arange(len(episodes.starts)), episodes.starts).tolist():
                transition = Transition(end, BEGIN_AGAIN, 0.0, start, False)
                self.planner.learn(self.memory, self.belief, transition)

    def _state(self, state: int) -> int:
        s = _checks.index(state, "state", self.belief.n_states)
        if self.belief.episodes.ends[s]:
            raise ValueError(
                f"state {s} is terminal: there is nothing to choose; begin a new episode (if episodes go on here at "
                "other times, give the agent a state that stands for the end: end=...)"
            )
        return s


def _restored(**parts: Any) -> Agent:
    agent = Agent.__new__(Agent)
    agent.__dict__.update(parts)
    return agent


_serial.saveable(
    Agent,
    take=lambda agent: {
        name: getattr(agent, name) for name in ("planner", "discount", "belief", "rng", "memory")
    },
    make=lambda parts: _restored(**restore_agent_parts(parts)),
)


def copy_memory(memory: Any) -> Any:
    """Return an independent copy of a planner's memory (dataclasses and NamedTuples of arrays)."""
    return copy.deepcopy(memory)


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

    Attributes
    ----------
    t : int
        The number of steps observed so far.
    over : bool
        Whether the episode has ended or was truncated, so that another must begin before the next action.
    """

    def __init__(self, agent: Agent, state: int = 0) -> None:
        self.agent, self.state = agent, state
        self.t = 0
        self.over = False
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
        self.begin_at(env.reset(seed=seed), env.allowed)

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
        elif (allowed := self.env.allowed) is not None:
            self.agent.allow(self.state, allowed)


@dataclass(frozen=True, eq=False)
class Run:
    """The steps of an agent in an environment. Runs are equal if their steps are; times do not count."""

    states: NDArray[np.int64]  # [T]: the state in which each action was taken
    actions: NDArray[np.int64]  # [T]
    rewards: NDArray[np.float64]  # [T]
    terminated: NDArray[np.bool_]  # [T]
    step_seconds: NDArray[np.float64]  # [T]: processor time of planning and learning
    truncated: NDArray[np.bool_] | None = None  # [T]: where an episode was cut off; None if none was

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Run):
            return NotImplemented
        names = ("states", "actions", "rewards", "terminated", "truncated")
        return all(np.array_equal(getattr(self, name), getattr(other, name)) for name in names)

    __hash__ = None  # type: ignore[assignment]

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
        """The share of completed episodes that ended, in time, with a positive reward.

        None where there was no such episode, or nothing but costs.
        """
        ends = self.ends
        if not len(ends) or self.rewards.max() < 0.0:
            return None
        return float(np.mean(self.terminated[ends] & (self.rewards[ends] > 0.0)))

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


Callback = Callable[[Agent, Any, Step], Any]


def simulate(
    agent: Agent,
    env: World,
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
        The environment. It is reset; an episode that has ended or was cut off is followed by the next.
    steps
        Number of steps T; by default the environment's horizon.
    seed
        The seed of the environment's random stream, which is not the agent's.
    progress
        True for a progress bar on standard error, or a function called with the number of steps just done.
    callbacks
        Called as ``callback(agent, env, step)`` after each step; returning False ends the run there.

    Notes
    -----
    If the environment does something impossible (a state out of range, a reward that is not a number), the error says
    how far the run came. The agent keeps all that it has learned: it can be saved, and go on.
    """
    T = env.horizon if steps is None else _checks.integer(steps, "steps", low=0)
    if (env.n_states, env.n_actions) != (agent.belief.n_states, agent.belief.n_actions):
        raise ValueError(
            f"the environment has {env.n_states} states and {env.n_actions} actions, the agent was made for "
            f"{agent.belief.n_states} and {agent.belief.n_actions}"
        )
    listeners = tuple(callbacks)
    states, actions = np.zeros(T, np.int64), np.zeros(T, np.int64)
    rewards, ends, cuts = np.zeros(T), np.zeros(T, bool), np.zeros(T, bool)
    seconds = np.zeros(T)
    loop: WorldInteraction | None = None
    with _Progress(progress, T) as tick, _step_count_in_errors(lambda: loop.t if loop else 0):
        loop = WorldInteraction(agent, env, seed)
        for t in range(T):
            step = loop.step()
            _, states[t], actions[t], rewards[t], _, ends[t], cuts[t], seconds[t] = step
            if tick is not None:
                tick(1)
            if listeners and any([listener(agent, env, step) is False for listener in listeners]):
                break
            if t + 1 < T:  # nothing begins after the last step
                loop.proceed()
    done = loop.t
    truncated = cuts[:done] if cuts.any() else None
    return Run(states[:done], actions[:done], rewards[:done], ends[:done], seconds[:done], truncated)


@contextmanager
def _step_count_in_errors(steps_done: Callable[[], int]) -> Iterator[None]:
    """Add a note to errors that says how many steps were taken before."""
    try:
        yield
    except (ValueError, TypeError, RuntimeError) as error:
        error.add_note(f"(after {steps_done()} steps; the agent keeps what it has learned from them)")
        raise


class _Progress:
    """A progress bar, a caller's function, or nothing; as a context manager it returns the function to call."""

    def __init__(self, progress: bool | Callable[[int], None], total: int) -> None:
        self.progress, self.total = progress, total
        self.bar: Any = None

    def __enter__(self) -> Callable[[int], Any] | None:
        if callable(self.progress):
            return self.progress
        if not self.progress:
            return None
        from rich.console import Console
        from rich.progress import Progress

        self.bar = Progress(console=Console(stderr=True), transient=True)
        self.bar.start()
        task = self.bar.add_task("steps", total=self.total)
        return lambda n: self.bar.advance(task, n)

    def __exit__(self, *error: object) -> None:
        if self.bar is not None:
            self.bar.stop()
