"""All uses of Numba's private API.

The API may change between Numba releases. If it is incompatible, :mod:`bamdp._kernels.jit` falls back to plain
``numba.njit(cache=True)``, which gives the same results but is two to ten times slower.

Purpose and benefit of each part (Numba 0.68, two cores, AdaptiveDSS unless stated otherwise):

- ``_nrt=False`` compiles without Numba's runtime, since kernels neither allocate memory nor count references. The time
  of a simulated belief step drops from 199 to 12 ns.
- :class:`InnerLibrary`: a function called by a kernel is linked into it and optimised there, without being compiled to
  machine code first. This halves the compile time of DSS.
- :class:`KernelLibrary`: a kernel is optimised once, without Numba's passes for each function and for reference counts.
  With :class:`KernelDispatcher`, which also links kernels into kernels, this saves about a quarter of the time in
  LLVM for Thompson sampling. Lower optimisation levels save nothing, since most of the time is spent in Python.
- :class:`BundleModel`: an array in a NamedTuple is passed to functions as its address and shape (two words for a
  vector) instead of Numba's seven words. This saves about a tenth of the compile time of DSS.
- :class:`SourceCache`: the disk cache depends on *all* sources that a function may call, not just one file, and uses
  one file per signature, so that processes cannot race to update an index.
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
from numba.core.caching import FunctionCache
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
from numba.core.datamodel import default_manager
from numba.core.datamodel.models import ArrayModel, TupleModel
from numba.core.environment import lookup_environment
from numba.core.registry import CPUDispatcher
from numba.core.serialize import dumps
from numba.np.numpy_support import as_dtype

DATA, SHAPE, STRIDES, N_ITEMS = 4, 5, 6, 2  # fields of Numba's array structure

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
        stride = shape[0].type(as_dtype(self._fe_type.dtype).itemsize)
        array = builder.insert_value(ir.Constant(self.get_value_type(), None), data, DATA)
        for i in reversed(range(len(shape))):
            array = builder.insert_value(array, shape[i], [SHAPE, i])
            array = builder.insert_value(array, stride, [STRIDES, i])
            stride = builder.mul(stride, shape[i])
        return array


class BundleModel(TupleModel):
    """A NamedTuple of this package whose contiguous arrays are passed as :class:`BareArray`."""

    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind)
        if kind.instance_class.__module__.partition(".")[0] == "bamdp":
            bare = [isinstance(member, types.Array) and member.layout == "C" for member in self._members]
            members = zip(bare, self._members, self._models)
            self._models = tuple(BareArray(manager, kind) if yes else model for yes, kind, model in members)


default_manager.register(types.NamedTuple, BundleModel)

# --- compiling ------------------------------------------------------------------------------------------------


class KernelLibrary(JITCodeLibrary):
    """Code of a function called from Python, optimised together with all functions that are linked into it."""

    def _optimize_functions(self, module: Any) -> None:
        """Do nothing, since the whole module is optimised."""

    def _optimize_final_module(self) -> None:
        passes, builder = self._codegen._module_pass_manager()
        passes.run(self._final_module, builder)


class InnerLibrary(KernelLibrary):
    """Code of a function called by kernels, linked into them and optimised there."""

    codegen = SimpleNamespace(set_env=lambda name, environment: None)  # done by the kernel's compiler

    def _optimize_final_module(self) -> None:
        """Do nothing, since the kernel is optimised as a whole."""

    def _finalize_final_module(self) -> None:
        """Do nothing, since no separate machine code is needed."""
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        """Return 0, since Python cannot call this function."""
        self._ensure_finalized()
        return 0


class KernelCompiler(Compiler):
    """Compiler of functions called from Python, including the environments of all functions linked into them.

    An environment contains the Python objects that a function needs, such as error messages.
    """

    library = KernelLibrary

    def compile_extra(self, func: Any) -> Any:
        self.state.library = self.library(self.state.targetctx.codegen(), func.__qualname__)
        self.state.library.enable_object_caching()
        result = super().compile_extra(func)
        for variable in result.library._final_module.global_variables:
            environment = lookup_environment(variable.name)
            if environment is not None:
                result.library.codegen.set_env(variable.name, environment)
        return result


class InnerCompiler(KernelCompiler):
    """Compiler of functions called by kernels."""

    library = InnerLibrary


OPTIONS: dict[str, Any] = {"error_model": "numpy", "_nrt": False, "no_cfunc_wrapper": True}
KERNEL_OPTIONS = {**OPTIONS, "pipeline_class": KernelCompiler}
INNER_OPTIONS = {**OPTIONS, "no_cpython_wrapper": True, "pipeline_class": InnerCompiler}
PRIMITIVE_OPTIONS = {**INNER_OPTIONS, "forceinline": True}


class KernelDispatcher(CPUDispatcher):
    """Dispatcher of two versions of a function: one cached on disk for Python, one to be linked into kernels."""

    inner_options: dict[str, Any]

    def _compile_for_args(self, *args: Any, **kws: Any) -> Any:
        if not isinstance(self._cache, SourceCache):  # type: ignore[has-type]
            self._cache = SourceCache(self.py_func)
        return super()._compile_for_args(*args, **kws)  # type: ignore[misc]

    @functools.cached_property
    def inner(self) -> Any:
        return numba.njit(**self.inner_options)(self.py_func)

    def get_call_template(self, args: Any, kws: Any) -> Any:
        """Compile for the general type of literal arguments, to avoid separate versions for literals."""
        return self.inner.get_call_template([*map(types.unliteral, args)], kws)

    def get_overload(self, sig: Any) -> Any:
        return self.inner.get_overload(sig)


def compile_function(function: Any, inner_options: dict[str, Any]) -> Any:
    """Compile ``function`` on its first call; ``inner_options`` are for the version that is linked into kernels."""
    dispatcher: Any = numba.njit(**KERNEL_OPTIONS)(function)
    dispatcher.__class__ = KernelDispatcher
    dispatcher.inner_options = inner_options
    return dispatcher


def compiled_entry(dispatcher: Any, args: tuple[Any, ...]) -> Callable[..., Any] | None:
    """Return the compiled code that Numba has just run for ``args``; None if there is none or it converts arguments."""
    compiled = dispatcher.overloads.get(tuple(map(dispatcher.typeof_pyval, args)))
    return None if compiled is None else compiled.entry_point


# --- the cache on disk ----------------------------------------------------------------------------------------


class SourceCache(FunctionCache):
    """Numba's cache with one file for each signature: ``<function>.<our sources>.<signature, machine, ...>.nbc``."""

    stamps: Callable[
        [str], tuple[str, str]
    ]  # module -> digests of sources it may call: the package's, registered ones
    on_miss: Callable[[], None]  # called before compilation

    def _path(self, sig: Any, codegen: Any) -> Path:
        package, registered = self.stamps(self._py_func.__module__)
        sources = _digest(numba.__version__, self._impl.locator.get_source_stamp(), package)
        name = (
            f"{self._impl.filename_base}.{sources}.{_digest(registered, self._index_key(sig, codegen))}.nbc"
        )
        return Path(self.cache_path, name)

    def _load_overload(self, sig: Any, target_context: Any) -> Any:
        try:
            data = pickle.loads(self._path(sig, target_context.codegen()).read_bytes())
        except Exception:  # the file is missing or damaged
            self.on_miss()
            return None
        return self._impl.rebuild(target_context, data)

    def _save_overload(self, sig: Any, data: Any) -> None:
        if self._impl.check_cachable(data):
            self._impl.locator.ensure_cache_path()
            path = self._path(sig, data.codegen)
            with self._cache_file._open_for_write(path) as file:
                file.write(dumps(self._impl.reduce(data)))
            function, sources = path.name.rsplit(".", 3)[:2]
            for other in {*path.parent.glob(f"{function}.*.nbc")} - {
                *path.parent.glob(f"{function}.{sources}.*.nbc")
            }:
                other.unlink(missing_ok=True)  # compiled from outdated sources


def _digest(*parts: Any) -> str:
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:20]
