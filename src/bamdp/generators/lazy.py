"""Models whose rows are sampled on first access, for generators that read only a few of them.

A sampled model has one row per state–action pair, and sampling them all costs O(S·A) no matter how few of them a
generator reads. Here a state's rows are sampled when a trial or rollout first reaches it. The arrays have entries for
all states, but only the entries of visited states are written, so neither running time nor resident memory depends on
S.

The distribution is that of :func:`~bamdp.beliefs.kernels.sample_model`. Quantities shared by all rows are drawn first
(``verbs.choose``). Conditional on these, rows are independent, so the order of sampling is irrelevant as long as the
belief about a row has not changed since the model was started. While following a policy, a search does push simulated
steps onto the belief, but only in states where it has already queried the policy, and all rows of these states have
been drawn by then.

A search uses one model per stage. Models of later stages are finished before an earlier one is read again, so their
entries form a stack in one buffer: each stage starts at the current end of the previous one.
"""

from __future__ import annotations

from typing import Annotated, NamedTuple

import numpy as np

import bamdp.beliefs.verbs as verbs
from bamdp._kernels.jit import inner, primitive, zeros
from bamdp._kernels.rows import Rows, best_action
from bamdp.beliefs.belief import Belief
from bamdp.beliefs.kernels import check_space, sample_into, skip_row

UNTOUCHED, TOUCHED, ROWS, ROWS_AHEAD = range(
    4
)  # per state; ROWS: its rows have been drawn; ROWS_AHEAD: those of all successors as well
UNKNOWN = -1  # action not queried yet
LARGEST, LATER, MEAN = range(3)  # indices into ``bound``
N_TOUCHED, END, MODEL = range(3)  # columns of ``number``


class LazyModels(NamedTuple):
    """One partially sampled model per stage of a search; R = S·A."""

    span: Annotated[np.ndarray, "int64 [H, R, 2]"]
    background: Annotated[np.ndarray, "float64 [H, R]"]
    reward: Annotated[np.ndarray, "float64 [H, R]"]
    index: Annotated[np.ndarray, "int32 [E]"]  # type: ignore[assignment]  # entries of all stages
    prob: Annotated[np.ndarray, "float64 [E]"]
    values: Annotated[np.ndarray, "float64 [H, S]"]
    drawn: Annotated[np.ndarray, "int32 [H, S]"]  # UNTOUCHED .. ROWS_AHEAD
    action: Annotated[np.ndarray, "int32 [H, S]"]  # the policy, UNKNOWN until queried
    touched: Annotated[np.ndarray, "int32 [H, S]"]  # list of touched states
    number: Annotated[np.ndarray, "int64 [H, 3]"]  # touched states, end of entries, shared choice
    mean: Annotated[np.ndarray, "float64 [H]"]  # mean value of all states, touched or not
    bound: Annotated[np.ndarray, "float64 [3]"]  # on values, on the value after a step, on the mean value
    reached: Annotated[np.ndarray, "int32 [S]"]  # scratch
    seen: Annotated[np.ndarray, "int32 [S]"]  # scratch


def new_lazy_models(belief: Belief, n_stages: int, discount: float) -> LazyModels:
    """Return models for a search with ``n_stages`` stages."""
    S, A = belief.n_states, belief.n_actions
    buffer = belief.model_buffer(n_stages)
    models = zeros(LazyModels, H=n_stages, S=S, R=S * A, index=buffer.index, prob=buffer.prob)
    set_bound(models, belief, discount)
    return models


def fresh_models(models: LazyModels) -> LazyModels:
    """Return unsampled models of the same size with the same bounds."""
    fresh = LazyModels(*(np.zeros(array.shape, array.dtype) for array in models))
    return fresh._replace(bound=models.bound.copy())


def set_bound(models: LazyModels, belief: Belief, discount: float) -> None:
    """Set the upper bounds used as initial values, based on the known rewards and terminal states."""
    ends = belief.space.terminal
    largest, later = value_bound(highest_reward(belief), discount, bool(ends.any()))
    models.bound[:] = largest, later, largest * (1.0 - float(ends.mean()))


def highest_reward(belief: Belief) -> float:
    """Return the highest reward possible in any model under the belief, or infinity if rewards are unbounded."""
    highest = float(belief.rewards.reward_range[1])
    return max(highest, 0.0) if belief.episodes.restarts else highest  # restarting pays 0


@primitive
def value_bound(highest: float, discount: float, ends: bool) -> tuple[float, float]:
    """Return upper bounds on V* in a nonterminal state and on the value after one step from it.

    ``highest`` is the highest reward; ``ends`` indicates whether there are terminal states. If all rewards are
    negative, the best possible outcome is to terminate after one step.
    """
    if highest < 0.0 and ends:
        return highest, 0.0
    return highest / (1.0 - discount), highest / (1.0 - discount)


@primitive
def stage_rows(models, h):
    """Return the rows of the model of stage ``h``."""
    return Rows(models.span[h], models.index, models.prob, models.background[h], models.reward[h])


@primitive
def begin_model(models, belief, h, rng):
    """Start a new, unsampled model at stage ``h``."""
    for i in range(models.number[h, N_TOUCHED]):
        models.drawn[h, models.touched[h, i]] = UNTOUCHED
    models.number[h, N_TOUCHED] = 0
    models.number[h, END] = models.number[h - 1, END] if h > 0 else 0
    models.number[h, MODEL] = verbs.choose(belief.transitions, rng)
    models.mean[h] = models.bound[MEAN]


@primitive
def touch(models, belief, h, s):
    """Initialise the value of an untouched state to its upper bound."""
    if models.drawn[h, s] == UNTOUCHED:
        models.drawn[h, s] = TOUCHED
        models.action[h, s] = UNKNOWN
        models.values[h, s] = 0.0 if belief.space.terminal[s] else models.bound[LARGEST]
        n = models.number[h, N_TOUCHED]
        models.touched[h, n] = s
        models.number[h, N_TOUCHED] = n + 1


@primitive
def open_state(models, belief, discount, ahead, h, s, rng):
    """Draw everything needed to back up a state, unless already drawn.

    With ``ahead``, this includes the rows of its successors, whose initial values are bounds based on their own
    rewards. If ``models`` is None, all rows already exist and there is nothing to do.
    """
    if models is not None:
        if models.drawn[h, s] < ROWS:
            draw_rows(models, belief, h, s, rng)
        if ahead and models.drawn[h, s] == ROWS:
            draw_rows_ahead(models, belief, discount, h, s, rng)


@inner
def draw_rows(models, belief, h, s, rng):
    """Draw the rows of all actions of a state."""
    space = belief.space
    rows, n_actions = stage_rows(models, h), space.allowed.shape[1]
    at = models.number[h, END]
    check_space(belief, rows, at, n_actions)
    touch(models, belief, h, s)
    for a in range(n_actions):
        row, end = s * n_actions + a, at
        if space.terminal[s] or not space.allowed[s, a]:
            skip_row(rows, row, at)
        else:
            end = np.int64(sample_into(belief, models.number[h, MODEL], row, rows, row, at, rng))
        for i in range(at, end):
            touch(models, belief, h, np.int64(rows.index[i]))
        at = end
    models.number[h, END] = at
    models.drawn[h, s] = ROWS


@inner
def draw_rows_ahead(models, belief, discount, h, s, rng):
    """Draw the rows of a state's successors and bound their values using their own rewards."""
    rows, space = stage_rows(models, h), belief.space
    n_actions = space.allowed.shape[1]
    for row in range(s * n_actions, (s + 1) * n_actions):
        for i in range(rows.span[row, 0], rows.span[row, 1]):
            to = np.int64(rows.index[i])
            if models.drawn[h, to] >= ROWS or space.terminal[to]:
                continue
            draw_rows(models, belief, h, to, rng)
            own = -np.inf
            for a in range(n_actions):
                if space.allowed[to, a]:
                    own = max(own, rows.reward[to * n_actions + a])
            models.values[h, to] = min(models.bound[LARGEST], own + discount * models.bound[LATER])
    models.drawn[h, s] = ROWS_AHEAD


@primitive
def lazy_action(models, belief, discount, ahead, h, s, rng):
    """Return the action of stage ``h``'s policy in state ``s``, greedy with respect to its values."""
    if models.drawn[h, s] == UNTOUCHED or models.action[h, s] == UNKNOWN:
        open_state(models, belief, discount, ahead, h, s, rng)
        rows = stage_rows(models, h)
        action, _ = best_action(rows, belief.space, discount, s, models.values[h], models.mean[h])
        models.action[h, s] = action
    return np.int64(models.action[h, s])
