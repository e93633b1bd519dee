"""The wall behind ``load``: what must be true of a file's arrays before they become a belief or a planner's memory.

A file is data from elsewhere, and compiled code indexes without bounds checks. So nothing of a file is used as it is:

- A posterior is made anew by its prior, for the sizes that the file names, and what was learned is copied into it
  after it has been checked: dtype, shape, ranges of indices, counts that agree with each other, finite numbers
  (:func:`restore_posterior`).
- A planner's memory is made anew by ``planner.start``, and what matters for the next decision is copied into it in the
  same way (:func:`restore_memory`).
- What is only scratch is not read at all.

Planners and posteriors of one's own are compared with those made anew: the same structure, dtypes and shapes. If such a
class holds indices, register a restore function for it that checks their ranges.
"""

from __future__ import annotations

import copy
import dataclasses
import math
from collections.abc import Callable
from functools import singledispatch
from typing import Any

import numpy as np

from bamdp import _checks, _serial
from bamdp._kernels.rows import Rows, Space
from bamdp._kernels.solve import Solver
from bamdp.beliefs.arrays import BeliefArrays, pay_nothing
from bamdp.beliefs.base import Prior, RewardModel
from bamdp.beliefs.belief import Belief
from bamdp.beliefs.episodes import BEGIN_AGAIN, OBJECTIVES, Episodes
from bamdp.beliefs.kernels import empty_rows
from bamdp.beliefs.rewards.bernoulli import BetaState
from bamdp.beliefs.rewards.cells import AFTER, FREE, NEXT_STATE, NO_CELL, USED, Cells
from bamdp.beliefs.rewards.finite import ValuesState
from bamdp.beliefs.rewards.known import KnownState
from bamdp.beliefs.rewards.normal import NormalState
from bamdp.beliefs.transitions.counts import COUNT, NEXT, POOL_END, ROOM, SIZE, START, TOTAL, WIDEST, Counts
from bamdp.beliefs.transitions.dirichlet import FullState
from bamdp.beliefs.transitions.finite import FiniteState, ModelRewards, ModelRewardsState
from bamdp.beliefs.transitions.mixture import MixtureState, Weights
from bamdp.beliefs.transitions.shared import SharedState
from bamdp.beliefs.transitions.sparse import SparseState
from bamdp.beliefs.transitions.symmetric import SymmetricState
from bamdp.generators.lazy import UNKNOWN, LazyWorkspace
from bamdp.planners.adaptive_dss import RaceMemory
from bamdp.planners.base import Planner, horizon_discount
from bamdp.planners.bayes_greedy import BayesGreedyMemory, EpsilonGreedyMemory
from bamdp.planners.bayesian_q_learning import LEAST_SHAPE, BayesianQMemory
from bamdp.planners.bayesian_sparse_sampling import OutcomeTreeMemory
from bamdp.planners.bfs3 import BFS3Memory
from bamdp.planners.bolt import BOLTMemory
from bamdp.planners.bootstrapped_dqn import ABSENT, UNMET, DQNLearner, DQNMemory
from bamdp.planners.boss import BOSSMemory, MergedModels, SBOSSMemory, new_snapshot
from bamdp.planners.dss import DSSMemory
from bamdp.planners.fhts import FHTSMemory
from bamdp.planners.mcbrl import MCBRLMemory
from bamdp.planners.q_learning import QLearningMemory
from bamdp.planners.rmax import RMaxMemory
from bamdp.planners.shared.bonus import BonusMemory
from bamdp.planners.shared.history_tree import NO_KEY, NODES, HistoryTree, new_history_tree, rehash
from bamdp.planners.shared.tree_search import TreeSearchMemory, set_policies
from bamdp.planners.shared.workspace import Workspace
from bamdp.planners.sparse_sampling import SparseSamplingMemory
from bamdp.planners.thompson import ThompsonMemory

Check = Callable[[np.ndarray], Any]  # from an array to whether it, or each of its entries, is as it must be
ROUNDING = 1e-9  # by which sums of probabilities may be off
AGENT_PARTS = ("planner", "discount", "steps_left", "reach", "belief", "rng", "memory")  # that a file holds


class Damaged(ValueError):
    """What a file holds cannot have been saved by this program."""


# --- checks -----------------------------------------------------------------------------------------------------


def require(condition: Any, what: str) -> None:
    """Refuse a file unless ``condition``, or every entry of it, holds."""
    if not np.all(condition):
        raise Damaged(f"{what} is not as it must be")


def checked(
    saved: Any, like: np.ndarray, what: str, check: Check | None = None, *, rows: bool = False
) -> np.ndarray:
    """Return a copy of ``saved`` if its dtype and shape are those of ``like`` and ``check`` holds.

    With ``rows`` the first dimension may be another one.
    """
    require(isinstance(saved, np.ndarray), what)
    first = 1 if rows else 0
    same = saved.dtype == like.dtype and saved.ndim == like.ndim and saved.shape[first:] == like.shape[first:]
    require(same, what)
    if check is not None:
        require(check(saved), what)
    return np.array(saved)


def keep(target: np.ndarray, saved: Any, what: str, check: Check | None = None) -> None:
    """Copy ``saved`` into ``target`` after :func:`checked`."""
    target[...] = checked(saved, target, what, check)


def in_range(size: int | np.ndarray) -> Check:
    """Whether all entries are in 0..size-1; of each column, where ``size`` is an array."""
    return lambda array: (array >= 0) & (array < size)


def not_negative(array: np.ndarray) -> Any:
    """Whether no entry is negative (or NaN)."""
    return array >= 0


def whole(value: Any, what: str, low: int, high: int) -> int:
    """Return a whole number in low..high."""
    require(type(value) is int and low <= value <= high, what)
    return int(value)


def flag(value: Any, what: str) -> bool:
    """Return a truth value."""
    require(type(value) is bool, what)
    return bool(value)


def number(value: Any, what: str) -> float:
    """Return a finite number."""
    require(type(value) in (int, float) and math.isfinite(value), what)
    return float(value)


def same_class(template: Any, saved: Any, what: str) -> None:
    """Refuse a part that is of another class than it must be."""
    require(type(saved) is type(template), what)


# --- posteriors over transitions -----------------------------------------------------------------------------------


@singledispatch
def restore_posterior(template: Any, saved: Any, n_states: int) -> Any:
    """Return ``template``, a posterior before data, with what ``saved`` has learned, after it has been checked."""
    return restore_alike(template, saved, type(template).__name__)


def restore_alike(template: Any, saved: Any, what: str) -> Any:
    """Return a copy of ``saved`` if it has the structure, dtypes and shapes of ``template``.

    The first dimension of an array may be larger: arrays may have grown.
    """
    if isinstance(template, np.ndarray):
        require(isinstance(saved, np.ndarray) and saved.ndim == template.ndim, what)
        require(saved.shape[:1] >= template.shape[:1], what)
        return checked(saved, template, what, rows=template.ndim > 0)
    same_class(template, saved, what)
    if isinstance(template, (tuple, list)):
        require(len(template) == len(saved), what)
        parts = [restore_alike(x, y, what) for x, y in zip(template, saved)]
        return type(template)(*parts) if hasattr(template, "_fields") else type(template)(parts)
    if dataclasses.is_dataclass(template):
        twin = copy.copy(template)
        for field in dataclasses.fields(template):
            part = restore_alike(getattr(template, field.name), getattr(saved, field.name), what)
            object.__setattr__(twin, field.name, part)
        return twin
    return saved


def restore_counts(template: Counts, saved: Any, n_states: int) -> Counts:
    """Counts of transitions, laid out anew; the order of a row's outcomes is kept."""
    what = "the counts of transitions"
    same_class(template, saved, what)
    rows = checked(saved.rows, template.rows, what, not_negative)
    pool = checked(saved.pool, template.pool, what, rows=True)
    start, size, total = rows[:, START], rows[:, SIZE], rows[:, TOTAL]
    require((size <= n_states) & (start <= len(pool)) & (start + size <= len(pool)), what)
    n = int(size.sum())
    begin = np.cumsum(size) - size
    row = np.repeat(np.arange(len(rows)), size)
    entries = pool[np.repeat(start - begin, size) + np.arange(n)]
    require(in_range(n_states)(entries[:, NEXT]) & (entries[:, COUNT] > 0), what)
    sums = np.zeros(len(rows), np.int64)
    np.add.at(sums, row, entries[:, COUNT].astype(np.int64))
    require(sums == total, what)
    require(len(np.unique(row * n_states + entries[:, NEXT])) == n, what)
    grown = np.zeros((max(len(template.pool), n), 2), np.int32)
    grown[:n] = entries
    rows[:, START], rows[:, ROOM] = begin, size
    top = np.zeros_like(template.top)
    top[POOL_END], top[WIDEST] = n, size.max(initial=0)
    return template._replace(rows=rows, pool=grown, top=top)


@restore_posterior.register(SparseState)
@restore_posterior.register(SymmetricState)
def _restore_counting(template: Any, saved: Any, n_states: int) -> Any:
    same_class(template, saved, "the posterior over transitions")
    return template._replace(counts=restore_counts(template.counts, saved.counts, n_states))


@restore_posterior.register(SharedState)
def _restore_shared(template: SharedState, saved: Any, n_states: int) -> SharedState:
    what = "the posterior over transitions"
    same_class(template, saved, what)
    counts = restore_counts(template.counts, saved.counts, n_states)
    seen = restore_counts(template.seen, saved.seen, n_states)
    together = _totals(counts, _owners(counts) // template.n_actions, n_states)
    require(together == _totals(seen, _owners(seen), n_states), what)
    weight = checked(saved.weight, template.weight, what, not_negative)
    require(np.abs(weight.sum(axis=1) - 1.0) < 1e-9, what)
    require((weight > 0.0) == (template.size >= seen.rows[:, [SIZE]]), what)
    return template._replace(counts=counts, seen=seen, weight=weight)


def _owners(counts: Counts) -> np.ndarray:
    """Return the row that each entry of counts that were laid out anew belongs to."""
    return np.repeat(np.arange(len(counts.rows)), counts.rows[:, SIZE])


def _totals(counts: Counts, state: np.ndarray, n_states: int) -> dict[int, int]:
    """Return the sums of the counts of each pair of states, where entry i belongs to ``state[i]``."""
    entries = counts.pool[: len(state)]
    pair, place = np.unique(state * n_states + entries[:, NEXT], return_inverse=True)
    return dict(zip(pair.tolist(), np.bincount(place, entries[:, COUNT]).tolist()))


@restore_posterior.register(FullState)
def _restore_full(template: FullState, saved: Any, n_states: int) -> FullState:
    what = "the posterior over transitions"
    same_class(template, saved, what)
    count = checked(saved.count, template.count, what, not_negative)
    total = np.add.reduceat(count, template.start[:-1]) if len(count) else template.total.copy()
    keep(template.total, saved.total, what, lambda array: array == total)
    return template._replace(count=count)


def restore_posterior_weights(template: Weights, saved: Any) -> None:
    """Write posterior weights into ``template``, whose arrays a reward posterior may share."""
    what = "the posterior weights"
    same_class(template, saved, what)
    log = checked(saved.log, template.log, what, lambda array: array <= ROUNDING)
    now = checked(saved.now, template.now, what, lambda array: (array >= 0.0) & (array <= 1.0 + ROUNDING))
    require(np.isclose(now.sum(), 1.0, atol=1e-6) and np.allclose(np.exp(log), now, atol=1e-9), what)
    template.log[:], template.now[:] = log, now


@restore_posterior.register(FiniteState)
def _restore_finite(template: FiniteState, saved: Any, n_states: int) -> FiniteState:
    same_class(template, saved, "the posterior over transitions")
    restore_posterior_weights(template.weights, saved.weights)
    return template


@restore_posterior.register(MixtureState)
def _restore_mixture(template: MixtureState, saved: Any, n_states: int) -> MixtureState:
    what = "the posterior over transitions"
    same_class(template, saved, what)
    require(isinstance(saved.parts, tuple) and len(saved.parts) == len(template.parts), what)
    restore_posterior_weights(template.weights, saved.weights)
    parts = (restore_posterior(part, old, n_states) for part, old in zip(template.parts, saved.parts))
    return template._replace(parts=tuple(parts))


# --- posteriors over rewards -----------------------------------------------------------------------------------------


@restore_posterior.register(KnownState)
@restore_posterior.register(ModelRewardsState)
def _restore_known(template: Any, saved: Any, n_states: int) -> Any:
    same_class(template, saved, "the posterior over rewards")  # what they pay is the prior's, not the file's
    return template


def restore_cells(template: Cells, saved: Any, n_states: int, check: Check) -> Cells:
    """Cells of reward statistics; ``check`` is given the statistics of those in use, float64 [n, W]."""
    what = "the posterior over rewards"
    same_class(template, saved, what)
    top = checked(saved.top, template.top, what)
    link = checked(saved.link, template.link, what, rows=True)
    stats = checked(saved.stats, template.stats, what, rows=True)
    used = int(top[USED])
    require(0 <= used <= min(len(link), len(stats)), what)
    head = checked(saved.head, template.head, what, lambda array: (array >= FREE) & (array < used))
    after, following = link[:used, AFTER], link[:used, NEXT_STATE]
    # the cells of a row are linked from newer to older, so that no list can go round in circles
    require((after >= NO_CELL) & (after < np.arange(used)), what)
    reached = np.concatenate([head[head >= 0], after[after >= 0]])
    require(len(reached) == used and len(np.unique(reached)) == used, what)
    require(in_range(n_states)(following) if template.next_step else following == 0, what)
    require(np.isfinite(stats[:used]) & check(stats[:used]), what)
    top[:] = 0
    top[USED] = used
    return template._replace(stats=stats[: max(used, 1)], link=link[: max(used, 1)], head=head, top=top)


@restore_posterior.register(BetaState)
def _restore_beta(template: BetaState, saved: Any, n_states: int) -> BetaState:
    same_class(template, saved, "the posterior over rewards")
    wins = lambda stats: ((stats[:, 1] >= 0.0) & (stats[:, 1] <= stats[:, 0]))[:, None]
    return template._replace(cells=restore_cells(template.cells, saved.cells, n_states, wins))


@restore_posterior.register(NormalState)
def _restore_normal(template: NormalState, saved: Any, n_states: int) -> NormalState:
    same_class(template, saved, "the posterior over rewards")
    valid = lambda stats: ((stats[:, 0] >= 0.0) & (stats[:, 2] > 0.0))[:, None]
    return template._replace(cells=restore_cells(template.cells, saved.cells, n_states, valid))


@restore_posterior.register(ValuesState)
def _restore_values(template: ValuesState, saved: Any, n_states: int) -> ValuesState:
    what = "the posterior over rewards"
    same_class(template, saved, what)
    size = len(template.values) - 1
    known = checked(saved.known, template.known, what, in_range(size + 1))
    values = checked(saved.values, template.values, what, np.isfinite)
    require(len(np.unique(values[: known[0]])) == known[0], what)
    if template.values_given:
        require(np.array_equal(values, template.values) and known[0] == size, what)
    counts = lambda stats: (stats >= 0.0) & (stats[:, :-1].sum(axis=1) == stats[:, -1])[:, None]
    cells = restore_cells(template.cells, saved.cells, n_states, counts)
    return template._replace(cells=cells, values=values, known=known)


# --- beliefs -------------------------------------------------------------------------------------------------------


def restore_belief(
    prior: Any, reward_model: Any, arrays: Any, log_evidence: Any, n_observed: Any, episodes: Any
) -> Belief:
    """Return the belief that a file describes, or raise :class:`Damaged`."""
    require(isinstance(prior, Prior) and isinstance(reward_model, RewardModel), "the prior")
    require(isinstance(arrays, BeliefArrays) and isinstance(arrays.space, Space), "the belief")
    require(isinstance(episodes, Episodes), "what is known of episodes")
    allowed = arrays.space.allowed
    require(isinstance(allowed, np.ndarray) and allowed.ndim == 2 and allowed.size > 0, "the action mask")
    S, A = map(int, allowed.shape)
    space = Space(
        checked(arrays.space.terminal, np.zeros(S, bool), "the mask of terminal states"),
        checked(allowed, np.zeros((S, A), bool), "the action mask"),
    )
    restored = Episodes(
        _checks.one_of(episodes.objective, "objective", OBJECTIVES),
        None if episodes.end is None else whole(episodes.end, "the state that stands for the end", 0, S - 1),
        checked(episodes.ends, np.zeros(S, bool), "the states that end episodes"),
        checked(episodes.starts, np.zeros(S, np.int64), "the starts of episodes", not_negative),
        checked(episodes.acted, np.zeros(S, bool), "what is known of episodes"),
    )
    require(allowed.any(axis=1) | space.terminal | restored.ends, "the action mask")
    require(~space.terminal | restored.ends, "the mask of terminal states")
    prior.space(S, A, restored.ends, allowed | restored.ends[:, None])  # may know nothing of some action
    transitions = restore_posterior(prior.state(S, A), arrays.transitions, S)
    if isinstance(reward_model, ModelRewards):
        from_prior = prior.rewards_of_models(S, A, transitions)
        require(from_prior is not None and isinstance(from_prior[0], ModelRewards), "the reward model")
        assert from_prior is not None
        template = from_prior[1]
    else:
        template = reward_model.state(S, A)
    rewards = restore_posterior(template, arrays.rewards, S)
    belief = Belief(prior, reward_model, BeliefArrays(transitions, rewards, space), restored)
    if restored.again:
        for state in np.flatnonzero(restored.ends):
            pay_nothing(rewards, int(state) * A + BEGIN_AGAIN)
    belief.log_evidence = number(log_evidence, "the log evidence")
    belief.n_observed = whole(n_observed, "the number of observations", 0, 2**62)
    return belief


# --- memories of planners -------------------------------------------------------------------------------------------


@singledispatch
def restore_memory(fresh: Any, saved: Any, planner: Planner, belief: Belief) -> Any:
    """Return ``fresh``, what ``planner.start`` makes, with what ``saved`` has kept, after it has been checked."""
    return restore_alike(fresh, saved, "the planner's memory")


def _restores(kind: type) -> Callable[[Any], Any]:
    """Register a function that writes what is saved into a fresh memory of this class; its class is checked before."""

    def register(restore: Any) -> Any:
        @restore_memory.register(kind)
        def restored(fresh: Any, saved: Any, planner: Any, belief: Belief) -> Any:
            same_class(fresh, saved, "the planner's memory")
            restore(fresh, saved, planner, belief)
            return fresh

        return restore

    return register


def restore_solver(target: Solver, saved: Any, n_actions: int) -> None:
    """The warm starts and the policy of a solver; the rest is scratch."""
    same_class(target, saved, "a solver")
    keep(target.values, saved.values, "a solver's values", np.isfinite)
    keep(target.solution_mean, saved.solution_mean, "a solver's values", np.isfinite)
    keep(target.policy, saved.policy, "a solver's policy", in_range(n_actions))


def restore_rows(saved: Any, n_rows: int, n_states: int) -> Rows:
    """A model that was drawn or written, or several in one layout."""
    what = "the rows of a model"
    like = empty_rows(n_rows, 1)
    same_class(like, saved, what)
    index = checked(saved.index, like.index, what, rows=True)
    prob = checked(saved.prob, like.prob, what, rows=True)
    span = checked(saved.span, like.span, what)
    require(len(index) == len(prob), what)
    empty = span[:, 0] < 0  # no model yet
    if empty.all():
        return empty_rows(n_rows, len(index))
    # rows stand side by side from the first entry on, in whatever order, and the last row ends them
    end = int(span[-1, 1])
    order = np.lexsort((span[:, 1], span[:, 0]))
    first, last = span[order, 0], span[order, 1]
    require((first[0] == 0) & (last[-1] == end) & (0 <= end <= len(index)), what)
    require((first <= last).all() and (first[1:] == last[:-1]).all(), what)
    require(in_range(n_states)(index[:end]) & (prob[:end] >= 0.0) & (prob[:end] <= 1.0 + ROUNDING), what)
    index[end:], prob[end:] = 0, 0.0
    background = checked(saved.background, like.background, what, lambda b: (b >= 0) & (b <= 1.0 + ROUNDING))
    reward = checked(saved.reward, like.reward, what, np.isfinite)
    return Rows(span, index, prob, background, reward)


def restore_model(room: Workspace | MergedModels, saved: Any, n_states: int) -> None:
    """Write a model, or several, into rows that grow until they have room for it."""
    model = restore_rows(saved, len(room.arrays.rows.reward), n_states)
    n = len(model.index)
    while len(room.arrays.rows.index) < n:
        room.grow()
    target = room.arrays.rows
    target.index[:n], target.prob[:n] = model.index, model.prob
    for name in ("span", "background", "reward"):
        getattr(target, name)[...] = getattr(model, name)


def restore_workspace(fresh: Workspace, saved: Any, belief: Belief, *, rows: bool = False) -> None:
    """Solvers' warm starts and, with ``rows``, the model at hand."""
    same_class(fresh, saved, "a workspace")
    same_class(fresh.arrays, saved.arrays, "a workspace")
    if rows:
        restore_model(fresh, saved.arrays.rows, belief.n_states)
    for solver, old in zip(fresh.arrays[1:], saved.arrays[1:]):
        restore_solver(solver, old, belief.n_actions)


@_restores(DSSMemory)
def _restore_dss(fresh: DSSMemory, saved: Any, planner: Any, belief: Belief) -> None:
    same_class(fresh.tree, saved.tree, "the planner's tree")
    if isinstance(fresh.workspace, LazyWorkspace):  # all but the policy is made anew by every search
        same_class(fresh.workspace, saved.workspace, "a workspace")
        keep(
            fresh.tree.best,
            saved.tree.best,
            "the best policy",
            lambda a: (a >= UNKNOWN) & (a < belief.n_actions),
        )
        known = np.flatnonzero(fresh.tree.best != UNKNOWN)
        while len(fresh.workspace.arrays.known) < len(known):
            fresh.workspace.grow()
        fresh.workspace.arrays.known[: len(known)] = known
        fresh.workspace.arrays.n_known[0] = len(known)
    else:
        restore_workspace(fresh.workspace, saved.workspace, belief)
        keep(fresh.tree.best, saved.tree.best, "the best policy", in_range(belief.n_actions))
    keep(fresh.tree.action, saved.tree.action, "the actions of candidates", in_range(belief.n_actions))
    keep(fresh.tree.value, saved.tree.value, "the values of candidates")
    keep(fresh.tree.spread, saved.tree.spread, "the spreads of candidates")
    fresh.steps_left = whole(saved.steps_left, "the steps left", 0, planner.replan_every)


@_restores(RaceMemory)
def _restore_race(fresh: RaceMemory, saved: Any, planner: Any, belief: Belief) -> None:
    what = "the planner's memory"
    same_class(fresh.room, saved.room, what)
    same_class(fresh.room.arrays, saved.room.arrays, what)
    same_class(fresh.race, saved.race, what)
    restore_solver(fresh.room.arrays.solver, saved.room.arrays.solver, belief.n_actions)
    keep(fresh.race.values, saved.race.values, "the values of candidates", np.isfinite)
    keep(fresh.race.stake, saved.race.stake, "the stakes of races", not_negative)
    # everything else is made anew by the next decision


@_restores(OutcomeTreeMemory)
@_restores(BayesGreedyMemory)
@_restores(BonusMemory)  # of which every row of the mean model is written anew
def _restore_warm_start(fresh: Any, saved: Any, planner: Any, belief: Belief) -> None:
    restore_workspace(fresh.workspace, saved.workspace, belief)


@_restores(ThompsonMemory)
def _restore_thompson(fresh: ThompsonMemory, saved: Any, planner: Any, belief: Belief) -> None:
    restore_workspace(fresh.workspace, saved.workspace, belief, rows=True)
    fresh.age = whole(saved.age, "the age of the draw", -1, 2**62)
    fresh.stale = flag(saved.stale, "whether the draw is stale")
    require(fresh.age < 0 or (fresh.workspace.rows.span[:, 0] >= 0).all(), "the rows of a model")


@_restores(EpsilonGreedyMemory)
def _restore_epsilon(fresh: EpsilonGreedyMemory, saved: Any, planner: Any, belief: Belief) -> None:
    restore_memory(fresh.greedy, saved.greedy, planner, belief)
    keep(fresh.visits, saved.visits, "the numbers of visits", not_negative)


@_restores(BOLTMemory)
def _restore_bolt(fresh: BOLTMemory, saved: Any, planner: Any, belief: Belief) -> None:
    restore_workspace(fresh.workspace, saved.workspace, belief)
    same_class(fresh.hopes, saved.hopes, "the hopes")
    keep(fresh.hopes.target, saved.hopes.target, "the hopes", in_range(belief.n_states))


def restore_merged(fresh: MergedModels, saved: Any, belief: Belief) -> None:
    """Several models and the solution of the MDP that they make together."""
    what = "the merged models"
    same_class(fresh, saved, what)
    same_class(fresh.arrays, saved.arrays, what)
    restore_model(fresh, saved.arrays.rows, belief.n_states)
    arrays, old = fresh.arrays, saved.arrays
    restore_solver(arrays.solver, old.solver, arrays.space.allowed.shape[1])
    same_class(arrays.space, old.space, what)
    keep(arrays.space.terminal, old.space.terminal, what)
    keep(arrays.space.allowed, old.space.allowed, what)
    keep(arrays.number, old.number, what, in_range(fresh.n_models + 1))


@_restores(BOSSMemory)
def _restore_boss(fresh: BOSSMemory, saved: Any, planner: Any, belief: Belief) -> None:
    restore_merged(fresh.models, saved.models, belief)
    keep(fresh.visits, saved.visits, "the numbers of visits", not_negative)
    fresh.due = flag(saved.due, "whether a draw is due")
    fresh.n_draws = whole(saved.n_draws, "the number of draws", 0, 2**62)


@_restores(SBOSSMemory)
def _restore_sboss(fresh: SBOSSMemory, saved: Any, planner: Any, belief: Belief) -> None:
    what = "the snapshot of the posterior"
    restore_merged(fresh.models, saved.models, belief)
    same_class(fresh.then, saved.then, what)
    like, old = fresh.then.arrays, saved.then.arrays
    same_class(like, old, what)
    span = checked(old.span, like.span, what, not_negative)
    require(span[:, 0] <= span[:, 1], what)
    room = len(checked(old.index, like.index, what, rows=True))
    require((span[:, 1] <= room) & (room >= len(like.index)), what)
    grown = new_snapshot(len(span), room)
    grown.span[...] = span
    keep(grown.index, old.index, what, in_range(belief.n_states))
    keep(grown.mean, old.mean, what)
    keep(grown.spread, old.spread, what)
    keep(grown.rest, old.rest, what, np.isfinite)
    keep(grown.reward, old.reward, what, np.isfinite)
    fresh.then.arrays = grown
    fresh.due = flag(saved.due, "whether a draw is due")
    fresh.n_draws = whole(saved.n_draws, "the number of draws", 0, 2**62)
    require(type(saved.movement) is float and not math.isnan(saved.movement), what)
    fresh.movement = saved.movement


@_restores(MCBRLMemory)
def _restore_mcbrl(fresh: MCBRLMemory, saved: Any, planner: Any, belief: Belief) -> None:
    restore_merged(fresh.models, saved.models, belief)
    keep(fresh.q, saved.q, "the action values", np.isfinite)
    keep(fresh.policy, saved.policy, "the policy", in_range(belief.n_actions))
    fresh.age = whole(saved.age, "the age of the draw", -1, 2**62)


@_restores(RMaxMemory)
def _restore_rmax(fresh: RMaxMemory, saved: Any, planner: Any, belief: Belief) -> None:
    same_class(fresh.model, saved.model, "the optimistic model")
    restore_workspace(fresh.workspace, saved.workspace, belief, rows=True)
    keep(fresh.model.sums, saved.model.sums, "the sums of rewards", np.isfinite)
    counts = restore_counts(fresh.model.counts, saved.model.counts, belief.n_states)
    fresh.model = fresh.model._replace(counts=counts)
    fresh.due = flag(saved.due, "whether a solution is due")
    fresh.solved = whole(saved.solved, "the number of solutions", 0, 2**62)
    require(fresh.due or (fresh.workspace.rows.span[:, 0] >= 0).all(), "the rows of a model")


@_restores(TreeSearchMemory)
def _restore_tree_search(fresh: TreeSearchMemory, saved: Any, planner: Any, belief: Belief) -> None:
    same_class(fresh.learner, saved.learner, "the rollout policy")
    keep(fresh.learner.q, saved.learner.q, "the rollout policy", np.isfinite)
    set_policies(fresh.learner, belief.space)
    fresh.root_state = whole(saved.root_state, "the root's state", -1, belief.n_states - 1)
    if fresh.root_state >= 0:
        fresh.tree = restore_history_tree(fresh, saved.tree, belief)


def restore_history_tree(fresh: TreeSearchMemory, saved: Any, belief: Belief) -> HistoryTree:
    """A tree that is kept from step to step; its table is filled anew."""
    what = "the tree of histories"
    like, A = fresh.tree, belief.n_actions
    same_class(like, saved, what)
    used = int(checked(saved.used, like.used, what)[NODES])
    key = checked(saved.key, like.key, what, rows=True)
    require(1 <= used <= len(key), what)
    tree = new_history_tree(A, len(key), len(like.gain))
    # parents stand before their children, so that the parent of a node has a smaller number
    parent = key[1:used] // (A * belief.n_states)
    require((key[0] == NO_KEY) & np.all((key[1:used] >= 0) & (parent < np.arange(1, used))), what)
    tree.key[:used] = key[:used]
    for name in ("reward", "visits", "tries", "value"):
        array = checked(getattr(saved, name), getattr(like, name), what, rows=True)
        require(len(array) == len(key) and np.isfinite(array[:used]).all(), what)
        require(name in ("reward", "value") or (array[:used] >= 0).all(), what)
        getattr(tree, name)[:used] = array[:used]
    keep(tree.returns, saved.returns, what, np.isfinite)
    require((tree.visits[:used] == tree.tries[:used].sum(axis=1)), what)
    tree.used[NODES] = used
    rehash(tree, fresh.params.by_reward)
    return tree


@_restores(QLearningMemory)
def _restore_q(fresh: QLearningMemory, saved: Any, planner: Any, belief: Belief) -> None:
    keep(fresh.q, saved.q, "the action values", np.isfinite)
    keep(fresh.visits, saved.visits, "the numbers of visits", not_negative)


@_restores(BayesianQMemory)
def _restore_bayesian_q(fresh: BayesianQMemory, saved: Any, planner: Any, belief: Belief) -> None:
    what = "the posterior over returns"
    positive = lambda array: np.isfinite(array) & (array > 0.0)
    keep(fresh.mu0, saved.mu0, what, np.isfinite)
    keep(fresh.lam, saved.lam, what, positive)
    keep(fresh.alpha, saved.alpha, what, lambda array: np.isfinite(array) & (array >= min(LEAST_SHAPE, 1.0)))
    keep(fresh.beta, saved.beta, what, positive)
    keep(fresh.visits, saved.visits, "the numbers of visits", not_negative)


@_restores(DQNMemory)
def _restore_dqn(fresh: DQNMemory, saved: Any, planner: Any, belief: Belief) -> None:
    what = "the replayed transitions"
    same_class(fresh.replay, saved.replay, what)
    S, A = belief.n_states, belief.n_actions
    keep(fresh.replay.index, saved.replay.index, what, in_range(np.array([S, A, S])))
    for name in ("reward", "goes_on", "mask", "noise"):
        keep(getattr(fresh.replay, name), getattr(saved.replay, name), what, np.isfinite)
    fresh.replay.n_seen = whole(saved.replay.n_seen, what, 0, belief.n_observed)
    fresh.n_inputs = whole(saved.n_inputs, "the number of inputs", 0, S)
    fresh.n_learned = whole(saved.n_learned, what, 0, fresh.replay.n_seen)
    fresh.new_head = flag(saved.new_head, "whether an episode begins")
    if saved.learner is not None:
        fresh.learner = _restore_networks(planner, fresh, belief, saved.learner)


def _restore_networks(planner: Any, memory: DQNMemory, belief: Belief, saved: Any) -> DQNLearner:
    """Networks of the planner's shape with the numbers of the file."""
    what = "the networks"
    fresh = planner._new_learner(memory, belief, np.ones(4, np.uint64))
    same_class(fresh, saved, what)
    require(isinstance(saved.moments, tuple) and len(saved.moments) == len(fresh.moments), what)
    networks = zip(
        (fresh.now, fresh.target, fresh.head, *fresh.moments),
        (saved.now, saved.target, saved.head, *saved.moments),
    )
    for network, old in networks:
        same_class(network, old, what)
        for target, array in zip(network, old):
            keep(target, array, what, np.isfinite)
    keep(fresh.prior, saved.prior, what, np.isfinite)
    keep(fresh.target_q, saved.target_q, what, np.isfinite)
    keep(fresh.up_to_date, saved.up_to_date, what)
    # a place is that of a state in the batch at hand, which is written before it is read
    place = checked(saved.place, fresh.place, what)
    fresh.place[:] = np.where(place == UNMET, UNMET, ABSENT)
    fresh.head_index = whole(saved.head_index, what, 0, planner.n_networks - 1)
    fresh.n_steps = whole(saved.n_steps, what, 0, 2**62)
    return fresh


@_restores(BFS3Memory)
@_restores(FHTSMemory)
@_restores(SparseSamplingMemory)
def _restore_nothing(fresh: Any, saved: Any, planner: Any, belief: Belief) -> None:
    """Keep what is fresh: all of such a memory is scratch."""


def restore_agent_parts(parts: dict[str, Any]) -> dict[str, Any]:
    """Return the parts of an agent that a file describes, checked and made anew."""
    require(parts.keys() == set(AGENT_PARTS), "the agent")
    planner, belief = parts["planner"], parts["belief"]
    require(isinstance(planner, Planner) and isinstance(belief, Belief), "the agent")
    discount, steps_left, reach = _checks.discount(parts["discount"]), parts["steps_left"], parts["reach"]
    if reach is not None:
        whole(reach, "the reach", 1, 2**62)
        require(steps_left is not None, "the reach")
    if steps_left is not None:
        whole(steps_left, "the steps left", 1, 2**62)
        require(discount == horizon_discount(steps_left, reach), "the steps left")
    rng = checked(parts["rng"], np.zeros(4, np.uint64), "the random state")
    require(rng.any(), "the random state")
    memory = restore_memory(planner.start(belief, discount), parts["memory"], planner, belief)
    return {**parts, "discount": discount, "rng": rng, "memory": memory}


_serial.saveable(
    Belief,
    take=lambda belief: {
        name: getattr(belief, name)
        for name in ("prior", "reward_model", "arrays", "log_evidence", "n_observed", "episodes")
    },
    make=lambda parts: restore_belief(**parts),
)
