"""A folder with a small study in it."""

from __future__ import annotations

import pytest
from lab_calls import STUDY


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s.toml").write_text(STUDY)
    return tmp_path
