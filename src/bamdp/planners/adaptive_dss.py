"""AdaptiveDSS: deep, sparse sampling of strategies, evaluated by reward earned and information gained.

DSS evaluates policies of sampled models by K simulated steps each. Here the candidates are *strategies* c, which choose
a policy based on the current belief, β ↦ π_c(β):

    b ≥ 0      the best policy of the mean model of β with the bonus b·u_β(s, a) on its rewards; b = 0 exploits
    P          the optimal policy of a model drawn from β, as in DSS (``n_policies`` of them)

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
and the maze, this halves the running time without visibly increasing the standard deviation. Each estimate of Q is
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
from dataclasses import dataclass
from time import perf_counter
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np

import bamdp._kernels.changes as changes
import bamdp.beliefs.verbs as verbs
from bamdp._kernels.jit import inner, kernel, primitive, zeros
from bamdp._kernels.random import uniform
from bamdp._kernels.rows import Rows, average, is_listed, row_value
from bamdp._kernels.solve import FEW_IF_DENSE, Solver, evaluate_solver_policy, new_solver, solve
from bamdp._parameters import positive_number, real_number, whole_number
from bamdp.beliefs.belief import Belief
from bamdp.beliefs.kernels import check_space, mean_model, sample_model, sample_rows, undo_steps
from bamdp.planners.base import Cost, KernelPlanner, Plan, candidates, estimate, spread_of
from bamdp.planners.bayes_greedy import write_bonuses, write_mean_row
from bamdp.planners.bonuses import BEBRule, VBRBRule
from bamdp.planners.shared.workspace import duplicate

MOST_TRIALS, FEWEST_TRIALS, TRIALS_TIMES_PAIRS = 2048, 64, 153_600  # for the automatic budget
BATCH = 8  # models between two elimination rounds
LADDER_STEP = math.sqrt(10.0)  # ratio of successive bonuses
OPEN, CLEAR = 1, 2  # whether the remaining candidates agree on the action
MOST_TRIALS_IN_TIME = 200_000  # per decision under a time limit
MOST_CHANGES = 8  # changes per state after which the whole mean model is solved
MODELS, TRIALS, LEADER, MARK = range(4)  # indices into RaceArrays.number
NOW, LATELY = range(2)  # indices into RaceArrays.stake
SAMPLED_TOL = 1e-4  # accuracy of sampled models' policies, as in :class:`~bamdp.generators.PI`
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
    links: changes.Links  # between the states of the mean model
    queue: changes.StateQueue

    def __deepcopy__(self, memo: Any) -> RaceSpace:
        links = changes.new_links(len(self.solver.values), len(self.links.source))
        return duplicate(self._replace(links=links))


class RaceParams(NamedTuple):
    """Parameters that stay fixed between decisions."""

    rule: Any  # u; :func:`~bamdp.planners.bayes_greedy.bonus` is registered for its type
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
    """Candidates of a decision and their returns. D: number of distinct rows visited by a trial; E = D + 1."""

    weight: Annotated[np.ndarray, "float64 [L]"]  # bonuses in units of reward, starting with 0
    policy: Annotated[np.ndarray, "int32 [N, S]"]  # each candidate's policy in the first stage
    values: Annotated[np.ndarray, "float64 [N, S]"]  # in its own model; warm start for the next decision
    action: Annotated[np.ndarray, "int64 [N]"]  # its action in the current state
    racing: Annotated[np.ndarray, "bool [N]"]  # whether it is still in the race
    returns: Annotated[np.ndarray, "float64 [M, N]"]  # in each model; NaN after its elimination
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
    start: Annotated[np.ndarray, "uint64 [4]"]  # random generator's state at the start of a model's trials
    number: Annotated[np.ndarray, "int64 [4]"]  # MODELS and TRIALS so far, the LEADER, the running MARK


# --- the mean model -----------------------------------------------------------------------------------------


@primitive
def copy(source, target):
    """Copy one array to another."""
    for i in range(source.shape[0]):
        target[i] = source[i]


@inner
def write_mean(belief, space, params, race):
    """Write the mean model to ``space.mean``, its rewards and u to ``race``.

    After the model, there is space for all rows that a trial may visit.
    """
    rows = space.mean
    end = mean_model(belief, rows)
    check_space(belief, rows, end, params.n_trial_rows)
    write_bonuses(params.rule, belief, rows, space.variance, end, race.extra)
    copy(rows.reward, race.reward)


@inner
def learn_rows(belief, space, params, race, n):
    """Append the ``n`` rows in ``race.fresh`` under the current belief and point their spans there.

    The last row is copied after them, so that it still ends where the model ends.
    """
    if not params.row_by_row:
        write_mean(belief, space, params, race)
        return
    rows = space.mean
    last = race.reward.shape[0] - 1
    at = rows.span[last, 1]
    for i in range(n):
        row = race.fresh[i]
        at = write_mean_row(params.rule, belief, rows, space.variance, race.extra, row, at)
        race.reward[row] = rows.reward[row]
    begin, stop = rows.span[last, 0], rows.span[last, 1]
    if stop != at:
        for i in range(stop - begin):
            rows.index[at + i] = rows.index[begin + i]
            rows.prob[at + i] = rows.prob[begin + i]
        rows.span[last, 0] = at
        rows.span[last, 1] = at + stop - begin


@primitive
def keep_row(rows, race, row, i):
    """Save a row of the mean model in slot ``i``."""
    race.old_span[i, 0] = rows.span[row, 0]
    race.old_span[i, 1] = rows.span[row, 1]
    race.old[i, 0] = rows.background[row]
    race.old[i, 1] = race.reward[row]
    race.old[i, 2] = race.extra[row]


@primitive
def put_row_back(rows, race, row, i):
    """Undo all changes to a row since :func:`keep_row`."""
    rows.span[row, 0] = race.old_span[i, 0]
    rows.span[row, 1] = race.old_span[i, 1]
    rows.background[row] = race.old[i, 0]
    race.reward[row] = race.old[i, 1]
    race.extra[row] = race.old[i, 2]


@inner
def add_bonus(space, race, weight):
    """Add the bonus ``weight``·u to the mean model's rewards."""
    for row in range(race.reward.shape[0]):
        space.mean.reward[row] = race.reward[row] + weight * race.extra[row]


@primitive
def solves_changes(belief, params):
    """Return whether only states whose values change in a trial are solved again."""
    return params.row_by_row and belief.space.allowed.shape[0] > FEW_IF_DENSE


@inner
def solve_changed(belief, space, params, race, weight, c, changed, n, goes_on):
    """Solve the mean model with the bonus ``weight``·u after ``n`` of its rows have changed.

    The changes are relative to the root's solution for candidate ``c`` or, if ``goes_on``, to the last solution in this
    trial.
    """
    solver = space.solver
    n_states, n_actions = belief.space.allowed.shape
    add_bonus(space, race, weight)
    few = solves_changes(belief, params)
    if not (few and goes_on):
        copy(race.values[c], solver.values)
        copy(race.policy[c], solver.policy)
    if few:
        for i in range(n):
            changes.enqueue(space.queue, changed[i] // n_actions)
        given = space.mean, belief.space, params.discount, 0.5 * params.trial_tol, space.links, space.queue
        if changes.solve_changes(*given, MOST_CHANGES * n_states, solver):
            return
    solve(space.mean, belief.space, params.discount, params.trial_tol, solver, False)


# --- candidates ----------------------------------------------------------------------------------------------


@kernel
def make_candidates(belief, space, params, race, s, rng):
    """Compute the candidates' policies from ``s``; return CLEAR if all take the same action, else OPEN."""
    write_mean(belief, space, params, race)
    solver = space.solver
    for c in range(race.action.shape[0] - 1, -1, -1):
        if c < race.weight.shape[0]:
            add_bonus(space, race, race.weight[c])
            copy(race.values[c], solver.values)
            solve(space.mean, belief.space, params.discount, params.tol, solver, False)
            copy(solver.values, race.values[c])
        else:
            _sample_policy(belief, space, params, rng)
        copy(solver.policy, race.policy[c])
        race.action[c] = solver.policy[s]
        race.racing[c] = True
    for i in (MODELS, TRIALS, LEADER):
        race.number[i] = 0
    for c in range(race.action.shape[0]):
        if race.action[c] != race.action[0]:
            race.stake[LATELY] = FORGETTING * max(race.stake[NOW], race.stake[LATELY])
            race.stake[NOW] = 0.0
            return OPEN
    return CLEAR


@inner
def _sample_policy(belief, space, params, rng):
    """Write the optimal policy of a model drawn from the current belief into the solver."""
    sample_model(belief, space.other, rng)
    solve(space.other, belief.space, params.discount, SAMPLED_TOL, space.solver, True)


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
    R, model, solver = belief.rewards, space.model, space.solver
    last, kept_last, n_links = n_states * n_actions - 1, race.passed.shape[0], space.links.number[0]
    keep_row(space.mean, race, last, kept_last)
    race.number[MARK] += 1
    begin_mark = race.number[MARK]
    mean = average(race.base)
    q, weight = race.base[s], 1.0
    pushed, n, n_fresh = 0, 0, 0  # steps taken; rows visited; visited rows not yet written
    copy(race.policy[c], race.trial_policy)
    for h in range(params.n_stages):
        if h > 0:  # the strategy's policy given what has been learned so far
            if c >= race.weight.shape[0]:
                _sample_policy(belief, space, params, rng)
            else:
                learn_rows(belief, space, params, race, n_fresh)
                solve_changed(belief, space, params, race, race.weight[c], c, race.fresh, n_fresh, h > 1)
                race.number[MARK] += 1
                n_fresh = 0
            copy(solver.policy, race.trial_policy)
        for _ in range(params.n_steps):
            if belief.space.terminal[s]:
                break
            a = race.trial_policy[s]
            row = s * n_actions + a
            if params.redraws or a != race.policy[0, s]:  # else the advantage is 0
                r = model.reward[row]
                if (
                    params.redraws
                ):  # use the mean of the predictive distribution from which the reward is drawn
                    begin, end, background = model.span[row, 0], model.span[row, 1], model.background[row]
                    r = verbs.expected_reward(R, row, model.index, model.prob, begin, end, background)
                q += weight * (r + params.discount * row_value(model, row, race.base, mean) - race.base[s])
            before = s
            s = _draw_next(model, row, n_states, rng)
            begin, end = space.mean.span[row, 0], space.mean.span[row, 1]
            if solves_changes(belief, params) and not is_listed(space.mean.index, begin, end, s):
                changes.add_link(space.links, before, s)  # the mean model will contain this transition
            verbs.push(belief.transitions, row, s)
            verbs.push_reward(R, row, s, verbs.draw_model_reward(R, choice, row, s, rng))
            n, n_fresh = _pass_rows(belief, space, params, race, row, begin_mark, n, n_fresh)
            pushed += 1
            weight *= params.discount
    if not belief.space.terminal[s]:
        learn_rows(belief, space, params, race, n_fresh)
        solve_changed(belief, space, params, race, 0.0, 0, race.passed, n, False)
        q += weight * _gain(belief, space, params, race, n, choice, s, rng)
    if params.row_by_row:  # else the next trial or decision rewrites the whole model
        for i in range(n):
            put_row_back(space.mean, race, race.passed[i], i)
        put_row_back(space.mean, race, last, kept_last)
    changes.drop_links(space.links, n_links)
    undo_steps(belief, pushed)
    return q


@inner
def _gain(belief, space, params, race, n, choice, s, rng):
    """Return the advantage over V of the solver's policy in the current model, from state ``s``.

    In environments with a few dozen states it is computed exactly. In larger ones it is sampled by simulating the
    policy, which is much cheaper than evaluating it and adds little to the variance between models.
    """
    R, model, solver = belief.rewards, space.model, space.solver
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
            r = verbs.sample_reward(R, choice, row, model.index, model.prob, begin, end, background, rng)
            model.reward[row] = r
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
    changes.drop_links(space.links, 0)
    if solves_changes(belief, params):
        for row in range(n_states * n_actions):
            changes.link_row(space.links, space.mean, row, row // n_actions)
    while race.number[TRIALS] < n_simulations:
        choice = verbs.choose(belief.transitions, rng)
        sample_rows(belief, choice, space.model, rng)
        copy(race.policy[0], solver.policy)
        copy(race.values[0], solver.values)
        evaluate_solver_policy(space.model, belief.space, params.discount, params.tol, solver)
        copy(solver.values, race.base)
        _follow_all(belief, space, params, race, choice, s, rng)
        if race.number[MODELS] % BATCH == 0 and _drop_losers(params, race):
            return CLEAR
    _drop_losers(params, race)
    return OPEN


@inner
def _follow_all(belief, space, params, race, choice, s, rng):
    """Run one trial of each remaining candidate, with common random numbers."""
    least, most, n = np.inf, -np.inf, race.number[MODELS]
    copy(rng, race.start)
    for c in range(race.action.shape[0]):
        race.returns[n, c] = np.nan
        if race.racing[c]:
            copy(race.start, rng)
            q = follow(belief, space, params, race, c, choice, s, rng)
            if not params.row_by_row:
                write_mean(belief, space, params, race)
            race.returns[n, c] = q
            race.number[TRIALS] += 1
            least, most = min(least, q), max(most, q)
    race.number[MODELS] = n + 1
    race.stake[NOW] = max(race.stake[NOW], most - least)


@inner
def _compare(race, c, d):
    """Return the mean lead of candidate ``c`` over ``d`` across all models, and its standard error."""
    n, total, square = race.number[MODELS], 0.0, 0.0
    for m in range(n):
        ahead = race.returns[m, c] - race.returns[m, d]
        total += ahead
        square += ahead * ahead
    mean = total / n
    return mean, np.sqrt(max(0.0, square / n - mean * mean) / max(1, n - 1))


@inner
def _drop_losers(params, race):
    """Find the leader and eliminate candidates that are clearly behind; return whether one action is left."""
    n, leader = race.number[MODELS], -1
    for c in range(race.action.shape[0]):
        if race.racing[c] and (leader < 0 or _compare(race, c, leader)[0] > 0.0):
            leader = c
    race.number[LEADER] = leader
    stake = max(race.stake[NOW], race.stake[LATELY])
    one_action = True
    for c in range(race.action.shape[0]):
        if not race.racing[c] or c == leader:
            continue
        mean, error = _compare(race, leader, c)
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
    links, queue = changes.new_links(n_states, room + depth), changes.new_queue(n_states)
    return RaceSpace(model, mean, other, new_solver(n_states, room), np.zeros(room), links, queue)


def _known_range(belief: Belief) -> float | None:
    """Return the width of the known reward range, or None if rewards have no known range."""
    low, high = belief.rewards.reward_range
    return high - low if math.isfinite(high - low) and high > low else None


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
        if self.time_limit is not None:
            return MOST_TRIALS_IN_TIME
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
            **self._in_units(belief, unit),
            discount=discount,
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
        M = 1 + self.budget(S, A) // 2  # at least two candidates are simulated in each model
        sizes = {"S": S, "R": S * A, "N": N, "D": D, "E": D + 1, "M": M}
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
            memory.params = memory.params._replace(**self._in_units(belief, unit))

    def _in_units(self, belief: Belief, unit: float) -> dict[str, Any]:
        """Return the parameters that depend on the unit of rewards, including u, which uses counts if any exist."""
        rule = BEBRule(1.0) if belief.transitions.counts_transitions else VBRBRule(1.0 / unit, 1.0)
        return {"rule": rule, "tol": unit * float(self.tol), "trial_tol": unit * float(self.trial_tol)}

    def act(self, memory: RaceMemory, belief: Belief, state: int, rng: np.ndarray) -> int:
        self._set_unit(memory, belief)
        if self._run(make_candidates, memory, belief, state, rng) == CLEAR:
            return int(memory.race.action[0])
        most = self.budget(belief.n_states, belief.n_actions)
        if self.time_limit is None:
            self._run(run_race, memory, belief, state, most, rng)
        else:
            until, trials = perf_counter() + self.time_limit, 0
            while trials < most:
                trials += BATCH * len(memory.race.action)
                if (
                    self._run(run_race, memory, belief, state, trials, rng) == CLEAR
                    or perf_counter() >= until
                ):
                    break
        return int(memory.race.action[memory.race.number[LEADER]])

    def warm_up(self, memory: RaceMemory, belief: Belief, state: int, rng: np.ndarray) -> None:
        self._run(make_candidates, memory, belief, state, rng)
        self._run(run_race, memory, belief, state, 1, rng)

    def _run(self, kernel: Any, memory: RaceMemory, belief: Belief, *args: Any) -> int:
        depth = self.n_steps * self.n_stages
        return int(belief.run(kernel, memory.room, memory.params, memory.race, *args, depth=depth))

    def plan(self, memory: RaceMemory, belief: Belief, state: int, rng: np.ndarray) -> Plan:
        action = self.act(memory, belief, state, rng)
        race = memory.race
        models, trials, leader, _ = race.number.tolist()
        returns = race.returns[:models]
        n = np.count_nonzero(~np.isnan(returns), axis=0)
        means = np.where(n > 0, np.nansum(returns, axis=0) / np.maximum(n, 1), race.values[:, state])
        spreads = spread_of(n, means, np.nansum(returns**2, axis=0))
        bonuses = (f"bonus {weight:.4g}" for weight in race.weight[1:])
        names = ("exploit", *bonuses, *["sampled model"] * self.n_policies)
        details = {"candidates": names, "models": models, "trials": trials, "leader": leader}
        weighed = candidates(race.action, means, spreads, n)
        return Plan(action, float(means[leader]), weighed, self.time_limit is None, details)
