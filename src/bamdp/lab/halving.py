"""Successive halving (Jamieson & Talwalkar 2016) under a budget of processor time.

Of n configurations there are R = ⌈log n / log(1/keep)⌉ rounds, k = 0 .. R−1; after each, the best share ``keep`` of
those that are left goes on, after the last one the best. Runs of earlier rounds count if they were of the same
horizon: with ``screening``, all rounds but the last have shorter runs.

- Without a budget, round k ends when each has ⌈runs·keep^(R−1−k)⌉ replicates, the last one thus with ``runs``.
- With a budget of B processor seconds, a round has an equal share of what is left of B, and in it each configuration an
  equal part: it is run as often as fits, judged by what its runs took so far, once at least and ``runs`` times at most;
  what the quick ones leave over is for the others. So slow configurations do not eat the time of quick ones. One that
  needs more than 2B/n for a run of the first round (later as much for each step) is stopped and excluded; with so small
  a budget that nobody keeps to it, all are.

Means of few runs are mostly luck, and the highest of many such means is luck above all. So those with unequal numbers
of runs are compared by means drawn towards the common one, the more the fewer their runs (:func:`credible`).

What a round came to is stored, its costs included.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from bamdp.lab.protocol import Batch, Course, Scores, by_text
from bamdp.lab.study import Tuning


def halving(course: Course, tuning: Tuning, key: str) -> Iterator[Batch]:
    """The batches of a cell, and in the end ``course.chosen``."""
    left: Sequence[int] = range(len(course.cell.configurations))
    rounds = n_rounds(len(left), tuning.keep)
    screened = any(cell.horizon(short=True) < cell.place.steps for cell in course.cells)
    budget = _budget(course)
    have: dict[
        bool, dict[int, int]
    ] = {}  # replicates of those that are left, of short runs and of whole ones
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
            going = {number: have.get(short, {}).get(number, 0) for number in left}
            paid = have.get(True, {}) if not short else {}
            facts = yield from _round(course, going, paid, short, goal, share, size)
            decision = course.store.decide(key, k, facts)
        left = decision["kept"]
        have[short] = {int(number): n for number, n in decision["replicates"].items()}
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


def credible(scores: Scores) -> dict[int, float]:
    """Means drawn towards the common one, as an estimate of what each would come to in the long run.

    By empirical Bayes: runs of a configuration vary with variance s² (pooled) around its own mean, these with variance
    τ² around the common one, so the mean of n runs counts τ²/(τ² + s²/n), and the common mean the rest. Nothing is
    changed where no configuration has two runs, and no order is where all have the same number.

    Examples
    --------
    >>> runs = {0: np.array([9.0]), 1: np.array([7.0, 10.0, 8.0, 10.0]), 2: np.array([4.0, 7.0, 6.0, 6.5])}
    >>> {number: round(value, 1) for number, value in credible(runs).items()}
    {0: 8.4, 1: 8.5, 2: 6.2}
    """
    means = {number: float(np.mean(values)) for number, values in scores.items()}
    free = sum(len(values) - 1 for values in scores.values())
    if free == 0 or len(means) < 2:
        return means
    within = sum(float(((v - np.mean(v)) ** 2).sum()) for v in scores.values()) / free
    noise = {number: within / len(values) for number, values in scores.items()}
    between = max(float(np.var(list(means.values()), ddof=1)) - float(np.mean(list(noise.values()))), 0.0)
    if between == 0.0:  # nothing but luck: the more runs say the same, the more it counts
        between = 1e-3 * within
    if within == 0.0:
        return means
    weight = {number: 1.0 / (between + noise[number]) for number in means}
    common = sum(weight[n] * means[n] for n in means) / sum(weight.values())
    return {n: common + between * weight[n] * (means[n] - common) for n in means}


def _round(
    course: Course,
    have: Mapping[int, int],
    paid: Mapping[int, int],
    short: bool,
    goal: int,
    share: float,
    size: int,
) -> Generator[Batch, None, Mapping[str, Any]]:
    """Batches until everyone has reached the goal or used up its part; then what is to be stored.

    ``paid`` are the replicates of short runs: where cells choose together and some are not screened, a short run is a
    whole one there, and has its cost in an earlier round.
    """
    have, begun = dict(have), dict(have)
    spent = dict.fromkeys(have, 0.0)
    before = {unit.id for n in have for unit in course.trials(n, range(paid.get(n, 0)), short=True)}
    scores = course.judge({n: runs for n, runs in have.items() if runs}, short)
    while True:
        more = _more(have, begun, spent, goal, share)
        more = {n: runs for n, runs in more.items() if n not in course.excluded}
        if not more:
            break
        batch = {n: course.trials(n, range(have[n], have[n] + runs), short) for n, runs in more.items()}
        yield [unit for units in batch.values() for unit in units]
        for n, units in batch.items():
            have[n] += more[n]
            new = (unit.id for unit in units if unit.id not in before)
            spent[n] += sum(record.cpu_seconds for record in course.store.records(new).values())
        scores |= course.judge({n: have[n] for n in batch}, short)
    scores = {n: values for n, values in scores.items() if n not in course.excluded}
    judged = credible(scores)
    ranked = sorted(judged, key=lambda number: (-judged[number], number))
    return {
        "kept": ranked[:size],
        "replicates": {str(n): have[n] for n in ranked},
        "steps": course.cell.horizon(short),
        "excluded": by_text(course.excluded),
        "cost": sum(spent.values()),
    }


def _more(
    have: Mapping[int, int], begun: Mapping[int, int], spent: Mapping[int, float], goal: int, share: float
) -> dict[int, int]:
    """How many runs each shall have next: one at first, then what its part affords, at most as many again."""
    open_ones = [n for n in have if have[n] < goal]
    done = sum(spent[n] for n in have if n not in open_ones)
    part = max(share - done, 0.0) / max(len(open_ones), 1)
    more = {}
    for n in open_ones:
        new = have[n] - begun[n]
        if new == 0:
            more[n] = 1
            continue
        price = spent[n] / new
        affords = goal if price <= 0.0 or math.isinf(part) else int((part - spent[n]) / price)
        runs = min(goal - have[n], new, affords)
        if runs > 0:
            more[n] = runs
    return more


def _budget(course: Course) -> float | None:
    """Of all cells that choose together."""
    budgets = [cell.tuning.budget for cell in course.cells if cell.tuning is not None]
    known = [budget for budget in budgets if budget is not None]
    return sum(known) if len(known) == len(budgets) else None
