"""The small language in which things are named in text: ``name:key=value,key=value``."""

from __future__ import annotations

import ast
from typing import Any

_WORDS = {"true": True, "false": False, "none": None}


def split_spec(text: str) -> tuple[str, dict[str, str]]:
    """The name and the written parameters of a spec.

    Commas inside brackets belong to the value. A key may have dots (``generator.depth``) and hyphens, which
    become underscores.

    Examples
    --------
    >>> split_spec("sparse:alpha=0.2,p_k=(1, 2)")
    ('sparse', {'alpha': '0.2', 'p_k': '(1, 2)'})
    >>> split_spec("maze")
    ('maze', {})
    """
    name, _, rest = text.partition(":")
    parameters: dict[str, str] = {}
    for part in split_values(rest):
        key, value = split_pair(part, text)
        if key in parameters:
            raise ValueError(f"{key} is given twice in {text!r}; drop one")
        parameters[key] = value
    return name.strip(), parameters


def split_pair(part: str, whole: str) -> tuple[str, str]:
    """The key and the value of ``key=value``; ``whole`` is what the message shows it in."""
    key, equals, value = (piece.strip() for piece in part.partition("="))
    key = key.replace("-", "_")
    if not equals or not value or not all(piece.isidentifier() for piece in key.split(".")):
        inside = f" in {whole!r}" if part.strip() != whole.strip() else ""
        raise ValueError(f"{part.strip()!r}{inside} is not key=value; write for instance grid:size=7")
    return key, value


def literal(value: str) -> Any:
    """A written value as a Python literal (true, false and none in any case), or else as it is written.

    Examples
    --------
    >>> literal("0.5"), literal("false"), literal("8x8")
    (0.5, False, '8x8')
    """
    if value.lower() in _WORDS:
        return _WORDS[value.lower()]
    try:
        return ast.literal_eval(value)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return value


def split_values(text: str) -> list[str]:
    """What stands between commas that are outside all brackets; an empty text has none."""
    parts, depth = [""], 0
    for character in text:
        depth += (character in "([") - (character in ")]")
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return parts if text.strip() else []
