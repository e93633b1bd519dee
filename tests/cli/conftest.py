"""A folder with a small study in it, and commands as functions."""

from __future__ import annotations

import json

import pytest

from bamdp.cli import main

STUDY = """
title = "A small study"
environments = ["chain"]
steps = 40
runs = 3
[algorithms.random]
[algorithms.q-learning]
epsilon = [0.1, 0.3]
[tuning]
runs = 2
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s.toml").write_text(STUDY)
    return tmp_path


@pytest.fixture
def call(capsys):
    """Runs a command, checks its status and returns what it printed."""

    def run(command, status=0):
        assert main(command.split()) == status
        return capsys.readouterr()

    return run


@pytest.fixture
def call_json(call):
    return lambda command: json.loads(call(f"{command} --json").out)
