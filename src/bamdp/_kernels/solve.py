"""Modified policy iteration for sampled models, which planners solve many times per step.

Each sampled model is solved from the running mean of previous solutions (``solution_mean``). The last solution alone
would contain shortcuts specific to its model, which would first have to be undone.

Each round (1) improves the policy with one Jacobi sweep. Without branching, the sweep computes the running sums
Σ_j≤i p_j V(s_j) over all entries of the model and obtains each row's value as a difference, because looping over rows
of random length would cost one mispredicted branch per row. The round then (2) orders the states so that the most
likely successor under the policy comes first (in the first round only), (3) copies the policy's rows contiguously in
that order and (4) evaluates the policy with Gauss–Seidel sweeps over the copy, so that one sweep propagates values
all the way back along a chain of near-certain steps.

The first policies are evaluated only roughly, since they will soon change. Every third evaluation sweep is
extrapolated: if its changes are about ρ < 1 times the previous ones, the rest of the geometric series, ρ/(1−ρ) times
these changes, is added at once (Aitken). This is done only in the first rounds, since it may cause oscillation
between two policies.

Small models (or slightly larger ones with dense rows) are evaluated by elimination instead, which is exact and faster.
Neither technique can affect the accuracy of the result, since the Jacobi sweep of each round checks the bound of
:mod:`bamdp._kernels.rows`. ``tol`` is the spread max δ − min δ of that sweep in units of the reward range
(:func:`reward_scale`), so the returned policy loses at most γ/(1−γ)·tol of that range in any state.
"""

from __future__ import annotations

from typing import Annotated, NamedTuple

import numpy as np

from bamdp._kernels.jit import inner, primitive, zeros
from bamdp._kernels.rows import average, policy_sweep

EVALUATIONS = 8  # maximum number of Gauss–Seidel evaluation sweeps per round
HASTY_ROUNDS, HASTY_EVALUATIONS = 3, 2  # the first policies are evaluated only roughly
REDUCTION = 0.03  # a round's evaluation stops when changes have decreased by this factor
EXTRAPOLATE = 3  # interval of extrapolation, in evaluation sweeps
UNSEEN = -1
FEW_STATES, FEW_IF_DENSE = 12, 32  # maximum number of states for evaluation by elimination
DENSE = 3  # rows are dense if they lead to at least one in this many states
NEAR_ONE = 0.99  # above this discount, sweeps converge slowly
LARGEST_RATIO = 0.98  # largest ρ used for extrapolation
PATIENT = 50  # rounds after which rounding may dominate the spread of the changes
MEAN_WINDOW = 30.0  # window of the running mean, in solutions
TRUSTED = 10  # rounds with extrapolation; without it, contraction stops policies from oscillating
MAX_ROUNDS = 100_000  # only reached because of rounding errors


class Solver(NamedTuple):
    """Workspace of :func:`solve`. ``values`` is both the warm start and the result. C is the capacity; T is S + 1."""

    values: Annotated[np.ndarray, "float64 [S]"]
    policy: Annotated[np.ndarray, "int32 [S]"]
    scratch: Annotated[np.ndarray, "float64 [S]"]
    order: Annotated[np.ndarray, "int32 [S]"]
    level: Annotated[np.ndarray, "int32 [S]"]  # number of most likely steps to the end of the path
    tally: Annotated[np.ndarray, "int32 [T]"]  # number of states per level
    stack: Annotated[np.ndarray, "int32 [S]"]
    end: Annotated[np.ndarray, "int64 [S]"]  # end of the i-th copied row
    index: Annotated[np.ndarray, "int32 [C]"]  # type: ignore[assignment]  # copied rows
    prob: Annotated[np.ndarray, "float64 [C]"]  # times the discount
    sums: Annotated[np.ndarray, "float64 [C1]"]  # running sums
    background: Annotated[np.ndarray, "float64 [S]"]  # times the discount
    reward: Annotated[np.ndarray, "float64 [S]"]
    change: Annotated[np.ndarray, "float64 [S]"]  # changes of the last sweep
    solution_mean: Annotated[
        np.ndarray, "float64 [T]"
    ]  # running mean of sampled models' solutions, and their number
    matrix: Annotated[np.ndarray, "float64 [D, D1]"]  # D = S for at most FEW_IF_DENSE states, else 0


def new_solver(n_states: int, capacity: int) -> Solver:
    """Return a workspace for models whose policies have up to ``capacity`` entries."""
    D = n_states if n_states <= FEW_IF_DENSE else 0
    solver = zeros(Solver, S=n_states, T=n_states + 1, C=capacity, C1=capacity + 1, D=D, D1=D + 1)
    solver.order[:] = np.arange(n_states)
    return solver


@inner
def _running_sums(prob, index, values, size, sums):
    """Write ``sums[i + 1] = Σ_{j<=i} prob[j] values[index[j]]``, using two parallel chains that are then joined."""
    half = np.uint64(size // 2)
    first, second = 0.0, 0.0
    sums[0] = 0.0
    for i in range(half):
        j = half + i
        first += prob[i] * values[np.uint32(index[i])]
        second += prob[j] * values[np.uint32(index[j])]
        sums[i + np.uint64(1)] = first
        sums[j + np.uint64(1)] = second
    if size % 2 == 1:
        second += prob[size - 1] * values[index[size - 1]]
        sums[size] = second
    for i in range(size // 2 + 1, size + 1):
        sums[i] += first


@inner
def _improve(rows, space, discount, solver):
    """Run one Jacobi optimality sweep, writing T V to ``solver.scratch`` and the greedy policy to ``solver``.

    Return (min δ, max δ, whether the policy changed).
    """
    n_states, n_actions = space.allowed.shape
    values, sums, span = solver.values, solver.sums, rows.span
    background, reward, allowed = rows.background, rows.reward, space.allowed
    _running_sums(rows.prob, rows.index, values, span[n_states * n_actions - 1, 1], sums)
    mean = average(values)
    low, high = np.inf, -np.inf
    changed = False
    row = np.uint64(0)
    for s in range(np.uint64(n_states)):
        best = -np.inf
        action = np.int32(0)
        for a in range(np.uint64(n_actions)):
            q = sums[np.uint64(span[row, 1])] - sums[np.uint64(span[row, 0])] + background[row] * mean
            q = reward[row] + discount * q
            q = q if allowed[s, a] else -np.inf
            action = np.int32(a) if q > best else action
            best = max(best, q)
            row += np.uint64(1)
        if space.terminal[s]:
            best, action = 0.0, np.int32(0)
        changed |= solver.policy[s] != action
        solver.policy[s] = action
        solver.scratch[s] = best
        delta = best - values[s]
        low = min(low, delta)
        high = max(high, delta)
    return low, high, changed


@inner
def _order_along_policy(rows, space, solver):
    """Order the states by the number of most likely steps to the end of their path under the policy.

    Each state then follows its most likely successor. States on the same level are independent and adjacent, so the
    processor can work on several at once.
    """
    n_states, n_actions = space.allowed.shape
    level, stack, tally = solver.level, solver.stack, solver.tally
    for s in range(n_states):
        level[s] = UNSEEN
        tally[s] = 0
    tally[n_states] = 0
    for start in range(n_states):
        s = start
        top = 0
        while level[s] == UNSEEN:
            level[s] = 0  # ends a path that forms a cycle
            stack[top] = s
            top += 1
            row = s * n_actions + solver.policy[s]
            likeliest = 0.0
            for i in range(np.uint64(rows.span[row, 0]), np.uint64(rows.span[row, 1])):
                if rows.prob[i] > likeliest:
                    likeliest = rows.prob[i]
                    s = np.int64(rows.index[i])
        height = level[s]
        while top > 0:
            top -= 1
            height += 1
            level[stack[top]] = height
            tally[height] += 1
    total = 0
    for i in range(n_states + 1):
        count = tally[i]
        tally[i] = total
        total += count
    for s in range(n_states):
        solver.order[tally[level[s]]] = s
        tally[level[s]] += 1


@inner
def _copy_policy_rows(rows, space, discount, solver):
    """Copy the policy's rows contiguously in order, with probabilities multiplied by the discount."""
    n_states, n_actions = space.allowed.shape
    at = 0
    for i in range(n_states):
        s = solver.order[i]
        row = s * n_actions + solver.policy[s]
        for j in range(np.uint64(rows.span[row, 0]), np.uint64(rows.span[row, 1])):
            solver.index[at] = rows.index[j]
            solver.prob[at] = discount * rows.prob[j]
            at += 1
        solver.end[i] = at
        solver.background[i] = discount * rows.background[row]
        solver.reward[i] = rows.reward[row]


@inner
def _evaluate_copy(solver, most, goal, extrapolate, largest_ratio):
    """Run at most ``most`` Gauss–Seidel sweeps over the copied rows, until all changes are below ``goal``.

    Extrapolate every ``extrapolate``-th sweep (never if 0) if ρ is less than ``largest_ratio``.
    """
    values, order, index, prob = solver.values, solver.order, solver.index, solver.prob
    end, background, reward, change = solver.end, solver.background, solver.reward, solver.change
    for sweep in range(1, most + 1):
        mean = average(
            values
        )  # from the previous sweep: updating it within a sweep would serialise the states
        largest, product, square = 0.0, 0.0, 0.0
        begin = np.uint64(0)
        for i in range(values.shape[0]):
            stop = np.uint64(end[i])
            new = reward[i] + background[i] * mean
            for j in range(begin, stop):
                new += prob[j] * values[np.uint32(index[j])]
            begin = stop
            s = np.uint32(order[i])
            delta = new - values[s]
            values[s] = new
            largest = max(largest, abs(delta))
            product += delta * change[i]
            square += change[i] * change[i]
            change[i] = delta
        if largest < goal:
            return
        if extrapolate > 0 and sweep % extrapolate == 0 and 0.0 < product < largest_ratio * square:
            rest = product / (square - product)  # ρ/(1−ρ) with ρ = product/square
            for i in range(values.shape[0]):
                values[order[i]] += rest * change[i]


@inner
def _evaluate_directly(rows, space, discount, solver):
    """Solve (I − γ P_π) V = r_π by elimination; the matrix is diagonally dominant, so no pivots are needed."""
    n_states, n_actions = space.allowed.shape
    matrix, values = solver.matrix, solver.values
    for s in range(n_states):
        row = s * n_actions + solver.policy[s]
        evenly = -discount * rows.background[row] / n_states
        for t in range(n_states):
            matrix[s, t] = evenly
        matrix[s, s] += 1.0
        for i in range(np.uint64(rows.span[row, 0]), np.uint64(rows.span[row, 1])):
            matrix[s, np.uint32(rows.index[i])] -= discount * rows.prob[i]
        matrix[s, n_states] = rows.reward[row]
    for s in range(n_states - 1):
        scale = 1.0 / matrix[s, s]
        for t in range(s + 1, n_states):
            factor = matrix[t, s] * scale
            if factor != 0.0:
                for u in range(s + 1, n_states + 1):
                    matrix[t, u] -= factor * matrix[s, u]
    for s in range(n_states - 1, -1, -1):
        total = matrix[s, n_states]
        for t in range(s + 1, n_states):
            total -= matrix[s, t] * values[t]
        values[s] = total / matrix[s, s]


@inner
def reward_scale(rows, space):
    """Return the range of rewards, including 0 for terminal states; if all are equal, their magnitude.

    Tolerances are multiplied by this scale, so decisions do not depend on the unit of rewards.
    """
    n_states, n_actions = space.allowed.shape
    low, high = np.inf, -np.inf
    for s in range(n_states):
        for a in range(n_actions):
            if space.terminal[s] or space.allowed[s, a]:
                r = 0.0 if space.terminal[s] else rows.reward[s * n_actions + a]
                low, high = min(low, r), max(high, r)
    return high - low if high > low else abs(high)


@inner
def evaluate_solver_policy(rows, space, discount, tol, solver):
    """Evaluate ``solver.policy`` in a model, starting from and writing to ``solver.values``.

    The values are exact for small models. Otherwise, their error is at most γ/(1−γ)·tol/2 in units of
    :func:`reward_scale`, based on the bounds of :mod:`bamdp._kernels.rows` with the policy in place of the best
    actions.
    """
    n_states = space.allowed.shape[0]
    if n_states <= FEW_IF_DENSE:
        _evaluate_directly(rows, space, discount, solver)
        return
    tol *= reward_scale(rows, space)
    _order_along_policy(rows, space, solver)
    _copy_policy_rows(rows, space, discount, solver)
    sweeps = EVALUATIONS
    for _ in range(MAX_ROUNDS):
        _evaluate_copy(solver, sweeps, tol * (1.0 - discount), sweeps, discount)
        low, high = policy_sweep(rows, space, discount, solver.policy, solver.values, solver.scratch)
        if high - low <= tol:
            break
        # Increase the number of sweeps, since they correct a poor extrapolation.
        sweeps += sweeps // 2
    middle = 0.5 * (high + low) * discount / (1.0 - discount)
    for s in range(n_states):
        solver.values[s] = 0.0 if space.terminal[s] else solver.scratch[s] + middle


@primitive
def _eliminates(rows, n_states, n_rows, discount):
    """Return whether elimination is faster: for small models, or larger ones if sweeps converge slowly."""
    dense = DENSE * rows.span[n_rows - 1, 1] > n_states * n_rows
    return n_states <= FEW_STATES or (n_states <= FEW_IF_DENSE and (dense or discount > NEAR_ONE))


@primitive
def _start_from_mean(solver):
    """Start from the running mean of earlier solutions, if available."""
    n_states = solver.values.shape[0]
    if solver.solution_mean[n_states] > 0.0:
        for s in range(n_states):
            solver.values[s] = solver.solution_mean[s]


@primitive
def _update_mean(solver):
    """Update the running mean with the solution."""
    n_states = solver.values.shape[0]
    number = min(solver.solution_mean[n_states] + 1.0, MEAN_WINDOW)
    solver.solution_mean[n_states] = number
    for s in range(n_states):
        solver.solution_mean[s] += (solver.values[s] - solver.solution_mean[s]) / number


@inner
def _rounding(rows, values, n_rows):
    """Return a bound on the rounding error of a sweep, whose row values are differences of running sums."""
    largest = 0.0
    for s in range(values.shape[0]):
        largest = max(largest, abs(values[s]))
    for row in range(n_rows):
        largest = max(largest, abs(rows.reward[row]))
    return 16.0 * 2.0**-52 * n_rows * largest


@inner
def solve(rows, space, discount, tol, solver, sampled):
    """Solve a model, starting from ``solver.values``; write the optimal values and policy to ``solver``.

    If ``sampled``, the model is one of many drawn from a belief, and the running mean of their solutions is the
    starting point instead.

    The rows must be stored contiguously from the first entry, as in the models of a belief.

    Return (rounds, spread). The policy loses at most γ/(1−γ) times the spread, which is at most ``tol`` times
    :func:`reward_scale` unless MAX_ROUNDS is reached or ``tol`` is below the rounding error of the values.
    """
    values = solver.values
    tol *= reward_scale(rows, space)
    if sampled:
        _start_from_mean(solver)
    n_states, n_actions = space.allowed.shape
    n_rows = n_states * n_actions
    directly = _eliminates(rows, n_states, n_rows, discount)
    low, high = 0.0, np.inf
    for rounds in range(1, MAX_ROUNDS + 1):
        # improve the policy; the spread of the changes bounds its loss
        if rounds == PATIENT:
            tol = max(tol, _rounding(rows, values, n_rows))
        low, high, changed = _improve(rows, space, discount, solver)
        proven = high - low <= tol
        middle = 0.5 * (high + low) * discount / (1.0 - discount) if proven else 0.0
        for s in range(values.shape[0]):
            values[s] = 0.0 if space.terminal[s] else solver.scratch[s] + middle
        if proven:
            if sampled:
                _update_mean(solver)
            return rounds, high - low
        # evaluate the policy: exactly for small models, else by sweeps over a copy of its rows
        if directly:
            _evaluate_directly(rows, space, discount, solver)
            continue
        if changed or rounds == 1:  # otherwise the copy is still valid
            if rounds == 1:
                _order_along_policy(rows, space, solver)
            _copy_policy_rows(rows, space, discount, solver)
        most = HASTY_EVALUATIONS if rounds <= HASTY_ROUNDS else EVALUATIONS
        extrapolate = EXTRAPOLATE if rounds <= TRUSTED else 0
        _evaluate_copy(solver, most, REDUCTION * max(high, -low), extrapolate, LARGEST_RATIO)
    return MAX_ROUNDS, high - low
