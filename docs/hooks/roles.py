"""What the pages make of docstrings.

Names written as :class:`~bamdp.DSS` are shown as code, by their last part where ~ says so. Parameters that are
described together, ``epsilon, learning_rate``, become one entry each, since the reader of docstrings would give the
second the default of the first. A parameter that says what it may be, ``n_models: int = whole_number(5)``, is
shown with its default, 5.
"""

from __future__ import annotations

import importlib
import inspect
import re
from typing import Any

import griffe

from bamdp._parameters import Declared

# calls in a class whose first argument is the default
CHECKED = ("bamdp._parameters.", "bamdp.generators.generator_parameter", "bamdp.planners.thompson.resampling")
ROLE = re.compile(r":(?:class|func|mod|meth|attr|data):`(~?)([\w.]+)`")


SHARED = re.compile(r"^(\w+(?:, \w+)+)( :[^\n]*)?\n((?:(?:[ ]{4}[^\n]*)?(?:\n|\Z))+)", flags=re.M)


def separate(text: str) -> str:
    """The text with an entry for each of the parameters that are described together."""
    return SHARED.sub(
        lambda found: "".join(f"{name}{found[2] or ''}\n{found[3]}" for name in found[1].split(", ")), text
    )


def plain(text: str) -> str:
    """The text without roles."""
    return ROLE.sub(lambda found: f"`{found[2].rpartition('.')[2] if found[1] else found[2]}`", text)


class Roles(griffe.Extension):
    """Rewrites every docstring that is collected, and the default of every checked parameter."""

    def on_attribute_instance(self, *, attr: griffe.Attribute, **_: Any) -> None:
        if isinstance(attr.value, griffe.ExprCall) and attr.value.canonical_path.startswith(CHECKED):
            attr.value = attr.value.arguments[0]

    def on_class_members(self, *, cls: griffe.Class, **_: Any) -> None:
        """Take the docstring of a class with declared parameters as it is at run time, which lists them."""
        made = getattr(importlib.import_module(cls.module.path), cls.name, None)
        if cls.docstring is not None and isinstance(made, type) and issubclass(made, Declared):
            cls.docstring.value = inspect.getdoc(made) or ""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        if obj.docstring is not None:
            obj.docstring.value = separate(plain(obj.docstring.value))
