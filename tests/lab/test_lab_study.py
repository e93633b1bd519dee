"""Studies from TOML, and spaces of configurations."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import numpy as np
import pytest

from bamdp.cli import make_parser
from bamdp.lab import study as study_module
from bamdp.lab.space import list_configurations, prior_spec
from bamdp.lab.study import STUDIES, load_study, parse_study

ROOT = Path(__file__).resolve().parents[2]
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
BELIEF = {"prior": ("sparse",), "discount": (0.95,)}


@pytest.mark.parametrize("name", [*STUDIES, *map(str, sorted((ROOT / "paper/studies").glob("*.toml")))])
def test_studies_that_ship_are_sound(name):
    assert load_study(name, quick=True).cells


def test_a_study_is_cells_of_environments_and_algorithms():
    study = parse_study(SMALL)
    assert [(c.environment.label, c.algorithm, len(c.configurations)) for c in study.cells] == [
        ("chain", "thompson", 1),
        ("chain", "mine", 2),
        ("double_loop", "thompson", 1),
        ("double_loop", "mine", 2),
    ]
    mine = study.cells[1]
    assert (mine.settings[1].planner.n_policies, mine.settings[1].planner.n_steps) == (4, 7)
    assert (study.title, mine.runs, mine.environment.steps, mine.environment.limit) == ("Small", 5, 50, 0.25)


def test_an_algorithm_can_have_values_of_its_own_in_an_environment_and_be_in_some_only():
    text = (
        SMALL
        + "generator.tol = 1e-3\n[algorithms.mine.at.chain]\nn_policies = 8\nprior = ['flat', 'sparse']\n"
    )
    cells = parse_study(text + "runs = 2\n[algorithms.random]\nenvironments = ['chain']").cells
    here, there = cells[1], cells[4]
    assert [(c["n_policies"], c["prior"], c["generator.tol"]) for c in here.configurations] == [
        (8, "flat", 1e-3),
        (8, "sparse", 1e-3),
    ]
    assert ([c["n_policies"] for c in there.configurations], here.runs, there.runs) == ([2, 4], 2, 5)
    assert [cell.algorithm for cell in cells].count("random") == 1


def test_priors_and_discounts_for_all_can_be_spaces():
    study = parse_study(
        'prior = ["flat", "sparse"]\n"prior.beta" = [2, 4]\ndiscount = ["horizon", 0.95]\n' + SMALL
    )
    assert len(study.cells[0].configurations) == 6
    assert study.cells[0].settings[0].first_discount == 1 - 1 / 50


def test_quick_cuts_down_runs_steps_and_tuning_and_never_makes_anything_longer():
    text = (
        SMALL.replace("[2, 4]", "[1, 2, 3, 4, 5, 6, 7, 8]").replace("= 50", "= 500") + "[tuning]\nruns = 10\n"
    )
    quick, full = parse_study(text, quick=True), parse_study(text)
    shape = lambda study: (study.quick, study.cells[1].runs, study.environments[0].steps, study.tuning.runs)
    assert (shape(quick), len(quick.cells[1].configurations)) == ((True, 3, 200, 2), 6)
    assert (shape(full), len(full.cells[1].configurations)) == ((False, 5, 500, 10), 8)
    short = parse_study(SMALL.replace("runs = 5", "runs = 1").replace("steps = 50", "steps = 9"), quick=True)
    assert (short.cells[0].runs, short.environments[0].steps) == (1, 9)


def test_a_model_lies_beside_the_study_and_a_study_may_extend_another(tmp_path, monkeypatch):
    (tmp_path / "sub").mkdir()
    np.savez(tmp_path / "sub" / "swap.npz", transitions=[[[0.0, 1.0]], [[1.0, 0.0]]], rewards=[0.0, 1.0])
    (tmp_path / "sub" / "s.toml").write_text(
        'runs = 4\nalgorithms = ["random"]\n[environments.swap]\nenv = "file:swap.npz"'
    )
    (tmp_path / "sub" / "t.toml").write_text('base = "s.toml"\nruns = 2\n[tuning]\nruns = 3')
    monkeypatch.chdir(tmp_path)
    assert load_study("sub/s.toml").environments[0].label == "swap"
    more = load_study("sub/t.toml")
    assert (more.cells[0].runs, more.tuning.runs) == (2, 3)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ('titel = "x"', "unknown key 'titel'; did you mean 'title'"),
        ("runs = 0", "runs = 0 leaves nothing"),
        ("runs = -1", "runs must be at least 0"),
        ("seed = -1", "seed must be at least 0"),
        ("discount = 1.0", "algorithms.thompson: discount must be in"),
        ('prior = "sprase"', "algorithms.thompson: unknown prior 'sprase'; did you mean 'sparse'"),
        ('rewards = "beta"', "algorithms.thompson, in chain: chain pays 0.2 somewhere"),
        ("objective = 3", "environments.chain: unknown objective 3"),
        ("notes = 3", "notes must be a list"),
        ("[environments.chain]\nstep = 3", "environments.chain: unknown key 'step'; did you mean 'steps'"),
        ('[environments.a]\nenv = "chian"', "environments.a: unknown environment 'chian'; did you mean 'chain'"),
        ("[tuning]\nmethods = 'grid'", "'methods'; did you mean 'method'"),
        ("[tuning]\nmethod = 'grit'", "tuning: unknown method 'grit'; did you mean 'grid'"),
        ("[tuning]\nruns = 0", "tuning: runs must be at least 1"),
        ("[tuning]\nacross = 1", "across must be True or False"),
        ("[algorithms.tompson]", "did you mean 'thompson'"),
        ("[algorithms.sboss]\nn_model = 3", "algorithms.sboss: unknown parameter of sboss 'n_model'; did you"),
        ("[algorithms.sboss]\nn_models = 0", "algorithms.sboss: n_models must be at least 1"),
        ("[algorithms.sboss]\nn_models = []", "a list of values to choose from"),
        ("[algorithms.sboss]\ninclude = [3]", "include must be a list of tables"),
        ("[algorithms.sboss]\nprior.beat = 3", "did you mean 'beta'"),
        ("[algorithms.sboss.at.chian]\nn_models = 3", "unknown environment in 'at' 'chian'; did you mean 'chain'"),
        ('[algorithms.x]\nplanner = "sboss:n_models=2"\nn_models = 3', "n_models is given twice"),
        ("[algorithms.sboss.at.chain]\ndelta = [1, 2]\n[tuning]\nacross = true", "across = true chooses once for all"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_with_its_place(change, message):
    keys = ("title", "runs", "environments = ")
    kept = [
        s for s in SMALL.splitlines() if not any(s.startswith(k) and k.strip(" =") in change for k in keys)
    ]
    text = "\n".join([*kept, change] if change.startswith("[") else [change, *kept])
    with pytest.raises((ValueError, TypeError)) as error:
        parse_study(text)
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("world", "message"),
    [("gym:FrozenLake-v1", "is not known"), ("file:cost.npz", "no share of it can be taken")],
)
def test_what_has_no_positive_optimum_is_not_chosen_across(tmp_path, monkeypatch, world, message):
    monkeypatch.chdir(tmp_path)
    np.savez(tmp_path / "cost.npz", transitions=[[[0.0, 1.0]], [[1.0, 0.0]]], rewards=[0.0, -1.0])
    text = f'algorithms = ["q-learning"]\nenvironments = ["{world}"]\nsteps = 5\ndiscount = [0.9, 0.95]\n'
    with pytest.raises(ValueError, match=message):
        parse_study(text + "[tuning]\nacross = true\nruns = 1\n")


def test_a_file_that_is_no_study_is_an_error_in_one_line(tmp_path):
    path = tmp_path / "s.toml"
    for data, message in ((b"runs = = 3", r"s\.toml: not TOML"), (b"\xff\xfe\x00", "is not a text file")):
        path.write_bytes(data)
        with pytest.raises(ValueError, match=message):
            load_study(path)
    with pytest.raises(ValueError, match="did you mean 'dss2020/fair'"):
        load_study("dss2020/fare")


# Spaces


def test_a_space_is_a_product_in_the_order_in_which_it_is_written():
    found = list_configurations("dss-pi", {"n_policies": (2, 4), "n_steps": (5, 10), **BELIEF})
    assert [(c["n_policies"], c["n_steps"]) for c in found] == [(2, 5), (2, 10), (4, 5), (4, 10)]


def test_parameters_without_meaning_are_left_out_and_equal_configurations_count_once():
    found = list_configurations(
        "dss-pi", {"generator": ("pi", "rtdp"), "generator.depth": (15, 50), **BELIEF}
    )
    assert [(c["generator"], c.get("generator.depth")) for c in found] == [
        ("pi", None),
        ("rtdp", 15),
        ("rtdp", 50),
    ]
    space = {"epsilon": (0.1, 0.2), "prior": ("sparse", "flat"), "prior.beta": (2, 4), "discount": (0.9,)}
    assert [(c["epsilon"], c["prior"]) for c in list_configurations("q-learning", space)] == [
        (0.1, "sparse"),
        (0.2, "sparse"),
    ]


def test_a_prior_written_with_its_parameters_is_the_same_as_one_in_parts_and_a_mixture_stays():
    one = list_configurations("random", {"prior": ("sparse:alpha=0.2,beta=6",), "discount": (0.9,)})
    parts = {"prior": ("sparse",), "prior.alpha": (0.2,), "prior.beta": (6,), "discount": (0.9,)}
    assert one == list_configurations("random", parts)
    assert str(prior_spec(one[0])) == "sparse:alpha=0.2,beta=6"
    mixture = list_configurations("random", {"prior": ("sparse + 3*flat",), "discount": (0.9,)})
    assert prior_spec(mixture[0]) == "sparse + 3*flat"


def test_a_space_is_drawn_from_by_a_seed_and_included_ones_are_always_there():
    space = {"n_policies": tuple(range(1, 11)), "n_samples": tuple(range(1, 11)), **BELIEF}
    one = {"n_policies": 77, "n_samples": 3}
    found = list_configurations("dss-pi", space, [one], count=12, seed=(5,))
    assert len(found) == len({repr(c) for c in found}) == 12
    assert (found[0]["n_policies"], found[0]["n_samples"]) == (77, 3)
    assert found == list_configurations("dss-pi", space, [one], count=12, seed=(5,))
    assert found != list_configurations("dss-pi", space, [one], count=12, seed=(6,))


def test_every_configuration_of_a_space_is_drawn_equally_often():
    """400 seeds, 5 of 20: each 100 times ± 8.7; the furthest of 20 is beyond 40 once in 10^4 or less."""
    space, counts = {"n_policies": tuple(range(1, 21)), **BELIEF}, dict.fromkeys(range(1, 21), 0)
    for seed in range(400):
        for one in list_configurations("dss-pi", space, count=5, seed=(seed,)):
            counts[one["n_policies"]] += 1
    assert max(abs(count - 100) for count in counts.values()) <= 40


# The page of the documentation


def test_what_the_page_on_studies_shows_works():
    text = (ROOT / "docs" / "laboratory.md").read_text()
    studies = [parse_study(block) for block in re.findall(r"```toml\n(.*?)```", text, flags=re.S)]
    assert studies
    commands = re.findall(r"^    (bamdp .*)$", text, flags=re.M)
    assert len(commands) >= 6
    for command in commands:
        make_parser().parse_args(shlex.split(command, comments=True)[1:])
    assert [
        key for key in (*study_module.STUDY_KEYS, *study_module.ENVIRONMENT_KEYS) if f"`{key}`" not in text
    ] == []
