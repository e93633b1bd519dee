"""An ensemble of small networks over one-hot states: forward, backward, Adam.

Network n of N has two hidden layers of W units and an output an action,

    x₁ = max(0, w₁[s] + b₁),        x₂ = max(0, x₁ w₂ + b₂),        q = x₂ w₃ + b₃,

where the one-hot state s only picks a row of w₁. So the first layer is a look-up, a batch is made of its distinct
states alone, and all networks go through one batched product a layer. Everything is float32, as in the original.

Adam (Kingma & Ba 2015) moves every parameter that has ever had a gradient, also at steps at which it has none; a row
of w₁ whose state was never in a batch has moments of zero and stays. So only the rows of such states are gone
through, with the very same result.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from bamdp._kernels.jit import kernel, primitive
from bamdp._serial import saveable

BETA1, BETA2, EPSILON = 0.9, 0.999, 1e-8  # Adam's usual ones


@saveable
class Networks(NamedTuple):
    """Parameters of N networks, or something of the same shape for each (gradients, moments)."""

    w1: np.ndarray  # float32 [N, S, W]
    b1: np.ndarray  # float32 [N, 1, W]
    w2: np.ndarray  # float32 [N, W, W]
    b2: np.ndarray  # float32 [N, 1, W]
    w3: np.ndarray  # float32 [N, W, A]
    b3: np.ndarray  # float32 [N, 1, A]


def draw_networks(
    n_networks: int, n_states: int, n_actions: int, width: int, n_inputs: int, random: np.random.Generator
) -> Networks:
    """Weights from a normal law cut off at two standard deviations, 1/√(inputs) before the cut; biases 0.

    ``n_inputs`` counts the inputs of the first layer (states that are never seen by a network are none).
    """
    N, W = n_networks, width
    return Networks(
        w1=_truncated(random, (N, n_states, W), n_inputs),
        b1=np.zeros((N, 1, W), np.float32),
        w2=_truncated(random, (N, W, W), W),
        b2=np.zeros((N, 1, W), np.float32),
        w3=_truncated(random, (N, W, n_actions), W),
        b3=np.zeros((N, 1, n_actions), np.float32),
    )


def _truncated(random: np.random.Generator, shape: tuple[int, ...], n_inputs: int) -> np.ndarray:
    draws = random.standard_normal(shape, np.float32)
    while True:
        far = np.abs(draws) > 2.0
        if not far.any():
            return draws * np.float32(1.0 / math.sqrt(n_inputs))
        draws[far] = random.standard_normal(int(far.sum()), np.float32)


def like(networks: Networks) -> Networks:
    """Return zeros of the same shapes."""
    return Networks(*(np.zeros_like(part) for part in networks))


def copy_networks(networks: Networks, which: slice = slice(None)) -> Networks:
    """Return a copy, of some of the networks or all."""
    return Networks(*(part[which].copy() for part in networks))


def forward(networks: Networks, states: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return (x₁ [N, U, W], x₂ [N, U, W], q [N, U, A]) of the states [U]."""
    x1 = np.maximum(networks.w1[:, states] + networks.b1, 0)
    x2 = np.maximum(x1 @ networks.w2 + networks.b2, 0)
    return x1, x2, x2 @ networks.w3 + networks.b3


def backward(networks: Networks, x1: np.ndarray, x2: np.ndarray, dq: np.ndarray) -> Networks:
    """Return the gradient of what has the derivatives ``dq`` [N, U, A] by q; ``w1`` is [N, U, W], a row per state."""
    d2 = (dq @ networks.w3.swapaxes(1, 2)) * (x2 > 0)
    d1 = (d2 @ networks.w2.swapaxes(1, 2)) * (x1 > 0)
    return Networks(
        w1=d1,
        b1=d1.sum(axis=1, keepdims=True),
        w2=x1.swapaxes(1, 2) @ d2,
        b2=d2.sum(axis=1, keepdims=True),
        w3=x2.swapaxes(1, 2) @ dq,
        b3=dq.sum(axis=1, keepdims=True),
    )


def adam(
    networks: Networks,
    moments: tuple[Networks, Networks],
    gradient: Networks,
    place: np.ndarray,
    rate: float,
    step: int,
) -> None:
    """Take one step of Adam, in place.

    ``place`` [S] is where a state's row is in ``gradient.w1``; ABSENT for states that are not in this batch and UNMET
    for those that were in none so far. ``step`` counts from 1.
    """
    root = math.sqrt(1.0 - BETA2**step)
    constants = (BETA1, 1.0 - BETA1, BETA2, 1.0 - BETA2, rate * root / (1.0 - BETA1**step), EPSILON * root)
    c = np.array(constants, np.float32)
    first, second = moments
    adam_rows(networks.w1, first.w1, second.w1, gradient.w1, place, c)
    for name in Networks._fields[1:]:
        w, m, v, g = (getattr(one, name).reshape(-1) for one in (networks, first, second, gradient))
        adam_flat(w, m, v, g, c)


ABSENT, UNMET = -1, -2  # places of states


@primitive
def _adam_entry(w, m, v, g, i, c):
    m[i] = c[0] * m[i] + c[1] * g
    v[i] = c[2] * v[i] + c[3] * g * g
    w[i] -= c[4] * m[i] / (np.sqrt(v[i]) + c[5])


@kernel
def adam_flat(w, m, v, g, c):
    """Adam on flat arrays; ``c`` is (β₁, 1−β₁, β₂, 1−β₂, rate, ε), the bias corrections in the last two."""
    for i in range(w.shape[0]):
        _adam_entry(w, m, v, g[i], i, c)


@kernel
def adam_rows(w, m, v, g, place, c):
    """Adam on the rows [N, S, W] of the states that were met; ``g`` [N, U, W] holds those of this batch."""
    zero = np.float32(0.0)
    for n in range(w.shape[0]):
        for s in range(w.shape[1]):
            u = place[s]
            if u == UNMET:
                continue
            if u >= 0:
                for i in range(w.shape[2]):
                    _adam_entry(w[n, s], m[n, s], v[n, s], g[n, u, i], i, c)
            else:
                for i in range(w.shape[2]):
                    _adam_entry(w[n, s], m[n, s], v[n, s], zero, i, c)
