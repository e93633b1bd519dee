"""Inner kernels of the solver, callable."""

from bamdp._kernels.changes import drop_links, enqueue, link_row, solve_changes
from bamdp._kernels.jit import kernel
from bamdp._kernels.solve import _evaluate_directly, solve


@kernel
def evaluate_directly(rows, space, discount, solver):
    """The values of ``solver.policy`` into ``solver.values``."""
    _evaluate_directly(rows, space, discount, solver)


@kernel
def solve_rows(rows, space, discount, tol, solver):
    """(rounds, spread) of a solution from zero."""
    return solve(rows, space, discount, tol, solver, False)


@kernel
def solve_again(rows, space, discount, tol, links, queue, changed, most, solver):
    """Whether what has ``changed``, an array of rows, was solved, for links that lack its new outcomes."""
    n_actions = space.allowed.shape[1]
    for row in changed:
        link_row(links, rows, row, row // n_actions)
        enqueue(queue, row // n_actions)
    return solve_changes(rows, space, discount, tol, links, queue, most, solver)


@kernel
def link_rows(rows, n_actions, links):
    """Link the states of a model."""
    for row in range(rows.reward.shape[0]):
        link_row(links, rows, row, row // n_actions)


@kernel
def drop(links, number):
    """Drop all links but the oldest."""
    drop_links(links, number)
