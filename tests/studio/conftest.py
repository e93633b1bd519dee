"""A studio that runs, for tests that talk to it."""

from __future__ import annotations

import pytest
from studio_server import running


@pytest.fixture(scope="session")
def studio():
    """Its address, e.g. ``http://127.0.0.1:40001``."""
    with running() as address:
        yield address
