"""The study of regrets at discounts of 0.9 and more: exact values, and data that can be made again."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest

import bamdp
from bamdp.theory import bayes_loss

ROOT = Path(__file__).resolve().parents[2]
SPEC = importlib.util.spec_from_file_location("bayes_regrets", ROOT / "benchmarks" / "bayes_regrets.py")
study = importlib.util.module_from_spec(SPEC)
sys.modules[SPEC.name] = study  # where dataclasses look for it
SPEC.loader.exec_module(study)
ROWS = study.read(ROOT / "docs" / "data" / "bayes-regrets.csv")
ARM = study.Coin(0, (0, 1.0), (0, 0.0))


@pytest.mark.parametrize(("discount", "index"), [(0.9, 0.7029), (0.95, 0.7614)])
def test_an_arm_is_worth_its_gittins_index(discount, index):
    """His table has four digits for an arm that nothing is known of: if a safe arm pays as much, either is best."""
    exact = study.Exact(study.CoinWorld(((ARM, (0, index)),), 120), discount)
    assert exact.q(0, 0, (0, 0)) * (1 - discount) == pytest.approx(index, abs=5e-5)
    below = study.Exact(study.CoinWorld(((ARM, (0, index - 0.01)),), 120), discount)
    assert below.q(0, 0, (0, 0)) > below.q(0, 1, (0, 0))


def test_small_discounts_agree_with_exhaustive_search():
    """At γ = 0.5 what lies beyond ten steps is worth less than 0.002."""
    exact = study.Exact(study.ARMS, 0.5, depth=20)
    agent = study.ARMS.agent(bamdp.FHTS(10), 0.5, 0)
    assert exact.values[0, 0, 0, 0, 0] == pytest.approx(agent.plan(0).value, abs=0.002)


def test_losses_agree_with_those_of_the_library():
    """The same planner, measured by another road: 10 steps of a bandit at γ = 0.5, 4 standard errors of both."""
    planner = bamdp.ThompsonSampling()
    name = "two arms at 0.5"
    study.WORLDS[name] = (study.CoinWorld(study.ARMS.rows, 14, bandit=True), 0.5)
    try:
        seeds = np.random.SeedSequence(1).spawn(150)
        mine = np.array([study.one_loss(name, planner, seed)[0] for seed in seeds])
    finally:
        del study.WORLDS[name]
    make = lambda seed: study.ARMS.agent(planner, 0.5, seed)
    other = bayes_loss(make, 8, runs=150, seed=2)
    noise = 4 * np.hypot(mine.std() / np.sqrt(len(mine)), other.standard_error)
    assert abs(mine.mean() - other.mean) < noise + 0.004  # what is left beyond 8 steps


def test_losses_go_on_when_the_counts_have_run_out():
    """Random play earns 1/2 a step, so its loss is known; with 4 observations 0.9^4 = 66 % of the weight is left."""
    name, discount = "two arms, 4 observations", 0.9
    study.WORLDS[name] = (study.CoinWorld(study.ARMS.rows, 4, bandit=True), discount)
    try:
        seeds = np.random.SeedSequence(3).spawn(400)
        losses = np.array([study.one_loss(name, bamdp.Random(), seed)[0] for seed in seeds])
        known = study.solved(name).values[0, 0, 0, 0, 0] - 0.5 / (1 - discount)
    finally:
        del study.WORLDS[name]
    noise = 4 * losses.std() / np.sqrt(len(losses))
    assert abs(losses.mean() - known) < noise + study.NEGLIGIBLE / (1 - discount)
    assert noise < 0.3 * known  # half of the loss, or less, would be noticed


def test_the_worlds_are_solved_deep_enough():
    for row in ROWS:
        assert row["truncation"] < 1e-3 * row["value"]


def test_every_planner_is_in_the_data():
    assert {(r["world"], r["planner"]) for r in ROWS} == {
        (w, p) for w in study.WORLDS for p in study.PLANNERS
    }


def test_a_row_can_be_made_again():
    (old,) = [r for r in ROWS if (r["world"], r["planner"]) == ("chain of 2", "bayes-greedy")]
    new = study.measure("chain of 2", "bayes-greedy", runs=int(old["runs"]))
    assert float(new["value"]) == pytest.approx(old["value"], abs=1e-5)
    assert float(new["loss"]) == pytest.approx(old["loss"], rel=1e-3)


def test_the_table_of_the_page_is_that_of_the_data():
    page = (ROOT / "docs" / "theory.md").read_text(encoding="utf-8")
    assert study.table(ROWS) in page, "run benchmarks/bayes_regrets.py --table and put it on the page"


def test_greed_loses_where_exploring_pays():
    greedy = {r["world"]: r["share"] for r in ROWS if r["planner"] == "bayes-greedy"}
    assert greedy["chain of 3"] > 0.2
    assert greedy["chain of 2"] > 0.05
