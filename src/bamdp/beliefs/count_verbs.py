"""The verbs of posteriors that keep what they have seen in :class:`~bamdp.beliefs.counts.Counts`, field ``counts``."""

from __future__ import annotations

from typing import Any

from bamdp.beliefs import verbs
from bamdp.beliefs.base import with_room
from bamdp.beliefs.counts import commit_count, pop_count, push_count, with_count_room


def _choose(T, rng):
    return 0


def _push(T, row, s2):
    push_count(T.counts, row, s2)


def _pop(T):
    pop_count(T.counts)


def _commit(T, row):
    commit_count(T.counts, row)


def _with_room(T: Any, depth: int) -> Any:
    return T._replace(counts=with_count_room(T.counts, depth))


def register_count_verbs(state: type) -> None:
    """Let a NamedTuple with a field ``counts`` answer choose, push, pop, commit and ``with_room``."""
    verbs.choose.register(state)(_choose)
    verbs.push.register(state)(_push)
    verbs.pop.register(state)(_pop)
    verbs.commit.register(state)(_commit)
    with_room.register(state)(_with_room)
