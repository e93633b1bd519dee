"""Small runs to look at."""

from bamdp.runs import make_setting
from bamdp.studio.playback import Playback

DSS = "dss-pi:n_policies=3,n_samples=2,n_steps=6"


def setting_of(env="chain", planner="thompson", *, prior="sparse", steps=200, **rest):
    return make_setting(env, planner, prior=prior, steps=steps, **rest)


def run_of(env="chain", planner="thompson", *, t=0, **options):
    run = Playback(setting_of(env, planner, **options))
    run.seek(t)
    return run
