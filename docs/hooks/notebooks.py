"""The notebooks of the repository, with the outputs that are stored in them, as pages of the site."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parent.parent.parent
FOLDER = "notebooks"


def on_files(files: Files, config: Any, **_: Any) -> Files:
    """Called by mkdocs when it has found the pages: adds one for each notebook."""
    for path in sorted((ROOT / FOLDER).glob("*.ipynb")):
        name = f"{FOLDER}/{path.stem}.md"
        files.append(File.generated(config, name, content=as_page(json.loads(path.read_text()), path.name)))
    return files


def as_page(notebook: dict[str, Any], name: str) -> str:
    """Return a notebook in Markdown: texts, code, and what the code has shown."""
    parts = [part for cell in notebook["cells"] for part in _cell(cell)]
    note = f"*This page is the notebook `{FOLDER}/{name}` of the repository.*"
    return "\n\n".join([parts[0], note, *parts[1:]]) + "\n"


def _cell(cell: dict[str, Any]) -> list[str]:
    source = "".join(cell["source"])
    if cell["cell_type"] == "markdown":
        return [source]
    return [f"```python\n{source}\n```", *(shown for output in cell["outputs"] if (shown := _output(output)))]


def _output(output: dict[str, Any]) -> str:
    """Return an output: a picture, a table, or text; the best form that it has."""
    data = output.get("data", {"text/plain": output.get("text", "")})
    if "image/png" in data:
        return f'<img alt="" src="data:image/png;base64,{"".join(data["image/png"]).strip()}">'
    if "image/svg+xml" in data:
        return f'<div class="notebook-picture">\n{"".join(data["image/svg+xml"])}\n</div>'
    if "text/html" in data:
        return f'<div class="notebook-table">\n{"".join(data["text/html"])}\n</div>'
    text = "".join(data.get("text/plain", "")).rstrip()
    return f"```text\n{text}\n```" if text else ""
