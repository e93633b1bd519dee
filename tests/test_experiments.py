"""compare and tune by a call: the same studies as on the command line, for objects, too."""

from __future__ import annotations

import doctest
import json
from dataclasses import dataclass
from pathlib import Path

import gymnasium
import numpy as np
import pytest

import bamdp
from bamdp import experiments
from bamdp.cli import main
from bamdp.registry import text_of
from test_runs import Ring


def test_examples():
    assert doctest.testmod(experiments).failed == 0


def test_tune_is_the_command(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    grid = {"resample": ["step", 5], "prior.beta": [2, 6]}
    words = ["--grid", "resample=step,5", "prior.beta=2,6"]
    assert main(["tune", "chain", "thompson", *words, "--runs", "2", "--steps", "50", "--json"]) == 0
    found = bamdp.tune("chain", "thompson", grid, runs=2, steps=50)
    assert json.loads(capsys.readouterr().out)["chosen"] == found.chosen
    frame = found.to_frame()
    assert frame[frame.chosen].total_reward.item() == frame.total_reward.max()
    assert list(frame)[:2] == ["resample", "prior"]
    assert found.planner == bamdp.ThompsonSampling(resample=found.chosen["resample"])
    assert found.agent(seed=0).planner == found.planner


def test_nothing_is_left_in_the_working_directory_or_elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "t"))
    (tmp_path / "t").mkdir()
    found = bamdp.compare("chain", ["random"], runs=2, steps=20)
    assert found.rewards["random"].shape == (2, 20)
    assert list((tmp_path / "t").iterdir()) == []
    assert [path.name for path in tmp_path.iterdir()] == ["t"]


def test_a_store_keeps_runs_for_the_next_time(tmp_path):
    path = tmp_path / "runs.sqlite"
    bamdp.compare("chain", ["random"], runs=2, steps=20, store=path)
    before = path.stat().st_mtime_ns, Path(path).read_bytes()
    again = bamdp.compare("chain", ["random"], runs=2, steps=20, store=path)
    assert len(again.totals["random"]) == 2
    assert path.read_bytes() == before[1]
    with pytest.raises(ValueError, match="stored by names, and the environment has none"):
        bamdp.compare(Ring(), ["random"], runs=2, steps=20, store=path)


def test_objects_are_compared_on_several_processes_with_the_same_results():
    one, two = (
        bamdp.compare(
            Ring(), {"mine": bamdp.ThompsonSampling(), "none": "random"}, runs=3, steps=200, jobs=jobs
        )
        for jobs in (1, 2)
    )
    assert {label: totals.tolist() for label, totals in one.totals.items()} == {
        label: totals.tolist() for label, totals in two.totals.items()
    }
    assert one.best == "mine"
    assert one.optimum is None
    assert one.to_frame().groupby("planner").total_reward.mean().idxmax() == "mine"


def test_results_print_as_tables_for_terminals_and_notebooks():
    found = bamdp.compare("chain", ["thompson", "random"], runs=3, steps=40)
    assert "optimum, model known" in repr(found)
    assert "<table" in found._repr_html_()
    assert found.optimum == pytest.approx(bamdp.total_reward(bamdp.make_env("chain").mdp, 0, 40))


def test_pictures_of_results():
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    found = bamdp.compare("chain", ["thompson", "random"], runs=2, steps=40)
    assert {"thompson", "random"} <= set(found.plot().get_legend_handles_labels()[1])
    tuned = bamdp.tune("chain", "thompson", {"prior.beta": [2, 6], "resample": ["step", 5]}, runs=2, steps=30)
    assert (tuned.plot().get_xlabel(), tuned.plot("prior.beta").get_xlabel()) == ("resample", "prior.beta")
    with pytest.raises(ValueError, match="unknown parameter 'n_steps'"):
        tuned.plot("n_steps")
    pyplot.close("all")


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: bamdp.compare("chain", ["thompson", "thompson"]), "given twice"),
        (lambda: bamdp.compare("chain", []), "there is nothing to compare; name planners"),
        (lambda: bamdp.compare("chain", ["random"], runs=0), "runs must be at least 1"),
        (lambda: bamdp.compare("chain", ["tomson"]), "did you mean 'thompson'"),
        (lambda: bamdp.tune("chain", "thompson", {"resample": ["step"]}), "nothing to choose"),
        (lambda: bamdp.tune("chain", "thompson", {"resample": "step"}), "several values to choose from"),
        (lambda: bamdp.compare(Ring, ["fhts"], runs=1, steps=5), "FHTS enumerates"),
    ],
)
def test_what_is_wrong_is_said(call, words):
    with pytest.raises((ValueError, TypeError, RuntimeError), match=words):
        call()


LEARNER = "q-learning:initial=20"  # optimistic: it tries both actions


class Standing(gymnasium.Env):
    """Action 0 falls over and ends the episode, action 1 stands for another step, ten at most; every step pays 1."""

    observation_space = gymnasium.spaces.Discrete(11)
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.age = 0
        return self.age, {}

    def step(self, action):
        self.age += 1
        return self.age, 1.0, action == 0, self.age == 10, {}


def test_where_every_step_pays_the_same_returns_are_what_counts():
    found = bamdp.compare(Standing(), {"random": "random", "learner": LEARNER}, runs=3, steps=400)
    assert {total for totals in found.totals.values() for total in totals} == {400.0}
    assert found.best == "learner"
    assert "compared by the mean return of episodes" in " ".join(repr(found).split())
    assert found.plot().get_ylabel() == "return, last 10 episodes"
    assert found.group.runs.success.isna().all()


@pytest.mark.parametrize("method", ["grid", "halving"])
def test_where_every_step_pays_the_same_tuning_judges_by_returns(method):
    # of random play an episode has 2 steps on average, of a learner nearly 10
    found = bamdp.tune(Standing(), LEARNER, {"epsilon": [1.0, 0.1]}, runs=3, steps=400, method=method)
    assert found.chosen["epsilon"] == 0.1
    assert "mean return" in found.tables()[0].frame


def own_planner():
    """A planner of a class that only this function knows, as one that is defined in a notebook."""

    @dataclass(frozen=True, kw_only=True)
    class Curious(bamdp.Planner):
        bonus: float = 1.0

        def start(self, belief, discount):
            return np.zeros((belief.n_states, belief.n_actions))

        def plan(self, memory, belief, state, rng):
            values = [belief.expected_reward(state, a) - self.bonus * n for a, n in enumerate(memory[state])]
            action = int(np.argmax(values))
            return bamdp.Plan(action, values[action], bamdp.planners.base.candidates([0, 1], values))

        def learn(self, memory, belief, seen):
            memory[seen.s, seen.a] += 1

    return Curious()


OWN_PRIOR = bamdp.Dirichlet(alpha=np.full((5, 2), 0.2))


@pytest.mark.parametrize("jobs", [1, 2])
def test_objects_without_a_name_are_compared(jobs):
    own = own_planner()
    assert (text_of(own), text_of(OWN_PRIOR)) == (None, None)
    found = bamdp.compare("chain", [own, "random"], runs=2, steps=40, prior=OWN_PRIOR, jobs=jobs)
    expected = bamdp.run_many("chain", own, runs=2, steps=40, prior=OWN_PRIOR)
    assert found.totals["Curious(bonus=1.0)"].tolist() == expected.totals.tolist()


def test_objects_without_a_name_are_tuned():
    grid = {"bonus": [0.0, 2.0], "prior": [OWN_PRIOR, bamdp.SparseDirichlet()]}
    found = bamdp.tune("chain", own_planner(), grid, runs=2, steps=40)
    assert len(found.to_frame()) == 4
    assert found.planner.bonus == found.chosen["bonus"]
    assert found.agent(seed=0).planner == found.planner


def test_runs_of_objects_without_a_name_are_not_kept(tmp_path):
    with pytest.raises(ValueError, match="Curious has none"):
        bamdp.compare("chain", [own_planner()], runs=1, steps=5, store=tmp_path / "runs.sqlite")
