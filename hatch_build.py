"""What a built package has beside the files of a checkout: links that lead to the repository, and
what a browser needs to run a model.
"""

import re
import runpy
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

README = "README.md"


class Readme(MetadataHookInterface):
    """Relative links become links to the repository, since PyPI shows the text beside no files.

    Its address is `Repository` of `[project.urls]`; without one the text stays as it is.
    """

    def update(self, metadata: dict[str, Any]) -> None:
        """Fill in the field that pyproject.toml calls dynamic."""
        text = (Path(self.root) / README).read_text(encoding="utf-8")
        home = metadata.get("urls", {}).get("Repository")
        if home:
            text = absolute(text, home)
        metadata["readme"] = {"content-type": "text/markdown", "text": text}


class Scripts(BuildHookInterface):
    """A wheel brings npm's packages along, so that its user needs no npm."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Make them unless they are there; without npm the wheel goes without them."""
        if version == "editable":
            return
        scripts = runpy.run_path(f"{self.root}/fillmask_ui/features/site/scripts.py")
        try:
            scripts["ensure_packed"]()
        except scripts["NpmError"] as error:
            self.app.display_warning(f"fillmask-ui site will need npm: {error}")
        else:
            build_data["artifacts"].append("fillmask_ui/features/site/packed.tar.xz")


def absolute(text: str, home: str) -> str:
    """Markdown whose relative links and pictures lead to a repository on GitHub.

    >>> absolute("![a](b.png), [c](d.md#e)", "https://g.com/me/it")
    '![a](https://g.com/me/it/raw/main/b.png), [c](https://g.com/me/it/blob/main/d.md#e)'
    """

    def address(link: re.Match[str]) -> str:
        kind = "raw" if link[1] else "blob"
        return f"{link[1]}[{link[2]}]({home}/{kind}/main/{link[3]})"

    return re.sub(r"(!?)\[([^\]]*)\]\((?![a-z]+:|#)([^)\s]+)\)", address, text)
