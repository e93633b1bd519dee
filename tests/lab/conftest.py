"""What several tests of the laboratory need."""

from __future__ import annotations

import pytest

from bamdp.lab.store import Store


@pytest.fixture
def store(tmp_path):
    """A store without runs."""
    with Store(tmp_path / "s.sqlite") as opened:
        yield opened
