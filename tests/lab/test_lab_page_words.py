"""Sentences and small tables of the page, each against results that were made up so that it must say just that."""

from __future__ import annotations

import re

import numpy as np
import pytest
from lab_samples import CEILINGS, sample

from bamdp.ceilings import Ceilings
from bamdp.lab.papers.evidence import Evidence
from bamdp.lab.papers.headlines import headlines
from bamdp.lab.papers.page import sections
from bamdp.lab.papers.verdicts import reward_targets
from bamdp.lab.papers.words import choices_of_shapes, ranking, stuck
from bamdp.lab.results import Results
from bamdp.lab.tables import tuning_times

LUCK = np.random.default_rng(0).normal(size=40)


def evaluated(environment, algorithm, mean, spread=1.0, own=0.01, **other):
    """Forty whole runs around a mean, with the luck that all share and a little of one's own."""
    mine = own * np.random.default_rng([len(algorithm), int(mean)]).normal(size=len(LUCK))
    totals = mean + spread * (LUCK - LUCK.mean()) + mine - mine.mean()
    return sample(totals, environment, algorithm, chosen=True, asked=40, **other)


def shown(published=(), fair=()):
    """As if these were all the runs there are."""
    held = {"dss2020/published": published, "dss2020/fair": fair}
    return Evidence({name: Results(name, tuple(s), CEILINGS) for name, s in held.items() if s}, "")


def test_the_page_begins_with_what_it_comes_to():
    published = [evaluated("chain", "dss-pi", 300.0), evaluated("chain", "sboss", 351.0, spread=30.0)]
    fair = [
        evaluated(place, name, mean)
        for place, means in {"chain": (390.0, 380.0, 385.0), "grid5": (70.0, 71.0, 80.0)}.items()
        for name, mean in zip(("dss-pi", "dss-rtdp", "sboss"), means)
    ]
    first, second, third, fourth = headlines(shown(published, fair))
    assert first == (
        "With the paper's own parameters, beside its Table 1: of 1 entries of DSS, 0 in agreement, 0 better here, 1 "
        "worse; of 1 entries of its rivals, 1 in agreement, 0 better here, 0 worse."
    )
    assert "sboss has the highest normalised score" in second
    assert "in chain dss-pi +5.0 [+5.0 to +5.0] against sboss, ahead; " in third
    assert "in grid5 dss-rtdp -9.0 [-9.0 to -9.0] against sboss, behind." in third
    assert fourth == (
        "Of the 5 targets for tuned DSS, 1 were met; a step was to be 10 times as fast as the paper's, and is in 0 of "
        "1 cases."
    )


def test_rivals_that_cannot_be_told_apart_are_said_to_be_so():
    alike = [evaluated("chain", "dss-pi", 380.0, own=20.0), evaluated("chain", "bamcp", 381.0, own=20.0)]
    (line,) = [line for line in headlines(shown(fair=alike)) if "rivals" in line]
    assert line.endswith("against bamcp, not distinguishable.")


def test_without_any_run_there_is_nothing_to_begin_with():
    assert headlines(shown()) == []
    assert sections(shown(), ())["summary"] == "*Not run yet.*"


@pytest.mark.parametrize(
    ("mean", "spread", "word"),
    [
        (380.0, 1.0, "met"),
        (371.0, 30.0, "met, narrowly"),
        (369.0, 30.0, "missed, narrowly"),
        (300.0, 1.0, "missed"),
    ],
)
def test_a_target_within_the_interval_is_met_or_missed_narrowly(mean, spread, word):
    table = reward_targets(shown(fair=[evaluated("chain", "dss-pi", mean, spread)]))
    assert [row[-1].text for row in table.rows] == [word] + 4 * ["not run yet"]


def test_runs_below_random_play_are_counted():
    floor = CEILINGS["grid5"].random
    held = [sample([floor - 1.0, floor, 70.0], "grid5", "rmax"), sample([80.0] * 3, "grid5", "beb")]
    assert stuck(Results("t", tuple(held), CEILINGS)) == [
        "Runs with less than random play earns on average: rmax in grid5, 1 of 3."
    ]
    assert stuck(Results("t", tuple(held[1:]), CEILINGS)) == []


def test_what_dss_chose_is_counted_and_the_largest_on_offer_is_marked():
    shape = lambda n, h, leaf: {"n_policies": n, "n_stages": h, "leaf": leaf}
    tried = [sample([1.0], "grid5", "dss-pi", phase="tune", configuration=shape(n, h, "zero"))
             for n in (2, 8) for h in (1, 2)]  # fmt: skip
    took = [
        sample([1.0], place, "dss-pi", chosen=True, configuration=shape(8, 1, leaf))
        for place, leaf in (("grid5", "mean"), ("chain", "zero"))
    ]
    assert choices_of_shapes(Results("t", (*tried, *took))) == [
        "Of 2 cells of DSS: n_policies = 8 in 2 (the largest on offer); n_stages = 1 in 2; leaf = mean in 1, zero in 1."
    ]


def test_minutes_of_tuning_are_summed_over_configurations():
    tune = lambda name, seconds: sample(
        [1.0, 2.0], "grid5", name, phase="tune", cpu_seconds=np.full(2, seconds), configuration={"x": seconds}
    )
    held = (tune("beb", 30.0), tune("beb", 60.0), sample([1.0], "grid5", "random"))
    table = tuning_times(Results("t", held))
    assert [[cell.text for cell in row] for row in table.rows] == [["beb", "3.00"], ["random", "–"]]


def test_runs_that_sweeps_share_are_counted_once():
    same = {"n_policies": 4}
    held = (
        sample([1.0, 2.0], "grid5", "N", configuration=same),
        sample(
            [1.0, 2.0], "grid5", "leaf", configuration={**same, "leaf": "zero"}
        ),  # N leaves it to the planner
        sample([3.0], "grid5", "leaf", configuration={**same, "leaf": "mean"}),
    )
    found = sections(Evidence({"dss2020/ablation": Results("t", held)}, ""), ())["state"]
    assert "| dss2020/ablation | 0 of 0 | 3 |" in found


RANKED = ("dss-pi", "thompson", "beb")


@pytest.mark.parametrize(
    ("names", "sentence"),
    [
        (
            RANKED[1:2],
            r"Only thompson is complete in all environments: normalised score \(IQM\) 0\.\d+ \[.*\], mean 0\.\d+\.",
        ),
        (
            RANKED[1:],
            r"Of the 2 .*, thompson has the highest .* \(IQM 0\.\d+ \[.*\], mean 0\.\d+\), followed by beb\.",
        ),
        (
            RANKED,
            r"Of the 3 .*, dss-pi has the highest .*, followed by thompson and beb; dss-pi is number 1\.",
        ),
    ],
)
def test_the_ranking_is_a_sentence_however_few_there_are(names, sentence):
    held = [
        sample([300.0 - 9 * RANKED.index(name) + r for r in range(4)], place, name)
        for place in ("chain", "double_loop")
        for name in names
    ]
    known = dict.fromkeys(("chain", "double_loop"), Ceilings(1.0, None, 400.0, 390.0, 100.0, 0.95))
    first, *_ = ranking(Results("t", tuple(held), known))
    assert re.fullmatch(sentence, first), first
