"""Matplotlib plots of runs, environments and beliefs.

Every function plots on ``ax=``, by default on a new figure, and returns the axes for further customisation. The most
common plots are also available as methods: ``run.plot()``, ``batch.plot()``, ``comparison.plot()``. Matplotlib is
imported only when needed.

>>> import bamdp
>>> env = bamdp.make_env("grid5")
>>> agent = bamdp.Agent.for_env(env, "thompson", prior="sparse:beta=6", seed=0)
>>> run = bamdp.simulate(agent, env, steps=300, seed=0)
>>> axes = bamdp.plot.learning_curve(run, optimum=env)
>>> axes = bamdp.plot.policy(env, agent, visited=run)
>>> axes = bamdp.plot.visits(run, env)
>>> axes = bamdp.plot.posterior(agent, state=0, action=1, truth=env)
"""

from bamdp.plot.continuous import film_strip, phase_portrait, plans, real_steps
from bamdp.plot.curves import comparison, learning_curve, returns
from bamdp.plot.worlds import policy, posterior, values, visits

__all__ = [
    "comparison",
    "film_strip",
    "learning_curve",
    "phase_portrait",
    "plans",
    "policy",
    "posterior",
    "real_steps",
    "returns",
    "values",
    "visits",
]
