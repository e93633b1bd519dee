"""The commands, end to end."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import bamdp
from bamdp.cli import main
from bamdp.registry import PLANNERS, PRIORS

TIMES = ("ms_per_step", "seconds")


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
    assert "warmup" in capsys.readouterr().out


def test_run_prints_a_table(capsys):
    assert main("run double_loop thompson --runs 3 --steps 50".split()) == 0
    out = capsys.readouterr().out
    assert "double_loop, 50 steps, 3 runs (mean ± s.e.), prior sparse:alpha=0.2,beta=2" in out
    assert "thompson" in out
    assert "optimum (known model)" in out
    assert not any(line != line.rstrip() for line in out.splitlines())


def test_run_json_has_everything(capsys):
    command = (
        "run double-loop thompson --set resample=5 --prior sparse:beta=6 --discount 0.9 --runs 3 --seed 4"
    )
    found = run_json(capsys, f"{command} --steps 40")
    totals = found["total_reward"]
    assert {key: found[key] for key in ("env", "planner", "prior", "discount", "steps", "runs", "seed")} == {
        "env": "double-loop",
        "planner": "thompson",
        "prior": "sparse:alpha=0.2,beta=6",
        "discount": 0.9,
        "steps": 40,
        "runs": 3,
        "seed": 4,
    }
    assert found["parameters"] == {"resample": 5, "tol": 1e-4}
    assert found["rewards"] == "known"
    assert found["version"] == bamdp.__version__
    assert found["reproducible"] is True
    assert len(totals["values"]) == 3
    assert totals["mean"] == pytest.approx(np.mean(totals["values"]))
    assert totals["se"] == pytest.approx(np.std(totals["values"], ddof=1) / np.sqrt(3))
    assert found["share_of_optimum"] == pytest.approx(totals["mean"] / found["optimum"])
    assert found["ms_per_step"] > 0
    assert found["seconds"] > 0


def test_results_do_not_depend_on_jobs_or_on_the_number_of_runs(capsys):
    one = run_json(capsys, "run double_loop thompson --runs 4 --steps 60 --jobs 1")
    two = run_json(capsys, "run double_loop thompson --runs 4 --steps 60 --jobs 2")
    few = run_json(capsys, "run double_loop thompson --runs 2 --steps 60")
    other = run_json(capsys, "run double_loop thompson --runs 4 --steps 60 --seed 1")
    strip = lambda found: {key: value for key, value in found.items() if key not in TIMES}
    assert strip(one) == strip(two)
    assert few["total_reward"]["values"] == one["total_reward"]["values"][:2]
    assert other["total_reward"]["values"] != one["total_reward"]["values"]


def test_one_run_has_no_standard_error(capsys):
    assert run_json(capsys, "run double_loop random --runs 1 --steps 10")["total_reward"]["se"] is None


def test_a_bandit_learns_its_rewards_by_default(capsys):
    assert run_json(capsys, "run bandit thompson --runs 1 --steps 5")["rewards"] == "beta:a=1,b=1,by=pair"
    told = run_json(capsys, "run bandit bayes-greedy --rewards known --runs 1 --steps 5")
    assert told["rewards"] == "known"


def test_an_own_model_from_a_file(tmp_path, capsys):
    path = tmp_path / "swap.npz"
    np.savez(path, transitions=[[[0.0, 1.0]], [[1.0, 0.0]]], rewards=[0.0, 1.0])
    found = run_json(capsys, f"run file:{path} thompson --steps 10 --runs 2 --jobs 2")
    assert found["total_reward"]["values"] == [5.0, 5.0]
    assert found["share_of_optimum"] == 1.0


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
    totals = found["total_reward"]
    assert totals["optimum"] == pytest.approx(408.35, abs=0.01)
    assert totals["discounted"] == pytest.approx(407.96, abs=0.01)
    assert totals["random"] == pytest.approx(131.1, abs=0.1)
    assert main(["solve", "chain"]) == 0
    assert "408.35" in capsys.readouterr().out


def test_solve_says_where_it_does_not_compute_the_average_reward(monkeypatch, capsys):
    monkeypatch.setattr("bamdp.ceilings.GAIN_STATES", 4)
    assert main(["solve", "chain"]) == 0
    assert "not computed, over 4 states" in capsys.readouterr().out


def test_solve_is_a_mean_over_the_worlds_of_a_random_door(capsys):
    values = [run_json(capsys, f"solve maze_door:door={door}")["value"] for door in ("open", "closed")]
    assert run_json(capsys, "solve maze_door")["value"] == pytest.approx(np.mean(values))


def test_lists_are_complete(capsys):
    envs = run_json(capsys, "list envs")
    assert {"chain", "double_loop", "grid5", "grid10", "grid", "maze"} <= {info["name"] for info in envs}
    planners = run_json(capsys, "list planners")
    assert [info["name"] for info in planners] == list(PLANNERS)
    priors = run_json(capsys, "list priors")
    assert [info["name"] for info in priors] == list(PRIORS)
    for info in [*envs, *planners, *priors]:
        assert info["help"].endswith(".")
        assert isinstance(info["parameters"], dict)
    assert main(["list"]) == 0
    out = capsys.readouterr().out
    assert all(info["name"] in out for info in [*envs, *planners, *priors])


def test_warmup_makes_a_planner_ready(capsys):
    assert main(["warmup", "thompson", "random"]) == 0
    err = capsys.readouterr().err
    assert "thompson: ready" in err
    assert "random: ready" in err


def test_compiling_is_told_in_one_line(capsys):
    import numba

    from bamdp.cli import console

    @numba.njit
    def once(x):
        return x + 1

    with console.compiling():
        once(1)
        once(1.0)
    assert capsys.readouterr().err == "compiling for this machine (only the first time; kept on disk) ...\n"


def test_demo_writes_a_picture(tmp_path, capsys):
    path = tmp_path / "new" / "curve.png"
    assert main(["demo", "--runs", "2", "--jobs", "1", "--output", str(path)]) == 0
    assert path.read_bytes().startswith(b"\x89PNG")
    out = capsys.readouterr().out
    assert all(name in out for name in ("DSS-PI", "DSS-RTDP", "Thompson sampling"))


def test_progress_bars_are_on_standard_error_only(capfd):
    for jobs in (1, 2):
        assert (
            main(f"run double_loop random --runs 2 --steps 20 --progress --jobs {jobs} --json".split()) == 0
        )
        out, err = capfd.readouterr()
        json.loads(out)
        assert "random" in err
        assert main(f"run double_loop random --runs 2 --steps 20 --jobs {jobs} --json".split()) == 0
        assert "100%" not in capfd.readouterr().err


def test_a_closed_pipe_is_no_error():
    done = subprocess.run(
        f"{sys.executable} -m bamdp list | head -1", shell=True, capture_output=True, text=True, check=False
    )
    assert "Environments" in done.stdout
    assert done.stderr == ""


@pytest.mark.parametrize("jobs", [1, 2])
def test_ctrl_c_ends_quietly_with_status_130(jobs):
    main(["warmup", "thompson"])
    command = f"-m bamdp run double_loop thompson --steps 10000000 --runs 2 --jobs {jobs} --progress"
    process = subprocess.Popen(
        [sys.executable, *command.split()],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # CI may have it ignored
    )
    try:
        assert process.stderr is not None
        while b"thompson" not in process.stderr.read1():  # the bar is there, so the runs have begun
            assert process.poll() is None
        time.sleep(2.0)
        os.killpg(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=60)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    assert process.returncode == 130
    assert out == b""
    assert b"Traceback" not in err
    assert b"Error" not in err
    assert b"stopped" in err


LAKE = "run gym:FrozenLake-v1:is_slippery=False thompson --prior sparse:beta=4 --steps 150 --runs 2"


def test_a_gym_environment_is_run_like_any_other(capsys):
    one = run_json(capsys, f"{LAKE} --objective lifetime")
    two = run_json(capsys, f"{LAKE} --objective lifetime --jobs 2")
    assert {**one, **dict.fromkeys(TIMES)} == {**two, **dict.fromkeys(TIMES)}
    assert one["env"] == "gym:FrozenLake-v1:is_slippery=False"
    assert one["rewards"].startswith("normal:mu0=0,lam=0.001")
    assert one["objective"] == "lifetime"
    assert one["optimum"] is one["share_of_optimum"] is None
    assert len(one["episodes"]["completed"]) == 2
    assert 0.0 <= one["episodes"]["success"] <= 1.0
    assert one["episodes"]["mean_return"] <= 1.0


def test_episodes_are_in_the_table(capsys):
    assert main(f"{LAKE} --rewards finite:values=(0,1)".split()) == 0
    out = capsys.readouterr().out
    assert "episodes per run" in out
    assert "success" in out
    assert "optimum" not in out


def test_the_objective_is_told_to_the_agent(tmp_path, capsys):
    """Stay for 0.36 or end with 1: with γ = 0.7 it depends on what follows an end (see the tests of planners)."""
    path = tmp_path / "stay.npz"
    p = np.zeros((2, 2, 2))
    p[0, 0, 1] = p[0, 1, 0] = 1.0
    bamdp.FiniteMDP(p, [[1.0, 0.36], [0.0, 0.0]], terminal=[1]).save(path)
    found = {}
    for objective in ("episode", "lifetime"):
        command = f"run file:{path} thompson --discount 0.7 --runs 1 --steps 60 --objective {objective}"
        found[objective] = run_json(capsys, f"{command} --prior dirichlet:alpha=0.01")["episodes"][
            "completed"
        ][0]
    assert found["episode"] < 20
    assert found["lifetime"] > 40


def test_learned_rewards_of_every_kind_are_listed_and_run(capsys):
    assert main(["list", "rewards"]) == 0
    out = capsys.readouterr().out
    for name in ("known", "beta", "normal", "finite"):
        assert name in out
    found = run_json(capsys, "run double_loop thompson --rewards normal:by=next,mu0=0.5 --runs 1 --steps 5")
    assert found["rewards"] == "normal:mu0=0.5,lam=0.001,alpha=2,beta=0.001,by=next"


def complete(script, line):
    """Return what bash offers for the last word of a line."""
    words = line.split(" ")
    command = f"""
        {script}
        COMP_WORDS=({" ".join(f"'{word}'" for word in words)}) COMP_CWORD={len(words) - 1}
        _bamdp
        printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True)
    assert not done.stderr
    return done.stdout.split()


def test_the_shell_completes_commands_options_and_names(capsys):
    assert main(["completion", "bash"]) == 0
    script = capsys.readouterr().out
    offered = {
        "bamdp st": ["studio"],
        "bamdp run maz": ["maze", "maze_door"],
        "bamdp run maze dss-": ["dss-pi", "dss-rtdp", "dss-vi"],
        "bamdp run --json maze dss-p": ["dss-pi"],  # --json has no value
        "bamdp run --runs 3 maze dss-p": ["dss-pi"],  # --runs has one
        "bamdp run maze dss-pi --prior s": ["sparse", "shared"],
        "bamdp compare maze dss-pi tho": ["thompson"],
        "bamdp tune grid5 dss-pi --gri": ["--grid"],
        "bamdp lab re": ["report"],
        "bamdp lab run dss2020/f": ["dss2020/fair", "dss2020/fair2", "dss2020/figure3"],
        "bamdp lab run --qu": ["--quick"],
        "bamdp list p": ["planners", "priors"],
    }
    assert {line: complete(script, line) for line in offered} == offered
    assert set(complete(script, "bamdp run x ")) == set(PLANNERS)
    assert main(["completion", "zsh"]) == 0
    assert capsys.readouterr().out.endswith(script)


def test_runs_with_a_drawn_door_are_measured_by_the_door_that_was_drawn(capsys):
    door = {
        name: run_json(capsys, f"run maze_door:door={name} random --runs 1")["optimum"]
        for name in ("open", "closed")
    }
    assert door["open"] > 1.1 * door["closed"]
    env, drawn = bamdp.make_env("maze_door"), []
    for replicate in range(5):
        env.reset(seed=np.random.SeedSequence(0, spawn_key=(replicate, 0)))
        drawn.append(env.door)
    assert len(set(drawn)) == 2
    found = run_json(capsys, "run maze_door random --runs 5")
    assert found["optimum"] == pytest.approx(np.mean([door[name] for name in drawn]))
    assert found["share_of_optimum"] == pytest.approx(found["total_reward"]["mean"] / found["optimum"])


def test_compare_shows_episodes_and_success_as_run_does(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main("compare deep_sea:size=4 random thompson --steps 80 --runs 4 --json".split()) == 0
    samples = json.loads(capsys.readouterr().out)["samples"]
    assert [s["episodes"]["per_run"] for s in samples] == [20.0, 20.0]  # every episode has four steps
    for sample in samples:
        assert 0.0 <= sample["episodes"]["success"] <= 1.0
        assert sample["episodes"]["mean_return"] == pytest.approx(np.mean(sample["totals"]) / 20)
    assert main("compare deep_sea:size=4 random thompson --steps 80 --runs 4".split()) == 0
    table = capsys.readouterr().out
    assert "20.0" in table
    assert "success" in table
    assert main("compare chain random --steps 20 --runs 2 --json".split()) == 0
    assert json.loads(capsys.readouterr().out)["samples"][0]["episodes"] is None


@pytest.mark.parametrize("command", ["run chain thompson", "compare chain thompson random"])
def test_a_figure_of_the_learning_curves(command, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main([*command.split(), *"--runs 2 --steps 60 --figure curves.png".split()]) == 0
    assert (tmp_path / "curves.png").read_bytes().startswith(b"\x89PNG")
    assert "figure: curves.png" in capsys.readouterr().err
    assert main([*command.split(), *"--runs 2 --steps 60 --figure curves.jpeg".split()]) == 2
    assert "--figure must end in .png, .svg or .pdf" in capsys.readouterr().err


def test_bins_make_states_of_observations(capsys, tmp_path):
    found = run_json(capsys, "run gym:CartPole-v1 thompson --bins 3,3,6,5 --runs 1 --steps 40")
    assert found["env"] == "gym:CartPole-v1:bins=(3,3,6,5)"
    why = tmp_path / "why.html"
    assert main(f"explain gym:CartPole-v1 thompson --bins 3,3,6,5 --out {why}".split()) == 0
    assert "gym:CartPole-v1:bins=(3,3,6,5)" in why.read_text()
    assert main("run chain thompson --bins 3".split()) == 2
    assert "observations of Gymnasium's environments" in capsys.readouterr().err


def test_comparisons_say_where_runs_are_kept(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    command = "compare chain random --runs 1 --steps 9".split()
    assert main(command) == 0
    assert "runs are kept in .bamdp/runs.sqlite" in capsys.readouterr().err
    assert (tmp_path / ".bamdp" / "runs.sqlite").exists()
    assert main(command) == 0
    assert "runs are kept" not in capsys.readouterr().err
