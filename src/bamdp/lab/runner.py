"""Does what a study needs and the store does not have yet.

The driver takes runs from the :class:`~bamdp.lab.agenda.Agenda`, each claimed, hands them to a pool of processes
(or to a cluster) and commits each as it comes back. Cells advance independently, and whatever is killed, the same
command goes on from what was committed:

- If a worker dies, the runs at hand are done again, one at a time; one whose process has died three times, being
  alone, is recorded as failed.
- If the driver dies, its claims die with it.
- A run that another driver is at work on is waited for.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing, nullcontext

from bamdp.lab.agenda import Agenda
from bamdp.lab.collect import wanted
from bamdp.lab.protocol import Course
from bamdp.lab.store import Store
from bamdp.lab.study import Study
from bamdp.lab.units import DONE, work
from bamdp.processes import Pool, new_pool, stream

Count = Callable[[int], object]


def run_study(
    study: Study,
    store: Store,
    *,
    jobs: int = 1,
    pool: Pool | None = None,
    steps: Count = lambda n: None,
    more: Count = lambda n: None,
    retry_failed: bool = False,
) -> None:
    """Run what is missing, on ``jobs`` processes or on the pool given.

    Parameters
    ----------
    steps, more
        Are called with the number of steps just done, and with the number of steps that have become known to be needed.
        (A pool has its own way to tell of steps.)
    retry_failed
        Do runs again that have failed or were stopped, and decide again where they had a part in a decision.
    """
    if retry_failed:
        forget_failed(study, store)
    with store.claims.driving(), nullcontext(pool) if pool is not None else new_pool(jobs, steps) as workers:
        agenda = Agenda(study, store, more, steps)
        while agenda.wait():
            if jobs > 1:
                agenda.warm_up()
            with closing(stream(workers, work, agenda.take)) as results:
                for unit, outcome in results:
                    agenda.finish(unit, outcome)


def forget_failed(study: Study, store: Store) -> None:
    """Take all runs of a study that are not done out of the store, and the decisions of their cells."""
    for cell in study.cells:
        records = store.records(unit.id for part in wanted(study, cell) for unit in part.units)
        bad = [record.id for record in records.values() if record.status != DONE]
        if bad:
            store.forget(bad)
            store.undecide(Course(study, cell, store).key)
