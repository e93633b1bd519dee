"""Files of agents with one thing changed, tried one after the other in a process of their own.

Called as ``python loading_cases.py FOLDER PLANNER PRIOR REWARDS``: saves an agent, changes every array and every
number of the file in several ways, with the right checksum, and loads each. Prints a line per case before it is
tried, so that a process that dies tells by its last line what has killed it, and at the end how many were refused and
how many were used.
"""

from __future__ import annotations

import copy
import json
import sys
import warnings
from pathlib import Path

import numpy as np

import bamdp
from bamdp import _serial
from conformance_cases import agent_of, environment

LIVES = 12  # steps before the agent is saved


def saved_agent(planner: str, prior: str, rewards: str, path: Path) -> None:
    """Save an agent with some experience."""
    agent = agent_of(planner, prior, rewards)
    bamdp.simulate(agent, environment(rewards), LIVES, seed=1)
    agent.save(path)


def changed_arrays(array: np.ndarray) -> dict[str, np.ndarray]:
    """The array with one thing changed, by what it is."""
    found = {
        "half": array[: len(array) // 2] if array.ndim else array,
        "two rows": array[:2] if array.ndim else array,
        "none": array[:0] if array.ndim else array,
        "flat": array.ravel(),
        "one more dimension": array[None],
        "another type": array.astype(np.float32 if array.dtype.kind in "iub" else np.int64),
        "twice": np.concatenate([array, array]) if array.ndim else array,
    }
    if array.size and array.dtype.kind in "iu":
        top = np.iinfo(array.dtype)
        for name, value in {
            "huge": min(2**30, top.max),
            "most": top.max,
            "least": top.min,
            "minus one": -1,
        }.items():
            if top.min <= value <= top.max:
                found[f"all {name}"] = np.full_like(array, value)
                one = array.copy()
                one.flat[array.size // 2] = value
                found[f"one {name}"] = one
        found["shuffled"] = np.random.default_rng(0).permutation(array.ravel()).reshape(array.shape)
    if array.size and array.dtype.kind == "f":
        for name, value in {"nan": np.nan, "infinite": np.inf, "negative": -1.0, "large": 1e300}.items():
            one = array.copy()
            one.flat[array.size // 2] = value
            found[f"one {name}"] = one
    if array.size and array.dtype.kind == "b":
        found["flipped"] = ~array
    return {
        name: new
        for name, new in found.items()
        if not (new.shape == array.shape and np.array_equal(new, array))
    }


def changed_numbers(tree, path=()):
    """(where, tree) for each number of the JSON tree, replaced by others."""
    if isinstance(tree, dict):
        items = tree.items()
    elif isinstance(tree, list):
        items = enumerate(tree)
    else:
        return
    for key, value in items:
        if key in (
            "array",
            "planner",
        ):  # a planner's parameters are checked by itself, and may ask for long work
            continue
        if isinstance(value, (bool, int)):
            for new in (2**40, -(2**40), -1, 10**30, "x", None):
                yield (*path, key), new
        else:
            yield from changed_numbers(value, (*path, key))


def put(tree, path, value):
    """A copy of the tree with another value at a path."""
    tree = copy.deepcopy(tree)
    at = tree
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = value
    return tree


def write(path: Path, tree, arrays) -> None:
    """A file with the right checksum."""
    content = {"format": _serial.FORMAT, "checksum": _serial._checksum(tree, arrays), "value": tree}
    np.savez(path, tree=np.array(json.dumps(content)), **arrays)


def try_file(path: Path) -> bool:
    """Load and use an agent; False if it was refused."""
    try:
        agent = bamdp.Agent.load(path)
    except ValueError as error:
        assert "\n" not in str(error)  # noqa: PT017
        return False
    for state in (0, 1, 2):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                action = agent.act(state)
                agent.plan(state)
                agent.observe(state, action, 1.0, 1)
        except (ValueError, RuntimeError, OverflowError, ZeroDivisionError):
            pass
    return True


def main(folder: str, planner: str, prior: str, rewards: str) -> None:
    """Try all changes of one agent."""
    path = Path(folder) / "agent.npz"
    saved_agent(planner, prior, rewards, path)
    assert try_file(path), "the file as it was saved must be accepted"
    with open(path, "rb") as file:
        arrays = _serial.read_npz(file)
    tree = json.loads(str(arrays.pop("tree")))["value"]
    counts = {True: 0, False: 0}
    for name, array in arrays.items():
        for what, new in changed_arrays(array).items():
            print(f"{name} {what}", flush=True)
            write(path, tree, {**arrays, name: new})
            counts[try_file(path)] += 1
    for where, value in changed_numbers(tree):
        print(f"{'.'.join(map(str, where))} = {value}", flush=True)
        write(path, put(tree, where, value), arrays)
        counts[try_file(path)] += 1
    print(f"{counts[False]} refused, {counts[True]} used")


if __name__ == "__main__":
    main(*sys.argv[1:])
