"""Extreme and malformed command lines: a result or one line of error, never a traceback, never a warning."""

from __future__ import annotations

import signal
import subprocess
import sys
import warnings
from contextlib import contextmanager

import numpy as np
import pytest

from bamdp.cli import LONGEST_MESSAGE, main
from bamdp.registry import PLANNERS, make_planner

INTEGERS = ["100000000000000000000", "-1", "1e400", "nan", "", "9223372036854775808", "0x10", "[1,2]"]
MORE_INTEGERS = [*INTEGERS, "-99999999999999999999", "inf", "1.5", "--", "9" * 5000, "٣x"]
REALS = ["1e400", "nan", "", "1e308", "[1]", "9" * 5000]
TINY = ["1e-400", "5e-324", "1e-300", "0"]  # legal in some places
SHORT_RUN = ["--runs", "1", "--steps", "3"]


def option_cases(words, option, values):
    return [[*words, f"{option}={value}"] for value in values]


def parameter_cases(env, planner, key, values):
    return [["run", env, planner, *SHORT_RUN, "--set", f"{key}={value}"] for value in values]


def spec_cases(form, values):
    return [[word.replace("VALUE", value) for word in form] for value in values]


def all_cases():
    cases = []
    short_run = ["run", "chain", "random"]
    for option in ("--steps", "--runs", "--jobs", "--seed"):
        rest = [] if option == "--steps" else ["--steps", "3"]
        rest += [] if option == "--runs" else ["--runs", "1"]
        cases += option_cases([*short_run, *rest], option, MORE_INTEGERS)
    cases += option_cases([*short_run, *SHORT_RUN], "--discount", [*REALS, *TINY])
    cases += option_cases(["solve", "chain"], "--steps", INTEGERS)
    cases += option_cases(["solve", "chain", "--steps", "3"], "--discount", [*REALS, *TINY])
    for option in ("--n-policies", "--n-samples", "--n-steps", "--n-stages", "--n-actions", "--seed"):
        cases += option_cases(["theory"], option, INTEGERS)
    for option in ("--c", "--epsilon0", "--reward-range", "--delta", "--discount"):
        cases += option_cases(["theory"], option, [*REALS, *TINY, "1e100"])
        cases += option_cases(["theory", "--json"], option, [*TINY, "1e100"])
    for option in ("--after", "--pairs", "--episodes"):
        small = ["--pairs", "2"] if option != "--pairs" else []
        small += ["--episodes", "2"] if option != "--episodes" else []
        cases += option_cases(["theory", "--env", "chain", *small], option, INTEGERS)
    cases += option_cases(["explain", "chain", "thompson"], "--step", INTEGERS)
    for option in ("--steps", "--runs", "--jobs", "--seed"):
        cases += option_cases(["compare", "chain", "random", "--store", "none/a.sqlite"], option, INTEGERS)
    for option in ("--runs", "--configurations", "--screening", "--evaluate", "--budget"):
        tune = ["tune", "chain", "thompson", "--grid", "tol=0.1,0.2", "--store", "none/a.sqlite"]
        tune += ["--method", "halving"] if option in ("--screening", "--budget") else []
        cases += option_cases(tune, option, INTEGERS)
    for env, planner, key in (
        ("chain", "bamcp", "n_simulations"),
        ("chain", "bamcp", "depth"),
        ("chain", "dss-pi", "n_policies"),
        ("chain", "dss-pi", "n_steps"),
        ("chain", "dss-pi", "n_stages"),
        ("chain", "dss-rtdp", "generator.depth"),
        ("chain", "fhts", "horizon"),
        ("chain", "sparse-sampling", "width"),
        ("chain", "bfs3", "n_trajectories"),
        ("chain", "boss", "n_models"),
        ("chain", "mcbrl", "n_models"),
        ("chain", "rmax", "known_after"),
        ("chain", "bootstrapped-dqn", "n_networks"),
    ):
        cases += parameter_cases(env, planner, key, INTEGERS)
    for planner, key in (
        ("thompson", "tol"),
        ("beb", "bonus"),
        ("bolt", "eta"),
        ("vbrb", "beta_r"),
        ("q-learning", "initial"),
        ("q-learning", "learning_rate"),
        ("bayesian-q-learning", "spread"),
        ("bayesian-q-learning", "lam"),
        ("bamcp", "exploration"),
        ("bamcp", "time_limit"),
        ("epsilon-greedy", "epsilon"),
        ("bootstrapped-dqn", "prior_scale"),
    ):
        largest = [] if key == "time_limit" else ["1e100", "-1e100"]  # so many seconds would be legal
        cases += parameter_cases("chain", planner, key, [*REALS, *largest])
    for prior in (
        "sparse:alpha=VALUE",
        "sparse:beta=VALUE",
        "sparse:p_k=VALUE",
        "sparse:p_k=(VALUE,1)",
        "dirichlet:alpha=VALUE",
        "flat:alpha=VALUE/S",
    ):
        cases += spec_cases(["run", "chain", "thompson", *SHORT_RUN, "--prior", prior], [*REALS, *TINY])
    mixture = ["run", "chain", "thompson", *SHORT_RUN, "--prior", "VALUE*flat+sparse"]
    cases += spec_cases(mixture, REALS)
    for rewards in (
        "normal:mu0=VALUE",
        "normal:lam=VALUE",
        "normal:alpha=VALUE",
        "normal:beta=VALUE",
        "normal:bounds=(VALUE,1)",
        "finite:max_values=VALUE",
        "finite:concentration=VALUE",
        "finite:values=(0,VALUE)",
        "beta:a=VALUE",
    ):
        cases += spec_cases(
            ["run", "chain", "thompson", *SHORT_RUN, "--rewards", rewards], [*REALS, "1e-400"]
        )
    for env in (
        "chain:n_states=VALUE",
        "chain:slip=VALUE",
        "grid:size=VALUE",
        "grid:slip=VALUE",
        "river_swim:n_states=VALUE",
        "bandit:means=VALUE",
        "bandit:means=(0.1,VALUE)",
        "bandit:arms=VALUE",
        "random_mdp:n_states=VALUE",
        "random_mdp:n_actions=VALUE",
        "random_mdp:alpha=VALUE",
        "random_mdp:beta=VALUE",
        "random_mdp:model_seed=VALUE",
        "deep_sea:size=VALUE",
        "deep_sea:mapping_seed=VALUE",
        "file:model.npz:horizon=VALUE",
    ):
        cases += spec_cases(["run", env, "random", *SHORT_RUN], [*INTEGERS, *TINY, "1e308", "2147483648"])
    cases += [["run", "chain", "random", "--set", "x" * 100_000], ["run", "x" * 100_000, "random"]]
    cases += [["run", "chain", "random", "x" * 100_000], ["x" * 100_000], ["--" + "x" * 100_000]]
    cases += [["run", "chain", "thompson", "--prior", "sparse:p_k=" + "(" * 100_000]]
    cases += [["run", f"bandit:means={'[' * 100_000}", "random"], ["run", "bandit:means=(1,(2,))", "random"]]
    return cases


def case_name(words):
    return " ".join(word if len(word) < 40 else f"{word[:30]}..{len(word)}" for word in words)


CASES = all_cases()


def test_the_table_has_many_lines():
    assert len(CASES) >= 150
    assert len({tuple(words) for words in CASES}) == len(CASES)


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    swap = np.array([[[0.0, 1.0]], [[1.0, 0.0]]])
    np.savez(folder / "model.npz", transitions=swap, rewards=[0.0, 1.0])
    np.savez(folder / "large.npz", transitions=swap, rewards=[0.0, 1e300])
    np.savez(folder / "largest.npz", transitions=swap, rewards=[-1e100, 1e100])
    np.savez(folder / "tiny.npz", transitions=swap, rewards=[0.0, 1e-310])
    np.savez_compressed(folder / "bomb.npz", transitions=np.zeros((200, 2, 200)), rewards=np.zeros(200))
    return folder


@pytest.mark.parametrize("words", CASES, ids=case_name)
def test_an_extreme_line_ends_in_a_result_or_one_line_of_error(words, models, monkeypatch, capfd):
    monkeypatch.chdir(models)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        status = main(words)
    captured = capfd.readouterr()
    assert status in (0, 1, 2)
    errors = [line for line in captured.err.splitlines() if not line.startswith("compiling")]
    if status == 0:
        assert not any("error:" in line for line in errors)
    else:
        assert len(errors) == 1
        assert errors[0].startswith("error: ")
        assert len(errors[0]) <= LONGEST_MESSAGE + 20
        assert captured.out == ""
    assert "Traceback" not in captured.err
    assert "Warning" not in captured.err


def error_of(words, capsys):
    """The status and what is said on standard error, other than that something is compiled."""
    status = main(words.split())
    lines = capsys.readouterr().err.splitlines(keepends=True)
    return status, "".join(line for line in lines if not line.startswith("compiling for this"))


TOO_LARGE = [
    ("run grid:size=100000 random", "a grid of 100000 by 100000 cells would need about 18626 GiB"),
    ("run deep_sea:size=1000000 random", "a deep sea of 1000000 by 1000000 cells would need"),
    ("run chain:n_states=10000000 random", "a chain of 10000000 states would need"),
    ("run river_swim:n_states=10000000 random", "a river of 10000000 states would need"),
    ("run random_mdp:n_states=1000000,prior=flat random", "a random model of 1000000 states"),
    ("run random_mdp:n_states=1000000,beta=-3 random", "a random model of 1000000 states"),
    ("run random_mdp:n_actions=10000000000 random", "a random model of 10 states and 10000000000 actions"),
    ("solve grid:size=100000", "a grid of 100000 by 100000 cells would need"),
    ("run chain random --steps 1000000000000", "the record of a run of 1000000000000 steps"),
    ("run chain random --runs 1000000000000", "the record of 1000000000000 runs of 1000 steps"),
    ("run chain random --jobs 1000000", "jobs must be at least 1 and at most 4096"),
    ("explain chain thompson --step 1000000000000", "a run of 1000000000000 steps that can be played back"),
    ("theory --env chain --pairs 1 --episodes 1000000000000000", "1000000000000000 episodes"),
    ("theory --env chain --after 1000000000000000", "the record of a run of 1000000000000000 steps"),
    ("run chain dss-pi --set n_stages=9223372036854775807", "with n_stages=9223372036854775807 would need"),
    ("run chain boss --set n_models=1000000000000", "with n_models=1000000000000 would need"),
    ("compare chain boss:n_models=1000000000000 random", "with n_models=1000000000000 would need"),
]


@pytest.mark.parametrize(("words", "message"), TOO_LARGE)
def test_a_request_that_cannot_fit_is_refused_before_work_with_the_size_that_it_needs(
    words, message, models, monkeypatch, capsys
):
    monkeypatch.chdir(models)
    monkeypatch.setenv("BAMDP_MAX_MEMORY", "12G")
    status, error = error_of(words, capsys)
    assert status == 2
    assert message in error
    assert len(error.splitlines()) == 1


def test_a_compressed_model_is_refused_by_its_size_when_read(models, monkeypatch, capsys):
    monkeypatch.chdir(models)
    monkeypatch.setenv("BAMDP_MAX_MEMORY", "1500K")  # its arrays have 640 kB, the file a few
    status, error = error_of("run file:bomb.npz random", capsys)
    assert status == 2
    assert "the model in bomb.npz would need about" in error


@pytest.mark.parametrize("name", ["large", "tiny"])
@pytest.mark.parametrize("command", ["run {} dss-pi", "explain {} dss-pi", "solve {}", "compare {} random"])
def test_rewards_whose_squares_overflow_or_vanish_are_refused(name, command, models, monkeypatch, capsys):
    monkeypatch.chdir(models)
    status, error = error_of(command.format(f"file:{name}.npz"), capsys)
    assert status == 2
    assert "scale them" in error
    assert len(error.splitlines()) == 1


@pytest.mark.parametrize("planner", PLANNERS)
def test_the_largest_rewards_are_planned_with_or_refused_without_a_warning(
    planner, models, monkeypatch, capsys
):
    monkeypatch.chdir(models)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        status, error = error_of(f"run file:largest.npz {planner} --steps 5 --runs 2", capsys)
    assert (status, "counts in 32 bits" in error) == (
        (2, True) if planner == "bootstrapped-dqn" else (0, False)
    )


LONG_WORK = [
    ("bamcp --set n_simulations=1000000000000", "a step of bamcp takes about 26 days"),
    ("dss-pi --set n_stages=1000", "a step of dss-pi takes about 10^300 years or more"),
]


@contextmanager
def interruptible(words, folder):
    """A process that Ctrl-C reaches also where the tests run with it ignored; it is ended with the block."""
    process = subprocess.Popen(
        words,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=folder,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize(("planner", "message"), LONG_WORK)
def test_long_work_is_announced_and_ctrl_c_ends_it_with_status_130(planner, message, tmp_path):
    words = [sys.executable, "-m", "bamdp", "run", "grid5", *planner.split()]
    with interruptible(words, tmp_path) as process:
        assert message in process.stderr.readline()
        for _ in range(30):  # the first may come before the planner begins: then Python handles it
            process.send_signal(signal.SIGINT)
            try:
                process.wait(timeout=2)
                break
            except subprocess.TimeoutExpired:
                continue
        process.kill()
        rest = process.stderr.read()
    assert process.returncode == 130
    assert "stopped" in rest
    assert "Traceback" not in rest


def test_ctrl_c_ends_compiled_work_that_python_cannot_interrupt(tmp_path):
    code = (
        "import bamdp\n"
        "from bamdp.cli.waiting import ctrl_c_at_once\n"
        "env = bamdp.make_env('chain')\n"
        "few, many = (bamdp.Agent(bamdp.BAMCP(n_simulations=n), prior=bamdp.Dirichlet(), rewards=env.rewards, "
        "n_states=5, n_actions=2, discount=0.9) for n in (10, 10**12))\n"
        "few.act(0)\n"  # compiles
        "with ctrl_c_at_once():\n"
        "    print('ready', flush=True)\n"
        "    many.act(0)\n"
    )
    with interruptible([sys.executable, "-c", code], tmp_path) as process:
        process.stdout.readline()
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(timeout=3)  # it is at work by then
        process.send_signal(signal.SIGINT)
        process.wait(timeout=60)
        said = [
            line for line in process.stderr.read().splitlines() if not line.startswith("compiling for this")
        ]
        assert (process.returncode, said) == (130, ["stopped"])


@pytest.mark.parametrize("planner", PLANNERS)
def test_planning_with_the_usual_parameters_is_expected_to_be_quick(planner):
    assert 0.0 < make_planner(planner).cost(25, 4, 0.95).seconds < 0.1


def test_short_work_is_not_announced(capsys):
    assert main("run chain bamcp --steps 2 --runs 1".split()) == 0
    assert "takes about" not in capsys.readouterr().err
