"""The trade-off in K of a belief that has learned: Theorem 1 as printed, and corrected.

Run it as ``python examples/k_trade_off.py [picture.png]``.
"""

from __future__ import annotations

import sys
from functools import partial

import numpy as np

import bamdp
from bamdp import theory
from bamdp.theory.bounds import trade_off

N, M, K, DISCOUNT = 4, 2000, 6, 0.6


def main(path: str = "k-trade-off.png") -> tuple[float, float]:
    """Draw the figure and return the estimates of ε₀ and C."""
    rows = np.array([[[0.8, 0.1, 0.1], [0.1, 0.1, 0.8]]] * 3)
    belief = bamdp.Dirichlet(alpha=500 * rows).belief(3, 2, rewards=[0.0, 0.3, 1.0])
    c = theory.estimate_c(belief, pairs=100, rng=0).mean
    epsilon0 = theory.estimate_epsilon0(belief, 0, DISCOUNT, n_steps=K, episodes=5, rng=0).epsilon0
    panels = {
        title: partial(bound, N, M, discount=DISCOUNT, c=c, epsilon0=epsilon0)
        for title, bound in (
            ("Theorem 1, as printed", theory.printed_loss_bound),
            ("corrected", theory.corrected_loss_bound),
        )
    }
    note = f"N={N}, M={M}, γ={DISCOUNT}, a belief with 500 observations of each row: ε₀={epsilon0:.2f}, C={c:.2f}"
    trade_off(path, panels, K, note=note)
    return epsilon0, c


if __name__ == "__main__":
    main(*sys.argv[1:])
