"""Deep, sparse sampling with continuous dynamics: Algorithm 2 of Grover, Basu & Dimitrakakis (2020), in its shape.

At a state, N policies are made, each the best plan for a model drawn from the posterior. Every plan i is followed for
its first K blocks in each of M other draws μ_m, with process noise; the posterior is conditioned on what was simulated,
and from there a plan with the full horizon is made by what is then believed:

    V_i = 1/M Σ_m [ Σ_{t < K} γᵗ r_t + γᴷ V(s_K; β | simulated data, μ_m) ],       act by the plan with the largest V_i.

**Departures.** A plan is a policy with feedback only through being made again. In later stages, h = 1 .. H − 1, one
policy and one sample are followed: the plan made after the branch, in its μ_m. So the tree does not branch beyond the
root.
The plan after a branch is made for the average over a few draws that are corrected by what was simulated, and *judged*
in others: judged in the model that it was made for, it would look as if it knew the truth after K blocks, and there
would be nothing to learn; made for the conditioned mean it would be reckless, and learning would look bad. Its horizon
is the full one: a leaf that ends before what is worth learning pays makes exploring look bad.

The plans for the posterior mean and for the average over the M draws, and what is left of the last plan, are candidates
too. **Common random numbers**: all
candidates meet the same models, the same process noise, and the same draws in their searches.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from bamdp._parameters import flag, real_number, whole_number
from bamdp.continuous.cem import Objective, Search, optimise, returns
from bamdp.continuous.models import LearnedModels, Models
from bamdp.continuous.planners import AUTO, Choice, ContinuousPlanner, Memory, Question, outputs_of, starts
from bamdp.continuous.system import System

Array = NDArray[Any]
MOST_POLICIES = 16
JUDGES = 4  # times as many corrected draws judge a plan as were used to make it
LINEAR = 4  # times as many blocks of a linear model are simulated in the same time


@dataclass(frozen=True, kw_only=True)
class DSS(ContinuousPlanner):
    """Deep, sparse sampling: plans of sampled models, judged by what will be learned when they are followed."""

    name: ClassVar[str] = "dss"
    n_policies: int | str = whole_number(AUTO, names=[AUTO], help="N, plans of sampled models")
    n_samples: int | str = whole_number(AUTO, names=[AUTO], help="M, models in which each plan is followed")
    n_steps: int | str = whole_number(
        AUTO,
        names=[AUTO],
        help="K, blocks that are followed before planning again; auto: an eighth of the plan",
    )
    n_stages: int = whole_number(
        1, help="H, how often a plan is followed for K blocks and what was seen is learned"
    )
    n_leaf: int = whole_number(
        4, help="draws, corrected by a branch, over which the next plan there is averaged"
    )
    budget: int = whole_number(
        900_000,
        help="simulated blocks of a decision, by which auto chooses the numbers of policies and samples",
    )
    leaf: float = real_number(
        1.0, low=0.0, high=1.0, help="horizon of the last plan, as a share of the full one"
    )
    common: bool = flag(True, help="whether candidates share their models and random numbers")

    def widths(self, search: Search, budget: float) -> tuple[int, int]:
        """Return the numbers N of policies and M of samples that a budget allows."""
        whole = budget / (search.plans * search.iterations * search.blocks)  # searches that can be made
        policies, samples, inner = self.n_policies, self.n_samples, quick(search)
        if isinstance(policies, str):
            policies = int(np.clip(whole ** (1 / 3) + 1, 2, MOST_POLICIES))
        if isinstance(samples, str):
            share = (
                inner.plans
                * inner.iterations
                * self.n_leaf
                * self.n_stages
                / (search.plans * search.iterations)
            )
            samples = int(max(2, (whole - policies) / (1 + (policies + 3) * share)))
        return policies, samples

    def decide(
        self, question: Question, search: Search, memory: Memory
    ) -> tuple[Array, tuple[Choice, ...], Models]:
        belief, rng = question.belief, question.rng
        linear = belief.prior.n_frequencies == 0
        N, M = self.widths(search, self.budget * (LINEAR if linear else 1))
        models = LearnedModels.stack([belief.sample(rng, N), belief.mean()])
        truths = belief.directions(rng, M if self.common else M * (N + 3))
        plans = candidates(question, models, belief.drawn(truths[0][:M], truths[1][:M]), search, memory)
        values = judge(self, question, search, plans, truths, M)
        order = np.argsort(-values.mean(1), kind="stable")
        which = np.minimum(np.arange(len(plans)), N)  # the last ones are shown in the mean model
        start = np.repeat(question.state[None], len(plans), 0)
        states = models.follow(which, start, plans, search.repeat)[0]
        found = tuple(_choice(question.system, search, plans[i], values[i], states[i]) for i in order)
        return plans[order[0]], found, belief.mean()


def _choice(system: System, search: Search, plan: Array, returns: Array, states: Array) -> Choice:
    actions = system.actions(plan.repeat(search.repeat, 0))
    seen, mean, spread = system.observations(states), float(returns.mean()), float(returns.std(ddof=1))
    return Choice(system.action(plan[0]), mean, spread, len(returns), actions, seen)


def candidates(
    question: Question, models: LearnedModels, together: LearnedModels, search: Search, memory: Memory
) -> Array:
    """Return the best plan [H, k] for each model, the last of which is the mean, for all others together, and the last.

    The last is what is left of the last decision's plan, if there was one.
    """
    system, n = question.system, models.count
    first = np.repeat(starts(memory, search, system.n_controls), n, 0)
    start = np.repeat(question.state[None], n, 0)
    objective = Objective(models, np.arange(n)[:, None], start, search, outputs_of(question.belief))
    plans, _ = optimise(objective, first, question.rng, bool(system.n_actions))
    joint = replace(objective, models=together, which=np.arange(together.count)[None], start=start[:1])
    cautious, _ = optimise(joint, first[:1], question.rng, bool(system.n_actions))
    return np.concatenate([plans, cautious] if memory.plan is None else [plans, cautious, first[0, :1]])


def judge(
    planner: DSS, question: Question, search: Search, plans: Array, truths: tuple[Array, Array], M: int
) -> Array:
    """Return the returns [N', M] of the candidates in the belief."""
    belief = question.belief
    outputs, n, B = outputs_of(belief), len(plans), len(plans) * M
    models, seed = belief.drawn(*truths), int(question.rng.integers(2**62))
    truth = np.tile(np.arange(M), n) if planner.common else np.arange(B)
    state, controls = np.repeat(question.state[None], B, 0), np.repeat(plans, M, 0)
    total, weight, left = np.zeros(B), np.ones(B), search.blocks
    past: tuple[
        Array, ...
    ] = ()  # states [B, t + 1, d], controls [B, t, k] and extras [B, t, E] of the branches
    for stage in range(planner.n_stages):
        steps = planner.n_steps
        K = min(-(-search.blocks // 8) if isinstance(steps, str) else steps, left)
        rng = np.random.default_rng([seed, stage])
        noise = rng.normal(size=(M if planner.common else B, K * search.repeat, belief.n_outputs))[truth]
        held = controls[:, :K]
        states, extras = models.follow(truth, state, held, search.repeat, noise)
        earned, going = returns(outputs, states, held, extras, search)
        total, weight = total + weight * earned, weight * going * search.discount ** (K * search.repeat)
        seen = (states[:, 1:] if past else states, held.repeat(search.repeat, 1), extras)
        past = tuple(np.concatenate(parts, 1) for parts in zip(past, seen)) if past else seen
        state = states[:, -1].astype(float)
        left = left - K if question.steps_left is not None else search.blocks
        if left <= 0:
            return total.reshape(n, M)
        share = planner.leaf if stage == planner.n_stages - 1 else 1.0
        further = replace(search, blocks=max(1, round(share * left)))
        controls, values = relearned(planner, question, past, state, further, seed)
    return (total + weight * values).reshape(n, M)


def quick(search: Search) -> Search:
    """Return the search of a plan inside the tree: half the plans and a quarter of the iterations."""
    plans, elites = max(2, search.plans // 2), max(1, search.elites // 2)
    return replace(search, plans=plans, elites=elites, iterations=max(1, search.iterations // 4))


def relearned(
    planner: DSS, question: Question, past: tuple[Array, ...], state: Array, search: Search, seed: int
) -> tuple[Array, Array]:
    """Return the plans [B, H, k] that would be made at the end of each branch, having seen it, and their values [B]."""
    belief, system, B = question.belief, question.system, len(state)
    rng = np.random.default_rng(seed)  # the same draws for all branches
    L, S = planner.n_leaf, JUDGES * planner.n_leaf
    draws, noise = belief.directions(rng, L + S), int(rng.integers(2**62))
    models = belief.imagine(*past).drawn(*draws, np.random.default_rng(noise))
    which = np.arange(B * (L + S)).reshape(B, L + S)
    objective = Objective(models, which[:, :L], state, quick(search), outputs_of(belief))
    first = np.zeros((B, 1, search.blocks, system.n_controls))
    plans, _ = optimise(objective, first, rng, bool(system.n_actions))
    return plans, replace(objective, which=which[:, L:]).values(plans[:, None])[:, 0]
