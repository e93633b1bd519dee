"""Pools: results as they finish, progress, deaths."""

from __future__ import annotations

import os
import signal
import time
from concurrent.futures import Future

import pytest

from bamdp.processes import Pool, ProcessPool, WorkerDied, new_pool, stream


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
    with new_pool(jobs, told.append) as pool:
        found = dict(stream(pool, work, give(["a", "b", "bad", "c"])))
    assert {item: result[1] for item, result in found.items() if item != "bad"} == {
        "a": "a",
        "b": "b",
        "c": "c",
    }
    assert str(found["bad"]) == "bad item"
    assert sum(told) == 3 * 7 + 3
    assert ({result[0] for item, result in found.items() if item != "bad"} == {os.getpid()}) is (jobs == 1)


@pytest.mark.parametrize("jobs", [1, 2])
def test_items_may_come_of_results(jobs):
    queue = [1]
    with new_pool(jobs) as pool:
        for item, _ in stream(pool, work, lambda: queue.pop() if queue else None):
            if item < 40:
                queue.append(item + 13)
    assert item == 40


def test_items_are_asked_for_only_when_there_is_room():
    asked = []
    pool = ProcessPool(2)
    pool.submit = lambda work, item: Future()  # never done
    results = stream(pool, work, lambda: asked.append(1) or len(asked))
    pool.poll = lambda: results_end()

    def results_end():
        raise KeyboardInterrupt

    stopped = []
    pool.stop = lambda: stopped.append(1)
    with pytest.raises(KeyboardInterrupt):
        next(results)
    assert len(asked) == pool.capacity == 4
    assert stopped == [1]
    pool.__exit__()


def test_a_death_is_told_and_the_work_goes_on_with_new_workers():
    told = []
    lost, done = [], []
    queue = ["kill", *range(12)]
    with ProcessPool(2, told.append) as pool:
        for item, result in stream(pool, work, lambda: queue.pop(0) if queue else None):
            if isinstance(result, WorkerDied):
                lost.append((item, result.begun))
                if item != "kill":
                    queue.append(item)
            else:
                done.append(item)
    assert ("kill", True) in lost
    assert sorted(done) == list(range(12))
    assert sum(told) == 12 * 7  # what was lost was taken back


def test_work_here_is_done_in_this_process():
    assert type(new_pool(1)) is Pool
    with new_pool(2) as pool:
        assert isinstance(pool, ProcessPool)


def test_a_dying_worker_ends_a_batch_of_replicates_with_an_error():
    with ProcessPool(2) as pool:
        outcomes = [result for _, result in stream(pool, work, give(["kill"]))]
    assert isinstance(outcomes[0], RuntimeError)
    assert "worker process died" in str(outcomes[0])
