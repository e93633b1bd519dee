"""What every planner promises, whatever it computes."""

import numpy as np

import bamdp


def agent_of(planner, world, *, prior=None, seed=0, discount=0.9, **changes):
    """An agent in a small world with some experience."""
    options = {"n_states": 3, "n_actions": 2, "rewards": [0.0, 0.3, 1.0], "discount": discount, "seed": seed}
    return bamdp.Agent(planner, prior=prior or bamdp.Dirichlet(alpha=0.5), **{**options, **world, **changes})


def experience(agent, n=12, seed=1):
    """Random transitions that the prior allows."""
    rng = np.random.default_rng(seed)
    S, A = agent.belief.n_states, agent.belief.n_actions
    for _ in range(n):
        s, a = int(rng.integers(S)), int(rng.integers(A))
        if agent.belief.space.terminal[s] or not agent.belief.space.allowed[s, a]:
            continue
        s2 = int(rng.choice(S, p=agent.belief.predictive(s, a)))
        agent.observe(s, a, float(rng.integers(2)), s2)
    return agent


STATISTICS = ("log_p", "p", "sums", "top")  # fields of beliefs that hold what was learned


def learned(belief):
    """All that a belief has learned, by name: statistics bit for bit (no scratch, logs or memos), predictives."""
    pairs = [(s, a) for s in range(belief.n_states) for a in range(belief.n_actions)]
    out = {f"predictive{pair}": belief.predictive(*pair) for pair in pairs}
    out |= {f"reward{pair}": np.array(belief.expected_reward(*pair)) for pair in pairs}
    return out | _statistics((belief.transitions, belief.rewards), "")


def _statistics(state, path):
    if hasattr(state, "pool"):
        used = [state.pool[start : start + size] for start, size, _, _ in state.rows]
        return {f"{path}.pool": np.concatenate(used), f"{path}.rows": state.rows.copy()}
    out = {}
    for name, part in zip(getattr(state, "_fields", range(len(state))), state):
        if isinstance(part, tuple):
            out |= _statistics(part, f"{path}.{name}")
        elif name in STATISTICS:
            out[f"{path}.{name}"] = np.array(part)
    return out


def check_promises(agent, state, tmp_path=None):
    """Planning leaves the belief alone, can be asked again, agrees with acting, and repeats under one seed."""
    belief = agent.belief
    before = learned(belief)
    stream = agent.rng.copy()
    plan = agent.plan(state)
    assert np.array_equal(agent.rng, stream)
    again = agent.plan(state)
    assert repr(plan) == repr(again)
    path = None
    if tmp_path is not None:
        path = tmp_path / "agent.npz"
        agent.save(path)
    assert agent.act(state) == plan.action
    after = learned(belief)
    assert before.keys() == after.keys()
    for name, array in before.items():
        np.testing.assert_array_equal(array, after[name], err_msg=name)
    assert belief.space.allowed[state, plan.action]
    assert [c.action for c in plan.candidates].count(plan.action) >= 1
    if path is not None:
        twin = bamdp.Agent.load(path)
        assert twin.planner == agent.planner
        assert twin.act(state) == plan.action
        assert [twin.act(state) for _ in range(3)] == [agent.act(state) for _ in range(3)]
    return plan
