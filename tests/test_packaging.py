"""What holds the package together: versions, the README's code, the wheel."""

from __future__ import annotations

import doctest
import importlib.util
import os
import re
import subprocess
import sys
import tomllib
import venv
import zipfile
from functools import partial
from pathlib import Path

import pytest

import bamdp

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def blocks(language):
    """The README's code blocks in a language."""
    text = (ROOT / "README.md").read_text()
    return re.findall(rf"```{language}\n(.*?)```", text, flags=re.S)


def test_versions_agree():
    cited = re.search(r"^version: (.+)$", (ROOT / "CITATION.cff").read_text(), flags=re.M)
    assert cited is not None
    assert PROJECT["project"]["version"] == bamdp.__version__ == cited[1]


def test_every_public_name_is_there():
    assert [name for name in bamdp.__all__ if not hasattr(bamdp, name)] == []
    assert sorted(set(bamdp.__all__)) == sorted(bamdp.__all__)


def test_constraints_are_names_and_versions_of_all_that_is_needed():
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    assert all(re.fullmatch(r"[A-Za-z0-9_.-]+==[A-Za-z0-9_.]+", line) for line in lines)
    pinned = {line.partition("==")[0].lower().replace("_", "-") for line in lines}
    wanted = PROJECT["project"]["dependencies"] + PROJECT["project"]["optional-dependencies"]["dev"]
    assert {re.match(r"[a-z0-9-]+", line)[0] for line in wanted} <= pinned


def test_the_readme_code_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code = blocks("python")
    assert code
    for block in code:
        exec(compile(block, "README.md", "exec"), {})


def test_the_readme_links_to_files_that_exist():
    links = re.findall(r"\]\(([^)#:]+)\)", (ROOT / "README.md").read_text())
    assert links
    assert [link for link in links if not (ROOT / link).exists()] == []


def test_dir_has_what_is_public_and_nothing_else():
    plain = {name for name in dir(bamdp) if not name.startswith("_")}
    assert plain == {name for name in bamdp.__all__ if not name.startswith("_")}
    assert bamdp.gym.Discretize  # is imported when it is asked for
    with pytest.raises(AttributeError, match="no attribute 'Any'"):
        _ = bamdp.Any


def test_the_long_description_has_whole_addresses():
    spec = importlib.util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    hook = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(hook)
    assert doctest.testmod(hook).failed == 0
    text = hook.long_description((ROOT / "README.md").read_text(), "https://example.org/bamdp")
    assert "(https://example.org/bamdp/raw/main/docs/images/cookbook.png)" in text
    relative = re.findall(r"\]\((?!https?:|#|mailto:)([^)]+)\)", text)
    assert relative == []


def test_importing_the_package_does_not_import_what_is_slow_and_seldom_needed():
    slow = ("scipy.special", "scipy.sparse", "matplotlib", "rich", "joblib", "gymnasium")
    code = f"import sys, bamdp; print([name for name in {slow} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_modules_that_the_compile_cache_does_not_watch_have_no_kernels():
    from bamdp._kernels import jit

    package = Path(bamdp.__file__).parent
    places = {path: path.relative_to(package) for path in package.rglob("*.py")}
    unwatched = [path for path, place in places.items() if place.parts[0] not in jit.LAYERS]
    assert len(unwatched) >= 10
    words = re.compile(r"^@(kernel|primitive|generic)|njit", flags=re.M)
    assert [path.name for path in unwatched if words.search(path.read_text())] == []


PICTURE = """
import bamdp
run = bamdp.simulate(bamdp.Agent.for_env("chain", "thompson", seed=0), "chain", steps=50, seed=0)
run.plot().figure.savefig("run.png")
print(bamdp.__file__)
"""


@pytest.mark.slow
def test_the_wheel_is_installed_and_used_without_the_repository(tmp_path):
    build = [sys.executable, "-m", "build", "--no-isolation", "--wheel", "--outdir", tmp_path, ROOT]
    address = {**os.environ, "BAMDP_PROJECT_URL": "https://example.org/bamdp"}
    subprocess.run(build, check=True, capture_output=True, env=address)
    wheel = next(tmp_path.glob("*.whl"))
    with zipfile.ZipFile(wheel) as archive:
        metadata = archive.read(next(n for n in archive.namelist() if n.endswith("METADATA"))).decode()
    assert "Project-URL: Homepage, https://example.org/bamdp" in metadata
    venv.create(tmp_path / "env", with_pip=True)
    run = partial(
        subprocess.run, check=True, capture_output=True, text=True, cwd=tmp_path, env={"PATH": os.defpath}
    )
    programs = tmp_path / "env" / "bin"
    run([programs / "pip", "install", "--quiet", "-c", ROOT / "constraints.txt", wheel])
    done = run(
        [programs / "bamdp", "run", "chain", "thompson", "--steps", "20", "--runs", "2", "--figure", "it.png"]
    )
    assert "optimum" in done.stdout
    assert str(tmp_path) in run([programs / "python", "-c", PICTURE]).stdout
    for name in ("it.png", "run.png"):
        assert (tmp_path / name).read_bytes().startswith(b"\x89PNG")
