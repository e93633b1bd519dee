"""Docstrings write names as :class:`~bamdp.DSS`; the pages show them as code, by their last part where ~ says so."""

from __future__ import annotations

import re
from typing import Any

import griffe

ROLE = re.compile(r":(?:class|func|mod|meth|attr|data):`(~?)([\w.]+)`")


def plain(text: str) -> str:
    """The text without roles."""
    return ROLE.sub(lambda found: f"`{found[2].rpartition('.')[2] if found[1] else found[2]}`", text)


class Roles(griffe.Extension):
    """Rewrites every docstring that is collected."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        if obj.docstring is not None:
            obj.docstring.value = plain(obj.docstring.value)
