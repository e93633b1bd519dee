"""The long description and the URLs of the project, for the wheel.

In the repository the README links to its files by their paths. Where it is read elsewhere these must be whole
addresses, so that a release is built with the address of the repository:

    BAMDP_PROJECT_URL=https://example.org/bamdp python -m build

Without it the README is taken as it is, and the project has no URLs.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

BRANCH = "main"


def long_description(text: str, url: str) -> str:
    """Return the README with links and images as whole addresses.

    Examples
    --------
    >>> print(long_description("![a curve](docs/a.png) [up](#start)\\n[guide](docs/g.md#x)", "https://example.org/p"))
    ![a curve](https://example.org/p/raw/main/docs/a.png) [up](#start)
    [guide](https://example.org/p/blob/main/docs/g.md#x)
    """
    link = re.compile(r"(!?)(\[[^\]]*\])\((?![a-z]+:|#)([^)\s]+)\)")

    def whole(found: re.Match[str]) -> str:
        kind = "raw" if found[1] else "blob"
        return f"{found[1]}{found[2]}({url}/{kind}/{BRANCH}/{found[3]})"

    return link.sub(whole, text)


class CustomMetadataHook(MetadataHookInterface):
    """Hatchling asks it for the metadata that pyproject.toml calls dynamic."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Set the long description and the URLs."""
        text = Path(self.root, "README.md").read_text(encoding="utf-8")
        url = os.environ.get("BAMDP_PROJECT_URL", "").rstrip("/")
        metadata["readme"] = {
            "content-type": "text/markdown",
            "text": long_description(text, url) if url else text,
        }
        metadata["urls"] = (
            {
                "Homepage": url,
                "Documentation": f"{url}/tree/{BRANCH}/docs",
                "Changelog": f"{url}/blob/{BRANCH}/CHANGELOG.md",
                "Issues": f"{url}/issues",
            }
            if url
            else {}
        )
