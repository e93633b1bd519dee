"""AdaptiveDSS: deep, sparse sampling of strategies, evaluated by reward earned and information gained.

DSS evaluates policies of sampled models by K simulated steps each. Here the candidates are *strategies* c, which choose
a policy based on the current belief, β ↦ π_c(β):

    b ≥ 0      the best policy of the mean model of β with the bonus b·u_β(s, a) on its rewards; b = 0 exploits
    P          the policy that a generator P computes for a model drawn from β, as in DSS (``n_policies`` of them)

with u_β(s, a) = 1/(1 + n₀ + n(s, a)), as in BEB, or, for priors without counts, the standard deviation of VBRB. The
bonuses form a geometric ladder scaled by the range of the rewards, so none needs tuning; if the range is unknown, the
range of the currently expected rewards is used instead. The value of a strategy is the expected return of following it
for H stages of K steps and exploiting thereafter:

    Q(s, β, c) = E_{μ ~ β} [ Σ_{k < KH} γ^k r_k + γ^{KH} V_μ^{π_0(β_KH)}(s_KH) ],       a_k = π_c(β_{K⌊k/K⌋})(s_k),

where s_k and r_k follow the sampled model μ, and the belief β_k is updated with them along the way. V_μ^π is the value
of a policy in that model. Q is the value of a policy that an agent could actually execute, hence a lower bound on the
Bayes-optimal value. Choosing the best of several strategies at every step is one step of policy improvement (rollout)
over all of them. The last term captures the value of learning: π_0(β_KH) is better in μ than π_0(β).

**Estimates.** All candidates are simulated in the same models μ with common random numbers. With V = V_μ^{π_0(β)}, the
value in μ of the currently greedy policy, a sample of Q is

    V(s) + Σ_{k<KH} γ^k [r_μ(s_k, a_k) + γ Σ_s' P_μ(s'|s_k, a_k) V(s') − V(s_k)] + γ^{KH} [V_μ^{π_0(β_KH)} − V](s_KH).

This sample has the same expectation as the return above (the omitted terms, V(s_{k+1}) − Σ P_μ V, have zero conditional
mean) but less variance: steps on which a candidate agrees with the current policy contribute nothing. V is computed
exactly, and in environments with a few dozen states so is the value of π_0(β_KH). In larger ones, that policy is
simulated further in μ, without learning, and the same terms are summed until γ^k drops below a thousandth. In grid10
and the maze this does not visibly increase the standard deviation and halves the running time. Each estimate of Q is
therefore unbiased up to this truncation. The maximum over the estimates is biased upward; the bias shrinks as the
number of models grows.

**The race.** If all candidates choose the same action in the current state, that action is taken without sampling.
Otherwise models are drawn one at a time. After every ``BATCH`` models, each candidate is compared with the leader by
the sum of their paired differences. It is eliminated if it trails by ``confidence`` standard errors plus the *stake*,
the largest difference between two candidates in a single model, seen in this race or in earlier ones, whose stakes
decay by a tenth per race. The stake protects candidates whose advantage is rare but large: a few models may miss it,
and a single further model could still put such a candidate ahead. After ``first_models`` models the stake is ignored.
The race ends when the remaining candidates agree on the action or when ``n_simulations`` trials (candidates times
models) have been used. The agent then takes the leader's action; ties are broken in favour of exploitation.

**Cost.** A trial solves the mean model H times and evaluates one policy in μ if learning changes that policy. Only the
rows visited by a trial are rewritten and, in larger environments, only the states whose values change are solved again
(:mod:`bamdp._kernels.changes`). Solutions may be inexact (``trial_tol``): a strategy based on approximate solutions is
still a strategy, and its value estimate is still unbiased. If the actions of a state share information
(:class:`~bamdp.SharedSupport`), all rows of a visited state are rewritten. If rows share weights (mixtures), the
unvisited rows keep the weights of the root. In that case π_0 exploits only what was learned about the visited rows; it
is still a policy, and its V_μ is exact.

**Relatives.** Without bonuses and with H = 1, the candidates are those of DSS, but the value of the continuation is
exact rather than truncated; as K·H → ∞ the final exploitation phase becomes irrelevant. With a single candidate, the
algorithm is the rollout of a base policy. With a frozen belief, no candidate could improve on the first. Learned
rewards are drawn from their predictive distribution along the way, and the rewards of visited rows are redrawn from the
final belief at the end. The joint distribution is the same as if they had been drawn in advance.

References: Grover, Basu & Dimitrakakis (AISTATS 2020); Kolter & Ng (ICML 2009) for the bonus; Bertsekas, Tsitsiklis &
Wu, "Rollout algorithms for combinatorial optimization" (1997); Maron & Moore, "Hoeffding races" (1994).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np

from bamdp._kernels.changes import Links, StateQueue, add_link, drop_links, link_row, new_links, new_queue
from bamdp._kernels.jit import inner, kernel, primitive, zeros
from bamdp._kernels.random import uniform
from bamdp._kernels.rows import Rows, average, is_listed, row_value
from bamdp._kernels.solve import FEW_IF_DENSE, Solver, evaluate_solver_policy, new_solver, solve
from bamdp._parameters import positive_number, real_number, whole_number
from bamdp.beliefs import verbs
from bamdp.beliefs.belief import Belief
from bamdp.beliefs.kernels import sample_model, sample_rows, undo_steps
from bamdp.generators import generate, generator_parameter, make_generator
from bamdp.planners.base import Cost, KernelPlanner, Plan, candidates, estimate
from bamdp.planners.beb import BEBRule
from bamdp.planners.shared.mean_model import (
    add_bonus,
    keep_row,
    learn_rows,
    put_row_back,
    solve_changed,
    solves_changes,
    write_mean,
)
from bamdp.planners.shared.workspace import duplicate
from bamdp.planners.vbrb import VBRBRule

MOST_TRIALS, FEWEST_TRIALS, TRIALS_TIMES_PAIRS = 2048, 64, 153_600  # for the automatic budget
BATCH = 8  # models between two elimination rounds
LADDER_STEP = math.sqrt(10.0)  # ratio of successive bonuses
OPEN, CLEAR = 1, 2  # whether the remaining candidates agree on the action
MAX_PATHS = 64  # models whose trials are recorded in the displayed tree
MODELS, TRIALS, LEADER, MARK = range(4)  # indices into RaceArrays.number
NOW, LATELY = range(2)  # indices into RaceArrays.stake
RESOLVING = 0.25  # relative cost of a solution within a trial, which is warm-started
NEGLECTED = 1e-3  # discount weight below which simulation stops
FORGETTING = 0.9  # decay of the stake from one race to the next


class RaceSpace(NamedTuple):
    """Buffers for the models of a race and their solutions."""

    model: Rows  # μ, in which the candidates are simulated
    mean: Rows  # the mean model, with the bonus of the current candidate
    other: Rows  # the sampled model from which a candidate derives its policy
    solver: Solver
    variance: np.ndarray  # float64 [capacity]: scratch for bonuses
    links: Links  # between the states of the mean model
    queue: StateQueue

    def __deepcopy__(self, memo: Any) -> RaceSpace:
        return duplicate(self._replace(links=new_links(len(self.solver.values), len(self.links.source))))


class RaceParams(NamedTuple):
    """Parameters that stay fixed between decisions."""

    rule: Any  # u; :func:`bonus` is registered for its type
    generator: Any  # P, for candidates based on sampled models
    discount: float
    tol: float
    trial_tol: float  # accuracy of solutions and evaluations within trials
    n_steps: int  # K
    n_stages: int  # H
    first_models: int
    confidence: float
    n_trial_rows: int  # maximum number of rows written by a trial
    row_by_row: bool  # only visited rows change
    by_state: bool  # visiting a row counts as visiting all rows of its state
    redraws: bool  # rewards are learned and redrawn at the end of a trial


class RaceArrays(NamedTuple):
    """Candidates of a decision and their statistics."""

    weight: Annotated[np.ndarray, "float64 [L]"]  # bonuses in units of reward, starting with 0
    policy: Annotated[np.ndarray, "int32 [N, S]"]  # each candidate's policy in the first stage
    values: Annotated[np.ndarray, "float64 [N, S]"]  # in its own model; warm start for the next decision
    action: Annotated[np.ndarray, "int64 [N]"]  # its action in the current state
    racing: Annotated[np.ndarray, "bool [N]"]  # whether it is still in the race
    followed: Annotated[np.ndarray, "int64 [N]"]  # number of models in which it was simulated
    total: Annotated[np.ndarray, "float64 [N]"]  # sum of its returns
    square: Annotated[np.ndarray, "float64 [N]"]  # sum of their squares
    ahead: Annotated[np.ndarray, "float64 [N, N]"]  # sum of differences, row minus column, over common models
    ahead_square: Annotated[np.ndarray, "float64 [N, N]"]  # sum of their squares
    sample: Annotated[np.ndarray, "float64 [N]"]  # returns in the current model
    stake: Annotated[np.ndarray, "float64 [2]"]  # largest difference of returns in one model, NOW and LATELY
    base: Annotated[np.ndarray, "float64 [S]"]  # V, in the current model
    reward: Annotated[np.ndarray, "float64 [R]"]  # of the mean model, without bonus
    extra: Annotated[np.ndarray, "float64 [R]"]  # u
    trial_policy: Annotated[np.ndarray, "int32 [S]"]
    passed: Annotated[np.ndarray, "int64 [D]"]  # distinct rows visited by the trial
    fresh: Annotated[np.ndarray, "int64 [D]"]  # those visited since rows were last written
    mark: Annotated[np.ndarray, "int64 [R]"]  # when a row was last visited, counted in trials and stages
    old_span: Annotated[np.ndarray, "int64 [E, 2]"]  # of visited rows and the last row, before the trial
    old: Annotated[np.ndarray, "float64 [E, 3]"]  # their background, reward and u
    model_reward: Annotated[np.ndarray, "float64 [D]"]  # redrawn rewards of μ
    start: Annotated[
        np.ndarray, "uint64 [4]"
    ]  # random generator's state at the start of a trial or of a model
    number: Annotated[np.ndarray, "int64 [4]"]  # MODELS and TRIALS so far, the LEADER, the running MARK
    path: Annotated[np.ndarray, "int32 [P, N, T]"]  # states of recorded trials and, last, their lengths


# --- candidates ----------------------------------------------------------------------------------------------


@kernel
def make_candidates(belief, space, params, race, s, rng):
    """Compute the candidates' policies from ``s``; return CLEAR if all take the same action, else OPEN."""
    write_mean(belief, space, params, race)
    solver = space.solver
    for c in range(race.action.shape[0] - 1, -1, -1):
        if c < race.weight.shape[0]:
            add_bonus(space, race, race.weight[c])
            for t in range(solver.values.shape[0]):
                solver.values[t] = race.values[c, t]
            solve(space.mean, belief.space, params.discount, params.tol, solver, False)
            for t in range(solver.values.shape[0]):
                race.values[c, t] = solver.values[t]
        else:
            _sample_policy(belief, space, params, s, rng)
        for t in range(solver.policy.shape[0]):
            race.policy[c, t] = solver.policy[t]
        race.action[c] = solver.policy[s]
        race.racing[c] = True
        race.followed[c] = 0
        race.total[c] = 0.0
        race.square[c] = 0.0
        for d in range(race.action.shape[0]):
            race.ahead[c, d] = 0.0
            race.ahead_square[c, d] = 0.0
    for i in (MODELS, TRIALS, LEADER):
        race.number[i] = 0
    for c in range(race.action.shape[0]):
        if race.action[c] != race.action[0]:
            race.stake[LATELY] = FORGETTING * max(race.stake[NOW], race.stake[LATELY])
            race.stake[NOW] = 0.0
            return OPEN
    return CLEAR


@inner
def _sample_policy(belief, space, params, s, rng):
    """Write the policy of a model drawn from the current belief into the solver."""
    sample_model(belief, space.other, rng)
    generate(params.generator, space.other, belief.space, params.discount, s, space.solver, rng)


# --- one trial -----------------------------------------------------------------------------------------------


@primitive
def _draw_next(rows, row, n_states, rng):
    """Draw a next state from a row of a model."""
    u = uniform(rng)
    for i in range(rows.span[row, 0], rows.span[row, 1]):
        u -= rows.prob[i]
        if u < 0.0:
            return np.int64(rows.index[i])
    if rows.background[row] > 0.0:
        return min(np.int64(u / rows.background[row] * n_states), n_states - 1)
    return np.int64(rows.index[rows.span[row, 1] - 1])  # rounding left the probabilities short of 1


@primitive
def _pass_rows(belief, space, params, race, row, begin, n, n_fresh):
    """Note the rows that a step from ``row`` may change, in a trial whose marks start at ``begin``.

    Returns the numbers of rows visited in this trial and since rows were last written.
    """
    n_actions = belief.space.allowed.shape[1]
    s = row // n_actions
    first, last = (s * n_actions, (s + 1) * n_actions) if params.by_state else (row, row + 1)
    for other in range(first, last):
        if race.mark[other] != race.number[MARK] and belief.space.allowed[s, other - s * n_actions]:
            if race.mark[other] < begin:
                keep_row(space.mean, race, other, n)
                race.passed[n] = other
                n += 1
            race.mark[other] = race.number[MARK]
            race.fresh[n_fresh] = other
            n_fresh += 1
    return n, n_fresh


@inner
def follow(belief, space, params, race, c, choice, s, rng):
    """Simulate candidate ``c`` from ``s`` in the current model and return a sample of its Q.

    The belief, the mean model and the current model are restored before returning.
    """
    n_states, n_actions = belief.space.allowed.shape
    model, solver = space.model, space.solver
    last, kept_last, n_links = n_states * n_actions - 1, race.passed.shape[0], space.links.number[0]
    keep_row(space.mean, race, last, kept_last)
    race.number[MARK] += 1
    begin_mark = race.number[MARK]
    mean = average(race.base)
    q, weight = race.base[s], 1.0
    pushed, n, n_fresh = 0, 0, 0  # steps taken; rows visited; visited rows not yet written
    for t in range(n_states):
        race.trial_policy[t] = race.policy[c, t]
    for h in range(params.n_stages):
        if h > 0:  # the strategy's policy given what has been learned so far
            if c >= race.weight.shape[0]:
                _sample_policy(belief, space, params, s, rng)
            else:
                learn_rows(belief, space, params, race, n_fresh)
                solve_changed(belief, space, params, race, race.weight[c], c, race.fresh, n_fresh, h > 1)
                race.number[MARK] += 1
                n_fresh = 0
            for t in range(n_states):
                race.trial_policy[t] = solver.policy[t]
        for _ in range(params.n_steps):
            if belief.space.terminal[s]:
                break
            a = race.trial_policy[s]
            row = s * n_actions + a
            if params.redraws:  # the reward is drawn from its predictive distribution, whose mean is
                begin, end, background = model.span[row, 0], model.span[row, 1], model.background[row]
                r = verbs.expected_reward(
                    belief.rewards, row, model.index, model.prob, begin, end, background
                )
            else:
                r = model.reward[row]
            if params.redraws or a != race.policy[0, s]:  # else the advantage is 0
                ahead = r + params.discount * row_value(model, row, race.base, mean)
                q += weight * (ahead - race.base[s])
            before = s
            s = _draw_next(model, row, n_states, rng)
            begin, end = space.mean.span[row, 0], space.mean.span[row, 1]
            if solves_changes(belief, params) and not is_listed(space.mean.index, begin, end, s):
                add_link(space.links, before, s)  # the mean model will contain this transition
            verbs.push(belief.transitions, row, s)
            verbs.push_reward(
                belief.rewards, row, s, verbs.draw_model_reward(belief.rewards, choice, row, s, rng)
            )
            n, n_fresh = _pass_rows(belief, space, params, race, row, begin_mark, n, n_fresh)
            if race.number[MODELS] < race.path.shape[0]:
                race.path[race.number[MODELS], c, pushed] = s
            pushed += 1
            weight *= params.discount
    if race.number[MODELS] < race.path.shape[0]:
        race.path[race.number[MODELS], c, params.n_steps * params.n_stages] = pushed
    if not belief.space.terminal[s]:
        learn_rows(belief, space, params, race, n_fresh)
        solve_changed(belief, space, params, race, 0.0, 0, race.passed, n, False)
        q += weight * _gain(belief, space, params, race, n, choice, s, rng)
    if params.row_by_row:  # else the next trial or decision rewrites the whole model
        for i in range(n):
            put_row_back(space.mean, race, race.passed[i], i)
        put_row_back(space.mean, race, last, kept_last)
    drop_links(space.links, n_links)
    undo_steps(belief, pushed)
    return q


@inner
def _gain(belief, space, params, race, n, choice, s, rng):
    """Return the advantage over V of the solver's policy in the current model, from state ``s``.

    In environments with a few dozen states it is computed exactly. In larger ones it is sampled by simulating the
    policy, which is much cheaper than evaluating it and adds little to the variance between models.
    """
    model, solver = space.model, space.solver
    n_states = solver.policy.shape[0]
    same = not params.redraws
    for t in range(n_states):
        same = same and solver.policy[t] == race.policy[0, t]
    if same:
        return 0.0
    if params.redraws:
        for i in range(n):
            row = race.passed[i]
            race.model_reward[i] = model.reward[row]
            begin, end, background = model.span[row, 0], model.span[row, 1], model.background[row]
            model.reward[row] = verbs.sample_reward(
                belief.rewards, choice, row, model.index, model.prob, begin, end, background, rng
            )
    if n_states <= FEW_IF_DENSE:
        evaluate_solver_policy(model, belief.space, params.discount, params.tol, solver)
        gain = solver.values[s] - race.base[s]
    else:
        gain = _follow_to_the_end(belief, space, params, race, s, rng)
    if params.redraws:
        for i in range(n):
            model.reward[race.passed[i]] = race.model_reward[i]
    return gain


@inner
def _follow_to_the_end(belief, space, params, race, s, rng):
    """Simulate the solver's policy in the current model without learning; return the sum of its advantages over V."""
    model, policy = space.model, space.solver.policy
    n_states, n_actions = belief.space.allowed.shape
    mean = average(race.base)
    gain, weight = 0.0, 1.0
    while weight > NEGLECTED and not belief.space.terminal[s]:
        row = s * n_actions + policy[s]
        if params.redraws or policy[s] != race.policy[0, s]:  # else the advantage is 0
            ahead = model.reward[row] + params.discount * row_value(model, row, race.base, mean)
            gain += weight * (ahead - race.base[s])
        s = _draw_next(model, row, n_states, rng)
        weight *= params.discount
    return gain


# --- the race ------------------------------------------------------------------------------------------------


@kernel
def run_race(belief, space, params, race, s, n_simulations, rng):
    """Draw models and simulate the candidates in them; return CLEAR, or OPEN after ``n_simulations`` trials.

    A race can be resumed by calling this again.
    """
    n_states, n_actions = belief.space.allowed.shape
    solver = space.solver
    write_mean(belief, space, params, race)
    drop_links(space.links, 0)
    if solves_changes(belief, params):
        for row in range(n_states * n_actions):
            link_row(space.links, space.mean, row, row // n_actions)
    while race.number[TRIALS] < n_simulations:
        choice = verbs.choose(belief.transitions, rng)
        sample_rows(belief, choice, space.model, rng)
        for t in range(n_states):
            solver.policy[t] = race.policy[0, t]
            solver.values[t] = race.values[0, t]
        evaluate_solver_policy(space.model, belief.space, params.discount, params.tol, solver)
        for t in range(n_states):
            race.base[t] = solver.values[t]
        _follow_all(belief, space, params, race, choice, s, rng)
        if race.number[MODELS] % BATCH == 0 and _drop_losers(params, race):
            return CLEAR
    _drop_losers(params, race)
    return OPEN


@inner
def _follow_all(belief, space, params, race, choice, s, rng):
    """Run one trial of each remaining candidate, with common random numbers."""
    n_candidates = race.action.shape[0]
    for i in range(4):
        race.start[i] = rng[i]
    for c in range(n_candidates):
        if race.racing[c]:
            for i in range(4):
                rng[i] = race.start[i]
            race.sample[c] = follow(belief, space, params, race, c, choice, s, rng)
            if not params.row_by_row:
                write_mean(belief, space, params, race)
    race.number[MODELS] += 1
    least, most = np.inf, -np.inf
    for c in range(n_candidates):
        if race.racing[c]:
            least, most = min(least, race.sample[c]), max(most, race.sample[c])
            race.number[TRIALS] += 1
            race.followed[c] += 1
            race.total[c] += race.sample[c]
            race.square[c] += race.sample[c] ** 2
            for d in range(n_candidates):
                if race.racing[d]:
                    ahead = race.sample[c] - race.sample[d]
                    race.ahead[c, d] += ahead
                    race.ahead_square[c, d] += ahead * ahead
    race.stake[NOW] = max(race.stake[NOW], most - least)


@inner
def _drop_losers(params, race):
    """Find the leader and eliminate candidates that are clearly behind; return whether one action is left."""
    n = race.number[MODELS]
    leader = -1
    for c in range(race.action.shape[0]):
        if race.racing[c] and (leader < 0 or race.ahead[c, leader] > 0.0):
            leader = c
    race.number[LEADER] = leader
    stake = max(race.stake[NOW], race.stake[LATELY])
    one_action = True
    for c in range(race.action.shape[0]):
        if not race.racing[c] or c == leader:
            continue
        mean = race.ahead[leader, c] / n
        error = np.sqrt(max(0.0, race.ahead_square[leader, c] / n - mean * mean) / max(1, n - 1))
        surely = mean - params.confidence * error
        if surely >= 0.0 and (n >= params.first_models or n * surely >= stake):
            race.racing[c] = False
        elif race.action[c] != race.action[leader]:
            one_action = False
    return one_action


# --- the planner ---------------------------------------------------------------------------------------------


def _new_space(belief: Belief, n_trial_rows: int, depth: int) -> RaceSpace:
    """Return buffers for models and for trials of ``depth`` steps."""
    more = n_trial_rows * int(verbs.most_entries(belief.transitions, belief.n_states))
    model, mean, other = belief.model_buffer(), belief.model_buffer(more=more), belief.model_buffer()
    room, n_states = len(mean.index), belief.n_states
    links, queue = new_links(n_states, room + depth), new_queue(n_states)
    return RaceSpace(model, mean, other, new_solver(n_states, room), np.zeros(room), links, queue)


def _known_range(belief: Belief) -> float | None:
    """Return the width of the known reward range, or None if rewards have no known range."""
    low, high = belief.rewards.reward_range
    return high - low if math.isfinite(high - low) and high > low else None


def _bonus_rule(belief: Belief, unit: float) -> Any:
    """Return the rule for the bonus u: based on counts, or on standard deviations for priors without counts."""
    return BEBRule(1.0) if belief.transitions.counts_transitions else VBRBRule(1.0 / unit, 1.0)


@dataclass
class RaceMemory:
    """State kept between decisions: buffers and the values that warm-start the next one."""

    room: RaceSpace
    params: RaceParams
    race: RaceArrays


@dataclass(frozen=True, kw_only=True)
class AdaptiveDSS(KernelPlanner):
    """Deep, sparse sampling of strategies, evaluated by the reward they earn and the information they gain.

    Parameters
    ----------
    n_bonuses
        Number of candidates that are optimal for the mean model with a bonus, in addition to the one without.
    largest_bonus
        The largest bonus, relative to the range of the rewards. Each further bonus is smaller by a factor of √10.
    n_policies
        Number of candidates derived from sampled models, as in DSS.
    generator
        Computes a policy for a sampled model: ``"pi"``, ``"rtdp"``, ``"vi"`` or a :class:`~bamdp.generators.Generator`.
    n_steps
        K, the number of steps per stage.
    n_stages
        H, the number of stages per trial. At the beginning of each stage, a strategy updates its policy to the current
        belief.
    n_simulations
        The budget: maximum number of trials (candidates times models) per decision. ``"auto"`` scales it so that
        decisions take about equally long in environments of different sizes, between :data:`MOST_TRIALS` in the
        smallest and :data:`FEWEST_TRIALS` in large ones.
    first_models
        Number of models after which a candidate may be eliminated even if a single further model could put it ahead.
    confidence
        Number of standard errors of the paired difference by which a candidate must trail to be eliminated.
    time_limit
        Alternative budget, in seconds per decision. Results then depend on the machine.
    tol
        Accuracy of the candidates' first policies, relative to the range of the rewards (see
        :class:`~bamdp.generators.PI`).
    trial_tol
        Accuracy of the policies within trials, which are far more numerous.

    Examples
    --------
    >>> import bamdp
    >>> env = bamdp.make_env("chain")
    >>> agent = bamdp.Agent(AdaptiveDSS(n_simulations=64), prior=bamdp.SparseDirichlet(), rewards=env.rewards,
    ...                     n_states=env.n_states, n_actions=env.n_actions, discount=0.99, seed=0)
    >>> plan = agent.plan(0)
    >>> len(plan.candidates), plan.details["candidates"][:2]
    (5, ('exploit', 'bonus 0.09487'))
    """

    result_version: ClassVar[int] = 4
    default_prior: ClassVar[str] = "sparse:alpha=0.5,beta=4"
    default_discount: ClassVar[float | str] = "auto"

    keeps: ClassVar[tuple[str, ...]] = ("race.values", "race.stake")

    n_bonuses: int = whole_number(4, low=0)
    largest_bonus: float = positive_number(3.0)
    n_policies: int = whole_number(0, low=0)
    generator: Any = generator_parameter("pi")  # noqa: RUF009
    n_steps: int = whole_number(8)
    n_stages: int = whole_number(4)
    n_simulations: int | str = whole_number("auto", names=["auto"])
    first_models: int = whole_number(64)
    confidence: float = real_number(2.0, low=0.0)
    time_limit: float | None = positive_number(None)
    tol: float = positive_number(1e-4)
    trial_tol: float = positive_number(1e-2)

    def cost(self, n_states: int, n_actions: int, discount: float) -> Cost:
        steps = float(self.n_stages) * self.n_steps
        trials, models = self.budget(n_states, n_actions), RESOLVING * (self.n_stages + 1)
        cost = estimate(n_states, n_actions, models=trials * models, steps=trials * steps, bytes=64.0 * steps)
        return cost if self.time_limit is None else cost._replace(seconds=self.time_limit)

    def budget(self, n_states: int, n_actions: int) -> int:
        """Return the maximum number of trials per decision for a model of this size."""
        if isinstance(self.n_simulations, str):
            return min(MOST_TRIALS, max(FEWEST_TRIALS, TRIALS_TIMES_PAIRS // (n_states * n_actions)))
        return self.n_simulations

    def start(self, belief: Belief, discount: float) -> RaceMemory:
        unit = _known_range(belief) or 1.0
        transitions, rewards = belief.transitions, belief.rewards
        S, A = belief.n_states, belief.n_actions
        depth = self.n_steps * self.n_stages
        most = depth * (A if transitions.changes == "state" else 1)  # rows visited by a trial
        n_rows = most + self.n_stages + 2 if transitions.changes != "all" else 0  # rows written by a trial
        params = RaceParams(
            rule=_bonus_rule(belief, unit),
            generator=make_generator(self.generator).parameters(),
            discount=discount,
            tol=unit * float(self.tol),
            trial_tol=unit * float(self.trial_tol),
            n_steps=self.n_steps,
            n_stages=self.n_stages,
            first_models=self.first_models,
            confidence=float(self.confidence),
            n_trial_rows=n_rows,
            row_by_row=transitions.changes != "all" and bool(rewards.independent_rows),
            by_state=transitions.changes == "state",
            redraws=not rewards.certain and not rewards.shares_weights,
        )
        space = _new_space(belief, n_rows, depth)
        D, N = min(most, S * A), 1 + self.n_bonuses + self.n_policies
        weight, stake = unit * self._ladder(), np.array([0.0, unit / (1.0 - discount)])
        sizes = {"S": S, "R": S * A, "N": N, "D": D, "E": D + 1, "P": 0, "T": depth + 1}
        return RaceMemory(space, params, zeros(RaceArrays, weight=weight, stake=stake, **sizes))

    def _ladder(self) -> np.ndarray:
        """Return the bonuses, starting with 0, relative to the range of the rewards."""
        ladder = [self.largest_bonus * LADDER_STEP**-i for i in reversed(range(self.n_bonuses))]
        return np.array([0.0, *ladder])

    def _set_unit(self, memory: RaceMemory, belief: Belief) -> None:
        """If the reward range is unknown, set it to the range of the rewards expected at the last decision."""
        if _known_range(belief):
            return
        space = belief.space
        expected = memory.race.reward.reshape(space.allowed.shape)[space.allowed & ~space.terminal[:, None]]
        unit = float(np.ptp(expected)) if len(expected) else 0.0
        if unit > 0.0:
            memory.race.weight[:] = unit * self._ladder()
            memory.params = memory.params._replace(
                rule=_bonus_rule(belief, unit),
                tol=unit * float(self.tol),
                trial_tol=unit * float(self.trial_tol),
            )

    def act(self, memory: RaceMemory, belief: Belief, state: int, rng: np.ndarray) -> int:
        self._set_unit(memory, belief)
        if self._make_candidates(memory, belief, state, rng) == CLEAR:
            return int(memory.race.action[0])
        if self.time_limit is None:
            self._run_race(memory, belief, state, self.budget(belief.n_states, belief.n_actions), rng)
        else:
            until = perf_counter() + self.time_limit
            trials, status = 0, OPEN
            while status == OPEN and (trials == 0 or perf_counter() < until):
                trials += BATCH * len(memory.race.action)
                status = self._run_race(memory, belief, state, trials, rng)
        return int(memory.race.action[memory.race.number[LEADER]])

    def warm_up(self, memory: RaceMemory, belief: Belief, state: int, rng: np.ndarray) -> None:
        self._make_candidates(memory, belief, state, rng)
        self._run_race(memory, belief, state, 1, rng)

    def _make_candidates(self, memory: RaceMemory, belief: Belief, state: int, rng: np.ndarray) -> int:
        depth, given = self.n_steps * self.n_stages, (memory.params, memory.race, state)
        return int(belief.run(make_candidates, memory.room, *given, rng, depth=depth))

    def _run_race(
        self, memory: RaceMemory, belief: Belief, state: int, n_trials: int, rng: np.ndarray
    ) -> int:
        depth, given = self.n_steps * self.n_stages, (memory.params, memory.race, state, n_trials)
        return int(belief.run(run_race, memory.room, *given, rng, depth=depth))

    def plan(self, memory: RaceMemory, belief: Belief, state: int, rng: np.ndarray) -> Plan:
        action = self.act(memory, belief, state, rng)
        race = memory.race
        n = race.followed
        means = np.where(n > 0, race.total / np.maximum(n, 1), race.values[:, state])
        spreads = np.sqrt(
            np.maximum(race.square / np.maximum(n, 1) - means**2, 0.0) * n / np.maximum(n - 1, 1)
        )
        weighed = candidates(race.action, means, np.where(n > 1, spreads, np.nan), n)
        leader = int(race.number[LEADER])
        details = {
            "candidates": self._names(race),
            "models": int(race.number[MODELS]),
            "trials": int(race.number[TRIALS]),
            "leader": leader,
            "behind_leader": self._behind_leader(race, leader),
        }
        return Plan(action, float(means[leader]), weighed, self.time_limit is None, details)

    def _names(self, race: RaceArrays) -> tuple[str, ...]:
        """Return a name for each candidate, with its bonus in units of reward."""
        bonuses = (f"bonus {weight:.4g}" for weight in race.weight[1:])
        return ("exploit", *bonuses, *("sampled model" for _ in range(self.n_policies)))

    def _behind_leader(self, race: RaceArrays, leader: int) -> tuple[tuple[float, float], ...]:
        """Return each candidate's mean shortfall from the leader and its standard error, over their common models."""
        n = race.followed
        common = np.maximum(np.minimum(n, n[leader]), 1)
        mean = race.ahead[leader] / common
        error = np.sqrt(
            np.maximum(race.ahead_square[leader] / common - mean**2, 0.0) / np.maximum(common - 1, 1)
        )
        return tuple((float(m), float(e)) for m, e in zip(mean, error))

    def explain(self, memory: RaceMemory, belief: Belief, state: int, rng: np.ndarray) -> Plan:
        from bamdp.planners.views.adaptive_dss import race_tree

        n_paths = min(self.budget(belief.n_states, belief.n_actions), MAX_PATHS)
        old = memory.race
        memory.race = old._replace(path=np.zeros((n_paths, *old.path.shape[1:]), np.int32))
        plan = self.plan(memory, belief, state, rng)
        tree = race_tree(plan, memory.race, memory.params, state)
        memory.race = memory.race._replace(path=old.path)
        return replace(plan, tree=tree)
