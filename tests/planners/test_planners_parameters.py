"""Parameters outside their range are refused when a planner is made, by a message that names them."""

import math

import pytest

import bamdp

NOT_COUNTS = (0, -1, 1.5, True, "3")
BAD = {
    bamdp.AdaptiveDSS: {
        "n_bonuses": [-1],
        "n_simulations": [0, "some"],
        "largest_bonus": [0.0],
        "trial_tol": [0.0],
    },
    bamdp.BAMCP: {
        "n_simulations": NOT_COUNTS,
        "time_limit": [0.0, "1 s"],
        "depth": [0, "deep"],
        "exploration": [-1.0, math.nan],
        "epsilon": [1.5],
        "learning_rate": [-0.1],
        "root_sampling": ["row"],
    },
    bamdp.BAUCT: {"n_simulations": [0], "root_sampling": ["rows"]},
    bamdp.BayesGreedy: {"tol": [0.0, -1.0, math.nan, math.inf, "1", None]},
    bamdp.BayesianQLearning: {
        "selection": ["vip"],
        "update": ["moments"],
        "mu0": [math.inf],
        "lam": [0.0],
        "alpha": [1.0],
        "spread": [-1.0],
        "beta": [0.0, "1"],
    },
    bamdp.BayesianSparseSampling: {
        "n_trajectories": NOT_COUNTS,
        "depth": NOT_COUNTS,
        "width": NOT_COUNTS,
        "leaf": ["means"],
    },
    bamdp.BEB: {"bonus": [-1.0, math.inf, "1"], "tol": [0.0]},
    bamdp.BFS3: {"n_successors": [0], "n_trajectories": [1.5], "depth": [0, "auto"], "leaf": ["none"]},
    bamdp.BOLT: {"eta": [-1.0, math.nan, None], "tol": [0.0]},
    bamdp.BootstrappedDQN: {
        "n_networks": [0],
        "n_hidden": [0],
        "batch_size": [0],
        "min_replay": [20_000],
        "learning_rate": [0.0],
        "prior_scale": [-1.0],
    },
    bamdp.BOSS: {"n_models": [0, 2.0], "known_after": [0], "tol": [0.0]},
    bamdp.SBOSS: {"n_models": [-1], "delta": [-1.0, math.nan]},
    bamdp.DSS: {"n_policies": NOT_COUNTS, "n_steps": [-3]},
    bamdp.EpsilonGreedy: {"epsilon": [1.1, -0.1], "decay": [-1.0, "x"], "tol": [0.0]},
    bamdp.FHTS: {"horizon": NOT_COUNTS, "max_hyper_states": NOT_COUNTS},
    bamdp.MCBRL: {"n_models": [0], "policy": ["middle"], "resample": [0, "never"], "tol": [0.0]},
    bamdp.QLearning: {
        "learning_rate": [0.0, 1.5],
        "power": [2.0],
        "epsilon": [-0.1],
        "decay": [-1.0],
        "initial": [math.nan, "0"],
    },
    bamdp.RMax: {"known_after": [0, 2.5], "refine": [1], "tol": [0.0, None]},
    bamdp.SparseSampling: {"width": NOT_COUNTS, "depth": NOT_COUNTS},
    bamdp.VBRB: {"beta_r": [-1.0], "beta_p": [math.nan, None], "tol": [0.0]},
}


@pytest.mark.parametrize("planner", BAD, ids=lambda planner: planner.__name__)
def test_bad_parameters_are_refused_by_name(planner):
    for name, values in BAD[planner].items():
        for value in values:
            with pytest.raises((TypeError, ValueError), match=name):
                planner(**{name: value})


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"n_policies": 0}, "n_policies must be at least 1"),
        ({"n_samples": 1.5}, "n_samples must be a whole number"),
        ({"leaf": "means"}, "did you mean 'mean'"),
        ({"generator": "pii"}, "did you mean 'pi'"),
        ({"generator": 3}, "generator must be"),
    ],
)
def test_messages_say_what_would_be_right(bad, message):
    with pytest.raises((ValueError, TypeError), match=message):
        bamdp.DSS(**bad)
