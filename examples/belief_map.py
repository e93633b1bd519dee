"""Draw what an agent believes about a grid, and how certain it is, after 0, 100 and 1000 steps.

Above: the probability that "right" leads right, for every cell. Below: how much two models drawn from the belief
disagree there (L1 distance of the row, mean over pairs), which is what makes Thompson sampling explore. Run it as
``python examples/belief_map.py [picture.png]``.
"""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib
import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

import bamdp
from bamdp.plot.style import STYLE

STEPS, SIZE, RIGHT, PAIRS = (0, 100, 1000), 5, 1, 30


def look(belief: bamdp.Belief, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return (probability of going right, disagreement), both ``[x, y]``."""
    cells = np.arange(SIZE * SIZE)
    goes = np.array([belief.predictive(s, RIGHT)[min(s + SIZE, SIZE * SIZE - 1)] for s in cells])
    pairs = [(belief.sample(rng).dense(), belief.sample(rng).dense()) for _ in range(PAIRS)]
    apart = np.mean([np.abs(p[:, RIGHT] - q[:, RIGHT]).sum(axis=-1) for p, q in pairs], axis=0)
    return goes.reshape(SIZE, SIZE), apart.reshape(SIZE, SIZE)


def main(path: str = "belief-map.png") -> list[tuple[np.ndarray, np.ndarray]]:
    """Draw the figure and return its data."""
    env = bamdp.make_env("grid5")
    agent = bamdp.Agent(
        bamdp.DSS(n_policies=2, n_samples=2, n_steps=25),
        prior=bamdp.SparseDirichlet(alpha=0.2, beta=6.0),
        rewards=env.rewards,
        n_states=env.n_states,
        n_actions=env.n_actions,
        discount=0.95,
        seed=0,
    )
    rng, seen, maps = np.random.default_rng(0), 0, []
    for steps in STEPS:
        bamdp.simulate(agent, env, steps - seen, seed=steps)
        seen = steps
        maps.append(look(agent.belief, rng))
    with matplotlib.rc_context({**STYLE, "axes.grid": False}):
        figure = Figure(figsize=(7.0, 4.6), layout="constrained")
        FigureCanvasAgg(figure)
        panels = figure.subplots(2, len(STEPS))
        for column, steps in enumerate(STEPS):
            for row, (top, colours) in enumerate(((1.0, "viridis"), (2.0, "magma"))):
                axes = panels[row, column]
                image = axes.imshow(maps[column][row].T, origin="lower", vmin=0.0, vmax=top, cmap=colours)
                axes.set_xticks([]), axes.set_yticks([])
                if column == len(STEPS) - 1:
                    figure.colorbar(image, ax=panels[row].tolist(), shrink=0.8)
            panels[0, column].set_title(f"after {steps} steps")
        panels[0, 0].set_ylabel("P(right goes right)")
        panels[1, 0].set_ylabel("disagreement")
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=150)
    return maps


if __name__ == "__main__":
    main(*sys.argv[1:])
