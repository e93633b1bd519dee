"""Deep, sparse sampling for continuous dynamics, adapted from Algorithm 2 of Grover, Basu & Dimitrakakis (2020).

At each state, N policies are generated, each the best plan for a model drawn from the posterior. Each plan i is
followed for its first K blocks in each of M other draws μ_m, with process noise. The posterior is then conditioned on
the simulated data, and a new plan with the full horizon is computed from the updated belief:

    V_i = 1/M Σ_m [ Σ_{t < K} γᵗ r_t + γᴷ V(s_K; β | simulated data, μ_m) ].

The plan with the largest V_i is executed.

**Departures.** Plans incorporate feedback only through replanning. Later stages, h = 1 .. H − 1, follow a single policy
and sample: the plan computed after the branch, in its μ_m. The tree therefore does not branch beyond the root. The plan
after a branch is optimised for the average over a few draws conditioned on the simulated data, and *evaluated* in other
such draws. Evaluating it in the model used to compute it would assume full knowledge after K blocks, so learning would
have no value. Optimising it for the conditioned mean would produce reckless plans and undervalue learning. The plan
has the full horizon, because a shorter plan could end before exploration pays off.

Further candidates are the plans for the posterior mean and for the average over the M draws, and the remainder of the
last plan. **Common random numbers**: all candidates share the same models, process noise and draws in their searches.
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
from bamdp.continuous.regression import stratified
from bamdp.continuous.system import System

Array = NDArray[Any]
Branches = tuple[Array, ...]  # states [B, t + 1, d], controls [B, t, k] and extras [B, t, E]
MOST_POLICIES = 16
JUDGES = 4  # ratio of conditioned draws that evaluate a plan to those used to compute it
LINEAR = 2  # speed of simulating linear models relative to other models


@dataclass(frozen=True, kw_only=True)
class DSS(ContinuousPlanner):
    """Deep, sparse sampling: plans for sampled models, evaluated with the learning that follows from them."""

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
        1_800_000,
        help="simulated blocks of a decision times the model's outputs; auto chooses N and M by it",
    )
    leaf: float = real_number(
        1.0, low=0.0, high=1.0, help="horizon of the last plan, as a share of the full one"
    )
    common: bool = flag(True, help="whether candidates share their models and random numbers")

    def widths(self, search: Search, budget: float) -> tuple[int, int]:
        """Return the affordable numbers N of policies and M of samples."""
        whole = budget / (search.plans * search.iterations * search.blocks)  # number of affordable searches
        policies, samples, inner = self.n_policies, self.n_samples, quick(search)
        if isinstance(policies, str):
            policies = int(np.clip(whole ** (1 / 3) + 1, 2, MOST_POLICIES))
        if isinstance(samples, str):
            share = inner.plans * inner.iterations / (search.plans * search.iterations)
            share *= self.n_leaf * self.n_stages
            samples = int(max(2, (whole - policies) / (1 + (policies + 3) * share)))
        return policies, samples

    def decide(
        self, question: Question, search: Search, memory: Memory
    ) -> tuple[Array, tuple[Choice, ...], Models]:
        belief, rng = question.belief, question.rng
        linear = belief.prior.n_frequencies == 0
        N, M = self.widths(search, self.budget * (LINEAR if linear else 1) / belief.n_outputs)
        models = LearnedModels.stack([belief.sample(rng, N), belief.mean()])
        truths = belief.directions(rng, M if self.common else M * (N + 3))
        plans = candidates(question, models, belief.drawn(truths[0][:M], truths[1][:M]), search, memory)
        values = judge(self, question, search, plans, truths, M)
        order = np.argsort(-values.mean(1), kind="stable")
        which = np.minimum(np.arange(len(plans)), N)  # the last candidates are displayed in the mean model
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
    """Return candidate plans: the best plan [H, k] for each model and for the average over all models but the mean.

    The mean is the last model. The final candidate is the remainder of the previous plan, if there is one.
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
    """Return the returns [N', M] of the candidates under the belief."""
    belief = question.belief
    outputs, n, B = outputs_of(belief), len(plans), len(plans) * M
    models, seed = belief.drawn(*truths), int(question.rng.integers(2**62))
    truth = np.tile(np.arange(M), n) if planner.common else np.arange(B)
    state, controls = np.repeat(question.state[None], B, 0), np.repeat(plans, M, 0)
    total, weight, left = np.zeros(B), np.ones(B), search.blocks
    past: Branches = ()
    for stage in range(planner.n_stages):
        steps = planner.n_steps
        K = min(-(-search.blocks // 8) if isinstance(steps, str) else steps, left)
        rng = np.random.default_rng([seed, stage])
        count = M if planner.common else B
        noise = stratified(rng, count, (K * search.repeat, belief.n_outputs))[rng.permutation(count)][truth]
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
        controls, values = relearned(planner, question, past, state, further, truth, seed)
    return (total + weight * values).reshape(n, M)


def quick(search: Search) -> Search:
    """Return cheaper search settings for use inside the tree: half the plans and a quarter of the iterations."""
    plans, elites = max(2, search.plans // 2), max(1, search.elites // 2)
    return replace(search, plans=plans, elites=elites, iterations=max(1, search.iterations // 4))


def relearned(
    planner: DSS, question: Question, past: Branches, state: Array, search: Search, truth: Array, seed: int
) -> tuple[Array, Array]:
    """Return the plans [B, H, k] computed from the updated belief at the end of each branch, and their values [B].

    Branches with the same ``truth`` [B] share their draws, so that errors are common to all candidates but average out
    over the samples.
    """
    belief, system, B = question.belief, question.system, len(state)
    rng = np.random.default_rng(seed)
    L, S = planner.n_leaf, JUDGES * planner.n_leaf
    parts = [belief.groups(rng, truth.max() + 1, count) for count in (L, S)]
    directions, quantiles = (np.concatenate(part, 1)[truth] for part in zip(*parts))
    models = belief.imagine(*past).drawn(directions, quantiles)
    which = np.arange(B * (L + S)).reshape(B, L + S)
    objective = Objective(models, which[:, :L], state, quick(search), outputs_of(belief))
    first = np.zeros((B, 1, search.blocks, system.n_controls))
    plans, _ = optimise(objective, first, rng, bool(system.n_actions))
    return plans, replace(objective, which=which[:, L:]).values(plans[:, None])[:, 0]
