"""The mean model with bonuses during simulated trials: row-wise updates, undo and incremental solution.

AdaptiveDSS maintains this model while it simulates a strategy. The functions take bundles of arrays defined in
:mod:`bamdp.planners.adaptive_dss`: ``space`` contains the model ``mean`` and the buffers for solving it; ``params`` the
parameters; and ``race`` the rewards without bonus (``reward``) and bonuses u (``extra``) of all rows, and the rows
before a trial (``old_span`` and ``old``).
"""

from __future__ import annotations

from bamdp._kernels.changes import enqueue, solve_changes
from bamdp._kernels.jit import inner, primitive
from bamdp._kernels.solve import FEW_IF_DENSE, solve
from bamdp.beliefs.kernels import check_space
from bamdp.planners.shared.bonus import write_mean_model, write_mean_row

MOST_CHANGES = 8  # changes per state after which the whole model is solved


@inner
def write_mean(belief, space, params, race):
    """Write the mean model to ``space.mean``, its rewards and u to ``race``.

    After the model, there is space for all rows that a trial may visit.
    """
    rows = space.mean
    end = write_mean_model(params.rule, belief, rows, space.variance, race.extra)
    check_space(belief, rows, end, params.n_trial_rows)
    for row in range(race.reward.shape[0]):
        race.reward[row] = rows.reward[row]


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
        for t in range(n_states):
            solver.values[t] = race.values[c, t]
            solver.policy[t] = race.policy[c, t]
    if few:
        for i in range(n):
            enqueue(space.queue, changed[i] // n_actions)
        tol, most = 0.5 * params.trial_tol, MOST_CHANGES * n_states
        links, queue = space.links, space.queue
        if solve_changes(space.mean, belief.space, params.discount, tol, links, queue, most, solver):
            return
    solve(space.mean, belief.space, params.discount, params.trial_tol, solver, False)
