"""The studies that ship with the package, by name."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from bamdp import _checks
from bamdp.lab.reading import parse_study
from bamdp.lab.study import Study

STUDIES = ("dss2020/published", "dss2020/fair", "dss2020/single", "dss2020/ablation")


def paper_study(name: str, *, quick: bool = False) -> Study:
    """A study that ships with the package."""
    _checks.one_of(name, "study of a paper", STUDIES)
    source = files(__package__).joinpath(f"{name}.toml").read_text(encoding="utf-8")
    return parse_study(source, quick=quick, path=Path(name))


def parts(
    names: tuple[str, ...], quick: bool, environments: list[str] | None, algorithms: list[str] | None
) -> dict[str, Study]:
    """Of these studies what has the environments and algorithms asked for, by name; studies without any are left out.

    A study that chooses for all environments together is left out, too, unless all are asked for.
    """
    whole = {name: paper_study(name, quick=quick) for name in names}
    known = dict.fromkeys(cell.algorithm for study in whole.values() for cell in study.cells)
    for label in algorithms or ():
        _checks.one_of(label, "algorithm of the study", known)
    found = {}
    for name, study in whole.items():
        own = dict.fromkeys(cell.algorithm for cell in study.cells)
        wanted = None if algorithms is None else [label for label in algorithms if label in own]
        together = study.tuning is not None and study.tuning.across
        if wanted == [] or (together and environments is not None):
            continue
        found[name] = study.only(environments, wanted)
    if not found:
        raise ValueError("these algorithms choose for all environments together; drop --environments")
    return found
