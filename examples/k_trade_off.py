"""The trade-off in K of a belief that has learned: Theorem 1 as printed, and corrected.

Run it as ``python examples/k_trade_off.py [picture.png]``.
"""

from __future__ import annotations

import sys

import numpy as np
from matplotlib import pyplot

import bamdp
from bamdp import theory

N, M, K, DISCOUNT = 4, 2000, 6, 0.6


def main(path: str = "k-trade-off.png") -> tuple[float, float]:
    """Draw the figure and return the estimates of ε₀ and C."""
    rows = np.array([[[0.8, 0.1, 0.1], [0.1, 0.1, 0.8]]] * 3)
    belief = bamdp.Dirichlet(alpha=500 * rows).belief(3, 2, rewards=[0.0, 0.3, 1.0])
    c = theory.estimate_c(belief, pairs=100, rng=0).mean
    epsilon0 = theory.estimate_epsilon0(belief, 0, DISCOUNT, n_steps=K, episodes=5, rng=0).epsilon0
    figure, panels = pyplot.subplots(1, 2, figsize=(8.4, 3.6), sharey=True, layout="constrained")
    steps = range(1, 25)
    for axes, title, bound in zip(
        panels,
        ("Theorem 1 as printed", "corrected bound"),
        (theory.printed_loss_bound, theory.corrected_loss_bound),
    ):
        found = [bound(N, M, k, DISCOUNT, c=c, epsilon0=epsilon0) for k in steps]
        for term in found[0].terms:
            axes.plot(steps, [one.terms[term] for one in found], label=term)
        axes.plot(steps, [one.total for one in found], color="black", label="sum")
        axes.axhspan(found[0].range, 3 * found[0].range, color="0.85", label="vacuous")
        axes.axvline(K, color="0.4", linestyle="--")
        axes.set(title=title, xlabel="K, steps of a stage", xlim=(1, 24), ylim=(0.0, 3 * found[0].range))
        axes.legend()
    panels[0].set_ylabel("loss")
    note = f"N={N}, M={M}, γ={DISCOUNT}, a belief with 500 observations of each row: ε₀={epsilon0:.2f}, C={c:.2f}"
    figure.suptitle(note, fontsize=9)
    figure.savefig(path, dpi=150)
    return epsilon0, c


if __name__ == "__main__":
    main(*sys.argv[1:])
