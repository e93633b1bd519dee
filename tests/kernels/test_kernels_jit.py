"""Compiling, choosing and caching, each in a private copy of the package and in processes of their own."""

import importlib
import os
import pkgutil
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

import numba
import numpy as np
import pytest

import bamdp
from bamdp._kernels import jit, numba_internals
from bamdp._kernels.random import gamma_above_one, new_rng

CALLEE = """
from bamdp._kernels.jit import primitive

@primitive
def step(x):
    return x + {amount}
"""
CALLER = """
from typing import NamedTuple
import numpy as np
from bamdp._kernels.jit import JIT, generic, kernel, on_first_compile
from bamdp.beliefs.callee import step

class Cat(NamedTuple):
    lives: np.ndarray

class Dog(NamedTuple):
    bones: np.ndarray
    extra: int

@generic
def worth(T, x):
    "What it is worth."

@worth.register(Cat)
def _cat(T, x):
    return T.lives[0] * x

@worth.register(Dog)
def _dog(T, x):
    return step(T.bones[0] + T.extra) * x

@kernel
def total(T, x):
    return worth(T, x) + 1.0

@kernel
def walk(x):
    for _ in range(10):
        x = step(x)
    return x
"""
MAIN = """
import numpy as np
from bamdp.planners.caller import JIT, Cat, Dog, on_first_compile, total, walk
told = []
with on_first_compile(lambda: told.append(1)):
    print(walk(0.0))
    print(total(Cat(np.array([9.0])), 2.0), total(Dog(np.array([4.0]), 3), 2.0))
    print(walk(1.0))
hits = sum(sum(f.stats.cache_hits.values()) for f in (walk, total)) if JIT else 0
misses = sum(sum(f.stats.cache_misses.values()) for f in (walk, total)) if JIT else 0
print(len(told), hits, misses)
"""
RIGHT = ["10.0", "19.0 17.0", "11.0"]


@pytest.fixture
def package(tmp_path):
    """A copy of the kernels under another root, without what is slow to import."""
    source = Path(bamdp.__file__).parent
    target = tmp_path / "bamdp"
    shutil.copytree(source / "_kernels", target / "_kernels", ignore=shutil.ignore_patterns("__pycache__"))
    for layer in ("beliefs", "planners"):
        (target / layer).mkdir()
        (target / layer / "__init__.py").write_text("")
    (target / "__init__.py").write_text("")
    (target / "beliefs" / "callee.py").write_text(CALLEE.format(amount=1.0))
    (target / "planners" / "caller.py").write_text(CALLER)
    return target


def start(package, code=MAIN, **env):
    keep = {k: v for k, v in os.environ.items() if not k.startswith(("NUMBA", "PYTHONPATH"))}
    env = {**keep, "PYTHONPATH": str(package.parent), "PYTHONDONTWRITEBYTECODE": "1", **env}
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-c", code],
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(process):
    out, error = process.communicate(timeout=120)
    assert process.returncode == 0, error
    *results, counts = out.splitlines()
    return results, tuple(int(x) for x in counts.split())


def run(package, **env):
    return finish(start(package, **env))


def test_the_first_process_compiles_and_says_so_once_and_the_next_loads(package):
    assert run(package) == (RIGHT, (1, 0, 3))
    assert run(package) == (RIGHT, (0, 3, 0))


def test_editing_a_file_that_is_only_called_is_never_missed(package):
    run(package)
    time.sleep(0.01)
    (package / "beliefs" / "callee.py").write_text(CALLEE.format(amount=2.0))
    changed = ["20.0", "19.0 19.0", "21.0"]
    assert run(package) == (changed, (1, 0, 3))
    (package / "mdp").mkdir()
    (package / "mdp" / "another.py").write_text("")  # a new file may be called one day
    assert run(package) == (changed, (1, 0, 3))
    (package / "cli.py").write_text("")  # but not this one
    assert run(package) == (changed, (0, 3, 0))


def test_processes_that_compile_at_the_same_time_do_not_harm_each_other(package):
    together = [start(package) for _ in range(3)]
    for process in together:
        assert finish(process)[0] == RIGHT
    assert run(package) == (RIGHT, (0, 3, 0))


def test_damaged_cache_files_are_compiled_anew(package):
    run(package)
    files = sorted(package.rglob("*.nbc"))
    assert len(files) >= 3
    for i, file in enumerate(files):
        content = file.read_bytes()
        half = content[: len(content) // 2]
        file.write_bytes((b"", half, b"\x00not a pickle" + half)[i % 3])
    assert run(package) == (RIGHT, (1, 0, 3))
    assert run(package) == (RIGHT, (0, 3, 0))


def test_without_the_compiler_the_same_sources_run_and_nothing_is_cached(package):
    assert run(package, NUMBA_DISABLE_JIT="1") == (RIGHT, (0, 0, 0))
    assert not list(package.rglob("*.nbc"))


OUTSIDE = """
import sys
from pathlib import Path
from typing import NamedTuple
import numpy as np
from bamdp.planners.caller import on_first_compile, total, worth
sys.path.insert(0, {folder!r})
import mine
told = []
with on_first_compile(lambda: told.append(1)):
    print(total(mine.Bird(np.array([1.0])), 3.0))
print(len(told), 0, 0)
"""
MINE = """
from typing import NamedTuple
import numpy as np
from bamdp.planners.caller import worth

class Bird(NamedTuple):
    eggs: np.ndarray

@worth.register(Bird)
def bird(T, x):
    return T.eggs[0] * x * {amount}
"""


def test_an_implementation_registered_from_outside_is_part_of_the_key(package, tmp_path):
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    for amount, want, told in ((1.0, "4.0", 1), (1.0, "4.0", 0), (5.0, "16.0", 1)):
        (folder / "mine.py").write_text(MINE.format(amount=amount))
        process = start(package, OUTSIDE.format(folder=str(folder)))
        assert finish(process) == ([want], (told, 0, 0))


def layer_of(module):
    """Where a module stands: the place of its layer, counted from below."""
    parts = module.split(".")
    assert parts[0] == "bamdp", module
    assert parts[1] in jit.LAYERS, f"{module} has compiled code, but the cache's key does not know its layer"
    return jit.LAYERS.index(parts[1])


def compiled_code():
    """(module, name, value) of everything in the package that the compiler meets."""
    for info in pkgutil.walk_packages(bamdp.__path__, "bamdp."):
        if info.name == "bamdp.__main__":
            continue
        module = importlib.import_module(info.name)
        for name, value in vars(module).items():
            if getattr(value, "__module__", None) == info.name:
                yield info.name, name, value


def test_every_kernel_is_in_a_layer_that_the_cache_key_covers():
    """And implementations of a generic function stand no higher than its stub, whose callers' keys cover that."""
    kernels = 0
    for module, _, value in compiled_code():
        if hasattr(value, "py_func"):
            kernels += 1
            layer_of(module)
        for implementation in getattr(value, "table", {}).values() if hasattr(value, "register") else ():
            if implementation.__module__.startswith("bamdp."):
                assert layer_of(implementation.__module__) <= layer_of(module)
    assert kernels > 50 or not jit.JIT


class Herd(NamedTuple):
    cats: np.ndarray


def graze(herd, n):
    total = 0.0
    for i in range(n):
        total += herd.cats[i]
    return total


@pytest.mark.skipif(not jit.JIT, reason="nothing is compiled")
def test_compiled_kernels_count_no_references():
    """``_nrt=False`` is private to Numba: should it fail, planning would be slow without a word."""
    assert numba_internals.KERNEL_OPTIONS["_nrt"] is False
    assert numba_internals.PRIMITIVE_OPTIONS["_nrt"] is False
    herd = Herd(np.ones(4))
    text = {}
    for runtime in (True, False):
        compiled = numba.njit(**{**numba_internals.KERNEL_OPTIONS, "_nrt": runtime})(graze)
        assert compiled(herd, 4) == 4.0
        text[runtime] = "".join(compiled.inspect_llvm().values())
    assert "NRT_incref" in text[True] or "NRT_decref" in text[True]
    assert "NRT_" not in text[False]
    assert gamma_above_one.targetoptions["_nrt"] is False


def test_a_primitive_can_be_called_from_python_too():
    assert gamma_above_one(new_rng(1), 2.5) == gamma_above_one.py_func(new_rng(1), 2.5)


ANNOUNCED = """
import logging
from bamdp.planners.caller import on_first_compile, walk, total, Cat
import numba, numpy as np
lines = []
handler = logging.Handler()
handler.emit = lambda record: lines.append(record.getMessage())
logging.getLogger("bamdp").addHandler(handler)
numba.njit(lambda x: x + 1)(1)  # somebody else's function
with on_first_compile(lambda: None):
    total(Cat(np.array([9.0])), 2.0)
before = len(lines)
walk(0.0)  # compiles several functions
total(Cat(np.array([9.0])), np.float32(2.0))
print(before, len(lines), lines[0])
"""


def test_compiling_is_logged_once_in_a_process_unless_a_listener_is_called(package):
    out, error = start(package, ANNOUNCED).communicate(timeout=120)
    assert out == f"0 1 {jit.COMPILING}\n", error
    again, error = start(package, ANNOUNCED.replace("lines[0]", "")).communicate(timeout=120)
    assert again.split() == ["0"] * 2, error  # all of it is on disk


def test_without_a_handler_the_announcement_is_on_standard_error(package):
    _, error = start(package, "from bamdp.planners.caller import walk; walk(0.0)").communicate(timeout=120)
    assert error == f"{jit.COMPILING}\n"
