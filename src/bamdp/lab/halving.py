"""Successive halving (Jamieson & Talwalkar 2016) under a budget of processor time.

Of n configurations there are R = ⌈log n / log(1/keep)⌉ rounds, k = 0 .. R−1; after each, the best share ``keep`` of
those that are left goes on, after the last one the best. A round runs all that are left replicate by replicate (a
*wave*), and runs of earlier rounds count if they were of the same horizon: with ``screening``, all rounds but the
last have shorter runs.

- Without a budget, round k ends when each has ⌈runs·keep^(R−1−k)⌉ replicates, the last one thus with ``runs``.
- With a budget of B processor seconds, it ends when the next wave, judged by the last, would not fit into an equal
  share of what is left of B; or with ``runs`` replicates. A round has at least one wave. So that no slow configuration
  eats the others' part, each has 2B/n for a run of the first round, and later as much for each step: one that needs
  more is stopped and excluded. With so small a budget that nobody keeps to it, all are excluded.

What a round came to is stored, its costs included.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Iterator, Mapping, Sequence
from typing import Any

from bamdp.lab.protocol import Batch, Course, by_text
from bamdp.lab.study import Tuning


def halving(course: Course, tuning: Tuning, key: str) -> Iterator[Batch]:
    """The batches of a cell, and in the end ``course.chosen``."""
    left: Sequence[int] = range(len(course.cell.configurations))
    rounds = n_rounds(len(left), tuning.keep)
    screened = any(cell.horizon(short=True) < cell.place.steps for cell in course.cells)
    budget = _budget(course)
    have: dict[bool, int] = {}  # replicates of those that are left, of short runs and of whole ones
    spent = 0.0
    for k in range(rounds):
        last = k == rounds - 1
        short = screened and not last
        decision = course.store.decisions(key).get(k)
        if decision is None:
            goal, share = tuning.runs, math.inf
            if budget is None:
                goal = math.ceil(round(tuning.runs * tuning.keep ** (rounds - 1 - k), 9))
            else:
                share = max(budget - spent, 0.0) / (rounds - k)
            size = 1 if last else math.ceil(len(left) * tuning.keep)
            facts = yield from _round(course, left, short, have.get(short, 0), goal, share, size)
            decision = course.store.decide(key, k, facts)
        left, have[short] = decision["kept"], decision["replicates"]
        course.excluded = {int(number): why for number, why in decision["excluded"].items()}
        spent += decision["cost"]
    course.chosen = left[0] if left else None


def n_rounds(n: int, keep: float) -> int:
    """How often a share must be kept until one is left.

    Examples
    --------
    >>> n_rounds(48, 1 / 3), n_rounds(9, 1 / 3), n_rounds(8, 0.5)
    (4, 2, 3)
    """
    return max(1, math.ceil(round(math.log(n) / -math.log(keep), 9)))


def _round(
    course: Course, left: Sequence[int], short: bool, have: int, goal: int, share: float, size: int
) -> Generator[Batch, None, Mapping[str, Any]]:
    """Waves until the goal is reached or the share used up; then what is to be stored."""
    cost, price = 0.0, 0.0
    scores = course.judge(left, have, short) if have else dict.fromkeys(left, 0.0)
    waves = 0
    while scores and (have < goal and (waves == 0 or cost + price <= share)):
        wave = [unit for n in scores for unit in course.trials(n, range(have, have + 1), short)]
        yield wave
        waves, have = waves + 1, have + 1
        price = sum(record.cpu_seconds for record in course.store.records(u.id for u in wave).values())
        cost += price
        scores = course.judge(list(scores), have, short)
    ranked = sorted(scores, key=lambda number: (-scores[number], number))
    return {
        "kept": ranked[:size],
        "replicates": have,
        "steps": course.cell.horizon(short),
        "excluded": by_text(course.excluded),
        "cost": cost,
    }


def _budget(course: Course) -> float | None:
    """Of all cells that choose together."""
    budgets = [cell.tuning.budget for cell in course.cells if cell.tuning is not None]
    known = [budget for budget in budgets if budget is not None]
    return sum(known) if len(known) == len(budgets) else None
