"""Draw mutations of the source by a seed and report which of them the tests let pass.

``python benchmarks/mutations.py [--tree DIR] [--number 40] [--seed 1] [--jobs 2] [--uncompiled] [--json out.json]``

A mutation changes one place of the numerical layers: the sign of an operator, a comparison (``<`` for ``<=``), a number
by one, a discount left out, or a statement that updates something left out (a belief that does not learn, a cache that
is not renewed). Each is written into a copy of the tree (``--tree``, by default this one), and the quick tests of its
layer and the conformance tests run against it until the first failure. A mutation *survives* if all of them pass.
With ``--uncompiled``, tests run without Numba, which is quicker.
Survivors are printed with their line: some are equivalent to the original and no test can tell, the others are gaps.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

TESTS = {  # quick tests that a mutation of a layer must fail, those of the layer first
    "_kernels": ("kernels", "mdp", "beliefs"),
    "mdp": ("mdp", "kernels"),
    "beliefs": ("beliefs", "conformance", "planners"),
    "generators": ("generators", "planners"),
    "planners": ("planners", "conformance"),
    "theory": ("theory",),
}
SIGNS = {ast.Add: "-", ast.Sub: "+", ast.Mult: "/", ast.Div: "*"}
COMPARISONS = {ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">", ast.Eq: "!=", ast.NotEq: "=="}
SYMBOLS = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.Eq: "==",
    ast.NotEq: "!=",
}


class Mutation(NamedTuple):
    """One change: the text from ``begin`` to ``end`` of a file becomes ``text``."""

    path: str
    line: int
    begin: int
    end: int
    text: str
    what: str


def _offsets(source: str) -> list[int]:
    """Return where each line begins."""
    offsets = [0]
    for line in source.splitlines(keepends=True):
        offsets.append(offsets[-1] + len(line))
    return offsets


def places(path: Path, name: str) -> Iterator[Mutation]:
    """Yield every mutation of a file's functions, in order."""
    source = path.read_text()
    if not source.isascii():  # offsets of the syntax tree count bytes
        source = source.encode("ascii", "replace").decode()
    lines = _offsets(source)

    def span(node: ast.AST) -> tuple[int, int]:
        begin = lines[node.lineno - 1] + node.col_offset  # type: ignore[attr-defined]
        return begin, lines[node.end_lineno - 1] + node.end_col_offset  # type: ignore[attr-defined]

    for function in ast.walk(ast.parse(source)):
        if not isinstance(function, ast.FunctionDef) or function.name.startswith("__"):
            continue
        for node in ast.walk(function):
            if isinstance(node, ast.BinOp) and type(node.op) in SIGNS:
                begin, end = span(node.left)[1], span(node.right)[0]
                old, new = SYMBOLS[type(node.op)], SIGNS[type(node.op)]
                gap = source[begin:end]
                if gap.count(old) == 1 and "\n" not in gap:
                    yield Mutation(
                        name, node.lineno, begin, end, gap.replace(old, new), f"{old} becomes {new}"
                    )
            elif isinstance(node, ast.Compare) and type(node.ops[0]) in COMPARISONS:
                begin, end = span(node.left)[1], span(node.comparators[0])[0]
                old, new = SYMBOLS[type(node.ops[0])], COMPARISONS[type(node.ops[0])]
                gap = source[begin:end]
                if gap.count(old) == 1 and "\n" not in gap:
                    yield Mutation(
                        name, node.lineno, begin, end, gap.replace(old, new), f"{old} becomes {new}"
                    )
            elif isinstance(node, ast.Constant) and type(node.value) is int and node.value in (0, 1, 2):
                begin, end = span(node)
                text = str(node.value + 1)
                yield Mutation(name, node.lineno, begin, end, text, f"{node.value} becomes {text}")
            elif isinstance(node, ast.Attribute | ast.Name) and source[slice(*span(node))].endswith(
                "discount"
            ):
                if isinstance(node.ctx, ast.Load):
                    begin, end = span(node)
                    yield Mutation(name, node.lineno, begin, end, "1.0", "no discount")
            elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
                begin, end = span(node)
                text = source[begin:end].split("(")[0]
                yield Mutation(name, node.lineno, begin, end, "pass", f"{text} is not called")


def draw(tree: Path, number: int, seed: int) -> list[Mutation]:
    """Return ``number`` mutations: a layer by its number of lines, then a kind of change, then a place."""
    rng = random.Random(seed)
    package = tree / "src" / "bamdp"
    found: dict[str, dict[str, list[Mutation]]] = {}
    for layer in TESTS:
        kinds: dict[str, list[Mutation]] = {}
        for path in sorted((package / layer).rglob("*.py")):
            for one in places(path, str(path.relative_to(tree))):
                kind = one.what.split()[-2] if "called" not in one.what else "call"
                kinds.setdefault("number" if one.what[0].isdigit() else kind, []).append(one)
        found[layer] = {kind: kinds[kind] for kind in sorted(kinds)}
    weights = [sum(map(len, kinds.values())) for kinds in found.values()]
    drawn = []
    while len(drawn) < number:
        (layer,) = rng.choices(list(found), weights)
        one = rng.choice(found[layer][rng.choice(list(found[layer]))])
        if one not in drawn:
            drawn.append(one)
    return drawn


def survives(tree: Path, mutation: Mutation, seconds: float, uncompiled: bool) -> bool:
    """Return whether the quick tests of the mutation's layer pass in a copy of the tree that has it."""
    layer = Path(mutation.path).parts[2]
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "tree"
        shutil.copytree(tree, copy, ignore=shutil.ignore_patterns(".git", ".venv", "__pycache__", "out"))
        path = copy / mutation.path
        source = path.read_text()
        before, after = source[: mutation.begin], source[mutation.end :]
        path.write_text(before + mutation.text + after)
        environment = {
            **os.environ,
            "PYTHONPATH": str(copy / "src"),
            "NUMBA_CACHE_DIR": str(Path(folder) / "cache"),
            **({"NUMBA_DISABLE_JIT": "1"} if uncompiled else {}),
        }
        for part in TESTS[layer]:
            if not (copy / "tests" / part).exists():
                continue
            command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-m", "not slow"]
            try:
                result = subprocess.run(
                    [*command, f"tests/{part}"],
                    cwd=copy,
                    env=environment,
                    capture_output=True,
                    timeout=seconds,
                )
            except subprocess.TimeoutExpired:  # a loop that does not end is noticed by whoever waits for it
                return False
            if result.returncode:
                return False
    return True


def main() -> None:
    """Draw, run and report."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--tree", type=Path, default=Path(__file__).resolve().parent.parent)
    parser.add_argument("--number", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=900.0, help="limit of one part of the tests")
    parser.add_argument("--jobs", type=int, default=1, help="mutations tested at the same time")
    parser.add_argument("--uncompiled", action="store_true")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    rows = []

    def test(mutation: Mutation) -> None:
        alive = survives(options.tree, mutation, options.seconds, options.uncompiled)
        rows.append({"path": mutation.path, "line": mutation.line, "what": mutation.what, "survives": alive})
        print(
            f"{'SURVIVES' if alive else 'fails   '} {mutation.path}:{mutation.line} {mutation.what}",
            flush=True,
        )
        if options.json:
            options.json.write_text(json.dumps(rows, indent=1))

    with ThreadPoolExecutor(options.jobs) as pool:
        list(pool.map(test, draw(options.tree, options.number, options.seed)))
    print(f"{sum(row['survives'] for row in rows)} of {len(rows)} survive")


if __name__ == "__main__":
    main()
