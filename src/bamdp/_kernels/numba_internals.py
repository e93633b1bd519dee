"""The one door to Numba's private parts: everything here may change with a release of Numba.

Five things are not to be had from Numba's public interface:

- compiling without Numba's runtime (``_nrt=False``: no allocation and no reference counting inside a kernel, which
  makes a simulated belief step ten times faster), without the part that makes a function callable from Python, and
  with inlining forced;
- leaving a function that only kernels call to the kernel: Numba optimises each function with all that it calls, and
  makes machine code of it, before it is linked into its callers, where both are done again (:class:`InnerLibrary`);
- a disk cache that knows which *other* files a function calls (:class:`SourceCache`);
- the compiled code behind a dispatcher, to call it without looking at the types of all arguments again;
- functions of the C library in compiled code that is kept on disk (:func:`c_function`).

If a release of Numba does not have these parts as expected, or ``BAMDP_PLAIN_NUMBA=1`` is set, ``AVAILABLE`` is False
and the package uses plain ``numba.njit(cache=True)``: the same results, some two to ten times slower. The versions that
were tried are in ``pyproject.toml``.
"""

from __future__ import annotations

import functools
import hashlib
import logging
import os
import pickle
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numba

QUIET_SECONDS = 10.0  # without compiling, after which it is announced again
COMPILING = "compiling for this machine (only the first time; kept on disk) ..."
PLAIN_OPTIONS: dict[str, Any] = {"error_model": "numpy"}
KERNEL_OPTIONS: dict[str, Any] = {**PLAIN_OPTIONS, "_nrt": False, "no_cfunc_wrapper": True}
INNER_OPTIONS: dict[str, Any] = {**KERNEL_OPTIONS, "no_cpython_wrapper": True}
INLINED_OPTIONS: dict[str, Any] = {**INNER_OPTIONS, "forceinline": True}

# From a module's name to two digests of the sources that its kernels may call: the package's, and registered ones.
SourceStamp = Callable[[str], tuple[str, str]]

try:
    from numba.core import event
    from numba.core.caching import IndexDataCacheFile
    from numba.core.codegen import JITCodeLibrary
    from numba.core.compiler import Compiler
    from numba.core.environment import lookup_environment
    from numba.core.registry import CPUDispatcher

    _probe = numba.njit(cache=False, **INLINED_OPTIONS)(lambda x: x)
    AVAILABLE = (
        all(hasattr(IndexDataCacheFile, name) for name in ("_data_path", "_open_for_write", "_dump"))
        and all(hasattr(JITCodeLibrary, n) for n in ("_optimize_final_module", "_finalize_final_module"))
        and (bool(numba.config.DISABLE_JIT) or isinstance(_probe, CPUDispatcher))  # type: ignore[attr-defined]
        and not os.environ.get("BAMDP_PLAIN_NUMBA")
    )
except (ImportError, AttributeError, KeyError, TypeError):  # another Numba than those that were tried
    AVAILABLE = False

_tellers: dict[object, Callable[[], None] | None] = {}  # of blocks of on_first_compile; None once called


def _digest(*parts: Any) -> str:
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:20]


if AVAILABLE:

    class SourceCache(IndexDataCacheFile):
        """Numba's cache file without its index: one file per signature, named by what determines its content.

        Numba looks only at the file that defines a function, not at the files that it calls, and numbers its data files
        through an index that two processes can race for. Here the name of a file is made of the hash of the
        signature, the machine and all sources that the function may call, and the key is compared on loading.
        """

        module: str  # in which the cached function is defined
        sources: SourceStamp

        def _path(self, key: Any) -> Path:
            """Return ``<function>.<digest of our sources>.<digest of signature, machine, others>.nbc``."""
            package, registered = self.sources(self.module)
            sources = _digest(self._version, self._source_stamp, package)
            number = f"{sources}.{_digest(registered, key)}"
            return Path(self._data_path(self._data_name_pattern.replace("{number:d}", number)))

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
            """Do nothing: a changed source has another file name."""

    class KernelCompiler(Compiler):
        """The compiler of functions that Python calls, with the environments of all functions linked into them.

        An environment holds what a function needs of Python, such as the messages of its errors.
        """

        def compile_extra(self, func: Any) -> Any:
            result = super().compile_extra(func)
            for variable in result.library._final_module.global_variables:
                if variable.name.startswith("_ZN08NumbaEnv"):
                    environment = lookup_environment(variable.name)
                    if environment is not None:
                        result.library.codegen.set_env(variable.name, environment)
            return result

    class NoEnvironments:
        """Stands for the part of Numba that sets environments, where there is no machine code to set them in."""

        @staticmethod
        def set_env(name: str, environment: Any) -> None:
            """Do nothing: the kernel's compiler does it."""

    class InnerLibrary(JITCodeLibrary):
        """The code of a function that only kernels call: it is linked into them as it is, and optimised there.

        DSS compiles in about half the time, and no kernel that was measured is slower: functions are optimised where it
        is known what they are called with.
        """

        codegen = NoEnvironments

        def _optimize_final_module(self) -> None:
            """Do nothing: the kernel is optimised as a whole."""

        def _finalize_final_module(self) -> None:
            """Make no machine code of it."""
            self._finalized = True

        def get_pointer_to_function(self, name: str) -> int:
            """Return 0: Python cannot call it."""
            self._ensure_finalized()
            return 0

    class InnerCompiler(Compiler):
        """The compiler of functions that only kernels call."""

        def compile_extra(self, func: Any) -> Any:
            self.state.library = InnerLibrary(self.state.targetctx.codegen(), func.__qualname__)
            return super().compile_extra(func)

    KERNEL_OPTIONS["pipeline_class"] = KernelCompiler
    INNER_OPTIONS["pipeline_class"] = INLINED_OPTIONS["pipeline_class"] = InnerCompiler

    class InnerDispatcher(CPUDispatcher):
        """A dispatcher for functions that only kernels call. Called from Python, it compiles a callable twin."""

        sources: SourceStamp

        def __call__(self, *args: Any) -> Any:
            return self.callable_twin(*args)

        @functools.cached_property
        def callable_twin(self) -> Any:
            """The same function, compiled so that Python can call it."""
            return compile_function(self.py_func, KERNEL_OPTIONS, self.sources)


def compile_function(function: Any, options: dict[str, Any], sources: SourceStamp) -> Any:
    """Compile ``function`` at its first call; what Python can call is kept in the package's disk cache.

    Parameters
    ----------
    function
        A Python function in the subset that Numba compiles.
    options
        KERNEL_OPTIONS, INNER_OPTIONS or INLINED_OPTIONS.
    sources
        Gives the digests of all sources that the function may call.
    """
    if not AVAILABLE:
        return numba.njit(cache=True, **PLAIN_OPTIONS)(function)
    inner = "no_cpython_wrapper" in options
    dispatcher = numba.njit(cache=not inner, **options)(function)
    if numba.config.DISABLE_JIT:  # type: ignore[attr-defined]
        return dispatcher
    if inner:
        dispatcher.__class__ = InnerDispatcher
        dispatcher.sources = sources
    else:
        cache = dispatcher._cache
        file = SourceCache(
            cache.cache_path, cache._impl.filename_base, cache._impl.locator.get_source_stamp()
        )
        file.module, file.sources = function.__module__, sources
        cache._cache_file = file
    return dispatcher


def c_function(name: str, result: Any, *arguments: Any) -> Any:
    """A function of the C library as compiled code can call it; None if this Numba does not offer that."""
    external = getattr(numba.types, "ExternalFunction", None)
    return None if external is None else external(name, result(*arguments))


def compiled_entry(dispatcher: Any, args: tuple[Any, ...]) -> Callable[..., Any] | None:
    """Return the compiled code that Numba has just run for ``args``; None if there is none or it converts."""
    dispatcher = getattr(dispatcher, "callable_twin", dispatcher)
    if not AVAILABLE or not hasattr(dispatcher, "overloads"):
        return None
    if len(dispatcher.overloads) == 1:
        compiled = next(iter(dispatcher.overloads.values()))
    else:
        compiled = dispatcher.overloads.get(tuple(map(dispatcher.typeof_pyval, args)))
    return None if compiled is None else compiled.entry_point


@contextmanager
def on_first_compile(tell: Callable[[], None]) -> Iterator[None]:
    """Call ``tell`` once if anything has to be compiled inside the block (never, without Numba's private parts).

    Inside the block nothing is logged of it.
    """
    block = object()
    _tellers[block] = tell
    try:
        yield
    finally:
        del _tellers[block]


if AVAILABLE:

    class Announcer(event.Listener):
        """Tells of compiling: those who asked for it, else the logger ``bamdp``, if there was none for a while.

        Compiling takes seconds, in which nothing else can be seen to happen, so that the log gets a warning: these are
        shown where nobody has configured logging.
        """

        busy_until = -QUIET_SECONDS

        def on_start(self, event: Any) -> None:
            for block, tell in _tellers.items():
                if tell is not None:
                    _tellers[block] = None
                    tell()
            quiet = time.monotonic() - self.busy_until > QUIET_SECONDS
            if self._is_ours(event) and not _tellers and quiet:
                logging.getLogger("bamdp").warning(COMPILING)
            self.on_end(event)

        def on_end(self, event: Any) -> None:
            if self._is_ours(event):
                Announcer.busy_until = time.monotonic()

        def _is_ours(self, event: Any) -> bool:
            return str(event.data["dispatcher"].py_func.__module__).partition(".")[0] == "bamdp"

    event.register("numba:compile", Announcer())
