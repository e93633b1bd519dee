"""How every hot function of the package is compiled, chosen by type, and called.

**Compiling.** A :func:`kernel` reads and writes only the arrays that it is given: it allocates nothing, and taking an
array out of a NamedTuple is free. :func:`inner` kernels are called by kernels; a :func:`primitive` is always inlined.
What this takes of Numba is in :mod:`bamdp._kernels.numba_internals`.

**Choosing.** :func:`generic` makes a function whose implementation depends on the NamedTuple class of its
first argument. One registry serves the compiler (``numba.extending.overload``) and plain Python, so the same
source runs, and can be stepped through, with ``NUMBA_DISABLE_JIT=1``.

**Caching.** Compiled code is kept on disk under a digest of *all* sources that it may call (:func:`package_stamp`).
Functions registered from outside of the package add their own source to it (:func:`add_source`).

**Calling.** At a call from Python, Numba reads the types of all arrays in all NamedTuples, which takes longer than
some planning steps; :class:`KernelCalls` reads them once.
"""

from __future__ import annotations

import functools
import hashlib
import inspect
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numba
import numpy as np
from numba.extending import overload

try:
    if os.environ.get("BAMDP_PLAIN_NUMBA"):
        raise ImportError("asked for")
    from bamdp._kernels import numba_internals as internals
except (ImportError, AttributeError):  # another release of Numba than those that were tried
    internals = None  # type: ignore[assignment]

F = TypeVar("F", bound=Callable[..., Any])

JIT = not numba.config.DISABLE_JIT  # type: ignore[attr-defined]
_PACKAGE = Path(__file__).resolve().parent.parent
LAYERS = ("_kernels", "mdp", "beliefs", "generators", "planners", "continuous")  # with kernels, lowest first
_extra_sources: list[str] = []


@functools.cache
def package_stamp(module: str) -> str:
    """Return a digest of the package's sources that a kernel of ``module`` may call: paths, sizes, times of change.

    Imports point downwards only (an import contract sees to it), so these are the packages up to the module's own;
    for a module elsewhere, all of them.
    """
    package = [*module.split("."), ""][1]
    layers = LAYERS[: LAYERS.index(package) + 1] if package in LAYERS else LAYERS
    digest = hashlib.sha256()
    for layer in layers:
        for path in sorted((_PACKAGE / layer).rglob("*.py")):
            info = path.stat()
            digest.update(f"{path.relative_to(_PACKAGE)}:{info.st_size}:{info.st_mtime_ns};".encode())
    return digest.hexdigest()


def source_stamps(module: str) -> tuple[str, str]:
    """Return digests of the package's sources and of those that were registered from outside of it."""
    return package_stamp(module), "".join(sorted(_extra_sources))


def add_source(function: Callable[..., Any]) -> None:
    """Let the cache know of a function defined outside of the package that our kernels will call."""
    path = inspect.getsourcefile(function)
    if path is not None and _PACKAGE in Path(path).resolve().parents:
        return
    try:
        text = inspect.getsource(inspect.getmodule(function) or function)
    except (OSError, TypeError):  # defined at a prompt: no file to read, so no two processes share it
        text = f"{os.getpid()}:{function!r}"
    _extra_sources.append(hashlib.sha256(text.encode()).hexdigest())


def _compile(function: F, kind: str) -> F:
    if internals is None:
        return numba.njit(cache=True, error_model="numpy")(function)
    return internals.compile_function(function, getattr(internals, kind), source_stamps)


def kernel(function: F) -> F:
    """Compile ``function`` at its first call and keep the result on disk."""
    return _compile(function, "KERNEL_OPTIONS")


def inner(function: F) -> F:
    """Compile a function that only kernels call: it is linked into them, optimised there, and not kept on disk itself.

    Python can call it, too: it is then compiled as a kernel of its own.
    """
    return _compile(function, "INNER_OPTIONS")


def primitive(function: F) -> F:
    """Compile an inner function that is always inlined."""
    return _compile(function, "INLINED_OPTIONS")


def wrapping(function: F) -> F:
    """Compile a primitive that counts in 64-bit words modulo 2^64; plain Python would warn of each overflow."""
    return primitive(function) if JIT else np.errstate(over="ignore")(function)


def generic(stub: Callable[..., Any]) -> Any:
    """Make a function that is chosen by the class of its first argument.

    ``stub`` gives the signature and the docstring; ``@stub.register(Class)`` adds an implementation, which
    is ordinary Python in the subset that Numba compiles. One that is registered for ``object`` serves all classes
    that have none of their own.
    """
    table: dict[type, Callable[..., Any]] = {}

    @functools.wraps(stub)
    def call(*args: Any) -> Any:
        implementation = table.get(type(args[0]), table.get(object))
        if implementation is None:
            raise TypeError(
                f"{stub.__name__} is not defined for {type(args[0]).__name__}; register it for that class"
            )
        return implementation(*args)

    def choose(*args: Any) -> Callable[..., Any] | None:
        return table.get(getattr(args[0], "instance_class", None), table.get(object))  # type: ignore[arg-type]

    def register(cls: type) -> Callable[[F], F]:
        def add(function: F) -> F:
            add_source(function)
            table[cls] = function
            return function

        return add

    choose.__signature__ = inspect.signature(stub)  # type: ignore[attr-defined]
    options = {} if internals is None else {"jit_options": internals.INLINED_OPTIONS}
    overload(call, strict=False, **options)(choose)  # type: ignore[arg-type]
    call.register = register  # type: ignore[attr-defined]
    call.table = table  # type: ignore[attr-defined]
    return call


NUMBERS = frozenset({int, float, bool, np.int64, np.float64})


def _same_type(x: Any, y: Any) -> bool:
    """Return whether two arguments are sure to have one type in Numba's eyes."""
    if x is y:
        return True
    kind = type(x)
    if kind is not type(y):
        return False
    if kind is np.ndarray:
        return x.dtype is y.dtype and x.ndim == y.ndim and x.flags.num == y.flags.num
    return kind in NUMBERS or (isinstance(x, tuple) and len(x) == len(y) and all(map(_same_type, x, y)))


class KernelCalls:
    """Calls kernels with the same objects again and again, as one agent does.

    Numba finds the compiled code by looking at every array inside every argument, some 10 µs for a belief and a
    solver, of which calling is less than 1. Here it looks only if an argument may have another type than the last
    time. The arguments of the last call to each kernel are kept alive.
    """

    def __init__(self) -> None:
        self._last: dict[Any, tuple[Callable[..., Any], tuple[Any, ...]]] = {}

    def __call__(self, function: Callable[..., Any], *args: Any) -> Any:
        """Return ``function(*args)``."""
        last = self._last.get(function)
        if last is not None:
            entry, before = last
            same = True
            for x, y in zip(args, before):
                if x is not y:
                    if not _same_type(x, y):
                        break
                    same = False
            else:
                if not same:
                    self._last[function] = entry, args
                return entry(*args)
        result = function(*args)
        if JIT and internals is not None:
            compiled = internals.compiled_entry(function, args)
            if compiled is not None:
                self._last[function] = compiled, args
        return result

    def __reduce__(self) -> tuple[Any, ...]:
        return KernelCalls, ()  # copies and pickles begin anew
