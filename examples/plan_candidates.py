"""A decision with its evidence: the candidates of a DSS plan, with few samples and with many.

Each dot is a policy of a sampled model, simulated M times; its colour is its first action. With few samples the best
candidate is the best by chance. Run it as ``python examples/plan_candidates.py [picture.png]``.
"""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib
import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

import bamdp
from bamdp.plot.style import COLOURS, STYLE

ACTIONS = ("up", "right", "down", "left")


def main(path: str = "plan-candidates.png") -> list[bamdp.Plan]:
    """Draw the figure and return the plans."""
    env = bamdp.make_env("grid5")
    world = {"rewards": env.rewards, "n_states": env.n_states, "n_actions": env.n_actions, "discount": 0.95}
    prior = bamdp.SparseDirichlet(alpha=0.2, beta=6.0)
    learner = bamdp.Agent(bamdp.ThompsonSampling(), prior=prior, seed=0, **world)
    bamdp.simulate(learner, env, 60, seed=0)
    plans = []
    for n_samples in (2, 20, 200):
        planner = bamdp.DSS(n_policies=24, n_samples=n_samples, n_steps=25)
        agent = bamdp.Agent(planner, prior=prior, seed=3, **world)
        agent.belief = learner.belief.copy()
        plans.append(agent.plan(env.start))
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(9.0, 3.2), layout="constrained")
        FigureCanvasAgg(figure)
        for axes, plan in zip(figure.subplots(1, 3, sharey=True), plans):
            ranked = sorted(plan.candidates, key=lambda c: c.value)
            for rank, c in enumerate(ranked):
                error = c.spread / np.sqrt(c.count)
                axes.errorbar(rank, c.value, error, fmt="o", color=COLOURS[c.action], markersize=4)
            axes.set_title(f"M = {ranked[0].count}: {ACTIONS[plan.action]}")
            axes.set_xlabel("candidate, by value")
        figure.axes[0].set_ylabel("value ± 1 s.e.")
        for action, name in enumerate(ACTIONS):
            figure.axes[0].plot([], [], "o", color=COLOURS[action], label=name)
        figure.legend(loc="outside right upper", frameon=False, fontsize=8)
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=150)
    return plans


if __name__ == "__main__":
    main(*sys.argv[1:])
