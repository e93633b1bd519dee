"""A mutable posterior over models.

A :class:`Belief` holds a posterior over transitions and one over rewards, both NamedTuples of arrays that kernels
understand (see :mod:`bamdp.beliefs.verbs`), and the space: which states are terminal and which actions exist. Together
they form its ``arrays``, the single argument that passes a belief to a kernel. Planners call kernels through
:meth:`Belief.run`. :mod:`bamdp.beliefs.episodes` explains how episodes end and restart.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

import bamdp.beliefs.kernels as kernels
import bamdp.beliefs.verbs as verbs
from bamdp import _checks, _files
from bamdp._kernels.jit import KernelCalls
from bamdp._kernels.random import as_rng
from bamdp._kernels.rows import Rows, Space
from bamdp.beliefs.arrays import (
    BeliefArrays,
    fix_zero_reward,
    reserve,
    same_arrays,
    shared_weights,
)
from bamdp.beliefs.episodes import BEGIN_AGAIN, Episodes, new_episodes
from bamdp.beliefs.kernels import empty_rows, mean_model, sample_model
from bamdp.beliefs.statistics import belief_statistics, restore
from bamdp.mdp.model import FiniteMDP

if TYPE_CHECKING:
    from bamdp.beliefs.base import Prior, RewardModel

SPARE = 64  # further real observations for which undo logs have space
MOST_ENTRIES = 1 << 26  # largest buffer for sampled models; it takes memory only where models fill it
ENTRY_BYTES = 32  # per entry of a model and its solution


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
        self,
        prior: Prior,
        reward_model: RewardModel,
        arrays: BeliefArrays,
        episodes: Episodes | None = None,
    ) -> None:
        self.prior = prior
        self.reward_model = reward_model
        self.arrays = arrays
        space = arrays.space
        self.n_states, self.n_actions = map(int, space.allowed.shape)
        self.log_evidence = 0.0
        self.n_observed = 0
        self.call = KernelCalls()  # calls kernels on the arrays of this belief
        self.n_changes = 0  # number of changes to the space
        self.episodes = new_episodes("episode", None, space.terminal) if episodes is None else episodes
        self._movement: tuple[BeliefArrays, BeliefArrays] | None = None  # arrays and derived movement arrays
        self._reserved = 0  # simulated transitions that fit while n_observed < _reserved_until
        self._reserved_until = 0

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
    def space(self) -> Space:
        """The terminal states and the existing actions."""
        return self.arrays.space

    @property
    def independent_rows(self) -> bool:
        """True if a transition of (s, a) and its reward are uninformative about every other pair."""
        parts = self.transitions, self.rewards
        return all(part.independent_rows and not part.pools for part in parts)

    @property
    def movement_arrays(self) -> BeliefArrays:
        """The arrays of the belief with the posterior that measures movement (:meth:`Prior.movement_posterior`)."""
        if self._movement is None or self._movement[0] is not self.arrays:
            transitions = self.prior.movement_posterior(self.transitions)
            self._movement = self.arrays, self.arrays._replace(transitions=transitions)
        return self._movement[1]

    # --- learning ---------------------------------------------------------------------------------------

    def observe(self, s: int, a: int, r: float, s2: int, terminated: bool = False) -> None:
        """Learn from one real transition (equation 2 of the paper); on invalid input, raise without any change."""
        s, a, s2, r = self._checked(s, a, r, s2)
        if terminated:
            s2 = self.episodes.end if self.episodes.end is not None else self._possible_end(s2, s)
        closes = terminated and not self.episodes.ends[s2]
        with self._all_or_nothing() if closes and self.episodes.restarts else nullcontext():
            self._learn(s, a, r, s2)
            self.episodes.acted[s] = True
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
        ends = np.flatnonzero(self.episodes.ends).tolist() if self.episodes.restarts else []
        for state in ends:  # check all rows first, so that all of them learn the start or none does
            self._check_start(state, s)
        for i, state in enumerate(ends):
            # a start is evidence only once, although several rows learn it
            with self._without_evidence() if i else nullcontext():
                self._learn(state, BEGIN_AGAIN, 0.0, s)
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
        return reason or (
            f"the prior gives probability 0 to going from state {s} by action {a} to state {s2} with reward {r}; "
            "use a prior that allows it"
        )

    def _possible_end(self, s2: int, s: int) -> int:
        """Return ``s2``; raise if episodes restart and one has already continued from there."""
        if self.episodes.restarts and (s2 == s or self.episodes.acted[s2]):
            raise ValueError(
                f"an episode ended in state {s2}, where others went on; give the agent a state that stands for the end "
                "(end=...)"
            )
        return s2

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
        counted = self.episodes.ends.sum() > 1
        with self._without_evidence() if counted else nullcontext():
            for start in np.flatnonzero(self.episodes.starts).tolist():
                for _ in range(self.episodes.starts[start]):
                    self._check_start(state, start)
                    self._learn(state, BEGIN_AGAIN, 0.0, start)

    def _check_start(self, end: int, start: int) -> None:
        if not self.predictive(end, BEGIN_AGAIN)[start] > 0.0:
            raise ValueError(
                f"an episode began in state {start}, but the prior gives probability 0 to that after an end in state "
                f"{end}; for objective='lifetime' use a prior that learns, such as Dirichlet, or models in which the "
                "state named end leads to a start"
            )

    @contextmanager
    def _without_evidence(self) -> Iterator[None]:
        """Restore the evidence and the weights of alternatives on exit: data learned inside were already counted."""
        before = self.log_evidence
        shared = [(weights.log.copy(), weights.now.copy()) for weights in shared_weights(self.transitions)]
        yield
        self.log_evidence = before
        for weights, (log, now) in zip(shared_weights(self.transitions), shared):
            weights.log[:], weights.now[:] = log, now

    @contextmanager
    def _all_or_nothing(self) -> Iterator[None]:
        """Restore the belief if anything inside raises."""
        before = self.copy()
        try:
            yield
        except BaseException:  # the arrays of the space, and the episodes, keep their identity
            for array, old in zip(self.space, before.space):
                array[:] = old
            vars(self.episodes).update(vars(before.episodes))
            arrays = before.arrays._replace(space=self.space)
            vars(self).update({**vars(before), "arrays": arrays, "episodes": self.episodes})
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

    def _checked(self, s: int, a: int, r: float, s2: int) -> tuple[int, int, int, float]:
        s = _checks.index(s, "state", self.n_states)
        a = _checks.index(a, "action", self.n_actions)
        s2 = _checks.index(s2, "next state", self.n_states)
        if self.episodes.ends[s]:
            raise ValueError(
                f"state {s} is terminal: nothing follows it; begin a new episode at a start state"
            )
        if not self.space.allowed[s, a]:
            raise ValueError(f"action {a} does not exist in state {s} (action_mask)")
        r = _checks.real(r, "reward")
        self.reward_model.check(r)
        return s, a, s2, r

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
        return np.array(weights[0].now)

    def sample(self, rng: Any) -> FiniteMDP:
        """Draw a model from the posterior; ``rng`` is a NumPy Generator or a seed for one."""
        return self._as_mdp(sample_model, as_rng(rng))

    def mean(self) -> FiniteMDP:
        """Return the posterior mean model, with predictive distributions as rows and expected rewards."""
        return self._as_mdp(mean_model, None)

    def _as_mdp(self, fill: Any, rng: NDArray[np.uint64] | None) -> FiniteMDP:
        """Return the model that the kernel ``fill`` writes, with arrays of its own."""
        rows = self.model_buffer()
        end = self.run(fill, rows, *() if rng is None else (rng,))
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
        return empty_rows(n_rows, min(longest, int(limit)))

    # --- copying and saving -----------------------------------------------------------------------------

    def reserve(self, depth: int) -> None:
        """Extend the undo logs to hold ``depth`` simulated transitions on top of the observed ones."""
        if depth > self._reserved or self.n_observed >= self._reserved_until:
            self._reserved = max(depth, self._reserved)
            self._reserved_until = self.n_observed + SPARE
            depth = self._reserved + SPARE
            larger = BeliefArrays(reserve(self.transitions, depth), reserve(self.rewards, depth), self.space)
            self.arrays = same_arrays(self.arrays, larger)

    def copy(self) -> Belief:
        """Return an independent copy of this belief."""
        arrays, episodes = copy.deepcopy((self.arrays, self.episodes))
        twin = Belief(self.prior, self.reward_model, arrays, episodes)
        twin.log_evidence = self.log_evidence
        twin.n_observed, twin.n_changes = self.n_observed, self.n_changes
        return twin

    def statistics(self) -> dict[str, NDArray[Any]]:
        """Return the sufficient statistics learned so far as named arrays, for :meth:`restore`."""
        return belief_statistics(self)

    def restore(self, statistics: Mapping[str, NDArray[Any]]) -> None:
        """Load the statistics of another belief into this one, which must be new and have the same prior.

        Raises ValueError if the statistics do not fit; do not use the belief after that.
        """
        restore(self, statistics)
        self._reserved_until = 0  # the arrays have changed: reserve again

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
