"""Studies from TOML."""

from __future__ import annotations

import numpy as np
import pytest

from bamdp import BetaBernoulli, NormalGamma
from bamdp.lab.collect import collect_results
from bamdp.lab.reading import load_study, parse_study
from bamdp.lab.store import Store

SMALL = """
title = "Small"
runs = 5
steps = 50
environments = ["chain", "double_loop"]
[algorithms.thompson]
[algorithms.mine]
planner = "dss-pi:n_steps=7"
n_policies = [2, 4]
"""


def test_a_study_is_cells_of_places_and_algorithms():
    study = parse_study(SMALL)
    assert [(c.environment.label, c.algorithm, len(c.configurations)) for c in study.cells] == [
        ("chain", "thompson", 1),
        ("chain", "mine", 2),
        ("double_loop", "thompson", 1),
        ("double_loop", "mine", 2),
    ]
    mine = study.cells[1]
    assert mine.setting(mine.configurations[1]).planner.parameters()["n_policies"] == 4
    assert mine.setting(mine.configurations[1]).planner.n_steps == 7
    assert (study.title, study.runs, mine.environment.steps, mine.environment.limit) == ("Small", 5, 50, 0.25)


def test_steps_and_limits_are_the_environments_unless_given():
    study = parse_study(
        'algorithms = ["random"]\n[environments.maze]\n[environments.g]\nenv = "grid5"\nlimit = 2.5'
    )
    assert [(p.label, p.env, p.steps, p.limit) for p in study.environments] == [
        ("maze", "maze", 20000, 1.5),
        ("g", "grid5", 1000, 2.5),
    ]


def test_an_algorithm_can_have_values_of_its_own_in_a_place():
    study = parse_study(
        SMALL
        + "generator.tol = 1e-3\n[algorithms.mine.at.chain]\nn_policies = 8\nprior = ['flat', 'sparse']\n"
    )
    here, there = study.cells[1].configurations, study.cells[3].configurations
    assert [(c["n_policies"], c["prior"], c["generator.tol"]) for c in here] == [
        (8, "flat", 1e-3),
        (8, "sparse", 1e-3),
    ]
    assert [c["n_policies"] for c in there] == [2, 4]


def test_an_algorithm_can_be_in_some_environments_only():
    study = parse_study(SMALL + 'environments = ["double_loop"]\n')
    assert [cell.label for cell in study.cells] == [
        "thompson in chain",
        "thompson in double_loop",
        "mine in double_loop",
    ]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("['chian']", "unknown environment 'chian'; did you mean 'chain'"),
        ("5", "must be a list of texts"),
    ],
)
def test_environments_of_an_algorithm_are_of_the_study(given, message):
    with pytest.raises(ValueError, match=message):
        parse_study(SMALL + f"environments = {given}\n")


def test_an_environment_can_have_runs_a_budget_and_screening_of_its_own():
    text = (
        'runs = 5\nalgorithms = ["random"]\n[environments.chain]\n[environments.maze]\nruns = 2\nbudget = 7\n'
        'screening = 4000\n[tuning]\nmethod = "halving"\nbudget = 3\n'
    )
    chain, maze = parse_study(text).cells
    assert (chain.runs, chain.tuning.budget, chain.tuning.screening) == (5, 3, None)
    assert (maze.runs, maze.tuning.budget, maze.tuning.screening) == (2, 7, 4000)
    _, quick = parse_study(text + "[quick]\nbudget = 5\nsteps = 90\nruns = 1", quick=True).cells
    assert (quick.runs, quick.tuning.budget, quick.tuning.screening) == (1, 5, 90)


def test_rewards_and_objective_are_of_all_environments_or_of_one():
    text = (
        'rewards = "beta"\nobjective = "lifetime"\nalgorithms = ["random"]\n[environments.grid5]\n'
        '[environments.lake]\nenv = "gym:FrozenLake-v1"\nrewards = "normal"\nobjective = "episode"\n'
    )
    grid, lake = (cell.setting(cell.configurations[0]) for cell in parse_study(text).cells)
    assert (type(grid.rewards), grid.objective) == (BetaBernoulli, "lifetime")
    assert (type(lake.rewards), lake.objective) == (NormalGamma, "episode")
    with pytest.raises(ValueError, match=r"environments.chain: unknown objective 'life'"):
        parse_study('objective = "life"\n' + SMALL)


def test_a_world_without_a_known_optimum_is_not_chosen_across():
    text = 'algorithms = ["q-learning"]\nenvironments = ["chain", "gym:FrozenLake-v1"]\nsteps = 5\n'
    with pytest.raises(ValueError, match="its best total is not known"):
        parse_study(text + "discount = [0.9, 0.95]\n[tuning]\nacross = true\nruns = 1\n")


def test_a_world_that_only_costs_is_not_chosen_across(tmp_path):
    np.savez(tmp_path / "cost.npz", transitions=[[[0.0, 1.0]], [[1.0, 0.0]]], rewards=[0.0, -1.0])
    text = f'algorithms = ["q-learning"]\nenvironments = ["file:{tmp_path / "cost.npz"}"]\nsteps = 5\n'
    with pytest.raises(ValueError, match="of which no share can be taken"):
        parse_study(text + "discount = [0.9, 0.95]\n[tuning]\nacross = true\nruns = 1\n")


def test_an_environment_that_is_listed_twice_is_refused():
    with pytest.raises(ValueError, match="environments: 'chain' is given twice"):
        parse_study('environments = ["chain", "chain"]\nalgorithms = ["random"]\n')


def test_a_study_that_chooses_for_all_environments_has_no_parts_without_some():
    study = parse_study(SMALL + "[tuning]\nacross = true\n")
    assert [cell.algorithm for cell in study.only(algorithms=["mine"]).cells] == ["mine", "mine"]
    with pytest.raises(ValueError, match="none can be left out"):
        study.only(["chain"])


def test_priors_and_discounts_for_all_can_be_spaces():
    study = parse_study('prior = ["flat", "sparse"]\n"prior.beta" = [2, 4]\ndiscount = [0.9, 0.95]\n' + SMALL)
    assert len(study.cells[0].configurations) == 6


def test_the_steps_that_are_left_can_stand_in_place_of_a_discount(tmp_path):
    study = parse_study(
        'algorithms = ["random"]\ndiscount = ["horizon", 0.9]\nruns = 1\n[environments.chain]\nsteps = 20'
    )
    settings = [cell.setting(one) for cell in study.cells for one in cell.configurations]
    assert [(s.discount, s.first_discount) for s in settings] == [("horizon", 1 - 1 / 20), (0.9, 0.9)]
    with Store(tmp_path / "empty.sqlite") as store:
        assert collect_results(study, store).ceilings["chain"].discount == 1 - 1 / 20


def test_quick_cuts_down_runs_horizons_and_tuning_and_marks_the_study():
    text = SMALL + "[tuning]\nruns = 10\n[quick]\nruns = 2\nsteps = 20\ntuning_runs = 3\nconfigurations = 1\n"
    quick, full = parse_study(text, quick=True), parse_study(text)
    assert (quick.quick, quick.runs, quick.cells[0].environment.steps, quick.tuning.runs) == (True, 2, 20, 3)
    assert len(quick.cells[1].configurations) == 1
    assert (full.quick, full.runs, full.cells[0].environment.steps, full.tuning.runs) == (False, 5, 50, 10)


def test_quick_never_makes_anything_longer():
    study = parse_study(SMALL.replace("runs = 5", "runs = 1").replace("steps = 50", "steps = 9"), quick=True)
    assert (study.runs, study.cells[0].environment.steps) == (1, 9)


def test_spaces_of_unequal_size_are_said_when_tuning():
    assert "thompson 1, mine 2" in parse_study(SMALL + "[tuning]\n").notes[0]
    assert parse_study(SMALL).notes == ()


def test_a_model_lies_beside_the_study(tmp_path, monkeypatch):
    (tmp_path / "sub").mkdir()
    np.savez(tmp_path / "sub" / "swap.npz", transitions=[[[0.0, 1.0]], [[1.0, 0.0]]], rewards=[0.0, 1.0])
    (tmp_path / "sub" / "s.toml").write_text(
        'algorithms = ["random"]\n[environments.swap]\nenv = "file:swap.npz"'
    )
    monkeypatch.chdir(tmp_path)
    assert load_study("sub/s.toml").environments[0].label == "swap"


def test_a_part_of_a_study():
    part = parse_study(SMALL).only(["chain"], ["mine"])
    assert [cell.label for cell in part.cells] == ["mine in chain"]
    with pytest.raises(ValueError, match="did you mean 'chain'"):
        parse_study(SMALL).only(["chian"])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ('titel = "x"', "unknown key 'titel'; did you mean 'title'"),
        ("runs = 0", "runs = 0 leaves nothing"),
        ("runs = -1", "runs must be at least 0"),
        ("runs = 2.5", "runs must be a whole number"),
        ("seed = -1", "seed must be at least 0"),
        ("discount = 1.0", "algorithms.thompson: discount must be in"),
        ('prior = "sprase"', "algorithms.thompson: unknown prior 'sprase'; did you mean 'sparse'"),
        ('rewards = "beta"', "algorithms.thompson, in chain: chain pays 0.2 somewhere"),
        ("rewards = 3", "environments.chain: rewards must be the name of a reward model"),
        ('rewards = ["beta"]', "environments.chain: rewards must be the name of a reward model"),
        ('rewards = ""', "environments.chain: rewards must be the name of a reward model"),
        ("objective = 3", "environments.chain: unknown objective 3"),
        ("notes = 3", "notes must be a list"),
        ("[environments.chain]\nstep = 3", "environments.chain: unknown key 'step'; did you mean 'steps'"),
        ('[environments.a]\nenv = "chian"', "environments.a: unknown environment 'chian'; did you mean 'chain'"),
        ("[tuning]\nmethods = 'grid'", "tuning: unknown key 'methods'; did you mean 'method'"),
        ("[tuning]\nmethod = 'grit'", "tuning: unknown tuning method 'grit'; did you mean 'grid'"),
        ("[tuning]\nbudget = 3", "are for method = \"halving\""),
        ("[tuning]\nruns = 0", "tuning.runs must be at least 1"),
        ("[algorithms.tompson]", "did you mean 'thompson'"),
        ("[algorithms.sboss]\nn_model = 3", "algorithms.sboss: unknown parameter of sboss 'n_model'; did you"),
        ("[algorithms.sboss]\nn_models = 0", "algorithms.sboss: n_models must be at least 1"),
        ("[algorithms.sboss]\nn_models = []", "a list of values to choose from"),
        ("[algorithms.sboss]\ninclude = [3]", "include must be a list of tables"),
        ("[algorithms.sboss.at.chian]\nn_models = 3", "unknown environment in 'at' 'chian'; did you mean 'chain'"),
        ('[algorithms.x]\nplanner = "sboss:n_models=2"\nn_models = 3', "n_models is given twice"),
        ("[quick]\nrun = 2", "did you mean 'runs'"),
        ("[quick]\nruns = 'x'", "quick: runs must be a whole number"),
        ("[quick]\nbudget = 0", "quick: budget must be"),
        ("[environments.chain]\nruns = -1", "environments.chain: runs must be at least 0"),
        ("[environments.chain]\nruns = 0", "leaves nothing to do"),
        ("[environments.chain]\nbudget = 3", "environments.chain: budget is about tuning; add a [tuning] table"),
        ("[environments.chain]\nbudget = -3\n[tuning]\nmethod = 'halving'", "environments.chain: tuning.budget must"),
        ("[environments.chain]\nbudget = 3\n[tuning]", "environments.chain: tuning.budget and tuning.screening are"),
        ("[algorithms.sboss.at.chain]\nruns = 19", "at.chain.runs is 19, more than the environment's 10; raise that"),
        ("[algorithms.sboss]\nruns = 3", "unknown parameter of sboss 'runs'"),
        ("[tuning]\nacross = 1", "tuning.across must be true or false"),
        ("[algorithms.sboss.at.chain]\nplanner = 'thompson'", "at.chain: planner is the algorithm's, and the same"),
        ("[algorithms.sboss.at.chain]\ndelta = [1, 2]\n[tuning]\nacross = true",
         "algorithms.sboss: across = true chooses once for all environments"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_with_its_place(change, message):
    keys = ("title", "runs", "environments = ")
    kept = [
        line
        for line in SMALL.splitlines()
        if not any(line.startswith(k) and k.strip(" =") in change for k in keys)
    ]
    top = not change.startswith("[")
    text = "\n".join([change, *kept] if top else [*kept, change])
    with pytest.raises((ValueError, TypeError)) as error:
        parse_study(text, quick="quick" in change)
    assert message in str(error.value)


def test_a_file_that_is_no_study_is_an_error_in_one_line(tmp_path):
    path = tmp_path / "s.toml"
    path.write_text("runs = = 3")
    with pytest.raises(ValueError, match=r"s\.toml: not TOML"):
        load_study(path)
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ValueError, match="is not a text file"):
        load_study(path)
    path.write_text('algorithms = ["random"]')
    with pytest.raises(ValueError, match="environments are missing"):
        load_study(path)


# --- several draws of configurations


DRAWS = """
environments = ["chain"]
runs = 5
seed = 3
[tuning]
configurations = 4
draws = 3
[algorithms.beb]
bonus = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.2]
[algorithms.bayes-greedy]
"""


def test_draws_are_searches_among_other_configurations_evaluated_on_other_replicates():
    cells = parse_study(DRAWS).cells
    assert [cell.algorithm for cell in cells] == [
        *("beb#1", "beb#2", "beb#3", "bayes-greedy#1", "bayes-greedy#2", "bayes-greedy#3"),
    ]
    assert [cell.replicates for cell in cells[:3]] == [range(5), range(5, 10), range(10, 15)]
    bonuses = [{one["bonus"] for one in cell.configurations} for cell in cells[:3]]
    assert all(len(some) == 4 for some in bonuses)
    assert bonuses[0] != bonuses[1] != bonuses[2] != bonuses[0]
    assert all(
        cell.configurations == cells[3].configurations for cell in cells[3:]
    )  # a space of one has one draw


def test_the_first_draw_is_what_a_study_without_draws_has():
    alone = parse_study(DRAWS.replace("draws = 3", "")).cells
    assert [cell.algorithm for cell in alone] == ["beb", "bayes-greedy"]
    assert alone[0].configurations == parse_study(DRAWS).cells[0].configurations
    assert alone[0].replicates == range(5)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("draws = 3", "draws = 0"), "tuning.draws must be"),
        (("configurations = 4", ""), "say configurations = N"),
    ],
)
def test_draws_that_make_no_sense_are_refused(change, words):
    with pytest.raises(ValueError, match=words):
        parse_study(DRAWS.replace(*change))


def test_a_quick_study_has_two_draws():
    assert {cell.draw for cell in parse_study(DRAWS, quick=True).cells} == {0, 1}
