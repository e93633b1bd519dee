"""An agent, which is a planner at work on one belief, and the loop that lets it act in an environment."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import product
from threading import get_ident
from time import thread_time
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bamdp import _checks, _files
from bamdp._kernels.random import Seed, new_state
from bamdp._progress import step_bar
from bamdp.beliefs.base import Prior, RewardModel
from bamdp.beliefs.belief import Belief
from bamdp.beliefs.episodes import BEGIN_AGAIN
from bamdp.envs.environment import World
from bamdp.envs.registry import make_world
from bamdp.planners.base import Plan, Planner, Transition, auto_reach, horizon_discount
from bamdp.registry import (
    DEFAULT_PLANNER,
    check_fits,
    label,
    make_planner,
    make_prior,
    make_rewards,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from pandas import DataFrame

DISCOUNT_WITHOUT_HORIZON = 0.99  # of planners that would rather be told the horizon
BUSY = "this agent is at work in another thread; give each thread an agent of its own, such as agent.copy()"
_new_tuple: Any = tuple.__new__  # _new_tuple(Step, (...)) is Step(...) in half the time


class Agent:
    """A planner at work on one belief; it does not know which environment it is in.

    :meth:`for_env` makes one with all that an environment tells of itself.

    Parameters
    ----------
    planner
        The algorithm's hyper-parameters; or text, as on the command line: ``"dss-pi:n_steps=30"``.
    prior
        What is believed about transitions before any data; or text, such as ``"sparse:beta=6"``.
    rewards
        Known rewards (an array ``[S]``, ``[S, A]`` or ``[S, A, S]``) or a reward model; or text, such as ``"normal"``.
    n_states, n_actions
        The numbers of states and actions.
    discount
        γ in [0, 1), the planning discount; or ``"auto"``, with a horizon.
    horizon
        Instead of a discount: how many steps there are. The agent then plans for the total of those that are left, see
        :attr:`steps_left`. With τ of them left it plans with the discount 1 − 1/τ, as for a life that ends at each step
        with probability 1/τ and so lasts τ steps on average: what a policy earns in the long run counts τ
        times, what it earns on the way there once, as in the total itself. With ``discount="auto"`` it plans
        for min(τ, max(100, 10 T/(S·A))) steps instead, T being the horizon: the fewer data there are for each pair
        of state and action, the less can be made of a long view (Jiang, Kulesza, Singh & Lewis, AAMAS 2015).
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
        planner: Planner | str,
        *,
        prior: Prior | str,
        n_states: int,
        n_actions: int,
        discount: float | str | None = None,
        horizon: int | None = None,
        rewards: RewardModel | ArrayLike | str | None = None,
        terminal: ArrayLike | None = None,
        action_mask: ArrayLike | None = None,
        end: int | None = None,
        objective: str = "episode",
        seed: Seed = None,
    ) -> None:
        self.planner = make_planner(planner)
        S, A = _checks.integer(n_states, "n_states"), _checks.integer(n_actions, "n_actions")
        size = self.planner.cost(S, A, 0.95).bytes
        _checks.memory(size, f"an agent of {label(self.planner)} for {S} states and {A} actions")
        self.belief = make_prior(prior, n_states=n_states).belief(
            n_states,
            n_actions,
            rewards=make_rewards(rewards) if isinstance(rewards, str) else rewards,
            terminal=terminal,
            action_mask=action_mask,
            end=end,
            objective=objective,
        )
        self._start(discount, horizon, seed)

    def _start(self, discount: float | str | None, horizon: int | None, seed: Seed) -> None:
        """Begin the random stream and the planner's memory, for a discount or for the steps of a horizon."""
        auto = discount == _checks.AUTO
        if auto and horizon is None:
            raise TypeError("discount='auto' needs a horizon, the number of steps that the agent will act")
        if not auto and (discount is None) == (horizon is None):
            raise TypeError(
                "give either a discount or a horizon, the number of steps that the agent will act"
            )
        self.steps_left: int | None = None if horizon is None else _checks.integer(horizon, "horizon")
        self.reach: int | None = None
        if self.steps_left is None:
            self.discount = _checks.discount(discount)
        else:
            if auto:
                self.reach = auto_reach(self.steps_left, self.belief.n_states, self.belief.n_actions)
            self.discount = horizon_discount(self.steps_left, self.reach)
        self.rng = new_state(seed)
        self.memory = self.planner.start(self.belief, self.discount)
        if self.steps_left is not None:
            self.planner.set_discount(self.memory, self.discount)  # refuses what cannot plan for a horizon

    @classmethod
    def for_env(
        cls,
        env: Any,
        planner: Planner | str = DEFAULT_PLANNER,
        *,
        prior: Prior | str | None = None,
        rewards: RewardModel | ArrayLike | str | None = None,
        discount: float | str | None = None,
        horizon: int | None = None,
        objective: str = "episode",
        seed: Seed = None,
    ) -> Agent:
        """Make an agent for an environment: with its numbers of states and actions, and what it tells beforehand.

        Parameters
        ----------
        env
            An environment of this library, or its name; or one of Gymnasium, wrapped or not. Whatever
            :func:`bamdp.make_world` takes. :func:`simulate` takes the same.
        planner
            The algorithm: an object such as ``DSS()``, or text, as on the command line; by default
            :class:`~bamdp.AdaptiveDSS`.
        prior
            What is believed about transitions: an object or text; by default what the planner was made for
            (``planner.default_prior``): few outcomes for each action.
        rewards
            A reward model, an array of rewards that are known, or text. By default the environment's own are known to
            the agent where they are certain, and are learned otherwise.
        discount, horizon
            γ in [0, 1), the planning discount; or the number of steps, to plan for their total, with
            ``discount="auto"`` no further ahead than there are data to learn from. Without a discount it is what the
            planner was made for: for :class:`~bamdp.AdaptiveDSS` ``"auto"`` with a horizon and 0.99 without, for
            others all of the horizon and 0.95.
        objective
            What an end is worth: ``"episode"``, nothing; ``"lifetime"``, what the next episode is worth.
        seed
            The seed of the agent's random stream.

        Examples
        --------
        >>> import bamdp
        >>> env = bamdp.make_env("grid5")
        >>> agent = bamdp.Agent.for_env(env, "dss-pi:n_steps=25", prior="sparse:beta=6", seed=0)
        >>> run = bamdp.simulate(agent, env, steps=100, seed=0)
        """
        world = make_world(env)
        made = make_planner(planner)
        check_fits(made, world)
        return cls(
            made,
            prior=make_prior(made.default_prior if prior is None else prior, world),
            rewards=make_rewards(rewards, world),
            n_states=world.n_states,
            n_actions=world.n_actions,
            discount=_default_discount(made, horizon) if discount is None else discount,
            horizon=horizon,
            objective=objective,
            seed=seed,
            **world.knowledge,
        )

    @classmethod
    def with_belief(
        cls,
        planner: Planner | str,
        belief: Belief,
        *,
        discount: float | str | None = None,
        horizon: int | None = None,
        seed: Seed = None,
    ) -> Agent:
        """Make an agent that begins with a belief: one that was saved, or another agent's.

        The belief is taken as it is, not copied: the agent will learn in it. Planners that keep statistics of their own
        beside the belief (Q-learning, RMax) begin those anew.
        """
        agent = _restored(planner=make_planner(planner), belief=belief)
        agent._start(discount, horizon, seed)
        return agent

    def __repr__(self) -> str:
        left = self.steps_left
        plans_for = f"discount={self.discount}" if left is None else f"{left} steps left"
        return f"<Agent {self.planner} on {self.belief!r}, {plans_for}>"

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
            memory, rng = copy.deepcopy(self.memory), self.rng.copy()
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
                self.planner.on_space_changed(self.memory, belief)
                if belief.episodes.again and belief.episodes.ends[s2]:  # a new end, which all starts follow
                    starts = belief.episodes.starts
                    self._learn_starts([s2], np.repeat(np.arange(len(starts)), starts))
            self.planner.learn(self.memory, belief, _new_tuple(Transition, (s, a, r, s2, terminated)))
            if self.steps_left is not None:
                self._count_down()
        finally:
            self.__dict__.pop("_thread", None)

    def _count_down(self) -> None:
        """Plan for one step less; the last step is planned for as often as there are more."""
        self.steps_left = max(1, (self.steps_left or 1) - 1)
        self.discount = horizon_discount(self.steps_left, self.reach)
        self.planner.set_discount(self.memory, self.discount)

    def begin(self, state: int) -> None:
        """Take note that an episode begins here: the first, or one after an end or a truncation."""
        state = self._state(state)
        with self._alone():
            self.belief.begin(state)
            if self.belief.episodes.again:
                self._learn_starts(np.flatnonzero(self.belief.episodes.ends), [state])
            self.planner.begin(self.memory, self.belief, state)

    def allow(self, state: int, actions: ArrayLike) -> None:
        """Take note of which actions exist in a state, bool ``[A]``, where the environment says so on the way."""
        with self._alone():
            changes = self.belief.n_changes
            self.belief.allow(state, actions)
            if self.belief.n_changes != changes:
                self.planner.on_space_changed(self.memory, self.belief)

    def copy(self) -> Agent:
        """Return an independent agent in the same state, random stream included."""
        with self._alone():
            own = {"belief": self.belief.copy(), "rng": self.rng.copy(), "memory": copy.deepcopy(self.memory)}
            parts = {name: part for name, part in vars(self).items() if name != "_thread"}
            return _restored(**(parts | own))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the agent to one ``.npz`` file: its belief, random stream, and what its planner has learned."""
        with self._alone():
            _files.write(path, "an agent", self.content())

    @staticmethod
    def load(path: str | os.PathLike[str]) -> Agent:
        """Read an agent that :meth:`save` wrote."""
        return _files.read(path, "an agent", Agent.from_content)

    def content(self) -> dict[str, Any]:
        """Return what a file says of the agent, plain data and dataclasses."""
        return {
            "planner": self.planner,
            "belief": self.belief.content(),
            "discount": self.discount,
            "steps_left": self.steps_left,
            "reach": self.reach,
            "rng": self.rng,
            "learned": self.planner.learned(self.memory),
        }

    @staticmethod
    def from_content(content: Mapping[str, Any]) -> Agent:
        """Return the agent of which :meth:`content` said this."""
        planner, belief = content["planner"], Belief.from_content(content["belief"])
        discount, rng = _checks.discount(content["discount"]), content["rng"]
        if not isinstance(planner, Planner) or rng.shape != (4,) or rng.dtype != np.uint64 or not rng.any():
            raise ValueError("its planner or its random state is damaged")
        memory = planner.start(belief, discount)
        planner.relearn(memory, belief, content["learned"])
        parts = {name: content[name] for name in ("steps_left", "reach")}
        return _restored(planner=planner, belief=belief, discount=discount, rng=rng, memory=memory, **parts)

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

    def _learn_starts(self, ends: Iterable[int], starts: Iterable[int]) -> None:
        """Let the planner learn that episodes began in each of ``starts`` after each of ``ends``."""
        for end, start in product(map(int, ends), map(int, starts)):
            self.planner.learn(self.memory, self.belief, Transition(end, BEGIN_AGAIN, 0.0, start, False))

    def _state(self, state: int) -> int:
        s = _checks.index(state, "state", self.belief.n_states)
        if self.belief.episodes.ends[s]:
            raise ValueError(
                f"state {s} is terminal: there is nothing to choose; begin a new episode (if episodes go on here at "
                "other times, give the agent a state that stands for the end: end=...)"
            )
        return s


def _default_discount(planner: Planner, horizon: int | None) -> float | str | None:
    """Return what a planner plans for if it is not told: None stands for the whole horizon."""
    default = planner.default_discount
    if horizon is None:
        return DISCOUNT_WITHOUT_HORIZON if isinstance(default, str) else default
    return default if isinstance(default, str) else None


def _restored(**parts: Any) -> Agent:
    agent = Agent.__new__(Agent)
    agent.__dict__.update(parts)
    return agent


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
        else:
            self.allow(self.env.allowed)


@dataclass(frozen=True, eq=False)
class Run:
    """The steps of an agent in an environment. Runs are equal if their steps are; times do not count."""

    states: NDArray[np.int64]  # [T]: the state in which each action was taken
    actions: NDArray[np.int64]  # [T]
    rewards: NDArray[np.float64]  # [T]
    terminated: NDArray[np.bool_]  # [T]
    step_seconds: NDArray[np.float64]  # [T]: processor time of planning and learning
    truncated: NDArray[np.bool_] | None = None  # [T]: where an episode was cut off; None if none was

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

    def to_frame(self) -> DataFrame:
        """Return a pandas DataFrame with a row for each step; pandas must be installed."""
        steps = np.arange(len(self.rewards))
        return new_frame(
            {
                "step": steps,
                "episode": np.searchsorted(self.ends, steps),
                "state": self.states,
                "action": self.actions,
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
        """The share of completed episodes that ended, in time, with a positive reward.

        None where there was no such episode, nothing but costs, or where every step pays the same.
        """
        ends = self.ends
        if not len(ends) or self.rewards.max() < 0.0 or self.rewards.min() == self.rewards.max() > 0.0:
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


def new_frame(columns: Mapping[str, Any]) -> DataFrame:
    """Return a pandas DataFrame; pandas, which nothing else here needs, must be installed."""
    try:
        from pandas import DataFrame
    except ImportError:
        raise ImportError("to_frame needs pandas, which is not installed: pip install pandas") from None
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
        The seed of the environment's random stream, which is not the agent's.
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
    if not isinstance(agent, Agent):
        hint = "; a GymAgent plays by itself: player.play(steps=...)" if hasattr(agent, "play") else ""
        raise TypeError(f"simulate(agent, env, ...) takes an Agent first, got {type(agent).__name__}{hint}")
    env = make_world(env)
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
    try:
        with step_bar(progress, T) as tick:
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
    except (ValueError, TypeError, RuntimeError) as error:
        done = loop.t if loop else 0
        error.add_note(f"(after {done} steps; the agent keeps what it has learned from them)")
        raise
    done = loop.t
    truncated = cuts[:done] if cuts.any() else None
    return Run(states[:done], actions[:done], rewards[:done], ends[:done], seconds[:done], truncated)
