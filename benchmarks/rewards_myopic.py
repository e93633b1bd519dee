"""Compare total rewards of SBOSS and BEB with those of Guez's C++ programs, for the same priors and parameters.

Run it as ``python benchmarks/rewards_myopic.py [runs]``. The reference is mean ± standard error as measured with the
C++ programs; where it has no standard error, ours is used. "z" is the difference in standard errors of both.
The last rows are planners without a reference.
"""

from __future__ import annotations

import sys

from common import compare_means, run_planner

from bamdp import BEB, BOLT, BOSS, MCBRL, SBOSS, VBRB, Planner

Reference = tuple[float, float | None]  # mean, standard error

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
    ("grid5", "symmetric"): (43.6, 0.4),  # that program's BEB with the option for the sparse prior
    ("grid10", "symmetric"): (6.8, 0.8),
}
CPP_BONUS = 2.0  # the bonus that the C++ program uses when asked for 2.5


def compare(env: str, prior: str, planner: Planner, runs: int, reference: Reference | None) -> None:
    """Run a planner and print one row of the table."""
    batch = run_planner(env, planner, prior, runs)
    text = f"{env:12} {prior:7} {planner!s:75} {batch.mean:7.1f} ± {batch.standard_error:4.1f}"
    if reference is not None:
        mean, error = reference
        verdict = compare_means(batch, mean, error)
        text += f"   C++ {mean:6.1f} ± {'?' if error is None else error}   {verdict}"
    print(text, flush=True)


def main(runs: int) -> None:
    """Print all rows of the table."""
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
