"""The deep-sea comparison: its study, how bad episodes are counted, its tables and figure."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from matplotlib.text import Text

from bamdp.cli import main
from bamdp.envs import make_env
from bamdp.lab.collect import collect_results
from bamdp.lab.exports import open_exports
from bamdp.lab.papers import TARGETS, paper_study
from bamdp.lab.papers.deep_sea import bad_episodes, cumulative_bad_episodes, total_bad_episodes
from bamdp.lab.papers.paper_tables import paper_numbers
from bamdp.lab.runner import run_study
from bamdp.lab.store import Store
from bamdp.lab.units import environment_seed, setting_facts
from bamdp.runs import play

ROOT = Path(__file__).resolve().parents[2]
STUDY = "dss2020/figure3"


@cache
def cells():
    return {(cell.environment.label, cell.algorithm): cell for cell in paper_study(STUDY).cells}


def setting(environment, algorithm):
    cell = cells()[environment, algorithm]
    return cell.setting(cell.configurations[0])


def test_the_study_has_the_papers_environments_and_parameters():
    places = paper_study(STUDY).environments
    assert {(p.env.partition("=")[2], p.steps) for p in places} == {("10", 10_000), ("20", 50_000)}
    assert {p.objective for p in places} == {"episode", "lifetime"}
    assert {p.env.partition(":")[0] for p in places} == {"deep_sea", "deep_sea_stochastic"}
    for size, (N, M, K) in {10: (4, 10, 20), 20: (2, 5, 40)}.items():
        dss = setting(f"episode-{size}", "dss-flat").planner
        assert (dss.n_policies, dss.n_samples, dss.n_steps, dss.n_stages) == (N, M, K, 1)
        assert dss.replan_every == size
        assert setting(f"episode-{size}", "dss-flat").prior.alpha == 1 / (size**2 + 1)
    assert setting("episode-10", "dss-steps").planner.replan_every == 1
    assert setting("episode-10", "bdqn").discount == 0.99
    for algorithm, curve in paper_numbers()["figure3"].items():
        assert all((environment, algorithm) in cells() for environment in curve)


def test_nobody_is_told_the_rewards():
    for environment, algorithm in cells():
        model = setting(environment, algorithm).rewards
        assert type(model).__name__ == "NormalGamma"
        assert model.mu0 == 0.0
        assert (model.beta == 0.3) == environment.endswith("noise")


def test_the_sparse_prior_is_not_degenerate():
    belief = setting("episode-10", "dss-sparse").prior.belief(101, 2)
    for outcome in (3, 7):
        belief.observe(0, 0, 0.0, outcome)
    assert 0.3 < belief.predictive(0, 0)[3] < 0.5, "a row with two outcomes is learned as one"


@pytest.mark.parametrize("environment", ["episode-10", "stochastic-10", "stochastic-20"])
@pytest.mark.parametrize("algorithm", ["psrl-sparse", "psrl-flat"])
def test_bad_episodes_are_counted_from_rewards_as_from_states_and_actions(environment, algorithm):
    short = replace(setting(environment, algorithm), steps=2005)
    seed = lambda: environment_seed(setting_facts(short), "evaluate", 3)
    run = play(short, seed(), np.random.SeedSequence(5))
    env = make_env(short.env)
    counted = env.bad_episodes(run.states, run.actions)
    assert 0 < counted.sum() < len(counted) == 2005 // env.size, "the last five steps are no episode"
    assert bad_episodes(env, run.rewards, seed()).tolist() == counted.tolist()


@pytest.fixture(scope="module")
def quick(tmp_path_factory):
    """A few quick runs."""
    study = paper_study(STUDY, quick=True).only(
        ["episode-10", "stochastic-10"], ["rmax", "psrl-sparse", "dss-flat"]
    )
    with Store(tmp_path_factory.mktemp("sea") / "s.sqlite") as store:
        run_study(study, store)
        return collect_results(study, store)


def test_counts_are_those_of_the_runs_of_the_study(quick):
    (sample,) = quick.select("evaluate", "stochastic-10", "psrl-sparse")
    counts = cumulative_bad_episodes(sample)
    assert counts.shape == (2, sample.horizon // 10)
    assert (np.diff(counts, axis=1) >= 0).all()
    assert total_bad_episodes(sample).tolist() == counts[:, -1].tolist()
    (certain,) = quick.select("evaluate", "episode-10", "rmax")
    found = certain.traces().reshape(2, -1, 10)[:, :, -1] > 0.5  # without noise the others find the treasure
    assert total_bad_episodes(certain).tolist() == (~found).sum(axis=1).tolist() == [19, 19]


def test_tables_have_every_agent_and_short_runs_are_not_beside_the_papers(quick):
    matrix, detail = TARGETS["figure3"].tables(quick)
    assert matrix.header == ("algorithm", "agent", "episode-10", "stochastic-10")
    assert [row[0].text for row in matrix.rows] == ["psrl-sparse", "rmax", "dss-flat"]
    assert matrix.rows[1][2].text == "19.0 ± 0.0"
    assert len(detail.rows) == 6
    assert detail.rules == (3,)
    assert {row[6].text for row in detail.rows} == {"–"}  # the paper's runs are longer
    assert "Quick" in matrix.warning


def test_the_figure_has_a_panel_for_each_environment(quick):
    (picture,) = TARGETS["figure3"].pictures(quick)
    shown = {text.get_text() for text in picture.draw().findobj(Text)}
    assert {"episode-10", "stochastic-10", "R-max", "DSS-PI, flat prior", "total bad episodes"} <= shown
    assert TARGETS["figure3"].pictures(replace(quick, samples=())) == []


def test_the_command_prints_tables_and_draws(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    arguments = ["--environments", "episode-10", "--algorithms", "rmax", "--quick", "--output", "there"]
    assert main(["reproduce", "figure3", *arguments]) == 0
    out, err = capsys.readouterr()
    assert "R-max" in out
    assert "figure3: there/figure3.png, there/figure3.svg" in err
    assert (tmp_path / "there" / "figure3" / "bad_episodes.csv").exists()
    assert (tmp_path / ".bamdp" / "dss2020.sqlite").exists()


@pytest.fixture(scope="module")
def committed():
    """The committed runs."""
    with open_exports([ROOT / "results" / "dss2020" / "figure3.runs.xz"]) as exports:
        yield collect_results(paper_study(STUDY), exports.together)


def test_the_committed_runs_meet_the_target(committed):
    for environment, target in (("episode-10", 60), ("episode-20", 150)):
        (sample,) = committed.select("evaluate", environment, "dss-sparse")
        assert sample.runs >= 10
        assert total_bad_episodes(sample).mean() <= target


@pytest.mark.slow
def test_the_committed_runs_can_be_repeated(committed, tmp_path):
    study = paper_study(STUDY).only(["episode-10", "stochastic-10"], ["dss-sparse", "psrl-flat"])
    with Store(tmp_path / "s.sqlite") as store:
        run_study(study, store)
        again = collect_results(study, store)
        for sample in again.samples:
            (before,) = committed.select("evaluate", sample.environment, sample.algorithm)
            assert (sample.traces() == before.traces()).all()


def test_the_code_of_the_page_runs(capsys):
    code = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "deep-sea.md").read_text(), flags=re.S)
    assert len(code) == 2
    exec(compile("\n".join(code), "deep-sea.md", "exec"), {})
    assert int(capsys.readouterr().out.split()[0]) < 60
