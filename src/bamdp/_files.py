"""File format of agents and beliefs: one ``.npz`` with JSON text and named arrays, without pickle.

Files contain plain data only: numbers, text, tuples, lists, dictionaries, arrays, and dataclasses such as planners,
priors and reward models. A dataclass is stored as ``module:Class`` with its fields and restored through its
constructor. Everything else is rebuilt from these data when the file is read. Compiled code indexes arrays without
bounds checks, so a digest verifies that the arrays are those that were written.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import sys
import zipfile
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

FORMAT = 5  # increment when older files would be misread


def write(path: str | os.PathLike[str], kind: str, content: Any) -> None:
    """Write plain data to a file; an existing file is replaced only after the new one is complete."""
    arrays: dict[str, Any] = {}
    packed = _pack(content, arrays, "")
    text = json.dumps({"format": FORMAT, "kind": kind, "content": packed, "digest": _digest(arrays)})
    target = Path(path)
    partial = target.with_name(f"{target.name}.{os.getpid()}.partial")
    try:
        with open(partial, "wb") as file:
            np.savez_compressed(file, json=np.array(text), **arrays)
        os.replace(partial, target)
    finally:
        partial.unlink(missing_ok=True)


def read(path: str | os.PathLike[str], kind: str, make: Callable[[Any], Any]) -> Any:
    """Read a file of this kind and return ``make(data)``; raise a one-line error if it cannot be read."""
    if not os.path.isfile(path):
        raise FileNotFoundError(
            f"there is no file {str(path)!r}; write {kind} to a file with its method save"
        )
    try:
        with open(path, "rb") as raw, np.load(raw, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        document = json.loads(str(arrays.pop("json")))
        version, found, content = document["format"], document["kind"], document["content"]
    except (ValueError, KeyError, TypeError, OSError, EOFError, AttributeError, zipfile.BadZipFile) as error:
        raise ValueError(f"{path} is not a file saved by bamdp, or it is damaged ({error})") from None
    if version != FORMAT:
        raise ValueError(f"{path} has format {version}, and this version of bamdp reads format {FORMAT}")
    if found != kind:
        raise ValueError(f"{path} holds {found}, not {kind}")
    if document.get("digest") != _digest(arrays):
        raise ValueError(f"{path} cannot be read: its arrays were edited or damaged")
    try:
        return make(_unpack(content, arrays))
    except (ValueError, KeyError, TypeError, IndexError, AttributeError, ImportError) as error:
        raise ValueError(f"{path} cannot be read: {error or type(error).__name__}") from error


def _digest(arrays: Mapping[str, np.ndarray]) -> str:
    """Return a digest of named arrays."""
    digest = hashlib.sha256()
    for name, array in sorted(arrays.items()):
        digest.update(f"{name} {array.dtype} {array.shape} ".encode() + np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def _pack(value: Any, arrays: dict[str, np.ndarray], name: str) -> Any:
    """Return a JSON-compatible form of a value; move its arrays to ``arrays`` under names giving their position."""

    def pack(part: Any, key: Any) -> Any:
        return _pack(part, arrays, f"{name}.{key}" if name else str(key))

    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray) and not value.dtype.hasobject:
        arrays[name] = value
        return {"array": name}
    if isinstance(value, Mapping):
        return {"pairs": [[pack(key, "key"), pack(item, key)] for key, item in value.items()]}
    if isinstance(value, list):
        return [pack(item, i) for i, item in enumerate(value)]
    if type(value) is tuple:
        return {"tuple": [pack(item, i) for i, item in enumerate(value)]}
    if hasattr(value, "from_arrays"):  # a known model
        return {"class": _address(type(value)), "arrays": pack(value.arrays(), "model")}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {f.name: pack(getattr(value, f.name), f.name) for f in dataclasses.fields(value) if f.init}
        return {"class": _address(type(value)), "fields": fields}
    if callable(value) and hasattr(value, "__qualname__"):
        return {"function": _address(value)}
    raise TypeError(f"{value!r} cannot be saved: make {type(value).__name__} a dataclass")


def _unpack(packed: Any, arrays: Mapping[str, np.ndarray]) -> Any:
    """Return the value represented by packed JSON."""
    if isinstance(packed, list):
        return [_unpack(item, arrays) for item in packed]
    if not isinstance(packed, dict):
        return packed
    if "array" in packed:
        return arrays[packed["array"]]
    if "pairs" in packed:
        return {_unpack(key, arrays): _unpack(item, arrays) for key, item in packed["pairs"]}
    if "tuple" in packed:
        return tuple(_unpack(item, arrays) for item in packed["tuple"])
    if "function" in packed:
        return _find(packed["function"])
    cls: Any = _find(packed["class"])
    if "arrays" in packed:
        return cls.from_arrays(_unpack(packed["arrays"], arrays))
    if not (isinstance(cls, type) and dataclasses.is_dataclass(cls)):
        raise ValueError(f"{packed['class']} is not a dataclass")
    return cls(**{name: _unpack(item, arrays) for name, item in packed["fields"].items()})


def _address(thing: Any) -> str:
    """Return the import path of a class or function; for public names, the public path."""
    name = thing.__qualname__
    if "<" in name:
        raise TypeError(
            f"{name} cannot be saved, because it cannot be imported: define it at the top of a module"
        )
    public = getattr(sys.modules.get("bamdp"), name, None) is thing
    return f"bamdp:{name}" if public else f"{thing.__module__}:{name}"


def _find(address: str) -> Any:
    module, _, name = address.partition(":")
    try:
        found: Any = import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError):
        raise ValueError(f"the file needs {address}, which cannot be imported here") from None
    return found
