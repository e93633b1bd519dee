"""Models whose rows are drawn when they are first looked at, for generators that look at few.

A model of a belief has a row for every state and action, and drawing them all costs O(S·A), however few of them a
generator reads. Here a state's rows are drawn when a trial or a sample first comes to it. Arrays have a place for
every state, but only those that are looked at are written, so neither time nor resident memory depends on S.

The law is that of :func:`~bamdp.beliefs.kernels.sample_model`. What all rows share is drawn first (``verbs.choose``);
given it, rows are independent, so it makes no difference when they are drawn, as long as the belief still says about
a row what it said when the model was begun. A search pushes simulated steps onto the belief while it follows a
policy, but only in states that the policy has been asked for, and all rows of these were drawn before.

A search has one model for each of its stages. Those of later stages are finished before an earlier one is looked at
again, so their entries are a stack in one buffer: a stage begins where the one before it ends at that moment.
"""

from __future__ import annotations

from typing import Annotated, NamedTuple

import numpy as np

import bamdp.beliefs.verbs as verbs
from bamdp._kernels.bundles import zeros
from bamdp._kernels.jit import inner, primitive
from bamdp._kernels.rows import Rows
from bamdp._kernels.sweeps import best_action
from bamdp.beliefs.belief import Belief
from bamdp.beliefs.kernels import check_space, sample_into, skip_row

UNTOUCHED, TOUCHED, ROWS, ROWS_AHEAD = range(
    4
)  # of a state: its rows are drawn, those of all successors as well
UNKNOWN = -1  # an action that was not asked for
LARGEST, LATER, MEAN = range(3)  # in ``bound``
N_TOUCHED, END, MODEL = range(3)  # in ``number``


class LazyModels(NamedTuple):
    """One model for each stage of a search, as far as it has been looked at. R is S·A."""

    span: Annotated[np.ndarray, "int64 [H, R, 2]"]
    background: Annotated[np.ndarray, "float64 [H, R]"]
    reward: Annotated[np.ndarray, "float64 [H, R]"]
    index: Annotated[np.ndarray, "int32 [E]"]  # type: ignore[assignment]  # of all stages
    prob: Annotated[np.ndarray, "float64 [E]"]
    values: Annotated[np.ndarray, "float64 [H, S]"]
    drawn: Annotated[np.ndarray, "int32 [H, S]"]  # UNTOUCHED .. ROWS_AHEAD
    action: Annotated[np.ndarray, "int32 [H, S]"]  # the policy, UNKNOWN until it is asked for
    touched: Annotated[np.ndarray, "int32 [H, S]"]  # the states that are not UNTOUCHED
    number: Annotated[np.ndarray, "int64 [H, 3]"]  # touched states, end of the entries, what the rows share
    mean: Annotated[np.ndarray, "float64 [H]"]  # mean value of all states, touched or not
    bound: Annotated[np.ndarray, "float64 [3]"]  # of values, of what follows a step, of the mean value
    reached: Annotated[np.ndarray, "int32 [S]"]  # scratch
    seen: Annotated[np.ndarray, "int32 [S]"]  # scratch


def new_lazy_models(belief: Belief, n_stages: int, discount: float) -> LazyModels:
    """Return the models of a search of so many stages."""
    S, A = belief.n_states, belief.n_actions
    buffer = belief.model_buffer(n_stages)
    models = zeros(LazyModels, H=n_stages, S=S, R=S * A, index=buffer.index, prob=buffer.prob)
    set_bound(models, belief, discount)
    return models


def fresh_models(models: LazyModels) -> LazyModels:
    """Return models of the same size with the same bounds, of which nothing has been looked at."""
    fresh = LazyModels(*(np.zeros(array.shape, array.dtype) for array in models))
    return fresh._replace(bound=models.bound.copy())


def set_bound(models: LazyModels, belief: Belief, discount: float) -> None:
    """Set the upper bounds that values start from, by what is known of rewards and ends."""
    ends = belief.space.terminal
    largest, later = value_bound(highest_reward(belief), discount, bool(ends.any()))
    models.bound[:] = largest, later, largest * (1.0 - float(ends.mean()))


def highest_reward(belief: Belief) -> float:
    """Return the highest reward that any model of a belief can have; infinite if there is none."""
    highest = float(belief.rewards.reward_range[1])
    return max(highest, 0.0) if belief.episodes.restarts else highest  # to begin again pays 0


@primitive
def value_bound(highest: float, discount: float, ends: bool) -> tuple[float, float]:
    """Return upper bounds of V* in a state that is not terminal, and of what follows a step from it.

    ``highest`` is the highest reward, ``ends`` whether there are terminal states. With costs only, an end
    after one step is the best that there can be.
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
    """Begin a model at stage ``h``, of which nothing has been looked at."""
    for i in range(models.number[h, N_TOUCHED]):
        models.drawn[h, models.touched[h, i]] = UNTOUCHED
    models.number[h, N_TOUCHED] = 0
    models.number[h, END] = models.number[h - 1, END] if h > 0 else 0
    models.number[h, MODEL] = verbs.choose(belief.transitions, rng)
    models.mean[h] = models.bound[MEAN]


@primitive
def touch(models, belief, h, s):
    """Let the value of a state that was not looked at start from its upper bound."""
    if models.drawn[h, s] == UNTOUCHED:
        models.drawn[h, s] = TOUCHED
        models.action[h, s] = UNKNOWN
        models.values[h, s] = 0.0 if belief.space.terminal[s] else models.bound[LARGEST]
        n = models.number[h, N_TOUCHED]
        models.touched[h, n] = s
        models.number[h, N_TOUCHED] = n + 1


@primitive
def open_state(models, belief, discount, ahead, h, s, rng):
    """Draw what a backup of a state needs, if it was not drawn before.

    With ``ahead`` these are also the rows of its successors, whose values start from bounds by their own rewards.
    Nothing to do for ``models`` None: all rows were drawn before.
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
    """Draw the rows of the successors of a state, and bound their values by their own rewards."""
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
    """Return the action of stage ``h``'s policy in state ``s``, greedy for its values."""
    if models.drawn[h, s] == UNTOUCHED or models.action[h, s] == UNKNOWN:
        open_state(models, belief, discount, ahead, h, s, rng)
        rows = stage_rows(models, h)
        models.action[h, s] = best_action(rows, belief.space, discount, s, models.values[h], models.mean[h])[
            0
        ]
    return np.int64(models.action[h, s])
