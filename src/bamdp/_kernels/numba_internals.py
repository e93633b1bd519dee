"""All uses of Numba's private API.

The API may change between Numba releases. If it is incompatible, :mod:`bamdp._kernels.jit` falls back to plain
``numba.njit(cache=True)``, which gives the same results but is two to ten times slower.

Purpose and benefit of each part (Numba 0.68, two cores, AdaptiveDSS unless stated otherwise):

- ``_nrt=False`` compiles without Numba's runtime, since kernels neither allocate memory nor count references. The time
  of a simulated belief step drops from 199 to 12 ns.
- :class:`InnerLibrary`, :class:`InnerCompiler`: a function called only by kernels is linked into them and optimised
  there, without being compiled to machine code first. This halves the compile time of DSS.
- :class:`BundleModel`: an array in a NamedTuple is passed to functions as its address and shape (two words for a
  vector) instead of Numba's seven words. This reduces generated instructions by a third and compile time by a fifth.
- :class:`SourceCache`: the disk cache depends on *all* sources that a function may call, not just one file, and uses
  one file per signature, so that processes cannot race for an index.
- :func:`compiled_entry`: calls a dispatcher's machine code without inspecting the types of all arguments again (10 µs
  per call for a belief and a solver).
"""

from __future__ import annotations

import functools
import hashlib
import pickle
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numba
from llvmlite import ir  # type: ignore[import-untyped]
from numba.core import types
from numba.core.caching import IndexDataCacheFile
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
from numba.core.datamodel import default_manager
from numba.core.datamodel.models import ArrayModel, TupleModel
from numba.core.environment import lookup_environment
from numba.core.registry import CPUDispatcher
from numba.np.numpy_support import as_dtype

DATA, SHAPE, STRIDES, N_ITEMS = 4, 5, 6, 2  # fields of Numba's array structure
# Maps a module name to two digests of the sources its kernels may call: package sources and registered ones.
SourceStamp = Callable[[str], tuple[str, str]]

# --- bundles as arguments -------------------------------------------------------------------------------------


class BareArray(ArrayModel):
    """A contiguous array passed as its address and shape; all other fields are derived or unused."""

    def get_argument_type(self) -> Any:
        fields = self.get_value_type().elements
        return fields[DATA], *fields[SHAPE].elements

    def as_argument(self, builder: Any, value: Any) -> Any:
        shape = (builder.extract_value(value, [SHAPE, i]) for i in range(self._fe_type.ndim))
        return builder.extract_value(value, DATA), *shape

    def from_argument(self, builder: Any, value: Any) -> Any:
        data, *shape = value
        size = shape[0].type(as_dtype(self._fe_type.dtype).itemsize)
        n_items, stride = shape[0], size
        for length in shape[1:]:
            n_items = builder.mul(n_items, length)
        fields = [
            field(None) if field.is_pointer else field(0) for field in self.get_value_type().elements[:3]
        ]
        fields += [
            size,
            data.type(None),
            *(field([size] * len(shape)) for field in self.get_value_type().elements[5:]),
        ]
        array = ir.Constant(self.get_value_type(), fields)
        for i in reversed(range(len(shape))):
            array = builder.insert_value(array, shape[i], [SHAPE, i])
            if i > 0:
                stride = builder.mul(stride, shape[i])
                array = builder.insert_value(array, stride, [STRIDES, i - 1])
        return builder.insert_value(builder.insert_value(array, n_items, N_ITEMS), data, DATA)


class BundleModel(TupleModel):
    """A NamedTuple of this package whose contiguous arrays are passed as :class:`BareArray`."""

    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind)
        bare = (isinstance(member, types.Array) and member.layout == "C" for member in self._members)
        self._models = tuple(
            BareArray(manager, member) if is_bare else model
            for is_bare, member, model in zip(bare, self._members, self._models)
        )


def _bundle_model(manager: Any, kind: Any) -> Any:
    ours = kind.instance_class.__module__.partition(".")[0] == "bamdp"
    return (BundleModel if ours else TupleModel)(manager, kind)


default_manager.register(types.NamedTuple, _bundle_model)

# --- compiling ------------------------------------------------------------------------------------------------


class KernelCompiler(Compiler):
    """Compiler of functions called from Python, including the environments of all functions linked into them.

    An environment contains the Python objects that a function needs, such as error messages.
    """

    def compile_extra(self, func: Any) -> Any:
        result = super().compile_extra(func)
        for variable in result.library._final_module.global_variables:
            environment = lookup_environment(variable.name)
            if environment is not None:
                result.library.codegen.set_env(variable.name, environment)
        return result


class InnerLibrary(JITCodeLibrary):
    """Code of a function called only by kernels, linked into them and optimised there."""

    codegen = SimpleNamespace(
        set_env=lambda name, environment: None
    )  # environments are set by the kernel's compiler

    def _optimize_final_module(self) -> None:
        """Do nothing, since the kernel is optimised as a whole."""

    def _finalize_final_module(self) -> None:
        """Do nothing, since no separate machine code is needed."""
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        """Return 0, since Python cannot call this function."""
        self._ensure_finalized()
        return 0


class InnerCompiler(Compiler):
    """Compiler of functions called only by kernels."""

    def compile_extra(self, func: Any) -> Any:
        self.state.library = InnerLibrary(self.state.targetctx.codegen(), func.__qualname__)
        return super().compile_extra(func)


KERNEL_OPTIONS: dict[str, Any] = {
    "error_model": "numpy",
    "_nrt": False,
    "no_cfunc_wrapper": True,
    "pipeline_class": KernelCompiler,
}
INNER_OPTIONS = {**KERNEL_OPTIONS, "no_cpython_wrapper": True, "pipeline_class": InnerCompiler}
INLINED_OPTIONS = {**INNER_OPTIONS, "forceinline": True}


class InnerDispatcher(CPUDispatcher):
    """Dispatcher for functions called only by kernels; if called from Python, it compiles a callable twin."""

    sources: SourceStamp

    def __call__(self, *args: Any) -> Any:
        return self.callable_twin(*args)

    def get_call_template(self, args: Any, kws: Any) -> Any:
        """Compile for the general type of literal arguments, to avoid separate versions for literals."""
        return super().get_call_template([*map(types.unliteral, args)], kws)

    @functools.cached_property
    def callable_twin(self) -> Any:
        """The same function, compiled for calls from Python."""
        return compile_function(self.py_func, KERNEL_OPTIONS, self.sources)


def compile_function(function: Any, options: dict[str, Any], sources: SourceStamp) -> Any:
    """Compile ``function`` at its first call; functions callable from Python are cached on disk.

    ``options`` is KERNEL_OPTIONS, INNER_OPTIONS or INLINED_OPTIONS.
    """
    inner = options is not KERNEL_OPTIONS
    dispatcher = numba.njit(cache=not inner, **options)(function)
    if numba.config.DISABLE_JIT:  # type: ignore[attr-defined]
        return dispatcher
    if inner:
        dispatcher.__class__ = InnerDispatcher
        dispatcher.sources = sources
    else:
        cache = dispatcher._cache
        stamp = cache._impl.locator.get_source_stamp()
        cache._cache_file = SourceCache(cache.cache_path, cache._impl.filename_base, stamp)
        cache._cache_file.key = functools.partial(sources, function.__module__)
    return dispatcher


def compiled_entry(dispatcher: Any, args: tuple[Any, ...]) -> Callable[..., Any] | None:
    """Return the compiled code that Numba has just run for ``args``; None if there is none or it converts arguments."""
    dispatcher = getattr(dispatcher, "callable_twin", dispatcher)
    overloads = getattr(dispatcher, "overloads", {})
    if len(overloads) == 1:
        return next(iter(overloads.values())).entry_point
    compiled = overloads.get(tuple(map(dispatcher.typeof_pyval, args))) if overloads else None
    return None if compiled is None else compiled.entry_point


# --- the cache on disk ----------------------------------------------------------------------------------------


class SourceCache(IndexDataCacheFile):
    """Numba's cache file without its index: ``<function>.<our sources>.<signature, machine, other sources>.nbc``."""

    key: Callable[[], tuple[str, str]]  # returns digests of the sources that the function may call

    def _path(self, key: Any) -> Path:
        package, registered = self.key()
        digests = _digest(self._version, self._source_stamp, package), _digest(registered, key)
        return Path(self._data_path(self._data_name_pattern.replace("{number:d}", ".".join(digests))))

    def save(self, key: Any, data: Any) -> None:
        path = self._path(key)
        with self._open_for_write(path) as file:
            file.write(self._dump((key, data)))
        function, sources = path.name.rsplit(".", 3)[:2]
        for other in path.parent.glob(f"{function}.*.*.nbc"):
            if other.name.rsplit(".", 3)[1] != sources:  # compiled from outdated sources
                other.unlink(missing_ok=True)

    def load(self, key: Any) -> Any:
        try:
            with self._path(key).open("rb") as file:
                stored, data = pickle.loads(file.read())
        except Exception:  # the file is missing or damaged: compile again
            return None
        return data if stored == key else None

    def flush(self) -> None:
        """Do nothing, since changed sources lead to a different file name."""


def _digest(*parts: Any) -> str:
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:20]
