"""The research pages are what the exported runs say."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import numpy as np
import pytest

from bamdp.envs import make_env

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def pages(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "paper"))
    import pages

    yield pages
    for name in ("pages", "figures", "exports", "seas"):
        sys.modules.pop(name, None)


@pytest.mark.parametrize(
    "page", ["deep-sea", *(pytest.param(p, marks=pytest.mark.slow) for p in ("evidence", "reproduction"))]
)
def test_a_page_is_made_of_the_exported_runs(pages, page):
    text = (ROOT / "docs" / f"{page}.md").read_text()
    assert set(pages.PAGES[page]) == {name for _, name, _ in pages.MARK.findall(text)}
    assert pages.filled(page, text) == text


def test_an_export_has_every_run_with_its_reward_at_every_step(pages):
    found = pages.read_export(ROOT / "results/dss2020/published.runs.xz")
    runs = found.runs[(found.runs.environment == "chain") & (found.runs.algorithm == "dss-pi")]
    assert len(runs) == 100
    assert np.allclose(pages.rewards(runs).sum(axis=1), runs.total)
    assert found.ceilings["chain"].optimum == pytest.approx(408.35, abs=0.01)


@pytest.mark.parametrize("name", ["deep_sea", "deep_sea_stochastic"])
def test_bad_episodes_are_counted_from_rewards_as_bsuite_counts_them(pages, name):
    from seas import bad_episodes

    env, seed = make_env(name, size=6), np.random.SeedSequence(3)
    rng = np.random.default_rng(1)
    states, actions, rewards = [env.reset(seed=seed)], [], []
    for _ in range(600):
        actions.append(int(rng.integers(2)))
        state, reward, ended = env.step(actions[-1])
        rewards.append(reward)
        states.append(env.reset() if ended else state)
    want = env.bad_episodes(np.array(states[:-1]), np.array(actions))
    found = bad_episodes(np.array(rewards), 6, seed if env.stochastic_rewards else None)
    assert np.array_equal(found, want)


def test_pages_have_their_figures():
    for page in ("reproduction", "evidence", "deep-sea"):
        text = (ROOT / "docs" / f"{page}.md").read_text()
        assert all((ROOT / "docs" / path).exists() for path in re.findall(r"\((images/[^)]+)\)", text))
