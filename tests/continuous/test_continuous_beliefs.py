"""Beliefs about continuous dynamics: samples, branches, walls, angles, units, compiled and uncompiled rollouts."""

import gymnasium
import numpy as np
import pytest

from bamdp.continuous import LinearGaussian, RandomFeatures, System, known, system_of
from bamdp.continuous import models as models_module
from bamdp.continuous.cem import Outputs, Search, returns
from bamdp.continuous.planners import outputs_of


def box(low=(-1.0, -1.0), high=(1.0, 1.0), **known):
    return System(np.array(low), np.array(high), np.array([-2.0]), np.array([2.0]), **known)


def learned(prior=None, n=25, env="Pendulum-v1", **more):
    """Return a belief that has seen random play, and where it ended."""
    env = gymnasium.make(env)
    facts = {**known(env), **more}
    belief = (prior or RandomFeatures()).belief(system_of(env, **facts))
    env.action_space.seed(0)
    s, _ = env.reset(seed=0)
    for _ in range(n):
        a = env.action_space.sample()
        after, r, terminated, *_ = env.step(a)
        belief.observe(s, a, r, after, terminated)
        s = after
    return belief, s


def test_a_linear_model_is_found_from_few_steps():
    belief = LinearGaussian(noise=0.01).belief(box((-9, -9), (9, 9)))
    rng, s = np.random.default_rng(0), np.zeros(2)
    A, B = np.array([[0.9, 0.2], [0.0, 0.8]]), np.array([0.1, 0.5])
    for _ in range(40):
        a = rng.uniform(-2, 2, 1)
        after = A @ s + B * a + 0.01 * rng.normal(size=2)
        belief.observe(s, a, 0.0, after)
        s = after
    mean, deviation = belief.predict([1.0, -1.0], [[0.5]])
    assert mean[0] == pytest.approx(A @ [1, -1] + 0.5 * B, abs=0.03)
    assert deviation[0] == pytest.approx(0.01, rel=0.5)


def test_the_posterior_of_a_scalar_gain_is_exact():
    belief = LinearGaussian(state=0, bias=0, noise=1.0).belief(box((-40,), (40,)))
    x, m, p = 1.0, 0.0, 1.0
    for u, after in ((0.5, 2.1), (-1.5, 0.4), (2.0, -1.0)):
        belief.observe([x], [u], 0.0, [after])
        m, p = m + p * u / (1 + u * u * p) * (after - x - m * u), p / (1 + u * u * p)
        x = after
    mean, deviation = belief.predict([1.0], [[2.0]])
    assert mean[0, 0] == pytest.approx(1 + 2 * m, rel=1e-6)
    assert deviation[0, 0] == pytest.approx(np.sqrt(1 + 4 * p), rel=1e-6)


def test_samples_have_the_mean_and_spread_of_the_predictive():
    belief, s = learned()
    state = np.repeat(belief.system.state(s)[None], 4000, 0)
    models = belief.sample(np.random.default_rng(1), 4000)
    drawn = models.outputs(np.arange(4000), state, np.zeros((4000, 1)))
    mean, deviation = belief.predict(s, [[0.0]])
    assert drawn.mean(0) + state[0] == pytest.approx(mean[0], abs=5 * deviation[0].max() / 60)
    noisy = np.sqrt(drawn.var(0) + (models.noise**2).mean(0))
    assert noisy == pytest.approx(deviation[0], rel=0.1)


def test_draws_of_one_number_are_one_function_as_data_arrive():
    belief, s = learned(RandomFeatures(refit=False), n=30)
    control, state = np.zeros((1, 1)), belief.system.state(s)[None]
    before, other = (belief.sample(seed).outputs(np.zeros(1, int), state, control) for seed in (1, 2))
    again = belief.sample(1).outputs(np.zeros(1, int), state, control)
    assert (before == again).all()
    assert (before != other).all()


def test_imagined_branches_are_what_observing_them_gives():
    belief, s = learned()
    rng = np.random.default_rng(0)
    start = np.repeat(belief.system.state(s)[None], 3, 0)
    controls = rng.uniform(-1, 1, (3, 4, 1))
    states, extras = belief.sample(1, 2).follow(
        np.array([0, 1, 0]), start, controls, 1, rng.normal(size=(3, 4, 2))
    )
    imagined = belief.imagine(states, controls, extras).means
    for b in range(3):
        after = belief.copy()
        after.next_fit = 10**9
        for k in range(4):
            seen, later = (after.system.observations(states[b, i].astype(float)) for i in (k, k + 1))
            after.observe(seen, after.system.action(controls[b, k]), 0.0, later)
        assert imagined[b] == pytest.approx(after.mean().weights[0], abs=1e-4)
        assert np.abs(imagined[b] - belief.mean().weights[0]).max() > 1e-2
    assert belief.n == 25


@pytest.mark.parametrize("env", ["Pendulum-v1", "Acrobot-v1", "MountainCarContinuous-v0"])
def test_compiled_and_uncompiled_rollouts_agree(env, monkeypatch):
    belief, s = learned(env=env)
    rng = np.random.default_rng(0)
    d, k = belief.system.n_states, belief.system.n_controls
    start, controls = np.repeat(belief.system.state(s)[None], 4, 0), rng.uniform(-1, 1, (4, 5, k))
    models, which, noise = belief.sample(1, 2), np.array([0, 1, 1, 0]), rng.normal(size=(4, 10, d))
    if belief.system.n_actions:
        controls = np.eye(k)[controls.argmax(2)]
    compiled, _ = models.follow(which, start, controls, 2, noise)
    monkeypatch.setattr(models_module, "JIT", False)
    plain, _ = models.follow(which, start, controls, 2, noise)
    assert compiled == pytest.approx(plain, rel=1e-3, abs=1e-3)


def test_predictive_intervals_hold_what_comes():
    belief, _ = learned(n=80)
    assert (np.abs(belief.coverage(0.9) - 0.9) < 0.15).all()


def test_known_physics_as_mean_leaves_nothing_to_learn():
    def physics(s, a):
        return s + np.stack([s[:, 1], a[:, 0]], 1)

    belief = RandomFeatures(mean=physics).belief(box((-9, -9), (9, 9)))
    rng = np.random.default_rng(0)
    for _ in range(12):
        s, a = rng.uniform(-1, 1, (1, 2)), rng.uniform(-1, 1, (1, 1))
        belief.observe(s[0], a[0], 0.0, physics(s, a)[0])
    far = np.array([[6.0, 1.0]])
    assert belief.predict(far, [[0.5]])[0] == pytest.approx(physics(far, np.array([[0.5]])), abs=0.2)
    assert belief.mean().rollout(far, np.full((1, 1, 1), 0.25))[0, 1] == pytest.approx([7.0, 1.5], abs=0.2)


def test_a_feature_of_known_form_gets_its_weight():
    belief = LinearGaussian(noise=0.01, features=lambda s, a: np.sin(5 * s)).belief(box((-9,), (9,)))
    rng = np.random.default_rng(0)
    for _ in range(20):
        s = rng.uniform(-1, 1, 1)
        belief.observe(s, [0.0], 0.0, s + 0.7 * np.sin(5 * s))
    assert belief.predict([0.3], [[0.0]])[0][0, 0] == pytest.approx(0.3 + 0.7 * np.sin(1.5), abs=0.02)


def test_a_wall_does_not_spoil_what_is_known_of_free_motion():
    belief = RandomFeatures().belief(box((-1, -1), (1, 1)))
    rng, s = np.random.default_rng(0), np.zeros(2)
    for _ in range(60):
        a = rng.uniform(-2, 2, 1)
        v = s[1] + 0.05 * a[0]
        x = s[0] + 0.2 * v
        after = np.array([np.clip(x, -1, 1), 0.0 if abs(x) > 1 else v])
        belief.observe(s, a, 0.0, after)
        s = np.array([0.9 * np.sign(rng.normal()), rng.uniform(-0.8, 0.8)]) if abs(x) > 1 else after
    assert not np.array(belief.data.used).all()
    mean, _ = belief.predict([0.5, 0.3], [[1.0]])
    assert mean[0] == pytest.approx([0.57, 0.35], abs=0.02)
    states = belief.mean().rollout(np.array([[0.9, 0.9]]), np.zeros((1, 5, 1)))
    assert (np.abs(states) <= 1.0).all()


def test_an_angle_that_turns_over_changes_by_the_short_way():
    belief = LinearGaussian(noise=0.01).belief(box((-np.pi, -9), (np.pi, 9), angles=(0,)))
    belief.observe([3.1, 0.0], [0.0], 0.0, [-3.1, 0.0])
    assert belief.data.outputs[0][0] == pytest.approx(2 * np.pi - 6.2)


def test_a_pair_of_cosine_and_sine_is_one_angle():
    system = system_of(gymnasium.make("Acrobot-v1"), angles=[(0, 1), (2, 3)])
    angles = np.array([0.4, -2.0, 0.1, 0.2])
    observation = system.observations(angles)
    assert observation == pytest.approx([np.cos(0.4), np.sin(0.4), np.cos(2.0), -np.sin(2.0), 0.1, 0.2])
    assert system.state(observation) == pytest.approx(angles)


def test_cosines_and_sines_are_recognised_as_angles_from_their_squares():
    undeclared, _ = learned(angles=(), n=12)
    declared, s = learned(n=12)
    assert undeclared.system.angles == declared.system.angles == ((0, 1),)
    assert undeclared.predict(s, [[0.5]])[0] == pytest.approx(declared.predict(s, [[0.5]])[0], abs=1e-5)
    acrobot, _ = learned(env="Acrobot-v1", angles=(), n=12)
    assert acrobot.system.angles == ((0, 1), (2, 3))
    car, _ = learned(env="MountainCarContinuous-v0", n=12)
    assert car.system.angles == ()


def test_rewards_and_ends_are_kept_when_an_angle_is_recognised():
    undeclared, _ = learned(angles=(), reward=None, terminated=None, n=12)
    declared, s = learned(reward=None, terminated=None, n=12)
    state = declared.system.state(s)[None]
    seen = [belief._predict(state, np.zeros((1, 1)))[0][0, 1:] for belief in (undeclared, declared)]
    assert seen[0] == pytest.approx(seen[1], abs=1e-4)


def test_learned_rewards_are_not_extrapolated_below_the_lowest_one_seen():
    belief, _ = learned(reward=None, terminated=None)
    lowest = min(row[belief.reward_output] for row in belief.data.outputs)
    extras, outputs = np.array([[[-99.0, 0.0], [-1.0, 0.0]]]), outputs_of(belief)
    total, _ = returns(outputs, np.zeros((1, 3, 2)), np.zeros((1, 2, 1)), extras, Search(2, discount=1.0))
    assert total[0] == pytest.approx(lowest - 1.0)


def test_rewards_after_an_end_do_not_count():
    system = box(
        (-9,), (9,), reward=lambda s, a, s2: np.ones(len(s)), terminated=lambda s, a, s2: s2[:, 0] > 1.5
    )
    states = np.array([[[0.0], [1.0], [2.0], [3.0]]])
    total, alive = returns(
        Outputs(system), states, np.zeros((1, 3, 1)), np.zeros((1, 3, 0)), Search(3, discount=0.5)
    )
    assert (total[0], alive[0]) == (1.5, 0.0)


def test_the_unit_of_an_observation_does_not_matter_where_the_box_is_infinite():
    def predict(unit):
        belief = RandomFeatures().belief(box((-np.inf,), (np.inf,)))
        rng = np.random.default_rng(0)
        for _ in range(30):
            s, a = rng.uniform(-1, 1, 1), rng.uniform(-2, 2, 1)
            belief.observe(unit * s, a, 0.0, unit * (s + np.sin(3 * s) + 0.1 * a))
        return belief.predict([0.4 * unit], [[1.0]])[0][0, 0] / unit

    assert predict(1e4) == pytest.approx(predict(1.0), rel=1e-3)
    assert predict(1.0) == pytest.approx(0.4 + np.sin(1.2) + 0.1, abs=0.05)


@pytest.mark.parametrize("bad", [[np.nan, 0.0], [0.0], [np.inf, 0.0]])
def test_bad_observations_are_refused(bad):
    belief = RandomFeatures().belief(box())
    with pytest.raises(ValueError, match="observation"):
        belief.observe(bad, [0.0], 0.0, [0.0, 0.0])
    assert belief.n == 0


def test_actions_need_bounds_and_functions_must_be_functions():
    env = gymnasium.make("Pendulum-v1")
    with pytest.raises(TypeError, match="function of"):
        system_of(env, reward=3.0)
    env.action_space = gymnasium.spaces.Box(-np.inf, np.inf, (1,))
    with pytest.raises(ValueError, match="finite bounds"):
        system_of(env)
    with pytest.raises(ValueError, match="one angle only"):
        system_of(gymnasium.make("Pendulum-v1"), angles=[0, (0, 1)])


def test_the_evidence_prefers_the_right_noise():
    def evidence(noise):
        belief = LinearGaussian(noise=noise).belief(box((-9,), (9,)))
        rng = np.random.default_rng(0)
        for _ in range(30):
            s = rng.uniform(-1, 1, 1)
            belief.observe(s, [0.0], 0.0, 0.5 * s + 0.3 * rng.normal(size=1))
        return belief.log_evidence()

    assert evidence(0.3) > max(evidence(0.03), evidence(3.0))


def test_copies_are_independent():
    belief, s = learned()
    copy = belief.copy()
    copy.observe(s, [0.0], 0.0, s)
    assert (belief.n, copy.n) == (25, 26)
    assert all(p.n <= 25 and len(p.rows) <= 25 for p in belief.posteriors)
