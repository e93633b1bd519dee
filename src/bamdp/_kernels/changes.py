"""Incremental solution of a model that differs in only a few rows from a model already solved.

If neither a state's rows nor the values of its successors have changed, its Bellman equation still holds. A queue
therefore contains the states whose rows have changed. Each state is removed from the queue and its equation applied; if
its value changes by more than ``tol``, its predecessors (:class:`Links`) are queued in turn (prioritized sweeping,
Moore and Atkeson 1993, without priorities). When the queue is empty, the equations hold within ``tol`` in all states,
except that the background mass of rows, which is spread evenly over all states, is still valued at the old average. The
cost depends on the number of states whose values change, not on the size of the model.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bamdp._kernels.jit import inner, primitive
from bamdp._kernels.rows import average, best_action

NONE = -1  # end of a list of links
BEGIN, LENGTH = range(2)  # indices into StateQueue.ends


class Links(NamedTuple):
    """Linked lists of the predecessors of each state."""

    newest: np.ndarray  # int32 [S]: newest link to each state, or NONE
    older: np.ndarray  # int32 [capacity]: the next older link to the same state
    source: np.ndarray  # int32 [capacity]: the state in which a link starts
    target: np.ndarray  # int32 [capacity]: the state to which it leads
    number: np.ndarray  # int64 [1]


class StateQueue(NamedTuple):
    """First-in, first-out queue of distinct states."""

    state: np.ndarray  # int32 [S]: ring buffer
    waits: np.ndarray  # bool [S]
    ends: np.ndarray  # int64 [2]: position of the first state, and number of states


def new_links(n_states: int, capacity: int) -> Links:
    """Return empty lists with room for ``capacity`` links."""
    older, source, target = (np.zeros(capacity, np.int32) for _ in range(3))
    return Links(np.full(n_states, NONE, np.int32), older, source, target, np.zeros(1, np.int64))


def new_queue(n_states: int) -> StateQueue:
    """Return an empty queue."""
    return StateQueue(np.zeros(n_states, np.int32), np.zeros(n_states, bool), np.zeros(2, np.int64))


@primitive
def add_link(links, source, target):
    """Add a link from ``source`` to ``target``, unless it is already the newest link of ``target``."""
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
    """Add links from state ``source`` to the successors in a row."""
    for i in range(rows.span[row, 0], rows.span[row, 1]):
        add_link(links, source, rows.index[i])


@inner
def drop_links(links, number):
    """Remove all but the oldest ``number`` links."""
    for at in range(links.number[0] - 1, number - 1, -1):
        links.newest[links.target[at]] = links.older[at]
    links.number[0] = number


@primitive
def enqueue(queue, s):
    """Add a state to the queue unless it is already there."""
    if not queue.waits[s]:
        queue.waits[s] = True
        at = queue.ends[BEGIN] + queue.ends[LENGTH]
        if at >= queue.state.shape[0]:
            at -= queue.state.shape[0]
        queue.state[at] = s
        queue.ends[LENGTH] += 1


@primitive
def dequeue(queue):
    """Remove and return the first state in the queue."""
    s = np.int64(queue.state[queue.ends[BEGIN]])
    queue.waits[s] = False
    queue.ends[LENGTH] -= 1
    queue.ends[BEGIN] += 1
    if queue.ends[BEGIN] == queue.state.shape[0]:
        queue.ends[BEGIN] = 0
    return s


@inner
def solve_changes(rows, space, discount, tol, links, queue, most, solver):
    """Apply the equations of queued states, and of those that depend on them, until all hold within ``tol``.

    ``solver.values`` and ``solver.policy`` contain the old solution and are updated to the new one. Return False and
    empty the queue if more than ``most`` values would have to change.
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
