"""Families of environments: distributions over models, for which a prior can be right or wrong.

A single environment is a poor test of a Bayesian agent, because its prior is neither right nor wrong. In a family,
`reset` draws a new model for every run, and on average no agent outperforms the Bayes-optimal agent whose prior is the
family's distribution (``env.law``, on the command line ``--prior law``). Agents with the same seed face the same
models.

The generalised chain, the generalised double loop and the random grid follow Castronovo et al. (2016): they keep the
rewards and the possible transitions of a classic problem, and the probabilities of the possible next states of each
state-action pair have a Dirichlet(1, ..., 1) distribution. The rows of random models come from the flat or the sparse
prior of this library; `random_mdp` is a single such model.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from bamdp import _checks
from bamdp.beliefs.transitions.dirichlet import Dirichlet
from bamdp.beliefs.transitions.sparse import SparseDirichlet
from bamdp.envs.classic import double_loop_layout
from bamdp.envs.environment import Environment
from bamdp.envs.grids import cell_neighbours
from bamdp.envs.picture import Layout, Mark, grid_layout, row_layout
from bamdp.envs.registry import Count, ModelSeed, OptionalNumber, Positive, Real, Size, environment
from bamdp.mdp.model import FiniteMDP

if TYPE_CHECKING:
    from scipy import sparse

    from bamdp.beliefs.base import Prior

FAMILY_HORIZON = 250  # steps per run in the benchmark
ROW_BYTES, ENTRY_BYTES = 1200, 150  # approximate memory per row, and per outcome, while building the model


DrawRows = Callable[[np.random.Generator], Any]


def _family(
    draw_rows: DrawRows, rewards: NDArray[Any], law: Prior, world: int | None, layout: Layout | None = None
) -> Environment:
    """Return an environment with a new model in every run, or with model number ``world`` of the family."""
    seed = np.random.SeedSequence(0, spawn_key=(world or 0,))
    mdp = FiniteMDP(draw_rows(np.random.default_rng(seed)), rewards)
    draw = partial(_model_at, draw_rows, rewards) if world is None else None
    return Environment("family", mdp, horizon=FAMILY_HORIZON, layout=layout, law=law, draw_model=draw)


def _model_at(draw_rows: DrawRows, rewards: NDArray[Any], u: float) -> FiniteMDP:
    return FiniteMDP(draw_rows(np.random.default_rng(int(u * 2**53))), rewards)


@environment
def family_gc(world: OptionalNumber = None) -> Environment:
    """The generalised chain: every action moves forward or back with random probabilities.

    Description
    -----------
    A chain of five states with three actions. Each action moves forward or back to the start, with a probability that
    differs between states, actions and runs. Going back earns a small reward and arriving at the end a large one, so
    in every state the agent must find an action that rarely slips.

    States
    ------
    0 to 4, along the chain.

    Actions
    -------
    0, 1, 2.

    Transitions
    -----------
    From s to min(s + 1, 4) or to 0; for every state-action pair, the probabilities have a Dirichlet(1, 1) distribution,
    that is, a uniform one.

    Rewards
    -------
    R(s, a, s'): 2 for entering state 0, 10 for entering state 4.

    Start
    -----
    State 0. The task is continuing; the benchmark runs it for 250 steps and measures the return with discount factor
    0.95.

    Reference
    ---------
    M. Castronovo, D. Ernst, A. Couëtoux, R. Fonteneau (2016), Benchmarking for Bayesian reinforcement learning, PLoS
    ONE 11(6): the GC distribution, with the counts and rewards of the accompanying program.

    Parameters
    ----------
    world : int, optional
        Number of a fixed model of the family; by default every run draws a new model.

    Examples
    --------
    >>> env = family_gc()
    >>> [env.reset(seed=seed) or env.mdp.row(3, 0)[1].round(2).tolist() for seed in (1, 2)]
    [[0.38, 0.62], [0.34, 0.66]]
    """
    counts = np.zeros((5, 3, 5))
    counts[:, :, 0] = 1.0
    counts[np.arange(5), :, np.minimum(np.arange(5) + 1, 4)] = 1.0
    rewards = np.zeros((5, 3, 5))
    rewards[:, :, 0], rewards[:, :, 4] = 2.0, 10.0
    return _family(partial(_dirichlet_rows, counts), rewards, Dirichlet(alpha=counts), world, row_layout(5))


@environment
def family_gdl(world: OptionalNumber = None) -> Environment:
    """The generalised double loop: a reliable loop with a low reward, and an unreliable one with a high reward.

    Description
    -----------
    Two loops of five states share the first state. Once entered, the reliable loop always leads to its end, which pays
    a small reward. The other loop pays twice as much, but every action may also lead back to the shared state without a
    reward.

    States
    ------
    0 is shared; 1 to 4 form the reliable loop, 5 to 8 the loop with the high reward.

    Actions
    -------
    0, 1.

    Transitions
    -----------
    From 0 to 1 or 5; from 5, 6 and 7 to the next state or back to 0. For every state-action pair, the probabilities
    have a Dirichlet(1, 1) distribution. States 1, 2 and 3 lead to the next state and 4 and 8 to 0, with certainty.

    Rewards
    -------
    R(s, a): 1 for any action in state 4, 2 for any action in state 8.

    Start
    -----
    State 0. The task is continuing; the benchmark runs it for 250 steps and measures the return with discount factor
    0.95.

    Reference
    ---------
    M. Castronovo, D. Ernst, A. Couëtoux, R. Fonteneau (2016), Benchmarking for Bayesian reinforcement learning, PLoS
    ONE 11(6): the GDL distribution, with the counts and rewards of the accompanying program.

    Parameters
    ----------
    world : int, optional
        Number of a fixed model of the family; by default every run draws a new model.

    Examples
    --------
    >>> family_gdl(world=3).mdp.row(0, 1)
    (array([1, 5]), array([0.9479809, 0.0520191]))
    """
    counts = np.zeros((9, 2, 9))
    counts[[0, 0, 1, 2, 3, 4, 8], :, [1, 5, 2, 3, 4, 0, 0]] = 1.0
    counts[[5, 6, 7], :, 0] = 1.0
    counts[[5, 6, 7], :, [6, 7, 8]] = 1.0
    rewards = np.zeros((9, 2))
    rewards[4], rewards[8] = 1.0, 2.0
    return _family(
        partial(_dirichlet_rows, counts), rewards, Dirichlet(alpha=counts), world, double_loop_layout()
    )


@environment
def family_grid(size: Size = 5, world: OptionalNumber = None) -> Environment:
    """A grid in which moves fail with random probabilities.

    Description
    -----------
    The agent travels from one corner to the opposite one, where it receives a reward and returns to the start. The
    failure probability of a move differs between cells, directions and runs, so the agent must find a path around
    unreliable cells.

    States
    ------
    The cells, s = y * ``size`` + x. The goal's cell, the last one, is never observed: entering it leads to the start.

    Actions
    -------
    0 left, 1 right, 2 up, 3 down.

    Transitions
    -----------
    The agent moves to the neighbour in the chosen direction or stays; for every cell and direction, the probabilities
    have a Dirichlet(1, 1) distribution. A move off the grid stays with certainty. Entering the goal leads to the start.

    Rewards
    -------
    R(s, a, s'): 10 for entering the goal.

    Start
    -----
    State 0. The task is continuing; the benchmark runs it for 250 steps and measures the return with discount factor
    0.95.

    Reference
    ---------
    M. Castronovo, D. Ernst, A. Couëtoux, R. Fonteneau (2016), Benchmarking for Bayesian reinforcement learning, PLoS
    ONE 11(6): the Grid distribution, with the counts and rewards of the accompanying program, for ``size`` 5.

    Parameters
    ----------
    size : int, default 5
        Number of rows and columns, at least 2.
    world : int, optional
        Number of a fixed model of the family; by default every run draws a new model.

    Examples
    --------
    >>> family_grid(world=0).mdp.row(23, 1)[0]
    array([ 0, 23])
    """
    n = size * size
    _checks.memory(2 * 8 * 4 * n**2, f"a family of grids of {size} by {size} cells")
    cells = np.stack(np.divmod(np.arange(n), size)[::-1], axis=1)
    ahead = cell_neighbours(cells)[:, [3, 1, 0, 2]]  # left, right, up, down
    s, a = np.arange(n)[:, None], np.arange(4)
    enters = (ahead == n - 1) & (s != n - 1)
    counts, rewards = np.zeros((n, 4, n)), np.zeros((n, 4, n))
    counts[s, a, s] = counts[s, a, np.where(enters, 0, ahead)] = 1.0
    rewards[:, :, 0] = 10.0 * enters
    layout = grid_layout(size, size, cells, marks=(Mark("start", 0, 0), Mark("goal", size - 1, size - 1)))
    return _family(partial(_dirichlet_rows, counts), rewards, Dirichlet(alpha=counts), world, layout)


@environment
def random_mdp(
    n_states: Count = 10,
    n_actions: Count = 2,
    prior: Literal["sparse", "flat"] = "sparse",
    alpha: Positive = 0.2,
    beta: Real = 2.0,
    model_seed: ModelSeed = 0,
) -> Environment:
    """A single model drawn from a prior.

    Description
    -----------
    Each row of the model is an independent draw from the sparse or the flat prior, which is therefore the correct prior
    for an agent. The model depends only on ``model_seed``; its runs depend on the seed passed to `reset`.

    States
    ------
    0 .. ``n_states`` - 1.

    Actions
    -------
    0 .. ``n_actions`` - 1.

    Transitions
    -----------
    With ``prior="flat"``, a row is a draw from Dirichlet(``alpha``, ..., ``alpha``) over all states. With
    ``prior="sparse"``, a row has k possible outcomes with P(k) ∝ k^-``beta``, k = 1 .. ``n_states``; the set of
    outcomes is uniform among those of size k, and their probabilities are Dirichlet(``alpha``, ..., ``alpha``). Some
    states may be unreachable.

    Rewards
    -------
    R(s, a), uniform on [0, 1] and known.

    Start
    -----
    State 0. The task is continuing.

    Reference
    ---------
    N. Friedman, Y. Singer (1999), Efficient Bayesian parameter estimation in large discrete domains, NIPS.

    Parameters
    ----------
    n_states, n_actions : int, default 10 and 2
        Size of the model.
    prior : {"sparse", "flat"}, default "sparse"
        The prior from which rows are drawn.
    alpha : float, default 0.2
        Dirichlet parameter of each outcome.
    beta : float, default 2.0
        How strongly the sparse prior favours few outcomes; unused by the flat prior.
    model_seed : int, default 0
        Seed that determines the model.

    Examples
    --------
    >>> env = random_mdp(n_states=4, model_seed=3)
    >>> env.mdp.row(0, 0)
    (array([1]), array([1.]))
    """
    draw_rows, rng = _random_rows(n_states, n_actions, prior, alpha, beta), np.random.default_rng(model_seed)
    return Environment("random_mdp", FiniteMDP(draw_rows(rng), rng.random((n_states, n_actions))))


def _random_rows(n_states: int, n_actions: int, prior: str, alpha: float, beta: float) -> DrawRows:
    """Return a function that draws the transitions of a random model; raise an error if they would not fit."""
    what, n_rows = f"a random model of {n_states} states and {n_actions} actions", n_states * n_actions
    _checks.memory(ROW_BYTES * n_rows, what)
    chances, outcomes = None, float(n_states)
    if prior == "sparse":
        sizes = np.arange(1, n_states + 1)
        logarithms = -beta * np.log(sizes)
        weights = np.exp(logarithms - logarithms.max())
        chances = weights / weights.sum()
        outcomes = float(chances @ sizes)
    _checks.memory((ROW_BYTES + ENTRY_BYTES * outcomes) * n_rows, what)
    return partial(_draw_rows, n_states, n_rows, chances, alpha)


def _draw_rows(
    n_states: int, n_rows: int, size_chances: Any, alpha: float, rng: np.random.Generator
) -> sparse.csr_matrix:
    """Draw rows [n_rows, S]; without probabilities of 1, 2, ... possible outcomes, all states are possible."""
    from scipy import sparse

    sizes = np.full(n_rows, n_states)
    if size_chances is not None:
        sizes = 1 + rng.choice(n_states, size=n_rows, p=size_chances)
    chances, targets = [], []
    for size in sizes.tolist():
        chances.append(rng.dirichlet(np.full(size, alpha)))
        targets.append(np.sort(rng.choice(n_states, size=size, replace=False)))
    begins = np.concatenate([[0], np.cumsum(sizes)])
    entries = np.concatenate(chances), np.concatenate(targets), begins
    return sparse.csr_matrix(entries, shape=(n_rows, n_states))


@environment
def family_random(
    n_states: Count = 10,
    n_actions: Count = 2,
    prior: Literal["sparse", "flat"] = "sparse",
    alpha: Positive = 0.2,
    beta: Real = 2.0,
    world: OptionalNumber = None,
) -> Environment:
    """Random models from the sparse or the flat prior, a new one in every run; see `random_mdp`.

    Description
    -----------
    Each row of the model is an independent draw from the sparse or the flat prior, which is the correct prior for an
    agent.

    States
    ------
    0 .. ``n_states`` - 1.

    Actions
    -------
    0 .. ``n_actions`` - 1.

    Transitions
    -----------
    As in `random_mdp`.

    Rewards
    -------
    R(s, a), uniform on [0, 1], the same in all models of the family, and known.

    Start
    -----
    State 0. The task is continuing.

    Reference
    ---------
    N. Friedman, Y. Singer (1999), Efficient Bayesian parameter estimation in large discrete domains, NIPS.

    Parameters
    ----------
    n_states, n_actions, prior, alpha, beta
        As in `random_mdp`.
    world : int, optional
        Number of a fixed model of the family; by default every run draws a new model.

    Examples
    --------
    >>> env = family_random(n_states=4)
    >>> [env.reset(seed=seed) or env.mdp.row(0, 0)[0].tolist() for seed in (1, 2, 3)]
    [[0, 2, 3], [2], [1]]
    """
    draw_rows = _random_rows(n_states, n_actions, prior, alpha, beta)
    rewards = np.random.default_rng(0).random((n_states, n_actions))
    law = Dirichlet(alpha=alpha) if prior == "flat" else SparseDirichlet(alpha=alpha, beta=beta)
    return _family(draw_rows, rewards, law, world)


def _dirichlet_rows(counts: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.float64]:
    """Draw Dirichlet rows with the given counts; 0 marks impossible outcomes."""
    weights = rng.standard_gamma(counts)
    return np.asarray(weights / weights.sum(axis=2, keepdims=True), float)
