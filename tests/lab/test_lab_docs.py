"""What docs/laboratory.md shows works."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from bamdp.cli import make_parser
from bamdp.lab.reading import (
    ENVIRONMENT_KEYS,
    QUICK_CUTS,
    STUDY_KEYS,
    TUNING_KEYS,
    parse_study,
)

DOCS = Path(__file__).resolve().parents[2] / "docs"
TEXT = (DOCS / "laboratory.md").read_text()


def blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", TEXT, flags=re.S)


@pytest.mark.parametrize("block", blocks("toml"))
def test_every_study_is_one(block):
    study = parse_study(block)
    assert study.cells
    parse_study(block, quick=True)


def test_there_are_studies_of_every_kind():
    methods = [study.tuning and study.tuning.method for study in map(parse_study, blocks("toml"))]
    assert set(methods) == {None, "grid", "halving"}


def test_every_command_is_understood():
    joined = TEXT.replace("\\\n", " ")  # a command may go on in the next line
    commands = [line.strip() for line in joined.splitlines() if line.startswith("    bamdp ")]
    assert len(commands) >= 10
    for command in commands:
        words = shlex.split(command, comments=True)[1:]
        make_parser().parse_args(words)


def test_the_python_code_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (code,) = [block for block in blocks("python") if "jobqueue" not in block]
    exec(compile(code, "laboratory.md", "exec"), {})
    assert "q-learning" in capsys.readouterr().out


def test_every_key_is_explained():
    for key in (*STUDY_KEYS, *ENVIRONMENT_KEYS, *TUNING_KEYS, *QUICK_CUTS):
        assert f"`{key}`" in TEXT, key


def test_links_lead_somewhere():
    links = re.findall(r"\]\(([^)#:]+)\)", TEXT)
    assert links
    assert [link for link in links if not (DOCS / link).exists()] == []
