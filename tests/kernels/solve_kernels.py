"""Inner kernels of the solver, callable."""

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
