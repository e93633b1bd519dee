"""The studies that ship with the package, by name."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

from bamdp import _checks
from bamdp.lab.reading import parse_study
from bamdp.lab.study import Study

STUDIES = ("dss2020/published", "dss2020/fair", "dss2020/single", "dss2020/ablation")


def paper_study(name: str, *, quick: bool = False) -> Study:
    """A study that ships with the package."""
    _checks.one_of(name, "study of a paper", STUDIES)
    source = files(__package__).joinpath(f"{name}.toml").read_text(encoding="utf-8")
    return parse_study(source, quick=quick, path=Path(name))


class Parts(NamedTuple):
    """What was found of several studies."""

    studies: dict[str, Study]  # by name
    left_out: tuple[
        str, ...
    ]  # names of those that choose for all environments together, where not all are asked for


def parts(
    names: tuple[str, ...], quick: bool, environments: list[str] | None, algorithms: list[str] | None
) -> Parts:
    """Of these studies what has the environments and algorithms asked for; studies without any are not in it."""
    whole = {name: paper_study(name, quick=quick) for name in names}
    places = dict.fromkeys(place.label for study in whole.values() for place in study.environments)
    known = dict.fromkeys(cell.algorithm for study in whole.values() for cell in study.cells)
    for label in environments or ():
        _checks.one_of(label, "environment of the study", places)
    for label in algorithms or ():
        _checks.one_of(label, "algorithm of the study", known)
    if environments is not None and set(environments) == set(places):
        environments = None
    found, left_out = {}, []
    for name, study in whole.items():
        own = dict.fromkeys(cell.algorithm for cell in study.cells)
        wanted = None if algorithms is None else [label for label in algorithms if label in own]
        if wanted == []:
            continue
        if environments is not None and study.tuning is not None and study.tuning.across:
            left_out.append(name)
        else:
            found[name] = study.only(environments, wanted)
    if not found:
        raise ValueError("these algorithms choose for all environments together; drop --environments")
    return Parts(found, tuple(left_out))
