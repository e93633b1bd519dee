"""A mutable posterior over models, and what it learns about episodes.

A :class:`Belief` holds a posterior over transitions and one over rewards, both NamedTuples of arrays that kernels
understand (see :mod:`bamdp.beliefs.verbs`), and the space: which states are terminal and which actions exist. Together
they form its ``arrays``, the single argument that passes a belief to a kernel. Planners call kernels through
:meth:`Belief.run`.

**The objective** determines what follows the end of an episode.

- ``"episode"``: nothing. A state in which an episode ends is terminal and has value 0.
- ``"lifetime"``: the next episode, so that learning in this one pays off later. A state in which an episode ends is an
  ordinary state of the model with a single action, action 0 (*begin again*), which pays nothing and leads to a start
  state. The distribution of start states is a row like any other, with the same prior, and is learned from all
  observed starts; sampled and mean models contain it. Beginning again takes one time step, as in dm_env and in vector
  environments with automatic reset: an end is worth γ times a start.

**Where episodes end** is learned too, in one of two ways.

- By state (the default): a state that was entered with ``terminated`` ends every episode that enters it. Terminal
  states known beforehand are passed as ``terminal``.
- By transition (``end`` names a state): any transition may end the episode, whatever state the environment then shows,
  even a state from which other episodes continue, such as the player's hand in Blackjack. The belief learns such a
  transition as leading to the state ``end``, which represents nothing else. With ``"episode"``, ``end`` is an
  ordinary state that remains unseen until the first episode ends, so that an agent in an environment that never ends
  does not plan as if any transition might lead to an end worth 0.

**Truncation** is not an end. The belief learns the last transition as usual. About the state to which the environment
is then reset, it learns only that episodes may begin there.

All end states share the knowledge about starts: each has a row of its own, and every start is learned in all of these
rows. A start counts as evidence only once, in the row of the first end; this also holds for the weights of a mixture
or of finite models.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

import bamdp.beliefs.kernels as kernels
import bamdp.beliefs.verbs as verbs
from bamdp import _checks, _files
from bamdp._kernels.jit import KernelCalls
from bamdp._kernels.random import as_rng
from bamdp._kernels.rows import Rows, Space
from bamdp.beliefs.base import (
    BeliefArrays,
    fitting,
    fix_zero_reward,
    learned_arrays,
    reserve,
    shared_weights,
    with_learned_arrays,
)
from bamdp.mdp.model import FiniteMDP

if TYPE_CHECKING:
    from bamdp.beliefs.base import Prior, RewardModel

OBJECTIVES = ("episode", "lifetime")
BEGIN_AGAIN = 0  # the action of an end state
SPARE = 64  # additional real observations for which undo logs have space
MOST_ENTRIES = 1 << 26  # largest buffer for sampled models; it takes memory only where models fill it
ENTRY_BYTES = 32  # per entry of a model and its solution


class Episodes(NamedTuple):
    """A belief's record of episodes; its arrays are updated in place."""

    objective: str
    end: int | None  # the state that represents every end, if any
    ends: NDArray[np.bool_]  # [S]: states in which an episode ends
    starts: NDArray[np.int64]  # [S]: number of episodes that began in each state
    acted: NDArray[np.bool_]  # [S]: states in which an action was taken, which cannot be ends

    @property
    def restarts(self) -> bool:
        """True if a new episode follows each end."""
        return self.objective == "lifetime"


def new_episodes(objective: Any, end: Any, terminal: NDArray[np.bool_]) -> Episodes:
    """Return the record before the first episode, with the ends that are known beforehand."""
    objective = _checks.one_of(objective, "objective", OBJECTIVES)
    ends = terminal.copy()
    if end is not None:
        end = _checks.index(end, "end", len(ends))
        ends[end] |= objective == "lifetime"
    return Episodes(objective, end, ends, np.zeros(len(ends), np.int64), np.zeros(len(ends), bool))


class Belief:
    """A posterior over models μ = (P, R), created by ``prior.belief(...)``.

    Examples
    --------
    >>> from bamdp import Dirichlet
    >>> belief = Dirichlet(alpha=1.0).belief(3, 2)
    >>> belief.observe(0, 1, 0.0, 2)
    >>> belief.predictive(0, 1)
    array([0.25, 0.25, 0.5 ])
    """

    def __init__(
        self, prior: Prior, reward_model: RewardModel, arrays: BeliefArrays, episodes: Episodes
    ) -> None:
        self.prior = prior
        self.reward_model = reward_model
        self.arrays = arrays
        self.episodes = episodes
        self.n_states, self.n_actions = map(int, arrays.space.allowed.shape)
        self.log_evidence = 0.0
        self.n_observed = 0
        self.n_changes = 0  # number of changes to the space
        self.call = KernelCalls()  # calls kernels on the arrays of this belief
        self._reserved = 0  # simulated transitions that fit while n_observed < _reserved_until
        self._reserved_until = 0
        self._movement: tuple[BeliefArrays, BeliefArrays] | None = None
        for state in np.flatnonzero(episodes.ends).tolist():
            self._close(state)

    def __repr__(self) -> str:
        return f"<Belief {self.prior} after {self.n_observed} transitions, S={self.n_states}, A={self.n_actions}>"

    @property
    def transitions(self) -> Any:
        """The posterior over transitions, a NamedTuple of arrays."""
        return self.arrays.transitions

    @property
    def rewards(self) -> Any:
        """The posterior over rewards, a NamedTuple of arrays."""
        return self.arrays.rewards

    @property
    def movement_arrays(self) -> BeliefArrays:
        """The arrays with the posterior that measures movement: the same object as long as the arrays do not change.

        Numba inspects every array of a new object, which takes longer than most kernels.
        """
        if self._movement is None or self._movement[0] is not self.arrays:
            self._movement = self.arrays, self.arrays._replace(transitions=self.transitions.movement)
        return self._movement[1]

    @property
    def space(self) -> Space:
        """The terminal states and the existing actions."""
        return self.arrays.space

    @property
    def independent_rows(self) -> bool:
        """True if a transition of (s, a) and its reward are uninformative about every other pair."""
        parts = self.transitions, self.rewards
        return all(part.independent_rows and not part.pools for part in parts)

    # --- learning ---------------------------------------------------------------------------------------

    def observe(self, s: int, a: int, r: float, s2: int, terminated: bool = False) -> None:
        """Learn from one real transition (equation 2 of the paper); on invalid input, raise and change nothing."""
        episodes = self.episodes
        s = _checks.index(s, "state", self.n_states)
        a = _checks.index(a, "action", self.n_actions)
        s2 = _checks.index(s2, "next state", self.n_states)
        r = _checks.real(r, "reward")
        if episodes.ends[s]:
            raise ValueError(
                f"state {s} is terminal: nothing follows it; begin a new episode at a start state"
            )
        if not self.space.allowed[s, a]:
            raise ValueError(f"action {a} does not exist in state {s} (action_mask)")
        self.reward_model.check(r)
        if terminated and episodes.end is not None:
            s2 = episodes.end
        elif terminated and episodes.restarts and (s2 == s or episodes.acted[s2]):
            raise ValueError(
                f"an episode ended in state {s2}, where others went on; give the agent a state that stands for the end "
                "(end=...)"
            )
        closes = terminated and not episodes.ends[s2]
        with self._all_or_nothing() if closes and episodes.restarts else nullcontext():
            self._learn(s, a, r, s2)
            episodes.acted[s] = True
            if closes:
                self._close(s2)

    def begin(self, s: int) -> None:
        """Learn that an episode began in ``s``: the first one, or one after an end or a truncation."""
        s = _checks.index(s, "start state", self.n_states)
        if self.episodes.ends[s]:
            raise ValueError(
                f"state {s} ends episodes, so none can begin there; if it does not always end them, give the agent a "
                "state that stands for the end (end=...)"
            )
        if self.episodes.restarts:
            for i, end in enumerate(np.flatnonzero(self.episodes.ends).tolist()):
                self._learn_starts(end, [s], evidence=i == 0)
        self.episodes.starts[s] += 1

    def allow(self, s: int, actions: ArrayLike) -> None:
        """Learn which actions exist in ``s`` from an action mask of the environment, bool ``[A]``."""
        s = _checks.index(s, "state", self.n_states)
        mask = np.asarray(actions).astype(bool)
        if mask.shape != (self.n_actions,):
            raise ValueError(
                f"the action mask must have {self.n_actions} entries, got shape {list(mask.shape)}"
            )
        if self.episodes.ends[s] or s == self.episodes.end or np.array_equal(mask, self.space.allowed[s]):
            return
        if not mask.any():
            raise ValueError(f"the action mask of state {s} allows nothing; mark the state terminal instead")
        allowed = self.space.allowed.copy()
        allowed[s] = mask
        # raises if the prior has no model of an action
        self.prior.space(self.n_states, self.n_actions, self.episodes.ends, allowed)
        self.space.allowed[s] = mask
        self.n_changes += 1

    def _learn(self, s: int, a: int, r: float, s2: int) -> None:
        self.reserve(1)
        log_p = self.call(kernels.observe, self.arrays, s * self.n_actions + a, s2, r)
        if log_p == -math.inf:
            raise ValueError(self._refusal(s, a, r, s2))
        self.log_evidence += log_p
        self.n_observed += 1

    def _refusal(self, s: int, a: int, r: float, s2: int) -> str:
        """Return why a transition has probability 0, and how to fix it."""
        reason = self.reward_model.refusal(r) if self.predictive(s, a)[s2] > 0.0 else None
        at_end = ", which ends episodes," if self.episodes.ends[s] else ""
        return reason or (
            f"the prior gives probability 0 to going from state {s}{at_end} by action {a} to state {s2} with reward "
            f"{r}; use a prior that allows it"
        )

    def _close(self, state: int) -> None:
        """Mark a state as one in which episodes end."""
        self.n_changes += 1
        self.episodes.ends[state] = True
        if not self.episodes.restarts:
            self.space.terminal[state] = True
            return
        self.space.terminal[state] = False
        self.space.allowed[state] = False
        self.space.allowed[state, BEGIN_AGAIN] = True
        row = state * self.n_actions + BEGIN_AGAIN
        fix_zero_reward(self.rewards, row)
        if not self.predictive(state, BEGIN_AGAIN).any():
            raise ValueError(
                f"{self.prior} knows nothing that follows state {state}, which ends episodes; for objective='lifetime' "
                "use a prior that learns, such as Dirichlet, or models in which the state named end leads to a start"
            )
        starts = np.repeat(np.arange(self.n_states), self.episodes.starts).tolist()
        self._learn_starts(state, starts, evidence=bool(self.episodes.ends.sum() == 1))

    def _learn_starts(self, end: int, starts: list[int], evidence: bool) -> None:
        """Learn that episodes began in ``starts`` after an end; as evidence only if no other end has learned them."""
        before, weights = self.log_evidence, copy.deepcopy(shared_weights(self.transitions))
        for start in starts:
            self._learn(end, BEGIN_AGAIN, 0.0, start)
        if not evidence:
            self.log_evidence = before
            for now, old in zip(shared_weights(self.transitions), weights):
                now.log_p[:], now.p[:] = old.log_p, old.p

    @contextmanager
    def _all_or_nothing(self) -> Iterator[None]:
        """Restore the belief if anything inside raises."""
        before = self.copy()
        try:
            yield
        except BaseException:
            vars(self).update(vars(before))
            raise

    def observe_many(
        self, s: ArrayLike, a: ArrayLike, r: ArrayLike, s2: ArrayLike, terminated: ArrayLike | None = None
    ) -> None:
        """Learn from arrays of transitions, in order: from all of them, or from none if one is invalid."""
        ends = np.zeros(np.shape(s), bool) if terminated is None else np.asarray(terminated, bool)
        columns = [np.asarray(s), np.asarray(a), _checks.numbers(r, "r"), np.asarray(s2), ends]
        shapes = {column.shape for column in columns}
        if len(shapes) != 1 or ends.ndim != 1:
            raise ValueError(f"s, a, r, s2 and terminated must be vectors of one length, got shapes {shapes}")
        with self._all_or_nothing():
            for i, step in enumerate(zip(*(column.tolist() for column in columns))):
                try:
                    self.observe(*step)
                except (TypeError, ValueError) as error:
                    raise type(error)(f"transition {i}: {error}") from None

    # --- queries ----------------------------------------------------------------------------------------

    def predictive(self, s: int, a: int) -> NDArray[np.float64]:
        """Return ν(· | s, a), float64 [S]: the distribution of the next state with the model integrated out."""
        return self._row(s, a)[0]

    def expected_reward(self, s: int, a: int) -> float:
        """Return E[r | s, a] with the model integrated out."""
        return float(self._row(s, a)[1])

    def _row(self, s: int, a: int) -> tuple[NDArray[np.float64], float]:
        s = _checks.index(s, "state", self.n_states)
        a = _checks.index(a, "action", self.n_actions)
        row = s * self.n_actions + a
        most = verbs.most_entries(self.transitions, self.n_states)
        index, prob = np.empty(most, np.int32), np.empty(most)
        end, background, reward = kernels.predictive_row(self.arrays, row, index, prob)
        out = np.full(self.n_states, background / self.n_states)
        out[index[:end]] += prob[:end]
        return out, reward

    @property
    def weights(self) -> NDArray[np.float64]:
        """Posterior weights of the models of FiniteModels, or of the components of a Mixture."""
        weights = shared_weights(self.transitions)
        if not weights:
            raise AttributeError(f"{self.prior} has no weights; they belong to FiniteModels and Mixture")
        return weights[0].p.copy()

    def sample(self, rng: Any) -> FiniteMDP:
        """Draw a model from the posterior; ``rng`` is a NumPy Generator or a seed for one."""
        return self._as_mdp(kernels.sample_model, as_rng(rng))

    def mean(self) -> FiniteMDP:
        """Return the posterior mean model, with predictive distributions as rows and expected rewards."""
        return self._as_mdp(kernels.mean_model)

    def _as_mdp(self, fill: Any, *rng: NDArray[np.uint64]) -> FiniteMDP:
        """Return the model that the kernel ``fill`` writes, with arrays of its own."""
        rows = self.model_buffer()
        end = self.run(fill, rows, *rng)
        rows = rows._replace(index=rows.index[:end].copy(), prob=rows.prob[:end].copy())
        return FiniteMDP.from_rows(rows, copy.deepcopy(self.space))

    # --- calling kernels --------------------------------------------------------------------------------

    def run(self, kernel: Any, *args: Any, depth: int = 0) -> Any:
        """Call ``kernel(belief.arrays, *args)`` and return its result.

        ``depth`` is the largest number of simulated transitions that are pushed at the same time; the kernel must pop
        all of them.
        """
        self.reserve(depth)
        try:
            return self.call(kernel, self.arrays, *args)
        except MemoryError:
            raise ValueError(
                f"models drawn from {self.prior} have too many entries for this machine's memory (fewer with "
                "SparseDirichlet, or with a smaller alpha)"
            ) from None

    def model_buffer(self, n_models: int = 1, more: int = 0) -> Rows:
        """Return a buffer for ``n_models`` sampled models side by side, followed by ``more`` entries.

        It has space for the largest possible models, up to MOST_ENTRIES entries or half of the memory. The system
        allocates memory only where the buffer is written.
        """
        n_rows = n_models * self.n_states * self.n_actions
        longest = (n_rows + 1) * int(verbs.most_entries(self.transitions, self.n_states)) + more
        limit = min(MOST_ENTRIES, _checks.memory_limit() / ENTRY_BYTES)
        return kernels.empty_rows(n_rows, min(longest, int(limit)))

    # --- copying and saving -----------------------------------------------------------------------------

    def reserve(self, depth: int) -> None:
        """Extend the undo logs to hold ``depth`` simulated transitions on top of the observed ones."""
        if depth > self._reserved or self.n_observed >= self._reserved_until:
            self._reserved = max(depth, self._reserved)
            self._reserved_until = self.n_observed + SPARE
            depth = self._reserved + SPARE
            self.arrays = BeliefArrays(
                reserve(self.transitions, depth), reserve(self.rewards, depth), self.space
            )

    def copy(self) -> Belief:
        """Return an independent copy of this belief."""
        return copy.deepcopy(self, {id(part): part for part in (self.prior, self.reward_model)})

    def statistics(self) -> dict[str, NDArray[Any]]:
        """Return the sufficient statistics learned so far as named arrays, for :meth:`restore`."""
        learned = learned_arrays(self.arrays, "arrays") | learned_arrays(self.episodes, "episodes")
        numbers = {name: np.array(getattr(self, name)) for name in ("log_evidence", "n_observed")}
        return copy.deepcopy(learned) | numbers

    def restore(self, statistics: Mapping[str, NDArray[Any]]) -> None:
        """Load the statistics of another belief into this one, which must be new and have the same prior.

        Raises ValueError if the statistics do not fit; do not use the belief after that.
        """
        self.arrays = with_learned_arrays(self.arrays, "arrays", statistics)
        self.episodes = with_learned_arrays(self.episodes, "episodes", statistics)
        for name in ("log_evidence", "n_observed"):
            setattr(self, name, fitting(np.array(getattr(self, name)), name, statistics).item())
        for end in np.flatnonzero(self.episodes.ends & self.episodes.restarts).tolist():
            fix_zero_reward(self.rewards, end * self.n_actions + BEGIN_AGAIN)
        self._reserved_until = 0  # the arrays have changed: reserve again
        self.n_changes += 1

    def save(self, path: Any) -> None:
        """Write the belief to one ``.npz`` file, without pickle."""
        _files.write(path, "a belief", self.content())

    @staticmethod
    def load(path: Any) -> Belief:
        """Read a belief written by :meth:`save`."""
        return _files.read(path, "a belief", Belief.from_content)

    def content(self) -> dict[str, Any]:
        """Return the content of the belief's file: plain data and dataclasses."""
        return {
            "prior": self.prior,
            "rewards": None if self.reward_model.comes_with_prior else self.reward_model,
            "n_states": self.n_states,
            "n_actions": self.n_actions,
            "objective": self.episodes.objective,
            "end": self.episodes.end,
            "statistics": self.statistics(),
        }

    @staticmethod
    def from_content(content: Mapping[str, Any]) -> Belief:
        """Return the belief with the given :meth:`content`."""
        names = ("n_states", "n_actions", "rewards", "objective", "end")
        belief = content["prior"].belief(**{name: content[name] for name in names})
        belief.restore(content["statistics"])
        return belief
