"""The wall behind ``load``: what must be true of a file's arrays before they become a belief or a planner's memory.

A file is data from elsewhere, and compiled code indexes without bounds checks. So nothing of a file is used as it is:

- A posterior is made anew by its prior, for the sizes that the file names, and a planner's memory by ``planner.start``.
- What was learned, and what matters for the next decision, is copied into them after it has been checked: dtype, shape,
  ranges of indices, counts that agree with each other, finite numbers. :data:`KEPT` says which fields of a class these
  are and what must hold for each; a function registered with :func:`restore_part` adds what concerns several fields.
- What is only scratch is not read at all.

Planners and posteriors of one's own are compared with those made anew: the same structure, dtypes and shapes. If such a
class holds indices, register a function for it with :func:`restore_posterior` or :func:`restore_memory` that checks
their ranges.
"""

from __future__ import annotations

import copy
import dataclasses
import math
from collections.abc import Callable
from functools import singledispatch
from typing import Any, NamedTuple

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
from bamdp.planners import bootstrapped_dqn as dqn
from bamdp.planners import boss
from bamdp.planners.adaptive_dss import RaceArrays, RaceMemory, RaceRoom, RaceSpace
from bamdp.planners.base import Planner, horizon_discount
from bamdp.planners.bayes_greedy import BayesGreedyMemory, EpsilonGreedyMemory
from bamdp.planners.bayesian_q_learning import BayesianQMemory
from bamdp.planners.bayesian_sparse_sampling import OutcomeTreeMemory
from bamdp.planners.bfs3 import BFS3Memory
from bamdp.planners.bolt import BOLTMemory, Hopes
from bamdp.planners.dss import DSSMemory, DSSTree
from bamdp.planners.fhts import FHTSMemory
from bamdp.planners.mcbrl import MCBRLMemory
from bamdp.planners.q_learning import QLearningMemory
from bamdp.planners.rmax import RMaxMemory, RMaxModel
from bamdp.planners.shared.bonus import BonusMemory
from bamdp.planners.shared.history_tree import NO_KEY, NODES, HistoryTree, new_history_tree, rehash
from bamdp.planners.shared.tree_search import RolloutLearner, TreeSearchMemory, set_policies
from bamdp.planners.shared.workspace import LeafWorkspaceArrays, Workspace, WorkspaceArrays
from bamdp.planners.sparse_sampling import SparseSamplingMemory
from bamdp.planners.thompson import ThompsonMemory

ROUNDING = 1e-9  # by which sums of probabilities may be off
LARGEST = 2**62  # of whole numbers in a file
BELIEF_PARTS = ("prior", "reward_model", "arrays", "log_evidence", "n_observed", "episodes")
AGENT_PARTS = ("planner", "discount", "steps_left", "reach", "belief", "rng", "memory")  # that a file holds


class Damaged(ValueError):
    """What a file holds cannot have been saved by this program."""


class Context(NamedTuple):
    """What the ranges of a file's numbers depend on. Posteriors, which are restored first, are told the states only."""

    n_states: int
    n_actions: int = 0
    planner: Any = None
    belief: Any = None


# --- checks -----------------------------------------------------------------------------------------------------

Check = Callable[[Any, Context], Any]  # whether a value, or each of an array's entries, is as it must be


def require(condition: Any, what: str) -> None:
    """Refuse a file unless ``condition``, or every entry of it, holds."""
    if not np.all(condition):
        raise Damaged(f"{what} is not as it must be")


def same_class(fresh: Any, saved: Any, what: str) -> None:
    """Refuse a part that is of another class than it must be."""
    require(type(saved) is type(fresh), what)


def checked(saved: Any, like: np.ndarray, what: str, *, rows: bool = False) -> np.ndarray:
    """Return a copy of ``saved`` if its dtype and shape are those of ``like``.

    With ``rows`` the first dimension may be another one.
    """
    require(isinstance(saved, np.ndarray), what)
    first = 1 if rows else 0
    same = saved.dtype == like.dtype and saved.ndim == like.ndim and saved.shape[first:] == like.shape[first:]
    require(same, what)
    return np.array(saved)


def whole(value: Any, what: str, low: int, high: int = LARGEST) -> int:
    """Return a whole number in low..high."""
    require(type(value) is int and low <= value <= high, what)
    return int(value)


def in_range(array: np.ndarray, size: int | np.ndarray) -> Any:
    """Whether entries are in 0..size-1; of each column, where ``size`` is an array."""
    return (array >= 0) & (array < size)


# What is kept of a class, and what must hold for it beside dtype and shape. (A posterior is told the states only.)


def usual(value: Any, at: Context) -> Any:
    """Whether numbers are finite, and whole ones not negative: what must hold where nothing else is said."""
    if not isinstance(value, (np.ndarray, int, float)):
        return True  # a part, whose own class says what must hold
    return np.isfinite(value) if np.asarray(value).dtype.kind == "f" else value >= 0


def anything(value: Any, at: Context) -> bool:
    """Nothing more must hold."""
    return True


def any_length(value: Any, at: Context) -> bool:
    """Nothing more must hold, and an array may be longer or shorter than the one made anew."""
    return True


def positive(value: Any, at: Context) -> Any:
    """Whether numbers are finite and positive."""
    return np.isfinite(value) & (value > 0.0)


def state(value: Any, at: Context) -> Any:
    """Whether numbers are those of states."""
    return in_range(value, at.n_states)


def action(value: Any, at: Context) -> Any:
    """Whether numbers are those of actions."""
    return in_range(value, at.n_actions)


def of_cells(check: Callable[[np.ndarray], Any]) -> Check:
    """Whether ``check`` holds for the reward statistics of the cells in use, float64 [n, W]."""
    return lambda cells, at: check(cells.stats[: cells.top[USED]])


def kept(*names: str, **checks: Check) -> dict[str, Check]:
    """Return the fields of a class that are kept: those with usual numbers and parts, and those with other checks."""
    return dict.fromkeys(names, usual) | checks


KEPT: dict[type, dict[str, Check]] = {
    # what is known of the world
    Space: kept("terminal", "allowed"),
    Episodes: kept("ends", "starts", "acted"),
    # posteriors over transitions
    Counts: kept("rows", pool=any_length),
    Weights: kept("now", log=anything),
    SparseState: kept("counts"),
    SymmetricState: kept("counts"),
    SharedState: kept("counts", "seen", "weight"),
    FullState: kept("count", "total"),
    FiniteState: kept("weights"),
    MixtureState: kept("weights"),
    # posteriors over rewards; what known ones pay is the prior's, not the file's
    KnownState: kept(),
    ModelRewardsState: kept(),
    Cells: kept(top=anything, head=anything, link=any_length, stats=any_length),
    BetaState: kept(cells=of_cells(lambda stats: (stats[:, 1] >= 0.0) & (stats[:, 1] <= stats[:, 0]))),
    NormalState: kept(cells=of_cells(lambda stats: (stats[:, 0] >= 0.0) & (stats[:, 2] > 0.0))),
    ValuesState: kept("values", "known", cells=of_cells(lambda stats: stats >= 0.0)),
    # room for models and solutions: the warm starts and the policy of a solver; the rest is scratch
    Rows: kept("background", "reward", span=anything, index=any_length, prob=any_length),
    Solver: kept("values", "solution_mean", policy=action),
    WorkspaceArrays: kept("solver"),
    LeafWorkspaceArrays: kept("solver", "leaf_solver"),
    Workspace: kept("arrays"),
    LazyWorkspace: kept(),  # all but the policy is made anew by every search
    boss.MergedArrays: kept("solver", "space", "number"),
    boss.MergedModels: kept("arrays"),
    # memories of planners
    DSSTree: kept(
        action=action,
        value=anything,
        spread=anything,
        best=lambda best, at: (best >= UNKNOWN) & (best < at.n_actions),
    ),
    DSSMemory: kept("workspace", "tree", steps_left=lambda n, at: 0 <= n <= at.planner.replan_every),
    RaceSpace: kept("solver"),
    RaceRoom: kept("arrays"),
    RaceArrays: kept("values", stake=lambda stake, at: stake >= 0.0),
    RaceMemory: kept("room", "race"),
    OutcomeTreeMemory: kept("workspace"),
    BayesGreedyMemory: kept("workspace"),
    EpsilonGreedyMemory: kept("greedy", "visits"),
    BonusMemory: kept("workspace"),  # every row of the mean model is written anew
    ThompsonMemory: kept("workspace", "stale", age=lambda age, at: age >= -1),
    Hopes: kept(target=state),
    BOLTMemory: kept("workspace", "hopes"),
    boss.BOSSMemory: kept("models", "visits", "due", "n_draws"),
    boss.Snapshot: kept("span", "rest", "reward", index=state, mean=anything, spread=anything),
    boss.SnapshotRoom: kept("arrays"),
    boss.SBOSSMemory: kept("models", "then", "due", "n_draws", movement=lambda m, at: not math.isnan(m)),
    MCBRLMemory: kept("models", "q", policy=action, age=lambda age, at: age >= -1),
    RMaxModel: kept("counts", "sums"),
    RMaxMemory: kept("workspace", "model", "due", "solved"),
    HistoryTree: kept(
        "returns",
        used=anything,
        **dict.fromkeys(("key", "reward", "visits", "tries", "value"), any_length),
    ),
    RolloutLearner: kept("q"),
    TreeSearchMemory: kept("learner", root_state=lambda state, at: -1 <= state < at.n_states),
    QLearningMemory: kept("q", "visits"),
    BayesianQMemory: kept(
        "mu0",
        "visits",
        lam=positive,
        beta=positive,
        alpha=lambda alpha, at: np.isfinite(alpha) & (alpha >= 1.0),
    ),
    dqn.Replay: kept(
        *("reward", "goes_on", "mask", "noise"),
        index=lambda index, at: in_range(index, np.array([at.n_states, at.n_actions, at.n_states])),
        n_seen=lambda n, at: 0 <= n <= at.belief.n_observed,
    ),
    dqn.Networks: kept(*dqn.Networks._fields),
    dqn.DQNLearner: kept(
        *("now", "target", "head", "prior", "target_q", "up_to_date", "n_steps"),
        head_index=lambda index, at: 0 <= index < at.planner.n_networks,
    ),
    dqn.DQNMemory: kept("replay", "n_learned", "new_head", n_inputs=lambda n, at: 0 <= n <= at.n_states),
    # all of these is scratch
    BFS3Memory: kept(),
    FHTSMemory: kept(),
    SparseSamplingMemory: kept(),
}


# --- restoring --------------------------------------------------------------------------------------------------


@singledispatch
def restore_posterior(template: Any, saved: Any, n_states: int) -> Any:
    """Return ``template``, a posterior before data, with what ``saved`` has learned, after it has been checked."""
    return restore_part(template, saved, Context(n_states))


@singledispatch
def restore_memory(fresh: Any, saved: Any, planner: Planner, belief: Belief) -> Any:
    """Return ``fresh``, what ``planner.start`` makes, with what ``saved`` has kept, after it has been checked."""
    return restore_part(fresh, saved, Context(belief.n_states, belief.n_actions, planner, belief))


@singledispatch
def restore_part(fresh: Any, saved: Any, at: Context) -> Any:
    """Return ``fresh``, a part of a posterior or a memory, with what ``saved`` has kept, after it has been checked."""
    alike = fields_of(fresh) is None  # a class of one's own
    return restore_alike(fresh, saved, type(fresh).__name__) if alike else restore_fields(fresh, saved, at)


def fields_of(fresh: Any) -> dict[str, Check] | None:
    """Return what :data:`KEPT` has of an object's class, or of one that it is derived from; None if there is none."""
    return next((KEPT[kind] for kind in type(fresh).__mro__ if kind in KEPT), None)


def restore_fields(fresh: Any, saved: Any, at: Context) -> Any:
    """Restore an object field by field, as :data:`KEPT` says: arrays in place, since others may share them."""
    name = type(fresh).__name__
    same_class(fresh, saved, name)
    restored = {}
    for field, check in (fields_of(fresh) or {}).items():
        value, old, what = getattr(fresh, field), getattr(saved, field), f"{name}.{field}"
        if check is any_length:
            value = checked(old, value, what, rows=True)
        elif isinstance(value, np.ndarray):
            value[...] = checked(old, value, what)
        elif isinstance(value, (bool, int, float)):
            same_class(value, old, what)
            require(type(old) is float or abs(old) <= LARGEST, what)
            value = old
        else:
            value = restore_part(value, old, at)
        require(check(value, at), what)
        restored[field] = value
    if isinstance(fresh, tuple):
        return fresh._replace(**restored)  # type: ignore[attr-defined]
    vars(fresh).update(restored)
    return fresh


def restore_alike(fresh: Any, saved: Any, what: str) -> Any:
    """Return a copy of ``saved`` if it has the structure, dtypes and shapes of ``fresh``.

    The first dimension of an array may be larger: arrays may have grown.
    """
    if isinstance(fresh, np.ndarray):
        require(isinstance(saved, np.ndarray) and saved.ndim == fresh.ndim, what)
        require(saved.shape[:1] >= fresh.shape[:1], what)
        return checked(saved, fresh, what, rows=fresh.ndim > 0)
    same_class(fresh, saved, what)
    if isinstance(fresh, (tuple, list)):
        require(len(fresh) == len(saved), what)
        parts = [restore_alike(x, y, what) for x, y in zip(fresh, saved)]
        return type(fresh)(*parts) if hasattr(fresh, "_fields") else type(fresh)(parts)
    if dataclasses.is_dataclass(fresh):
        twin = copy.copy(fresh)
        for field in dataclasses.fields(fresh):
            part = restore_alike(getattr(fresh, field.name), getattr(saved, field.name), what)
            object.__setattr__(twin, field.name, part)
        return twin
    return saved


# --- posteriors over transitions -----------------------------------------------------------------------------------


@restore_part.register
def _restore_counts(fresh: Counts, saved: Any, at: Context) -> Counts:
    """Counts of transitions, laid out anew; the order of a row's outcomes is kept."""
    what = "the counts of transitions"
    rows, pool, _, _ = restore_fields(fresh, saved, at)
    start, size, total = rows[:, START], rows[:, SIZE], rows[:, TOTAL]
    require((size <= at.n_states) & (start <= len(pool)) & (start + size <= len(pool)), what)
    n = int(size.sum())
    begin = np.cumsum(size) - size
    row = np.repeat(np.arange(len(rows)), size)
    entries = pool[np.repeat(start - begin, size) + np.arange(n)]
    require(in_range(entries[:, NEXT], at.n_states) & (entries[:, COUNT] > 0), what)
    require(np.bincount(row, entries[:, COUNT], len(rows)) == total, what)
    require(len(np.unique(row * at.n_states + entries[:, NEXT])) == n, what)
    grown = np.zeros((max(len(fresh.pool), n), 2), np.int32)
    grown[:n] = entries
    rows[:, START], rows[:, ROOM] = begin, size
    top = np.zeros_like(fresh.top)
    top[POOL_END], top[WIDEST] = n, size.max(initial=0)
    return fresh._replace(rows=rows, pool=grown, top=top)


@restore_part.register
def _restore_shared(fresh: SharedState, saved: Any, at: Context) -> SharedState:
    what = "the posterior over transitions"
    restored: SharedState = restore_fields(fresh, saved, at)
    together = _pair_totals(restored.counts, at.n_states, fresh.n_actions)
    require(together == _pair_totals(restored.seen, at.n_states), what)
    require(
        (restored.weight >= 0.0) & (np.abs(restored.weight.sum(axis=1, keepdims=True) - 1.0) < ROUNDING), what
    )
    require((restored.weight > 0.0) == (fresh.size >= restored.seen.rows[:, [SIZE]]), what)
    return restored


def _pair_totals(counts: Counts, n_states: int, rows_of_a_state: int = 1) -> dict[int, int]:
    """Return the sums of the counts of each pair of states, of counts that were laid out anew."""
    state = np.repeat(np.arange(len(counts.rows)) // rows_of_a_state, counts.rows[:, SIZE])
    entries = counts.pool[: len(state)]
    pair, place = np.unique(state * n_states + entries[:, NEXT], return_inverse=True)
    return dict(zip(pair.tolist(), np.bincount(place, entries[:, COUNT]).tolist()))


@restore_part.register
def _restore_full(fresh: FullState, saved: Any, at: Context) -> FullState:
    restored: FullState = restore_fields(fresh, saved, at)
    total = np.add.reduceat(restored.count, fresh.start[:-1]) if len(fresh.count) else 0
    require(restored.total == total, "the posterior over transitions")
    return restored


@restore_part.register
def _restore_weights(fresh: Weights, saved: Any, at: Context) -> Weights:
    """Posterior weights, written in place: a reward posterior may share the arrays."""
    what = "the posterior weights"
    log, now, _, _ = restored = restore_fields(fresh, saved, at)
    require((log <= ROUNDING) & (now >= 0.0) & (now <= 1.0 + ROUNDING), what)
    require(np.isclose(now.sum(), 1.0, atol=1e-6) and np.allclose(np.exp(log), now, atol=1e-9), what)
    return restored


@restore_part.register
def _restore_mixture(fresh: MixtureState, saved: Any, at: Context) -> MixtureState:
    restored: MixtureState = restore_fields(fresh, saved, at)
    same_length = isinstance(saved.parts, tuple) and len(saved.parts) == len(fresh.parts)
    require(same_length, "the posterior over transitions")
    parts = (restore_posterior(part, old, at.n_states) for part, old in zip(fresh.parts, saved.parts))
    return restored._replace(parts=tuple(parts))


# --- posteriors over rewards -----------------------------------------------------------------------------------------


@restore_part.register
def _restore_cells(fresh: Cells, saved: Any, at: Context) -> Cells:
    """Cells of reward statistics; what these may be is checked by the class that has the cells."""
    what = "the posterior over rewards"
    restored: Cells = restore_fields(fresh, saved, at)
    stats, link, head, top = restored.stats, restored.link, restored.head, restored.top
    used = int(top[USED])
    require(0 <= used <= min(len(link), len(stats)), what)
    after, following = link[:used, AFTER], link[:used, NEXT_STATE]
    require((head >= FREE) & (head < used), what)
    # the cells of a row are linked from newer to older, so that no list can go round in circles
    require((after >= NO_CELL) & (after < np.arange(used)), what)
    reached = np.concatenate([head[head >= 0], after[after >= 0]])
    require(len(reached) == used and len(np.unique(reached)) == used, what)
    require(in_range(following, at.n_states if fresh.next_step else 1), what)
    require(np.isfinite(stats[:used]), what)
    top[:] = 0
    top[USED] = used
    return restored._replace(stats=stats[: max(used, 1)], link=link[: max(used, 1)])


@restore_part.register
def _restore_values(fresh: ValuesState, saved: Any, at: Context) -> ValuesState:
    what = "the posterior over rewards"
    given, size = fresh.values.copy(), len(fresh.values) - 1
    restored: ValuesState = restore_fields(fresh, saved, at)
    known = int(restored.known[0])
    require(known <= size and len(np.unique(restored.values[:known])) == known, what)
    stats = restored.cells.stats[: restored.cells.top[USED]]
    require(stats[:, :-1].sum(axis=1) == stats[:, -1], what)
    require(not fresh.values_given or (np.array_equal(restored.values, given) and known == size), what)
    return restored


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
    at = Context(S, A)
    space = restore_part(Space(np.zeros(S, bool), np.zeros((S, A), bool)), arrays.space, at)
    objective = _checks.one_of(episodes.objective, "objective", OBJECTIVES)
    end = None if episodes.end is None else whole(episodes.end, "the state that stands for the end", 0, S - 1)
    nothing = Episodes(objective, end, np.zeros(S, bool), np.zeros(S, np.int64), np.zeros(S, bool))
    restored = restore_part(nothing, episodes, at)
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
    require(type(log_evidence) in (int, float) and math.isfinite(log_evidence), "the log evidence")
    belief.log_evidence = float(log_evidence)
    belief.n_observed = whole(n_observed, "the number of observations", 0)
    return belief


# --- memories of planners -------------------------------------------------------------------------------------------


def restore_model(room: Workspace | boss.MergedModels, saved: Any, at: Context) -> None:
    """Write a model that was drawn or written, or several in one layout, into rows that grow until it fits."""
    what = "the rows of a model"
    empty = empty_rows(len(room.arrays.rows.reward), 1)
    span, index, prob, background, reward = restore_fields(empty, saved, at)
    require(len(index) == len(prob), what)
    if (span[:, 0] < 0).all():  # no model yet
        return
    # rows stand side by side from the first entry on, in whatever order, and the last row ends them
    end = int(span[-1, 1])
    order = np.lexsort((span[:, 1], span[:, 0]))
    first, last = span[order, 0], span[order, 1]
    require((first[0] == 0) & (last[-1] == end) & (0 <= end <= len(index)), what)
    require((first <= last).all() and (first[1:] == last[:-1]).all(), what)
    require(in_range(index[:end], at.n_states), what)
    for probability in (prob[:end], background):
        require((probability >= 0.0) & (probability <= 1.0 + ROUNDING), what)
    while len(room.arrays.rows.index) < len(index):
        room.grow()
    target = room.arrays.rows
    target.index[:end], target.prob[:end] = index[:end], prob[:end]
    target.span[...], target.background[...], target.reward[...] = span, background, reward


@restore_part.register
def _restore_dss(fresh: DSSMemory, saved: Any, at: Context) -> DSSMemory:
    restore_fields(fresh, saved, at)
    known = np.flatnonzero(fresh.tree.best != UNKNOWN)
    if not isinstance(fresh.workspace, LazyWorkspace):
        require(len(known) == at.n_states, "the best policy")
        return fresh
    while len(fresh.workspace.arrays.known) < len(known):
        fresh.workspace.grow()
    fresh.workspace.arrays.known[: len(known)] = known
    fresh.workspace.arrays.n_known[0] = len(known)
    return fresh


@restore_part.register(ThompsonMemory)
@restore_part.register(RMaxMemory)
def _restore_with_model(fresh: ThompsonMemory | RMaxMemory, saved: Any, at: Context) -> Any:
    restore_fields(fresh, saved, at)
    restore_model(fresh.workspace, saved.workspace.arrays.rows, at)
    new_model_due = fresh.due if isinstance(fresh, RMaxMemory) else fresh.age < 0
    require(new_model_due or (fresh.workspace.rows.span[:, 0] >= 0).all(), "the rows of a model")
    return fresh


@restore_part.register
def _restore_merged(fresh: boss.MergedModels, saved: Any, at: Context) -> boss.MergedModels:
    """Several models and the solution of the MDP that they make together, whose actions are those of all models."""
    restore_fields(fresh, saved, at._replace(n_actions=fresh.arrays.space.allowed.shape[1]))
    restore_model(fresh, saved.arrays.rows, at)
    require(fresh.arrays.number <= fresh.n_models, "the merged models")
    return fresh


@restore_part.register
def _restore_snapshot(fresh: boss.Snapshot, saved: Any, at: Context) -> boss.Snapshot:
    what = "the snapshot of the posterior"
    same_class(fresh, saved, what)
    room = len(checked(saved.index, fresh.index, what, rows=True))
    require(room >= len(fresh.index), what)
    grown: boss.Snapshot = restore_fields(boss.new_snapshot(len(fresh.span), room), saved, at)
    require((grown.span[:, 0] <= grown.span[:, 1]) & (grown.span[:, 1] <= room), what)
    return grown


@restore_part.register
def _restore_tree_search(fresh: TreeSearchMemory, saved: Any, at: Context) -> TreeSearchMemory:
    restore_fields(fresh, saved, at)
    set_policies(fresh.learner, at.belief.space)
    if fresh.root_state >= 0:
        fresh.tree = restore_part(fresh.tree, saved.tree, at)
        rehash(fresh.tree, fresh.params.by_reward)
    return fresh


@restore_part.register
def _restore_history_tree(fresh: HistoryTree, saved: Any, at: Context) -> HistoryTree:
    """A tree that is kept from step to step; its table is to be filled anew."""
    what = "the tree of histories"
    old: HistoryTree = restore_fields(fresh, saved, at)
    used, key = int(old.used[NODES]), old.key
    require(1 <= used <= len(key), what)
    tree = new_history_tree(at.n_actions, len(key), len(fresh.gain))
    # parents stand before their children, so that the parent of a node has a smaller number
    parent = key[1:used] // (at.n_actions * at.n_states)
    require((key[0] == NO_KEY) & np.all((key[1:used] >= 0) & (parent < np.arange(1, used))), what)
    tree.key[:used] = key[:used]
    for name in ("reward", "visits", "tries", "value"):
        array, target = getattr(old, name), getattr(tree, name)
        require(len(array) == len(key) and np.isfinite(array[:used]).all(), what)
        target[:used] = array[:used]
    tree.returns[...] = old.returns
    require((tree.tries[:used] >= 0).all() and tree.visits[:used] == tree.tries[:used].sum(axis=1), what)
    tree.used[NODES] = used
    return tree


@restore_part.register
def _restore_dqn(fresh: dqn.DQNMemory, saved: Any, at: Context) -> dqn.DQNMemory:
    restore_fields(fresh, saved, at)
    require(fresh.n_learned <= fresh.replay.n_seen, "the replayed transitions")
    if saved.learner is not None:
        new = at.planner._new_learner(fresh, at.belief, np.ones(4, np.uint64))
        fresh.learner = restore_part(new, saved.learner, at)
    return fresh


@restore_part.register
def _restore_learner(fresh: dqn.DQNLearner, saved: Any, at: Context) -> dqn.DQNLearner:
    """Networks of the planner's shape with the numbers of the file."""
    restore_fields(fresh, saved, at)
    require(isinstance(saved.moments, tuple) and len(saved.moments) == len(fresh.moments), "the networks")
    for moment, old in zip(fresh.moments, saved.moments):
        restore_fields(moment, old, at)
    # a place is that of a state in the batch at hand, which is written before it is read
    place = checked(saved.place, fresh.place, "the networks")
    fresh.place[:] = np.where(place == dqn.UNMET, dqn.UNMET, dqn.ABSENT)
    return fresh


# --- agents ---------------------------------------------------------------------------------------------------------


def restore_agent_parts(parts: dict[str, Any]) -> dict[str, Any]:
    """Return the parts of an agent that a file describes, checked and made anew."""
    require(parts.keys() == set(AGENT_PARTS), "the agent")
    planner, belief = parts["planner"], parts["belief"]
    require(isinstance(planner, Planner) and isinstance(belief, Belief), "the agent")
    discount, steps_left, reach = _checks.discount(parts["discount"]), parts["steps_left"], parts["reach"]
    if reach is not None:
        whole(reach, "the reach", 1)
        require(steps_left is not None, "the reach")
    if steps_left is not None:
        whole(steps_left, "the steps left", 1)
        require(discount == horizon_discount(steps_left, reach), "the steps left")
    rng = checked(parts["rng"], np.zeros(4, np.uint64), "the random state")
    require(rng.any(), "the random state")
    memory = restore_memory(planner.start(belief, discount), parts["memory"], planner, belief)
    return {**parts, "discount": discount, "rng": rng, "memory": memory}


_serial.saveable(
    Belief,
    take=lambda belief: {name: getattr(belief, name) for name in BELIEF_PARTS},
    make=lambda parts: restore_belief(**parts),
)
