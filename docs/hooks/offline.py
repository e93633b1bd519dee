"""No page asks an outside host: the theme's offline search loads a small script from one, and has it here instead."""

from __future__ import annotations

from typing import Any

OUTSIDE, HERE = "https://unpkg.com/iframe-worker/shim", "assets/iframe-worker/shim.js"


def on_post_page(output: str, page: Any, **_: Any) -> str:
    """Called by mkdocs for every finished page; a page in a folder needs the way up from it."""
    return output.replace(OUTSIDE, "../" * page.url.count("/") + HERE)


def on_post_template(output_content: str, **_: Any) -> str:
    """The same for 404.html."""
    return output_content.replace(OUTSIDE, HERE)
