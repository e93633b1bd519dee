"""The API reference: a page for every public class, and one for each group with its functions.

Nothing of it is written by hand: what is public is ``bamdp.__all__`` and the ``__all__`` of its public modules, and the
text is that of the docstrings. ``on_config`` and ``on_files`` are called by MkDocs.
"""

from __future__ import annotations

import inspect
import re
from typing import Any

from mkdocs.structure.files import File, Files

GROUPS = {  # title: the modules in which its things are defined
    "Agents and runs": ("bamdp.agent", "bamdp.simulation", "bamdp.runs", "bamdp.experiments"),
    "Beliefs": ("bamdp.beliefs",),
    "Planners": ("bamdp.planners", "bamdp.generators", "bamdp.registry"),
    "Environments": ("bamdp.envs", "bamdp.gym", "bamdp.bsuite"),
    "Continuous observations": ("bamdp.continuous",),
    "Known models": ("bamdp.mdp",),
    "Pictures": ("bamdp.plot",),
    "Bounds and losses": ("bamdp.theory",),
    "Checks": ("bamdp.testing",),
}
MODULES = ("plot", "theory", "testing", "gym", "continuous")  # whose public names are reached through them


def public() -> dict[str, Any]:
    """Everything public, by the name under which it is reached in ``bamdp``."""
    import bamdp

    found = {name: getattr(bamdp, name) for name in bamdp.__all__ if name not in (*MODULES, "__version__")}
    for module in MODULES:
        part = getattr(bamdp, module)
        found |= {
            f"{module}.{name}": getattr(part, name)
            for name in part.__all__
            if found.get(name) is not getattr(part, name)
        }
    return {name: thing for name, thing in found.items() if callable(thing)}


def grouped() -> dict[str, dict[str, Any]]:
    """The public things of each group."""
    things = public()
    groups = {
        title: {name: thing for name, thing in things.items() if thing.__module__.startswith(modules)}
        for title, modules in GROUPS.items()
    }
    return {title: group for title, group in groups.items() if group}


def pages() -> dict[str, str]:
    """The text of each page, by its path."""
    texts = {}
    for title, things in grouped().items():
        classes = {name: thing for name, thing in things.items() if inspect.isclass(thing)}
        rows = [f"| [`{name}`]({name}.md) | {summary(thing)} |" for name, thing in sorted(classes.items())]
        table = ["| | |", "|---|---|", *rows, ""] if rows else []
        functions = [f"::: bamdp.{name}" for name in sorted(things.keys() - classes.keys())]
        texts[group_path(title)] = "\n".join([f"# {title}", "", *table, *functions, ""])
        for name, thing in classes.items():
            members = ", members: false" if plain(thing) else ""
            texts[f"reference/{name}.md"] = (
                f"::: bamdp.{name}\n    options: {{ heading_level: 1{members} }}\n"
            )
    return texts


def summary(thing: Any) -> str:
    """The first line of a docstring, names of other things as code."""
    first = (inspect.getdoc(thing) or "").partition("\n")[0]
    return re.sub(r":\w+:`~?([\w.]+)`", r"`\1`", first)


def plain(cls: type) -> bool:
    """Whether a class is parameters only, so that its docstring says all."""
    import bamdp

    bases = (bamdp.Planner, bamdp.Prior, bamdp.RewardModel, bamdp.Generator)
    return issubclass(cls, bases) and cls not in bases


def group_path(title: str) -> str:
    """The path of a group's page."""
    return f"reference/{title.lower().replace(' ', '-')}.md"


def on_config(config: Any) -> Any:
    """Put the pages into the navigation, below Reference."""
    section = next(entry["Reference"] for entry in config.nav if "Reference" in entry)
    for title, things in grouped().items():
        classes = sorted(name for name, thing in things.items() if inspect.isclass(thing))
        listed = [{name: f"reference/{name}.md"} for name in classes]
        section.append({title: [{title: group_path(title)}, *listed]})
    return config


def on_files(files: Files, config: Any) -> Files:
    """Add the pages."""
    for path, text in pages().items():
        files.append(File.generated(config, path, content=text))
    return files
