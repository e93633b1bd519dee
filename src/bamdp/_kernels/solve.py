"""The solver that planners call many times per step: modified policy iteration on sampled models.

A sampled model is solved from the running mean of the solutions before it (``solution_mean``): the last one
alone has shortcuts of its own, which the next model must first unlearn. Each round (1) improves the policy by one
Jacobi sweep, done without branches on running sums: Σ_j≤i p_j V(s_j) over all entries of the model in one go, of
which a row's value is a difference (rows of random length would cost a mispredicted branch each), (2) in the first
round orders the states so that the likeliest successor under the policy comes first, (3) copies the policy's rows
side by side in that order and (4) evaluates the policy by Gauss–Seidel sweeps over the copy: along a chain of
near-certain steps one sweep carries the value all the way back. The first policies are evaluated hastily, since
they do not last. Every third evaluation sweep is extrapolated: if its changes are about ρ < 1 times those before,
the geometric rest ρ/(1−ρ) of them is added at once (Aitken), in the first rounds only, since it may make two
policies take turns.
Worlds of a few states (or some more, with full rows) are evaluated by elimination instead, which is exact and
faster there.
Neither trick can harm the result, since every round's Jacobi sweep proves or refutes the bound of
:mod:`bamdp._kernels.sweeps`. ``tol`` is the spread max δ − min δ of that sweep in units of the rewards' range
(:func:`reward_scale`), so the policy returned loses at most γ/(1−γ)·tol of that range in any state.
"""

from __future__ import annotations

from typing import Annotated, NamedTuple

import numpy as np

from bamdp._kernels.bundles import zeros
from bamdp._kernels.jit import inner, primitive
from bamdp._kernels.sweeps import average, policy_sweep

EVALUATIONS = 8  # Gauss–Seidel evaluation sweeps a round, at most
HASTY_ROUNDS, HASTY_EVALUATIONS = 3, 2  # the first policies are not worth more
REDUCTION = 0.03  # a round's evaluation stops when the changes have fallen by this factor
EXTRAPOLATE = 3  # every so many evaluation sweeps
UNSEEN = -1
FEW_STATES, FEW_IF_DENSE = 12, 32  # worlds of so many states are evaluated by elimination
DENSE = 3  # where a row leads to one in so many states
NEAR_ONE = 0.99  # or where the discount is larger, so that sweeps gain little
LARGEST_RATIO = 0.98  # largest ρ that is trusted
PATIENT = 50  # rounds after which rounding may be what keeps the changes apart
MEAN_WINDOW = 30.0  # solutions that the running mean looks back on
TRUSTED = 10  # rounds with extrapolation; a policy that still flips then is left to the contraction
MAX_ROUNDS = 100_000  # a bound that rounding errors alone could reach


class Solver(NamedTuple):
    """Workspace of :func:`solve`. ``values`` is the warm start and the result. C is the capacity, T is S + 1."""

    values: Annotated[np.ndarray, "float64 [S]"]
    policy: Annotated[np.ndarray, "int32 [S]"]
    scratch: Annotated[np.ndarray, "float64 [S]"]
    order: Annotated[np.ndarray, "int32 [S]"]
    level: Annotated[np.ndarray, "int32 [S]"]  # likeliest steps to where a path ends
    tally: Annotated[np.ndarray, "int32 [T]"]  # states of each level
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
    ]  # running mean of solutions of sampled models, their number
    matrix: Annotated[np.ndarray, "float64 [D, D1]"]  # D = S for at most FEW_IF_DENSE states, else 0


def new_solver(n_states: int, capacity: int) -> Solver:
    """Return a workspace for models whose policies have up to ``capacity`` entries."""
    D = n_states if n_states <= FEW_IF_DENSE else 0
    solver = zeros(Solver, S=n_states, T=n_states + 1, C=capacity, C1=capacity + 1, D=D, D1=D + 1)
    solver.order[:] = np.arange(n_states)
    return solver


@inner
def _running_sums(prob, index, values, size, sums):
    """Write ``sums[i + 1] = Σ_{j<=i} prob[j] values[index[j]]``, as two chains side by side that are then joined."""
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
    """Do one Jacobi optimality sweep: T V into ``solver.scratch``, and the greedy policy.

    Returns (min δ, max δ, whether the policy is another one).
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
    """Order the states by how many likeliest steps under the policy lie before them.

    A state then comes after its likeliest successor, and states of one level, which do not wait for each
    other, stand side by side: the processor works on several at once.
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
            level[s] = 0  # so that a path which meets itself ends there
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
    """Write the policy's rows side by side, in order, probabilities times the discount."""
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
    """At most ``most`` Gauss–Seidel sweeps over the copied rows, until one changes no value by ``goal``.

    Every ``extrapolate``-th sweep is extrapolated, none for 0, where ρ is less than ``largest_ratio``.
    """
    values, order, index, prob = solver.values, solver.order, solver.index, solver.prob
    end, background, reward, change = solver.end, solver.background, solver.reward, solver.change
    for sweep in range(1, most + 1):
        mean = average(values)  # of the sweep before: in step with it, each state would wait for the last
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


@primitive
def _eliminate_two(matrix, s):
    """Take columns s and s + 1 out of the rows below them, both in one pass."""
    n_states = matrix.shape[0]
    scale = 1.0 / matrix[s, s]
    factor = matrix[s + 1, s] * scale
    for u in range(s + 1, n_states + 1):
        matrix[s + 1, u] -= factor * matrix[s, u]
    next_scale = 1.0 / matrix[s + 1, s + 1]
    for t in range(s + 2, n_states):
        first = matrix[t, s] * scale
        second = (matrix[t, s + 1] - first * matrix[s, s + 1]) * next_scale
        if first != 0.0 or second != 0.0:
            for u in range(s + 2, n_states + 1):
                matrix[t, u] -= first * matrix[s, u] + second * matrix[s + 1, u]


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
    for s in range(0, n_states - 1, 2):
        _eliminate_two(matrix, s)
    for s in range(n_states - 1, -1, -1):
        total = matrix[s, n_states]
        for t in range(s + 1, n_states):
            total -= matrix[s, t] * values[t]
        values[s] = total / matrix[s, s]


@inner
def reward_scale(rows, space):
    """Return how far rewards lie apart, the 0 of terminal states included; their size, if all are equal.

    Tolerances are multiplied by it: decisions then depend on no unit of rewards.
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
    """Write the values of ``solver.policy`` in a model, from ``solver.values``, into ``solver.values``.

    They are exact in small worlds, else off by at most γ/(1−γ)·tol/2 in units of :func:`reward_scale`, with the
    bounds of :mod:`bamdp._kernels.sweeps` for a policy in place of the best one.
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
        # An extrapolation from afar is undone by the sweeps after it: ever more of them.
        sweeps += sweeps // 2
    middle = 0.5 * (high + low) * discount / (1.0 - discount)
    for s in range(n_states):
        solver.values[s] = 0.0 if space.terminal[s] else solver.scratch[s] + middle


@primitive
def _eliminates(rows, n_states, n_rows, discount):
    """Return whether elimination evaluates a policy faster: in small worlds, in larger ones if sweeps are slow."""
    dense = DENSE * rows.span[n_rows - 1, 1] > n_states * n_rows
    return n_states <= FEW_STATES or (n_states <= FEW_IF_DENSE and (dense or discount > NEAR_ONE))


@primitive
def _start_from_mean(solver):
    """Begin from the running mean of earlier solutions, if there is one."""
    n_states = solver.values.shape[0]
    if solver.solution_mean[n_states] > 0.0:
        for s in range(n_states):
            solver.values[s] = solver.solution_mean[s]


@primitive
def _update_mean(solver):
    """Take the solution into the running mean."""
    n_states = solver.values.shape[0]
    number = min(solver.solution_mean[n_states] + 1.0, MEAN_WINDOW)
    solver.solution_mean[n_states] = number
    for s in range(n_states):
        solver.solution_mean[s] += (solver.values[s] - solver.solution_mean[s]) / number


@inner
def _rounding(rows, values, n_rows):
    """Return what two sweeps may differ by, since a row's value is a difference of running sums over all rows."""
    largest = 0.0
    for s in range(values.shape[0]):
        largest = max(largest, abs(values[s]))
    for row in range(n_rows):
        largest = max(largest, abs(rows.reward[row]))
    return 16.0 * 2.0**-52 * n_rows * largest


@inner
def solve(rows, space, discount, tol, solver, sampled):
    """Solve a model from ``solver.values``; the optimal values and policy stand in ``solver`` afterwards.

    With ``sampled`` it is one of many models drawn from a belief, and is started from the running mean of their
    solutions instead.

    The rows must stand one after the other from the first entry on, as the models of a belief do.

    Returns (rounds, spread): the policy loses at most γ/(1−γ) times the spread, which is at most ``tol`` times
    :func:`reward_scale` unless MAX_ROUNDS came first, or ``tol`` is below what rounding leaves of values so large.
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
        # improve the policy; the spread of the changes bounds what it loses
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
        # evaluate the policy: exactly in small worlds, else by sweeps over a copy of its rows
        if directly:
            _evaluate_directly(rows, space, discount, solver)
            continue
        if changed or rounds == 1:  # else the copy still stands
            if rounds == 1:
                _order_along_policy(rows, space, solver)
            _copy_policy_rows(rows, space, discount, solver)
        most = HASTY_EVALUATIONS if rounds <= HASTY_ROUNDS else EVALUATIONS
        extrapolate = EXTRAPOLATE if rounds <= TRUSTED else 0
        _evaluate_copy(solver, most, REDUCTION * max(high, -low), extrapolate, LARGEST_RATIO)
    return MAX_ROUNDS, high - low
