"""What a package index shows: the README, with links that lead to the repository, and the project's addresses.

No address is written in the project: whoever publishes it names the repository in FUSILI_REPOSITORY, as the
workflow `release` does. In a build without one, links become plain text, and pictures are left out.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

__all__ = ["RepositoryHook", "with_links_to"]

_VARIABLE = "FUSILI_REPOSITORY"
_PICTURE = re.compile(r"!\[([^\]]*)\]\((?!https?:|#)([^)]+)\)\n*")
_LINK = re.compile(r"(?<!!)\[([^\]]*)\]\((?!https?:|#)([^)]+)\)")


class RepositoryHook(MetadataHookInterface):
    """Fills in `readme` and `urls`."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Add both to the metadata of the project."""
        repository = os.environ.get(_VARIABLE, "").rstrip("/")
        tag = f"v{metadata['version']}"
        readme = Path(self.root, "README.md").read_text(encoding="utf-8")
        metadata["readme"] = {
            "content-type": "text/markdown",
            "text": with_links_to(readme, repository, tag, Path(self.root)),
        }
        metadata["urls"] = {}
        if repository:
            metadata["urls"] = {
                "Repository": repository,
                "Documentation": f"{repository}/tree/{tag}/docs",
                "Changelog": f"{repository}/blob/{tag}/CHANGELOG.md",
                "Issues": f"{repository}/issues",
            }


def with_links_to(text: str, repository: str, tag: str, root: Path) -> str:
    """Return Markdown whose relative links are absolute, or, without a repository, no links."""
    if not repository:
        return _LINK.sub(r"\1", _PICTURE.sub("", text))

    def link(found: re.Match[str]) -> str:
        kind = "tree" if (root / found[2].split("#")[0]).is_dir() else "blob"
        return f"[{found[1]}]({repository}/{kind}/{tag}/{found[2]})"

    return _LINK.sub(link, _PICTURE.sub(rf"![\1]({repository}/raw/{tag}/\2)\n\n", text))
