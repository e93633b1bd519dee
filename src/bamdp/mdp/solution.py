"""What a solver returns, and the proof that goes with it.

For any values V let δ(s) = max_a Q_V(s,a) − V(s), with Q_V(s,a) = r(s,a) + γ Σ p(s'|s,a) V(s'), and let δ_π
be the same with the policy's action in place of the best. V + h/(1−γ) with h = max δ is an upper bound of V*
(it can only fall under further optimality sweeps), V + min δ_π/(1−γ) a lower bound of V^π. Hence

    ‖V − V*‖ ≤ max|δ| / (1−γ)            (``error_bound``, from ``residual`` = max|δ|)
    V* − V^π ≤ (max δ − min δ_π) / (1−γ)    (``loss_bound``).

Terminal states stand among them with δ = 0. :func:`certify` evaluates this once for whatever values a solver
found, however it found them, and widens it for rounding (ρ, a multiple of the machine precision times the
largest |V| + |r|) and for rows that sum to 1 ± σ only: δ ± ρ, and γ(1 ± σ) in place of γ.

**Ties.** A greedy policy takes the lowest action whose value is within ``TIE`` = 1e-12 of the best, relative
to the largest |V| + |r|. Terminal states have value 0 and policy 0; masked actions have value −inf.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from bamdp import _checks
from bamdp._kernels.jit import kernel
from bamdp._kernels.rows import Rows, Space
from bamdp._kernels.sweeps import row_value
from bamdp.mdp.build import as_floats, merge
from bamdp.mdp.model import FiniteMDP
from bamdp.mdp.validate import entry_positions, used_rows

TIE = 1e-12


@dataclass(frozen=True, eq=False)
class Solution:
    """A policy and values, with bounds that hold whatever the solver did.

    Attributes
    ----------
    policy
        Actions, int ``[S]``; of :func:`evaluate_policy`, the policy that was given.
    values
        ``[S]``; 0 in terminal states.
    iterations
        Sweeps of value iteration, improvements of policy iteration, trials of RTDP.
    residual
        max|δ|, the Bellman residual of ``values`` (of :func:`evaluate_policy`: that policy's).
    error_bound
        Proven: no entry of ``values`` is further than this from the true value, V* (of
        :func:`evaluate_policy`: V^π).
    loss_bound
        Proven: V*(s) − V^π(s) is at most this in every state s.
    """

    policy: np.ndarray
    values: np.ndarray
    iterations: int
    residual: float
    error_bound: float
    loss_bound: float
    _model: tuple[FiniteMDP, float] = field(repr=False)

    @property
    def q_values(self) -> np.ndarray:
        """Q(s,a) for ``values``, ``[S, A]``: −inf for masked actions, 0 in terminal states."""
        return q_table(*self._model, self.values)


@kernel
def fill_q(rows: Rows, space: Space, discount: float, values: np.ndarray, mean: float, q: np.ndarray) -> None:
    """Q_V into ``q`` ``[S, A]``; ``mean`` is the average of ``values``."""
    n_states, n_actions = space.allowed.shape
    for s in range(n_states):
        for a in range(n_actions):
            if space.terminal[s]:
                q[s, a] = 0.0
            elif space.allowed[s, a]:
                row = s * n_actions + a
                q[s, a] = rows.reward[row] + discount * row_value(rows, row, values, mean)
            else:
                q[s, a] = -np.inf


def q_table(mdp: FiniteMDP, discount: float, values: np.ndarray) -> np.ndarray:
    """Q_V, ``[S, A]``."""
    q = np.empty((mdp.n_states, mdp.n_actions))
    fill_q(mdp.rows, mdp.space, discount, values, float(np.mean(values)), q)
    return q


def scale_of(mdp: FiniteMDP, values: np.ndarray) -> float:
    """The largest |V| plus the largest |r|: what rounding is relative to."""
    return float(np.abs(values).max() + np.abs(mdp.rows.reward).max())


def greedy(q: np.ndarray, scale: float, tie: float = TIE) -> np.ndarray:
    """The lowest action within ``tie * scale`` of the best, int64 ``[S]``."""
    near: np.ndarray = q >= q.max(axis=1, keepdims=True) - tie * scale
    return np.argmax(near, axis=1)


def rounding(mdp: FiniteMDP, values: np.ndarray) -> float:
    """ρ: a bound on the rounding error of one backup (sums of a row's products, and of the mean)."""
    longest = int(np.diff(mdp.rows.span, axis=1).max())
    terms = longest + 8 + np.log2(mdp.n_states)
    return float(np.finfo(float).eps * terms * scale_of(mdp, values))


def certify(mdp: FiniteMDP, discount: float, values: np.ndarray, iterations: int) -> Solution:
    """The solution with these values and their greedy policy, bounds as above."""
    q = q_table(mdp, discount, values)
    policy = greedy(q, scale_of(mdp, values))
    delta = q.max(axis=1) - values
    under = q[np.arange(mdp.n_states), policy] - values
    error = distance(mdp, discount, values, delta)
    rho, sigma = rounding(mdp, values), slack(mdp)
    upper = stretch(float(delta.max()) + rho, discount, sigma)
    lower = -stretch(-(float(under.min()) - rho), discount, sigma)
    residual = float(np.abs(delta).max())
    return Solution(policy, values, iterations, residual, error, upper - lower, (mdp, discount))


def distance(mdp: FiniteMDP, discount: float, values: np.ndarray, delta: np.ndarray) -> float:
    """How far ``values`` can be from the fixed point of the operator whose residual is ``delta``."""
    return stretch(float(np.abs(delta).max()) + rounding(mdp, values), discount, slack(mdp))


def stretch(h: float, discount: float, sigma: float) -> float:
    """h/(1−γ), from above: γ(1+σ) in place of γ if h > 0, γ(1−σ) otherwise."""
    gap = 1.0 - discount * (1.0 + sigma if h > 0.0 else 1.0 - sigma)
    return h / gap if gap > 0.0 else np.inf


def slack(mdp: FiniteMDP) -> float:
    """σ: how far the sum of a usable row is from 1 at most."""
    live = used_rows(mdp.space)
    if not live.any():
        return 0.0
    row, position = entry_positions(mdp.rows.span)
    sums = np.bincount(row, weights=mdp.rows.prob[position], minlength=live.size) + mdp.rows.background
    return float(np.abs(sums[live] - 1.0).max())


def check_policy(mdp: FiniteMDP, policy: Any) -> np.ndarray:
    """A policy as int64 ``[S]`` or float64 ``[S, A]``, valid for this model; terminal states are free."""
    given = np.asarray(policy)
    shape = (mdp.n_states, mdp.n_actions)
    live = ~mdp.terminal
    if given.shape == shape[:1] and given.dtype.kind in "iu":
        actions = np.where(live, given, 0).astype(np.int64)
        outside = (actions < 0) | (actions >= mdp.n_actions)
        if outside.any():
            s = int(np.argmax(outside))
            raise ValueError(
                f"policy takes action {given[s]} in state {s}; actions are 0..{mdp.n_actions - 1}"
            )
        wrong = live & ~mdp.action_mask[np.arange(mdp.n_states), actions]
        if wrong.any():
            s = int(np.argmax(wrong))
            raise ValueError(f"policy takes action {given[s]} in state {s}, where it is masked")
        return actions
    if given.shape != shape:
        raise ValueError(
            f"policy must be whole numbers [{shape[0]}] or probabilities {list(shape)}, "
            f"got {given.dtype} {list(given.shape)}"
        )
    probs = np.where(live[:, None], as_floats(given, "policy"), 0.0)
    wrong = live & ~(
        (np.isfinite(probs) & (probs >= 0.0)).all(axis=1) & (np.abs(probs.sum(axis=1) - 1.0) <= 1e-8)
    )
    if wrong.any():
        s = int(np.argmax(wrong))
        raise ValueError(f"policy in state {s} must be probabilities that sum to 1, got {given[s]}")
    masked = live & ((probs > 0.0) & ~mdp.action_mask).any(axis=1)
    if masked.any():
        raise ValueError(f"policy takes a masked action in state {int(np.argmax(masked))}")
    return probs / np.where(live, probs.sum(axis=1), 1.0)[:, None]


def chain_of(mdp: FiniteMDP, policy: np.ndarray) -> FiniteMDP:
    """The Markov reward process under a policy, as a model with one action.

    A deterministic policy shares the entries of ``mdp``; a stochastic one mixes rows, O(entries).
    """
    n_states, n_actions = mdp.n_states, mdp.n_actions
    rows = mdp.rows
    space = Space(mdp.space.terminal, np.ones((n_states, 1), dtype=np.bool_))
    if policy.ndim == 1:
        pick = np.arange(n_states) * n_actions + policy
        chosen = Rows(rows.span[pick], rows.index, rows.prob, rows.background[pick], rows.reward[pick])
        return FiniteMDP.from_rows(chosen, space)
    weight = policy.ravel()
    row, position = entry_positions(rows.span)
    state, index, prob = merge(
        row // n_actions, rows.index[position].astype(np.int64), rows.prob[position] * weight[row], n_states
    )
    ends = np.cumsum(np.bincount(state, minlength=n_states))
    span = np.stack([np.concatenate([[0], ends[:-1]]), ends], axis=1)
    background = (rows.background * weight).reshape(n_states, n_actions).sum(axis=1)
    reward = (rows.reward * weight).reshape(n_states, n_actions).sum(axis=1)
    return FiniteMDP.from_rows(Rows(span, index.astype(np.int32), prob, background, reward), space)


def start_values(mdp: FiniteMDP, initial: Any) -> np.ndarray:
    """Initial values ``[S]`` for a solver: 0, or the caller's, with 0 in terminal states."""
    if initial is None:
        return np.zeros(mdp.n_states)
    values = as_floats(initial, "initial")
    if values.ndim == 0:
        values = np.full(mdp.n_states, float(values))
    if values.shape != (mdp.n_states,) or not np.isfinite(values).all():
        raise ValueError(f"initial must be finite values [{mdp.n_states}], got shape {list(values.shape)}")
    return np.where(mdp.terminal, 0.0, values)


def check_model(mdp: Any) -> FiniteMDP:
    """Refuse what is no model with a word on how to make one."""
    if not isinstance(mdp, FiniteMDP):
        raise TypeError(
            f"expected a FiniteMDP, got {type(mdp).__name__}; build one with FiniteMDP(P, rewards)"
        )
    return mdp


def check_tolerance(tol: Any) -> float:
    """A tolerance above 0."""
    return _checks.real(tol, "tol", low=0.0, open_low=True)
