"""The agent, which applies a planner to a belief."""

from __future__ import annotations

import copy
import os
from collections.abc import Iterable, Mapping
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bamdp import _checks, _files
from bamdp._kernels.random import as_rng
from bamdp.advice import Check, Experience, check_fit, exploring_value
from bamdp.beliefs.base import Prior, RewardModel
from bamdp.beliefs.belief import BEGIN_AGAIN, Belief
from bamdp.envs.registry import make_world
from bamdp.mdp.model import FiniteMDP
from bamdp.mdp.solvers import value_iteration
from bamdp.planners.base import Plan, Planner, Transition, auto_reach, horizon_discount
from bamdp.registry import DEFAULT_PLANNER, label, make_planner, make_prior, make_rewards
from bamdp.seeding import AGENT, Seed, stream_seed

_FOR_ENV = ("env", "planner", "prior", "rewards", "discount", "horizon", "objective", "seed")


class Agent:
    """A planner applied to one belief, independent of any environment.

    Use :meth:`for_env` to create one from the information that an environment provides.

    Parameters
    ----------
    planner
        The planner, as an object or as text in command-line syntax: ``"dss-pi:n_steps=30"``.
    prior
        The prior over transitions, as an object or text such as ``"sparse:beta=6"``.
    rewards
        Known rewards (an array ``[S]``, ``[S, A]`` or ``[S, A, S]``), a reward model, or text such as ``"normal"``.
    n_states, n_actions
        The numbers of states and actions.
    discount
        γ in [0, 1), the planning discount. With a horizon, ``"horizon"`` (the same as None) or ``"auto"``.
    horizon
        The number of steps T, instead of a discount. The agent then maximises the total over the remaining steps
        (``steps_left``); after the last step the count restarts at T. With τ steps left, it plans with the discount
        1 − 1/τ, which corresponds to stopping at each step with probability 1/τ, or after τ steps on average. As in the
        undiscounted total, a policy's long-run average reward then counts τ times and its transient reward once.
        With ``discount="auto"``, it plans for min(τ, max(100, 10 T/(S·A))) steps instead, since long planning horizons
        help less when there are few data per state–action pair (Jiang, Kulesza, Singh & Lewis, AAMAS 2015).
    terminal, action_mask
        Terminal states (a mask ``[S]`` or a list) and existing actions (a mask ``[S, A]``, or ``[A]`` for all states),
        if known in advance.
    end
        Index of an artificial state that represents the end of an episode, for environments in which any transition may
        end one. Without it, a state entered with ``terminated`` is treated as terminal.
    objective
        The value of the end of an episode: zero for ``"episode"``, the value of the next episode for ``"lifetime"``
        (see :mod:`bamdp.beliefs.belief`). With ``"lifetime"``, call :meth:`begin` at the start of each episode.
    seed
        Seed of the run, from which the agent's random stream is derived: s, or (s, r) for replicate r; see
        :mod:`bamdp.seeding`.

    Agents are not thread-safe, because planning temporarily adds simulated transitions to the belief. Give each thread
    its own agent, for example with :meth:`copy`.

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
        self.belief = make_prior(prior, n_states=S).belief(
            S,
            A,
            rewards=make_rewards(rewards) if isinstance(rewards, str) else rewards,
            terminal=terminal,
            action_mask=action_mask,
            end=end,
            objective=objective,
        )
        self._start(discount, horizon, seed)

    def _start(self, discount: float | str | None, horizon: int | None, seed: Seed) -> None:
        """Initialise the random stream and the planner's memory for a discount or a horizon."""
        self._fresh = self.belief.copy()
        self.history: list[Experience] = []  # transitions since the agent was created or loaded
        goal = _checks.HORIZON if discount is None else _checks.planning_discount(discount)
        if isinstance(goal, str) != (horizon is not None):
            raise TypeError(
                "give either a discount or a horizon, the number of steps of the agent's life "
                f"(discount={discount!r}, horizon={horizon!r})"
            )
        self.horizon = self.steps_left = None if horizon is None else _checks.integer(horizon, "horizon")
        self.reach: int | None = None
        if self.steps_left is None:
            self.discount = float(goal)
        else:
            if goal == _checks.AUTO:
                self.reach = auto_reach(self.steps_left, self.belief.n_states, self.belief.n_actions)
            self.discount = horizon_discount(self.steps_left, self.reach)
        self.rng = as_rng(stream_seed(seed, AGENT))
        self.memory = self.planner.start(self.belief, self.discount)
        if self.steps_left is not None:
            self.planner.set_discount(self.memory, self.discount)  # may not support horizons

    @classmethod
    def for_env(
        cls,
        env: Any,
        planner: Planner | str | None = None,
        *,
        prior: Prior | str | None = None,
        rewards: RewardModel | ArrayLike | str | None = None,
        discount: float | str | None = None,
        horizon: int | None = None,
        objective: str = "episode",
        seed: Seed = None,
        **continuous: Any,
    ) -> Agent:
        """Create an agent for an environment, using its size and any prior knowledge that it provides.

        Parameters
        ----------
        env
            An environment from this library or its name, or a Gymnasium environment, wrapped or not.
            :func:`bamdp.make_world` and :func:`simulate` accept the same values.
        planner
            The planner, as an object such as ``DSS()`` or as text in command-line syntax. The default is
            :class:`~bamdp.Optimism`, or :class:`bamdp.continuous.Thompson` if observations are continuous.
        prior
            The prior over transitions, as an object or text; by default the planner's ``default_prior``.
        rewards
            A reward model, an array of known rewards, or text. By default, the agent knows the environment's rewards if
            they are deterministic and learns them otherwise.
        discount, horizon
            γ in [0, 1), the planning discount; ``"horizon"``, to maximise the total over the horizon; or ``"auto"``,
            which also limits the planning horizon by the amount of data. The discount defaults to the planner's
            ``default_discount``, or to ``"horizon"`` if only a horizon is given. The horizon defaults to the
            environment's if the discount requires one.
        objective
            The value of the end of an episode: zero for ``"episode"``, the value of the next episode for
            ``"lifetime"``.
        seed
            Seed of the agent's random stream.
        **continuous
            Additional arguments for continuous observations (a ``Box`` that is not discretised): ``reward=`` and
            ``terminated=``, functions of (obs, action, next_obs), and ``angles=``. The agent is then a
            :class:`bamdp.continuous.ContinuousAgent` and uses the planners and priors of :mod:`bamdp.continuous`.

        Examples
        --------
        >>> import bamdp
        >>> env = bamdp.make_env("grid5")
        >>> agent = bamdp.Agent.for_env(env, "dss-pi:n_steps=25", prior="sparse:beta=6", seed=0)
        >>> run = bamdp.simulate(agent, env, steps=100, seed=0)
        """
        world = make_world(env)
        planner = planner or world.usual_planner or DEFAULT_PLANNER
        if world.system is not None:
            return _continuous_agent(
                world, planner, prior, rewards, discount, horizon=horizon, seed=seed, **continuous
            )
        for name in continuous:  # valid only for continuous observations, or misspelt
            _checks.one_of(name, "argument of Agent.for_env", _FOR_ENV)
        made = make_planner(planner)
        if discount is None and (horizon is None or isinstance(made.default_discount, str)):
            discount = made.default_discount
        if isinstance(discount, str) and horizon is None:
            horizon = world.horizon
        return cls(
            made,
            prior=make_prior(made.default_prior if prior is None else prior, world),
            rewards=make_rewards(rewards, world),
            n_states=world.n_states,
            n_actions=world.n_actions,
            discount=discount,
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
        """Create an agent from an existing belief, such as a saved one or another agent's.

        The belief is not copied; the agent updates it in place. Planners that keep separate statistics (Q-learning,
        RMax) start with empty ones.
        """
        agent = _restored(planner=make_planner(planner), belief=belief)
        agent._start(discount, horizon, seed)
        return agent

    def __repr__(self) -> str:
        left = self.steps_left
        plans_for = f"discount={self.discount}" if left is None else f"{left} steps left"
        return f"<Agent {self.planner} on {self.belief!r}, {plans_for}>"

    def act(self, state: int) -> int:
        """Choose an action in a state; this advances the agent's random stream."""
        planner = self.planner
        return int(planner.act(self.memory, self.belief, self._state(state), planner.random(self.rng)))

    def plan(self, state: int, *, tree: bool = False) -> Plan:
        """Return the decision that :meth:`act` would make, with supporting evidence, without changing the agent.

        With ``tree=True``, the plan of a tree-search planner (DSS, FHTS, both variants of sparse sampling, BAMCP,
        BAUCT, BFS3) includes the full search :class:`~bamdp.planners.tree.Tree`. In all other cases ``tree`` is None.
        """
        memory, rng = copy.deepcopy(self.memory), self.rng.copy()
        ask = self.planner.explain if tree else self.planner.plan
        return ask(memory, self.belief, self._state(state), self.planner.random(rng))

    def observe(self, s: int, a: int, r: float, s2: int, terminated: bool = False) -> None:
        """Learn from a real transition. Truncation does not count as ``terminated``; call :meth:`begin` after it."""
        self._learn(s, a, r, s2, terminated)
        if self.horizon is not None and self.steps_left is not None:
            left = self.steps_left = self.steps_left - 1 or self.horizon
            self.discount = horizon_discount(left, self.reach)
            self.planner.set_discount(self.memory, self.discount)

    def _learn(self, s: int, a: int, r: float, s2: int, terminated: bool) -> None:
        belief, changes = self.belief, self.belief.n_changes
        belief.observe(s, a, r, s2, terminated)
        s, a, r, s2 = int(s), int(a), float(r), int(s2)  # narrow NumPy integers could overflow in a planner
        self.history.append((s, a, r, s2, bool(terminated)))
        if terminated and belief.episodes.end is not None:
            s2 = belief.episodes.end
        if belief.n_changes != changes:
            self.planner.on_space_changed(self.memory, belief)
            if belief.episodes.restarts and belief.episodes.ends[s2]:  # known starts may follow the new end
                starts = belief.episodes.starts
                self._learn_starts([s2], np.repeat(np.arange(len(starts)), starts))
        self.planner.learn(self.memory, belief, Transition(s, a, r, s2, terminated))

    def observe_many(self, frame: Any, *columns: ArrayLike) -> None:
        """Learn from recorded transitions; if any is invalid, none are learned.

        Recorded transitions are treated as prior data and do not count towards the horizon.

        Parameters
        ----------
        frame
            A pandas DataFrame or a dictionary of arrays with the columns ``state``, ``action``, ``reward``,
            ``next_state`` and optionally ``terminated``. Alternatively, the arrays themselves as separate arguments in
            this order.

        Examples
        --------
        >>> import bamdp
        >>> agent = bamdp.Agent("adaptive-dss", prior="hierarchical", rewards="hierarchical", n_states=2, n_actions=2,
        ...                     discount=0.9)
        >>> agent.observe_many({"state": [0, 0, 1], "action": [0, 1, 1], "reward": [0.0, 1.0, 5.0],
        ...                     "next_state": [0, 1, 1]})
        >>> agent.policy()
        array([1, 1])
        """
        names = ("state", "action", "reward", "next_state", "terminated")
        if not columns:
            missing = [name for name in names[:4] if name not in frame]
            if missing:
                raise ValueError(f"the log has no column {missing[0]!r}; it needs {', '.join(names[:4])}")
            frame, *columns = (frame[name] for name in names if name in frame)  # type: ignore[assignment]
        table = [np.asarray(column) for column in (frame, *columns)]
        if len(table) == 4:
            table.append(np.zeros(table[0].shape, bool))
        if len(table) != 5 or {column.shape for column in table} != {(len(table[0]),)}:
            raise ValueError("a log is four or five columns of one length: " + ", ".join(names))
        before = self.copy()
        for i, (s, a, r, s2, ended) in enumerate(zip(*(column.tolist() for column in table))):
            try:
                self._learn(s, a, r, s2, bool(ended))
            except (TypeError, ValueError) as error:
                vars(self).update(vars(before))
                raise type(error)(f"transition {i}: {error}") from None

    def forget(self, keep: int) -> None:
        """Forget all but the last ``keep`` transitions, for drifting systems; exact for every prior and planner.

        Knowledge from before the agent was created or loaded is kept. Episode starts observed since then are forgotten,
        which only affects the "lifetime" objective.

        Examples
        --------
        >>> import bamdp
        >>> agent = bamdp.Agent("thompson", prior="flat", n_states=2, n_actions=1, discount=0.9)
        >>> for next_state in (0, 0, 1, 1):
        ...     agent.observe(0, 0, 0.0, next_state)
        >>> agent.forget(keep=2)
        >>> agent.belief.predictive(0, 0).round(2)
        array([0.17, 0.83])
        """
        recent = self.history[len(self.history) - _checks.integer(keep, "keep", low=0) :] if keep else []
        self.belief, self.history = self._fresh.copy(), []
        self.memory = self.planner.start(self.belief, self.discount)
        for step in recent:
            self._learn(*step)

    # --- learned quantities ---------------------------------------------------------------------------------------

    def mean_model(self) -> FiniteMDP:
        """Return the posterior mean model: predictive probabilities and expected rewards."""
        return self.belief.mean()

    def q_values(self) -> NDArray[np.float64]:
        """Return Q(s, a) of the mean model at the agent's discount, [S, A]; −inf for actions that do not exist."""
        return value_iteration(self.mean_model(), self.discount).q_values

    def policy(self) -> NDArray[np.int64]:
        """Return the optimal policy of the mean model, [S], which ignores the value of further learning.

        :meth:`act` may choose other actions in order to learn. In terminal states the policy is -1.
        """
        policy = value_iteration(self.mean_model(), self.discount).policy.astype(np.int64)
        policy[self.belief.space.terminal] = -1
        return policy

    def check(self) -> Check:
        """Check whether the prior fits the observed data, using posterior predictive replicates (:mod:`bamdp.advice`).

        Examples
        --------
        >>> import bamdp
        >>> agent = bamdp.Agent("thompson", prior="flat", n_states=2, n_actions=1, discount=0.9)
        >>> for t in range(80):
        ...     agent.observe(0, 0, 0.0, int(t >= 40))
        >>> print(agent.check())
        The prior does not fit: what follows a state and action changes over time; forget old data (agent.forget) or add what has changed to the state.
        """  # noqa: E501
        return check_fit(self.belief, self._fresh, self.history)

    def value_of_exploring(self, state: int) -> float:
        """Return the value of one exploratory step in ``state`` relative to acting greedily, in units of reward.

        It is 0 if no single step yields information worth its cost. Several steps may still be worthwhile together
        (:mod:`bamdp.advice`).

        Examples
        --------
        >>> import bamdp
        >>> agent = bamdp.Agent("thompson", prior="flat", rewards="beta", n_states=1, n_actions=2, discount=0.9)
        >>> for reward in (1.0, 0.0, 1.0, 0.0):
        ...     agent.observe(0, 0, reward, 0)
        >>> agent.value_of_exploring(0) > 0.1  # the other action may pay more
        True
        """
        return exploring_value(self.belief, self.discount, self._state(state))

    def begin(self, state: int) -> None:
        """Record the start of an episode, either the first or one after an end or truncation."""
        state = self._state(state)
        self.belief.begin(state)
        if self.belief.episodes.restarts:
            self._learn_starts(np.flatnonzero(self.belief.episodes.ends), [state])
        self.planner.begin(self.memory, self.belief, state)

    def allow(self, state: int, actions: ArrayLike) -> None:
        """Record which actions exist in a state, bool ``[A]``, if the environment reveals this during a run."""
        changes = self.belief.n_changes
        self.belief.allow(state, actions)
        if self.belief.n_changes != changes:
            self.planner.on_space_changed(self.memory, self.belief)

    def copy(self) -> Agent:
        """Return an independent copy of the agent, including its random stream."""
        own = {"belief": self.belief.copy(), "memory": copy.deepcopy(self.memory)}
        return _restored(**{**vars(self), **own, "rng": self.rng.copy(), "history": self.history.copy()})

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save the agent to an ``.npz`` file: its belief, random stream and planner memory."""
        _files.write(path, "an agent", self.content())

    @staticmethod
    def load(path: str | os.PathLike[str]) -> Agent:
        """Load an agent saved by :meth:`save`."""
        return _files.read(path, "an agent", Agent.from_content)

    def content(self) -> dict[str, Any]:
        """Return the agent's saved form as plain data and dataclasses."""
        names = ("planner", "discount", "horizon", "steps_left", "reach", "rng")
        content = {name: getattr(self, name) for name in names}
        return content | {"belief": self.belief.content(), "learned": self.planner.learned(self.memory)}

    @staticmethod
    def from_content(content: Mapping[str, Any]) -> Agent:
        """Restore an agent from the data returned by :meth:`content`."""
        if "system" in content:
            from bamdp.continuous.agent import ContinuousAgent  # imported only when needed

            return ContinuousAgent.from_content(content)  # type: ignore[return-value]
        planner, belief = content["planner"], Belief.from_content(content["belief"])
        memory = planner.start(belief, _checks.discount(content["discount"]))
        planner.relearn(memory, belief, content["learned"])
        parts = {**content, "belief": belief, "memory": memory, "_fresh": belief.copy(), "history": []}
        del parts["learned"]
        return _restored(**parts)

    def _learn_starts(self, ends: Iterable[int], starts: Iterable[int]) -> None:
        """Tell the planner that episodes began in each of ``starts`` after each of ``ends``."""
        for end, start in product(map(int, ends), map(int, starts)):
            self.planner.learn(self.memory, self.belief, Transition(end, BEGIN_AGAIN, 0.0, start, False))

    def _state(self, state: int) -> int:
        s = _checks.index(state, "state", self.belief.n_states)
        if self.belief.episodes.ends[s]:
            raise ValueError(
                f"state {s} is terminal; begin a new episode, or, if an episode can also continue in this state, give "
                "the agent an artificial end state (end=...)"
            )
        return s


def _continuous_agent(
    world: Any, planner: Any, prior: Any, rewards: Any, discount: Any, **options: Any
) -> Any:
    """Create the agent for continuous observations; ``discount`` may also be ``"horizon"``."""
    from bamdp.continuous.agent import ContinuousAgent  # imported only when needed

    if isinstance(discount, str):
        options["horizon"], discount = options.get("horizon") or world.horizon, None
    if rewards is not None:
        options = {**world.facts(rewards), **options}
    return ContinuousAgent.for_env(world.env, planner, prior=prior, discount=discount, **options)


def _restored(**parts: Any) -> Agent:
    agent = Agent.__new__(Agent)
    agent.__dict__.update(parts)
    return agent
