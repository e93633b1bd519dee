"""Parts of a text that a program writes, between marks that a reader of the page does not see.

<!-- begin: fair -->
... replaced each time ...
<!-- end: fair -->
"""

from __future__ import annotations

import re
from collections.abc import Mapping

MARK = re.compile(r"<!-- (begin|end): ([\w-]+) -->")


def fill(text: str, sections: Mapping[str, str]) -> str:
    """The text with what stands between its marks replaced.

    Examples
    --------
    >>> fill("<!-- begin: x -->\\nold\\n<!-- end: x -->", {"x": "new"})
    '<!-- begin: x -->\\n\\nnew\\n\\n<!-- end: x -->'
    """
    for name in marked(text):
        if name not in sections:
            raise ValueError(
                f"the page has a part {name!r} that nobody writes; known are {', '.join(sections)}"
            )
        part = re.compile(rf"(<!-- begin: {name} -->\n).*?(<!-- end: {name} -->)", re.DOTALL)
        text = part.sub(lambda found, name=name: f"{found[1]}\n{sections[name].strip()}\n\n{found[2]}", text)  # type: ignore[misc]
    return text


def marked(text: str) -> list[str]:
    """The names of its parts; each must begin and end once, one after the other."""
    found = [(mark[1], mark[2]) for mark in MARK.finditer(text)]
    names = [name for kind, name in found if kind == "begin"]
    if found != [(kind, name) for name in names for kind in ("begin", "end")] or len(set(names)) < len(names):
        raise ValueError(
            "marks must come in pairs, <!-- begin: NAME --> and <!-- end: NAME -->, each name once"
        )
    return names
