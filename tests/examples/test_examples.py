"""The examples run, print what they promise, and are in the guide."""

import importlib.util
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
NUMBER = r"(-?\d+\.?\d*)"


def printed(name, capsys):
    """What an example prints, imported as a module so that what it compiles is kept."""
    path = ROOT / "examples" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(f"example_{name}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.main()
    return capsys.readouterr().out


def numbers(pattern, text):
    return [float(x) for x in re.search(pattern.replace("#", NUMBER), text).groups()]


def test_the_documentation_names_every_example():
    text = "".join(page.read_text() for page in (ROOT / "docs").glob("*.md"))
    assert EXAMPLES
    assert [path.name for path in EXAMPLES if f"examples/{path.name}" not in text] == []


def test_a_matrix(capsys):
    out = printed("own_matrix", capsys)
    assert "['run', 'service', 'service']" in out
    found, ceiling = numbers(r"learning it: # in 1000 steps, of #", out)
    assert 0.9 * ceiling < found < 1.1 * ceiling


def test_a_function(capsys):
    out = printed("own_function", capsys)
    assert numbers("ThompsonSampling: #", out)[0] > numbers("Random: #", out)[0] + 0.05


def test_a_gymnasium_environment(capsys):
    out = printed("own_gym", capsys)
    assert numbers("# treasures", out)[0] > 200
    assert numbers("on average: #", out)[0] < 6.0


def test_a_prior(capsys):
    out = printed("own_prior", capsys)
    assert numbers("Neighbours: #", out)[0] > numbers("Dirichlet: #", out)[0]


def test_a_generator(capsys):
    out = printed("own_generator", capsys)
    assert numbers("nearsighted: #", out)[0] == pytest.approx(numbers("compiled: #", out)[0], rel=0.3)
    assert numbers("pi: #", out)[0] > 0.0


def test_saving_and_resuming(capsys):
    out = printed("save_and_resume", capsys)
    assert "the same run: True" in out
    assert "by now: 1000" in out


def test_a_time_budget(capsys):
    out = printed("time_budget", capsys)
    assert numbers("simulations per plan: #", out)[0] >= 16
    assert "reproducible: False" in out
