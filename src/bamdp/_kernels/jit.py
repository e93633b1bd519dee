"""Compilation, dispatch and calling of all performance-critical functions of the package, and their arguments.

**Compiling.** A :func:`kernel` reads and writes only its array arguments and allocates no memory; accessing an array in
a NamedTuple is free. A :func:`primitive` is always inlined. The required Numba internals are in
:mod:`bamdp._kernels.numba_internals`.

**Dispatch.** :func:`generic` creates a function whose implementation depends on the NamedTuple class of its first
argument. The compiler (``numba.extending.overload``) and plain Python use the same registry, so the same source can be
run and debugged with ``NUMBA_DISABLE_JIT=1``.

**Caching.** Compiled code is cached on disk under a digest of *all* sources that it may call (:func:`package_stamp`).
Functions registered from outside the package add their own source (:func:`add_source`). Compilation takes several
seconds, so it is announced (:func:`on_first_compile`).

**Bundles** of arrays are NamedTuples whose shapes are declared alongside the fields::

    class Stack(NamedTuple):
        state: Annotated[np.ndarray, "int64 [H]"]  # s of the node
        value: Annotated[np.ndarray, "float64 [H, A]"]

    stack = zeros(Stack, H=4, A=2)

**Calling.** For each call from Python, Numba inspects the types of all arrays in all NamedTuples, which takes longer
than some planning steps; :class:`KernelCalls` does so only once.
"""

from __future__ import annotations

import functools
import hashlib
import inspect
import logging
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar, get_type_hints

import numba
import numpy as np
from numba.extending import overload

try:
    if os.environ.get("BAMDP_PLAIN_NUMBA"):
        raise ImportError("asked for")
    from bamdp._kernels import numba_internals as internals
except (ImportError, AttributeError):  # an untested release of Numba
    internals = None  # type: ignore[assignment]

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")

JIT = not numba.config.DISABLE_JIT  # type: ignore[attr-defined]
_PACKAGE = Path(__file__).resolve().parent.parent
LAYERS = ("_kernels", "mdp", "beliefs", "generators", "planners", "continuous")  # lowest layer first
_extra_sources: list[str] = []


@functools.cache
def package_stamp(module: str) -> str:
    """Return a digest of the package sources that a kernel of ``module`` may call: paths, sizes, modification times.

    An import contract ensures that layers import only lower layers, so the digest covers the layers up to the module's
    own, or all layers if the module is elsewhere.
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
    """Return digests of the package's sources and of the sources registered from outside."""
    return package_stamp(module), "".join(sorted(_extra_sources))


def add_source(function: Callable[..., Any]) -> None:
    """Include in the cache digest a function from outside the package that our kernels will call."""
    path = inspect.getsourcefile(function)
    if path is not None and _PACKAGE in Path(path).resolve().parents:
        return
    try:
        text = inspect.getsource(inspect.getmodule(function) or function)
    except (OSError, TypeError):  # defined interactively: no source file, so not shared between processes
        text = f"{os.getpid()}:{function!r}"
    _extra_sources.append(hashlib.sha256(text.encode()).hexdigest())


COMPILING = "compiling for this machine (only the first time; kept on disk) ..."
# The last function is called before the next compilation, and then removed.
_listeners: list[Callable[[], None] | None] = [lambda: logging.getLogger("bamdp").warning(COMPILING)]


@contextmanager
def on_first_compile(tell: Callable[[], None]) -> Iterator[None]:
    """Call ``tell`` once if anything is compiled inside the block, instead of logging a warning once per process."""
    _listeners.append(tell)
    try:
        yield
    finally:
        _listeners.pop()


def _announce() -> None:
    tell, _listeners[-1] = _listeners[-1], None
    if tell is not None:
        tell()


if internals is not None:
    internals.SourceCache.stamps = staticmethod(source_stamps)
    internals.SourceCache.on_miss = staticmethod(_announce)


def kernel(function: F) -> F:
    """Compile ``function`` on its first call.

    The version called from Python is cached on disk. A kernel called by another kernel is linked into its caller and
    optimised there, and is not cached separately.
    """
    return _compile(function, "INNER_OPTIONS")


def primitive(function: F) -> F:
    """Compile a kernel that is always inlined into the kernels that call it."""
    return _compile(function, "PRIMITIVE_OPTIONS")


def _compile(function: F, inner_options: str) -> F:
    if internals is None or not JIT:
        return numba.njit(cache=True, error_model="numpy")(function)  # type: ignore[return-value]
    return internals.compile_function(function, getattr(internals, inner_options))


inner = kernel  # a kernel that is called only by other kernels


def wrapping(function: F) -> F:
    """Compile a primitive that uses arithmetic modulo 2^64, where plain Python would warn about each overflow."""
    return primitive(function) if JIT else np.errstate(over="ignore")(function)


def generic(stub: Callable[..., Any]) -> Any:
    """Create a generic function that dispatches on the class of its first argument.

    ``stub`` provides the signature and docstring; ``@stub.register(Class)`` adds an implementation, written in the
    subset of Python supported by Numba. An implementation registered for ``object`` is used for all classes without
    one of their own.
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
    options = {} if internals is None else {"jit_options": internals.PRIMITIVE_OPTIONS}
    overload(call, strict=False, **options)(choose)  # type: ignore[arg-type]
    call.register = register  # type: ignore[attr-defined]
    call.table = table  # type: ignore[attr-defined]
    return call


NUMBERS = frozenset({int, float, bool, np.int64, np.float64})


def _same_type(x: Any, y: Any) -> bool:
    """Return whether two arguments certainly have the same Numba type."""
    if x is y:
        return True
    kind = type(x)
    if kind is not type(y):
        return False
    if kind is np.ndarray:
        return x.dtype is y.dtype and x.ndim == y.ndim and x.flags.num == y.flags.num
    return kind in NUMBERS or (isinstance(x, tuple) and len(x) == len(y) and all(map(_same_type, x, y)))


class KernelCalls:
    """Fast caller for kernels that are called repeatedly with the same objects, as by an agent.

    To find the compiled code, Numba inspects every array in every argument, which takes about 10 µs for a belief and a
    solver, compared with less than 1 µs for the call itself. This class repeats the inspection only if the type of an
    argument may have changed since the last call. It keeps the arguments of the last call to each kernel alive.
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
        return KernelCalls, ()  # copies and pickles start empty


@functools.cache
def _layout(kind: type) -> dict[str, tuple[np.dtype, list[str | int]]]:
    """Return the dtype and axes of each declared array; an axis is a number or the name of a size."""
    layout = {}
    for name, hint in get_type_hints(kind, include_extras=True).items():
        if hasattr(hint, "__metadata__"):
            dtype, axes = hint.__metadata__[0].rstrip("]").split(" [")
            layout[name] = np.dtype(dtype), [int(x) if x.isdigit() else x for x in axes.split(", ")]
    return layout


def zeros(kind: type[T], **given: Any) -> T:
    """Return a bundle of zeros.

    Parameters
    ----------
    kind
        A NamedTuple or dataclass with arrays declared as in the module docstring. Each axis is a number or the name
        of a size.
    **given
        The sizes of all named axes, and values of fields that are not filled with zeros.
    """
    fields = {name: value for name, value in given.items() if name in kind.__annotations__}
    for name, (dtype, axes) in _layout(kind).items():  # type: ignore[arg-type]
        if name not in fields:
            fields[name] = np.zeros([given.get(str(x), x) for x in axes], dtype)
    return kind(**fields)
