"""Draw the picture of the cookbook: what is earned per step in the four problems of operations research.

python benchmarks/cookbook.py    # about a minute: docs/images/cookbook.png
"""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from numpy.typing import NDArray

import bamdp
from bamdp.envs.ceilings import expected_total
from bamdp.mdp import uniform_policy

PICTURE = Path(__file__).resolve().parent.parent / "docs" / "images" / "cookbook.png"
PROBLEMS = ("inventory", "machine", "queue", "pricing")
RUNS, STEPS, WINDOW, SEED = 10, 1000, 50, 11


def earned(name: str, prior: str | None, known: str) -> NDArray[np.float64]:
    """Return the mean reward per step in each window of steps."""
    batch = bamdp.run_many(name, "optimism", prior=prior, rewards=known, runs=RUNS, steps=STEPS, seed=SEED)
    rewards: NDArray[np.float64] = batch.rewards.mean(axis=0).reshape(-1, WINDOW).mean(axis=1)
    return rewards


def main() -> None:
    """Run and draw."""
    figure, axes = plt.subplots(1, len(PROBLEMS), figsize=(11.0, 2.9), layout="constrained")
    steps = np.arange(WINDOW, STEPS + 1, WINDOW)
    for panel, name in zip(axes, PROBLEMS):
        env = bamdp.make_env(name)
        best, random = (
            expected_total(env.mdp, env.start, STEPS, p) / STEPS for p in (None, uniform_policy(env.mdp))
        )
        panel.axhline(best, color="0.3", lw=1, ls="--", label="optimal policy")
        panel.axhline(random, color="0.6", lw=1, ls=":", label="random play")
        panel.plot(steps, earned(name, None, "hierarchical"), color="#0072b2", label="nothing said")
        panel.plot(
            steps,
            earned(name, "disturbance", "known"),
            color="#d55e00",
            label="rule and rewards known, disturbance unknown",
        )
        panel.set_title(name)
        panel.set_xlabel("step")
    axes[0].set_ylabel("reward per step")
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False)
    figure.savefig(PICTURE, dpi=130)


if __name__ == "__main__":
    main()
