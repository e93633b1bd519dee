"""Systems with continuous states: energies, published constants, and what is known of them."""

import doctest
import sys

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from numpy.polynomial.legendre import leggauss
from scipy.integrate import quad
from scipy.optimize import minimize_scalar
from scipy.stats import norm

import bamdp
import bamdp.continuous.tasks as tasks
from bamdp.continuous.tasks import GainSolution, known, systems

RNG = np.random.default_rng(8)


def energy_of_cart_pole(state, length, cart=0.5, pole=0.5, gravity=9.82):
    """Kinetic and potential energy of a cart and a rod, summed over the rod's elements."""
    _, v, angle, omega = state
    nodes, weights = leggauss(8)
    r, dm = 0.5 * length * (nodes + 1.0), 0.5 * pole * weights
    across, up = v - r * omega * np.cos(angle), -r * omega * np.sin(angle)
    return 0.5 * cart * v**2 + 0.5 * dm @ (across**2 + up**2) + gravity * dm @ (r * np.cos(angle))


def rate(energy, state, derivative):
    """The rate of change of an energy along a derivative, by a central difference."""
    h = 1e-5
    return (energy(state + h * derivative) - energy(state - h * derivative)) / (2 * h)


@pytest.mark.parametrize("length", [0.5, 0.6])
def test_the_cart_pole_gains_the_energy_that_the_force_puts_in(length):
    for _ in range(20):
        state, force = RNG.normal(size=4) * [1, 2, 3, 5], RNG.normal() * 10
        derivative = systems.cart_pole_derivative(state, force, length)
        gained = rate(lambda s: energy_of_cart_pole(s, length), state, derivative)
        assert gained == pytest.approx((force - 0.1 * state[1]) * state[1], rel=1e-5, abs=1e-5)
        assert derivative[[0, 2]].tolist() == state[[1, 3]].tolist()


def test_the_sparse_pendulum_gains_the_energy_that_the_torque_puts_in():
    def energy(state):
        return 0.5 * 0.3 * (0.5 * state[1]) ** 2 + 0.3 * 9.81 * 0.5 * np.cos(state[0])

    for _ in range(20):
        state, torque = RNG.normal(size=2) * [3, 5], RNG.uniform(-1, 1)
        gained = rate(energy, state, tasks.SparsePendulum.derivative(state, torque))
        assert gained == pytest.approx((torque - 0.005 * state[1]) * state[1], rel=1e-5, abs=1e-5)


def test_steps_of_pilco_and_of_the_sparse_pendulum_solve_their_equations():
    state = np.array([0.1, -0.3, 2.0, 1.0])
    fine = state
    for _ in range(20_000):
        fine = fine + 0.1 / 20_000 * systems.cart_pole_derivative(fine, 7.0, 0.5)
    assert tasks.PilcoCartPole().move(state, np.array([7.0])) == pytest.approx(fine, abs=1e-3)
    state = np.array([2.0, 1.0])
    fine = state
    for _ in range(20_000):
        fine = fine + 0.1 / 20_000 * tasks.SparsePendulum.derivative(fine, -0.7)
    assert tasks.SparsePendulum().move(state, np.array([-0.7])) == pytest.approx(fine, abs=1e-3)


def test_tips_cart_pole_is_as_published():
    env = tasks.TipCartPole()
    env.reset(seed=0, options={"state": [0.0, 0.0, np.pi, 0.0]})
    obs, reward, *_ = env.step(
        [1.0]
    )  # from rest: v' = 0.1·40/2.5, ω' = -0.1·60/(0.6·2.5), x and θ not yet moved
    assert obs == pytest.approx([0.0, 1.6, -np.pi, -4.0])
    assert reward == pytest.approx(np.exp(-0.5 * 1.2**2 / 0.25**2) - 1.0)
    obs, reward, *_ = env.step([0.0])
    angle = np.pi - 0.4
    assert obs[[0, 2]] == pytest.approx([0.16, angle])
    tip = np.array([0.16 + 0.6 * np.sin(angle), 0.6 * np.cos(angle)])
    assert reward == pytest.approx(np.exp(-8.0 * ((tip - [0.0, 0.6]) ** 2).sum()) - 1.0)
    assert tasks.TipCartPole.reward(obs, np.zeros(1), np.zeros(4)) == 0.0


def test_pilcos_cart_pole_is_as_published():
    env = tasks.PilcoCartPole()
    starts = np.array([env.reset(seed=seed)[0] * 0 + env.state for seed in range(400)])
    assert starts.std(axis=0) == pytest.approx(np.full(4, 0.1), rel=0.15)
    assert starts.mean(axis=0) == pytest.approx([0, 0, np.pi, 0], abs=0.02)
    noise = np.array([systems.wrapped(env.observe() - env.state) for _ in range(1000)])
    assert noise.std(axis=0) == pytest.approx(np.full(4, 0.01), rel=0.1)
    assert gymnasium.make("bamdp/PilcoCartPole-v0").spec.max_episode_steps == 40
    # the tip leans against the sign of the angle: at x = 0.3, θ = arcsin 0.6 it is straight above the origin
    obs = np.array([0.3, 0.0, np.arcsin(0.6), 0.0])
    assert tasks.PilcoCartPole.reward(obs, np.zeros(1), obs) == pytest.approx(np.expm1(-8.0 * 0.1**2))


def test_the_sparse_pendulum_pays_near_upright_only_and_charges_for_torque():
    def reward(angle, omega, torque):
        obs = np.array([angle, omega])
        return float(tasks.SparsePendulum.reward(obs, np.array([torque]), obs))

    assert reward(0.3, 0.5, 0.1) == 1.0
    assert reward(0.3, 1.0, 0.0) == pytest.approx(0.1)
    assert reward(np.arccos(0.85), 0.0, 0.0) == pytest.approx(0.1)
    assert reward(np.pi, 0.0, 0.0) == pytest.approx(0.0, abs=1e-30)
    assert reward(np.pi, 0.0, 1.0) == pytest.approx(-0.1)
    env = tasks.SparsePendulum()
    env.reset(seed=0)
    highest = max(np.cos(env.step([1.0])[0][0]) for _ in range(40))
    assert highest < 0.85  # a constant torque does not lift it


def test_a_point_on_the_lava_path_moves_as_a_mass_does():
    env = tasks.LavaPath()
    env.reset(seed=0, options={"state": [0.0, -10.0, 0.0, 1.0]})
    for _ in range(30):
        obs, reward, *_ = env.step([0.1, 0.2])
    assert obs == pytest.approx([0.45, -10.0 + 3.0 + 0.9, 0.3, 1.6])
    assert reward == pytest.approx(-(0.45**2 + 16.1**2) / 800)
    assert tasks.LavaPath.reward(obs, obs, np.array([[0.5, 0, 0, 0], [0.49, 0, 0, 0]])) == pytest.approx(
        [-500 - 100.25 / 800, -(0.49**2 + 100) / 800]
    )
    env.reset(seed=0, options={"state": [19.99, 0.0, 1.0, 0.5]})
    assert env.step([1.0, 0.0])[0] == pytest.approx([20.0, 0.05, 0.0, 0.5])


@pytest.mark.filterwarnings("ignore:.*symmetric and normalized")
@pytest.mark.parametrize("name", tasks.IDS)
def test_every_task_is_a_gymnasium_environment_whose_reward_is_the_known_one(name):
    env = gymnasium.make(name)
    check_env(env.unwrapped)
    facts, before = known(env), env.reset(seed=3)[0]
    steps = []
    for t in range(env.spec.max_episode_steps):
        action = 1.3 * env.action_space.sample() if t == 0 else env.action_space.sample()
        obs, reward, terminated, truncated, _ = env.step(action)
        limited = np.clip(action, env.action_space.low, env.action_space.high)
        steps.append((before, limited, obs, reward, terminated))
        before = obs
    assert truncated
    *arrays, rewards, ends = (np.array(column) for column in zip(*steps))
    assert facts["reward"](*arrays) == pytest.approx(rewards, rel=1e-12)
    assert np.array_equal(facts["terminated"](*arrays), ends)
    pairs = [column[:4].reshape(2, 2, -1) for column in arrays]
    assert facts["reward"](*pairs) == pytest.approx(rewards[:4].reshape(2, 2))
    again = gymnasium.make(name)
    assert np.array_equal(again.reset(seed=3)[0], steps[0][0])


GYMNASIUM = {
    "Pendulum-v1": None,
    "Acrobot-v1": [1.6, 0.3, 3.0, 0.0],
    "CartPole-v1": [2.2, 1.0, 0.0, 0.0],
    "MountainCar-v0": [0.4, 0.06],
    "MountainCarContinuous-v0": [0.3, 0.06],
}


@pytest.mark.parametrize("name", GYMNASIUM)
def test_the_known_rewards_and_ends_are_gymnasiums(name):
    env = gymnasium.make(name)
    facts, ended = known(env), False
    env.action_space.seed(0)
    for start in (None, GYMNASIUM[name]):
        before, _ = env.reset(seed=1)
        if start is not None:  # near an end
            env.unwrapped.state = np.array(start)
        for t in range(60):
            action = env.action_space.sample()
            obs, reward, terminated, *_ = env.step(action)
            if t or start is None:
                batch = [np.asarray(value)[None] for value in (before, action, obs)]
                assert facts["reward"](*batch) == pytest.approx([reward], rel=1e-5, abs=1e-5)
                assert facts["terminated"](*batch).tolist() == [terminated]
            before, ended = obs, ended or terminated
            if terminated:
                break
    assert ended or name == "Pendulum-v1"
    first, _ = env.reset(seed=0)
    for cosine, sine in facts["angles"]:
        assert first[cosine] ** 2 + first[sine] ** 2 == pytest.approx(1.0)
    assert len(facts["angles"]) == {"Pendulum-v1": 1, "Acrobot-v1": 2}.get(name, 0)


def test_what_is_not_known_is_said():
    with pytest.raises(ValueError, match="reward of FrozenLake-v1 is not known here; known are Pendulum-v1"):
        known(gymnasium.make("FrozenLake-v1"))
    with pytest.raises(ValueError, match="RescaleAction changes what the known reward"):
        known(gymnasium.wrappers.RescaleAction(gymnasium.make("Pendulum-v1"), np.float32(-1), np.float32(1)))
    with pytest.raises(ValueError, match="a state has 4 numbers"):
        tasks.TipCartPole().reset(options={"state": [0.0]})
    env = tasks.TipCartPole()
    env.reset(seed=0)
    with pytest.raises(ValueError, match="must be finite"):
        env.step([np.nan])


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda obs, action, next_obs: -abs(float(obs[0])), "with two steps it raised TypeError"),
        (lambda obs, action, next_obs: 0.0, r"with two steps it returned shape \[\]"),
        (lambda obs: obs, "with two steps it raised TypeError"),
    ],
)
def test_a_reward_that_does_not_take_many_steps_is_refused_at_once(function, words):
    env = gymnasium.make("Pendulum-v1")
    with pytest.raises(ValueError, match=rf"arrays \[n, 3\], \[n, 1\], \[n, 3\], and must.*{words}"):
        bamdp.Agent.for_env(env, reward=function)


def test_examples():
    for name in ("", ".known", ".unknown_gain"):
        assert doctest.testmod(sys.modules[f"bamdp.continuous.tasks{name}"]).failed == 0


# The scalar system


@pytest.fixture(scope="module")
def solution():
    return GainSolution(steps=4)


def test_a_gain_is_kept_until_the_next_seed():
    env = gymnasium.make("bamdp/UnknownGain-v0").unwrapped
    env.reset(seed=1)
    first = env.gain
    env.reset()
    assert env.gain == first
    env.reset(seed=2)
    assert env.gain != first
    env.reset(seed=2, options={"gain": -3.0})
    moved = [env.move(np.ones(1), np.full(1, 0.5))[0] for _ in range(2000)]
    assert np.mean(moved) == pytest.approx(-0.5, abs=0.1)
    assert np.std(moved) == pytest.approx(1.0, rel=0.1)


def test_learning_the_gain_is_bayes_rule():
    solution = GainSolution(steps=1, noise=0.7)
    x, u = np.array([1.0, 0.4, -2.0]), np.array([0.5, -1.0, 2.0])
    following = np.array([0.2, 1.1, -0.3])
    m, p = 0.0, 1.0
    for step in zip(x, u, following):
        m, p = solution.learn(*step, m, p)
    precision = 1.0 + (u**2).sum() / 0.49
    assert (m, p) == pytest.approx(((u * (following - x)).sum() / 0.49 / precision, 1.0 / precision))


def cost_of_two_steps(x, m, p, noise=1.0):
    """The Bayes-optimal cost of two steps, by adaptive quadrature and minimisation at one point."""

    def later(u):
        spread = noise**2 + u * u * p

        def cost(e):
            y, gain, rest = x + m * u + e, m + p * u / spread * e, p * noise**2 / spread
            return norm.pdf(e, scale=np.sqrt(spread)) * (y**2 + y**2 * rest / (gain**2 + rest) + noise**2)

        edge = 9 * np.sqrt(spread)
        return quad(cost, -edge, edge, limit=200)[0]

    starts = np.linspace(-4, 4, 33)
    best = starts[np.argmin([later(u) for u in starts])]
    return minimize_scalar(later, bounds=(best - 0.25, best + 0.25), method="bounded").fun


def test_the_cost_of_two_steps_is_that_of_quadrature(solution):
    for x, m, p in ((1.0, 0.0, 1.0), (-2.0, 0.7, 0.5), (3.0, -1.5, 0.1)):
        assert solution.cost(x, m, p, steps=2) == pytest.approx(cost_of_two_steps(x, m, p), rel=3e-3)
        assert solution.values[1](np.array(x), np.array(m), np.array(p)) == pytest.approx(
            cost_of_two_steps(x, m, p), rel=1e-2
        )


def test_the_best_action_costs_what_the_optimal_policy_does_and_others_more(solution):
    for left in (1, 2, 3, 4):
        x, m, p = 1.5, 0.6, 0.4
        best, cost = float(solution.action(x, m, p, left)), float(solution.cost(x, m, p, left))
        assert solution.action_cost(x, best, m, p, left) == pytest.approx(cost, rel=2e-3)
        assert all(solution.action_cost(x, best + shift, m, p, left) > cost for shift in (-0.5, 0.5))


def test_the_optimal_policy_earns_its_value_and_beats_caution_and_greed(solution):
    n = 10_000
    gain = RNG.standard_normal(n)

    def total(policy):
        x, m, p, cost = np.ones(n), np.zeros(n), np.ones(n), np.zeros(n)
        for left in (4, 3, 2, 1):
            u = policy(x, m, p, left)
            following = x + gain * u + RNG.standard_normal(n)
            m, p = solution.learn(x, u, following, m, p)
            x, cost = following, cost + following**2
        return cost.mean(), cost.std() / np.sqrt(n)

    optimal, error = total(solution.action)
    assert optimal == pytest.approx(float(solution.cost(1.0)), abs=4 * error)
    idle, error = total(lambda x, m, p, left: 0.0 * x)
    assert idle == pytest.approx(4 * 1.0 + 10.0, abs=4 * error)  # Σ (1 + t)
    probing, error = total(lambda x, m, p, left: np.where(left == 4, 1.0, -x * m / (m**2 + p)))
    assert optimal < probing < idle
