"""Objects to one ``.npz`` file and back, without pickle.

An object becomes a tree of plain JSON plus numbered arrays. Classes are known by name: dataclasses and
NamedTuples registered with :func:`saveable`, and a few with their own way of being taken apart. Loading a file
can therefore only ever build objects of those classes.

A checksum over everything tells whether a file was damaged or changed after it was saved. It is no protection: whoever
writes a file can write its checksum, too. What protects is that beliefs and memories are checked and made anew
(:mod:`bamdp.loading`), and that no array is read whose size does not fit.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
import os
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

FORMAT = 3  # is raised when files of before would be read wrongly
MAX_BYTES = 8_000_000_000  # that a file may hold
MOVED = {  # modules whose classes now stand in another one: files of before name the former
    "bamdp.beliefs.rewards.models": "bamdp.beliefs.transitions.finite",
    "bamdp.beliefs.transitions.full": "bamdp.beliefs.transitions.dirichlet",
    "bamdp.beliefs.transitions.weights": "bamdp.beliefs.transitions.mixture",
    "bamdp.planners.bauct": "bamdp.planners.bamcp",
    "bamdp.planners.epsilon_greedy": "bamdp.planners.bayes_greedy",
    "bamdp.planners.sboss": "bamdp.planners.boss",
    "bamdp.planners.shared.bfs3_tree": "bamdp.planners.bfs3",
    "bamdp.planners.shared.merged": "bamdp.planners.boss",
    "bamdp.planners.shared.networks": "bamdp.planners.bootstrapped_dqn",
    "bamdp.planners.shared.rollouts": "bamdp.planners.shared.tree_search",
}
T = TypeVar("T")
_classes: dict[str, tuple[type, Callable[[Any], dict[str, Any]], Callable[[dict[str, Any]], Any]]] = {}


def saveable(
    cls: type[T],
    take: Callable[[Any], dict[str, Any]] | None = None,
    make: Callable[[dict[str, Any]], Any] | None = None,
) -> type[T]:
    """Let instances of ``cls`` be saved: field by field, or as ``take`` and ``make`` say."""
    if take is None:
        fields: Any = cls
        names = list(getattr(cls, "_fields", ())) or [f.name for f in dataclasses.fields(fields)]
        take = lambda value: {n: getattr(value, n) for n in names}
    _classes[_name(cls)] = cls, take, make or (lambda parts: cls(**parts))
    return cls


def _name(cls: type) -> str:
    return f"{cls.__module__}.{cls.__qualname__}"


def save(path: str | os.PathLike[str], value: Any) -> None:
    """Write ``value`` to a new file that replaces the old one only when it is complete."""
    arrays: dict[int, tuple[int, np.ndarray]] = {}
    taken = _take(value, arrays)
    parts: Any = {f"a{place}": array for place, array in arrays.values()}
    checksum = _checksum(taken, parts)
    tree = json.dumps({"format": FORMAT, "checksum": checksum, "value": taken})
    target = Path(path)
    partial = target.with_name(f"{target.name}.{os.getpid()}.partial")
    try:
        with open(partial, "wb") as file:
            np.savez_compressed(file, tree=np.array(tree), **parts)
        os.replace(partial, target)
    finally:
        partial.unlink(missing_ok=True)


def load(path: str | os.PathLike[str], cls: type[T]) -> T:
    """Read an object of class ``cls``."""
    with open(path, "rb") as file:
        try:
            arrays = read_npz(file)
            content = json.loads(str(arrays.pop("tree")))
            version, tree = content["format"], content["value"]
        except Exception as error:  # damage shows in many ways
            raise ValueError(f"{path} is no file saved by bamdp, or only a part of one ({error})") from error
    if version != FORMAT:
        raise ValueError(f"{path} has format {version}, this version of bamdp reads {FORMAT}")
    if content.get("checksum") != _checksum(tree, arrays):
        raise ValueError(f"{path} was damaged, or changed after it was saved: its checksum is another one")
    try:
        value = _make(tree, arrays)
    except Exception as error:  # damage shows in many ways
        raise ValueError(f"{path} cannot be read ({error}); it is damaged or from another version") from error
    if not isinstance(value, cls):
        raise ValueError(f"{path} holds a {type(value).__name__}, not a {cls.__name__}")
    return value


def _checksum(tree: Any, arrays: dict[str, np.ndarray]) -> str:
    """Return a digest of everything that a file holds."""
    digest = hashlib.sha256(json.dumps(tree, sort_keys=True).encode())
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        digest.update(f"{name}:{array.dtype.str}:{array.shape};".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()


def read_npz(file: Any) -> dict[str, np.ndarray]:
    """Read all arrays of an ``.npz`` file; refuse one that says that it is larger than it is, or than MAX_BYTES."""
    arrays = {}
    with zipfile.ZipFile(file) as archive:
        total = sum(member.file_size for member in archive.infolist())
        if total > MAX_BYTES:
            raise ValueError(f"it holds {total / 1e9:.1f} GB, and at most {MAX_BYTES / 1e9:.0f} are read")
        for member in archive.infolist():
            with archive.open(member) as part:
                read_header = {
                    (1, 0): np.lib.format.read_array_header_1_0,
                    (2, 0): np.lib.format.read_array_header_2_0,
                }
                shape, fortran, dtype = read_header[np.lib.format.read_magic(part)](part)
                if dtype.hasobject:
                    raise ValueError("it holds Python objects")
                data = part.read()
            if math.prod(shape) * dtype.itemsize != len(data):
                raise ValueError(f"{member.filename} has not the size that it says")
            array = np.frombuffer(data, dtype).reshape(shape, order="F" if fortran else "C")
            arrays[member.filename.removesuffix(".npy")] = np.array(array, order="C")
    return arrays


def _take(value: Any, arrays: dict[int, tuple[int, np.ndarray]]) -> Any:
    """Return the tree of a value; its arrays are numbered in ``arrays``, by their identity."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return {"float": value.hex()} if isinstance(value, float) else value
    if isinstance(value, np.generic):
        return _take(value.item(), arrays)
    if isinstance(value, np.ndarray) and not value.dtype.hasobject:
        # an array that stands twice is kept once, and shared again on loading
        return {"array": arrays.setdefault(id(value), (len(arrays), value))[0]}
    name = _name(type(value))
    cls, take, _ = _classes.get(name, (None, None, None))
    if take is not None and cls is type(value):
        return {"class": name, "parts": {key: _take(part, arrays) for key, part in take(value).items()}}
    if type(value) in (tuple, list):
        return {type(value).__name__: [_take(item, arrays) for item in value]}
    if type(value) is dict:
        return {"dict": [[_take(x, arrays) for x in pair] for pair in value.items()]}
    raise TypeError(
        f"{value!r} of {type(value)} cannot be saved; make its class known first (bamdp.saveable) or use a "
        "built-in"
    )


def _make(tree: Any, arrays: dict[str, np.ndarray]) -> Any:
    """Return the value that a tree stands for."""
    if not isinstance(tree, dict):
        return tree
    if "float" in tree:
        return float.fromhex(tree["float"])
    if "array" in tree:
        return arrays[f"a{tree['array']}"]
    if "tuple" in tree:
        return tuple(_make(item, arrays) for item in tree["tuple"])
    if "list" in tree:
        return [_make(item, arrays) for item in tree["list"]]
    if "dict" in tree:
        return {_make(key, arrays): _make(item, arrays) for key, item in tree["dict"]}
    module, _, short = tree["class"].rpartition(".")
    name = f"{MOVED.get(module, module)}.{short}"
    if name not in _classes:
        raise ValueError(f"the file needs the class {name!r}; import the module that defines it first")
    _, _, make = _classes[name]
    return make({key: _make(part, arrays) for key, part in tree["parts"].items()})
