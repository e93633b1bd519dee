"""The commands for one environment, end to end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import bamdp
from bamdp.cli import main
from bamdp.registry import PLANNERS, PRIORS, REWARDS
from bamdp.theory import corrected_loss_bound, dss_calls

LAKE = "run gym:FrozenLake-v1:is_slippery=False thompson --prior sparse:beta=4 --steps 60 --runs 2"
TIMES = dict.fromkeys(("ms_per_step", "cpu_seconds"))
FIGURES = [
    "run chain thompson --runs 2 --steps 60",
    "compare chain thompson random --runs 2 --steps 60",
    "tune chain thompson --grid resample=1,5 --runs 2 --steps 60",
    "solve grid5",
    "explain chain dss-pi --set n_steps=5",
]


def totals(found, label=None):
    return [run["total"] for run in found["runs"] if label in (None, run["label"])]


def test_version_and_help(capsys, call):
    for arguments, text in ((["--version"], f"bamdp {bamdp.__version__}"), (["--help"], "commands:")):
        with pytest.raises(SystemExit) as end:
            main(arguments)
        assert end.value.code == 0
        assert text in capsys.readouterr().out
    assert "commands:" in call("").out
    assert "status" in call("lab").out


def test_run_and_compare_print_the_same_table_and_the_rest_on_request(folder, call):
    rest = "chain thompson random --runs 3 --steps 40"
    out = call(f"run {rest}").out
    assert out.startswith("chain: 3 runs of 40 steps, total reward ± standard error")
    columns = [name.strip() for name in out.splitlines()[2].split("  ") if name]
    assert columns == ["planner", "total reward", "difference to the best", "ms/step"]
    without_times = lambda text: [line.split()[:-1] for line in text.splitlines()]
    assert without_times(call(f"compare {rest}").out) == without_times(out)
    assert "p (Holm)" not in out
    assert "p (Holm)" in call(f"run {rest} --full").out
    assert "difference" not in call("run chain thompson --runs 2 --steps 20").out


def test_json_has_every_run_and_what_determined_it(call_json):
    given = "--set resample=5 --prior sparse:beta=6 --discount 0.9 --runs 3 --seed 4 --steps 40"
    found = call_json(f"run double-loop thompson {given}")
    assert {run["label"] for run in found["runs"]} == {"thompson:resample=5"}
    expected = {"prior": "sparse:beta=6", "discount": "0.9", "horizon": 40, "reproducible": True}
    assert {key: found["runs"][0][key] for key in expected} == expected
    alone = bamdp.run_many(
        "double_loop", "thompson:resample=5", prior="sparse:beta=6", discount=0.9, runs=3, seed=4, steps=40
    )
    assert totals(found) == alone.totals.tolist()


def test_results_do_not_depend_on_jobs_or_on_the_number_of_runs(call_json):
    command = "run double_loop thompson --steps 60 --runs"
    one, two = (call_json(f"{command} 4 --jobs {jobs}")["runs"] for jobs in (1, 2))
    assert [run | TIMES for run in one] == [run | TIMES for run in two]
    assert totals(call_json(f"{command} 2")) == [run["total"] for run in one[:2]]


def test_episodes_restart_and_the_optimum_includes_it(tmp_path, call_json):
    """Two steps to the end, the second pays 1: the optimum over 10 steps is 5, and there is no gain."""
    path = tmp_path / "episode.npz"
    P = np.zeros((3, 1, 3))
    P[0, 0, 1] = P[1, 0, 2] = P[2, 0, 2] = 1.0
    np.savez(path, transitions=P, rewards=[0.0, 1.0, 0.0], terminal=[False, False, True])
    found = call_json(f"run file:{path} random --steps 10 --runs 1")
    assert [one["optimum"] for one in found["ceilings"].values()] == totals(found) == [5.0]
    solved = call_json(f"solve file:{path} --steps 10")
    assert solved["gain"] is None
    assert solved["value"] == pytest.approx(0.95)
    assert solved["total_reward"] == {"optimum": 5.0, "discounted": 5.0, "random": 5.0}


def test_solve_gives_the_reference_figures(call_json):
    found = call_json("solve chain")
    assert found["value"] == pytest.approx(6.6724, abs=1e-4)
    assert found["gain"] == pytest.approx(0.4096, abs=1e-4)
    expected = {"optimum": 408.35, "discounted": 407.96, "random": 131.12}
    assert found["total_reward"] == pytest.approx(expected, abs=0.01)
    values = [call_json(f"solve maze_door:door={door}")["value"] for door in ("open", "closed")]
    assert call_json("solve maze_door")["value"] == pytest.approx(np.mean(values))


def test_theory_prints_the_bounds_the_calls_and_the_rule(call, call_json):
    given = {"n_policies": 4, "n_samples": 50, "n_steps": 8, "discount": 0.6, "c": 0.02, "epsilon0": 0.01}
    words = " ".join(f"--{name.replace('_', '-')}={value}" for name, value in given.items())
    found = call_json(f"theory {words} --delta 0.1")
    bound = corrected_loss_bound(**given, delta=0.1)
    assert found["corrected"] == {**bound.terms, "total": bound.total, "range": bound.range}
    assert found["calls"]["calls"] == dss_calls(4, 50, 8).calls
    out = call("theory").out
    assert [words for words in ("8 *", "█", "K from 1 to") if words not in out] == []


def test_lists_are_complete(call, call_json):
    lists = call_json("list")
    assert {"chain", "double_loop", "grid5", "maze"} <= {info["name"] for info in lists["envs"]}
    for what, names in (("planners", PLANNERS), ("priors", PRIORS), ("rewards", REWARDS)):
        assert [info["name"] for info in lists[what]] == list(names)
    out = call("list").out
    infos = [info for listed in lists.values() for info in listed]
    assert [info["name"] for info in infos if info["name"] not in out or not info["help"].endswith(".")] == []


def test_warmup_compiles_a_planner(call):
    assert "thompson:resample=5: compiled" in call("warmup thompson --set resample=5").err


def test_progress_bars_are_on_standard_error_only(capfd):
    for shown in ("--progress", "--no-progress"):
        assert main(f"run double_loop random --runs 2 --steps 20 --json {shown}".split()) == 0
        out, err = capfd.readouterr()
        assert ("random" in err) == (shown == "--progress")
        assert out.startswith("{")


def test_a_closed_pipe_is_no_error():
    command = f"{sys.executable} -m bamdp list | head -1"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
    assert "Environments" in done.stdout
    assert done.stderr == ""


@pytest.mark.parametrize(
    "command",
    [
        "run double_loop thompson --steps 10000000 --runs 4 --jobs 2",
        "compare double_loop thompson --steps 10000000 --runs 2",
        "explain grid5 bamcp --set n_simulations=1000000000000",
        "studio chain thompson",
    ],
)
def test_ctrl_c_ends_any_command_with_one_line_and_status_130(command, tmp_path):
    code = (
        f"print('ready', flush=True)\nfrom bamdp.cli import main; raise SystemExit(main({command.split()!r}))"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", f"import bamdp\n{code}"],
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


def test_long_work_is_announced(monkeypatch, call):
    def stopped(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr("bamdp.runs.warm_up", stopped)
    announced = call("run grid5 bamcp --set n_simulations=1000000000000", 130).err
    assert "one step of bamcp:n_simulations=1000000000000 takes about 618 h" in announced
    assert "years; press Ctrl-C to stop" in call("run grid5 dss-pi --set n_stages=1000", 130).err
    assert "takes about" not in call("run chain bamcp --steps 2 --runs 1", 130).err


def test_gymnasium_environments_run_like_others_and_success_appears_where_it_is_defined(call, call_json):
    one, two = (call_json(f"{LAKE} --objective lifetime --jobs {jobs}") for jobs in (1, 2))
    assert totals(one) == totals(two)
    assert one["runs"][0]["environment"] == "gym:FrozenLake-v1:is_slippery=False"
    assert one["runs"][0]["configuration"]["rewards"].startswith("hierarchical")
    assert one["ceilings"] == {}
    out = call(f"{LAKE} --rewards finite:values=(0,1) --full").out
    assert "success" in out
    assert "optimum" not in out
    cart = call("run gym:CartPole-v1 thompson --bins 3,3,6,5 --runs 1 --steps 40 --full").out
    assert "gym:CartPole-v1:bins=(3,3,6,5)" in cart
    assert "success" not in cart


def test_continuous_systems_are_run_and_compared_but_not_tuned(folder, call):
    system = "gym:Pendulum-v1 mean:plans=2"
    out = call(f"compare {system} thompson:plans=2 --runs 2 --steps 2 --figure it.png").out
    assert "difference to the best" in out
    assert Path("it.png").exists()
    for command in (f"tune {system} --grid refit=true,false", f"explain {system}", f"studio {system}"):
        assert "Pendulum-v1 has continuous observations, which" in call(command, 2).err
    assert "omit --store" in call(f"compare {system} --store x.sqlite", 2).err


def test_runs_with_a_drawn_door_are_measured_by_the_door_that_was_drawn(call_json):
    best = lambda found: next(iter(found["ceilings"].values()))["optimum"]
    door = {
        name: best(call_json(f"run maze_door:door={name} random --runs 1")) for name in ("open", "closed")
    }
    env, (open_door, _), drawn = bamdp.make_env("maze_door"), bamdp.maze_door_models(), []
    for replicate in range(5):
        env.reset(seed=np.random.SeedSequence(0, spawn_key=(replicate, 0)))
        drawn.append(door["open" if env.mdp == open_door else "closed"])
    assert best(call_json("run maze_door random --runs 5")) == pytest.approx(np.mean(drawn))


@pytest.mark.parametrize("command", FIGURES)
def test_figure_draws_the_result_of_any_command(command, folder, call):
    assert "new/it.svg" in call(f"{command} --figure new/it.svg").err
    assert "<svg" in (folder / "new" / "it.svg").read_text()
