"""Pools: results as they finish, progress, deaths."""

from __future__ import annotations

import os
import signal
import time

import pytest

from bamdp.processes import Pool, WorkerDied, stream


def work(item, tick):
    tick(3)
    if item == "bad":
        raise ValueError("bad item")
    if item == "kill":
        time.sleep(0.2)
        os.kill(os.getpid(), signal.SIGKILL)
    tick(4)
    return os.getpid(), item


def give(items):
    left = iter(items)
    return lambda: next(left, None)


@pytest.mark.parametrize("jobs", [1, 2])
def test_every_item_comes_back_with_its_result_or_its_error(jobs):
    told = []
    with Pool(jobs, told.append) as pool:
        found = dict(stream(pool, work, give(["a", "b", "bad", "c"])))
    good = {item: result for item, result in found.items() if item != "bad"}
    assert all(result[1] == item for item, result in good.items())
    assert ({result[0] for result in good.values()} == {os.getpid()}) is (jobs == 1)
    assert str(found["bad"]) == "bad item"
    assert sum(told) in (3 * 7, 3 * 7 + 3)  # steps of what failed are told by this process only


def test_a_death_is_told_and_the_work_goes_on_with_new_workers():
    lost, done = [], []
    queue = ["kill", *range(6)]
    with Pool(2) as pool:
        for item, result in stream(pool, work, lambda: queue.pop(0) if queue else None):
            if isinstance(result, WorkerDied):
                lost.append(item)
                if item != "kill":
                    queue.append(item)
            else:
                done.append(item)
    assert "kill" in lost
    assert sorted(done) == list(range(6))
