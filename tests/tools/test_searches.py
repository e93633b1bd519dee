"""Several searches as one result, against simulations with their error rates."""

from __future__ import annotations

import doctest
import sys

import numpy as np
import pytest
from lab_samples import sample
from searches import over_searches, pooled, searches

from bamdp.lab.results import Results


def search(totals, number, algorithm="dss-pi", **other):
    """Search ``number``, from 0, on replicates of its own."""
    first = number * len(totals)
    return sample(
        totals,
        algorithm=f"{algorithm}#{number + 1}",
        replicates=np.arange(first, first + len(totals)),
        **other,
    )


@pytest.mark.parametrize(("between", "least"), [(0.0, 0.93), (3.0, 0.93)])
def test_the_interval_covers_the_mean_over_searches(between, least):
    """1000 times three searches of 20 runs; nominal 95 %, and a standard error of 0.7 %."""
    rng = np.random.default_rng(8)
    inside = plain = 0
    for _ in range(1000):
        found = [search(10.0 + between * rng.normal() + rng.normal(size=20), d) for d in range(3)]
        interval = over_searches(found)
        inside += interval.low <= 10.0 <= interval.high
        totals = np.concatenate([one.totals for one in found])
        half = 2.0 * totals.std(ddof=1) / np.sqrt(len(totals))  # as if all runs had one configuration
        plain += abs(totals.mean() - 10.0) <= half
    assert inside / 1000 >= least
    if between:
        assert plain / 1000 < 0.6  # which is why searches have to count


def test_one_search_has_no_interval():
    alone = over_searches([search(np.array([1.0, 3.0]), 0)])
    assert alone.value == 2.0
    assert np.isnan(alone.low)


def test_searches_are_pooled_where_all_are_complete():
    rng = np.random.default_rng(0)
    ready = [search(rng.normal(size=5), d, asked=5) for d in range(3)]
    short = [search(rng.normal(size=5), d, "beb", asked=9 if d == 2 else 5) for d in range(3)]
    results = Results("t", (*ready, *short), {})
    assert {name: len(found) for name, found in searches(results, "chain").items()} == {"dss-pi": 3, "beb": 2}
    (one,) = pooled(results, 3).samples
    assert (one.algorithm, one.runs, one.asked) == ("dss-pi", 15, 15)
    assert one.replicates.tolist() == list(range(15))
    assert one.totals.tolist() == [x for s in ready for x in s.totals]


def test_configurations_that_searches_have_in_common_are_kept():
    found = [search(np.zeros(2), d, configuration={"n_steps": 5 * d, "discount": 0.9}) for d in range(2)]
    assert pooled(Results("t", tuple(found), {}), 2).samples[0].configuration == {"discount": 0.9}


def test_examples():
    assert doctest.testmod(sys.modules[searches.__module__]).failed == 0
