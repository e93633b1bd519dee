"""Random models whose rows are drawn from either prior: worlds for which a prior is exactly right."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from bamdp import _checks
from bamdp.envs.environment import Environment
from bamdp.mdp.model import FiniteMDP

if TYPE_CHECKING:
    from scipy import sparse

ROW_BYTES, ENTRY_BYTES = 1200, 150  # about what a row takes while the model is made, and each of its outcomes
LARGEST_LOGARITHM = 700.0  # beyond, exp overflows


def random_mdp(
    n_states: int = 10,
    n_actions: int = 2,
    prior: Literal["sparse", "flat"] = "sparse",
    alpha: float = 0.2,
    beta: float = 2.0,
    model_seed: int = 0,
) -> Environment:
    """A model drawn from a prior, so that an agent with this prior is the best that there can be on average.

    Description
    -----------
    Each row of the model is an independent draw from the sparse or the flat prior. The model depends on
    ``model_seed`` alone, and runs on it on the seed given to `reset`.

    States
    ------
    0 .. ``n_states`` - 1.

    Actions
    -------
    0 .. ``n_actions`` - 1.

    Transitions
    -----------
    ``prior="flat"``: a row is a draw of Dirichlet(``alpha``, ..., ``alpha``) over all states.
    ``prior="sparse"``: a row has k possible outcomes with P(k) ∝ k^-``beta``, k = 1 .. ``n_states``; which
    ones is uniform among the sets of that size, and their probabilities are Dirichlet(``alpha``). Nothing
    keeps all states within reach.

    Rewards
    -------
    R(s, a), uniform on [0, 1] and known.

    Start
    -----
    State 0. The world never ends.

    Reference
    ---------
    N. Friedman, Y. Singer (1999), Efficient Bayesian parameter estimation in large discrete domains, NIPS.

    Parameters
    ----------
    n_states, n_actions : int, default 10 and 2
        The size of the model.
    prior : {"sparse", "flat"}, default "sparse"
        Where the rows come from.
    alpha : float, default 0.2
        The Dirichlet's parameter for each outcome.
    beta : float, default 2.0
        How strongly the sparse prior expects few outcomes; the flat one does not use it.
    model_seed : int, default 0
        Which model.

    Examples
    --------
    >>> env = random_mdp(n_states=4, model_seed=3)
    >>> env.mdp.row(0, 0)
    (array([1]), array([1.]))
    """
    rows = RandomRows(n_states, n_actions, prior, alpha, beta)
    model_seed = _checks.integer(model_seed, "model_seed", low=0)
    rng = np.random.default_rng(model_seed)
    mdp = FiniteMDP(rows(rng), rng.random((n_states, n_actions)))
    parameters = {**rows.parameters, "model_seed": model_seed}
    return Environment("random_mdp", mdp, horizon=1000, time_limit=1.0, parameters=parameters)


class RandomRows:
    """Draws the transitions of a random model, from the parameters of `random_mdp`, which it checks."""

    def __init__(self, n_states: int, n_actions: int, prior: str, alpha: float, beta: float) -> None:
        n_states = _checks.integer(n_states, "n_states")
        n_actions = _checks.integer(n_actions, "n_actions")
        _checks.one_of(prior, "prior of random_mdp", ("sparse", "flat"))
        alpha = _checks.real(alpha, "alpha", low=0.0, open_low=True)
        beta = _checks.real(beta, "beta")
        what = f"a random model of {n_states} states and {n_actions} actions"
        _checks.memory(ROW_BYTES * n_states * n_actions, what)
        outcomes = float(n_states) if prior == "flat" else _mean_size(n_states, beta)
        _checks.memory((ROW_BYTES + ENTRY_BYTES * outcomes) * n_states * n_actions, what)
        self.parameters = {
            "n_states": n_states,
            "n_actions": n_actions,
            "prior": prior,
            "alpha": alpha,
            "beta": beta,
        }
        self._drawn = (n_states, n_actions, alpha, beta if prior == "sparse" else None)

    def __call__(self, rng: np.random.Generator) -> list[sparse.csr_matrix]:
        """Draw the matrices of all actions."""
        return _rows(rng, *self._drawn)


def _size_probabilities(n_states: int, beta: float) -> NDArray[np.float64]:
    """The probabilities of rows with 1, 2, ... possible outcomes, under the sparse prior."""
    logarithms = -beta * np.log(np.arange(1, n_states + 1))
    if logarithms[-1] > LARGEST_LOGARITHM:  # for a strongly negative beta
        logarithms -= logarithms[-1]
    weights = np.exp(logarithms)
    return np.asarray(weights / weights.sum(), float)


def _mean_size(n_states: int, beta: float) -> float:
    return float(_size_probabilities(n_states, beta) @ np.arange(1, n_states + 1))


def _rows(
    rng: np.random.Generator, n_states: int, n_actions: int, alpha: float, beta: float | None
) -> list[sparse.csr_matrix]:
    """The matrices of all actions; ``beta`` None for the flat prior."""
    from scipy import sparse

    if beta is None:
        sizes = np.full((n_states, n_actions), n_states)
    else:
        sizes = 1 + rng.choice(n_states, size=(n_states, n_actions), p=_size_probabilities(n_states, beta))
    entries: list[tuple[list[NDArray], list[NDArray], list[NDArray]]] = [
        ([], [], []) for _ in range(n_actions)
    ]
    for s in range(n_states):
        for a in range(n_actions):
            k = int(sizes[s, a])
            chance, source, target = entries[a]
            chance.append(rng.dirichlet(np.full(k, alpha)))
            source.append(np.full(k, s))
            target.append(np.sort(rng.choice(n_states, size=k, replace=False)))
    return [
        sparse.csr_matrix(
            (np.concatenate(p), (np.concatenate(i), np.concatenate(j))), shape=(n_states, n_states)
        )
        for p, i, j in entries
    ]
