"""All uses of Numba's private API. They may change with a release of Numba; without them :mod:`bamdp._kernels.jit`
falls back to plain ``numba.njit(cache=True)``: the same results, two to ten times slower.

What each is for, and what it gains (Numba 0.68, two cores, AdaptiveDSS unless said otherwise):

- ``_nrt=False`` compiles without Numba's runtime: kernels allocate nothing and count no references. A simulated belief
  step falls from 199 to 12 ns.
- :class:`InnerLibrary`, :class:`InnerCompiler`: a function that only kernels call is linked into them as it is and
  optimised there, not compiled to machine code first. DSS compiles in half the time.
- :class:`BundleModel`: an array in a NamedTuple is passed to functions as address and shape (two words for a vector),
  not as Numba's seven words. A third fewer instructions to generate; compiling is a fifth faster.
- :class:`SourceCache`: the disk cache looks at *all* sources that a function may call, not at one file, and has a file
  for each signature, so that processes cannot race for an index.
- :func:`compiled_entry`: the machine code behind a dispatcher, called without reading the types of all arguments again
  (10 µs a call for a belief and a solver).
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
# From a module's name to two digests of the sources that its kernels may call: the package's, and registered ones.
SourceStamp = Callable[[str], tuple[str, str]]

# --- bundles as arguments -------------------------------------------------------------------------------------


class BareArray(ArrayModel):
    """A contiguous array as an argument: its address and its shape. The rest follows, or is not needed."""

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
    """A NamedTuple of this package: its contiguous arrays are passed as :class:`BareArray`."""

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
    """The compiler of functions that Python calls, with the environments of all functions linked into them.

    An environment holds what a function needs of Python, such as the messages of its errors.
    """

    def compile_extra(self, func: Any) -> Any:
        result = super().compile_extra(func)
        for variable in result.library._final_module.global_variables:
            environment = lookup_environment(variable.name)
            if environment is not None:
                result.library.codegen.set_env(variable.name, environment)
        return result


class InnerLibrary(JITCodeLibrary):
    """The code of a function that only kernels call: linked into them as it is, and optimised there."""

    codegen = SimpleNamespace(set_env=lambda name, environment: None)  # the kernel's compiler sets them

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


KERNEL_OPTIONS: dict[str, Any] = {
    "error_model": "numpy",
    "_nrt": False,
    "no_cfunc_wrapper": True,
    "pipeline_class": KernelCompiler,
}
INNER_OPTIONS = {**KERNEL_OPTIONS, "no_cpython_wrapper": True, "pipeline_class": InnerCompiler}
INLINED_OPTIONS = {**INNER_OPTIONS, "forceinline": True}


class InnerDispatcher(CPUDispatcher):
    """A dispatcher for functions that only kernels call. Called from Python, it compiles a callable twin."""

    sources: SourceStamp

    def __call__(self, *args: Any) -> Any:
        return self.callable_twin(*args)

    def get_call_template(self, args: Any, kws: Any) -> Any:
        """Compile for the type of a literal argument: a variable that begins as 0 would be compiled for 0 as well."""
        return super().get_call_template([*map(types.unliteral, args)], kws)

    @functools.cached_property
    def callable_twin(self) -> Any:
        """The same function, compiled so that Python can call it."""
        return compile_function(self.py_func, KERNEL_OPTIONS, self.sources)


def compile_function(function: Any, options: dict[str, Any], sources: SourceStamp) -> Any:
    """Compile ``function`` at its first call; what Python can call is kept in the disk cache.

    ``options`` are KERNEL_OPTIONS, INNER_OPTIONS or INLINED_OPTIONS.
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
    """Return the compiled code that Numba has just run for ``args``; None if there is none or it converts."""
    dispatcher = getattr(dispatcher, "callable_twin", dispatcher)
    overloads = getattr(dispatcher, "overloads", {})
    if len(overloads) == 1:
        return next(iter(overloads.values())).entry_point
    compiled = overloads.get(tuple(map(dispatcher.typeof_pyval, args))) if overloads else None
    return None if compiled is None else compiled.entry_point


# --- the cache on disk ----------------------------------------------------------------------------------------


class SourceCache(IndexDataCacheFile):
    """Numba's cache file without its index: ``<function>.<our sources>.<signature, machine, other sources>.nbc``."""

    key: Callable[[], tuple[str, str]]  # digests of the sources that the function may call

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


def _digest(*parts: Any) -> str:
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:20]
