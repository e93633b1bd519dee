"""Bayesian Q-learning against closed forms, Monte Carlo, and integrals done by scipy."""

import itertools
import math

import numpy as np
import pytest
from planner_checks import agent_of, check_promises, experience
from scipy import integrate, optimize, special, stats

import bamdp
from bamdp.planners import bayesian_q_learning as bql
from bamdp.planners.bayesian_q_learning import BayesianQLearning, ReturnPosterior

PRIORS = [
    ReturnPosterior(0.3, 1.0, 2.0, 0.8),
    ReturnPosterior(-2.0, 7.5, 1.2, 4.0),
    ReturnPosterior(5.0, 0.1, 30.0, 11.0),
]


def batch_posterior(prior, returns):
    """The textbook posterior after all returns at once."""
    mu0, lam, alpha, beta = prior
    n, mean = len(returns), np.mean(returns)
    squares = np.sum((returns - mean) ** 2)
    return (
        (lam * mu0 + n * mean) / (lam + n),
        lam + n,
        alpha + n / 2,
        beta + squares / 2 + n * lam * (mean - mu0) ** 2 / (2 * (lam + n)),
    )


def law_of_mean(p):
    return stats.t(2 * p.alpha, p.mu0, math.sqrt(p.beta / (p.lam * p.alpha)))


def law_of_return(p):
    return stats.t(2 * p.alpha, p.mu0, math.sqrt(p.beta * (p.lam + 1) / (p.lam * p.alpha)))


def draws_of_returns(p, n, rng):
    """(returns, precisions) drawn step by step: the precision, the mean, the return."""
    tau = rng.gamma(p.alpha, 1 / p.beta, size=n)
    mu = rng.normal(p.mu0, 1 / np.sqrt(p.lam * tau))
    return rng.normal(mu, 1 / np.sqrt(tau))


# --- the posterior ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("prior", PRIORS)
def test_returns_one_by_one_give_the_posterior_of_all_at_once(prior):
    returns = np.random.default_rng(0).normal(1.0, 3.0, size=25)
    posterior = prior
    for x in returns:
        posterior = bql.observed(posterior, x)
    assert posterior == pytest.approx(batch_posterior(prior, returns), rel=1e-12)


@pytest.mark.parametrize("update", ["moment", "mixture"])
def test_without_a_future_an_agent_holds_the_exact_posterior_of_its_rewards(update):
    """γ = 0: rewards are returns."""
    prior = PRIORS[0]
    planner = BayesianQLearning(update=update, **prior._asdict())
    agent = agent_of(planner, {"rewards": bamdp.BetaBernoulli()}, discount=0.0)
    rewards = [1.0, 0.0, 1.0, 1.0]
    for r in rewards:
        agent.observe(0, 1, r, 2)
    assert agent.memory.pair(0, 1) == pytest.approx(batch_posterior(prior, np.array(rewards)), rel=1e-12)
    assert agent.memory.pair(0, 0) == prior
    assert agent.memory.visits.sum() == 4


@pytest.mark.parametrize("update", ["moment", "mixture"])
def test_what_follows_a_terminal_state_is_worth_nothing_for_certain(update):
    prior = PRIORS[0]
    planner = BayesianQLearning(update=update, **prior._asdict())
    for world in ({"terminal": [False, False, True]}, {}):
        agent = agent_of(planner, world)
        agent.observe(0, 1, 0.7, 2, terminated=True)
        assert agent.memory.pair(0, 1) == pytest.approx(batch_posterior(prior, np.array([0.7])), rel=1e-12)


def test_the_future_is_that_of_the_best_action_that_exists():
    planner = BayesianQLearning(update="moment", mu0=0.0, beta=1.0)
    agent = agent_of(planner, {"n_actions": 3, "action_mask": [[True] * 3, [True, True, False], [True] * 3]})
    agent.memory.posterior[0, 1] = [1.0, 2.0, 50.0]
    agent.memory.posterior[3, 1] = [1.0, 4.0, 9.0]
    expected = bql.moment_update(agent.memory.pair(0, 0), 0.5, 0.9, agent.memory.pair(1, 1))
    agent.observe(0, 0, 0.5, 1)
    assert agent.memory.pair(0, 0) == expected


@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize("after", PRIORS)
def test_moment_update_is_the_posterior_of_one_sample_with_monte_carlo_moments(prior, after):
    """Moments of r + γR' from 10⁶ hierarchical draws; five standard errors, so one in 10⁶ fails by chance.

    The second moment of a t law with 2α <= 4 degrees of freedom has no standard error: there α + 3 is used.
    """
    after = after._replace(alpha=after.alpha + 3.0)
    r, discount = 0.4, 0.9
    x = r + discount * draws_of_returns(after, 10**6, np.random.default_rng(1))
    mean, variance = x.mean(), x.var()
    wrong_mean = 5 * x.std() / 1000
    wrong_variance = 5 * ((x - mean) ** 2).std() / 1000
    mu0, lam, alpha, beta = bql.moment_update(prior, r, discount, after)
    share = 1 / (prior.lam + 1)
    assert mu0 == pytest.approx((prior.lam * prior.mu0 + mean) * share, abs=wrong_mean * share)
    assert (lam, alpha) == (prior.lam + 1, prior.alpha + 0.5)
    gain = variance / 2 + prior.lam * share * (mean - prior.mu0) ** 2 / 2
    slack = wrong_variance / 2 + prior.lam * share * (abs(mean - prior.mu0) + wrong_mean) * wrong_mean
    assert beta == pytest.approx(prior.beta + gain, abs=slack)


def test_moment_means_are_those_of_q_learning_with_falling_rates():
    """μ0 moves by 1/(λ₀ + n) of the temporal difference."""
    lam, discount = 1.5, 0.9
    agent = agent_of(BayesianQLearning(update="moment", mu0=0.2, lam=lam), {}, discount=discount)
    q, n = np.full((3, 2), 0.2), np.zeros((3, 2))
    rng = np.random.default_rng(0)
    for _ in range(200):
        s, a, s2 = rng.integers(3), rng.integers(2), rng.integers(3)
        r = float(rng.integers(2))
        agent.observe(int(s), int(a), r, int(s2))
        n[s, a] += 1
        q[s, a] += (r + discount * q[s2].max() - q[s, a]) / (lam + n[s, a])
    np.testing.assert_allclose(agent.memory.posterior[0], q, rtol=1e-12)


def integrated(prior, r, discount, after):
    """E[τ], E[τμ], E[τμ²], E[log τ] of the mixture, by adaptive quadrature over the return."""
    nu, scale = 2 * after.alpha, law_of_return(after).args[2]
    constant = (
        special.gammaln((nu + 1) / 2) - special.gammaln(nu / 2) - math.log(scale * math.sqrt(nu * math.pi))
    )
    target = (prior.mu0 - r) / discount
    narrow = math.sqrt(2 * prior.beta * (prior.lam + 1) / prior.lam) / discount
    tens = 10.0 ** np.arange(-3, 5)
    places = [[after.mu0, target]]
    for side in (-1, 1):
        places += [after.mu0 + side * scale * tens, target + side * narrow * tens]
    places = np.unique(np.concatenate(places))

    def integrand(x):
        mu0, _, shape, rate = batch_posterior(prior, np.array([r + discount * x]))
        tau = shape / rate
        density = math.exp(constant - (nu + 1) / 2 * math.log1p(((x - after.mu0) / scale) ** 2 / nu))
        square = tau * mu0**2 + 1 / (prior.lam + 1)
        return density * np.array([tau, tau * mu0, square, special.digamma(shape) - math.log(rate)])

    ends = [-np.inf, *places, np.inf]
    return sum(
        integrate.quad_vec(integrand, a, b, epsabs=1e-14, epsrel=1e-10)[0]
        for a, b in itertools.pairwise(ends)
    )


CASES = {
    "alike": (PRIORS[0], PRIORS[0]),
    "sharp target, vague future": (
        ReturnPosterior(0.0, 50.0, 25.0, 0.01),
        ReturnPosterior(1.0, 0.5, 1.5, 40.0),
    ),
    "vague target, sharp future": (
        ReturnPosterior(0.0, 0.5, 1.5, 40.0),
        ReturnPosterior(1.0, 50.0, 25.0, 0.01),
    ),
    "far apart": (ReturnPosterior(-30.0, 2.0, 3.0, 1.0), ReturnPosterior(30.0, 2.0, 3.0, 1.0)),
    "heavy tails": (ReturnPosterior(0.0, 1.0, 1.01, 1.0), ReturnPosterior(0.5, 1.0, 1.01, 1.0)),
    "well known": (ReturnPosterior(3.0, 1e4, 5e3, 1e3), ReturnPosterior(3.2, 1e4, 5e3, 1e3)),
}


@pytest.mark.parametrize("name", CASES)
def test_mixture_update_matches_the_moments_of_scipys_integrals(name):
    prior, after = CASES[name]
    r, discount = 0.4, 0.9
    tau, tau_mu, tau_square, log_tau = integrated(prior, r, discount, after)
    new = bql.mixture_update(prior, r, discount, after)
    gap = math.log(tau) - log_tau
    shape = optimize.brentq(
        lambda y: math.log(y) - special.digamma(y) - gap, 1e-3, 1e8, xtol=1e-12, rtol=1e-12
    )
    assert new.mu0 == pytest.approx(tau_mu / tau, rel=1e-6)
    assert new.lam == pytest.approx(1 / (tau_square - tau_mu**2 / tau), rel=1e-5)
    assert new.alpha == pytest.approx(max(bql.LEAST_SHAPE, shape), rel=1e-5)
    assert new.beta == pytest.approx(new.alpha / tau, rel=1e-6)


def test_mixture_update_is_the_nearest_normal_gamma():
    """No other parameters give draws of the mixture a higher mean log density (so a smaller KL divergence)."""
    prior, after = CASES["alike"]
    r, discount, n = 0.4, 0.9, 400_000
    rng = np.random.default_rng(2)
    x = r + discount * draws_of_returns(after, n, rng)
    _, lam, alpha, _ = bql.observed(prior, 0.0)
    m = (prior.lam * prior.mu0 + x) / lam
    rate = prior.beta + prior.lam * (x - prior.mu0) ** 2 / (2 * lam)
    tau = rng.gamma(alpha, 1 / rate)
    mu = rng.normal(m, 1 / np.sqrt(lam * tau))

    def log_density(p):
        gamma = stats.gamma.logpdf(tau, p.alpha, scale=1 / p.beta)
        return gamma + stats.norm.logpdf(mu, p.mu0, 1 / np.sqrt(p.lam * tau))

    best = bql.mixture_update(prior, r, discount, after)
    here = log_density(best)
    for name in ReturnPosterior._fields:
        for factor in (0.9, 1.1):
            other = here - log_density(best._replace(**{name: factor * getattr(best, name)}))
            assert other.mean() > 5 * other.std() / math.sqrt(n), (name, factor)


def test_a_mixture_over_a_future_known_exactly_is_the_plain_posterior():
    prior = PRIORS[0]
    sharp = ReturnPosterior(2.0, 1e9, 1e9, 1e-3)
    assert bql.mixture_update(prior, 0.4, 0.9, sharp) == pytest.approx(bql.observed(prior, 2.2), rel=1e-6)


def test_a_vague_future_can_leave_one_less_certain():
    sharp, vague = CASES["sharp target, vague future"]
    assert bql.mixture_update(sharp, 0.4, 0.9, vague).variance > sharp.variance
    assert bql.moment_update(sharp, 0.4, 0.9, vague).lam == sharp.lam + 1


@pytest.mark.parametrize("y", [1e-2, 0.3, 1.0, 2.5, 29.9, 30.1, 1e3, 1e6, 1e9])
def test_the_shape_is_recovered_from_its_logarithms(y):
    c = bql.log_minus_psi(y)
    if y <= 1e3:
        assert c == pytest.approx(math.log(y) - special.digamma(y), rel=1e-11)
    assert bql.shape_from_logs(c) == pytest.approx(y, rel=1e-9)


# --- choosing ---------------------------------------------------------------------------------------------


def as_arrays(posteriors):
    return [np.array(x) for x in zip(*posteriors)]


STATES = {
    "three": [
        ReturnPosterior(1.0, 2.0, 2.0, 1.0),
        ReturnPosterior(0.8, 0.5, 1.2, 3.0),
        ReturnPosterior(-1.0, 30.0, 16.0, 2.0),
    ],
    "tie": [ReturnPosterior(1.0, 1.0, 2.0, 1.0), ReturnPosterior(1.0, 4.0, 2.0, 1.0)],
    "far": [ReturnPosterior(10.0, 100.0, 50.0, 1.0), ReturnPosterior(0.0, 100.0, 50.0, 1.0)],
}


def gain_from_knowing(law, first, second):
    """Expected gain: of the action with the highest mean if it has a second, else of another."""
    if second is None:
        return integrate.quad(lambda q: (q - first) * law.pdf(q), first, np.inf, epsabs=0, epsrel=1e-10)[0]
    return integrate.quad(lambda q: (second - q) * law.pdf(q), -np.inf, second, epsabs=0, epsrel=1e-10)[0]


@pytest.mark.parametrize("name", STATES)
def test_vpi_is_the_integral_of_the_gain_from_knowing(name):
    state = STATES[name]
    found = bql.perfect_information(*as_arrays(state))
    means = [p.mu0 for p in state]
    first = int(np.argmax(means))
    second = sorted(means)[-2]
    for a, p in enumerate(state):
        gain = gain_from_knowing(law_of_mean(p), means[first], second if a == first else None)
        assert found[a] == pytest.approx(gain, rel=1e-7, abs=1e-30)
        assert found[a] >= 0


def test_excess_of_a_t_law_is_exact_on_both_sides():
    """E[(t − z)⁺] − E[(t + z)⁺] = −z by symmetry, and for ν = 3 the integral is elementary."""
    z = np.linspace(-40, 40, 81)
    for nu in (2.002, 3.0, 10.0, 1e4):
        above, below = bql.excess(np.full(81, nu), z), bql.excess(np.full(81, nu), -z)
        np.testing.assert_allclose(above - below, -z, atol=1e-12)
        assert np.all(above >= 0)
    root = math.sqrt(3)
    exact = root / math.pi - z / 2 + z / math.pi * np.arctan(z / root)
    np.testing.assert_allclose(bql.excess(np.full(81, 3.0), z), exact, rtol=1e-9)


def test_vpi_explores_what_is_uncertain_and_one_action_needs_no_information():
    agent = agent_of(BayesianQLearning(selection="vpi", mu0=0.0, beta=1.0), {})
    agent.memory.posterior[:2, 0] = [0.1, 0.0], [1000.0, 0.01]
    assert agent.plan(0).action == 1
    agent.memory.posterior[1, 0, 1] = 1000.0
    assert agent.plan(0).action == 0
    alone = agent_of(BayesianQLearning(), {"action_mask": [[False, True]] * 3}).plan(0)
    assert (alone.action, alone.details["vpi"]) == (1, (0.0,))


def test_sampling_chooses_as_often_as_an_action_is_best():
    """Pearson's chi-square against integrals; fixed seed, a correct program fails one in a million."""
    state = STATES["three"]
    agent = agent_of(BayesianQLearning(selection="sampling"), {"n_actions": 3})
    agent.memory.posterior[:, 1] = as_arrays(state)
    laws = [law_of_mean(p) for p in state]
    best = [
        integrate.quad(
            lambda x, a=a: laws[a].pdf(x) * math.prod(laws[b].cdf(x) for b in range(3) if b != a),
            -np.inf,
            np.inf,
            limit=200,
        )[0]
        for a in range(3)
    ]
    assert sum(best) == pytest.approx(1, abs=1e-6)
    n = 20_000
    counts = np.bincount([agent.act(1) for _ in range(n)], minlength=3)
    expected = n * np.array(best)
    chi2 = np.sum((counts - expected) ** 2 / expected)
    assert chi2 < stats.chi2.isf(1e-6, 2)


def test_without_data_all_actions_are_chosen_alike():
    """Ties are drawn at random; five standard errors."""
    agent = agent_of(BayesianQLearning(), {})
    n = 4000
    ones = sum(agent.act(0) for _ in range(n))
    assert abs(ones - n / 2) < 5 * math.sqrt(n / 4)


# --- the planner ------------------------------------------------------------------------------------------


def test_the_default_prior_follows_from_the_range_of_returns():
    agent = agent_of(BayesianQLearning(spread=0.3), {"rewards": [-1.0, 0.0, 3.0]}, discount=0.9)
    prior = agent.memory.pair(0, 0)
    assert prior.mu0 == pytest.approx(-10 + 0.2 * 40)
    assert math.sqrt(prior.variance) == pytest.approx(0.3 * 40)
    flat = agent_of(BayesianQLearning(spread=0.3), {"rewards": [1.0, 1.0, 1.0]}, discount=0.9)
    assert math.sqrt(flat.memory.pair(0, 0).variance) == pytest.approx(3.0)


def test_rewards_without_bounds_need_a_prior_that_is_given():
    unbounded = {"rewards": bamdp.NormalGamma()}
    with pytest.raises(ValueError, match="give mu0 and beta"):
        agent_of(BayesianQLearning(mu0=0.0), unbounded)
    agent = agent_of(BayesianQLearning(mu0=0.0, beta=2.0), unbounded)
    assert agent.memory.pair(0, 0) == (0.0, 1.0, 2.0, 2.0)


def test_plans_show_the_posterior():
    agent = experience(agent_of(BayesianQLearning(), {"rewards": bamdp.BetaBernoulli()}), 30)
    for s in range(3):
        plan = agent.plan(s)
        for c in plan.candidates:
            p = agent.memory.pair(s, c.action)
            assert (c.value, c.count) == (p.mu0, agent.memory.visits[s, c.action])
            assert c.spread == pytest.approx(law_of_mean(p).std())
        scores = [c.value + v for c, v in zip(plan.candidates, plan.details["vpi"])]
        assert plan.action == int(np.argmax(scores))


@pytest.mark.parametrize("selection", bql.SELECTION)
@pytest.mark.parametrize("update", bql.UPDATE)
@pytest.mark.parametrize("rewards", [[0.0, 0.3, 1.0], bamdp.BetaBernoulli()])
def test_keeps_the_promises_of_a_planner(selection, update, rewards, tmp_path):
    planner = BayesianQLearning(selection=selection, update=update)
    agent = experience(agent_of(planner, {"rewards": rewards}), 20)
    check_promises(agent, 1, tmp_path)
    twin = experience(agent_of(planner, {"rewards": rewards}), 20)
    for name in ("posterior", "visits"):
        np.testing.assert_array_equal(getattr(twin.memory, name), getattr(agent.memory, name))
    loaded = bamdp.Agent.load(tmp_path / "agent.npz")
    for one in (agent, loaded):
        one.observe(0, 0, 1.0, 2)
    np.testing.assert_array_equal(agent.memory.posterior, loaded.memory.posterior)
