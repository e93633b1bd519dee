"""The commands, end to end."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys

import numpy as np
import pytest

import bamdp
from bamdp.cli import main
from bamdp.registry import PLANNERS, PRIORS, REWARDS
from bamdp.theory import corrected_loss_bound, dss_calls

TIMES = dict.fromkeys(("ms_per_step", "seconds"))
LAKE = "run gym:FrozenLake-v1:is_slippery=False thompson --prior sparse:beta=4 --steps 150 --runs 2"


def run_json(capsys, command):
    assert main([*command.split(), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_version_and_help(capsys):
    for arguments, text in ((["--version"], f"bamdp {bamdp.__version__}"), (["--help"], "commands:")):
        with pytest.raises(SystemExit) as end:
            main(arguments)
        assert end.value.code == 0
        assert text in capsys.readouterr().out
    assert main([]) == 0


def test_run_prints_a_row_for_each_planner_with_its_prior_and_discount(capsys):
    assert main("run double_loop thompson random adaptive-dss --runs 3 --steps 50".split()) == 0
    out, err = capsys.readouterr()
    assert "double_loop, 50 steps, 3 runs (mean ± s.e.)" in out
    rows = [line.split() for line in out.splitlines() if "%" in line]
    assert [row[0] for row in rows] == ["thompson", "random", "adaptive-dss", "optimum"]
    assert rows[0][1:3] == ["sparse", "0.95"]
    assert rows[2][2] == "auto"
    assert "each planner has its own prior and discount" in err
    assert main("run double_loop thompson random --runs 2 --steps 20".split()) == 0
    assert "note:" not in capsys.readouterr().err


def test_run_json_has_everything(capsys):
    given = "--set resample=5 --prior sparse:beta=6 --discount 0.9 --runs 3 --seed 4 --steps 40"
    found = run_json(capsys, f"run double-loop thompson {given}")
    expected = {
        "env": "double-loop",
        "planner": "thompson",
        "parameters": {"resample": 5, "tol": 1e-4},
        "prior": "sparse:beta=6",
        "rewards": "known",
        "discount": 0.9,
        "steps": 40,
        "runs": 3,
        "seed": 4,
        "version": bamdp.__version__,
        "reproducible": True,
    }
    assert {key: found[key] for key in expected} == expected
    totals = found["total_reward"]
    assert totals["se"] == pytest.approx(np.std(totals["values"], ddof=1) / np.sqrt(3))
    assert found["share_of_optimum"] == pytest.approx(totals["mean"] / found["optimum"])
    both = run_json(capsys, "run double_loop random thompson --runs 1 --steps 10")
    assert [(one["planner"], one["total_reward"]["se"]) for one in both] == [
        ("random", None),
        ("thompson", None),
    ]


def test_results_do_not_depend_on_jobs_or_on_the_number_of_runs(capsys):
    one = run_json(capsys, "run double_loop thompson --runs 4 --steps 60 --jobs 1")
    two = run_json(capsys, "run double_loop thompson --runs 4 --steps 60 --jobs 2")
    few = run_json(capsys, "run double_loop thompson --runs 2 --steps 60")
    assert one | TIMES == two | TIMES
    assert few["total_reward"]["values"] == one["total_reward"]["values"][:2]


def test_episodes_begin_again_and_the_optimum_knows(tmp_path, capsys):
    """Two steps to the end, the second pays 1: the optimum over 10 steps is 5, and there is no gain to speak of."""
    path = tmp_path / "episode.npz"
    P = np.zeros((3, 1, 3))
    P[0, 0, 1] = P[1, 0, 2] = P[2, 0, 2] = 1.0
    np.savez(path, transitions=P, rewards=[0.0, 1.0, 0.0], terminal=[False, False, True])
    found = run_json(capsys, f"run file:{path} random --steps 10 --runs 1")
    assert found["optimum"] == found["total_reward"]["mean"] == 5.0
    solved = run_json(capsys, f"solve file:{path} --steps 10")
    assert solved["gain"] is None
    assert solved["value"] == pytest.approx(0.95)
    assert solved["total_reward"] == {"optimum": 5.0, "discounted": 5.0, "random": 5.0}


def test_solve_gives_the_reference_figures(capsys):
    found = run_json(capsys, "solve chain")
    assert found["value"] == pytest.approx(6.6724, abs=1e-4)
    assert found["gain"] == pytest.approx(0.4096, abs=1e-4)
    totals = {"optimum": 408.35, "discounted": 407.96, "random": 131.12}
    assert found["total_reward"] == pytest.approx(totals, abs=0.01)
    values = [run_json(capsys, f"solve maze_door:door={door}")["value"] for door in ("open", "closed")]
    assert run_json(capsys, "solve maze_door")["value"] == pytest.approx(np.mean(values))


def test_theory_prints_the_bounds_the_calls_and_the_rule(capsys):
    given = {"n_policies": 4, "n_samples": 50, "n_steps": 8, "discount": 0.6, "c": 0.02, "epsilon0": 0.01}
    words = " ".join(f"--{name.replace('_', '-')}={value}" for name, value in given.items())
    found = run_json(capsys, f"theory {words} --delta 0.1")
    bound = corrected_loss_bound(**given, delta=0.1)
    assert found["corrected"] == {**bound.terms, "total": bound.total, "range": bound.range}
    assert found["calls"]["calls"] == dss_calls(4, 50, 8).calls
    assert main(["theory"]) == 0
    out = capsys.readouterr().out
    assert "8 *" in out
    assert "█" in out  # its own example has a bound that says something
    assert "K from 1 to" in out


def test_lists_are_complete(capsys):
    lists = run_json(capsys, "list")
    assert {"chain", "double_loop", "grid5", "maze"} <= {info["name"] for info in lists["envs"]}
    for what, names in (("planners", PLANNERS), ("priors", PRIORS), ("rewards", REWARDS)):
        assert [info["name"] for info in lists[what]] == list(names)
    assert main(["list"]) == 0
    out = capsys.readouterr().out
    assert all(
        info["name"] in out and info["help"].endswith(".") for listed in lists.values() for info in listed
    )


def test_warmup_makes_a_planner_ready(capsys):
    assert main(["warmup", "thompson", "random"]) == 0
    assert "thompson: ready" in capsys.readouterr().err


def test_progress_bars_are_on_standard_error_only(capfd):
    for shown in ("--progress", "--no-progress"):
        run_json(capfd, f"run double_loop random --runs 2 --steps 20 {shown}")
        assert main(f"run double_loop random --runs 2 --steps 20 {shown}".split()) == 0
        assert ("random" in capfd.readouterr().err) == (shown == "--progress")


def test_a_closed_pipe_is_no_error():
    command = f"{sys.executable} -m bamdp list | head -1"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
    assert "Environments" in done.stdout
    assert done.stderr == ""


@pytest.mark.parametrize(
    "command",
    [
        "run double_loop thompson --steps 10000000 --runs 2",
        "run double_loop thompson --steps 10000000 --runs 4 --jobs 2",
        "compare double_loop thompson --steps 10000000 --runs 2",
        "explain grid5 bamcp --set n_simulations=1000000000000",
        "studio chain thompson",
    ],
)
def test_ctrl_c_ends_any_command_with_one_line_and_status_130(command, tmp_path):
    process = subprocess.Popen(
        [
            sys.executable,
            "-c",
            f"import sys; from bamdp.cli import main; print('ready', flush=True); "
            f"sys.exit(main({command.split()!r}))",
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # CI may have it ignored
    )
    try:
        assert process.stdout.readline() == "ready\n"
        with pytest.raises(subprocess.TimeoutExpired):
            process.communicate(timeout=3)
        os.kill(process.pid, signal.SIGINT)
        _, err = process.communicate(timeout=20)
    finally:
        process.kill()
    assert process.returncode == 130
    assert err.splitlines()[-1].startswith("stopped")
    assert "Traceback" not in err


def test_long_work_is_announced(monkeypatch, capsys):
    def stopped(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr("bamdp.cli.run.warm_up", stopped)
    assert main("run grid5 bamcp --set n_simulations=1000000000000".split()) == 130
    assert "a step of bamcp takes about 618 h" in capsys.readouterr().err
    assert main("run grid5 dss-pi --set n_stages=1000".split()) == 130
    assert "years; Ctrl-C ends it" in capsys.readouterr().err
    assert main("run chain bamcp --steps 2 --runs 1".split()) == 130
    assert "takes about" not in capsys.readouterr().err


def test_a_gym_environment_is_run_like_any_other(capsys):
    one = run_json(capsys, f"{LAKE} --objective lifetime")
    assert one | TIMES == run_json(capsys, f"{LAKE} --objective lifetime --jobs 2") | TIMES
    assert one["env"] == "gym:FrozenLake-v1:is_slippery=False"
    assert one["rewards"].startswith("hierarchical")
    assert one["optimum"] is one["share_of_optimum"] is None
    assert len(one["episodes"]["completed"]) == 2
    assert main(f"{LAKE} --rewards finite:values=(0,1)".split()) == 0
    out = capsys.readouterr().out
    assert "episodes per run" in out
    assert "optimum" not in out
    binned = run_json(capsys, "run gym:CartPole-v1 thompson --bins 3,3,6,5 --runs 1 --steps 40")
    assert binned["env"] == "gym:CartPole-v1:bins=(3,3,6,5)"
    assert binned["episodes"]["success"] is None


def test_the_objective_is_told_to_the_agent(tmp_path, capsys):
    """Stay for 0.36 or end with 1: with γ = 0.7 it depends on what follows an end (see the tests of planners)."""
    path = tmp_path / "stay.npz"
    p = np.zeros((2, 2, 2))
    p[0, 0, 1] = p[0, 1, 0] = 1.0
    bamdp.FiniteMDP(p, [[1.0, 0.36], [0.0, 0.0]], terminal=[1]).save(path)
    command = f"run file:{path} thompson --discount 0.7 --runs 1 --steps 60 --prior dirichlet:alpha=0.01"
    found = {
        objective: run_json(capsys, f"{command} --objective {objective}")["episodes"]["completed"][0]
        for objective in ("episode", "lifetime")
    }
    assert found["episode"] < 20
    assert found["lifetime"] > 40


def test_runs_with_a_drawn_door_are_measured_by_the_door_that_was_drawn(capsys):
    door = {
        name: run_json(capsys, f"run maze_door:door={name} random --runs 1")["optimum"]
        for name in ("open", "closed")
    }
    env, (open_door, _), drawn = bamdp.make_env("maze_door"), bamdp.maze_door_models(), []
    for replicate in range(5):
        env.reset(seed=np.random.SeedSequence(0, spawn_key=(replicate, 0)))
        drawn.append(door["open" if env.mdp == open_door else "closed"])
    found = run_json(capsys, "run maze_door random --runs 5")
    assert found["optimum"] == pytest.approx(np.mean(drawn))


@pytest.mark.parametrize(
    "command",
    [
        "run chain thompson --runs 2 --steps 60",
        "run chain thompson random --runs 2 --steps 60",
        "compare chain thompson random --runs 2 --steps 60",
        "tune chain thompson --grid resample=1,5 --runs 2 --steps 60",
        "solve grid5",
        "explain chain dss-pi --set n_steps=5",
    ],
)
def test_figure_draws_the_result_of_any_command(command, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main([*command.split(), "--figure", "new/it.svg"]) == 0
    assert "<svg" in (tmp_path / "new" / "it.svg").read_text()
    assert "new/it.svg" in capsys.readouterr().err
