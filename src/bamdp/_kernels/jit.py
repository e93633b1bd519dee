"""How every hot function of the package is compiled, chosen by type, and cached.

Four decisions live here and nowhere else.

**Compiling.** :func:`kernel` is ``numba.njit`` without Numba's runtime (``_nrt=False``): no allocation and no
reference counting inside, so a kernel only reads and writes the arrays that it is given. Taking an array out
of a NamedTuple is then free (with reference counts one simulated belief step costs ten times more).

**Choosing.** :func:`generic` makes a function whose implementation depends on the NamedTuple class of its
first argument. One registry serves the compiler (``numba.extending.overload``) and plain Python, so the same
source runs, and can be stepped through, with ``NUMBA_DISABLE_JIT=1``.

**Caching.** Numba's disk cache looks only at the file that defines a function, not at the files that it
calls, and numbers its data files through an index that two processes can race for. :class:`_CacheFile`
names each file by the hash of the signature, the machine and *all* sources that it may call, keeps no
index, and checks the key when it loads. Functions registered from outside add their own source to the key
(:func:`generic` calls :func:`add_source`).

**Calling.** At a call from Python, Numba reads the types of all arrays in all NamedTuples, which takes longer than
some planning steps; :class:`Calls` reads them once.
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
import numpy as np
from numba.core import event
from numba.core.caching import IndexDataCacheFile
from numba.core.registry import CPUDispatcher
from numba.extending import overload

F = TypeVar("F", bound=Callable[..., Any])

JIT = not numba.config.DISABLE_JIT  # type: ignore[attr-defined]
OPTIONS: dict[str, Any] = {"_nrt": False, "error_model": "numpy", "no_cfunc_wrapper": True}
INNER: dict[str, Any] = {**OPTIONS, "no_cpython_wrapper": True}
INLINED: dict[str, Any] = {**INNER, "forceinline": True}

_PACKAGE = Path(__file__).resolve().parent.parent
ROOMS = ("_kernels", "mdp", "beliefs", "generators", "planners")  # those with kernels, lowest first
_extra_sources: list[str] = []


@functools.cache
def package_stamp(module: str) -> str:
    """A digest of the sources that a kernel of ``module`` may call (their paths, sizes, times of change).

    Imports point downwards only (an import contract sees to it), so these are the rooms up to its own; for a
    module elsewhere, all of them.
    """
    parts = module.split(".")
    own = parts[1] if len(parts) > 1 else ""
    rooms = ROOMS[: ROOMS.index(own) + 1] if own in ROOMS else ROOMS
    digest = hashlib.sha256()
    for room in rooms:
        for path in sorted((_PACKAGE / room).rglob("*.py")):
            info = path.stat()
            digest.update(f"{path.relative_to(_PACKAGE)}:{info.st_size}:{info.st_mtime_ns};".encode())
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


def _digest(*parts: Any) -> str:
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:20]


class _CacheFile(IndexDataCacheFile):
    """Numba's cache file without its index: one file a signature, named by what determines its content."""

    module: str  # that the cached function is defined in

    def _path(self, key: Any) -> Path:
        """``<function>.<digest of our sources>.<digest of signature, machine and others' sources>.nbc``."""
        sources = _digest(self._version, self._source_stamp, package_stamp(self.module))
        name = self._data_name_pattern.replace(
            "{number:d}", f"{sources}.{_digest(sorted(_extra_sources), key)}"
        )
        return Path(self._data_path(name))

    def save(self, key: Any, data: Any) -> None:
        path = self._path(key)
        with self._open_for_write(path) as file:
            file.write(self._dump((key, data)))
        function, sources = path.name.rsplit(".", 3)[:2]
        for other in path.parent.glob(f"{function}.*.*.nbc"):
            if other.name.rsplit(".", 3)[1] != sources:  # compiled from sources that are no more
                other.unlink(missing_ok=True)

    def load(self, key: Any) -> Any:
        try:
            with self._path(key).open("rb") as file:
                stored, data = pickle.loads(file.read())
        except Exception:  # a file that is not there, or damaged in whatever way: compile
            return None
        return data if stored == key else None

    def flush(self) -> None:
        """Nothing to forget: a changed source has another name."""


def kernel(function: F) -> F:
    """Compile ``function`` at its first call and keep the result on disk."""
    return _compiled(function, OPTIONS)


def inner(function: F) -> F:
    """A kernel that only kernels call: compiled without the part that makes it callable from Python.

    That part takes longer than a small kernel itself; see :class:`_Inner`.
    """
    return _without_wrapper(function, INNER)


def primitive(function: F) -> F:
    """An inner kernel that is always inlined: a NamedTuple argument then costs nothing.

    Passed to a real call it is copied field by field, some hundred words for a belief.
    """
    return _without_wrapper(function, INLINED)


def _without_wrapper(function: F, options: dict[str, Any]) -> F:
    made = _compiled(function, options)
    if JIT:
        made.__class__ = _Inner  # type: ignore[assignment]
    return made


class _Inner(CPUDispatcher):
    """A dispatcher for kernels. Called from Python, as tests do, it compiles a kernel of the same function."""

    def __call__(self, *args: Any) -> Any:
        return _callable(self.py_func)(*args)


@functools.cache
def _callable(function: Callable[..., Any]) -> Any:
    return numba.njit(**OPTIONS)(function)


def _compiled(function: F, options: dict[str, Any]) -> F:
    dispatcher = numba.njit(cache=True, **options)(function)
    if JIT:
        cache = dispatcher._cache
        base = cache._impl.filename_base
        cache._cache_file = _CacheFile(cache.cache_path, base, cache._impl.locator.get_source_stamp())
        cache._cache_file.module = function.__module__
    return dispatcher


def _compiled_for(dispatcher: Any, args: tuple[Any, ...]) -> Any:
    """What Numba has just called with ``args``; None if it converted one of them."""
    if len(dispatcher.overloads) == 1:
        return next(iter(dispatcher.overloads.values()))
    return dispatcher.overloads.get(tuple(map(dispatcher.typeof_pyval, args)))


def _alike(x: Any, y: Any) -> bool:
    """Whether two arguments have one type in Numba's eyes for certain."""
    if x is y:
        return True
    kind = type(x)
    if kind is not type(y):
        return False
    if kind is np.ndarray:
        return x.dtype is y.dtype and x.ndim == y.ndim and x.flags.num == y.flags.num
    return kind in NUMBERS or (isinstance(x, tuple) and len(x) == len(y) and all(map(_alike, x, y)))


NUMBERS = frozenset({int, float, bool, np.int64, np.float64})


class Calls:
    """Calls of kernels with the same objects again and again, as one agent makes them.

    Numba finds the compiled code by looking at every array inside every argument, some 10 µs for a belief and a
    solver, of which calling is less than 1. Here it looks only if an argument may have another type than the last
    time. The arguments of the last call to each kernel are kept alive.
    """

    def __init__(self) -> None:
        self._last: dict[Any, tuple[Callable[..., Any], tuple[Any, ...]]] = {}
        self._derived: dict[Callable[[Any], Any], tuple[Any, Any]] = {}

    def __call__(self, function: Callable[..., Any], *args: Any) -> Any:
        last = self._last.get(function)
        if last is not None:
            entry, before = last
            same = True
            for x, y in zip(args, before):
                if x is not y:
                    if not _alike(x, y):
                        break
                    same = False
            else:
                if not same:
                    self._last[function] = entry, args
                return entry(*args)
        result = function(*args)
        if JIT:
            compiled = _compiled_for(function, args)
            if compiled is not None:
                self._last[function] = compiled.entry_point, args
        return result

    def derived(self, function: Callable[[Any], Any], source: Any) -> Any:
        """``function(source)``, done anew only when ``source`` is another object than the last time."""
        last = self._derived.get(function)
        if last is None or last[0] is not source:
            last = self._derived[function] = source, function(source)
        return last[1]

    def __reduce__(self) -> tuple[Any, ...]:
        return Calls, ()  # copies and pickles begin anew


def generic(stub: Callable[..., Any]) -> Any:
    """A function chosen by the class of its first argument.

    ``stub`` gives the signature and the docstring; ``@stub.register(Class)`` adds an implementation, which
    is ordinary Python in the subset that Numba compiles.
    """
    table: dict[type, Callable[..., Any]] = {}

    @functools.wraps(stub)
    def call(*args: Any) -> Any:
        chosen = table.get(type(args[0]))
        if chosen is None:
            raise TypeError(
                f"{stub.__name__} is not defined for {type(args[0]).__name__}; register it for that class"
            )
        return chosen(*args)

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
