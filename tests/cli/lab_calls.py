"""A small study, and the laboratory's commands as functions."""

from __future__ import annotations

import json

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
[quick]
runs = 2
steps = 10
"""


def call(capsys, command, status=0):
    assert main(command.split()) == status
    return capsys.readouterr()


def call_json(capsys, command):
    return json.loads(call(capsys, f"{command} --json").out)
