"""Record learning curves of bsuite's own Bootstrapped DQN on deep sea, the reference for `bamdp.BootstrappedDQN`.

Requires ``pip install 'bamdp[bsuite]' jax dm-haiku optax rlax tqdm``. The baseline is unmodified and uses its default
parameters. For each seed, the script appends one JSON line to the output, listing the bad episodes as counted by
bsuite itself. Seeds already in the file are skipped.

    python paper/original_bdqn.py --size 10 --episodes 1000 --seeds 10 --output original-bdqn-10.jsonl
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any


def bad_episodes(size: int, episodes: int, seed: int) -> list[int]:
    """Return the indices of the episodes in which the agent took a wrong step on the way to the treasure."""
    import numpy as np

    try:
        from bsuite.baselines import experiment
        from bsuite.baselines.jax import boot_dqn
        from bsuite.environments.deep_sea import DeepSea
    except ImportError as error:
        raise SystemExit(
            f"{error}; install the original with pip install 'bamdp[bsuite]' jax dm-haiku optax rlax tqdm"
        ) from None

    np.random.seed(seed)  # noqa: NPY002  (the baseline draws from NumPy's global stream)
    env = DeepSea(size=size, mapping_seed=42, seed=seed)
    agent = boot_dqn.default_agent(env.observation_spec(), env.action_spec(), seed=seed)
    bad, before = [], 0
    for episode in range(episodes):
        experiment.run(agent, env, num_episodes=1)
        now = env.bsuite_info()["total_bad_episodes"]
        if now > before:
            bad.append(episode)
        before = now
    return bad


def main() -> None:
    """Run all seeds that are not yet in the output file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--size", type=int, default=10)
    parser.add_argument("--episodes", type=int, default=1000)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--output", type=Path, required=True)
    arguments = parser.parse_args()
    lines = arguments.output.read_text().splitlines() if arguments.output.exists() else []
    done = {json.loads(line)["seed"] for line in lines}
    for seed in sorted(set(range(arguments.seeds)) - done):
        begin = time.process_time()
        bad = bad_episodes(arguments.size, arguments.episodes, seed)
        record: dict[str, Any] = {"size": arguments.size, "episodes": arguments.episodes, "seed": seed}
        record |= {"cpu_seconds": round(time.process_time() - begin, 1), "bad": bad}
        with arguments.output.open("a") as file:
            file.write(json.dumps(record) + "\n")
        print(f"seed {seed}: {len(bad)} bad episodes, {record['cpu_seconds']} s", flush=True)


if __name__ == "__main__":
    main()
