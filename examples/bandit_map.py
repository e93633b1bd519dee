"""When is it worth trying the other arm? A map of exact Bayes-optimal actions on a bandit.

Arm 0 has won w times and lost l times; arm 1 has never been pulled. Where is arm 1 the better choice, looking one step
ahead, and looking fifteen? Run it as ``python examples/bandit_map.py [picture.png]``.
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

HORIZONS, MOST = (1, 4, 15), 8


def advantage(wins: int, losses: int, horizon: int) -> float:
    """Return Q*(arm 1) − Q*(arm 0)."""
    agent = bamdp.Agent(
        bamdp.FHTS(horizon),
        prior=bamdp.Dirichlet(),
        rewards=bamdp.BetaBernoulli(),
        n_states=1,
        n_actions=2,
        discount=0.95,
        seed=0,
    )
    for reward, times in ((1.0, wins), (0.0, losses)):
        for _ in range(times):
            agent.observe(0, 0, reward, 0)
    tried, untried = (candidate.value for candidate in agent.plan(0).candidates)
    return untried - tried


def main(path: str = "bandit-map.png") -> list[np.ndarray]:
    """Draw the figure and return the advantage of the untried arm, ``[wins, losses]`` for each horizon."""
    counts = range(MOST + 1)
    maps = [np.array([[advantage(w, l, h) for l in counts] for w in counts]) for h in HORIZONS]
    with matplotlib.rc_context({**STYLE, "axes.grid": False}):
        figure = Figure(figsize=(9.0, 3.2), layout="constrained")
        FigureCanvasAgg(figure)
        for axes, horizon, values in zip(figure.subplots(1, len(HORIZONS), sharey=True), HORIZONS, maps):
            scale = np.abs(values).max()
            image = axes.imshow(values.T, origin="lower", cmap="RdBu", vmin=-scale, vmax=scale)
            axes.contour(values.T, levels=[0.0], colors="black", linewidths=1.5)
            axes.set_title(f"{horizon} step{'s' * (horizon > 1)} ahead")
            axes.set_xlabel("wins of arm 0")
            figure.colorbar(image, ax=axes, shrink=0.8)
        figure.axes[0].set_ylabel("losses of arm 0")
        figure.suptitle("What the arm that was never pulled is worth more (blue) or less (red)", fontsize=9)
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=150)
    return maps


if __name__ == "__main__":
    main(*sys.argv[1:])
