"""Files of agents and beliefs: what is loaded decides as what was saved, and a bad file is one clear line."""

from __future__ import annotations

import json

import numpy as np
import pytest

import bamdp
from conformance_cases import BY_PAIR, PRIORS, A, S, agent_of, environment


def saved_and_loaded(agent, tmp_path):
    agent.save(tmp_path / "agent.npz")
    return bamdp.Agent.load(tmp_path / "agent.npz")


@pytest.mark.parametrize(
    "planner",
    [
        bamdp.ThompsonSampling(resample="episode"),
        bamdp.MCBRL(n_models=2),
        bamdp.BOSS(known_after=50),
        bamdp.SBOSS(delta=100.0),
        bamdp.DSS(n_policies=2, n_samples=2, n_steps=3, replan_every=6),
        bamdp.BAMCP(n_simulations=20),
    ],
    ids=lambda planner: type(planner).__name__,
)
def test_what_a_planner_follows_is_followed_on(planner, tmp_path):
    env = bamdp.make_env("chain")
    agent = bamdp.Agent.for_env(env, planner, prior="sparse", seed=1)
    bamdp.simulate(agent, env, steps=7, seed=2)
    twin = saved_and_loaded(agent, tmp_path)
    state = env.state
    assert twin.plan(state).action == agent.plan(state).action
    assert [twin.act(state) for _ in range(4)] == [agent.act(state) for _ in range(4)]


@pytest.mark.parametrize("prior", PRIORS)
def test_beliefs_are_kept_for_every_prior(prior, tmp_path):
    agent = agent_of("thompson", prior, "pair")
    bamdp.simulate(agent, environment("pair"), steps=20, seed=1)
    agent.belief.save(tmp_path / "belief.npz")
    twin = bamdp.Belief.load(tmp_path / "belief.npz")
    assert all(
        (twin.predictive(s, a) == agent.belief.predictive(s, a)).all() for s in range(S) for a in range(A)
    )
    assert repr(twin.prior) == repr(agent.belief.prior)


def test_rewards_of_finite_models_and_horizons_are_kept(tmp_path):
    env = bamdp.make_env("maze_door")
    agent = bamdp.Agent.for_env(env, "thompson", prior="models", horizon=50, discount="auto", seed=1)
    bamdp.simulate(agent, env, steps=10, seed=1)
    twin = saved_and_loaded(agent, tmp_path)
    assert (twin.steps_left, twin.reach, twin.discount) == (agent.steps_left, agent.reach, agent.discount)
    assert (twin.belief.weights == agent.belief.weights).all()


def own_policy(mdp, discount):
    return np.zeros(mdp.n_states, int)


def test_a_function_as_generator_is_found_again(tmp_path):
    agent = bamdp.Agent(bamdp.DSS(generator=own_policy), prior="sparse", n_states=S, n_actions=A, rewards=BY_PAIR,
                        discount=0.9, seed=0)  # fmt: skip
    assert saved_and_loaded(agent, tmp_path).planner == agent.planner
    agent = bamdp.Agent(bamdp.DSS(generator=lambda mdp, discount: None), prior="sparse", n_states=S, n_actions=A,
                        discount=0.9)  # fmt: skip
    with pytest.raises(TypeError, match="define it at the top of a module"):
        agent.save(tmp_path / "agent.npz")


def edited(path, **arrays):
    """Return the path of a copy of a file with other arrays."""
    with np.load(path) as file:
        content = {name: file[name] for name in file.files}
    np.savez(path.with_name("edited.npz"), **(content | arrays))
    return path.with_name("edited.npz")


@pytest.fixture
def saved(tmp_path):
    agent_of("boss", "sparse", "pair").save(tmp_path / "agent.npz")
    return tmp_path / "agent.npz"


def one_line(path, error=ValueError):
    with pytest.raises(error) as raised:
        bamdp.Agent.load(path)
    assert "\n" not in str(raised.value)
    return str(raised.value)


def test_missing_foreign_and_damaged_files_are_one_clear_line(saved, tmp_path):
    assert "there is no file 'nope.npz'" in one_line("nope.npz", FileNotFoundError)
    (tmp_path / "text.npz").write_text("not an archive")
    np.savez(tmp_path / "foreign.npz", x=np.arange(3))
    np.savez(tmp_path / "pickle.npz", json=np.array([{}], object))
    data = saved.read_bytes()
    (tmp_path / "half.npz").write_bytes(data[: len(data) // 2])
    for name in ("text", "foreign", "pickle", "half"):
        assert "is not a file saved by bamdp" in one_line(tmp_path / f"{name}.npz")
    with np.load(saved) as file:
        document = json.loads(str(file["json"]))
    later = edited(saved, json=np.array(json.dumps(document | {"format": 99})))
    assert "has format 99" in one_line(later)
    agent_of("random", "sparse", "pair").belief.save(tmp_path / "belief.npz")
    assert "holds a belief, not an agent" in one_line(tmp_path / "belief.npz")


def test_edited_arrays_are_refused(saved):
    agent = bamdp.Agent.load(saved)
    bamdp.simulate(agent, environment("pair"), steps=5, seed=1)
    agent.save(saved)
    with np.load(saved) as file:
        arrays = {name: file[name] for name in file.files if name != "json"}
    for name, array in arrays.items():
        if array.size:
            assert "edited" in one_line(edited(saved, **{name: array + 1 if array.dtype != bool else ~array}))


def test_a_failed_save_leaves_the_old_file(saved, monkeypatch):
    before = saved.read_bytes()
    monkeypatch.setattr(np, "savez_compressed", lambda *a, **k: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        bamdp.Agent.load(saved).save(saved)
    assert saved.read_bytes() == before
    assert [path.name for path in saved.parent.iterdir()] == ["agent.npz"]
