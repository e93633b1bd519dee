"""What all tests share. With BAMDP_NO_SKIP set, as in CI, a test that is skipped has failed."""

from __future__ import annotations

import os

import pytest


def _refuse(report):
    if os.environ.get("BAMDP_NO_SKIP") and report.outcome == "skipped" and not hasattr(report, "wasxfail"):
        reason = report.longrepr[-1] if isinstance(report.longrepr, tuple) else report.longrepr
        report.outcome = "failed"
        report.longrepr = f"nothing may be skipped here: {reason}"
    return report


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    return _refuse((yield))


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector):
    return _refuse((yield))
