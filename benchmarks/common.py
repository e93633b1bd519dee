"""Priors, agents and settings that the benchmarks share, and the comparison with a reference."""

from __future__ import annotations

import math

import bamdp
from bamdp.runs import Batch, Setting, run_setting

DISCOUNT = 0.95


def prior_of(name: str, n_states: int) -> bamdp.Prior:
    """Return the reference's prior: "flat" is Dirichlet(1/S), "sparse" is SparseDirichlet(0.2, 2).

    "symmetric" is Dirichlet(0.2), with which the reference's BEB plans when it is asked for the sparse one.
    """
    if name == "flat":
        return bamdp.Dirichlet(alpha=1.0 / n_states)
    if name == "symmetric":
        return bamdp.Dirichlet(alpha=0.2)
    return bamdp.SparseDirichlet(alpha=0.2, beta=2.0)


def make_agent(env: bamdp.Environment, planner: bamdp.Planner, prior: str, seed: int) -> bamdp.Agent:
    """Return an agent for an environment, with the named prior, known rewards and γ = 0.95."""
    return bamdp.Agent(
        planner,
        prior=prior_of(prior, env.n_states),
        rewards=env.rewards,
        n_states=env.n_states,
        n_actions=env.n_actions,
        discount=DISCOUNT,
        seed=seed,
    )


def run_planner(env_name: str, planner: bamdp.Planner, prior: str, runs: int) -> Batch:
    """Run a planner in an environment for its horizon, with the named prior, known rewards and γ = 0.95."""
    env = bamdp.make_env(env_name)
    setting = Setting(
        env=env_name,
        planner=planner,
        prior=prior_of(prior, env.n_states),
        rewards=bamdp.KnownRewards(env.rewards),
        discount=DISCOUNT,
        steps=env.horizon,
    )
    return run_setting(setting, runs)


def compare_means(batch: Batch, mean: float, error: float | None) -> str:
    """Return the difference from a reference in standard errors of both ("z"), and whether it is worse.

    If the reference has no standard error, that of the batch is used for both.
    """
    error_of_both = math.hypot(batch.standard_error, batch.standard_error if error is None else error)
    z = (batch.mean - mean) / max(error_of_both, 1e-9)  # deterministic runs have no standard error
    return f"z {z:+.1f} {'ok' if z > -3.0 else 'WORSE'}"
