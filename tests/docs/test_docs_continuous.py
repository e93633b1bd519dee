"""The tables of the evidence for continuous states say what is in the file of runs."""

import importlib.util
from pathlib import Path

import pytest

HOOK = Path(__file__).resolve().parents[2] / "docs" / "hooks" / "continuous.py"
RUNS = """task,planner,variant,seed,solved,steps,returns,loss,ms
pendulum,thompson,,1,1,10,-100.0 -20.0,,30
pendulum,thompson,,2,1,20,-300.0 -40.0,,50
pendulum,thompson,,3,0,400,-500.0,,40
pendulum,thompson,refit=False,1,1,90,,,40
pendulum,thompson,,3,0,400,-500.0,,40
gain,dss,,1,1,4,-2,0.5,200
gain,dss,,2,1,4,-2,0.7,200
"""


@pytest.fixture
def tables(tmp_path, monkeypatch):
    spec = importlib.util.spec_from_file_location("continuous_tables", HOOK)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "DATA", tmp_path)
    assert "No runs" in module.on_page_markdown("::: continuous steps")
    header, *rows = RUNS.splitlines(keepends=True)
    (tmp_path / "continuous.csv").write_text("".join([header, *rows[:5]]))
    (tmp_path / "continuous-gain.csv").write_text("".join([header, *rows[4:]]))
    return lambda name: module.on_page_markdown(f"a\n\n::: continuous {name}\n").splitlines()[2:]


def test_steps_are_medians_over_all_seeds_and_returns_need_every_run(tables):
    assert tables("steps")[2:] == ["| Pendulum | thompson | 2 of 3 | 20 (15–210) | -300 ± 115 |  | 40 |"]
    assert tables("seeds")[2:] == ["| Pendulum | thompson | 10 20 (400) |"]


def test_losses_and_ablations_stand_beside_what_they_change(tables):
    assert tables("gain")[2:] == ["| dss | 2 | 0.60 ± 0.10 | 200 |"]
    assert tables("ablations")[2:] == [
        "| Pendulum | thompson | as it is | 2 of 3 | 20 (15–210) |",
        "| Pendulum | thompson | `refit=False` | 1 of 1 | 90 (90–90) |",
    ]
