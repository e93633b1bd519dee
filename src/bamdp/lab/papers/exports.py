"""Results from exported files, without a store of one's own: ``results/dss2020/*.runs.xz``.

The files are taken into a store that lasts as long as the block; every run is checked on the way
(:mod:`bamdp.lab.portable`). What the files do not have is missing from the results, which say so.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from bamdp.lab.portable import import_runs
from bamdp.lab.store import Store

ENDING = ".runs.xz"


@contextmanager
def opened(paths: Sequence[str | Path]) -> Iterator[Store]:
    """A store with the runs of these files, and of all files in these folders."""
    files = [file for path in paths for file in files_of(Path(path))]
    with TemporaryDirectory(prefix="bamdp-") as folder, Store(Path(folder) / "runs.sqlite") as store:
        for file in files:
            other = import_runs(store, file).other
            if other:
                raise ValueError(
                    f"{file} has {other} runs that another file has with other rewards; export both studies again"
                )
        yield store


def files_of(path: Path) -> list[Path]:
    """The file, or those of a folder."""
    if not path.is_dir():
        if not path.exists():
            raise FileNotFoundError(2, "No such file or directory", str(path))
        return [path]
    if is_empty(path):
        raise ValueError(f"{path} has no file that ends in {ENDING}; `bamdp lab export` writes them")
    return sorted(path.glob(f"*{ENDING}"))


def is_empty(path: Path) -> bool:
    """Whether it is a folder without exported files."""
    return path.is_dir() and not any(path.glob(f"*{ENDING}"))
