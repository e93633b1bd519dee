"""The optimal average reward a step, with proof: relative value iteration.

For any V let δ(s) = max_a [r(s,a) + Σ p(s'|s,a) V(s')] − V(s). Since the optimal total of n steps is monotone
in what follows them, V + n min δ ≤ Tⁿ V ≤ V + n max δ, so that (Odoni 1969)

    min δ  ≤  g(s)  ≤  max δ     for the optimal gain g(s) from every state s,

and likewise for a policy with its own action in place of the best. The iteration is V ← V + δ/2, less V(0):
the half step is the aperiodicity transformation (Schweitzer 1971), without which periodic chains would
cycle. It stops when max δ − min δ ≤ tol (or rounding dominates), and the bounds are then taken from one more
sweep, widened for rounding and for rows that do not quite sum to 1.

Terminal states are taken as absorbing without reward. If the gain depends on the state (a multichain model,
or a terminal state that is not worth reaching), δ tends to g(s) and its spread stays: that is an error, which
names two states. A model that mixes slowly may look so for a while; where one can only come to stay in one part of it
(:mod:`bamdp.mdp.structure`) it is not taken for that, and the values of the present policy are put in the place of V:
a step of policy iteration, after which the sweeps go on.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from bamdp import _checks
from bamdp._kernels.jit import kernel
from bamdp._kernels.rows import Rows, Space
from bamdp._kernels.sweeps import improve
from bamdp.mdp.linear import chain_bias
from bamdp.mdp.model import FiniteMDP
from bamdp.mdp.solution import (
    chain_of,
    check_model,
    check_policy,
    check_tolerance,
    greedy,
    q_table,
    rounding,
    scale_of,
    slack,
)
from bamdp.mdp.structure import end_components

_CHUNK = 4096
_CROSSING = 8  # sweeps a state after which values have crossed the longest corridor
_STALLED = 1e-9  # a spread that falls less in a chunk does not fall


@dataclass(frozen=True, eq=False)
class Gain:
    """Average reward a step.

    Attributes
    ----------
    gain
        The middle of ``bounds``.
    policy
        A policy that earns it, int ``[S]``, or the one that was given.
    bias
        Relative values ``[S]``: g + h(s) = max_a [r(s,a) + Σ p(s'|s,a) h(s')], with h(0) = 0 (h = 0 in
        terminal states, if there are any).
    iterations
        Sweeps.
    bounds
        Proven: the optimal gain and the policy's (or only the policy's, if one was given) lie between these.
    """

    gain: float
    policy: np.ndarray
    bias: np.ndarray
    iterations: int
    bounds: tuple[float, float]

    @property
    def error_bound(self) -> float:
        """Half the width of ``bounds``."""
        return 0.5 * (self.bounds[1] - self.bounds[0])


def gain(mdp: FiniteMDP, *, policy: Any = None, tol: float = 1e-9, max_sweeps: int = 4_000_000) -> Gain:
    """The optimal average reward a step, or that of a policy.

    Parameters
    ----------
    mdp
        The model; the gain must be the same from every state.
    policy
        None for the optimum; else int ``[S]`` or probabilities ``[S, A]``.
    tol
        Width of the bounds to reach.
    max_sweeps
        RuntimeError if it takes more.

    Raises
    ------
    ValueError
        The gain is not the same from every state.

    Examples
    --------
    >>> from bamdp.mdp import FiniteMDP, gain
    >>> mdp = FiniteMDP([[[1, 0], [0.2, 0.8]], [[0, 1], [1, 0]]], rewards=[[0, 0], [1, 3]])
    >>> result = gain(mdp)
    >>> round(result.gain, 6), result.policy
    (1.333333, array([1, 1]))
    >>> round(gain(mdp, policy=[1, 0]).gain, 6)
    1.0
    """
    model = check_model(mdp)
    tol = check_tolerance(tol)
    _checks.integer(max_sweeps, "max_sweeps")
    if policy is not None:
        policy = check_policy(mdp, policy)
        model = chain_of(mdp, policy)
    values, sweeps = _iterate(model, tol, max_sweeps)
    q = q_table(model, 1.0, values)
    chosen = greedy(q, scale_of(model, values))
    under = q[np.arange(model.n_states), chosen] - values
    rho = rounding(model, values) + slack(model) * float(np.abs(values).max())
    low, high = float(under.min()) - rho, float((q.max(axis=1) - values).max()) + rho
    return Gain(0.5 * (low + high), chosen if policy is None else policy, values, sweeps, (low, high))


def _iterate(model: FiniteMDP, tol: float, max_sweeps: int) -> tuple[np.ndarray, int]:
    """(relative values, sweeps) with a spread of δ of at most ``tol``."""
    values = np.zeros(model.n_states)
    scratch = np.empty_like(values)
    policy = np.zeros(model.n_states, dtype=np.int64)
    anchored = bool(model.terminal.any())
    sweeps, last, constant = 0, np.inf, False
    while sweeps < max_sweeps:
        more = min(_CHUNK, max_sweeps - sweeps)
        done, low, high = relative_sweeps(
            model.rows, model.space, tol, anchored, more, values, scratch, policy
        )
        sweeps += done
        spread = high - low
        if spread <= max(tol, 4.0 * rounding(model, values)):
            return values, sweeps
        crossed = sweeps >= _CROSSING * model.n_states  # what one end has to say has come to the other
        stalled = done == _CHUNK and crossed and spread > last * (1.0 - _STALLED)
        if stalled and not constant:
            if end_components(model).max() > 0:
                raise _not_constant(model, values)
            constant = True  # it only mixes slowly
        if stalled and not anchored:
            found = chain_bias(chain_of(model, policy))  # a step of policy iteration, where it can be made
            values[:] = values if found is None else found
        last = spread
    raise RuntimeError(
        f"the gain is only known to lie in [{low:.6g}, {high:.6g}] after {sweeps} sweeps; "
        "raise max_sweeps or tol (the model mixes slowly)"
    )


@kernel
def relative_sweeps(
    rows: Rows,
    space: Space,
    tol: float,
    anchored: bool,
    max_sweeps: int,
    values: np.ndarray,
    scratch: np.ndarray,
    policy: np.ndarray,
) -> tuple[int, float, float]:
    """Half steps V ← V + δ/2 in place until max δ − min δ ≤ ``tol``; V(0) is kept at 0 unless ``anchored``.

    Returns the sweeps done and the last (min δ, max δ), those of ``values`` when it stopped early.
    """
    low, high = 0.0, 0.0
    for sweep in range(max_sweeps):
        low, high = improve(rows, space, 1.0, values, scratch, policy)
        if high - low <= tol:
            return sweep + 1, low, high
        base = 0.0 if anchored else 0.5 * (values[0] + scratch[0])
        for s in range(values.shape[0]):
            values[s] = 0.5 * (values[s] + scratch[s]) - base
    return max_sweeps, low, high


def _not_constant(model: FiniteMDP, values: np.ndarray) -> ValueError:
    delta = q_table(model, 1.0, values).max(axis=1) - values
    worst, best = int(np.argmin(delta)), int(np.argmax(delta))
    return ValueError(
        f"the gain is not the same from every state: about {delta[worst]:.6g} from state {worst}, "
        f"about {delta[best]:.6g} from state {best}; use total_reward with a start state and a horizon, "
        "or a discounted solver"
    )
