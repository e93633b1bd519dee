"""A prior of your own: every action has one outcome, which is unknown until it has been observed once.

Each row of the world leads to one state with certainty, a priori to each state with the same probability. So a row has
been observed, and is known, or it has not, and all outcomes are equally likely. The posterior is one number per row.

This file contains all that a new prior needs: the posterior as a NamedTuple of arrays, a declaration of what it can do,
five verbs as methods (``draw`` follows from ``probability``, but is faster this way), and a :class:`bamdp.Prior` that
creates it. It must be importable (not the script that is run), so that its compiled code can be cached on disk.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

import bamdp
from bamdp.extend import below, transition_posterior, verbs

UNSEEN = -1


@transition_posterior(independent_rows=True, learned=("outcome",))
class Outcomes(NamedTuple):
    """The posterior; all arrays but ``n_states`` are written to."""

    outcome: np.ndarray  # int64 [S*A]: where the row leads, or UNSEEN
    log: np.ndarray  # int64 [depth, 2]: (row, outcome before) of every push, so that it can be taken back
    top: np.ndarray  # int64 [1]: how many pushes there are
    n_states: int

    def draw(T, row, rng):
        return T.outcome[row] if T.outcome[row] != UNSEEN else below(rng, T.n_states)

    def push(T, row, s2):
        top = T.top[0]
        T.log[top, 0] = row
        T.log[top, 1] = T.outcome[row]
        T.top[0] = top + 1
        T.outcome[row] = s2

    def pop(T):
        T.top[0] -= 1
        T.outcome[T.log[T.top[0], 0]] = T.log[T.top[0], 1]

    def probability(T, row, s2):
        if T.outcome[row] == UNSEEN:
            return 1.0 / T.n_states
        return 1.0 if T.outcome[row] == s2 else 0.0

    def sample_row(T, choice, row, index, prob, at, rng):
        index[at] = verbs.draw(T, row, rng)
        prob[at] = 1.0
        return at + 1, 0.0


@dataclass(frozen=True)
class Deterministic(bamdp.Prior):
    """Every row leads to one unknown state."""

    def posterior(self, n_states: int, n_actions: int) -> Outcomes:
        unseen = np.full(n_states * n_actions, UNSEEN, np.int64)
        return Outcomes(unseen, np.zeros((16, 2), np.int64), np.zeros(1, np.int64), n_states)
