"""Agents that cannot fit are refused before anything is allocated."""

from __future__ import annotations

import pytest

import bamdp


def test_an_agent_that_cannot_fit_is_refused_with_its_size(monkeypatch):
    monkeypatch.setenv("BAMDP_MAX_MEMORY", "1G")
    with pytest.raises(
        ValueError, match=r"an agent for 10000000 states and 4 actions would need about 15 GiB"
    ):
        bamdp.Agent(
            bamdp.Random(), prior=bamdp.Dirichlet(), rewards=[0.0], n_states=10**7, n_actions=4, discount=0.9
        )
    with pytest.raises(ValueError, match=r"n_models=1000000000 would need"):
        bamdp.Agent(
            bamdp.BOSS(n_models=10**9),
            prior=bamdp.Dirichlet(),
            rewards=[0.0],
            n_states=9,
            n_actions=2,
            discount=0.9,
        )
