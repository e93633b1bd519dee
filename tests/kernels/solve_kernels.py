"""Inner kernels of the solver, callable."""

from bamdp._kernels.jit import kernel
from bamdp._kernels.solve import _evaluate_directly


@kernel
def evaluate_directly(rows, space, discount, solver):
    """The values of ``solver.policy`` into ``solver.values``."""
    _evaluate_directly(rows, space, discount, solver)
