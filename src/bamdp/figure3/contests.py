"""Who competes, where, and with what parameters: data only.

DSS has the authors' parameters: (N, M, K) = (4, 10, 20) at size 10 and (2, 5, 40) at size 20, H = 1, γ = 0.95, one
plan an episode. Two priors over transitions:

- *flat*, a Dirichlet with 1/S for every next state, as in the authors' program: the prior of the paper's curves;
- *sparse*, rows with few possible outcomes, P(k) ∝ k⁻⁸. One outcome is likely (0.996), two or more are possible, so
  that an action that turns out to be random is learned as such.

Rewards are Normal with unknown mean and variance. The prior says that a mean may be anything of the order of 1
(standard deviation 1) and that rewards are almost certain (standard deviation 0.1) until they turn out not to be.
That is wrong in the corners of the stochastic sea, and there are contestants that expect *noise* (standard deviation
0.55) there.

R-max needs a largest reward, 10 here, which only says that what is unknown beats all that is known. It goes on learning
about what is known, else one failure of a step would be taken for a law in the stochastic sea.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from bamdp.beliefs import Dirichlet, NormalGamma, Prior, SparseDirichlet
from bamdp.planners import DSS, BootstrappedDQN, Planner, RMax, ThompsonSampling
from bamdp.settings import Setting

DISCOUNT = 0.95
REWARDS = NormalGamma(mu0=0.0, lam=0.01, alpha=2.0, beta=0.01)
NOISY = NormalGamma(mu0=0.0, lam=0.3, alpha=2.0, beta=0.3)
SPARSE = SparseDirichlet(alpha=0.2, beta=8.0)
DSS_PARAMETERS = {10: (4, 10, 20), 20: (2, 5, 40)}  # N, M, K by size


@dataclass(frozen=True)
class Contest:
    """A world, how long a run lasts there, and what an end is worth."""

    name: str
    title: str
    env: str  # its name
    size: int
    steps: int
    objective: str
    contestants: tuple[str, ...]

    @property
    def episodes(self) -> int:
        """Complete episodes in a run."""
        return self.steps // self.size


@dataclass(frozen=True)
class Contestant:
    """An agent: its planner and prior may depend on the size."""

    label: str
    planner: Callable[[int], Planner]
    prior: Callable[[int], Prior]
    rewards: NormalGamma = REWARDS
    discount: float = DISCOUNT

    def setting(self, contest: Contest) -> Setting:
        """Everything that determines its runs in a contest."""
        return Setting(
            env=f"{contest.env}:size={contest.size}",
            planner=self.planner(contest.size),
            prior=self.prior(contest.size),
            rewards=self.rewards,
            discount=self.discount,
            steps=contest.steps,
            objective=contest.objective,
        )


def _dss(size: int) -> DSS:
    N, M, K = DSS_PARAMETERS[size]
    return DSS(n_policies=N, n_samples=M, n_steps=K, n_stages=1, generator="pi", replan_every=size)


def _psrl(size: int) -> ThompsonSampling:
    return ThompsonSampling(resample="episode")


def _flat(size: int) -> Dirichlet:
    return Dirichlet(alpha=1.0 / (size * size + 1))


def _sparse(size: int) -> SparseDirichlet:
    return SPARSE


CONTESTANTS: dict[str, Contestant] = {
    "dss-sparse": Contestant("DSS-PI, sparse prior", _dss, _sparse),
    "dss-steps": Contestant(
        "DSS-PI, sparse prior, a plan every step", lambda size: replace(_dss(size), replan_every=1), _sparse
    ),
    "psrl-sparse": Contestant("Thompson (PSRL), sparse prior", _psrl, _sparse),
    "dss-noise": Contestant("DSS-PI, sparse prior, noise expected", _dss, _sparse, rewards=NOISY),
    "psrl-noise": Contestant("Thompson (PSRL), sparse prior, noise expected", _psrl, _sparse, rewards=NOISY),
    "rmax": Contestant(
        "R-max",
        lambda size: RMax(known_after=1, refine=True),
        _sparse,
        rewards=replace(REWARDS, bounds=(-10.0, 10.0)),
    ),
    "bdqn": Contestant("Bootstrapped DQN", lambda size: BootstrappedDQN(), _sparse, discount=0.99),
    "psrl-flat": Contestant("Thompson (PSRL), flat prior", _psrl, _flat),
    "dss-flat": Contestant("DSS-PI, flat prior", _dss, _flat),
}

_MODELS = ("dss-sparse", "psrl-sparse", "rmax", "psrl-flat", "dss-flat")
_KINDS = (  # name, title, environment, objective, contestants
    ("episode", "deep sea", "deep_sea", "episode", (*_MODELS, "bdqn", "dss-steps")),
    ("lifetime", "deep sea, lifetime objective", "deep_sea", "lifetime", _MODELS),
    (
        "stochastic",
        "stochastic deep sea",
        "deep_sea_stochastic",
        "episode",
        (*_MODELS, "bdqn", "dss-noise", "psrl-noise"),
    ),
)
STEPS = {10: 10_000, 20: 50_000}

CONTESTS: dict[str, Contest] = {
    f"{name}-{size}": Contest(f"{name}-{size}", f"{title}, L = {size}", env, size, steps, objective, who)
    for size, steps in STEPS.items()
    for name, title, env, objective, who in _KINDS
}

PAPER: dict[tuple[str, str], int] = {  # where the curves of the paper's Figure 3 end, read off the plot
    ("episode-10", "dss-flat"): 127,
    ("episode-10", "psrl-flat"): 217,
    ("episode-10", "bdqn"): 151,
    ("episode-20", "dss-flat"): 512,
    ("episode-20", "psrl-flat"): 650,
    ("episode-20", "bdqn"): 658,
}
