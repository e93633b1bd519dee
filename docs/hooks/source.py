"""Pages quote what stands elsewhere, so that it is in one place.

``::: source src/bamdp/planners/dss.py search`` becomes the source of that function, wherever it has moved in its file;
``::: include CONTRIBUTING.md`` becomes that file of the repository, with its links as they are on the site;
``::: help lab run`` becomes what ``bamdp lab run --help`` prints;
``::: defaults`` becomes the table of what planners use where nothing else is named.
"""

from __future__ import annotations

import argparse
import ast
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent.parent
SOURCE = re.compile(r"^::: source (\S+) ([\w.]+)$", flags=re.M)
INCLUDE = re.compile(r"^::: include (\S+)$", flags=re.M)
HELP = re.compile(r"^::: help ([\w ]+)$", flags=re.M)
DEFAULTS = re.compile(r"^::: defaults$", flags=re.M)
WIDTH = 85  # columns of help


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Called by mkdocs for every page."""
    markdown = SOURCE.sub(lambda found: quoted(found[1], found[2]), markdown)
    markdown = HELP.sub(lambda found: help_text(found[1]), markdown)
    markdown = DEFAULTS.sub(lambda found: defaults_table(), markdown)
    return INCLUDE.sub(lambda found: (ROOT / found[1]).read_text().replace("](docs/", "]("), markdown)


def defaults_table() -> str:
    """A table of every planner with its default prior and discount."""
    from bamdp.planners import PLANNERS as registered

    rows = ["| planner | prior | discount |", "|---|---|---|"]
    for name, entry in registered.items():
        prior = f"`{entry.cls.default_prior}`" if entry.cls.uses_prior else "not used"
        rows.append(f"| `{name}` | {prior} | {entry.cls.default_discount} |")
    return "\n".join(rows)


def help_text(command: str) -> str:
    """A fenced block with the help of a command."""
    os.environ["COLUMNS"] = str(WIDTH + 2)  # argparse leaves two free
    return f"```text\n{dict(command_parsers())[command].format_help()}```"


def command_parsers() -> Iterator[tuple[str, argparse.ArgumentParser]]:
    """The parser of every command; those of the laboratory are "lab run" and so on."""
    from bamdp.cli import make_parser

    def below(parser: argparse.ArgumentParser) -> Iterator[tuple[str, argparse.ArgumentParser]]:
        for action in parser._actions:
            if isinstance(action, argparse._SubParsersAction):
                yield from action.choices.items()

    for name, parser in below(make_parser()):
        yield name, parser
        yield from ((f"{name} {inner}", one) for inner, one in below(parser))


def quoted(path: str, name: str) -> str:
    """A fenced block with the definition of ``name`` (``Class.method`` for a method), decorators included."""
    text = (ROOT / path).read_text()
    node: Any = ast.parse(text)
    for part in name.split("."):
        node = next((n for n in node.body if getattr(n, "name", None) == part), None)
        if node is None:
            raise ValueError(f"{path} has no {name}: fix the page that quotes it")
    first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
    lines = text.splitlines()[first - 1 : node.end_lineno]
    indent = len(lines[0]) - len(lines[0].lstrip())
    body = "\n".join(line[indent:] for line in lines)
    return f'```{{ .python .source title="{path}" }}\n{body}\n```'
