"""AdaptiveDSS: its estimates against exact enumeration, its choices where the best ones are known."""

import itertools
import math
from dataclasses import replace

import gittins
import numpy as np
import pytest

import bamdp
from bamdp import AdaptiveDSS

DISCOUNT = 0.8
REWARDS = np.array([[0.3, 0.0], [0.0, 1.0], [0.1, 0.0]])


def three_models():
    """Models of three states and two actions that differ in where action 1 of state 0 leads, and in state 1."""
    rng = np.random.default_rng(5)
    models = []
    for where in range(3):
        P = rng.dirichlet(np.full(3, 0.8), size=(3, 2))
        P[0, 0] = [0.9, 0.05, 0.05]
        P[0, 1] = 0.1 / 2
        P[0, 1, where] = 0.9
        models.append(P)
    return models


def finite_prior(weights=(0.5, 0.3, 0.2)):
    models = [bamdp.FiniteMDP(P, REWARDS) for P in three_models()]
    return bamdp.FiniteModels(models, weights)


def agent_of(planner, prior, rewards=REWARDS, discount=DISCOUNT, seed=0):
    return bamdp.Agent(
        planner, prior=prior, rewards=rewards, n_states=3, n_actions=2, discount=discount, seed=seed
    )


# --- an independent computation of Q ----------------------------------------------------------------------------


def best_policy(P, R):
    """By enumeration of all deterministic policies, summed over states."""
    policies = list(itertools.product(range(2), repeat=3))
    values = [policy_value(P, R, policy) for policy in policies]
    return policies[int(np.argmax([v.sum() for v in values]))]


def policy_value(P, R, policy):
    rows = np.arange(3), np.array(policy)
    return np.linalg.solve(np.eye(3) - DISCOUNT * P[rows], R[rows])


def strategy(weights, models, b):
    """The policy that is best for the mean model with b times the posterior's standard deviation, as VBRB has it."""
    mean = np.einsum("m,msat->sat", weights, models)
    variance = np.einsum("m,msat->sat", weights, models**2) - mean**2
    return best_policy(mean, REWARDS + b * np.sqrt(np.maximum(variance.sum(axis=2), 0.0)))


def exact_value(weights, models, b, s, n_steps, n_stages, frozen=False):
    """Q of the strategy with bonus b: all models, all paths; with ``frozen`` nothing is learned on the way."""
    models = np.array(models)

    def after(weights, true, s, step, policy):
        if step % n_steps == 0:
            if step == n_steps * n_stages:
                return policy_value(models[true], REWARDS, strategy(weights, models, 0.0))[s]
            policy = strategy(weights, models, b)
        a = policy[s]
        total = REWARDS[s, a]
        for s2 in range(3):
            learned = weights if frozen else weights * models[:, s, a, s2]
            rest = after(learned / learned.sum(), true, s2, step + 1, policy)
            total += DISCOUNT * models[true, s, a, s2] * rest
        return total

    return sum(w * after(np.array(weights), m, s, 0, None) for m, w in enumerate(weights))


PLANNER = AdaptiveDSS(
    n_bonuses=2,
    largest_bonus=3.0,
    n_steps=2,
    n_stages=2,
    n_simulations=24_000,
    confidence=1e9,
    tol=1e-9,
    trial_tol=1e-9,
)


def test_estimates_are_unbiased_for_the_exact_value_of_each_strategy():
    """Five standard errors, three candidates: a right program fails with probability below 2e-6."""
    weights = (0.5, 0.3, 0.2)
    plan = agent_of(PLANNER, finite_prior(weights), seed=1).plan(0)
    bonuses = [float(name.split()[1]) if " " in name else 0.0 for name in plan.details["candidates"]]
    assert len({c.action for c in plan.candidates}) == 2  # otherwise nothing would have been sampled
    for candidate, b in zip(plan.candidates, bonuses):
        exact = exact_value(weights, three_models(), b, 0, 2, 2)
        error = candidate.spread / math.sqrt(candidate.count)
        assert candidate.count >= 6000
        assert abs(candidate.value - exact) <= 5.0 * error + 1e-6


def padded(weights, n_states=40):
    """The same three models with states beside them that nothing leads to, so that the world counts as a large one."""
    P = np.zeros((3, n_states, 2, n_states))
    P[:, np.arange(n_states), :, np.arange(n_states)] = 1.0
    P[:, :3] = 0.0
    P[:, :3, :, :3] = three_models()
    rewards = np.zeros((n_states, 2))
    rewards[:3] = REWARDS
    models = [bamdp.FiniteMDP(model, rewards) for model in P]
    return bamdp.FiniteModels(models, weights), rewards


def test_estimates_are_unbiased_in_large_worlds_where_what_follows_is_sampled():
    """Five standard errors and the thousandth that is neglected; three candidates, as above."""
    weights = (0.5, 0.3, 0.2)
    prior, rewards = padded(weights)
    planner = replace(PLANNER, n_simulations=6000, tol=1e-5, trial_tol=1e-3)
    agent = bamdp.Agent(
        planner, prior=prior, rewards=rewards, n_states=len(rewards), n_actions=2, discount=DISCOUNT, seed=1
    )
    plan = agent.plan(0)
    small = agent_of(planner, finite_prior(weights), seed=1).plan(0)
    bonuses = [float(name.split()[1]) if " " in name else 0.0 for name in plan.details["candidates"]]
    assert [c.spread for c in plan.candidates] != [
        c.spread for c in small.candidates
    ]  # something was sampled
    for candidate, b in zip(plan.candidates, bonuses):
        exact = exact_value(weights, three_models(), b, 0, 2, 2)
        error = candidate.spread / math.sqrt(candidate.count)
        assert candidate.count >= 1500
        assert abs(candidate.value - exact) <= 5.0 * error + 1e-3


def test_a_frozen_belief_would_be_noticed():
    """The same comparison with what an agent would earn that learns nothing on the way fails by far."""
    weights = (0.5, 0.3, 0.2)
    plan = agent_of(PLANNER, finite_prior(weights), seed=1).plan(0)
    explorer = plan.candidates[-1]
    b = float(plan.details["candidates"][-1].split()[1])
    frozen = exact_value(weights, three_models(), b, 0, 2, 2, frozen=True)
    assert explorer.value - frozen > 20.0 * explorer.spread / math.sqrt(explorer.count)


def test_it_explores_where_that_is_worth_it_and_not_where_it_is_not():
    """The choice between exploiting and exploring is that of the exact values."""
    for weights in ((0.5, 0.3, 0.2), (0.98, 0.01, 0.01), (0.02, 0.96, 0.02), (0.6, 0.05, 0.35)):
        agent = agent_of(PLANNER, finite_prior(weights), seed=2)
        plan = agent.plan(0)
        names = plan.details["candidates"]
        bonuses = [float(name.split()[1]) if " " in name else 0.0 for name in names]
        exact = [exact_value(weights, three_models(), b, 0, 2, 2) for b in bonuses]
        best = max(exact)
        good = {c.action for c, q in zip(plan.candidates, exact) if q >= best - 1e-3}
        assert plan.action in good


# --- against returns simulated without any of its tricks ---------------------------------------------------------


@pytest.mark.parametrize("redrawn", [False, True], ids=["known-rewards", "learned-rewards"])
def test_control_variates_change_no_expectation(redrawn):
    """Means of plain and of clever returns for a Dirichlet prior agree within 5 standard errors of their difference."""
    prior = bamdp.Dirichlet(alpha=0.5)
    rewards = bamdp.BetaBernoulli() if redrawn else REWARDS
    planner = AdaptiveDSS(
        n_bonuses=1, largest_bonus=2.0, n_steps=2, n_stages=1, n_simulations=8000, confidence=1e9
    )
    agent = agent_of(planner, prior, rewards=rewards, seed=3)
    for s, a, r, s2 in ((0, 0, 1.0, 0), (0, 0, 0.0, 1), (1, 1, 1.0, 2), (2, 0, 0.0, 0), (1, 0, 0.0, 0)):
        agent.observe(s, a, r if redrawn else REWARDS[s, a], s2)
    plan = agent.plan(0)
    assert len({c.action for c in plan.candidates}) == 2
    rng = np.random.default_rng(4)
    returns = [learning_return(agent.belief, 0, rng, learned=redrawn) for _ in range(500)]
    exploit = plan.candidates[0]
    error = math.hypot(np.std(returns) / math.sqrt(len(returns)), exploit.spread / math.sqrt(exploit.count))
    assert abs(np.mean(returns) - exploit.value) <= 5.0 * error


def learning_return(belief, s, rng, learned):
    """One return of exploiting for two steps and then by what was learned, in a model drawn beforehand."""
    belief = belief.copy()
    model = belief.sample(rng)
    P, R = model.dense(), model.expected_rewards
    policy = bamdp.policy_iteration(belief.mean(), DISCOUNT).policy
    total, weight = 0.0, 1.0
    for _ in range(2):
        a = int(policy[s])
        s2 = int(rng.choice(3, p=P[s, a]))
        r = float(rng.random() < R[s, a]) if learned else float(REWARDS[s, a])
        total += weight * r
        belief.observe(s, a, r, s2)
        s, weight = s2, weight * DISCOUNT
    rows = np.arange(3), bamdp.policy_iteration(belief.mean(), DISCOUNT).policy
    values = np.linalg.solve(np.eye(3) - DISCOUNT * P[rows], R[rows])
    return total + weight * values[s]


# --- choices that are known to be best --------------------------------------------------------------------------


def arms(counts, discount, planner, seed=0):
    """An agent for Bernoulli arms, as one state and rewards that are learned, after (wins, losses) of each arm."""
    agent = bamdp.Agent(
        planner,
        prior=bamdp.Dirichlet(),
        rewards=bamdp.BetaBernoulli(),
        n_states=1,
        n_actions=len(counts),
        discount=discount,
        seed=seed,
    )
    for a, (wins, losses) in enumerate(counts):
        for r in [1.0] * wins + [0.0] * losses:
            agent.observe(0, a, r, 0)
    return agent


@pytest.mark.parametrize(
    "counts",
    [
        pytest.param(((5, 4), (0, 0)), id="untried-is-better"),
        pytest.param(((7, 3), (1, 1)), id="much-tried-is-better"),
        pytest.param(((20, 2), (0, 1)), id="known-is-better"),
        pytest.param(((2, 0), (0, 0)), id="won-twice-is-better"),
    ],
)
def test_bernoulli_arms_are_chosen_by_their_gittins_indices(counts):
    """Where the indices are clearly apart (see the assertion), also where the posterior mean says otherwise."""
    discount = 0.9
    table = gittins.indices(discount, 30)
    indices = [table[wins, losses] for wins, losses in counts]
    assert abs(indices[0] - indices[1]) > 0.01
    planner = AdaptiveDSS(n_steps=1, n_stages=12, n_simulations=4000, first_models=200)
    assert arms(counts, discount, planner).act(0) == int(np.argmax(indices))


# --- the race ---------------------------------------------------------------------------------------------------


def test_a_decision_on_which_all_agree_samples_nothing():
    agent = agent_of(AdaptiveDSS(), bamdp.Dirichlet(alpha=0.01))
    for s, a in itertools.product(range(3), range(2)):
        for _ in range(500):
            agent.observe(s, a, REWARDS[s, a], 0)
    before = agent.rng.copy()
    plan = agent.plan(0)
    assert plan.details["trials"] == 0
    assert agent.act(0) == plan.action
    assert np.array_equal(agent.rng, before)


def test_the_budget_is_kept_and_a_clear_race_stops_early():
    prior = finite_prior()
    spent = []
    for budget in (30, 300, 3000):
        planner = AdaptiveDSS(n_bonuses=2, n_steps=2, n_stages=2, n_simulations=budget, first_models=8)
        details = agent_of(planner, prior, seed=3).plan(0).details
        assert details["trials"] < budget + len(details["candidates"])
        spent.append(details["trials"])
    assert spent[-1] < 3000  # long before that the choice was clear


def test_races_are_short_only_while_little_is_at_stake():
    """Before anything is known a race waits for its first models; once a world is known, some batches will do."""
    env = bamdp.make_env("chain")
    planner = AdaptiveDSS(first_models=48, n_simulations=1000)
    agent = bamdp.Agent.for_env(env, planner, prior="sparse:alpha=0.5,beta=2", discount=0.99, seed=0)
    state, models = env.reset(seed=0), []
    for _ in range(400):
        action = agent.act(state)
        if len(set(agent.memory.race.action.tolist())) > 1:
            models.append(int(agent.memory.race.number[0]))
        next_state, reward, terminated = env.step(action)
        agent.observe(state, action, reward, next_state, terminated)
        state = next_state
    assert min(models[:10]) >= 48
    assert np.median(models[-50:]) < 48


def test_stakes_are_kept_in_a_file(tmp_path):
    agent = agent_of(AdaptiveDSS(n_bonuses=2, n_steps=2, n_simulations=60), finite_prior(), seed=3)
    agent.act(0)
    assert agent.memory.race.stake.min() > 0.0
    agent.save(tmp_path / "agent.npz")
    loaded = bamdp.Agent.load(tmp_path / "agent.npz")
    assert np.array_equal(loaded.memory.race.stake, agent.memory.race.stake)


def test_the_budget_goes_by_the_size_of_the_world_unless_it_is_given():
    assert [AdaptiveDSS().budget(S, A) for S, A in ((5, 2), (25, 4), (100, 4), (10_000, 4))] == [
        2048,
        1536,
        384,
        64,
    ]
    assert AdaptiveDSS(n_simulations=7).budget(5, 2) == 7


def test_rows_of_a_state_are_learned_together_where_its_actions_share_their_next_states():
    """Values with supports that are shared are those of a planner that writes the whole model after every trial."""
    data = [(0, 0, 0.3, 0), (1, 0, 0.0, 0), (2, 0, 0.1, 2)]
    plans = []
    for row_by_row in (True, False):
        planner = AdaptiveDSS(n_bonuses=2, n_steps=3, n_stages=3, n_simulations=90, trial_tol=1e-9, tol=1e-9)
        agent = agent_of(planner, bamdp.SharedSupport(alpha=0.5, beta=2.0), seed=3)
        for step in data:
            agent.observe(*step)
        assert agent.memory.params.by_state
        agent.memory.params = agent.memory.params._replace(row_by_row=row_by_row)
        plans.append(agent.plan(0))
    assert [c.value for c in plans[0].candidates] == pytest.approx(
        [c.value for c in plans[1].candidates], rel=1e-7
    )
    assert plans[0].details["trials"] > 0


@pytest.mark.parametrize("n_policies", [0, 1])
def test_solving_what_a_trial_changed_is_solving_the_mean_model(n_policies):
    """In a large world of rows with known outcomes the values are those of a planner that solves whole models."""
    n_states, n_actions = 60, 2
    rng = np.random.default_rng(7)
    alpha = np.zeros((n_states, n_actions, n_states))
    for s, a in itertools.product(range(n_states), range(n_actions)):
        alpha[s, a, rng.choice(n_states, size=3, replace=False)] = rng.uniform(0.2, 1.0, size=3)
    rewards = rng.random((n_states, n_actions)) ** 4
    plans = []
    for row_by_row in (True, False):
        planner = AdaptiveDSS(
            n_bonuses=2, n_policies=n_policies, n_steps=3, n_stages=4, n_simulations=120,
            confidence=1e9, trial_tol=1e-9, tol=1e-9,
        )  # fmt: skip
        agent = bamdp.Agent(
            planner, prior=bamdp.Dirichlet(alpha=alpha), rewards=rewards, n_states=n_states, n_actions=n_actions,
            discount=0.9, seed=3,
        )  # fmt: skip
        agent.memory.params = agent.memory.params._replace(row_by_row=row_by_row)
        plans.append(next(plan for plan in map(agent.plan, range(n_states)) if plan.details["trials"] > 0))
    assert [c.value for c in plans[0].candidates] == pytest.approx(
        [c.value for c in plans[1].candidates], rel=1e-7
    )


def test_a_time_limit_is_marked_as_not_reproducible():
    planner = AdaptiveDSS(n_bonuses=2, n_steps=2, time_limit=0.001, confidence=1e9)
    plan = agent_of(planner, finite_prior(), seed=3).plan(0)
    assert not plan.reproducible
    assert plan.details["trials"] > 0


def test_where_all_agree_nothing_is_sampled_but_warming_up_runs_a_race_all_the_same():
    agent = bamdp.Agent(
        AdaptiveDSS(n_bonuses=2, n_steps=2, time_limit=0.001), prior=bamdp.Dirichlet(), rewards=np.eye(2)[:, 1:],
        n_states=2, n_actions=1, discount=0.9, seed=0,
    )  # fmt: skip
    plan = agent.plan(0)
    assert plan.details["trials"] == 0
    assert not plan.reproducible  # the next decision may not be
    agent.planner.warm_up(agent.memory, agent.belief, 0, agent.rng)
    assert agent.memory.race.number[1] > 0  # trials


def test_bonuses_without_counts_are_those_of_vbrb_where_rewards_depend_on_the_next_state():
    """The variance of a row's expected reward is over the row's own entries alone."""
    rewards = bamdp.BetaBernoulli(by="next")
    agents = [
        agent_of(p, finite_prior(), rewards) for p in (AdaptiveDSS(), bamdp.VBRB(beta_r=1.0, beta_p=1.0))
    ]
    for agent in agents:
        for s, a, s2 in itertools.product(range(3), range(2), (0, 1, 1, 2)):
            agent.observe(s, a, float(s2 == 1), s2)
        agent.act(0)
    adaptive, alone = (agent.memory for agent in agents)
    assert adaptive.race.extra == pytest.approx(alone.extra)
