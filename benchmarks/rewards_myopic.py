"""Total rewards of SBOSS and BEB against what Guez's C++ programs earn with the same priors and parameters.

Run it as ``python benchmarks/rewards_myopic.py [runs]``. The reference is mean ± standard error as measured on the
C++ programs; where that gives no error, one is guessed from ours. "z" is the difference in standard errors of both.
The last rows are planners without a reference, for comparison.
"""

from __future__ import annotations

import math
import sys

import bamdp
from bamdp.planners.base import Planner
from bamdp.planners.beb import BEB
from bamdp.planners.bolt import BOLT
from bamdp.planners.boss import BOSS
from bamdp.planners.mcbrl import MCBRL
from bamdp.planners.sboss import SBOSS
from bamdp.planners.vbrb import VBRB
from bamdp.runs import run_many
from bamdp.settings import Setting

Reference = tuple[float, float | None]

SIZES = {"chain": 5, "double_loop": 9, "grid5": 25, "grid10": 100}
SBOSS_ROWS: dict[tuple[str, str], Reference] = {
    ("chain", "flat"): (354.9, 4.3),
    ("chain", "sparse"): (349.5, 6.5),
    ("double_loop", "flat"): (369.9, 2.2),
    ("double_loop", "sparse"): (382.9, 2.0),
    ("grid5", "flat"): (46.6, 0.4),
    ("grid5", "sparse"): (60.4, 0.4),
    ("grid10", "flat"): (13.0, 1.1),
    ("grid10", "sparse"): (23.5, 1.8),
}
BEB_ROWS: dict[tuple[str, str], Reference] = {
    ("chain", "flat"): (382.6, 4.7),
    ("double_loop", "flat"): (376.0, None),
    ("grid5", "flat"): (38.2, None),
    ("grid10", "flat"): (11.4, None),
}
CPP_BONUS = 2.0  # what the C++ program makes of 2.5


def prior_of(name: str, n_states: int) -> bamdp.Prior:
    """The priors of the reference."""
    if name == "flat":
        return bamdp.Dirichlet(alpha=1.0 / n_states)
    return bamdp.SparseDirichlet(alpha=0.2, beta=2.0)


def compare(env: str, prior: str, planner: Planner, runs: int, reference: Reference | None) -> None:
    """One row of the table."""
    world = bamdp.make_env(env)
    setting = Setting(
        env=env,
        planner=planner,
        prior=prior_of(prior, world.n_states),
        rewards=bamdp.KnownRewards(world.rewards),
        discount=0.95,
        steps=world.horizon,
    )
    batch = run_many(setting, runs)
    text = f"{env:12} {prior:7} {planner!s:75} {batch.mean:7.1f} ± {batch.standard_error:4.1f}"
    if reference is not None:
        mean, error = reference
        error_of_both = math.hypot(batch.standard_error, batch.standard_error if error is None else error)
        z = (batch.mean - mean) / max(error_of_both, 1e-9)  # deterministic planners in deterministic worlds
        verdict = "ok" if z > -3.0 else "WORSE"
        text += f"   C++ {mean:6.1f} ± {'?' if error is None else error}   z {z:+.1f} {verdict}"
    print(text, flush=True)


def main(runs: int) -> None:
    """All rows."""
    for (env, prior), reference in SBOSS_ROWS.items():
        planner = SBOSS(n_models=8 if env == "chain" else 2, delta=3.0)
        compare(env, prior, planner, 10 if (env, prior) == ("grid10", "flat") else runs, reference)
    for (env, prior), reference in BEB_ROWS.items():
        compare(env, prior, BEB(bonus=CPP_BONUS), runs, reference)
    others = (
        BEB(),
        BOSS(),
        BOLT(),
        VBRB(),
        MCBRL(resample="discount"),
        MCBRL(policy="lower", resample="discount"),
    )
    for env in ("chain", "double_loop", "grid5"):
        for prior in ("flat", "sparse"):
            for planner in others:
                compare(env, prior, planner, 10, None)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 40)
