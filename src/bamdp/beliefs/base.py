"""Priors and reward models, and what their posteriors have in common.

Priors and reward models hold parameters only. A posterior over transitions or rewards is a NamedTuple of arrays, which
kernels use through the verbs of :mod:`bamdp.beliefs.verbs`. The decorators :func:`transition_posterior` and
:func:`reward_posterior` declare on its class what it can do, so that planners need not know concrete classes, and which
of its arrays a file contains.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from functools import singledispatch
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

import bamdp.beliefs.verbs as verbs
from bamdp import _checks
from bamdp._kernels.rows import Space
from bamdp._parameters import Declared, choice, parameter
from bamdp.mdp.build import ROW_BYTES, read_space

if TYPE_CHECKING:
    from bamdp.beliefs.belief import Belief

C = TypeVar("C", bound=type)


class BeliefArrays(NamedTuple):
    """The arrays of a belief that kernels receive."""

    transitions: Any  # posterior over transitions, with the verbs from ``draw`` to ``commit``
    rewards: Any  # posterior over rewards, with the verbs from ``draw_reward`` on
    space: Space  # terminal states and existing actions


# --- declarations ---------------------------------------------------------------------------------------------


def transition_posterior(
    *,
    independent_rows: bool = False,
    changes: str | None = None,
    pools: bool = False,
    counts_transitions: bool = False,
    learned: tuple[str, ...] | None = None,
) -> Callable[[C], C]:
    """Declare what a posterior over transitions can do.

    Parameters
    ----------
    independent_rows
        A transition from (s, a) changes no other row.
    changes
        Which rows a transition from (s, a) may change, apart from weights over alternatives that all rows share:
        ``"row"`` (its own), ``"state"`` (those of s) or ``"all"`` (default: ``"row"`` if rows are independent, else
        ``"all"``).
    pools
        A committed transition changes all rows: they share parameters that are estimated from real transitions and
        treated as known during planning. ``changes`` and ``independent_rows`` then refer to pushed transitions.
    counts_transitions
        The posterior counts transitions, so that the verb ``concentration`` is defined.
    learned
        The fields that change with the data and are saved to files (default: all arrays and parts).

    If a value depends on the instance, define it in the class as a property of that name. The property ``movement`` is
    the posterior with whose means and standard deviations SBOSS measures how far a row has moved (default: itself).
    """
    changes = changes or ("row" if independent_rows else "all")
    return _declare({**locals(), "movement": property(lambda posterior: posterior)})


def reward_posterior(
    *,
    certain: bool = False,
    by_next_state: bool = True,
    independent_rows: bool = True,
    pools: bool = False,
    shares_weights: bool = False,
    n_outcomes: int | None = None,
    reward_range: tuple[float, float] = (-math.inf, math.inf),
    learned: tuple[str, ...] | None = None,
) -> Callable[[C], C]:
    """Declare what a posterior over rewards can do.

    Parameters
    ----------
    certain
        Rewards are known, so there is nothing to learn.
    by_next_state
        Rewards depend on the next state.
    independent_rows
        A pushed reward of (s, a) leaves the expected rewards of all other rows unchanged.
    pools
        A committed reward changes the expected rewards of all rows: they share parameters that are estimated from real
        rewards and treated as known during planning.
    shares_weights
        The posterior uses the transition posterior's weights over alternatives, so that rewards and transitions must
        be drawn together.
    n_outcomes
        The number of different rewards that can follow a transition, for planners that enumerate them; None if there
        are infinitely many. If it is a number, the verb ``outcome`` is defined.
    reward_range
        (lowest, highest) expected reward of any model.
    learned
        The fields that change with the data and are saved to files (default: all arrays and parts).

    If a value depends on the instance, define it in the class as a property of that name.
    """
    return _declare(locals())


def posterior_part(**declared: Any) -> Callable[[C], C]:
    """Declare ``learned`` for a part of a posterior, such as counts, that is not itself a posterior."""
    return _declare(declared)


def _declare(declared: dict[str, Any]) -> Callable[[C], C]:
    def declare(cls: C) -> C:
        for name, value in declared.items():
            if name not in vars(cls):
                setattr(cls, name, value)
        register_methods(cls, vars(verbs))
        return cls

    return declare


def register_methods(cls: type, generics: Mapping[str, Any], *defaults: Any) -> None:
    """Register a posterior's methods, and functions for those that it lacks, under the generics of the same names."""
    methods = {function.__name__: function for function in defaults} | vars(cls)
    for name, method in methods.items():
        if callable(method) and hasattr(generics.get(name), "register"):
            generics[name].register(cls)(method)


# --- operations on arrays outside kernels ---------------------------------------------------------------------


@singledispatch
def reserve(posterior: Any, depth: int) -> Any:
    """Return the posterior with undo logs that have space for ``depth`` more pushes.

    The default extends the logs of all parts (counts, cells, weights, other posteriors) and the posterior's own array
    ``log``, whose length is ``top``. Register an implementation for any other layout.
    """
    if type(posterior) is tuple:
        return tuple(reserve(part, depth) for part in posterior)
    fields = posterior._asdict() if hasattr(posterior, "_asdict") else {}
    longer_parts = {name: reserve(part, depth) for name, part in fields.items() if isinstance(part, tuple)}
    if "log" in fields and "top" in fields:
        longer_parts["log"] = longer(posterior.log, depth + int(posterior.top[0]))
    if not longer_parts and getattr(posterior, "learned", None) != ():
        raise TypeError(f"{type(posterior).__name__} has no parts and no undo log; register reserve for it")
    return posterior._replace(**longer_parts)


def longer(array: np.ndarray, size: int) -> np.ndarray:
    """Return an array with at least ``size`` rows: itself, or a copy at least twice as long, padded with 0."""
    if size <= len(array):
        return array
    grown = np.zeros((max(size, 2 * len(array)), *array.shape[1:]), array.dtype)
    grown[: len(array)] = array
    return grown


@singledispatch
def fix_zero_reward(rewards: Any, row: int) -> None:
    """Mark the reward of a row as known to be 0."""
    raise ValueError(
        f"{type(rewards).__name__} says what models pay, and does not say that beginning again pays nothing; with "
        "objective='lifetime' give a reward model or known rewards"
    )


@posterior_part(learned=("log_p", "p"))
class Weights(NamedTuple):
    """Normalised weights over alternatives with an undo log; all arrays are updated in place."""

    log_p: np.ndarray  # float64 [L]: logarithms of the weights
    p: np.ndarray  # float64 [L]: the weights themselves
    log: np.ndarray  # float64 [depth, 2, L]: logarithms and weights before each push
    top: np.ndarray  # int64 [1]


def shared_weights(posterior: Any) -> list[Weights]:
    """Return the weights over alternatives in a posterior over transitions and its parts, outermost first."""
    if isinstance(posterior, Weights):
        return [posterior]
    parts = posterior if isinstance(posterior, tuple) else ()
    return [weights for part in parts for weights in shared_weights(part)]


def learned_arrays(posterior: Any, name: str) -> dict[str, NDArray[Any]]:
    """Return the arrays that a posterior and its parts have learned, under names that start with ``name``."""
    found: dict[str, NDArray[Any]] = {}
    for field, value in _learned_fields(posterior):
        own = f"{name}.{field}"
        found |= {own: value} if isinstance(value, np.ndarray) else learned_arrays(value, own)
    return found


def with_learned_arrays(posterior: Any, name: str, arrays: Mapping[str, NDArray[Any]]) -> Any:
    """Return a new posterior with the learned ``arrays`` of another one; arrays are written in place where they fit."""
    parts = {}
    for field, value in _learned_fields(posterior):
        own = f"{name}.{field}"
        if isinstance(value, np.ndarray):
            array = fitting(value, own, arrays)
            if array.shape == value.shape:
                value[...] = array
            else:
                parts[field] = array.copy()
        else:
            parts[field] = with_learned_arrays(value, own, arrays)
    return tuple(parts.values()) if type(posterior) is tuple else posterior._replace(**parts)


def fitting(like: NDArray[Any], name: str, arrays: Mapping[str, NDArray[Any]]) -> NDArray[Any]:
    """Return the array ``name``; raise unless it is free of NaN and fits ``like``; its first axis may be longer."""
    array = np.asarray(arrays.get(name, ""))
    fits = array.dtype == like.dtype and array.ndim == like.ndim and array.shape[1:] == like.shape[1:]
    if not fits or len(array.ravel()) < like.size or np.isnan(array).any():
        raise ValueError(f"the statistics {name!r} are missing, invalid, or those of another belief")
    return array


def _learned_fields(posterior: Any) -> list[tuple[str, Any]]:
    """Return the names and values of the learned fields: those declared, or else all arrays and parts."""
    fields = getattr(posterior, "_fields", tuple(map(str, range(len(posterior)))))
    learned = getattr(posterior, "learned", None)
    return [
        (name, value)
        for name, value in zip(fields, posterior)
        if isinstance(value, (np.ndarray, tuple)) and (learned is None or name in learned)
    ]


# --- priors and reward models ---------------------------------------------------------------------------------


def bounds_parameter() -> Any:
    """Return the declaration of the parameter ``bounds``, which reward models share."""
    return parameter(
        None,
        lambda value, name: None,  # checked by RewardModel
        help="(lowest, highest) that rewards are known to lie between. Planners that need a range (BFS3, RMax) take it "
        "and refuse without; a reward outside is refused",
    )


def by_parameter(what: str) -> Any:
    """Return the declaration of the parameter ``by``, which reward models share."""
    pair, after = '``"pair"``, (s, a)', '``"next"``, (s, a, s\')'
    return choice("pair", ("pair", "next"), help=f"what has {what} of its own: {pair}, or {after}")


class RewardModel(Declared, ABC):
    """Parameters of a prior over rewards."""

    comes_with_prior: ClassVar[bool] = False  # the rewards are those of the prior's models
    bounds: Any = None  # (lowest, highest) reward, if known

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.bounds is None:
            return
        if not isinstance(self.bounds, (tuple, list)) or len(self.bounds) != 2:
            raise TypeError(f"bounds must be (lowest, highest), got {self.bounds!r}")
        low, high = (_checks.real(bound, "every bound") for bound in self.bounds)
        if not low < high:
            raise ValueError(f"bounds must be (lowest, highest), got {self.bounds}")
        object.__setattr__(self, "bounds", (low, high))

    @property
    def limits(self) -> tuple[float, float]:
        """The lowest and highest possible reward, infinite if unknown."""
        return self.bounds or (-math.inf, math.inf)

    @abstractmethod
    def posterior(self, n_states: int, n_actions: int) -> Any:
        """Return the posterior before any observation, as a NamedTuple of arrays."""

    def check(self, reward: float) -> None:
        """Raise ValueError if this model can never produce the reward."""
        low, high = self.limits
        if not low <= reward <= high:
            raise ValueError(
                f"reward {reward} is outside the bounds {low:g}..{high:g} of {type(self).__name__}; widen them"
            )

    def refusal(self, reward: float) -> str | None:
        """Return why a reward that passed :meth:`check` now has probability 0, and how to fix it, if it does."""
        return None


class Prior(Declared, ABC):
    """Parameters of a prior over transition models, compared and stored by value."""

    @abstractmethod
    def posterior(self, n_states: int, n_actions: int) -> Any:
        """Return the posterior before any observation, as a NamedTuple of arrays."""

    def rewards_of_models(
        self, n_states: int, n_actions: int, transitions: Any
    ) -> tuple[RewardModel, Any] | None:
        """Return the prior's own reward model and its posterior, if it has one (see FiniteModels)."""
        return None

    def belief(
        self,
        n_states: int,
        n_actions: int,
        *,
        rewards: RewardModel | ArrayLike | None = None,
        terminal: ArrayLike | None = None,
        action_mask: ArrayLike | None = None,
        end: int | None = None,
        objective: str = "episode",
    ) -> Belief:
        """Return the belief before any observation.

        Parameters
        ----------
        n_states, n_actions
            Number of states and number of actions.
        rewards
            A reward model, or an array of known rewards ``[S]``, ``[S, A]`` or ``[S, A, S]``. The default is the
            prior's own reward model if it has one, otherwise rewards known to be zero.
        terminal, action_mask
            Known terminal states, as a mask ``[S]`` or a list, and existing actions, as a mask ``[S, A]``, or ``[A]``
            if it is the same in all states.
        end
            Index of a state that represents the end of an episode, whatever state the environment then shows. Without
            it, a state that was entered with ``terminated`` is terminal.
        objective
            ``"episode"``: nothing follows the end of an episode. ``"lifetime"``: the next episode does; see
            :mod:`bamdp.beliefs.belief`.
        """
        from bamdp.beliefs.belief import Belief, new_episodes  # these modules import this one
        from bamdp.beliefs.rewards.known import KnownRewards

        S = _checks.integer(n_states, "n_states")
        A = _checks.integer(n_actions, "n_actions")
        _checks.memory(ROW_BYTES * S * A, f"a belief about {S} states and {A} actions")
        transitions = self.posterior(S, A)
        own = rewards is None or getattr(rewards, "comes_with_prior", False)
        from_prior = self.rewards_of_models(S, A, transitions) if own else None
        if from_prior is None:
            given = np.zeros((S, A)) if rewards is None else rewards
            model = given if isinstance(given, RewardModel) else KnownRewards(given)
            from_prior = model, model.posterior(S, A)
        model, of_rewards = from_prior
        arrays = BeliefArrays(transitions, of_rewards, self.space(S, A, terminal, action_mask))
        return Belief(self, model, arrays, new_episodes(objective, end, arrays.space.terminal))

    def space(
        self, n_states: int, n_actions: int, terminal: ArrayLike | None, action_mask: ArrayLike | None
    ) -> Space:
        """Return the known terminal states and actions; a prior may add to those in the arguments."""
        return read_space(n_states, n_actions, terminal, action_mask)
