"""Models whose rows are drawn when they are first looked at, for generators that look at few.

A model of a belief has a row for every state and action, and to draw them all costs O(S·A), however little of it a
generator reads. Here the states that are touched get *places* 0, 1, 2, ..., and everything is kept by place: rows lead
from place to place, so the kernels for whole models (:mod:`bamdp._kernels.sweeps`,
:mod:`bamdp.generators.trials`) work on them as they are. What a model costs does not depend on the number of states.

The law is that of :func:`~bamdp.beliefs.kernels.sample_model`. What all rows share is drawn first (``verbs.choose``);
given it, rows are independent, so it makes no difference when they are drawn, as long as the belief still says about
a row what it said when the model was begun. A search pushes simulated steps onto the belief while it follows a
policy, but only in states that the policy has been asked for, and all rows of these were drawn before.

A search has one model for each of its stages. Those of later stages are done with before an earlier one is looked at
again, so places and entries are a stack: a stage begins where the one before it ends at that moment. Where a state
stands is noted in ``place``, which is never cleared: it is right if that place is the stage's own, and the state stands
there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, NamedTuple

import numpy as np

from bamdp._kernels.bundles import zeros
from bamdp._kernels.jit import generic, inner, primitive
from bamdp._kernels.random import below
from bamdp._kernels.rows import Rows, Space
from bamdp._kernels.sweeps import best_action
from bamdp.beliefs import verbs
from bamdp.beliefs.arrays import BeliefArrays
from bamdp.beliefs.belief import Belief
from bamdp.beliefs.kernels import empty_rows, sample_into, skip_row
from bamdp.beliefs.verbs import DONE, NO_ROOM
from bamdp.generators.builtin import RMAX, RTDPState
from bamdp.generators.trials import TrialTable, any_state, open_state, run_trials, value_bound

PLACES, ENTRIES = 1024, 4096  # room to begin with; it grows when touched states do not fit
NOT_DRAWN, ROWS, ROWS_AHEAD = 0, 1, 2  # of a place: nothing, its rows, those of all that it leads to as well
UNKNOWN = -1  # an action that was not asked for
LARGEST, LATER, MEAN = 0, 1, 2  # in ``bound``


class LazyModels(NamedTuple):
    """One model for each stage of a search, as far as it has been looked at."""

    rows: Rows  # of places
    space: Space  # of places; which actions exist is known when their rows are drawn
    values: Annotated[np.ndarray, "float64 [P]"]
    action: Annotated[np.ndarray, "int32 [P]"]  # the policy, UNKNOWN until it is asked for
    drawn: Annotated[np.ndarray, "int32 [P]"]  # NOT_DRAWN, ROWS or ROWS_AHEAD
    state: Annotated[np.ndarray, "int32 [P]"]  # the state that stands at a place
    place: Annotated[np.ndarray, "int32 [H, S]"]  # the place of a state, see the module's docstring
    begin: Annotated[np.ndarray, "int64 [H]"]  # first place of a stage
    end: Annotated[np.ndarray, "int64 [H]"]  # its end
    filled: Annotated[np.ndarray, "int64 [H]"]  # end of its entries
    choice: Annotated[np.ndarray, "int64 [H]"]  # what the rows of its model share
    mean: Annotated[np.ndarray, "float64 [H]"]  # mean value of all states, touched or not
    bound: Annotated[np.ndarray, "float64 [3]"]  # of values, of what follows a step, of the mean value
    reached: Annotated[np.ndarray, "int32 [P]"]  # scratch
    seen: Annotated[np.ndarray, "int32 [P]"]  # scratch
    known: Annotated[np.ndarray, "int32 [P]"]  # states in which the best policy of the last search is known
    n_known: Annotated[np.ndarray, "int64 [1]"]


class Unfolding(NamedTuple):
    """Where the rows of a lazy model come from, see :func:`bamdp.generators.trials.open_state`."""

    n_states: int
    rows: Rows
    space: Space
    models: LazyModels
    belief: BeliefArrays
    generator: RTDPState
    discount: float
    h: int


@dataclass
class LazyWorkspace:
    """Room for lazy models, which grows if what is touched does not fit."""

    arrays: LazyModels

    def grow(self) -> None:
        """Make four times the room. The models begin anew, the best policy of the last search stays."""
        models = self.arrays
        n_places, n_entries = 4 * len(models.state), 4 * len(models.rows.index)
        n_stages, n_states = models.place.shape
        fresh = _new_models(n_stages, n_states, models.space.allowed.shape[1], n_places, n_entries)
        fresh.known[: len(models.known)] = models.known
        self.arrays = fresh._replace(place=models.place, bound=models.bound, n_known=models.n_known)

    def set_bound(self, belief: Belief, discount: float) -> None:
        """Set the upper bounds that values start from, by what is known of rewards and ends."""
        ends = belief.space.terminal
        largest, later = value_bound(highest_reward(belief), discount, bool(ends.any()))
        self.arrays.bound[:] = largest, later, largest * (1.0 - float(ends.mean()))


def highest_reward(belief: Belief) -> float:
    """Return the highest reward that any model of a belief can have; infinite if there is none."""
    highest = float(belief.rewards.reward_range[1])
    return max(highest, 0.0) if belief.episodes.again else highest  # to begin again pays 0


def lazy_workspace_for(belief: Belief, n_stages: int, discount: float) -> LazyWorkspace:
    """Room for the models of a search with so many stages."""
    models = _new_models(n_stages, belief.n_states, belief.n_actions, PLACES, ENTRIES)
    workspace = LazyWorkspace(models)
    workspace.set_bound(belief, discount)
    return workspace


def _new_models(n_stages: int, n_states: int, n_actions: int, n_places: int, n_entries: int) -> LazyModels:
    rows = empty_rows(n_places * n_actions, n_entries)
    space = Space(np.zeros(n_places, bool), np.zeros((n_places, n_actions), bool))
    return zeros(LazyModels, P=n_places, H=n_stages, S=n_states, rows=rows, space=space)


# --- the policy of a model ----------------------------------------------------------------------------------------


@generic
def generate_lazily(G, models, belief, discount, h, s, rng):
    """Begin a model at stage ``h``, and look at it until its policy from state ``s`` is known; DONE or NO_ROOM."""


@generate_lazily.register(RTDPState)
def _real_time(G, models, belief, discount, h, s, rng):
    begin_model(models, belief, h, rng)
    start = place_of(models, belief, h, s)
    if start == NO_ROOM:
        return NO_ROOM
    n_states = belief.space.terminal.shape[0]
    source = Unfolding(n_states, models.rows, models.space, models, belief, G, discount, h)
    table = TrialTable(models.values, models.reached, models.seen)
    done, models.mean[h] = run_trials(source, discount, start, G, table, models.mean[h], rng)
    return NO_ROOM if done < 0 else DONE


@primitive
def lazy_action(G, models, belief, discount, h, s, rng):
    """The action of stage ``h``'s policy in state ``s``, greedy for its values; or NO_ROOM."""
    at = place_of(models, belief, h, s)
    if at == NO_ROOM:
        return NO_ROOM
    if models.action[at] == UNKNOWN:
        if draw_at(G, models, belief, discount, h, at, rng) == NO_ROOM:
            return NO_ROOM
        action = best_action(models.rows, models.space, discount, at, models.values, models.mean[h])[0]
        models.action[at] = action
    return np.int64(models.action[at])


@open_state.register(Unfolding)
def _draw_what_is_new(source, s, rng):
    G, models, belief = source.generator, source.models, source.belief
    return draw_at(G, models, belief, source.discount, source.h, s, rng) != NO_ROOM


@any_state.register(Unfolding)
def _any_place(source, rng):
    return place_of(source.models, source.belief, source.h, below(rng, source.n_states))


# --- what is drawn ------------------------------------------------------------------------------------------------


@primitive
def begin_model(models, belief, h, rng):
    """Begin a model at stage ``h``, of which nothing has been looked at."""
    models.begin[h] = models.end[h - 1] if h > 0 else 0
    models.end[h] = models.begin[h]
    models.filled[h] = models.filled[h - 1] if h > 0 else 0
    models.choice[h] = verbs.choose(belief.transitions, rng)
    models.mean[h] = models.bound[MEAN]


@primitive
def place_of(models, belief, h, s):
    """The place of state ``s`` at stage ``h``, a new one if it has none; or NO_ROOM."""
    at = np.int64(models.place[h, s])
    if models.begin[h] <= at < models.end[h] and models.state[at] == s:
        return at
    at = models.end[h]
    if at == models.state.shape[0]:
        return np.int64(NO_ROOM)
    models.end[h] = at + 1
    models.place[h, s] = at
    models.state[at] = s
    models.drawn[at] = NOT_DRAWN
    models.action[at] = UNKNOWN
    terminal = belief.space.terminal[s]
    models.space.terminal[at] = terminal
    models.values[at] = 0.0 if terminal else models.bound[LARGEST]
    return at


@primitive
def draw_at(G, models, belief, discount, h, at, rng):
    """Draw what a backup at a place needs, if it was not drawn before; DONE or NO_ROOM."""
    if models.drawn[at] == NOT_DRAWN and draw_rows(models, belief, h, at, rng) == NO_ROOM:
        return NO_ROOM
    if G.bound != RMAX and models.drawn[at] == ROWS:
        return draw_rows_ahead(models, belief, discount, h, at, rng)
    return DONE


@inner
def draw_rows(models, belief, h, at, rng):
    """Draw the rows of all actions at a place; DONE or NO_ROOM."""
    rows, choice = models.rows, models.choice[h]
    n_actions = belief.space.allowed.shape[1]
    s = np.int64(models.state[at])
    for a in range(n_actions):
        row = at * n_actions + a
        to = models.filled[h]
        models.space.allowed[at, a] = belief.space.allowed[s, a]
        if models.space.terminal[at] or not models.space.allowed[at, a]:
            skip_row(rows, row, to)
            continue
        end = sample_into(belief, choice, s * n_actions + a, rows, row, to, rng)
        if end == NO_ROOM:
            return NO_ROOM
        for i in range(to, end):
            place = place_of(models, belief, h, np.int64(rows.index[i]))
            if place == NO_ROOM:
                return NO_ROOM
            rows.index[i] = place
        models.filled[h] = end
    models.drawn[at] = ROWS
    return DONE


@inner
def draw_rows_ahead(models, belief, discount, h, at, rng):
    """Draw the rows of what a place leads to, and bound the values there by their own rewards; DONE or NO_ROOM."""
    rows, n_actions = models.rows, belief.space.allowed.shape[1]
    for row in range(at * n_actions, (at + 1) * n_actions):
        for i in range(rows.span[row, 0], rows.span[row, 1]):
            to = np.int64(rows.index[i])
            if models.drawn[to] != NOT_DRAWN or models.space.terminal[to]:
                continue
            if draw_rows(models, belief, h, to, rng) == NO_ROOM:
                return NO_ROOM
            own = -np.inf
            for a in range(n_actions):
                if models.space.allowed[to, a]:
                    own = max(own, rows.reward[to * n_actions + a])
            models.values[to] = min(models.bound[LARGEST], own + discount * models.bound[LATER])
    models.drawn[at] = ROWS_AHEAD
    return DONE
