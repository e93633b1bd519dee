"""Small runs to look at."""

import bamdp
from bamdp.registry import make_planner, make_prior, make_rewards
from bamdp.settings import Setting
from bamdp.studio.playback import Playback

DSS = "dss-pi:n_policies=3,n_samples=2,n_steps=6"


def setting_of(env="chain", planner="thompson", *, prior="sparse:alpha=0.2,beta=2", steps=200, seed=0):
    world = bamdp.make_env(env)
    return Setting(
        env, make_planner(planner), make_prior(prior, world), make_rewards(None, world), 0.95, steps, seed
    )


def run_of(env="chain", planner="thompson", *, t=0, **options):
    run = Playback(setting_of(env, planner, **options))
    run.seek(t)
    return run
