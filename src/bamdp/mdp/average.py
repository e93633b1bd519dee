"""Relative value iteration for the optimal average reward per step, with proven bounds.

For any V let δ(s) = max_a [r(s,a) + Σ p(s'|s,a) V(s')] − V(s). Since the optimal total over n steps is monotone in
the terminal values, V + n min δ ≤ Tⁿ V ≤ V + n max δ, so that (Odoni 1969)

    min δ  ≤  g(s)  ≤  max δ     for the optimal gain g(s) from every state s,

and likewise for a policy, with its own action in place of the best. The iteration is V ← V + δ/2, followed by
subtraction of V(0). The half step is the aperiodicity transformation (Schweitzer 1971), without which periodic chains
would cycle. The iteration stops when max δ − min δ ≤ tol or rounding dominates. One more sweep then gives the bounds,
which are widened for rounding and for rows that do not sum exactly to 1.

Terminal states are treated as absorbing, without reward. If the gain depends on the state (a multichain model, or a
terminal state that is not worth reaching), δ tends to g(s) and its spread does not vanish; an error then names two such
states. A slowly mixing model can look similar for a while, but can be identified by its end components: if there is
only one, V is replaced by the values of the current policy (a step of policy iteration) and the sweeps continue.

**End components.** An end component is a set of states, with one or more actions each, that is closed and strongly
connected under these actions. Under any policy, a run eventually stays in one of them with probability 1 (de Alfaro
1997). If there is only one maximal end component, the model is weakly communicating and its optimal gain is the same
from every state.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bamdp import _checks
from bamdp.mdp.build import row_entries, used_rows
from bamdp.mdp.model import FiniteMDP
from bamdp.mdp.solvers import (
    DIRECT_STATES,
    chain_of,
    check_model,
    check_policy,
    check_tolerance,
    greedy_actions,
    q_function,
    relative_sweeps,
    rounding_error,
    row_sum_error,
    value_scale,
)

_SWEEPS_PER_CHECK = 4096
_CROSSING = 8  # sweeps per state after which values have propagated along the longest path
_STALLED = 1e-9  # a smaller relative decrease in the spread between two checks counts as none


@dataclass(frozen=True, eq=False)
class Gain:
    """The average reward per step of a model or a policy.

    Attributes
    ----------
    gain
        The midpoint of ``bounds``.
    policy
        A policy with this gain, int ``[S]``, or the evaluated policy.
    bias
        Relative values ``[S]``: g + h(s) = max_a [r(s,a) + Σ p(s'|s,a) h(s')], with h(0) = 0 (h = 0 in
        terminal states, if there are any).
    iterations
        The number of sweeps.
    bounds
        Proven bounds on both the optimal gain and the policy's gain (only the latter if a policy was passed).
    """

    gain: float
    policy: np.ndarray
    bias: np.ndarray
    iterations: int
    bounds: tuple[float, float]

    def __repr__(self) -> str:
        return (
            f"Gain: {self.gain:.6g} per step, error at most {self.error_bound:.2g}, {self.iterations} sweeps"
        )

    @property
    def error_bound(self) -> float:
        """Half the width of ``bounds``."""
        return 0.5 * (self.bounds[1] - self.bounds[0])


def gain(mdp: FiniteMDP, *, policy: Any = None, tol: float = 1e-9, max_sweeps: int = 4_000_000) -> Gain:
    """Compute the average reward per step of an optimal or given policy.

    Parameters
    ----------
    mdp
        The model; the gain must be the same from every state.
    policy
        None for the optimum; otherwise int ``[S]`` or probabilities ``[S, A]``.
    tol
        The required width of the bounds.
    max_sweeps
        The maximum number of sweeps.

    Returns
    -------
    Gain
        The gain with proven bounds.

    Raises
    ------
    ValueError
        The gain depends on the state.
    RuntimeError
        ``max_sweeps`` sweeps were not enough.

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
    q = q_function(model, 1.0)(values)
    greedy = greedy_actions(q, value_scale(model, values))
    policy_delta = q[np.arange(model.n_states), greedy] - values
    rho = rounding_error(model, values) + row_sum_error(model) * float(np.abs(values).max())
    low, high = float(policy_delta.min()) - rho, float((q.max(axis=1) - values).max()) + rho
    return Gain(0.5 * (low + high), greedy if policy is None else policy, values, sweeps, (low, high))


def _iterate(model: FiniteMDP, tol: float, max_sweeps: int) -> tuple[np.ndarray, int]:
    """Return (relative values, number of sweeps) with a spread of δ of at most ``tol``."""
    values = np.zeros(model.n_states)
    anchored = bool(model.terminal.any())
    sweeps, last_spread, one_component = 0, np.inf, False
    while sweeps < max_sweeps:
        chunk = min(_SWEEPS_PER_CHECK, max_sweeps - sweeps)
        done, low, high = relative_sweeps(model, values, chunk, tol=tol, step=0.5, anchored=anchored)
        sweeps += done
        spread = high - low
        if spread <= max(tol, 4.0 * rounding_error(model, values)):
            return values, sweeps

        # Has the spread stalled although every state has had time to influence every other?
        crossed = sweeps >= _CROSSING * model.n_states
        stalled = done == _SWEEPS_PER_CHECK and crossed and spread > last_spread * (1.0 - _STALLED)
        if stalled and not one_component:
            if end_components(model).max() > 0:
                raise _not_constant(model, values)
            one_component = True  # the model mixes slowly
        if stalled and not anchored:
            policy = q_function(model, 1.0)(values).argmax(axis=1)
            bias = chain_bias(chain_of(model, policy))  # a step of policy iteration, if possible
            values[:] = values if bias is None else bias
        last_spread = spread
    raise RuntimeError(
        f"the gain is only known to lie in [{low:.6g}, {high:.6g}] after {sweeps} sweeps; "
        "raise max_sweeps or tol (the model mixes slowly)"
    )


def _not_constant(model: FiniteMDP, values: np.ndarray) -> ValueError:
    """Return an error about a state-dependent gain that names the states with the lowest and highest gain."""
    delta = q_function(model, 1.0)(values).max(axis=1) - values
    worst, best = int(np.argmin(delta)), int(np.argmax(delta))
    return ValueError(
        f"the gain is not the same from every state: about {delta[worst]:.6g} from state {worst}, "
        f"about {delta[best]:.6g} from state {best}; use total_reward with a start state and a horizon, "
        "or a discounted solver"
    )


def chain_bias(chain: FiniteMDP) -> NDArray[np.float64] | None:
    """Compute the relative values h of a one-action model, with h + g = r + P h and h(0) = 0.

    In the linear system, the unknown gain g replaces h(0).

    Returns
    -------
    array or None
        h, ``[S]``; None if the chain is too large or has several closed classes, so that the system is singular.
    """
    if chain.n_states > DIRECT_STATES or end_components(chain).max() > 0:
        return None
    matrix = np.eye(chain.n_states) - chain.dense()[:, 0, :]
    matrix[:, 0] = 1.0
    try:
        values = np.linalg.solve(matrix, chain.rows.reward)
    except np.linalg.LinAlgError:  # singular
        return None
    values[0] = 0.0
    return values if np.isfinite(values).all() else None


def end_components(mdp: FiniteMDP) -> NDArray[np.int64]:
    """Return the index of each state's maximal end component, ``[S]``; -1 for states outside all components.

    Each terminal state is a separate end component.

    Examples
    --------
    >>> mdp = FiniteMDP([[[0, 0.5, 0.5]], [[0, 1, 0]], [[0, 0, 1]]], rewards=[0, 1, 2])
    >>> end_components(mdp)
    array([-1,  0,  1])
    """
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    n, n_actions = mdp.n_states, mdp.n_actions
    row, state, prob = row_entries(mdp.rows)
    row, state = row[prob > 0.0], state[prob > 0.0]
    source = np.arange(n * n_actions) // n_actions
    # Rows with a background lead to a hub (node n), which leads to all states.
    spread = np.flatnonzero(mdp.rows.background > 0.0)
    kept = used_rows(mdp.space)
    while True:
        # Compute strongly connected components of the graph of all remaining rows ...
        here, to_hub = kept[row], source[spread[kept[spread]]]
        begin = np.concatenate([source[row[here]], to_hub, np.full(n, n)])
        end = np.concatenate([state[here], np.full(len(to_hub), n), np.arange(n)])
        graph = csr_array((np.ones(len(begin), np.int8), (begin, end)), shape=(n + 1, n + 1))
        component = connected_components(graph, connection="strong")[1][:n]
        # ... and remove rows that can leave their component, until there are none.
        leaving = np.zeros_like(kept)
        leaving[row[component[source[row]] != component[state]]] = True
        leaving[spread] |= bool((component != component[0]).any())
        if not (kept & leaving).any():
            break
        kept = kept & ~leaving
    stays = kept.reshape(n, n_actions).any(axis=1) | mdp.terminal
    numbers = np.full(n, -1, np.int64)
    numbers[stays] = np.unique(component[stays], return_inverse=True)[1]
    return numbers
