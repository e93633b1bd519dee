"""The structure of each world, from its definition."""

from __future__ import annotations

import numpy as np
import pytest

from bamdp.envs import from_mdp, list_envs, maze_door_models
from bamdp.envs.classic import chain
from bamdp.envs.families import random_mdp
from bamdp.envs.grids import grid, maze, maze_door
from bamdp.mdp import FiniteMDP
from bamdp.registry import make_rewards

NAMES = [info.name for info in list_envs()]
MOVES = {0: (0, -1), 1: (1, 0), 2: (0, 1), 3: (-1, 0)}  # up, right, down, left with y down


def test_chain_slips_to_the_other_effect():
    mdp = chain(n_states=4, slip=0.3).mdp
    dense = mdp.dense()
    for s in range(4):
        np.testing.assert_allclose(dense[s, 1, [min(s + 1, 3), 0]], [0.7, 0.3])
        np.testing.assert_allclose(dense[s, 0, [min(s + 1, 3), 0]], [0.3, 0.7])


def test_chain_pays_actions_or_effects():
    by_action, by_effect = chain().rewards, chain(rewards="effect").rewards
    assert by_action[:, 0].tolist() == [0.2] * 5
    assert by_action[:, 1].tolist() == [0, 0, 0, 0, 1.0]
    assert by_effect.shape == (5, 2, 5)
    assert (by_effect[:, :, 0] == 0.2).all()
    assert (by_effect[4, :, 4] == 1.0).all()
    assert by_effect.sum() == pytest.approx(10 * 0.2 + 2)


@pytest.mark.parametrize("size", [2, 5, 7])
def test_grid_moves_slips_and_resets(size):
    mdp = grid(size=size).mdp
    steps = ((0, 1), (1, 0), (0, -1), (-1, 0))
    expected = np.zeros((size * size, 4, size * size))
    for s in range(size * size - 1):
        for a in range(4):
            for direction, p in ((a, 0.8), ((a + 1) % 4, 0.1), ((a - 1) % 4, 0.1)):
                x, y = s // size + steps[direction][0], s % size + steps[direction][1]
                inside = 0 <= x < size and 0 <= y < size
                expected[s, a, x * size + y if inside else s] += p
    expected[-1, :, 0] = 1.0
    np.testing.assert_allclose(mdp.dense(), expected, rtol=0, atol=1e-12)
    assert (mdp.rewards[-1] == 1).all()
    assert mdp.rewards.sum() == 4


def maze_cells(env):
    layout = env.layout()
    return {s: tuple(map(int, place)) for s, place in enumerate(layout["positions"])}, layout


def test_maze_moves_bump_and_take_flags():
    env = maze()
    cells, layout = maze_cells(env)
    number = {(cell, s % 8): s for s, cell in cells.items()}
    flags = {(m["x"], m["y"]): m["bit"] for m in layout["marks"] if m["kind"] == "flag"}
    expected = np.zeros((264, 4, 264))
    for s, (x, y) in cells.items():
        for a in range(4):
            for direction, p in ((a, 0.9), ((a + 1) % 4, 0.05), ((a - 1) % 4, 0.05)):
                ahead = (x + MOVES[direction][0], y + MOVES[direction][1])
                cell = ahead if (ahead, 0) in number else (x, y)
                target = 0 if (x, y) == (6, 0) else number[cell, s % 8 | flags.get(cell, 0)]
                expected[s, a, target] += p
    np.testing.assert_allclose(env.mdp.dense(), expected, rtol=0, atol=1e-12)


def test_the_two_mazes_with_a_door_differ_only_at_the_door():
    open_door, closed_door = maze_door_models()
    assert open_door.n_states == closed_door.n_states == 17
    differ = np.argwhere(np.abs(open_door.dense() - closed_door.dense()).max(axis=2) > 0)
    # beside the doorway: in 4 all but left can lead right, in 11 all but right can lead left
    assert {tuple(pair) for pair in differ.tolist()} == {(4, 0), (4, 1), (4, 2), (11, 0), (11, 2), (11, 3)}
    assert closed_door.dense()[:, :, 6].sum() == closed_door.dense()[6, :, 6].sum()
    np.testing.assert_array_equal(open_door.rewards, closed_door.rewards)
    np.testing.assert_allclose(open_door.dense()[4, 1, [6, 3, 4]], [0.9, 0.05, 0.05])
    assert open_door.dense()[16, :, 0].tolist() == [1.0] * 4


def door_of(env):
    return {model: name for name, model in zip(("open", "closed"), maze_door_models())}[env.mdp]


def test_a_random_door_follows_the_seed_and_is_fair():
    env = maze_door()
    doors = []
    for seed in range(400):
        env.reset(seed=seed)
        doors.append(door_of(env))
        assert env.layout()["marks"][2]["kind"] == f"door_{doors[-1]}"
    assert abs(doors.count("open") - 200) < 62  # a fair door strays this far in 1 of 10^9 tests
    for seed in (0, 3, 8):
        env.reset(seed=seed)
        assert door_of(env) == doors[seed]


def test_random_mdp_draws_rows_from_either_prior():
    sizes = np.diff(random_mdp(n_states=60, n_actions=20, beta=2.0).mdp.rows.span, axis=1).ravel()
    weights = np.arange(1, 61) ** -2.0
    singles = weights[0] / weights.sum()
    spread = (singles * (1 - singles) / sizes.size) ** 0.5
    assert abs(np.mean(sizes == 1) - singles) < 5 * spread  # fails by chance in 1 of 10^6
    flat = random_mdp(n_states=30, n_actions=5, prior="flat", alpha=1.0).mdp.dense()
    assert (flat > 0).all()
    assert flat.std() == pytest.approx((29 / 30**2 / 31) ** 0.5, rel=0.1)


def test_noisy_rewards_have_the_means_of_the_model():
    swap = FiniteMDP(np.array([[[0.0, 1.0]], [[1.0, 0.0]]]), np.array([[0.25], [0.75]]))
    for noise, deviation in (
        (0.5, 0.5),
        ("bernoulli", np.sqrt(0.25 * 0.75)),
        (lambda mean, u: mean + u - 0.5, 12**-0.5),
    ):
        env = from_mdp(swap, noise=noise)
        assert env.stochastic_rewards
        env.reset(seed=0)
        drawn = np.array([env.step(0)[1] for _ in range(20_000)]).reshape(-1, 2)
        # 10 000 rewards of each: five standard errors, and of the deviation about ten
        assert np.allclose(drawn.mean(axis=0), [0.25, 0.75], atol=5 * deviation / 100)
        assert np.allclose(drawn.std(axis=0), deviation, atol=0.06 * deviation)
        assert type(make_rewards(None, env)).__name__ == (
            "BetaBernoulli" if noise == "bernoulli" else "HierarchicalNormal"
        )
    assert not from_mdp(swap).stochastic_rewards
    for wrong in (-1.0, "normal"):
        with pytest.raises((TypeError, ValueError), match="noise must be"):
            from_mdp(swap, noise=wrong)
    with pytest.raises(ValueError, match="means from 0 to 1"):
        from_mdp(FiniteMDP(np.ones((1, 1, 1)), [2.0]), noise="bernoulli")
