"""The studies that ship with the package, by name."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

from bamdp import _checks
from bamdp.lab.reading import make_study, parse_study
from bamdp.lab.study import Study

STUDIES = (
    "dss2020/published",
    "dss2020/fair",
    "dss2020/single",
    "dss2020/fair2",
    "dss2020/single2",
    "dss2020/stated",
    "dss2020/ablation",
    "dss2020/figure3",
    "dss2020/deep-sea",
    "bbrl2016/families",
)


def paper_study(name: str, *, quick: bool = False) -> Study:
    """Return the study with this name that ships with the package, shortened if ``quick``.

    One that says ``base = "other"`` is that study of the same folder with its own keys in place of the other's, and its
    own keys of tuning.
    """
    _checks.one_of(name, "study of a paper", STUDIES)
    source = _source(name)
    keys = tomllib.loads(source)
    if "base" not in keys:
        return parse_study(source, quick=quick, path=Path(name))
    folder = name.rpartition("/")[0]
    base = tomllib.loads(_source(f"{folder}/{keys.pop('base')}"))
    tuning = {**base.get("tuning", {}), **keys.pop("tuning", {})}
    return make_study({**base, **keys, "tuning": tuning}, quick=quick, source=source, path=Path(name))


def _source(name: str) -> str:
    return files(__package__).joinpath(f"{name}.toml").read_text(encoding="utf-8")


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
