"""Solve a model again that differs in few rows from one whose solution is known.

Where no row of a state has changed, and no value that its rows lead to, the Bellman equation holds as before. So a
queue holds the states whose rows have changed; a state is taken from it and its equation applied; if its value moves by
more than ``tol``, the states that lead to it (:class:`Links`) are queued in turn (Moore and Atkeson's prioritized
sweeping, 1993, without priorities). When the queue is empty, the equations hold within ``tol`` in all states, but for
the mass that rows spread evenly over all states (their background): its value stays that of the old average. The work
is that of the states whose values change, not that of the model.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bamdp._kernels.jit import inner, primitive
from bamdp._kernels.sweeps import average, best_action

NONE = -1  # the end of a list of links
BEGIN, LENGTH = range(2)  # places in StateQueue.ends


class Links(NamedTuple):
    """For each state a list of the states that lead to it."""

    newest: np.ndarray  # int32 [S]: the newest link to a state, or NONE
    older: np.ndarray  # int32 [capacity]: the next older link to the same state
    source: np.ndarray  # int32 [capacity]: the state that a link comes from
    target: np.ndarray  # int32 [capacity]: the state that it leads to
    number: np.ndarray  # int64 [1]


class StateQueue(NamedTuple):
    """States that wait, each of them once: first in, first out."""

    state: np.ndarray  # int32 [S]: a ring
    waits: np.ndarray  # bool [S]
    ends: np.ndarray  # int64 [2]: where the first one stands, and how many there are


def new_links(n_states: int, capacity: int) -> Links:
    """Return space for that many links."""
    older, source, target = (np.zeros(capacity, np.int32) for _ in range(3))
    return Links(np.full(n_states, NONE, np.int32), older, source, target, np.zeros(1, np.int64))


def new_queue(n_states: int) -> StateQueue:
    """Return an empty queue."""
    return StateQueue(np.zeros(n_states, np.int32), np.zeros(n_states, bool), np.zeros(2, np.int64))


@primitive
def add_link(links, source, target):
    """Note that ``source`` leads to ``target``, unless that is the newest link of ``target``."""
    newest = links.newest[target]
    if newest == NONE or links.source[newest] != source:
        at = links.number[0]
        links.older[at] = newest
        links.source[at] = source
        links.target[at] = target
        links.newest[target] = at
        links.number[0] = at + 1


@inner
def link_row(links, rows, row, source):
    """Note where a row of state ``source`` leads to."""
    for i in range(rows.span[row, 0], rows.span[row, 1]):
        add_link(links, source, rows.index[i])


@inner
def drop_links(links, number):
    """Forget all links but the oldest ``number`` of them."""
    for at in range(links.number[0] - 1, number - 1, -1):
        links.newest[links.target[at]] = links.older[at]
    links.number[0] = number


@primitive
def enqueue(queue, s):
    """Let a state wait, unless it does already."""
    if not queue.waits[s]:
        queue.waits[s] = True
        at = queue.ends[BEGIN] + queue.ends[LENGTH]
        if at >= queue.state.shape[0]:
            at -= queue.state.shape[0]
        queue.state[at] = s
        queue.ends[LENGTH] += 1


@primitive
def dequeue(queue):
    """Return the state that has waited longest."""
    s = np.int64(queue.state[queue.ends[BEGIN]])
    queue.waits[s] = False
    queue.ends[LENGTH] -= 1
    queue.ends[BEGIN] += 1
    if queue.ends[BEGIN] == queue.state.shape[0]:
        queue.ends[BEGIN] = 0
    return s


@inner
def solve_changes(rows, space, discount, tol, links, queue, most, solver):
    """Solve the equations of the waiting states, and of those that depend on them, until all hold within ``tol``.

    ``solver.values`` and ``solver.policy`` are the solution before the change, and afterwards the new one. Returns
    False, with an empty queue, if more than ``most`` values would have to be changed.
    """
    values = solver.values
    mean = average(values)
    while queue.ends[LENGTH] > 0:
        s = dequeue(queue)
        if space.terminal[s]:
            continue
        action, new = best_action(rows, space, discount, s, values, mean)
        solver.policy[s] = action
        if abs(new - values[s]) > tol:
            values[s] = new
            most -= 1
            if most < 0:
                while queue.ends[LENGTH] > 0:
                    dequeue(queue)
                return False
            link = links.newest[s]
            while link != NONE:
                enqueue(queue, links.source[link])
                link = links.older[link]
    return True
