"""Run the notebooks and keep their outputs: ``python tools/notebooks.py [folder]``, which is ``make notebooks``.

Without a folder they are written where they are. Times, which differ from machine to machine, are left out of what
objects print in one line.
"""

from __future__ import annotations

import re
import sys
import tempfile
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

ROOT = Path(__file__).resolve().parents[1]
NOTEBOOKS = ROOT / "notebooks"
TIMEOUT = 600  # seconds for a cell, on a machine that must compile first
TIMES = re.compile(r"(, )?[\d.e-]+ ms per step")


def execute(path: Path) -> Any:
    """Return a notebook with the outputs of a new kernel, in a folder of its own; an error in a cell is raised."""
    notebook = nbformat.read(path, as_version=4)
    with tempfile.TemporaryDirectory() as folder:
        options = {
            "timeout": TIMEOUT,
            "startup_timeout": TIMEOUT,
            "resources": {"metadata": {"path": folder}},
        }
        NotebookClient(notebook, **options).execute()
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)  # when it was run
        if cell.cell_type == "code":
            cell.outputs = [_plain(output) for output in cell.outputs if output.get("name") != "stderr"]
    return notebook


def _plain(output: Any) -> Any:
    """Return an output without times."""
    if "text" in output:
        output.text = TIMES.sub("", output.text)
    elif "text/plain" in output.get("data", {}):
        output.data["text/plain"] = TIMES.sub("", output.data["text/plain"])
    return output


def main(folder: str | None = None) -> None:
    """Run all notebooks, and write them with their outputs."""
    target = NOTEBOOKS if folder is None else Path(folder)
    for path in sorted(NOTEBOOKS.glob("*.ipynb")):
        nbformat.write(execute(path), target / path.name)
        print(path.name, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
