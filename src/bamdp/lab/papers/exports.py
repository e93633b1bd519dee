"""Results from exported files, without a store of one's own: ``results/dss2020/*.runs.xz``.

The files are taken into stores that last as long as the block; every run is checked on the way
(:mod:`bamdp.lab.exports`). What the files do not have is missing from the results, which say so.

Studies share runs: those must have the same rewards in all files, but took their own time in each. So a study is read
from the files that are named after it, where there are any.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from bamdp.lab.exports import import_runs
from bamdp.lab.store import Store

ENDING = ".runs.xz"


class Exports:
    """Stores of exported files: of all together, and of each study's own."""

    def __init__(self, files: Sequence[Path], stack: ExitStack) -> None:
        self._files, self._stack = files, stack
        self._folder = Path(stack.enter_context(TemporaryDirectory(prefix="bamdp-")))
        self.together = self._taken_in(files, "together")

    def of(self, study: str) -> Store:
        """The files named after a study, such as dss2020/fair; all of them where none is."""
        own = [file for file in self._files if file.name == file_name(study)]
        return self.together if own in ([], self._files) else self._taken_in(own, study.replace("/", "-"))

    def _taken_in(self, files: Sequence[Path], name: str) -> Store:
        store = self._stack.enter_context(Store(self._folder / f"{name}.sqlite"))
        for file in files:
            other = import_runs(store, file).other
            if other:
                raise ValueError(
                    f"{file} has {other} runs that another file has with other rewards; export both studies again"
                )
        return store


@contextmanager
def opened(paths: Sequence[str | Path]) -> Iterator[Exports]:
    """The runs of these files, and of all files in these folders."""
    with ExitStack() as stack:
        yield Exports([file for path in paths for file in files_of(Path(path))], stack)


def file_name(study: str) -> str:
    """What a file with a study's runs is called, such as fair.runs.xz for dss2020/fair."""
    return study.rpartition("/")[2] + ENDING


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
