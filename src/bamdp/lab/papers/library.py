"""The studies that ship with the package, by name, and their runs as exported files have them.

Exported files (``results/dss2020/*.runs.xz``) are imported into temporary stores; every run is checked on the way
(:mod:`bamdp.lab.exports`). What the files do not have is missing from the results, which say so.

Studies share runs: those must have the same rewards in all files, but took their own time in each. So a study is read
from the files that are named after it, where there are any.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from bamdp import _checks
from bamdp.lab.exports import import_runs
from bamdp.lab.reading import parse_study
from bamdp.lab.store import Store
from bamdp.lab.study import Study

STUDIES = (
    "dss2020/published",
    "dss2020/fair",
    "dss2020/single",
    "dss2020/ablation",
    "dss2020/figure3",
)
EXPORT_ENDING = ".runs.xz"


def paper_study(name: str, *, quick: bool = False) -> Study:
    """Return the study with this name that ships with the package, shortened if ``quick``."""
    _checks.one_of(name, "study of a paper", STUDIES)
    source = files(__package__).joinpath(f"{name}.toml").read_text(encoding="utf-8")
    return parse_study(source, quick=quick, path=Path(name))


class StudyParts(NamedTuple):
    """The parts of several studies that have certain environments and algorithms."""

    studies: dict[str, Study]  # by name
    left_out: tuple[
        str, ...
    ]  # studies that choose for all environments together, where only some are asked for


def study_parts(
    names: Sequence[str], quick: bool, environments: list[str] | None, algorithms: list[str] | None
) -> StudyParts:
    """Return the parts of these studies with the environments and algorithms asked for (None: all of them).

    Studies without any of the algorithms are not in the result. A label that no study has is an error.
    """
    studies = {name: paper_study(name, quick=quick) for name in names}
    env_labels = dict.fromkeys(e.label for study in studies.values() for e in study.environments)
    known = dict.fromkeys(cell.algorithm for study in studies.values() for cell in study.cells)
    for label in environments or ():
        _checks.one_of(label, "environment of the study", env_labels)
    for label in algorithms or ():
        _checks.one_of(label, "algorithm of the study", known)
    if environments is not None and set(environments) == set(env_labels):
        environments = None
    selected, left_out = {}, []
    for name, study in studies.items():
        labels = {cell.algorithm for cell in study.cells}
        kept = None if algorithms is None else [label for label in algorithms if label in labels]
        if kept == []:
            continue
        if environments is not None and study.tuning is not None and study.tuning.across:
            left_out.append(name)
        elif not _has_cell(study, environments, kept):
            raise ValueError("none of these algorithms is run in these environments")
        else:
            selected[name] = study.only(environments, kept)
    if not selected:
        raise ValueError("these algorithms choose for all environments together; drop --environments")
    return StudyParts(selected, tuple(left_out))


def _has_cell(study: Study, environments: list[str] | None, algorithms: list[str] | None) -> bool:
    return any(
        (environments is None or cell.environment.label in environments)
        and (algorithms is None or cell.algorithm in algorithms)
        for cell in study.cells
    )


class ExportedRuns:
    """Stores with the runs of exported files: of all files together, and of each study's files alone."""

    def __init__(self, paths: Sequence[Path], stack: ExitStack) -> None:
        self._paths, self._stack = paths, stack
        self._folder = Path(stack.enter_context(TemporaryDirectory(prefix="bamdp-")))
        self.together = self._imported(paths, "together")

    def store_of(self, study: str) -> Store:
        """Return the runs of the files named after a study, such as dss2020/fair; of all files if none is."""
        named = [path for path in self._paths if path.name == export_name(study)]
        return self.together if named in ([], self._paths) else self._imported(named, study.replace("/", "-"))

    def _imported(self, paths: Sequence[Path], name: str) -> Store:
        store = self._stack.enter_context(Store(self._folder / f"{name}.sqlite"))
        for path in paths:
            contradictions = import_runs(store, path).other
            if contradictions:
                raise ValueError(
                    f"{path} has {contradictions} runs that another file has with other rewards; "
                    "export both studies again"
                )
        return store


@contextmanager
def open_exports(paths: Sequence[str | Path]) -> Iterator[ExportedRuns]:
    """Open the runs of these files, and of all files in these folders, for the duration of a ``with`` block."""
    with ExitStack() as stack:
        yield ExportedRuns([file for path in paths for file in export_files(Path(path))], stack)


def export_name(study: str) -> str:
    """Return the file name of a study's exported runs, such as fair.runs.xz for dss2020/fair."""
    return study.rpartition("/")[2] + EXPORT_ENDING


def export_files(path: Path) -> list[Path]:
    """Return the file itself, or the exported files of a folder; no such file is an error."""
    if not path.is_dir():
        if not path.exists():
            raise FileNotFoundError(2, "No such file or directory", str(path))
        return [path]
    found = sorted(path.glob(f"*{EXPORT_ENDING}"))
    if not found:
        raise ValueError(f"{path} has no file that ends in {EXPORT_ENDING}; `bamdp lab export` writes them")
    return found
