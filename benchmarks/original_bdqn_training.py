"""Record a few training steps of bsuite's own Bootstrapped DQN, against which ours is tested.

It needs ``pip install 'bamdp[bsuite,bdqn]'``. The baseline's class runs unmodified, but with small networks, with masks
and noise, which its defaults leave out, and with batches that are recorded. The file contains the transitions, the
slots of every batch, and all parameters before and after.

    python benchmarks/original_bdqn_training.py tests/planners/data/boot_dqn_training.npz
"""

from __future__ import annotations

import sys
from typing import Any

SIZE, NETWORKS, WIDTH, STEPS, BATCH = 3, 2, 4, 30, 8
PRIOR_SCALE, NOISE, MASK, DISCOUNT, RATE = 5.0, 0.3, 0.5, 0.99, 0.01


def flat(params: Any, part: str) -> dict[str, Any]:
    """Return w1, b1, ... of the trained network (``mlp``) or of the prior network (``mlp_1``)."""
    layers = (params[f"{part}/~/linear_{i}"] for i in range(3))
    return {f"{name}{i}": layer[name] for i, layer in enumerate(layers, 1) for name in ("w", "b")}


def main(path: str) -> None:
    """Train for a few steps and write everything to an npz file."""
    import haiku as hk
    import numpy as np
    import optax
    from bsuite.baselines.jax.boot_dqn import BootstrappedDqn
    from bsuite.environments.deep_sea import DeepSea
    from jax import lax

    def network(inputs: Any) -> Any:
        net, prior = hk.nets.MLP([WIDTH, WIDTH, 2]), hk.nets.MLP([WIDTH, WIDTH, 2])
        x = hk.Flatten()(inputs)
        return net(x) + PRIOR_SCALE * lax.stop_gradient(prior(x))

    np.random.seed(0)  # noqa: NPY002  (the baseline draws from NumPy's global stream)
    env = DeepSea(size=SIZE, mapping_seed=42)
    agent = BootstrappedDqn(
        env.observation_spec(),
        env.action_spec(),
        network,
        num_ensemble=NETWORKS,
        batch_size=BATCH,
        discount=DISCOUNT,
        replay_capacity=100,
        min_replay_size=BATCH,
        sgd_period=1,
        target_update_period=4,
        optimizer=optax.adam(RATE),
        mask_prob=MASK,
        noise_scale=NOISE,
    )
    before = list(agent._ensemble)
    slots: list[Any] = []

    def sample(size: int) -> list[Any]:
        slots.append(np.random.randint(agent._replay.size, size=size))  # noqa: NPY002
        return [part[slots[-1]] for part in agent._replay._data]

    agent._replay.sample = sample
    states: list[list[int]] = []
    timestep = env.reset()
    for _ in range(STEPS):
        place = env._row * SIZE + env._column
        action = agent.select_action(timestep)
        following = env.step(action)
        after = SIZE * SIZE if following.last() else env._row * SIZE + env._column
        states.append([place, action, after])
        agent.update(timestep, action, following)
        timestep = env.reset() if following.last() else following
    arrays: dict[str, Any] = {"index": states, "slots": slots}
    arrays |= {name: agent._replay._data[i][:STEPS] for name, i in (("reward", 2), ("goes_on", 3))}
    arrays |= {name: agent._replay._data[i][:STEPS] for name, i in (("mask", 5), ("noise", 6))}
    sets = {
        "now": [flat(s.params, "mlp") for s in before],
        "prior": [flat(s.params, "mlp_1") for s in before],
        "target": [flat(s.target_params, "mlp") for s in before],
        "target_prior": [flat(s.target_params, "mlp_1") for s in before],
        "later": [flat(s.params, "mlp") for s in agent._ensemble],
        "later_prior": [flat(s.params, "mlp_1") for s in agent._ensemble],
    }
    for name, networks in sets.items():
        for key in networks[0]:
            arrays[f"{name}_{key}"] = np.stack([one[key] for one in networks])
    np.savez_compressed(path, **{key: np.asarray(value) for key, value in arrays.items()})


if __name__ == "__main__":
    main(*sys.argv[1:])
