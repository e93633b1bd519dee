"""How every hot function of the package is compiled, chosen by type, and cached.

Three decisions live here and nowhere else.

**Compiling.** :func:`kernel` is ``numba.njit`` without Numba's runtime (``_nrt=False``): no allocation and no
reference counting inside, so a kernel only reads and writes the arrays that it is given. Taking an array out
of a NamedTuple is then free (with reference counts one simulated belief step costs ten times more).

**Choosing.** :func:`generic` makes a function whose implementation depends on the NamedTuple class of its
first argument. One registry serves the compiler (``numba.extending.overload``) and plain Python, so the same
source runs, and can be stepped through, with ``NUMBA_DISABLE_JIT=1``.

**Caching.** Numba's disk cache looks only at the file that defines a function, not at the files that it
calls, and numbers its data files through an index that two processes can race for. :class:`_CacheFile`
names each file by the hash of the signature, the machine and *all* sources that kernels come from, keeps no
index, and checks the key when it loads. Functions registered from outside add their own source to the key
(:func:`generic` calls :func:`add_source`).
"""

from __future__ import annotations

import functools
import hashlib
import inspect
import os
import pickle
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import numba
from numba.core import event
from numba.core.caching import IndexDataCacheFile
from numba.extending import overload

F = TypeVar("F", bound=Callable[..., Any])

JIT = not numba.config.DISABLE_JIT  # type: ignore[attr-defined]
OPTIONS: dict[str, Any] = {"_nrt": False, "error_model": "numpy"}
INLINED: dict[str, Any] = {**OPTIONS, "forceinline": True}

_PACKAGE = Path(__file__).resolve().parent.parent
_ABOVE = {"__main__.py", "ceilings.py", "cli", "figures.py", "lab", "registry.py", "runs.py", "studio"}
_extra_sources: list[str] = []


@functools.cache
def package_stamp() -> str:
    """A digest of every source file that a kernel may come from (its path, size and time of change)."""
    digest = hashlib.sha256()
    for path in sorted(_PACKAGE.rglob("*.py")):
        place = path.relative_to(_PACKAGE)
        if place.parts[0] in _ABOVE:
            continue  # rooms above the agent's have no kernels
        info = path.stat()
        digest.update(f"{place}:{info.st_size}:{info.st_mtime_ns};".encode())
    return digest.hexdigest()


def add_source(function: Callable[..., Any]) -> None:
    """Let the cache know of a function defined outside the package that our kernels will call."""
    path = inspect.getsourcefile(function)
    if path is not None and _PACKAGE in Path(path).resolve().parents:
        return
    try:
        text = inspect.getsource(inspect.getmodule(function) or function)
    except (OSError, TypeError):  # defined at a prompt: no file to read, so no two processes share it
        text = f"{os.getpid()}:{function!r}"
    _extra_sources.append(hashlib.sha256(text.encode()).hexdigest())


class _CacheFile(IndexDataCacheFile):
    """Numba's cache file without its index: one file a signature, named by what determines its content."""

    def _path(self, key: Any) -> str:
        what = repr((self._version, self._source_stamp, package_stamp(), sorted(_extra_sources), key))
        number = hashlib.sha256(what.encode()).hexdigest()[:20]
        return self._data_path(self._data_name_pattern.replace("{number:d}", number))

    def save(self, key: Any, data: Any) -> None:
        with self._open_for_write(self._path(key)) as file:
            file.write(self._dump((key, data)))

    def load(self, key: Any) -> Any:
        try:
            with open(self._path(key), "rb") as file:
                stored, data = pickle.loads(file.read())
        except (OSError, EOFError, pickle.UnpicklingError):
            return None
        return data if stored == key else None

    def flush(self) -> None:
        """Nothing to forget: a changed source has another name."""


def kernel(function: F) -> F:
    """Compile ``function`` at its first call and keep the result on disk."""
    return _compiled(function, OPTIONS)


def primitive(function: F) -> F:
    """A small kernel that is always inlined: a NamedTuple argument then costs nothing.

    Passed to a real call it is copied field by field, some hundred words for a belief.
    """
    return _compiled(function, INLINED)


def _compiled(function: F, options: dict[str, Any]) -> F:
    dispatcher = numba.njit(cache=True, **options)(function)
    if JIT:
        cache = dispatcher._cache
        base = cache._impl.filename_base
        cache._cache_file = _CacheFile(cache.cache_path, base, cache._impl.locator.get_source_stamp())
    return dispatcher


def generic(stub: Callable[..., Any]) -> Any:
    """A function chosen by the class of its first argument.

    ``stub`` gives the signature and the docstring; ``@stub.register(Class)`` adds an implementation, which
    is ordinary Python in the subset that Numba compiles.
    """
    table: dict[type, Callable[..., Any]] = {}

    @functools.wraps(stub)
    def call(*args: Any) -> Any:
        return table[type(args[0])](*args)

    def choose(*args: Any) -> Callable[..., Any] | None:
        return table.get(getattr(args[0], "instance_class", None))  # type: ignore[arg-type]

    def register(cls: type) -> Callable[[F], F]:
        def add(function: F) -> F:
            add_source(function)
            table[cls] = function
            return function

        return add

    choose.__signature__ = inspect.signature(stub)  # type: ignore[attr-defined]
    overload(call, strict=False, jit_options=INLINED)(choose)  # type: ignore[arg-type]
    call.register = register  # type: ignore[attr-defined]
    call.table = table  # type: ignore[attr-defined]
    return call


@contextmanager
def on_first_compile(tell: Callable[[], None]) -> Iterator[None]:
    """Call ``tell`` once if anything has to be compiled inside the block."""

    class Listener(event.Listener):
        told = False

        def on_start(self, event: Any) -> None:
            if not self.told:
                self.told = True
                tell()

        def on_end(self, event: Any) -> None:
            pass

    with event.install_listener("numba:compile", Listener()):
        yield
