"""A prior of your own: every action has one outcome, which is unknown until it has been observed once.

Each row of the world leads to one state with certainty, a priori to each state with the same probability. So a row has
been observed, and is known, or it has not, and all outcomes are equally likely. The posterior is one number per row.

This file contains all that a new prior needs: the posterior as a NamedTuple of arrays, a declaration of what it can do
and an implementation of each verb of :mod:`bamdp.beliefs.verbs` that does not follow from others, and a
:class:`bamdp.Prior` that makes it. It must be importable (not the script that is run), so that its compiled code can be
cached on disk.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

import bamdp
from bamdp.extend import below, transition_posterior, verbs, with_room

UNSEEN = -1


@transition_posterior(independent_rows=True, learned=("outcome",))
class State(NamedTuple):
    """The posterior; all arrays but ``n_states`` are written to."""

    outcome: np.ndarray  # int64 [S*A]: where the row leads, or UNSEEN
    log: np.ndarray  # int64 [depth, 2]: (row, outcome before) of every push, so that it can be taken back
    top: np.ndarray  # int64 [1]: how many pushes there are
    n_states: int


@verbs.draw.register(State)
def _draw(T, row, rng):
    return T.outcome[row] if T.outcome[row] != UNSEEN else below(rng, T.n_states)


@verbs.push.register(State)
def _push(T, row, s2):
    top = T.top[0]
    T.log[top, 0] = row
    T.log[top, 1] = T.outcome[row]
    T.top[0] = top + 1
    T.outcome[row] = s2


@verbs.pop.register(State)
def _pop(T):
    T.top[0] -= 1
    T.outcome[T.log[T.top[0], 0]] = T.log[T.top[0], 1]


@verbs.commit.register(State)
def _commit(T, row):
    T.top[0] = 0


@verbs.probability.register(State)
def _probability(T, row, s2):
    if T.outcome[row] == UNSEEN:
        return 1.0 / T.n_states
    return 1.0 if T.outcome[row] == s2 else 0.0


@verbs.sample_row.register(State)
def _sample_row(T, choice, row, index, prob, at, rng):
    if at == index.shape[0]:
        return verbs.NO_ROOM, 0.0
    index[at] = verbs.draw(T, row, rng)
    prob[at] = 1.0
    return at + 1, 0.0


@verbs.mean_row.register(State)
def _mean_row(T, row, index, prob, at):
    if T.outcome[row] == UNSEEN:
        return at, 1.0  # no entries: all the mass is spread evenly
    if at == index.shape[0]:
        return verbs.NO_ROOM, 0.0
    index[at] = T.outcome[row]
    prob[at] = 1.0
    return at + 1, 0.0


@with_room.register(State)
def _with_room(T: State, depth: int) -> State:
    log = np.zeros((max(depth, len(T.log)), 2), np.int64)
    log[: len(T.log)] = T.log
    return T._replace(log=log)


@dataclass(frozen=True)
class Deterministic(bamdp.Prior):
    """Every row leads to one unknown state."""

    def state(self, n_states: int, n_actions: int) -> State:
        unseen = np.full(n_states * n_actions, UNSEEN, np.int64)
        return State(unseen, np.zeros((16, 2), np.int64), np.zeros(1, np.int64), n_states)
