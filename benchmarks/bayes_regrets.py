"""Measure what planners lose against the Bayes-optimal policy where exploring pays: discounts of 0.9 and more.

    python benchmarks/bayes_regrets.py                     # a quarter of an hour: docs/data/bayes-regrets.csv
    python benchmarks/bayes_regrets.py --only thompson     # these planners again, the other rows as they are
    python benchmarks/bayes_regrets.py --table             # the table of the theory page, from the data

In these worlds a history matters only through how often each of two coins has come up, so histories merge and the
infinite horizon can be solved exactly: by backward induction over counts, from beliefs with ``depth`` observations,
which are valued by their mean model. How little that leaves out is told by the same computation with fewer observations
(``truncation``).

A planner's loss is E Σ_t γ^t [V*(ω_t) − Q*(ω_t, a_t)] over its own hyper-states ω_t, in worlds that are drawn from the
prior, until γ^t is below 1/1000. Once there are ``depth`` observations the coins have their posterior means for ever,
as the exact values suppose; the planner is not told, and goes on learning. Everything is seeded.
"""

from __future__ import annotations

import argparse
import csv
import itertools
import math
import time
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import bamdp
from bamdp.registry import make_planner

ROOT = Path(__file__).resolve().parent.parent
DATA = ROOT / "docs" / "data" / "bayes-regrets.csv"
REFERENCE = ("adaptive-dss", "dss-pi 4,4", "bamcp 1000, c = 3", "thompson", "bayes-greedy", "random")
LEAST = 0.01  # mean loss of the other rows of the table
RUNS, SEED, NEGLIGIBLE = 150, 0, 1e-3
FIELDS = ("world", "discount", "planner", "runs", "loss", "se", "share", "value", "truncation", "ms")
Outcome = tuple[int, float]  # next state, reward


@dataclass(frozen=True)
class Coin:
    """A pair of state and action whose outcome is drawn by a coin of unknown bias, uniform before data."""

    number: int
    heads: Outcome
    tails: Outcome


Row = Coin | Outcome  # a coin, or what happens for certain


@dataclass(frozen=True)
class CoinWorld:
    """A world of a few states, some of whose rows are coins."""

    rows: tuple[tuple[Row, ...], ...]  # [S][A]
    depth: int  # observations up to which beliefs are solved
    bandit: bool = False  # rewards are learned, of one state

    @property
    def n_coins(self) -> int:
        """How many coins there are."""
        return 1 + max(row.number for state in self.rows for row in state if isinstance(row, Coin))

    def agent(self, planner: bamdp.Planner, discount: float, seed: Any) -> bamdp.Agent:
        """Make an agent whose prior is the law of the world."""
        S, A = len(self.rows), len(self.rows[0])
        if self.bandit:
            known: dict[str, Any] = {"prior": bamdp.Dirichlet(), "rewards": bamdp.BetaBernoulli()}
        else:
            counts, rewards = np.zeros((S, A, S)), np.zeros((S, A, S))
            for s, a in itertools.product(range(S), range(A)):
                row = self.rows[s][a]
                for s2, r in (row.heads, row.tails) if isinstance(row, Coin) else (row,):
                    counts[s, a, s2], rewards[s, a, s2] = 1.0, r
            known = {"prior": bamdp.Dirichlet(alpha=counts), "rewards": rewards}
        return bamdp.Agent(planner, n_states=S, n_actions=A, discount=discount, seed=seed, **known)


def _chain(n: int, first_coin: int) -> CoinWorld:
    """A chain: action 0 goes back and pays 0.2; action 1 leads on or back, and pays 1 at the end."""
    states: list[tuple[Row, ...]] = []
    for s in range(n):
        on, last = min(s + 1, n - 1), s == n - 1
        number = {0: 0, n - 1: 1}.get(s)
        forward = (on, float(last)) if number is None else Coin(number, (on, float(last)), (0, 0.0))
        states.append(((0, 0.2), forward))
    return CoinWorld(tuple(states), first_coin)


ARMS = CoinWorld(((Coin(0, (0, 1.0), (0, 0.0)), Coin(1, (0, 1.0), (0, 0.0))),), 60, bandit=True)
WORLDS: dict[str, tuple[CoinWorld, float]] = {
    "two arms": (ARMS, 0.9),
    "two arms, far-sighted": (ARMS, 0.95),
    "chain of 2": (_chain(2, 44), 0.9),
    "chain of 3": (_chain(3, 40), 0.95),
}
PLANNERS = {
    "bayes-greedy": "bayes-greedy",
    "thompson": "thompson",
    "dss-pi 4,4": "dss-pi:n_policies=4,n_samples=4,n_steps=20",
    "dss-pi 16,64": "dss-pi:n_policies=16,n_samples=64,n_steps=20",
    "dss-pi 16,64, mean leaf": "dss-pi:n_policies=16,n_samples=64,n_steps=10,leaf=mean",
    "dss-pi 6,6, two stages": "dss-pi:n_policies=6,n_samples=6,n_steps=10,n_stages=2",
    "dss-rtdp 4,4": "dss-rtdp:n_policies=4,n_samples=4,n_steps=20",
    "adaptive-dss": "adaptive-dss",
    "adaptive-dss, 8 policies": "adaptive-dss:n_policies=8",
    "dss-vi 4,4": "dss-vi:n_policies=4,n_samples=4,n_steps=20",
    "bamcp 1000": "bamcp:n_simulations=1000,exploration=1",
    "bamcp 10000": "bamcp:n_simulations=10000,exploration=1",
    "bamcp 1000, c = 3": "bamcp:n_simulations=1000,exploration=3",
    "bamcp 10000, c = 3": "bamcp:n_simulations=10000,exploration=3",
    "bauct 1000": "bauct:n_simulations=1000,exploration=1",
    "fhts 4": "fhts:horizon=4",
    "sparse-sampling": "sparse-sampling:width=4,depth=4",
    "bayesian-sparse-sampling": "bayesian-sparse-sampling:depth=20",
    "bfs3": "bfs3:n_successors=5,n_trajectories=30,depth=16",
    "boss": "boss",
    "sboss": "sboss",
    "beb 0.1": "beb:bonus=0.1",
    "beb 1": "beb:bonus=1",
    "bolt": "bolt",
    "vbrb": "vbrb",
    "mcbrl": "mcbrl",
    "bayesian-q-learning": "bayesian-q-learning",
    "rmax": "rmax",
    "epsilon-greedy": "epsilon-greedy",
    "q-learning": "q-learning",
    "random": "random",
}
FEWER = {"bamcp 10000": 30, "bamcp 10000, c = 3": 30}  # runs of those that take seconds for each


# --- exact values


class Exact:
    """V* and Q* of a world at every count of heads and tails up to its depth."""

    def __init__(self, world: CoinWorld, discount: float, depth: int | None = None) -> None:
        self.world, self.discount = world, discount
        self.depth = world.depth if depth is None else depth
        self.values = np.zeros((len(world.rows), *(2 * world.n_coins * (self.depth + 1,))))
        for n in range(self.depth, -1, -1):
            counts = _counts(n, 2 * world.n_coins)
            self.values[(slice(None), *counts)] = self._layer(counts)

    def q(self, state: int, action: int, counts: tuple[int, ...]) -> float:
        """Return Q* of an action; with ``depth`` observations, that of the mean model."""
        here = tuple(np.array([n]) for n in counts)
        fixed = self._rows(here) if sum(counts) < self.depth else None
        return float(self._row_value(state, action, here, self.values[(slice(None), *here)], fixed)[0])

    def _rows(self, counts: tuple[NDArray[np.int64], ...]) -> list[list[Any]]:
        """Return the value of every pair with a coin, from those with one count more; of the others the outcome."""
        return [
            [self._coin(row, counts) if isinstance(row, Coin) else row for row in state]
            for state in self.world.rows
        ]

    def _coin(self, coin: Coin, counts: tuple[NDArray[np.int64], ...]) -> NDArray[np.float64]:
        heads, tails = 2 * coin.number, 2 * coin.number + 1
        p = (1.0 + counts[heads]) / (2.0 + counts[heads] + counts[tails])
        total = np.zeros(len(p))
        for weight, (s2, r), place in ((p, coin.heads, heads), (1.0 - p, coin.tails, tails)):
            after = tuple(n + (i == place) for i, n in enumerate(counts))
            total += weight * (r + self.discount * self.values[(s2, *after)])
        return total

    def _layer(self, counts: tuple[NDArray[np.int64], ...]) -> NDArray[np.float64]:
        """Return the values [S, counts] of beliefs with as many observations, those with one more being known."""
        last = int(sum(n[0] for n in counts)) == self.depth
        S, A, size = len(self.world.rows), len(self.world.rows[0]), len(counts[0])
        fixed = None if last else self._rows(counts)
        values = np.zeros((S, size))
        sweeps = math.ceil(math.log(1e-10) / math.log(self.discount))
        for _ in range(sweeps):  # certain rows keep the counts, so a layer is an MDP of its own
            before = values
            pairs = [[self._row_value(s, a, counts, values, fixed) for a in range(A)] for s in range(S)]
            values = np.array([np.max(of_state, axis=0) for of_state in pairs])
            if np.abs(values - before).max() < 1e-11:
                break
        return values

    def _row_value(self, s: int, a: int, counts: Any, values: Any, fixed: Any) -> Any:
        row = self.world.rows[s][a]
        if not isinstance(row, Coin):
            return row[1] + self.discount * values[row[0]]
        if fixed is not None:
            return fixed[s][a]
        heads, tails = counts[2 * row.number], counts[2 * row.number + 1]  # the mean model, for ever
        p = (1.0 + heads) / (2.0 + heads + tails)
        win, lose = (r + self.discount * values[s2] for s2, r in (row.heads, row.tails))
        return p * win + (1.0 - p) * lose


@cache
def _counts(n: int, places: int) -> tuple[NDArray[np.int64], ...]:
    """Return all tuples of so many counts with the sum n, as one array for each place."""
    bars = itertools.combinations(range(n + places - 1), places - 1)
    cuts = np.array([(-1, *bar, n + places - 1) for bar in bars], dtype=np.int64).reshape(-1, places + 1)
    return tuple(np.diff(cuts, axis=1).T - 1)


@cache
def solved(name: str) -> Exact:
    """Return the exact values of a world, by its name."""
    return Exact(*WORLDS[name])


@cache
def truncation(name: str) -> float:
    """Return how much the value of the start changes with the last sixth of the depth, which is left out beyond it."""
    world, discount = WORLDS[name]
    start = (0, *(2 * world.n_coins * (0,)))
    fewer = Exact(world, discount, world.depth - world.depth // 6)
    return float(solved(name).values[start] - fewer.values[start])


# --- losses


def one_loss(name: str, planner: bamdp.Planner, seed: np.random.SeedSequence) -> tuple[float, float]:
    """Return the loss of one run in a world drawn from the prior, and milliseconds of processor time per step."""
    world, discount = WORLDS[name]
    exact = solved(name)
    for_world, for_agent = seed.spawn(2)
    rng = np.random.default_rng(for_world)
    bias = rng.random(world.n_coins)
    agent = world.agent(planner, discount, for_agent)
    state, loss, weight, steps, spent = 0, 0.0, 1.0, 0, 0.0
    counts = [0] * (2 * world.n_coins)
    agent.begin(0)
    while weight > NEGLIGIBLE:
        now = tuple(counts)
        learning = sum(now) < exact.depth
        if not learning:
            bias = posterior_means(now)
        begin = time.process_time()
        action = agent.act(state)
        spent += time.process_time() - begin
        loss += weight * (float(exact.values[(state, *now)]) - exact.q(state, action, now))
        row = world.rows[state][action]
        u = rng.random()  # one number per step, whatever is done
        if isinstance(row, Coin):
            heads = u < bias[row.number]
            counts[2 * row.number + (not heads)] += learning
            s2, r = row.heads if heads else row.tails
        else:
            s2, r = row
        begin = time.process_time()
        agent.observe(state, action, r, s2)
        spent += time.process_time() - begin
        state, weight, steps = s2, weight * discount, steps + 1
    return loss, 1e3 * spent / steps


def posterior_means(counts: tuple[int, ...]) -> NDArray[np.float64]:
    """Return the chance of heads of every coin, given what has come up."""
    heads, tails = np.array(counts[::2]), np.array(counts[1::2])
    return (1.0 + heads) / (2.0 + heads + tails)


def measure(name: str, label: str, runs: int = RUNS) -> dict[str, Any]:
    """Measure one row of the data file."""
    world, discount = WORLDS[name]
    planner = make_planner(PLANNERS[label])
    one_loss(name, planner, np.random.SeedSequence(SEED))  # compiles
    seeds = np.random.SeedSequence(SEED).spawn(runs)
    losses, times = np.array([one_loss(name, planner, seed) for seed in seeds]).T
    value = float(solved(name).values[(0, *(2 * world.n_coins * (0,)))])
    return {
        "world": name,
        "discount": discount,
        "planner": label,
        "runs": runs,
        "loss": f"{losses.mean():.5g}",
        "se": f"{losses.std(ddof=1) / math.sqrt(runs):.3g}",
        "share": f"{losses.mean() / value:.4g}",
        "value": f"{value:.6f}",
        "truncation": f"{truncation(name):.2g}",
        "ms": f"{times.mean():.3g}",
    }


# --- the file and the table


def read(path: Path = DATA) -> list[dict[str, Any]]:
    """Read the data file, with numbers as numbers."""
    with path.open(encoding="utf-8", newline="") as file:
        return [
            {key: value if key in ("world", "planner") else float(value) for key, value in row.items()}
            for row in csv.DictReader(file)
        ]


def table(rows: list[dict[str, Any]]) -> str:
    """Return the losses as Markdown, in per cent of the Bayes-optimal value: the least ones, and some for reference."""
    shares = {(row["world"], row["planner"]): row for row in rows}
    labels = [label for label in PLANNERS if all((world, label) in shares for world in WORLDS)]
    mean = {label: float(np.mean([shares[world, label]["share"] for world in WORLDS])) for label in labels}
    shown = [
        label for label in sorted(labels, key=mean.__getitem__) if mean[label] < LEAST or label in REFERENCE
    ]
    head = [f"{name}, γ = {discount:g}" for name, (_, discount) in WORLDS.items()]
    lines = [f"| planner | {' | '.join(head)} | mean | ms/step |", f"| :--- |{' ---: |' * (len(head) + 2)}"]
    for label in shown:
        cells = [shares[world, label] for world in WORLDS]
        shares_of = " | ".join(f"{100 * cell['share']:.2f}" for cell in cells)
        ms = np.mean([cell["ms"] for cell in cells])
        lines.append(f"| {label} | {shares_of} | {100 * mean[label]:.2f} | {ms:.2g} |")
    return "\n".join(lines)


def main() -> None:
    """Measure, and write the data file; or print the table of it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--table", action="store_true", help="print the table of the data that are there")
    parser.add_argument("--only", nargs="+", metavar="PLANNER", help="measure these again, keep the others")
    parser.add_argument("--runs", type=int, help=f"of each planner; {RUNS}, fewer of the slow ones")
    arguments = parser.parse_args()
    if arguments.table:
        print(table(read()))
        return
    labels = [label for label in PLANNERS if arguments.only is None or label in arguments.only]
    old = [] if arguments.only is None else [row for row in _raw() if row["planner"] not in labels]
    rows = list(old)
    for label, name in itertools.product(labels, WORLDS):
        try:
            rows.append(measure(name, label, arguments.runs or FEWER.get(label, RUNS)))
        except (ValueError, TypeError) as error:  # a planner that does not take such beliefs
            print(f"{label} in {name}: {error}", flush=True)
            continue
        print({key: rows[-1][key] for key in ("world", "planner", "loss", "se", "share", "ms")}, flush=True)
        order = {pair: i for i, pair in enumerate(itertools.product(WORLDS, PLANNERS))}
        rows.sort(key=lambda row: order[row["world"], row["planner"]])
        with DATA.open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)


def _raw() -> list[dict[str, str]]:
    with DATA.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


if __name__ == "__main__":
    main()
