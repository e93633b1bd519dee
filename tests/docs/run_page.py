"""Run the code of a documentation page, in order, in the current folder. A process of its own does it.

- ``python`` blocks share one namespace. One with ``title="name.py"`` is written to that file, to be imported.
- a ``text`` block with ``title="output"`` is what the block before it prints, to the letter.
- ``console`` blocks: every ``$ bamdp ...`` is run and must succeed.
- ``sh`` blocks hold what takes long: their ``bamdp`` commands must at least be understood.
"""

from __future__ import annotations

import contextlib
import io
import re
import sys
import types
from pathlib import Path

FENCE = re.compile(r'^```(python|text|console|sh)(?: title="([^"]+)")?\n(.*?)^```$', flags=re.M | re.S)
INCLUDE = re.compile(r'^--8<-- "([^"]+)"$', flags=re.M)


def main(page: Path, root: Path) -> int:
    """Returns the number of blocks that were run."""
    include = lambda found: (root / found[1]).read_text().rstrip()
    sys.path.insert(0, str(Path.cwd()))
    module = sys.modules["page"] = types.ModuleType("page")  # so that what it defines can be pickled
    names = vars(module)
    printed, done = "", 0
    for language, title, code in FENCE.findall(INCLUDE.sub(include, page.read_text())):
        if language == "python" and title:
            if "/" not in title:  # a file of the reader's; others are parts of a walk through the repository
                Path(title).write_text(code)
        elif language == "python":
            printed = captured(
                lambda code=code: exec(compile(code, page.name, "exec", dont_inherit=True), names)
            )
        elif language == "text" and title == "output":
            assert code == printed, f"the page says\n{code}\nbut it prints\n{printed}"
        elif language == "console":
            for command in commands(code):
                captured(lambda command=command: run(command))
        elif language == "sh":
            for command in commands(code):
                parse(command)
        done += 1
    return done


def captured(do) -> str:
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        do()
    return out.getvalue()


def commands(code: str) -> list[list[str]]:
    """The ``bamdp`` commands of a block, without prompt and comment."""
    joined = code.replace("\\\n", " ")  # a command may go on in the next line
    lines = [line.removeprefix("$ ").partition(" #")[0] for line in joined.splitlines()]
    return [line.split()[1:] for line in lines if line.startswith("bamdp ")]


def run(command: list[str]) -> None:
    from bamdp.cli import main as bamdp

    assert bamdp(command) == 0, command


def parse(command: list[str]) -> None:
    from bamdp.cli import make_parser

    _, unknown = make_parser().parse_known_args(command)
    assert not unknown, command


if __name__ == "__main__":
    print(main(Path(sys.argv[1]), Path(sys.argv[2])))
